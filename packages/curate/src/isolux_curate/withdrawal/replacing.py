"""Whoever comes closest in the place of a person who withdrew, so that a sample keeps its make-up.

FHIBE: "If possible, the withdrawn image will be replaced with one that most closely matches key
attributes, such as pronoun, age group and regional ancestry. To the extent possible, we will also
consider other features that could impact the complexity of the image for relevant tasks when
selecting the closest match." (Sony AI 2025, Methods, "Consent revocation"). The order is that of
the sentence: a match in pronoun counts more than any in what follows. Several people are replaced
at once by the assignment that is best together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.atomic import write_text
from isolux.io.cells import as_text
from isolux.vocabulary.errors import SpecError, TableError
from isolux_curate.id_columns import kinds_of_column
from isolux_curate.user_tables import read_text, refuse_missing
from isolux_curate.withdrawal.rewriting.tables import theirs
from isolux_curate.withdrawal.terms import Terms

KEYS = ("pronoun", "age_group", "ancestry")
"""FHIBE's attributes, the most important first."""
_STEPS = (1000, 100, 10)
"""Into which a distance from 0 to 1 is divided: as many as the sum of all pairs holds exactly."""
_EXACT = 2.0**52


@dataclass(frozen=True, slots=True)
class Replacing:
    """Rows that take places in a sample.

    Parameters
    ----------
    sample : str
        The file.
    rows : list of list
        Cells, in the order of the sample's columns.
    told : list of mapping
        How far each is from the row it replaces, key by key.
    """

    sample: str
    rows: Sequence[Sequence[str | None]]
    told: Sequence[Mapping[str, Any]]


def closest(
    gone: pl.DataFrame,
    pool: pl.DataFrame,
    *,
    keys: Sequence[str] = KEYS,
    complexity: Sequence[str] = (),
) -> pl.DataFrame:
    """Choose from a pool, for each row that withdrew, the closest that no other row takes.

    Examples
    --------
    >>> gone = pl.DataFrame({"pronoun": ["she"], "age_group": ["30-39"], "ancestry": ["Africa"]})
    >>> pool = pl.DataFrame({"pronoun": ["he", "she", "she"],
    ...                      "age_group": ["30-39", "18-29", "30-39"],
    ...                      "ancestry": ["Africa", "Africa", "Asia"]})
    >>> closest(gone, pool)["pool"].to_list()
    [2]
    """
    from scipy.optimize import linear_sum_assignment

    for frame, where in ((gone, "the sample"), (pool, "the pool")):
        refuse_missing(frame, (*keys, *complexity), where)
    apart = [_sets_apart(gone[key], pool[key]) for key in keys]
    hard = _numbers_apart(gone, pool, complexity)
    if not gone.height or not pool.height:
        rows = cols = np.empty(0, np.intp)
    else:
        rows, cols = linear_sum_assignment(_cost(apart, hard, min(gone.height, pool.height)))
    return pl.DataFrame(
        {
            "gone": rows,
            "pool": cols,
            **{key: one[rows, cols] for key, one in zip(keys, apart, strict=True)},
            "complexity": hard[rows, cols] if complexity else [None] * len(rows),
        },
        schema_overrides={"complexity": pl.Float64},
    )


def rows_for(
    sample: Path, pool: Path, terms: Terms, *, keys: Sequence[str], complexity: Sequence[str]
) -> Replacing:
    """Choose rows of a pool for the rows of a sample that withdraw."""
    if sample.suffix.lower() != ".csv":
        raise SpecError("a sample is a CSV file", expected="--sample FILE.csv", found=sample.name)
    held = read_text(sample)
    others = read_text(pool, *held.columns)
    gone = theirs(held, terms)
    ids = [c for c in held.columns if (kinds_of_column(c) or ((), False))[1]] or held.columns[:1]
    free = others.filter(~theirs(others, terms)).join(
        held.select(ids), on=ids, how="anti", nulls_equal=True
    )
    pairs = closest(held.filter(gone), free, keys=keys, complexity=complexity)
    rows = free[pairs["pool"].to_list()].select(held.columns)
    told = pairs.drop("gone", "pool").to_dicts()
    return Replacing(str(sample), [list(row) for row in rows.iter_rows()], told)


def put_in(one: Replacing) -> None:
    """Add the rows at a sample's end, each once however often this is called."""
    sample = Path(one.sample)
    held = set(read_text(sample).iter_rows())
    new = [row for row in one.rows if tuple(row) not in held]
    if new:
        text = sample.read_text(encoding="utf-8-sig")
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(new)
        write_text(sample, text + ("" if text.endswith("\n") else "\n") + out.getvalue())


def _cost(
    apart: Sequence[npt.NDArray[np.float64]], hard: npt.NDArray[np.float64], pairs: int
) -> npt.NDArray[np.float64]:
    """Write distances as digits of one number: no sum of later ones reaches one step of an earlier.

    Distances are ranked, so that the digits stay few and the sum of all pairs stays exact.
    """
    for steps in _STEPS:
        cost, scale = np.zeros(hard.shape), 1.0
        for one in (hard / (hard.max() or 1.0), *reversed(apart)):
            values, ranks = np.unique(np.round(one * steps), return_inverse=True)
            if len(values) > 1:
                ranked = ranks.reshape(one.shape).astype(float)
                cost += ranked * scale
                scale *= float(ranked.max()) * pairs + 1.0
        if scale < _EXACT:
            break
    return cost


def _sets_apart(one: pl.Series, other: pl.Series) -> npt.NDArray[np.float64]:
    a, b = _sets(one), _sets(other)
    found = np.ones((len(a), len(b)))
    known = {}
    for i, left in enumerate(a):
        for j, right in enumerate(b):
            pair = (left, right)
            if pair not in known:
                whole = left | right
                known[pair] = 1.0 - len(left & right) / len(whole) if whole else 1.0
            found[i, j] = known[pair]
    return found


def _sets(cells: pl.Series) -> list[frozenset[str]]:
    if isinstance(cells.dtype, pl.List):
        return [frozenset(map(str, one or ())) for one in cells.to_list()]
    return [
        frozenset(part.strip() for part in (one or "").split(";") if part.strip())
        for one in as_text(cells).to_list()
    ]


def _numbers_apart(
    gone: pl.DataFrame, pool: pl.DataFrame, names: Sequence[str]
) -> npt.NDArray[np.float64]:
    total = np.zeros((gone.height, pool.height))
    for name in names:
        a, b = _numbers(gone[name]), _numbers(pool[name])
        spread = float(np.concatenate([a, b]).std()) or 1.0
        total += np.abs(a[:, None] - b[None, :]) / spread
    return total / max(len(names), 1)


def _numbers(cells: pl.Series) -> npt.NDArray[np.float64]:
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() > cells.null_count() or numbers.is_null().any():
        raise TableError(
            f"a cell of {cells.name!r} is not a number",
            expected="a number in each row",
            found=repr(cells.filter(numbers.is_null())[0]),
        )
    return numbers.to_numpy()
