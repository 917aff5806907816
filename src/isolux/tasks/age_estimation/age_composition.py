"""A stated composition of ages: direct standardisation of the mean absolute error.

A group of young people has smaller errors than one of old people, by any model. The mean of the
cells' mean errors, with stated weights, does not depend on how many people of each age a group
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

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray, SumStatistic

# One year or a range, with an optional weight: "18", "18-30", "0-17=20".
_AGE_RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?(?:=\s*(\d+(?:\.\d*)?|\.\d+)\s*)?")
# Bins of age at most.
_MAX_CELLS = 200
# With fewer people in a cell, the interval of a group is too narrow.
_MIN_CELL_SIZE = 5
# From this share of people of unknown sex, the note on them is a caution.
_MAX_UNKNOWN_SHARE = 0.05
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AgeComposition:
    """Ages from ``low[b]`` to ``high[b]`` (whole years, inclusive) have the weight ``weight[b]``.

    Weights sum to 1 and are divided equally over the values of ``sex``, where that is set.
    """

    low: FloatArray
    high: FloatArray
    weight: FloatArray
    sex: str | None
    words: str


def read_age_composition(texts: Sequence[str], sex: str | None) -> AgeComposition | None:
    """Read ``"18-30"`` (equal weights), or ``"0-17=20", "18-64=60"`` with weights; None: none set.

    Examples
    --------
    >>> (
    ...     read_age_composition(["18-20"], None).low.tolist(),
    ...     read_age_composition(["18-20"], None).high.tolist(),
    ... )
    ([18.0, 19.0, 20.0], [18.0, 19.0, 20.0])
    >>> read_age_composition(["0-17=1", "18-64=3"], None).weight.tolist()
    [0.25, 0.75]
    """
    entries = [entry for text in texts for entry in text.split(",") if entry.strip()]
    if not entries:
        if sex is not None:
            raise _build_error(
                "no ages beside sex", "age_mix, such as 18-30, beside sex", repr(sex)
            )
        return None
    matches = [_AGE_RANGE.fullmatch(entry) for entry in entries]
    if not all(matches):
        invalid_entry = next(p for p, match in zip(entries, matches, strict=True) if not match)
        raise _build_error(
            "it cannot be read", "LOW-HIGH or LOW-HIGH=WEIGHT, such as 18-30", invalid_entry
        )
    ranges = [(int(m[1]), int(m[2] or m[1]), m[3]) for m in matches if m]
    has_weight = [w is not None for *_, w in ranges]
    # A default weight among stated ones (20, 60, and 1) is never what was meant.
    if any(has_weight) and not all(has_weight):
        raise _build_error(
            "some ages have a weight", "one for each, or for none", ", ".join(entries)
        )
    bins = [(a, b, float(w or 1.0)) for a, b, w in ranges]
    if len(ranges) == 1 and not has_weight[0]:
        # A single range stands for its single years, as in NIST's table of ages 18 to 30.
        bins = [(year, year, 1.0) for year in range(ranges[0][0], ranges[0][1] + 1)]
    bins.sort()
    is_reversed = any(a > b for a, b, _ in bins)
    # Bins are sorted, so that only neighbours can overlap.
    is_overlapping = any(x[1] >= y[0] for x, y in pairwise(bins))
    if (
        not bins
        or is_reversed
        or is_overlapping
        or len(bins) > _MAX_CELLS
        or any(w <= 0 for *_, w in bins)
    ):
        raise _build_error(
            "ages overlap, or run backwards, or weigh nothing", "each age once", ", ".join(entries)
        )
    low, high, weight = np.array(bins, dtype=np.float64).T
    years = "as stated"
    if not any(has_weight):
        years = "each year of age alike" if len(ranges) == 1 else "each of these alike"
    words = f"at ages {', '.join(p.strip() for p in entries)}, {years}"
    return AgeComposition(
        low, high, weight / weight.sum(), sex, words + (f", by {sex}" if sex else "")
    )


def _build_error(problem: str, expected: str, observed: str) -> SpecError:
    return SpecError(
        f"the age mix cannot be used: {problem}", expected=expected, found=observed, where="age_mix"
    )


def assign_cells(
    errors: pl.DataFrame,
    composition: AgeComposition,
    dataset: Dataset,
    unknown_values: Sequence[str] = (),
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Assign people to the cells of a composition, with the cell's weight; and notes."""
    year = errors["truth"].floor().to_numpy()  # 17.9 is 17 years of age
    # The last bin that begins at or below the age; whether it also ends above it is checked next.
    age_index = np.searchsorted(composition.low, year, side="right") - 1
    of_age = (
        (age_index >= 0) & ~np.isnan(year) & (year <= composition.high[np.maximum(age_index, 0)])
    )
    sexes, sex_index = _read_sex(errors, composition, dataset, unknown_values)
    is_in_cell = of_age & (sex_index >= 0)
    # Cells are numbered by age bin, then by sex.
    cell = np.where(is_in_cell, age_index * len(sexes) + sex_index, -1)
    n_cells = len(composition.low) * len(sexes)
    is_valid = is_in_cell & errors["reason"].is_null().to_numpy()
    models = errors["model"].rank("dense").to_numpy().astype(np.int64) - 1
    n_models = int(models.max(initial=0)) + 1
    counts = np.bincount(models[is_valid] * n_cells + cell[is_valid], minlength=n_models * n_cells)
    # The smallest count of any model, for each cell.
    counts = counts.reshape(n_models, n_cells).min(axis=0)
    n_in_cell = np.bincount(cell[is_in_cell], minlength=n_cells)
    # No group could have a value at this composition.
    if len(errors) and n_in_cell.min() == 0:
        b, k = divmod(int(np.argmin(n_in_cell)), len(sexes))
        low, high = composition.low[b], composition.high[b]
        years = f"{low:g} years" if low == high else f"{low:g} to {high:g} years"
        raise _build_error(
            "one of its ages has nobody",
            "people with a known age in each part of the mix",
            f"nobody of {years}"
            + (f" with {composition.sex}={sexes[k]}" if composition.sex else ""),
        )
    notes = [*_describe_cells(counts, len(errors)), *_caution_on_similar_values(sexes, composition)]
    notes += _count_unknown_sex(errors["unit_id"], of_age, is_in_cell, composition)
    # Each value of the attribute gets an equal part of its age's weight, as in NIST's mean over
    # sexes.
    weight = np.repeat(composition.weight / len(sexes), len(sexes))[np.maximum(cell, 0)]
    is_inside = pl.Series(is_in_cell)
    rows = errors.with_columns(
        cell=pl.when(is_inside).then(pl.Series(cell, dtype=pl.Int64)),
        cell_weight=pl.when(is_inside).then(pl.Series(weight)),
    )
    return rows, tuple(notes)


