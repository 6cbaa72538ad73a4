"""The installed package is the one this clone builds, and it is complete."""

import importlib.metadata
import importlib.resources
import pathlib
import re

import bornite

ROOT = pathlib.Path(__file__).parents[2]


def test_version_is_the_one_in_cargo_toml() -> None:
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    declared = re.search(r'^version = "(.+)"$', manifest, re.MULTILINE)
    assert declared is not None
    assert bornite.__version__ == declared.group(1)
    assert importlib.metadata.version("bornite") == declared.group(1)


def test_package_is_the_installed_one() -> None:
    assert ROOT / "python" not in pathlib.Path(bornite.__file__).parents


def test_package_is_typed() -> None:
    files = importlib.resources.files(bornite)
    assert (files / "py.typed").is_file()
    assert (files / "_bornite.pyi").is_file()


def test_licences_travel_with_the_wheel() -> None:
    names = {path.name for path in importlib.metadata.files("bornite") or []}
    assert {"LICENSE-MIT", "LICENSE-APACHE"} <= names


def test_needs_numpy_only() -> None:
    requirements = importlib.metadata.requires("bornite") or []
    needed = [line for line in requirements if "extra ==" not in line]
    assert [re.split(r"[<>=!~ ]", line)[0] for line in needed] == ["numpy"]


def test_every_public_name_exists() -> None:
    for name in bornite.__all__:
        assert hasattr(bornite, name), name
