"""Scenes drawn twice, with only one attribute changed, and a model's score of each picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["write_changed"]

_VALUES = ("feminine", "masculine")
_OCCUPATIONS = ("nurse", "plumber", "teacher")
_LEAN = np.array([-1.0, 1.0, 0.0])


def write_changed(
    folder: str | Path, *, association: float, scenes: int = 300, seed: int = 0
) -> dict[str, Path]:
    """Write pairs of pictures that differ in perceived gender alone, and a score of each."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    scene, gender = np.repeat(np.arange(scenes), 2), np.tile([0, 1], scenes)
    work = scene % len(_OCCUPATIONS)
    of_scene = np.repeat(draw.normal(size=scenes), 2)
    shift = association * _LEAN[work] * (gender - 0.5)
    score = of_scene + shift + 0.3 * draw.normal(size=2 * scenes)
    ids = [f"picture {i}" for i in range(2 * scenes)]
    files = {name: root / f"{name}.csv" for name in ("pictures", "scores")}
    pl.DataFrame(
        {
            "id": ids,
            "scene": [f"scene {s}" for s in scene],
            "gender": np.array(_VALUES)[gender],
            "occupation": np.array(_OCCUPATIONS)[work],
        }
    ).write_csv(files["pictures"])
    pl.DataFrame({"id": ids, "score": score}).write_csv(files["scores"])
    return files
