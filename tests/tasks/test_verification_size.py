"""Pairs of many embeddings are refused before any is made, by a limit that a setting raises."""

from __future__ import annotations

import tracemalloc

import numpy as np
import polars as pl
import pytest

from isolux import score
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo

N = 40


def people(n: int) -> Dataset:
    ids = [f"{k:05}" for k in range(n)]
    return Dataset(
        name="faces",
        info=DatasetInfo(title="Faces", summary="Made up.", references=()),
        instances=pl.DataFrame(
            {"instance_id": ids, "image_id": ids, "subject_id": [str(k // 2) for k in range(n)]}
        ),
        attributes=pl.DataFrame({
            "unit_kind": "instance", "unit_id": ids, "attribute": "pronoun",
            "value": ["she" if k % 4 < 2 else "he" for k in range(n)], "number": None,
        }, schema_overrides={"number": pl.Float64}),
    )  # fmt: skip


def vectors(n: int) -> pl.DataFrame:
    drawn = np.random.default_rng(0).normal(size=(n, 4))
    return pl.DataFrame(
        {"model": "m", "instance_id": [f"{k:05}" for k in range(n)], "embedding": drawn.tolist()}
    )


def test_more_pairs_than_the_limit_are_refused():
    with pytest.raises(SpecError, match=r"(?s)40 embeddings make 780 pairs.*--max-pairs 780"):
        score("face_verification", people(N), vectors(N), far=0.1, max_pairs=779)
    found = score("face_verification", people(N), vectors(N), far=0.1, max_pairs=780)
    assert found.evidence["pairs"]["other_id"].list.len().sum() == 780


def test_hard_pairs_alone_count():
    # 20 people of each pronoun: 2 × 20 × 19 / 2; all genuine pairs are among them.
    hard = {"impostors": "hard", "same": "pronoun", "near": None, "far": 0.1}
    with pytest.raises(SpecError, match="40 embeddings make 380 pairs"):
        score("face_verification", people(N), vectors(N), **hard, max_pairs=379)
    found = score("face_verification", people(N), vectors(N), **hard, max_pairs=380)
    assert found.evidence["pairs"]["other_id"].list.len().sum() == 380


def test_nothing_is_made_of_what_is_refused():
    data, embedded = people(16_000), vectors(16_000)
    tracemalloc.start()
    with pytest.raises(SpecError, match="127,992,000 pairs"):
        score("face_verification", data, embedded)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6  # the pairs would take 3.6 GB
