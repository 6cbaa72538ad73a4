"""Everything public is documented, and every example is run."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import bornite
import bornite.answers
import bornite.distribution
import bornite.fitting
import bornite.model

CLASSES = [
    value for name in bornite.__all__ if inspect.isclass(value := getattr(bornite, name))
]


@pytest.mark.parametrize("name", [name for name in bornite.__all__ if name != "__version__"])
def test_public_names_are_documented(name: str) -> None:
    value = getattr(bornite, name)
    assert value.__doc__
    assert value.__module__.split(".")[0] == "bornite"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__name__))
def test_members_are_documented(cls: type) -> None:
    for name, member in vars(cls).items():
        if not name.startswith("_"):
            assert inspect.getdoc(member), f"{cls.__name__}.{name}"


def test_every_example_is_found() -> None:
    """Examples in compiled classes are run through the package that exports them."""
    found = {
        f"bornite{test.name.removeprefix(module.__name__)}"
        for module in (bornite, bornite.answers, bornite.distribution, bornite.fitting, bornite.model)
        for test in doctest.DocTestFinder().find(module)
        if test.examples
    }
    for cls in CLASSES:
        members = {f"{cls.__name__}.{name}": value for name, value in vars(cls).items()}
        for name, value in {cls.__name__: cls, **members}.items():
            if not name.endswith("__doc__") and ">>>" in (getattr(value, "__doc__", None) or ""):
                assert f"bornite.{name}" in found, name


def test_the_reference_is_up_to_date() -> None:
    pytest.importorskip("sklearn")
    script = Path(__file__).resolve().parents[2] / "docs" / "reference" / "generate.py"
    made = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
