"""What holds for each family of models: pictures in, the table that it names out.

A new family adds to ``_samples.MODELS`` a function that writes a tiny model's files into a folder
and gives what to load. Families that judge two pictures at once (LPIPS) answer no task.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from isolux.core.errors import IsoluxError, TableError
from isolux.core.info import ModelInfo
from isolux.core.tables import check
from isolux.models import (
    PREDICTION_TABLES,
    Predictor,
    find_prediction_type,
    predict_and_check_table,
)
from tests.contracts._plugins import PLUGINS, Plugin, of_package
from tests.contracts._samples import sample_of

ANSWER_NOTHING = ("distances", "imported")
"""Families whose models are shown no picture of their own."""

every_predictor = pytest.mark.parametrize(
    "plugin",
    [p for p in PLUGINS if p.package == "models" and p.module.INFO.predicts not in ANSWER_NOTHING],
    ids=str,
)


def pictures() -> list[np.ndarray]:
    """Six small pictures of different sizes, dark to bright."""
    rng = np.random.default_rng(1)
    return [rng.integers(0, 40 * k + 50, (20 + k, 30 - k, 3)).astype(np.uint8) for k in range(6)]


def _loaded(plugin: Plugin, folder: Path) -> Predictor:
    written = sample_of(plugin, "MODELS", "a function that writes a tiny model and gives its spec")
    spec = written(folder)
    return (
        plugin.module.load(spec)
        if isinstance(spec, str)
        else plugin.module.load(spec[0], **spec[1])
    )


def _asked(predictor: Predictor, given: list[np.ndarray]) -> pl.DataFrame:
    """Ask as the engine does: pictures are prepared first, where the predictor says how."""
    prepare = getattr(predictor, "prepare", None)
    return predictor(given if prepare is None else [prepare(one) for one in given])


def _answers(plugin: Plugin, predictor: Predictor, given: list[np.ndarray]) -> pl.DataFrame:
    ids = [f"{k}.png" for k in range(len(given))]
    prepare = getattr(predictor, "prepare", None)
    shown = given if prepare is None else [prepare(one) for one in given]
    return predict_and_check_table(predictor, plugin.module.INFO, shown, ids, model="tiny")


@of_package("models")
def test_a_family_says_what_it_answers(plugin: Plugin) -> None:
    assert plugin.module.INFO.predicts in {*PREDICTION_TABLES, "several", *ANSWER_NOTHING}


@of_package("models")
def test_weights_that_are_not_there_are_named(plugin: Plugin) -> None:
    with pytest.raises(IsoluxError, match=r"nowhere"):
        plugin.module.load("nowhere/weights.bin")


@every_predictor
def test_its_answers_are_the_table_that_it_names(plugin: Plugin, tmp_path: Path) -> None:
    predictor = _loaded(plugin, tmp_path)
    found = _answers(plugin, predictor, pictures())
    check(found, PREDICTION_TABLES[find_prediction_type(predictor, plugin.module.INFO)])
    if plugin.name != "mediapipe":  # whose trained detector finds no face in these pictures
        assert set(found["model"]) == {"tiny"}


@every_predictor
def test_the_size_of_a_batch_changes_no_answer(plugin: Plugin, tmp_path: Path) -> None:
    predictor, given = _loaded(plugin, tmp_path), pictures()
    whole = _asked(predictor, given)
    single = pl.concat(
        _asked(predictor, [one]).with_columns(picture=pl.lit(k, whole.schema["picture"]))
        for k, one in enumerate(given)
    )
    assert_frame_equal(whole, single, rel_tol=1e-4, abs_tol=1e-4)


@every_predictor
def test_pictures_are_unchanged_and_no_pictures_give_no_answers(
    plugin: Plugin, tmp_path: Path
) -> None:
    predictor, given = _loaded(plugin, tmp_path), pictures()
    _asked(predictor, given)
    assert all(np.array_equal(a, b) for a, b in zip(given, pictures(), strict=True))
    nothing = predictor([])
    assert nothing.is_empty()
    assert nothing.schema == _asked(predictor, given).schema


LABELS = ModelInfo(title="t", summary="s.", references=(), predicts="labels")


def test_an_answer_for_a_picture_that_was_not_given_is_refused() -> None:
    def strange(given):
        return pl.DataFrame({"picture": [len(given)], "label": ["day"], "score": [1.0]})

    with pytest.raises(TableError, match=r"(?s)'net' answers for a picture.*from 0 to 5"):
        predict_and_check_table(strange, LABELS, pictures(), list("abcdef"), model="net")


def test_another_table_than_the_family_names_is_refused() -> None:
    def boxes(given):
        return pl.DataFrame({"picture": [0], "box_x": [1.0]})

    with pytest.raises(TableError, match=r"(?s)'net' does not answer with labels.*label, picture"):
        predict_and_check_table(boxes, LABELS, pictures(), list("abcdef"), model="net")


def test_several_labels_of_a_picture_are_ranked_in_their_order() -> None:
    def twice(given):
        return pl.DataFrame({"picture": [0, 0, 1], "label": ["a", "b", "a"], "score": 0.5})

    found = predict_and_check_table(twice, LABELS, pictures()[:2], list("ab"), model="net")
    assert found.select("instance_id", "rank").rows() == [("a", 1), ("a", 2), ("b", 1)]
