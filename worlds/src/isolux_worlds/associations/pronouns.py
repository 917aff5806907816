"""People of occupations, and a model that takes some occupations for a gender's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["write_pronouns"]

_GENDERS = ("feminine", "masculine")
_OCCUPATIONS = ("nurse", "plumber", "teacher", "lawyer")
_LEAN = np.array([-1.0, 1.0, 0.0, 0.0])
"""Towards which gender each occupation is taken: nurses feminine, plumbers masculine."""
_PRONOUNS = np.array(["her", "his"])


def write_pronouns(
    folder: str | Path, *, association: float, people: int = 1600, seed: int = 0
) -> dict[str, Path]:
    """Write people with occupation and gender, half beside another, and a model's pronouns."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    gender = draw.integers(0, 2, people)
    work, beside = np.arange(people) % len(_OCCUPATIONS), draw.integers(0, 3, people)
    against = _LEAN[work] * np.where(gender == 0, 1.0, -1.0) > 0
    wrong = draw.random(people) < 0.1 + association * against
    ids = [f"person {i}" for i in range(people)]
    others = np.array(["nobody", *_GENDERS])
    files = {name: root / f"{name}.csv" for name in ("people", "answers")}
    pl.DataFrame(
        {
            "id": ids,
            "gender": np.array(_GENDERS)[gender],
            "occupation": np.array(_OCCUPATIONS)[work],
            "other": others[beside],
        }
    ).write_csv(files["people"])
    said = _PRONOUNS[np.where(wrong, 1 - gender, gender)]
    texts = [f"the {_OCCUPATIONS[w]} and {p} desk" for w, p in zip(work, said, strict=True)]
    pl.DataFrame({"id": ids, "label": texts}).write_csv(files["answers"])
    return files
