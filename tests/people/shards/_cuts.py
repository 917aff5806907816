"""A table of people with everything that is awkward to count, and ways to cut it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["cut", "people"]


def people(n: int, seed: int = 0) -> pl.DataFrame:
    """Draw people: three classes, missing answers, several tones, subjects of many photos."""
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(0, 3, n), rng.integers(0, 4, n)
    right = rng.random(n) < 0.8 + 0.03 * group
    answer = np.where(right, truth, rng.integers(0, 3, n))
    words = np.array(["no", "yes", "maybe"])
    frame = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "truth": words[truth],
            "answer": words[answer],
            "race": np.array(["A", "B", "C", "unknown"])[group],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "age": rng.integers(1, 90, n),
            "subject": [f"s{i}" for i in rng.integers(0, max(n // 3, 1), n)],
            "tone": [["1", "2"][:k] or None for k in rng.integers(0, 3, n)],
            "score": rng.random(n).round(3),
        }
    )
    answered, known = pl.Series(rng.random(n) > 0.02), pl.Series(rng.random(n) > 0.05)
    return frame.with_columns(
        answer=pl.when(answered).then("answer"), subject=pl.when(known).then("subject")
    )


def cut(frame: pl.DataFrame, folder: Path, sizes: list[int]) -> Path:
    """Write a frame in shards of these sizes."""
    folder.mkdir()
    ends = np.cumsum(sizes).tolist()
    assert ends[-1] == frame.height
    for k, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
        frame[start:stop].write_parquet(folder / f"{k:03d}.parquet")
    return folder
