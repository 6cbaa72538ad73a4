"""The recipes of the guide for engines of SQL and frames, where those are installed."""

from __future__ import annotations

import pathlib
import re
import shutil
import warnings

import pytest

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "guide" / "scale.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python( \w+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(name.strip(), code) for name, code in BLOCK.findall(PAGE)]
ENGINES = [name for name, _ in BLOCKS if name and name != "ray"]


@pytest.mark.parametrize("engine", ENGINES)
def test_recipes_run(engine: str) -> None:
    if engine == "pyspark" and shutil.which("java") is None:
        pytest.skip("no Java here")
    pytest.importorskip(engine)
    pytest.importorskip("pyarrow")
    names: dict[str, object] = {"__name__": "guide"}
    first = next(code for name, code in BLOCKS if not name and "model.batches" in code)
    recipe = next(code for name, code in BLOCKS if name == engine)
    with warnings.catch_warnings():
        # Those of the engines are not ours.
        warnings.simplefilter("ignore")
        for code in (first, recipe):
            exec(compile(code, f"scale.md, {engine}", "exec"), names)


def test_there_are_recipes() -> None:
    assert ENGINES == ["polars", "duckdb", "datafusion", "pyspark"]
