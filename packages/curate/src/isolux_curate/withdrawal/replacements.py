"""Replace a withdrawn person in a sample by the closest match, so that its composition stays.

FHIBE: "If possible, the withdrawn image will be replaced with one that most closely matches key
attributes, such as pronoun, age group and regional ancestry. To the extent possible, we will also
consider other features that could impact the complexity of the image for relevant tasks when
selecting the closest match." (Sony AI 2025, Methods, "Consent revocation"). The order is that of
the sentence: a match in pronoun outweighs all later keys. Several people are replaced at once by an
optimal assignment.
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
from isolux.io.cell_parsing import as_text
from isolux.vocabulary.errors import SpecError, TableError
from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.user_tables import read_table_as_text, refuse_missing_columns
from isolux_curate.withdrawal.rewriting.tables import flag_person_rows
from isolux_curate.withdrawal.terms import IdentifyingTerms

MATCH_KEYS = ("pronoun", "age_group", "ancestry")
"""FHIBE's attributes, the most important first."""
_DISTANCE_STEPS = (1000, 100, 10)
"""Steps of a distance from 0 to 1; the first number that keeps all sums exact is used."""
_MAX_EXACT_INTEGER = 2.0**52


@dataclass(frozen=True, slots=True)
class ReplacementRows:
    """Rows that replace withdrawn rows of a sample; the fields are stored in the plan.

    Parameters
    ----------
    sample : str
        The file.
    rows : list of list
        Cells, in the order of the sample's columns.
    told : list of mapping
        The distance of each row from the replaced one, by key.
    """

    sample: str
    rows: Sequence[Sequence[str | None]]
    told: Sequence[Mapping[str, Any]]


def match_replacements(
    withdrawn_rows: pl.DataFrame,
    pool: pl.DataFrame,
    *,
    keys: Sequence[str] = MATCH_KEYS,
    complexity: Sequence[str] = (),
) -> pl.DataFrame:
    """Match each withdrawn row with a different row of a pool, with the least total distance.

    Examples
    --------
    >>> gone = pl.DataFrame({"pronoun": ["she"], "age_group": ["30-39"], "ancestry": ["Africa"]})
    >>> pool = pl.DataFrame({"pronoun": ["he", "she", "she"],
    ...                      "age_group": ["30-39", "18-29", "30-39"],
    ...                      "ancestry": ["Africa", "Africa", "Asia"]})
    >>> match_replacements(gone, pool)["pool"].to_list()
    [2]
    """
    from scipy.optimize import linear_sum_assignment

    for frame, source in ((withdrawn_rows, "the sample"), (pool, "the pool")):
        refuse_missing_columns(frame, (*keys, *complexity), source)
    distances = [_jaccard_distances(withdrawn_rows[key], pool[key]) for key in keys]
    complexity_distance = _number_distances(withdrawn_rows, pool, complexity)
    if not withdrawn_rows.height or not pool.height:
        rows = columns = np.empty(0, np.intp)
    else:
        rows, columns = linear_sum_assignment(
            _build_cost(distances, complexity_distance, min(withdrawn_rows.height, pool.height))
        )
    return pl.DataFrame(
        {
            "gone": rows,
            "pool": columns,
            **{key: distance[rows, columns] for key, distance in zip(keys, distances, strict=True)},
            "complexity": complexity_distance[rows, columns] if complexity else [None] * len(rows),
        },
        schema_overrides={"complexity": pl.Float64},
    )


