"""Ctrl-C ends a fit and keeps the best model; other threads run in the meantime."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import bornite

CODE = """
import warnings, numpy as np, bornite
rows = np.random.default_rng(0).normal(size=(500, 3))
def ready(report):
    if report["epoch"] == 1:
        print("running", flush=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = bornite.fit(rows, epochs=10**7, patience=10**7, width=4, progress=ready)
assert "interrupted" in str(caught[0].message), caught
assert np.isfinite(model.score(rows))
print("kept", len(model.history) > 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal that a process can be sent")
def test_ctrl_c_keeps_the_best_model() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CODE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (0, "kept True\n"), err


EARLY = """
import time, numpy as np, bornite
rows = np.random.default_rng(0).normal(size=(3000, 400))
print("running", flush=True)
try:
    bornite.fit(rows, epochs=10**7, patience=10**7)
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal that a process can be sent")
def test_ctrl_c_before_the_first_step_raises() -> None:
    # The setup for this many columns takes much longer than the delay.
    child = subprocess.Popen(
        [sys.executable, "-c", EARLY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (0, "stopped\n"), err


def test_other_threads_run_during_a_fit() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3))
    ended = threading.Event()

    def fit() -> None:
        bornite.fit(rows, epochs=10**7, patience=10**7, width=4, time=0.5)
        ended.set()

    thread = threading.Thread(target=fit)
    thread.start()
    turns = 0
    while not ended.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 5
