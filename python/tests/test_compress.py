"""Files are compressed without loss."""

import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bornite


def save(path: pathlib.Path, kind: str, rows: npt.NDArray[Any]) -> None:
    if kind == "C order":
        np.save(path, rows)
    elif kind == "Fortran order":
        np.save(path, np.asfortranarray(rows))
    elif kind == "savez":
        np.savez(path, rows=rows, again=rows[:, :2])
    elif kind == "savez_compressed":
        np.savez_compressed(path, rows=rows)
    else:
        np.savetxt(path, rows, fmt="%.2f", delimiter=",", header="a,b,c", comments="")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("C order", "a.npy"),
        ("Fortran order", "a.npy"),
        ("savez", "a.npz"),
        ("savez_compressed", "a.npz"),
        ("csv", "a.csv"),
    ],
)
def test_files_come_back_byte_for_byte(tmp_path: pathlib.Path, kind: str, name: str) -> None:
    rows = np.random.default_rng(1).integers(0, 1000, (3000, 3)) / 100
    source, target, back = tmp_path / name, tmp_path / "a.brz", tmp_path / "back"
    save(source, kind, rows)
    before, after = bornite.compress_file(source, target, epochs=1, width=2)
    assert (before, after) == (source.stat().st_size, target.stat().st_size)
    bornite.decompress_file(target, back)
    assert back.read_bytes() == source.read_bytes()
    if kind != "savez_compressed":
        # About log2(1000) bits a number, in whatever form it was written; of the second array too.
        numbers = rows.size + (rows[:, :2].size if kind == "savez" else 0)
        assert after < 1.05 * numbers * np.log2(1000) / 8 + 2000


def test_a_damaged_file_leaves_nothing_behind(tmp_path: pathlib.Path) -> None:
    source, target, back = tmp_path / "a.txt", tmp_path / "a.brz", tmp_path / "back"
    source.write_text("no table")
    bornite.compress_file(source, target)
    packed = bytearray(target.read_bytes())
    packed[30] ^= 1
    target.write_bytes(packed)
    with pytest.raises(bornite.BorniteError, match="damaged"):
        bornite.decompress_file(target, back)
    assert [path.name for path in tmp_path.iterdir() if path not in (source, target)] == []


def test_a_source_is_not_written_over(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,x\n2,y\n" * 50)
    (tmp_path / "link").symlink_to(path)
    before = path.read_bytes()
    for call in (bornite.compress_file, bornite.decompress_file):
        with pytest.raises(bornite.BorniteError, match="is also the source"):
            call(path, tmp_path / "link")
    assert path.read_bytes() == before
