"""What notebooks show, and the tables and plots of a model."""

import io
import pathlib
import sys
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import bornite
from bornite import Model, _tables
from bornite._notebook import Drawing, Page
from bornite._progress import ProgressLine

EVIL = "<script>alert('&')</script>"


@pytest.fixture(scope="module")
def model() -> Model:
    rng = np.random.default_rng(0)
    size = rng.normal(size=300)
    table = {
        "size": size,
        EVIL: np.where(size > 0, EVIL, "plain"),
        "count": rng.integers(0, 40, 300) * 1000,
        "tall": size > 1,
        "on": rng.choice(["2019-01-02", "2019-02-03", "2020-05-06"], 300),
    }
    return bornite.fit(table, epochs=15, width=4)


def shown(thing: Any) -> str:
    html: str = thing._repr_html_()
    # Well-formed, and nothing of the table is taken for a tag.
    ElementTree.fromstring(f"<body>{html}</body>")
    assert "<script" not in html
    return html


def test_everything_is_shown_and_escaped(model: Model) -> None:
    html = shown(model)
    assert "&lt;script&gt;" in html and "5 columns, 300 rows, width 4" in html and "date time" in html
    assert "given" in shown(model.conditional({"tall": True}))
    for column in model.columns:
        assert column == EVIL or column in shown(model.marginal(column))
    assert "<polygon" in shown(model.marginal("size")) and "<polygon" in shown(model.marginal("count"))
    assert "&lt;script&gt;" in shown(model.marginal(EVIL))
    # An atom is no place where a density ends.
    shown(model.marginal("size", given={"size": 0.25}))
    for question in ("P(tall=1)", "E[size]", "argmax(tall, on)", "MI(size; tall)", f'argmax("{EVIL}")'):
        assert "answer" in shown(model.ask(question))
    anomaly = model.anomalies(model.sample(5), 1)[0]
    assert "&lt;script&gt;" in shown(anomaly)


def test_wide_models_show_their_first_columns() -> None:
    wide = bornite.fit(np.random.default_rng(0).integers(0, 2, (40, 36)), epochs=1, width=2)
    assert "and 6 more columns" in shown(wide)


