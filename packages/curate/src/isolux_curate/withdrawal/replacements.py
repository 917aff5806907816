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

from isolux.core.errors import SpecError, TableError
from isolux.io.atomic import write_text
from isolux.io.cell_parsing import as_text
from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.user_tables import read_table_as_text, refuse_missing_columns
from isolux_curate.withdrawal.rewriting.tables import flag_rows_naming_people
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


def match_rows_at_least_distance(
    withdrawn_rows: pl.DataFrame,
    pool: pl.DataFrame,
    *,
    set_columns: Sequence[str] = MATCH_KEYS,
    number_columns: Sequence[str] = (),
) -> pl.DataFrame:
    """Match each withdrawn row with a different row of a pool, with the least total distance.

    Examples
    --------
    >>> gone = pl.DataFrame({"pronoun": ["she"], "age_group": ["30-39"], "ancestry": ["Africa"]})
    >>> pool = pl.DataFrame({"pronoun": ["he", "she", "she"],
    ...                      "age_group": ["30-39", "18-29", "30-39"],
    ...                      "ancestry": ["Africa", "Africa", "Asia"]})
    >>> match_rows_at_least_distance(gone, pool)["pool"].to_list()
    [2]
    """
    from scipy.optimize import linear_sum_assignment

    for frame, source in ((withdrawn_rows, "the sample"), (pool, "the pool")):
        refuse_missing_columns(frame, (*set_columns, *number_columns), source)
    distances = [_compute_jaccard_distances(withdrawn_rows[key], pool[key]) for key in set_columns]
    complexity_distance = _average_standardised_distances(withdrawn_rows, pool, number_columns)
    if not withdrawn_rows.height or not pool.height:
        rows = columns = np.empty(0, np.intp)
    else:
        rows, columns = linear_sum_assignment(
            _combine_distances_lexicographically(
                distances, complexity_distance, min(withdrawn_rows.height, pool.height)
            )
        )
    return pl.DataFrame(
        {
            "gone": rows,
            "pool": columns,
            **{
                key: distance[rows, columns]
                for key, distance in zip(set_columns, distances, strict=True)
            },
            "complexity": complexity_distance[rows, columns]
            if number_columns
            else [None] * len(rows),
        },
        schema_overrides={"complexity": pl.Float64},
    )


def choose_replacement_rows(
    sample_path: Path,
    pool_path: Path,
    terms: IdentifyingTerms,
    *,
    set_columns: Sequence[str],
    number_columns: Sequence[str],
) -> ReplacementRows:
    """Choose rows of a pool to replace the withdrawn rows of a sample."""
    if sample_path.suffix.lower() != ".csv":
        raise SpecError(
            "a sample is a CSV file", expected="--sample FILE.csv", found=sample_path.name
        )
    sample_rows = read_table_as_text(sample_path)
    pool_rows = read_table_as_text(pool_path, *sample_rows.columns)
    is_withdrawn = flag_rows_naming_people(sample_rows, terms)
    ids = [
        c for c in sample_rows.columns if (parse_id_column_or_none(c) or ((), False))[1]
    ] or sample_rows.columns[:1]
    candidates = pool_rows.filter(~flag_rows_naming_people(pool_rows, terms)).join(
        sample_rows.select(ids), on=ids, how="anti", nulls_equal=True
    )
    pairs = match_rows_at_least_distance(
        sample_rows.filter(is_withdrawn),
        candidates,
        set_columns=set_columns,
        number_columns=number_columns,
    )
    rows = candidates[pairs["pool"].to_list()].select(sample_rows.columns)
    match_distances = pairs.drop("gone", "pool").to_dicts()
    return ReplacementRows(
        str(sample_path), [list(row) for row in rows.iter_rows()], match_distances
    )


def append_missing_replacement_rows(replacement: ReplacementRows) -> None:
    """Append the rows to a sample, each once even if repeated."""
    sample = Path(replacement.sample)
    existing_rows = set(read_table_as_text(sample).iter_rows())
    new_rows = [row for row in replacement.rows if tuple(row) not in existing_rows]
    if new_rows:
        text = sample.read_text(encoding="utf-8-sig")
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(new_rows)
        write_text(sample, text + ("" if text.endswith("\n") else "\n") + buffer.getvalue())


def _combine_distances_lexicographically(
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


def _compute_jaccard_distances(cells: pl.Series, other_cells: pl.Series) -> npt.NDArray[np.float64]:
    first_sets, second_sets = _split_cells_into_sets(cells), _split_cells_into_sets(other_cells)
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


def _split_cells_into_sets(cells: pl.Series) -> list[frozenset[str]]:
    if isinstance(cells.dtype, pl.List):
        return [frozenset(map(str, cell or ())) for cell in cells.to_list()]
    return [
        frozenset(entry.strip() for entry in (cell or "").split(";") if entry.strip())
        for cell in as_text(cells).to_list()
    ]


def _average_standardised_distances(
    withdrawn_rows: pl.DataFrame, pool: pl.DataFrame, columns: Sequence[str]
) -> npt.NDArray[np.float64]:
    total = np.zeros((withdrawn_rows.height, pool.height))
    for name in columns:
        a, b = _parse_numbers_or_refuse(withdrawn_rows[name]), _parse_numbers_or_refuse(pool[name])
        std = float(np.concatenate([a, b]).std()) or 1.0
        total += np.abs(a[:, None] - b[None, :]) / std
    return total / max(len(columns), 1)


def _parse_numbers_or_refuse(cells: pl.Series) -> npt.NDArray[np.float64]:
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() > cells.null_count() or numbers.is_null().any():
        raise TableError(
            f"a cell of {cells.name!r} is not a number",
            expected="a number in each row",
            found=repr(cells.filter(numbers.is_null())[0]),
        )
    return numbers.to_numpy()
