"""A set for evaluation alone does not feed training."""

from __future__ import annotations

import pytest

from isolux.core import registry
from isolux.core.errors import LicenceError
from isolux.datasets import check_training_is_licensed, load
from tests.cli._run import isolux

FORBIDDEN = [
    name
    for name in registry.names("datasets")
    if registry.load_dataset_info(name).training_allowed is False
]


def test_those_that_forbid_training_are_known():
    assert FORBIDDEN == ["casual_conversations", "facet", "fhibe", "visogender"]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_it_is_refused_before_a_file_is_touched(name, tmp_path):
    with pytest.raises(LicenceError, match="may not be used to train a model") as caught:
        load(name, tmp_path / "nowhere", purpose="training")
    info = registry.load_dataset_info(name)
    assert info.licence in str(caught.value)
    assert info.training_terms in str(caught.value)
    assert info.references[0].citation in str(caught.value)


def test_one_that_allows_it_or_does_not_say_passes():
    check_training_is_licensed(registry.load_dataset_info("fairface"))
    assert registry.load_dataset_info("table").training_allowed is None
    check_training_is_licensed(registry.load_dataset_info("table"))


def test_a_sample_for_training_is_refused_too(tmp_path, monkeypatch, capsys):
    done = isolux(
        monkeypatch, capsys,
        "sample", f"facet:{tmp_path}", "--balance", "skin_tone", "--per-cell", "5",
        "--purpose", "training", "--out", str(tmp_path / "ids.csv"),
    )  # fmt: skip
    assert done.code != 0
    assert "FACET may not be used to train a model" in done.err
    assert not (tmp_path / "ids.csv").exists()
    wrong = isolux(
        monkeypatch, capsys,
        "sample", f"facet:{tmp_path}", "--balance", "skin_tone", "--per-cell", "5",
        "--purpose", "trainign", "--out", str(tmp_path / "ids.csv"),
    )  # fmt: skip
    assert "training" in wrong.err
    assert "Traceback" not in wrong.err
