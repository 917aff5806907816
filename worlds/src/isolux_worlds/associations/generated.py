"""Generated pictures by prompt, a classifier that errs, and what it was counted to err."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["write_generated"]

_VALUES = ("feminine", "masculine")
_PROMPTS = ("a doctor", "a nurse", "a person")
_RIGHT = (0.8, 0.95)
"""How often the classifier is right of either: it takes feminine pictures for masculine ones."""


def write_generated(
    folder: str | Path,
    *,
    association: float,
    pictures: int = 400,
    counted: int = 300,
    seed: int = 0,
) -> dict[str, Path]:
    """Write pictures of three prompts, a classifier's judgement of each, and its matrix."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    shares = np.array([0.5 - association, 0.5 + association, 0.5])
    prompt = np.repeat(np.arange(len(_PROMPTS)), pictures)
    true = (draw.random(len(prompt)) >= shares[prompt]).astype(int)
    right = draw.random(len(prompt)) < np.array(_RIGHT)[true]
    ids = [f"picture {i}" for i in range(len(prompt))]
    files = {name: root / f"{name}.csv" for name in ("pictures", "judged", "matrix")}
    asked = np.array(_PROMPTS)[prompt]
    pl.DataFrame({"id": ids, "prompt": asked}).write_csv(files["pictures"])
    said = np.array(_VALUES)[np.where(right, true, 1 - true)]
    pl.DataFrame({"id": ids, "label": said}).write_csv(files["judged"])
    hits = [int(draw.binomial(counted, chance)) for chance in _RIGHT]
    rows = [
        (_VALUES[t], _VALUES[s], hits[t] if t == s else counted - hits[t])
        for t in (0, 1)
        for s in (0, 1)
    ]
    pl.DataFrame(rows, schema=["true", "labelled", "count"], orient="row").write_csv(
        files["matrix"]
    )
    return files