def _describe_cells(counts: IntArray, n_rows: int) -> list[str]:
    """Describe the size of cells; within a group they are smaller still."""
    smallest = int(counts.min()) if n_rows else 0
    text = (
        f"The mean absolute error at a stated age mix is over {len(counts)} cells, of which the"
        f" smallest holds {smallest:,} people. A group without anyone in one of them has no value."
    )
    narrow_text = (
        f"Of a group with fewer than {_MIN_CELL_SIZE} people in a cell the interval is too narrow"
    )
    if not n_rows or smallest >= _MIN_CELL_SIZE:
        return [f"{text} {narrow_text}."]
    return [
        text,
        Caution(
            f"{narrow_text}, and the smallest cell of the age mix holds {smallest:,} of all"
            " people: state fewer, wider ages."
        ),
    ]


def _count_unknown_sex(
    units: pl.Series, of_age: BoolArray, is_in_cell: BoolArray, composition: AgeComposition
) -> list[str]:
    """Count people of the composition's ages without a known sex; a caution where many."""
    n_people, n_known = (units.filter(pl.Series(mask)).n_unique() for mask in (of_age, is_in_cell))
    text = (
        f"{n_people - n_known:,} of {n_people:,} people of the mix's ages have no known"
        f" {composition.sex!r}, or several values, and do not count at the mix."
    )
    note = Caution(text) if n_people - n_known > _MAX_UNKNOWN_SHARE * n_people else text
    return [note] if n_people > n_known else []


def _caution_on_similar_values(values: Sequence[str], composition: AgeComposition) -> list[Caution]:
    """Caution where two values differ only in spelling: each would get the same weight."""
    values_by_spelling: dict[str, list[str]] = {}
    for label in values:
        values_by_spelling.setdefault(label.strip().casefold(), []).append(label)
    similar = "; ".join(
        " and ".join(map(repr, spellings))
        for spellings in values_by_spelling.values()
        if len(spellings) > 1
    )
    text = (
        f"Values of {composition.sex!r} differ in their spelling alone ({similar}): each of them"
        " counts alike within an age, as if they were other people."
    )
    return [Caution(text)] if similar else []


def _read_sex(
    errors: pl.DataFrame,
    composition: AgeComposition,
    dataset: Dataset,
    unknown_values: Sequence[str],
) -> tuple[list[str], IntArray]:
    """Read each row's value of the composition's attribute: names, and codes [n], −1 unknown."""
    if composition.sex is None:
        return [""], np.zeros(errors.height, dtype=np.int64)
    dataset.values_of(composition.sex)
    rows = dataset.instance_attributes().filter(attribute=composition.sex)
    unknown = [word.strip().lower() for word in unknown_values]
    word = pl.col("value").str.strip_chars().str.to_lowercase()
    values = (
        rows.drop_nulls("value").filter(~word.is_in(unknown)).select("unit_id", "value").unique()
    )
    # Two values of one person contradict each other; neither is used.
    unique_values = values.filter(~pl.col("unit_id").is_duplicated())
    sexes = unique_values["value"].unique().sort().to_list()
    code_by_sex = {name: k for k, name in enumerate(sexes)}
    of_unit = unique_values.select(
        "unit_id", kind=pl.col("value").replace_strict(code_by_sex, return_dtype=pl.Int64)
    )
    codes = errors.select("unit_id").join(of_unit, on="unit_id", how="left", maintain_order="left")
    return sexes, codes["kind"].fill_null(-1).to_numpy().astype(np.int64)


def standardised_error() -> SumStatistic:
    """Build the weighted mean of the cells' mean absolute errors: 0 or more.

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
        n_cells = int(cell.max(initial=-1)) + 1
        valid_rows = np.flatnonzero((cell >= 0) & ~np.isnan(error))
        out = np.zeros((len(cell), 3, n_cells))
        # A cell's weight is summed over its people too: weight sum / n gives it back from sums.
        for component, values in enumerate((error, np.ones(len(cell)), weight)):
            out[valid_rows, component, cell[valid_rows]] = values[valid_rows]
        return out.reshape(len(cell), 3 * n_cells)

    def finish(sums: FloatArray) -> FloatArray:
        n_cells = sums.shape[-1] // 3
        total, n, weight = (
            sums[..., component * n_cells : (component + 1) * n_cells] for component in range(3)
        )
        # Cells without people divide by 0; the result is replaced below.
        with np.errstate(divide="ignore", invalid="ignore"):
            weighted_error = ((total / n) * (weight / n)).sum(axis=-1)
        # Every cell must occur: leaving one out would be another composition.
        return np.asarray(np.where((n > 0).all(axis=-1) & (n_cells > 0), weighted_error, np.nan))

    return SumStatistic(columns, finish)
