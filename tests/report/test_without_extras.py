"""Without what few need, an audit says so where the reader looks, and goes on."""

from __future__ import annotations

import importlib
import re
import sys

import numpy as np
import pytest

from isolux.report.figures import svg
from isolux.stats.pairwise import map_vectors
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.extras import needed


def test_a_figure_that_cannot_be_drawn_says_what_to_install(monkeypatch):
    monkeypatch.setattr(svg, "find_spec", lambda name: None)
    drawn = svg.to_svg({"mark": "point"})
    assert re.match(r"<svg [^>]*width=", drawn)
    assert "This figure is not drawn" in drawn
    assert "pip install 'isolux[figures]'" in drawn


@pytest.fixture
def without_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in [name for name in sys.modules if name.startswith("sklearn.")]:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_map_and_an_error_model_name_their_extra(without_learn):
    from isolux.analyses.error_model.forest import Forest

    for ask in (
        lambda: map_vectors(np.eye(5)),
        lambda: Forest().fit(np.zeros((20, 2)), np.zeros(20)),
    ):
        with pytest.raises(SpecError, match=r"(?s)needs scikit-learn.*isolux\[learn\]"):
            ask()


def test_a_broken_installation_is_told_from_an_absent_one(monkeypatch, tmp_path):
    (tmp_path / "half_a_package.py").write_text("raise ImportError('libz.so: not found')")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(SpecError, match=r"(?s)cannot be imported.*libz\.so: not found"):
        needed("half_a_package", package="half", extra="learn", purpose="this test")
