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
    """Write people with occupation and gender, half beside another, and a model's pronouns.

    Parameters
    ----------
    folder : str or Path
    association : float
        Of people of the other gender than their occupation is taken for, the share more who get the
        wrong pronoun; at most .8. 0: a tenth of everyone does.
    people : int
    seed : int

    Returns
    -------
    dict of str to Path
        ``people`` (id, gender, occupation, other: nobody else's, feminine or masculine) and
        ``answers`` (id, label: a caption with a pronoun).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_pronouns(folder, association=0.0, people=8)
    ...     pl.read_csv(files["people"]).columns
    ['id', 'gender', 'occupation', 'other']
    """
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
