"""A process forked from one with threads answers too."""

import multiprocessing
import os
from typing import Any

import numpy as np
import pytest

import bornite

ROWS = np.random.default_rng(0).integers(0, 3, (2000, 4)).astype(float)


def ask(model: bornite.Model) -> float:
    return float(np.sum(model.log_prob(ROWS)))


def child(model: bornite.Model, results: Any) -> None:
    results.put(ask(model))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    model = bornite.fit(ROWS, epochs=1, width=2)
    expected = ask(model)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=child, args=(model, results))
    process.start()
    try:
        assert results.get(timeout=60) == expected
    finally:
        process.join(60)
        if process.is_alive():
            process.kill()


def test_more_rows_than_memory_are_an_error() -> None:
    model = bornite.fit(ROWS, epochs=1, width=2)
    circuit = bornite.Circuit.random([2, 2, 2], seed=1)
    for count in (2**40, 2**63):
        with pytest.raises(bornite.BorniteError, match="fewer at a time"):
            model.sample(count)
        with pytest.raises(bornite.BorniteError, match="fewer at a time"):
            circuit.sample(count)
