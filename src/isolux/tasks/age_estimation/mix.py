"""A stated mix of ages: the cells that count, and how much, whatever a group is made of.

A group of young people has smaller errors than one of old people, by any model. The mean of the
cells' mean errors, with weights that are stated, does not depend on how many of each age a group
has. NIST's table is the mean over two sexes and 13 single years, 18 to 30.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray, SumStatistic
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

_PART = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?(?:=\s*(\d+(?:\.\d*)?|\.\d+)\s*)?")
_MOST = 200
_LEAST_OF_CELL = 5
_MANY = 0.05
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Mix:
    """Ages from ``low[b]`` to ``high[b]`` (whole years, both within) weigh ``weight[b]``.

    Weights sum to 1 and are divided evenly over the values of ``sex``, where there is one.
    """

    low: FloatArray
    high: FloatArray
    weight: FloatArray
    sex: str | None
    words: str


def read_mix(texts: Sequence[str], sex: str | None) -> Mix | None:
    """Read ``"18-30"`` (each year alike), or ``"0-17=20", "18-64=60"`` with weights; None: none.

    Examples
    --------
    >>> read_mix(["18-20"], None).low.tolist(), read_mix(["18-20"], None).high.tolist()
    ([18.0, 19.0, 20.0], [18.0, 19.0, 20.0])
    >>> read_mix(["0-17=1", "18-64=3"], None).weight.tolist()
    [0.25, 0.75]
    """
    given = [part for text in texts for part in text.split(",") if part.strip()]
    if not given:
        if sex is not None:
            raise _refused("no ages beside sex", "age_mix, such as 18-30, beside sex", repr(sex))
        return None
    found = [_PART.fullmatch(part) for part in given]
    if not all(found):
        wrong = next(p for p, match in zip(given, found, strict=True) if not match)
        raise _refused("it cannot be read", "LOW-HIGH or LOW-HIGH=WEIGHT, such as 18-30", wrong)
    parts = [(int(m[1]), int(m[2] or m[1]), m[3]) for m in found if m]
    weighed = [w is not None for *_, w in parts]
    if any(weighed) and not all(weighed):
        raise _refused("some ages have a weight", "one for each, or for none", ", ".join(given))
    bins = [(a, b, float(w or 1.0)) for a, b, w in parts]
    if len(parts) == 1 and not weighed[0]:
        bins = [(year, year, 1.0) for year in range(parts[0][0], parts[0][1] + 1)]
    bins.sort()
    turned = any(a > b for a, b, _ in bins)
    shared = any(x[1] >= y[0] for x, y in pairwise(bins))
    if not bins or turned or shared or len(bins) > _MOST or any(w <= 0 for *_, w in bins):
        raise _refused(
            "ages overlap, or run backwards, or weigh nothing", "each age once", ", ".join(given)
        )
    low, high, weight = np.array(bins, dtype=np.float64).T
    years = "as stated"
    if not any(weighed):
        years = "each year of age alike" if len(parts) == 1 else "each of these alike"
    words = f"at ages {', '.join(p.strip() for p in given)}, {years}"
    return Mix(low, high, weight / weight.sum(), sex, words + (f", by {sex}" if sex else ""))


def _refused(problem: str, expected: str, found: str) -> SpecError:
    return SpecError(
        f"the age mix cannot be used: {problem}", expected=expected, found=found, where="age_mix"
    )


def with_cells(
    errors: pl.DataFrame, mix: Mix, dataset: Dataset, unknown_values: Sequence[str] = ()
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Put people into the cells of a mix."""
    year = errors["truth"].floor().to_numpy()  # 17.9 is 17 years of age
    place = np.searchsorted(mix.low, year, side="right") - 1
    of_age = (place >= 0) & ~np.isnan(year) & (year <= mix.high[np.maximum(place, 0)])
    kinds, of_kind = _sexes(errors, mix, dataset, unknown_values)
    inside = of_age & (of_kind >= 0)
    cell = np.where(inside, place * len(kinds) + of_kind, -1)
    cells = len(mix.low) * len(kinds)
    known = inside & errors["reason"].is_null().to_numpy()
    models = errors["model"].rank("dense").to_numpy().astype(np.int64) - 1
    n_models = int(models.max(initial=0)) + 1
    counts = np.bincount(models[known] * cells + cell[known], minlength=n_models * cells)
    counts = counts.reshape(n_models, cells).min(axis=0)
    there = np.bincount(cell[inside], minlength=cells)
    if len(errors) and there.min() == 0:
        b, k = divmod(int(np.argmin(there)), len(kinds))
        low, high = mix.low[b], mix.high[b]
        years = f"{low:g} years" if low == high else f"{low:g} to {high:g} years"
        raise _refused(
            "one of its ages has nobody",
            "people with a known age in each part of the mix",
            f"nobody of {years}" + (f" with {mix.sex}={kinds[k]}" if mix.sex else ""),
        )
    notes = [*_on_cells(counts, len(errors)), *_spelt_twice(kinds, mix)]
    notes += _on_unknown(errors["unit_id"], of_age, inside, mix)
    weight = np.repeat(mix.weight / len(kinds), len(kinds))[np.maximum(cell, 0)]
    is_inside = pl.Series(inside)
    held = errors.with_columns(
        cell=pl.when(is_inside).then(pl.Series(cell, dtype=pl.Int64)),
        cell_weight=pl.when(is_inside).then(pl.Series(weight)),
    )
    return held, tuple(notes)


