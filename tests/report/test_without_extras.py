"""Without what few need, an audit says so where the reader looks, and goes on."""

from __future__ import annotations

import html
import importlib
import sys

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.cli.audit_screen import print_audit
from isolux.core.errors import SpecError
from isolux.core.extras import import_optional
from isolux.report.figures import svg
from isolux.stats.pairwise import map_to_plane_by_tsne


@pytest.fixture
def without_figures(monkeypatch):
    monkeypatch.setattr(svg, "find_spec", lambda name: None)


@pytest.fixture
def run(tmp_path):
    lines = [
        f"{i},{'day' if i % 2 else 'night'},{'in' if i % 4 > 1 else 'out'},{i % 3 == 0:d}"
        for i in range(200)
    ]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["id,light,place,said", *lines]) + "\n")
    people = pl.read_csv(path)
    scores = people.select(unit_id="id", value=pl.col("said").cast(pl.Float64))
    return isolux.audit(
        scores, people.rename({"id": "unit_id"}), by=["light", "light*place"], replicates=200
    )


def test_a_report_without_figures_says_so_once_and_what_adds_them(
    without_figures, run, tmp_path, capsys
):
    page = run.report(tmp_path / "run")
    text = page.read_text()
    assert text.count("This page has no figures") == 1
    assert "pip install 'isolux[figures]'" in html.unescape(text)
    assert "<figure" not in text
    assert 0 < text.index("This page has no figures") < text.index("<main")
    print_audit(run.run, page)
    shown = capsys.readouterr().out
    assert "It has no figures, only tables" in shown
    assert f"then: isolux report {tmp_path / 'run'}" in shown


def test_a_report_with_figures_says_nothing_of_them(run, tmp_path, capsys):
    pytest.importorskip("vl_convert")
    page = run.report(tmp_path / "run")
    assert "no figures" not in page.read_text()
    assert "<figure" in page.read_text()
    print_audit(run.run, page)
    assert "no figures" not in capsys.readouterr().out


@pytest.fixture
def without_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in [name for name in sys.modules if name.startswith("sklearn.")]:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_map_and_an_error_model_name_their_extra(without_learn):
    from isolux.analyses.error_model.forest import Forest

    for ask in (
        lambda: map_to_plane_by_tsne(np.eye(5)),
        lambda: Forest().fit(np.zeros((20, 2)), np.zeros(20)),
    ):
        with pytest.raises(SpecError, match=r"(?s)needs scikit-learn.*isolux\[learn\]"):
            ask()


def test_a_broken_installation_is_told_from_an_absent_one(monkeypatch, tmp_path):
    (tmp_path / "half_a_package.py").write_text("raise ImportError('libz.so: not found')")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(SpecError, match=r"(?s)cannot be imported.*libz\.so: not found"):
        import_optional("half_a_package", package="half", extra="learn", purpose="this test")