def test_reports_and_plots(model: Model, tmp_path: pathlib.Path) -> None:
    rows = model.sample(60)
    page = model.report(rows, title=EVIL)
    assert isinstance(page, Page) and "&lt;script&gt;alert" in page
    assert 'srcdoc="&lt;!doctype html' in page._repr_html_()
    page.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == page
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    (tmp_path / "report.html").chmod(0o600)
    (tmp_path / "link.html").symlink_to("report.html")
    page.save(tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink() and (tmp_path / "report.html").stat().st_mode & 0o777 == 0o600
    for what in ("structure", "training", "marginals", "pairs", "calibration", "anomalies"):
        drawing = model.plot(what, data=rows)
        assert isinstance(drawing, Drawing) and drawing._repr_svg_() == drawing
        ElementTree.fromstring(drawing)
    one = model.plot(columns=["size"])
    assert "size" in one and "count" not in one
    assert model.marginal(["size", "tall"]).plot() == model.plot(columns=["size", "tall"])
    bad: list[tuple[Callable[[], object], str]] = [
        (lambda: model.plot("pie"), "there is no plot 'pie'"),  # type: ignore[arg-type]
        (lambda: model.plot("calibration"), "table"),
        (lambda: model.plot("samples"), "image"),
        (lambda: model.plot(columns=["seize"]), "did you mean 'size'"),
        (lambda: page.save(tmp_path / "no" / "report.html"), "report.html"),
    ]
    for ask, message in bad:
        with pytest.raises((ValueError, OSError), match=message):
            ask()


def test_tables_of_answers(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    found = model.describe()
    assert list(found.index) == model.columns
    size = model.marginal("size")
    assert found.loc["size", "mean"] == size.mean and found.loc["size", "std"] == size.std
    assert found.loc["count", "95%"] == model.quantile("count", 0.95)
    shares = model.marginal("on").mode, found.loc["on", "mode"]
    assert found.loc["tall", "mode"] is False or not found.loc["tall", "mode"]
    assert found.loc["tall", "probability"] == pytest.approx(1 - model.query("P(tall=1)"))
    assert pandas.isna(found.loc["on", "mean"]) and shares[0]
    given = model.describe(given={"tall": True})
    assert given.loc["size", "mean"] > found.loc["size", "mean"]

    information = model.mutual_information(["tall", EVIL, "size"])
    assert np.allclose(information, information.T)
    assert information.loc["tall", EVIL] == pytest.approx(model.query(f'MI(tall; "{EVIL}")'), rel=1e-12)
    assert information.loc["tall", "tall"] == model.query("H(tall)")
    assert np.isinf(information.loc["size", "size"])

    names = ["size", "count", "tall"]
    corr, cov = model.corr(), model.cov()
    assert np.allclose(np.diag(corr), 1) and corr.shape == (len(names), len(names))
    assert corr[0, 2] == pytest.approx(model.query("corr(size, tall)"))
    assert corr[0, 2] == pytest.approx(cov[0, 2] / np.sqrt(cov[0, 0] * cov[2, 2]))

    # Without pandas they are dicts of lists.
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(_tables, "library", absent)
    assert set(model.describe()) == set(found.columns)
    assert len(model.describe()["mean"]) == len(model.columns)
    assert isinstance(model.mutual_information(["tall", EVIL])["tall"], list)


def test_correlations_of_pandas_are_in_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(0).normal(size=200)
    model = bornite.fit(pandas.DataFrame({"a": x, "b": x + np.random.default_rng(1).normal(size=200)}), epochs=10)
    assert list(model.corr().columns) == ["a", "b"]
    assert model.corr(given={"a": 0.5}).loc["a", "b"] == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"x": np.arange(80) % 5, "y": np.arange(80) % 3}
    reports: list[dict[str, Any]] = []
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        model = bornite.fit(table, epochs=3, width=4, verbose=True, progress=reports.append)
        last = stream.getvalue().splitlines()[-1]
        assert "width 4, epoch 3 of 3: validation" in last and "nats per row" in last
        assert stream.getvalue().endswith("\n")
        # In the units of the model's own figures.
        assert reports[-1]["valid"] == pytest.approx(model.history[-1]["valid"])
    assert len(reports) == 6
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    bornite.fit(table, epochs=1, width=2)
    assert not stream.getvalue()


def test_progress_is_overwritten_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("bornite._progress.time.monotonic", lambda: now[0])
    report = {"width": 8, "epoch": 0, "epochs": 50, "train": 0.0, "valid": -1.0, "best": None}
    for stream, lines in ((io.StringIO(), 6), (Terminal(), 51)):
        now[0] = 0.0
        line = ProgressLine(stream=stream)
        line.overwrites = stream.isatty()
        for epoch in range(1, 51):
            now[0] += 1.0
            assert line({**report, "epoch": epoch}) is None
        line.close()
        assert len(stream.getvalue().replace("\r", "\n").splitlines()) in (lines, lines - 1)


def test_effort_and_units() -> None:
    rng = np.random.default_rng(0)
    x = 1000 * rng.normal(size=300)
    table = np.column_stack([x, x + 300 * rng.normal(size=300), rng.normal(size=300), x])
    widths: dict[str, set[int]] = {}
    for effort in ("fast", "balanced"):
        seen: list[dict[str, Any]] = []
        model = bornite.fit(table, effort=effort, circuits=1, epochs=2, progress=seen.append)
        widths[effort] = {report["width"] for report in seen}
        assert max(report["best"] for report in seen) == pytest.approx(model.info["valid"], abs=1e-6)
    assert len(widths["fast"]) == 1 < len(widths["balanced"])
    with pytest.raises(ValueError, match="there is no effort 'slow'"):
        bornite.fit(table, effort="slow")  # type: ignore[arg-type]
