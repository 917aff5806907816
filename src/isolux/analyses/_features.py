"""Design matrices of the analyses, from a run's attributes of units.

From attributes to ``matrix [n_units, n_columns]``. Two forms: ``build_boolean_items`` gives
booleans, one column a value, numbers in bins (for itemsets and slices); ``build_model_columns``
gives numbers as they are and an indicator of each value of a category (for regression and forests).
A unit may have several values of an attribute: then several of its columns are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._model_columns import find_prediction_columns
from isolux.analyses._unit_scores import check_attributes_exist
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.spec import AuditSpec, Grouping, Groups
from isolux.groups import build_membership, read_groupings
from isolux.groups.invalid_groups import MAX_NUMBERS
from isolux.groups.unknown_values import null_unknown_words
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray

MAX_VALUES = 100
"""Values of a category; with more it probably identifies units."""


@dataclass(frozen=True, slots=True)
class Features:
    """Columns of a design matrix: the attribute and value of each.

    ``value`` is None where the column is the number itself, NaN where it is unknown.
    """

    attribute: tuple[str, ...]
    value: tuple[str | None, ...]
    matrix: npt.NDArray[np.bool_] | FloatArray
    notes: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """Each attribute once, in order."""
        return tuple(dict.fromkeys(self.attribute))

    def column_index(self, attribute: str) -> IntArray:
        """Return the indices of an attribute's columns."""
        matches = [j for j, name in enumerate(self.attribute) if name == attribute]
        return np.asarray(matches, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class AttributeTypes:
    """The attributes of units: numbers, categories, and notes on those that are excluded."""

    rows: pl.DataFrame
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    notes: tuple[str, ...]


def classify_attributes(
    run: Run, spec: AuditSpec, units: pl.Series, requested: Sequence[str], *, analysis: str
) -> AttributeTypes:
    """Classify the attributes of units into numbers and categories."""
    check_attributes_exist(run, requested, f"--analysis-option {analysis}.attributes")
    present = run.attributes["attribute"].unique(maintain_order=True).to_list()
    rows, summary = _read_and_summarise_known_values(run, spec, units, requested)
    is_constant = (pl.col("values") == 1) & (pl.col("units") == len(units))
    is_number = pl.col("all_numbers") & (pl.col("numbers") > MAX_NUMBERS)
    has_too_many = ~is_number & (pl.col("values") > MAX_VALUES)
    names_by_type = {
        name: summary.filter(rule)["attribute"].sort().to_list()  # independent of the order of rows
        for name, rule in (
            ("numbers", is_number),
            ("many", has_too_many),
            ("words", ~is_number & ~has_too_many & ~is_constant),
        )
    }
    if not names_by_type["numbers"] and not names_by_type["words"]:
        raise SpecError(
            "there is nothing to explain scores with",
            expected="attributes whose values differ between units",
            found="no attribute of them" if summary.is_empty() else ", ".join(summary["attribute"]),
            where=f"the analysis {analysis}",
            hint="audit again with --derive box_size or the like: `isolux list attributes`",
        )
    notes = _note_excluded_prediction_columns(spec, present, requested)
    if names_by_type["many"]:
        excluded_names = ", ".join(names_by_type["many"])
        notes.append(
            f"{excluded_names}: more than {MAX_VALUES} different values, so not used to explain"
        )
    return AttributeTypes(
        rows, tuple(names_by_type["numbers"]), tuple(names_by_type["words"]), tuple(notes)
    )


def read_known_values_as_numbers(run: Run, settings: Groups, name: str) -> pl.DataFrame:
    """Read an attribute's rows of known value, with ``number``; null: not a number."""
    rows = null_unknown_words(run.attributes.filter(attribute=name), settings.unknown_values)
    return _add_number_column_if_missing(rows.drop_nulls("value"))


def _add_number_column_if_missing(rows: pl.DataFrame) -> pl.DataFrame:
    """Parse values as numbers where the column has none; null: not a number."""
    parsed = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    number_column = ["number"] if "number" in rows.columns else []
    return rows.with_columns(number=pl.coalesce(*number_column, parsed))


def _note_excluded_prediction_columns(
    spec: AuditSpec, present: Sequence[str], requested: Sequence[str]
) -> list[str]:
    """Build the note on columns taken for other models' predictions without a setting."""
    settings = spec.predictions
    configured = (settings.prediction_column, settings.score_column, settings.detected_column)
    inferred = [
        name for name in find_prediction_columns(settings, present) if name not in configured
    ]
    if requested or not inferred:
        return []
    return [f"{', '.join(inferred)}: what models said of people, so not used to explain"]


def _list_bookkeeping_columns(spec: AuditSpec) -> tuple[str | None, ...]:
    """List the columns of a user's table that are not attributes."""
    return spec.people.cluster, spec.people.id, spec.predictions.prediction_id


def _read_and_summarise_known_values(
    run: Run, spec: AuditSpec, units: pl.Series, requested: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of known value, and each attribute's counts of values, numbers, units."""
    excluded = [name for name in _list_bookkeeping_columns(spec) if name]
    present = run.attributes["attribute"].unique(maintain_order=True)
    excluded += find_prediction_columns(spec.predictions, present)
    attribute = pl.col("attribute")
    selected = run.attributes.filter(
        pl.col("unit_id").is_in(units.implode()),
        attribute.is_in(list(requested)) if requested else attribute.is_in(excluded).not_(),
    )
    rows = _add_number_column_if_missing(
        null_unknown_words(selected, spec.groups.unknown_values).drop_nulls("value")
    )
    rows = rows.with_columns(pl.col("number").fill_nan(None))
    return rows, rows.group_by("attribute", maintain_order=True).agg(
        values=pl.col("value").n_unique(),
        all_numbers=pl.col("number").is_finite().fill_null(value=False).all(),
        numbers=pl.col("number").n_unique(),
        units=pl.col("unit_id").n_unique(),
    )


def build_boolean_items(
    run: Run, spec: AuditSpec, units: pl.Series, types: AttributeTypes, *, bins: int
) -> Features:
    """Build a boolean column for each value of each attribute; numbers in ``bins`` quantiles.

    Values are those of the audit's own groups (merges, bins and votes of attributes in ``by``).
    """
    names = [*types.categories, *types.numbers]
    known_groupings = read_groupings(spec.groups, run.attributes)
    rules = {}
    for name in names:
        grouping = known_groupings.get(name) or Grouping(
            attribute=name, votes=spec.groups.votes, unknown_values=spec.groups.unknown_values
        )
        binned = (
            f"quantile:{bins}" if name in types.numbers and grouping.bins is None else grouping.bins
        )
        rules[name] = replace(grouping, unknown="drop", bins=binned)
    rows = types.rows.filter(pl.col("attribute").is_in(names))
    frame = build_membership(rows, names, rules, units=units).frame
    pairs = frame.select("attribute", "group").unique(maintain_order=True).with_row_index("item")
    positions = frame.join(pairs, on=["attribute", "group"]).join(
        pl.DataFrame({"unit_id": units}).with_row_index("unit"), on="unit_id"
    )
    matrix = np.zeros((len(units), pairs.height), dtype=np.bool_)
    matrix[positions["unit"].to_numpy(), positions["item"].to_numpy()] = True
    return Features(tuple(pairs["attribute"]), tuple(pairs["group"]), matrix, types.notes)


def build_model_columns(
    run: Run, spec: AuditSpec, units: pl.Series, types: AttributeTypes
) -> Features:
    """Build a column for each number, and an indicator of 0 and 1 for each value of a category."""
    category_features = (
        build_boolean_items(
            run, spec, units, AttributeTypes(types.rows, (), types.categories, types.notes), bins=2
        )
        if types.categories
        else Features((), (), np.zeros((len(units), 0)), types.notes)
    )
    unit_index = pl.DataFrame({"unit_id": units}).with_row_index("unit")
    numbers = np.full((len(units), len(types.numbers)), np.nan)
    median = (
        types.rows.filter(pl.col("attribute").is_in(list(types.numbers)))
        .group_by("attribute", "unit_id")
        .agg(pl.col("number").median())
        .join(unit_index, on="unit_id")
    )
    for j, name in enumerate(types.numbers):
        values = median.filter(attribute=name)
        numbers[values["unit"].to_numpy(), j] = values["number"].to_numpy()
    return Features(
        (*types.numbers, *category_features.attribute),
        (*(None for _ in types.numbers), *category_features.value),
        np.column_stack([numbers, category_features.matrix.astype(np.float64)]),
        types.notes,
    )


def drop_attributes_determining_outcome(features: Features, outcome: FloatArray) -> Features:
    """Drop attributes that determine the outcome itself, with a note."""
    proxies = [name for name in features.attributes if _determines_outcome(features, name, outcome)]
    if not proxies:
        return features
    is_kept = np.asarray([name not in proxies for name in features.attribute])
    note = (
        f"{', '.join(proxies)}: says of every unit what its score says, so it was made from it or "
        "the score from it; left out"
    )
    return Features(
        tuple(n for n, k in zip(features.attribute, is_kept, strict=True) if k),
        tuple(v for v, k in zip(features.value, is_kept, strict=True) if k),
        features.matrix[:, is_kept],
        (*features.notes, note),
    )


def _determines_outcome(features: Features, name: str, outcome: FloatArray) -> bool:
    column_index = features.column_index(name)
    if features.value[column_index[0]] is None:
        number = features.matrix[:, column_index[0]]
        is_known = np.isfinite(number)
        if is_known.sum() < 3:
            return False
        a = number[is_known] - number[is_known].mean()
        b = outcome[is_known] - outcome[is_known].mean()
        norm_product = float(a @ a) * float(b @ b)
        return norm_product > 0 and float(a @ b) ** 2 > (1 - 1e-9) * norm_product
    members = features.matrix[:, column_index].astype(np.float64)
    n = members.sum(axis=0)
    if (
        members.any(axis=1).mean() < 0.9
        or len(column_index) < 2
        or len(column_index) > len(outcome) / 5
    ):
        return False
    high = np.asarray([outcome[h > 0].max(initial=-np.inf) for h in members.T])
    low = np.asarray([outcome[h > 0].min(initial=np.inf) for h in members.T])
    return bool((high == low)[n > 0].all() and len(np.unique(high[n > 0])) > 1)
