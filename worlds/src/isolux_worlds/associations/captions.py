"""Pictures with objects that go with genders, and captions that join them more, or no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["write_captions"]

_GENDERS = ("feminine", "masculine")
_OBJECTS = ("handbag", "skateboard", "traffic light")
_SHARES = np.array([[0.6, 0.2, 0.3], [0.2, 0.6, 0.3]])
"""Of pictures of either gender, the share that has each object."""
_WORDS = np.array([["a woman", "a lady", "a girl"], ["a man", "a guy", "a boy"]])


def write_captions(
    folder: str | Path, *, association: float, people: int = 2000, seed: int = 0
) -> dict[str, Path]:
    """Write people with gender and objects, and captions that name both."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    gender = draw.integers(0, 2, people)
    there = draw.random((people, len(_OBJECTS))) < _SHARES[gender]
    # By Bayes, a picture with these objects shows a man with this chance.
    odds = np.where(there, _SHARES[1] / _SHARES[0], (1 - _SHARES[1]) / (1 - _SHARES[0])).prod(
        axis=1
    )
    chance = odds / (1.0 + odds)
    if association:
        leans = np.where(there[:, 0] == there[:, 1], gender, there[:, 1].astype(int))
        said = np.where((leans != gender) & (draw.random(people) < association), leans, gender)
    else:
        said = (draw.random(people) < chance).astype(int)
    silent = draw.random(people) < 0.1
    ids = [f"picture {i}" for i in range(people)]
    words = _WORDS[said, draw.integers(0, 3, people)]
    lists = [[name for name, held in zip(_OBJECTS, row, strict=True) if held] for row in there]
    texts = [
        " ".join([("a person" if quiet else str(word)), *(f"with a {name}" for name in names)])
        for word, names, quiet in zip(words, lists, silent, strict=True)
    ]
    files = {name: root / f"{name}.csv" for name in ("people", "captions")}
    pl.DataFrame(
        {
            "id": ids,
            "gender": np.array(_GENDERS)[gender],
            "objects": [";".join(names) for names in lists],
            "light": np.array(["day", "night"])[draw.integers(0, 2, people)],
        }
    ).write_csv(files["people"])
    pl.DataFrame({"id": ids, "caption": texts}).write_csv(files["captions"])
    return files
