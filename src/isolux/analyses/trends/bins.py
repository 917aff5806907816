"""A numeric attribute: its bins, and its distribution in each group. For ``trends``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux import derive
from isolux.analyses._features import read_known_values_as_numbers
from isolux.analyses._regrouping import ROUNDED_VALUES, measure_group_means_by_stratum
from isolux.analyses._unit_scores import UnitScores, check_attributes_exist
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.spec import Groups, Statistics, read_recorded_spec
from isolux.groups.binning import format_bin_labels, parse_bins
from isolux.statements.run_terms import RunTerms
from isolux.stats.cluster_sums import IntArray

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that describe a distribution; the middle one is the median."""

_MAX_ATTRIBUTES = 4  # attributes, where none is named
_MIN_VALUES = 3


@dataclass(frozen=True, slots=True)
class BinnedNumber:
    """A numeric attribute, and the bin of each unit.

    Parameters
    ----------
    name : str
    numbers : polars.DataFrame
        ``unit_id, number``: every scored unit, its median where it has several; null: unknown.
    labels : tuple of str
        Of the bins, ascending, without empty bins.
    bin_index : [n] int
        Bin of each row of ``numbers``; -1: unknown.
    """

    name: str
    numbers: pl.DataFrame
    labels: tuple[str, ...]
    bin_index: IntArray

    def to_strata(self) -> pl.DataFrame:
        """Return ``unit_id, stratum`` of units with a known number: the bin, as text."""
        bins = self.numbers.select("unit_id", stratum=pl.Series(self.bin_index))
        return bins.filter(pl.col("stratum") >= 0).with_columns(pl.col("stratum").cast(pl.String))


def choose_numeric_attributes(run: Run, settings: Groups, names: Sequence[str]) -> list[str]:
    """Choose the numeric attributes: those requested, else those computed, else the first ones."""
    present = run.attributes["attribute"].unique(maintain_order=True).to_list()
    check_attributes_exist(run, names, "--analysis-option trends.attribute")
    numeric = {name: _read_numbers_or_none(run, settings, name) for name in (names or present)}
    usable = [name for name, rows in numeric.items() if rows is not None]
    not_numeric = [name for name in names if name not in usable]
    if not_numeric or not usable:
        raise SpecError(
            "an analysis along a number needs numbers",
            expected=f"an attribute with {_MIN_VALUES} different numbers or more",
            found=", ".join(not_numeric or present[:8]) or "no attribute",
            where="--analysis-option trends.attribute",
            hint="computed ones are numbers: --derive luminance, --derive ita, --derive box_area",
        )
    if names:
        return list(dict.fromkeys(usable))
    computed = [name for name in usable if name in derive.map_derived_attributes_to_plugins()]
    spec = read_recorded_spec(run.record)
    not_of_people = {
        spec.predictions.score_column,
        spec.predictions.prediction_column,
        spec.people.cluster,
    }
    described = [
        name
        for name in usable
        if name not in not_of_people and not _is_identifier(_read_numbers(run, settings, name))
    ]
    if not (computed or described):
        raise SpecError(
            "no number describes people or pictures: all are ids, or the model's own answers",
            expected="a measured number, such as age, brightness or size",
            found=", ".join(usable),
            where="--analysis-option trends.attribute",
            hint="name one there to use it all the same",
        )
    return (computed or described)[:_MAX_ATTRIBUTES]


def _is_identifier(rows: pl.DataFrame) -> bool:
    """Tell whether every row has a whole number of its own, as ids have."""
    number = rows["number"]
    return bool(number.n_unique() == len(number) and (number == number.floor()).all())


def bin_numeric_attribute(
    run: Run, settings: Groups, units: pl.Series, name: str, bins: str | None
) -> BinnedNumber:
    """Assign every scored unit its bin."""
    rows = _read_numbers(run, settings, name)
    medians = rows.group_by("unit_id", maintain_order=True).agg(pl.col("number").median())
    unit_rows = pl.DataFrame({"unit_id": units})
    numbers = unit_rows.join(medians, on="unit_id", how="left", maintain_order="left")
    defined = numbers["number"].drop_nulls()
    rule = parse_bins(bins or "quantile:5")
    edges = rule.fixed_or_quantile_edges(defined)
    bin_positions = rule.bin_index(numbers["number"].fill_null(0.0).to_numpy(), edges)
    code = np.where(numbers["number"].is_null().to_numpy(), -1, bin_positions)
    occupied = np.unique(code[code >= 0])
    if len(occupied) < 2:
        raise SpecError(
            f"{name!r} cannot be divided: all people who were judged are in one bin",
            expected="two bins or more with people in them",
            found=f"{defined.n_unique():,} different numbers, edges {', '.join(map(str, edges))}",
            where="--analysis-option trends.bins",
        )
    labels = tuple(format_bin_labels(edges, rule.closed)[k] for k in occupied)
    return BinnedNumber(
        name, numbers, labels, np.where(code < 0, -1, np.searchsorted(occupied, code))
    )


def tabulate_group_quantiles(binned_number: BinnedNumber, members: pl.DataFrame) -> pl.DataFrame:
    """Describe the number's quantiles overall and in each group (FairFace, Figure 5)."""
    overall = binned_number.numbers.select(
        attribute=pl.lit(None, pl.String), group=pl.lit("overall"), unit_id="unit_id"
    )
    rows = pl.concat([overall, members.select(overall.columns)])
    rows = rows.join(binned_number.numbers, on="unit_id", how="inner", maintain_order="left")
    quantiles = [
        pl.col("number").quantile(q, "linear").round_sig_figs(4).alias(f"{100 * q:g} %")
        for q in _QUANTILES
    ]
    return rows.group_by("attribute", "group", maintain_order=True).agg(
        pl.col("number").count().alias("people"),
        pl.col("number").null_count().alias("unknown"),
        *quantiles,
    )


def _read_numbers(run: Run, settings: Groups, name: str) -> pl.DataFrame:
    """Return ``unit_id, number`` of an attribute that is known to be numeric."""
    rows = _read_numbers_or_none(run, settings, name)
    assert rows is not None  # noqa: S101 - choose_numeric_attributes kept numbers only
    return rows


def _read_numbers_or_none(run: Run, settings: Groups, name: str) -> pl.DataFrame | None:
    """Return ``unit_id, number`` of an attribute; None where a known value is not a number."""
    known_rows = read_known_values_as_numbers(run, settings, name)
    number = known_rows["number"]
    if number.null_count() or not number.is_finite().all() or number.n_unique() < _MIN_VALUES:
        return None
    return known_rows.select("unit_id", "number")


def measure_groups_by_bin(
    scores: UnitScores,
    binned_number: BinnedNumber,
    members: pl.DataFrame,
    terms: RunTerms,
    spec: Statistics,
) -> pl.DataFrame:
    """Measure overall and each group in each bin (FairFace, Figure 6)."""
    metrics = measure_group_means_by_stratum(
        scores.to_scores("trends"),
        members,
        binned_number.to_strata(),
        "trends",
        scores.build_metric(terms),
        spec,
    )
    bin_index = metrics["stratum"].cast(pl.Int64)
    bins = pl.Series("bin", list(binned_number.labels)).gather(bin_index)
    return (
        metrics.with_columns(bins, people="n_units")
        .sort("at", bin_index)
        .select("model", "attribute", "group", "bin", "people", ROUNDED_VALUES, "status")
    )
