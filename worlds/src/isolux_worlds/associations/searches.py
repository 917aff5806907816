"""A search by text whose scores lean towards one group for one kind of query."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["write_searches"]

_KINDS = ("science", "family")
_GROUPS = ("feminine", "masculine")


def write_searches(
    folder: str | Path,
    *,
    association: float,
    queries: int = 60,
    images: int = 400,
    liking: float = 0.0,
    vectors: bool = False,
    seed: int = 0,
) -> dict[str, Path]:
    """Write prompts, images of known group and a model's scores of every image for every prompt."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    group, kind = draw.integers(0, 2, images), np.arange(queries) % 2
    lean = association * np.where(kind == 0, 1.0, -1.0)[:, None] * (group - 0.5)
    files = {name: root / f"{name}.csv" for name in ("prompts", "images")}
    asked = [f"prompt {i}" for i in range(queries)]
    seen = [f"image {i}" for i in range(images)]
    _table(asked, "kind", _KINDS, kind).write_csv(files["prompts"])
    _table(seen, "gender", _GROUPS, group).write_csv(files["images"])
    noise = draw.normal(size=(queries, images)) + liking * draw.normal(size=images)
    if not vectors:
        files["scores"] = root / "scores.parquet"
        pl.DataFrame(
            {
                "instance_id": np.repeat(asked, images),
                "other_id": np.tile(seen, queries),
                "score": (noise + lean).ravel(),
            }
        ).write_parquet(files["scores"])
        return files
    # One coordinate for each query: a picture's number there is its score.
    sides = {"texts": (asked, np.eye(queries)), "pictures": (seen, (noise + lean).T)}
    for name, (ids, rows) in sides.items():
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        files[name] = root / f"{name}.parquet"
        pl.DataFrame(
            {"instance_id": ids, "model": "net", "embedding": pl.Series((rows / length).tolist())}
        ).write_parquet(files[name])
    return files


def _table(ids: list[str], column: str, names: tuple[str, ...], code: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"id": ids, column: [names[i] for i in code.tolist()]})
