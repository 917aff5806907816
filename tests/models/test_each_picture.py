"""What is about one person each has a row for every picture, once; boxes need none."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import TableError
from isolux.core.info import ModelInfo
from isolux.models import predict_and_check_table

PICTURES = [np.zeros((4, 4, 3), np.uint8)] * 4


def asked(kind, given):
    info = ModelInfo(title="t", summary="s.", references=(), predicts=kind)
    return predict_and_check_table(lambda _: given, info, PICTURES, list("abcd"), model="net")


def labels(pictures, names):
    return pl.DataFrame({"picture": pictures, "label": names, "score": 0.9})


def vectors(pictures):
    return pl.DataFrame({"picture": pictures, "embedding": [[1.0, 2.0]] * len(pictures)})


@pytest.mark.parametrize(
    ("kind", "given", "match"),
    [
        ("labels", labels([0, 1], ["f", "m"]), r"no row for 2 of 4 .*\n.*\n.*picture 2, 3 \("),
        ("labels", labels([0] * 4, list("fmfm")), r"no row for 3 of 4 .*\n.*\n.*picture 1, 2, 3"),
        (
            "labels",
            labels([0, 1, 2, 3, 3], list("fmfmm")),
            r"more than once for a picture .1 in.*\n.*\n.*2 rows",
        ),
        ("labels", labels([0, 0, 1, 2, 3], [None, "f", "f", "m", "f"]), r"more than once"),
        ("labels", labels([0, 0, 1, 2, 3], [None, None, "f", "m", "f"]), r"more than once"),
        ("labels", labels([0, 1, 2, 3], ["f", "m", "", " "]), r"empty label\n.*\n.*picture 2, 3"),
        ("labels", ["f", "", "m", "f"], r"empty label\n.*\n.*picture 1 "),
        ("embeddings", vectors([0, 1, 3]), r"no row for 1 of 4 .*\n.*\n.*picture 2 \("),
        ("embeddings", vectors([0, 1, 2, 3, 3]), r"more than once for a picture .1 in all"),
    ],
)
def test_a_person_left_out_or_answered_for_twice_ends_the_run(kind, given, match):
    with pytest.raises(TableError, match=match):
        asked(kind, given)


def test_a_surer_label_after_another_ends_the_run():
    # The first label is the answer: it would be the less sure one.
    rising = pl.DataFrame(
        {"picture": [0, 1, 1, 2, 3], "label": list("afmff"), "score": [0.9, 0.2, 0.7, None, 0.1]}
    )
    match = r"less confident label first\n.*\n.*'f' \(0.2\) before 'm' \(0.7\) for picture 1 "
    with pytest.raises(TableError, match=match):
        asked("labels", rising)
    unscored = {"picture": [0, 1, 1, 1, 2, 3], "label": list("afxmff"),
                "score": [0.9, 0.2, None, 0.7, None, 0.1]}  # fmt: skip
    with pytest.raises(TableError, match=r"'f' \(0.2\) before 'm' \(0.7\) for picture 1 "):
        asked("labels", pl.DataFrame(unscored))
    ranked = rising.with_columns(rank=pl.Series([1, 2, 1, 1, 1]))
    assert asked("labels", ranked)["rank"].to_list() == [1, 2, 1, 1, 1]


def test_a_list_of_labels_holds_texts_alone():
    with pytest.raises(TableError, match=r"or a list of one text for each.*\n.*list, with int"):
        asked("labels", ["f", 1, "m", "f"])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([[1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0]], r"vectors of one length\n.*\n.*1, 2"),
        ([[]] * 4, r"vectors of one length\n.*\n.*0"),
        ([[1.0, 2.0], [1.0, float("nan")], [1.0, 2.0], [1.0, 2.0]], r"finite numbers\n.*nan"),
        ([[1.0, 2.0], [1.0, float("inf")], [1.0, 2.0], [1.0, 2.0]], r"finite numbers\n.*inf"),
        ([[1.0, 2.0], [1.0, None], [1.0, 2.0], [1.0, 2.0]], r"finite numbers\n.*None"),
    ],
)
def test_vectors_that_nothing_can_be_compared_with_end_the_run(given, match):
    column = pl.Series(given, dtype=pl.List(pl.Float64))
    with pytest.raises(TableError, match=match):
        asked("embeddings", pl.DataFrame({"picture": range(4), "embedding": column}))


def test_several_labels_that_differ_and_a_row_without_one_are_taken():
    found = asked("labels", labels([0, 0, 1, 2, 3], ["f", "m", None, "f", "m"]))
    assert found.select("instance_id", "label").rows() == [
        ("a", "f"), ("a", "m"), ("b", None), ("c", "f"), ("d", "m"),
    ]  # fmt: skip


def test_a_picture_without_a_box_has_no_row():
    box = {"box_x": 0.0, "box_y": 0.0, "box_w": 1.0, "box_h": 1.0}
    given = pl.DataFrame({"picture": [2, 2], "label": "face", "score": 0.9, **box})
    assert asked("boxes", given)["image_id"].to_list() == ["c", "c"]
    assert asked("boxes", given.clear()).height == 0
