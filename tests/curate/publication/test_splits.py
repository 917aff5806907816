"""Splits by subject: nobody in two, strata alike, the same again."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux_curate.publication.photos import (
    assign_clusters_by_shared_photos,
    assign_subjects_to_splits,
    parse_split_shares,
)

SHARES = {"train": 0.6, "val": 0.1, "test": 0.3}


def people(n: int, seed: int = 0) -> pl.DataFrame:
    """Draw people in photos: some photos of two, subjects of one to five photos."""
    draw = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        for photo in range(draw.integers(1, 6)):
            rows.append((f"p{k}-{photo}", f"s{k}", "ab"[k % 10 == 0]))
            if draw.random() < 0.1:
                other = int(draw.integers(0, n))
                rows.append((f"p{k}-{photo}", f"s{other}", "ab"[other % 10 == 0]))
    names = ["image_id", "subject_id", "stratum"]
    return pl.DataFrame(rows, schema=names, orient="row").unique(maintain_order=True)


@pytest.mark.parametrize("seed", range(5))
def test_nobody_and_no_photo_is_in_two_splits(seed: int) -> None:
    held = people(300, seed)
    split = held.with_columns(assign_subjects_to_splits(held, SHARES, seed))
    for key in ("subject_id", "image_id"):
        assert split.group_by(key).agg(pl.col("split").n_unique())["split"].max() == 1


def test_strata_are_alike_in_every_split() -> None:
    ids = [f"s{k}" for k in range(1000)]
    ages = ["old" if k % 10 == 0 else "young" for k in range(1000)]
    held = pl.DataFrame({"image_id": ids, "subject_id": ids, "stratum": ages})
    split = held.with_columns(assign_subjects_to_splits(held, SHARES, 3))
    counts = dict(split.group_by("split", "stratum").len().select(
        pl.concat_str("split", "stratum", separator=" "), "len").rows())  # fmt: skip
    assert counts == {"train old": 60, "train young": 540, "val old": 10, "val young": 90,
                      "test old": 30, "test young": 270}  # fmt: skip


def test_the_same_seed_gives_the_same_splits_in_any_order() -> None:
    held = people(100)
    turned = held.sample(fraction=1.0, shuffle=True, seed=5)
    one, other = (
        dict(zip(rows["subject_id"], assign_subjects_to_splits(rows, SHARES, 1), strict=True))
        for rows in (held, turned)
    )
    assert one == other
    assert one != dict(
        zip(held["subject_id"], assign_subjects_to_splits(held, SHARES, 2), strict=True)
    )


def test_many_small_strata_come_to_the_shares_together() -> None:
    ids = [f"s{k}" for k in range(200)]
    held = pl.DataFrame({"image_id": ids, "subject_id": ids, "stratum": ids})
    counts = assign_subjects_to_splits(held, SHARES, 0).value_counts()
    assert dict(counts.rows()) == {"train": 120, "val": 20, "test": 60}


def test_photos_without_a_subject_are_their_own() -> None:
    held = pl.DataFrame({"image_id": list("abcd"), "subject_id": [None] * 4, "stratum": [""] * 4},
                        schema_overrides={"subject_id": pl.String})  # fmt: skip
    assert assign_subjects_to_splits(held, {"a": 0.5, "b": 0.5}).value_counts()[
        "count"
    ].to_list() == [2, 2]


@pytest.mark.parametrize("text", ["train", "train=0.8", "train=0.5,train=0.5", "train=1.5", "=1"])
def test_splits_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="splits"):
        parse_split_shares(text)


def test_people_who_share_photos_are_one_cluster_with_all_their_photos() -> None:
    """s and t are in b; u is alone in two photos; no one is named in e."""
    rows = [("a", "s"), ("b", "s"), ("b", "t"), ("c", "t"), ("d", "u"), ("f", "u"), ("e", None)]
    named = pl.DataFrame(rows, schema=["image_id", "subject_id"], orient="row")
    of = dict(assign_clusters_by_shared_photos(named).iter_rows())
    assert of["a"] == of["b"] == of["c"]
    assert of["d"] == of["f"]
    assert len({of["a"], of["d"], of["e"]}) == 3
    assert assign_clusters_by_shared_photos(named.clear()).height == 0