def choose_replacements(
    sample: Path,
    pool: Path,
    terms: IdentifyingTerms,
    *,
    keys: Sequence[str],
    complexity: Sequence[str],
) -> ReplacementRows:
    """Choose rows of a pool to replace the withdrawn rows of a sample."""
    if sample.suffix.lower() != ".csv":
        raise SpecError("a sample is a CSV file", expected="--sample FILE.csv", found=sample.name)
    sample_rows = read_table_as_text(sample)
    pool_rows = read_table_as_text(pool, *sample_rows.columns)
    is_withdrawn = flag_person_rows(sample_rows, terms)
    ids = [
        c for c in sample_rows.columns if (parse_id_column_or_none(c) or ((), False))[1]
    ] or sample_rows.columns[:1]
    candidates = pool_rows.filter(~flag_person_rows(pool_rows, terms)).join(
        sample_rows.select(ids), on=ids, how="anti", nulls_equal=True
    )
    pairs = match_replacements(
        sample_rows.filter(is_withdrawn), candidates, keys=keys, complexity=complexity
    )
    rows = candidates[pairs["pool"].to_list()].select(sample_rows.columns)
    match_distances = pairs.drop("gone", "pool").to_dicts()
    return ReplacementRows(str(sample), [list(row) for row in rows.iter_rows()], match_distances)


def append_replacements(replacement: ReplacementRows) -> None:
    """Append the rows to a sample, each once even if repeated."""
    sample = Path(replacement.sample)
    existing_rows = set(read_table_as_text(sample).iter_rows())
    new_rows = [row for row in replacement.rows if tuple(row) not in existing_rows]
    if new_rows:
        text = sample.read_text(encoding="utf-8-sig")
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(new_rows)
        write_text(sample, text + ("" if text.endswith("\n") else "\n") + buffer.getvalue())


def _build_cost(
    distances: Sequence[npt.NDArray[np.float64]],
    complexity_distance: npt.NDArray[np.float64],
    n_pairs: int,
) -> npt.NDArray[np.float64]:
    """Combine distances lexicographically: no sum of later keys reaches one step of an earlier one.

    Distances are replaced by ranks, so that sums over all pairs stay exact in floating point.
    """
    for steps in _DISTANCE_STEPS:
        cost, scale = np.zeros(complexity_distance.shape), 1.0
        for distance in (
            complexity_distance / (complexity_distance.max() or 1.0),
            *reversed(distances),
        ):
            values, ranks = np.unique(np.round(distance * steps), return_inverse=True)
            if len(values) > 1:
                ranked = ranks.reshape(distance.shape).astype(float)
                cost += ranked * scale
                scale *= float(ranked.max()) * n_pairs + 1.0
        if scale < _MAX_EXACT_INTEGER:
            break
    return cost


def _jaccard_distances(cells: pl.Series, other_cells: pl.Series) -> npt.NDArray[np.float64]:
    first_sets, second_sets = _split_cells(cells), _split_cells(other_cells)
    distances = np.ones((len(first_sets), len(second_sets)))
    distance_by_pair = {}
    for i, first_set in enumerate(first_sets):
        for j, second_set in enumerate(second_sets):
            pair = (first_set, second_set)
            if pair not in distance_by_pair:
                union = first_set | second_set
                distance_by_pair[pair] = (
                    1.0 - len(first_set & second_set) / len(union) if union else 1.0
                )
            distances[i, j] = distance_by_pair[pair]
    return distances


def _split_cells(cells: pl.Series) -> list[frozenset[str]]:
    if isinstance(cells.dtype, pl.List):
        return [frozenset(map(str, cell or ())) for cell in cells.to_list()]
    return [
        frozenset(entry.strip() for entry in (cell or "").split(";") if entry.strip())
        for cell in as_text(cells).to_list()
    ]


def _number_distances(
    withdrawn_rows: pl.DataFrame, pool: pl.DataFrame, names: Sequence[str]
) -> npt.NDArray[np.float64]:
    total = np.zeros((withdrawn_rows.height, pool.height))
    for name in names:
        a, b = _parse_numbers(withdrawn_rows[name]), _parse_numbers(pool[name])
        std = float(np.concatenate([a, b]).std()) or 1.0
        total += np.abs(a[:, None] - b[None, :]) / std
    return total / max(len(names), 1)


def _parse_numbers(cells: pl.Series) -> npt.NDArray[np.float64]:
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() > cells.null_count() or numbers.is_null().any():
        raise TableError(
            f"a cell of {cells.name!r} is not a number",
            expected="a number in each row",
            found=repr(cells.filter(numbers.is_null())[0]),
        )
    return numbers.to_numpy()