def _on_cells(counts: IntArray, n: int) -> list[str]:
    """Say how large cells are; in a group those are smaller still."""
    least = int(counts.min()) if n else 0
    text = (
        f"The mean absolute error at a stated age mix is over {len(counts)} cells, of which the"
        f" smallest holds {least:,} people. A group without anyone in one of them has no value."
    )
    narrow = (
        f"Of a group with fewer than {_LEAST_OF_CELL} people in a cell the interval is too narrow"
    )
    if not n or least >= _LEAST_OF_CELL:
        return [f"{text} {narrow}."]
    return [
        text,
        Caution(
            f"{narrow}, and the smallest cell of the age mix holds {least:,} of all"
            " people: state fewer, wider ages."
        ),
    ]


def _on_unknown(units: pl.Series, of_age: BoolArray, inside: BoolArray, mix: Mix) -> list[str]:
    """Count the people of the mix's ages who are of no known sex; a caution where they are many."""
    asked, held = (units.filter(pl.Series(part)).n_unique() for part in (of_age, inside))
    text = (
        f"{asked - held:,} of {asked:,} people of the mix's ages have no known {mix.sex!r}, or"
        " several values, and do not count at the mix."
    )
    told = Caution(text) if asked - held > _MANY * asked else text
    return [told] if asked > held else []


def _spelt_twice(kinds: Sequence[str], mix: Mix) -> list[Caution]:
    """Caution where two values differ in their spelling alone: each would count as much."""
    seen: dict[str, list[str]] = {}
    for kind in kinds:
        seen.setdefault(kind.strip().casefold(), []).append(kind)
    twins = "; ".join(" and ".join(map(repr, one)) for one in seen.values() if len(one) > 1)
    text = (
        f"Values of {mix.sex!r} differ in their spelling alone ({twins}): each of them counts alike"
        " within an age, as if they were other people."
    )
    return [Caution(text)] if twins else []


def _sexes(
    errors: pl.DataFrame, mix: Mix, dataset: Dataset, unknown_values: Sequence[str]
) -> tuple[list[str], IntArray]:
    if mix.sex is None:
        return [""], np.zeros(errors.height, dtype=np.int64)
    dataset.values_of(mix.sex)
    rows = dataset.instance_attributes().filter(pl.col("attribute") == mix.sex)
    unknown = [word.strip().lower() for word in unknown_values]
    word = pl.col("value").str.strip_chars().str.to_lowercase()
    known = (
        rows.drop_nulls("value").filter(~word.is_in(unknown)).select("unit_id", "value").unique()
    )
    one = known.filter(~pl.col("unit_id").is_duplicated())
    kinds = one["value"].unique().sort().to_list()
    code = {name: k for k, name in enumerate(kinds)}
    of_unit = one.select(
        "unit_id", kind=pl.col("value").replace_strict(code, return_dtype=pl.Int64)
    )
    joined = errors.select("unit_id").join(of_unit, on="unit_id", how="left", maintain_order="left")
    return kinds, joined["kind"].fill_null(-1).to_numpy().astype(np.int64)


def standardised_error() -> SumStatistic:
    """Make the mean of the cells' mean absolute errors, weighted as the mix says: 0 or more.

    Examples
    --------
    Two cells count alike: one person 2 years off, and three people 4, 4 and 10: (2 + 6) / 2.

    >>> evidence = pl.DataFrame({"cell": [0, 1, 1, 1], "cell_weight": 0.5,
    ...                          "absolute_error": [2.0, 4.0, 4.0, 10.0]})
    >>> float(standardised_error()(evidence, np.ones(4)))
    4.0
    """

    def columns(evidence: pl.DataFrame) -> FloatArray:
        cell = evidence["cell"].fill_null(-1).to_numpy()
        error = evidence["absolute_error"].to_numpy()
        weight = evidence["cell_weight"].to_numpy()
        k = int(cell.max(initial=-1)) + 1
        known = np.flatnonzero((cell >= 0) & ~np.isnan(error))
        out = np.zeros((len(cell), 3, k))
        # What a cell weighs is summed with its people, so that it can be told from the sums alone.
        for part, values in enumerate((error, np.ones(len(cell)), weight)):
            out[known, part, cell[known]] = values[known]
        return out.reshape(len(cell), 3 * k)

    def finish(sums: FloatArray) -> FloatArray:
        k = sums.shape[-1] // 3
        total, n, weight = (sums[..., part * k : (part + 1) * k] for part in range(3))
        with np.errstate(divide="ignore", invalid="ignore"):
            value = ((total / n) * (weight / n)).sum(axis=-1)
        return np.asarray(np.where((n > 0).all(axis=-1) & (k > 0), value, np.nan))

    return SumStatistic(columns, finish)
