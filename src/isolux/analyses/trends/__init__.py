"""The score by a numeric attribute: age, income, size, luminance, skin tone as an angle.

FairFace (Figures 5 and 6) shows the distribution of the individual typology angle in each group,
and a model's accuracy against it. This does both for any numeric attribute: people are divided into
bins of it (fifths, or the user's edges), the metric is measured in each bin with an interval by
cluster bootstrap, overall and for each group of the audit, and the lowest and the highest bin are
compared. Groups that are equal in every bin but distributed differently differ by this attribute;
groups that differ within the bins differ by something else. ``confounders`` adjusts for it; this
only describes.

A group without people in a bin has no value there. Bins are those of all people, so that groups are
compared at the same numbers.

References
----------
.. [1] Kärkkäinen, K., & Joo, J. (2021). FairFace: Face attribute dataset for balanced race, gender,
   and age for bias measurement and mitigation. WACV. Figures 5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._contrasts import (
    Contrasts,
    adjust_contrast_p_max_t,
    contrast_means_of_disjoint_sets,
    sum_scores_of_sets_by_cluster,
)
from isolux.analyses._regrouping import (
    MAX_GROUPS,
    build_membership_table,
    build_minimum_check,
    check_analysis_settings,
    read_run_settings,
    select_largest_groups_by_attribute,
)
from isolux.analyses._unit_scores import (
    UnitScores,
    build_ranked_findings_table,
    compares_models_or_has_no_scores,
    load_unit_scores_by_model,
    read_run_terms,
)
from isolux.analyses.trends.bins import (
    BinnedNumber,
    bin_numeric_attribute,
    choose_numeric_attributes,
    measure_groups_by_bin,
    tabulate_group_quantiles,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo
from isolux.core.spec import Groups, Statistics
from isolux.core.tables import FINDINGS, Status
from isolux.groups.unknown_values import KNOWN_SUFFIX
from isolux.statements.numbers import format_gap_size, format_interval
from isolux.statements.run_terms import (
    RunTerms,
    format_confidence_level,
    lower_unless_acronym,
)
from isolux.stats.statistic import FloatArray

CURVE, SPREAD = "{} along {}", "How {} is spread"
"""Captions of the two tables of an attribute."""

INFO = AnalysisInfo(
    title="Along a number",
    summary="The score of everyone and of each group along age, size, light or skin tone (ITA), "
    "and how that number is spread in each group.",
    references=(
        citations.FAIRFACE.with_location("Figures 5 and 6"),
        citations.WESTFALL_YOUNG.with_location("single-step max-T"),
    ),
    assumptions=(
        "A score that is associated with a number need not be caused by it.",
        "Only the two ends are tested; a score that is lowest in the middle shows in the table.",
        "Intervals hold for one bin at a time, not for the curve.",
        "Clusters are independent of one another.",
    ),
)

_EMPTY_MAPPING: Mapping[str, str] = {}


def explain(
    run: Run,
    *,
    attribute: Sequence[str] = (),
    bins: Mapping[str, str] = _EMPTY_MAPPING,
    by: Sequence[str] = (),
    metric: str = "",
    replicates: int | None = None,
) -> AnalysisResult:
    """Lay out a score along numbers, by group, and compare the two ends.

    Parameters
    ----------
    run : Run
        Its scores, attributes and settings are read.
    attribute : sequence of str
        Numeric attributes to measure along. Default: the first four that were computed
        (``--derive``), or else the first four numeric ones that are neither ids nor the model's
        answers and scores.
    bins : mapping of str to str
        Attribute to its bins: ``quantile:K`` or ``edges:A,B``; ``ita: edges:-30,10,28,41,55`` are
        its six classes. A number at an edge is in the bin above. Default: fifths.
    by : sequence of str
        Attributes and intersections of the audit whose groups are shown, of each the 12
        largest. Default: all.
    metric : str
        A metric with a score of each unit; empty: the run's first.
    replicates : int
        Replicates of the cluster bootstrap and of the test, 100 or more. Default: the audit's.

    Returns
    -------
    AnalysisResult
        A finding for each model and attribute: ``effect, low, high`` are the mean score of the
        lowest bin less that of the highest, in the metric's unit; ``n`` the units of both;
        ``p_adjusted`` over all of them (max-T). Tables for each attribute:
        ``model, attribute`` (null: everyone), ``group, bin, people, value, low, high, status``;
        and its quantiles by group.

    Raises
    ------
    SpecError, UnknownNameError
        No such attribute, none that is a number, bins that separate no people; a metric without
        scores of units or without direction.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_analysis_settings("trends", replicates=build_minimum_check(100, replicates))
    if compares_models_or_has_no_scores(run):
        return AnalysisResult(FINDINGS.empty())
    spec = read_run_settings(run, replicates=replicates)
    terms = replace(read_run_terms(run), is_adjusted=True)
    scores_by_model = load_unit_scores_by_model(run, spec.task, terms, "trends", {"metric": metric})
    names = choose_numeric_attributes(run, spec.groups, attribute)
    _check_binned_attributes_requested(bins, names)
    comparisons: list[ExtremeBins] = []
    tables: dict[str, list[pl.DataFrame]] = {}
    for model_scores in scores_by_model:
        members = _build_membership_of_largest_groups(run, spec.groups, model_scores.units, by)
        for name in names:
            binned_number = bin_numeric_attribute(
                run, spec.groups, model_scores.units, name, bins.get(name)
            )
            comparisons.append(compare_extreme_bins(model_scores, binned_number))
            other_members = members.filter(~_is_group_of_number_expr(name))
            title = terms.format_attribute(name)
            measure = lower_unless_acronym(terms.format_metric(model_scores.row))
            curve = measure_groups_by_bin(
                model_scores, binned_number, other_members, terms, spec.statistics
            )
            distribution = tabulate_group_quantiles(binned_number, other_members)
            distribution = distribution.select(pl.lit(model_scores.model).alias("model"), pl.all())
            caption = CURVE.format(measure, title)
            tables.setdefault(caption[:1].upper() + caption[1:], []).append(curve)
            tables.setdefault(SPREAD.format(title), []).append(distribution)
    findings = build_extreme_bin_findings(comparisons, terms, spec.statistics)
    notes = [note for model_scores in scores_by_model for note in model_scores.notes]
    notes += [
        note for comparison in comparisons for note in _build_unknown_value_notes(comparison, terms)
    ]
    joined_tables = {caption: pl.concat(frames) for caption, frames in tables.items()}
    return AnalysisResult(findings, joined_tables, tuple(dict.fromkeys(notes)))


def _check_binned_attributes_requested(bins: Mapping[str, str], names: Sequence[str]) -> None:
    unknown_names = sorted(set(bins) - set(names))
    if unknown_names:
        raise SpecError(
            "bins are given for what is not gone along",
            expected="one of " + ", ".join(names),
            found=", ".join(unknown_names),
            where="--analysis-option trends.bins",
        )


def _build_membership_of_largest_groups(
    run: Run, settings: Groups, units: pl.Series, by: Sequence[str]
) -> pl.DataFrame:
    """Build the membership of the audit's largest groups of each attribute."""
    unknown_names = [name for name in by if name not in settings.by]
    if unknown_names:
        raise SpecError(
            "groups are shown of what is not audited",
            expected="some of " + ", ".join(settings.by),
            found=", ".join(unknown_names),
            where="--analysis-option trends.by",
        )
    members = build_membership_table(run, settings, units)
    if by:
        members = members.filter(pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX).is_in(list(by)))
    return select_largest_groups_by_attribute(members, MAX_GROUPS)


def _is_group_of_number_expr(name: str) -> pl.Expr:
    """Build the mask of groups that are made of the number itself."""
    attribute = pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX)
    return attribute.str.split("*").list.contains(name)


def _build_unknown_value_notes(comparison: ExtremeBins, terms: RunTerms) -> list[str]:
    n_unknown = int((comparison.binned_number.bin_index < 0).sum())
    title = terms.format_attribute(comparison.binned_number.name)
    return [f"Along {title}: {n_unknown:,} unit(s) of unknown {title} are left out"] * bool(
        n_unknown
    )


# Findings: whether a score differs between the lowest and the highest bin.


@dataclass(frozen=True, slots=True)
class ExtremeBins:
    """The lowest and the highest bin of one attribute, for one model."""

    scores: UnitScores
    binned_number: BinnedNumber
    contrast: Contrasts


def compare_extreme_bins(scores: UnitScores, binned_number: BinnedNumber) -> ExtremeBins:
    """Compare the mean score of the lowest bin with that of the highest."""
    last = len(binned_number.labels) - 1
    is_member = np.column_stack([binned_number.bin_index == 0, binned_number.bin_index == last])
    sums = sum_scores_of_sets_by_cluster(scores.value, is_member, scores.cluster, scores.n_clusters)
    differences = contrast_means_of_disjoint_sets(
        sums.take(np.array([0])), sums.take(np.array([1]))
    )
    return ExtremeBins(scores, binned_number, differences)


def build_extreme_bin_findings(
    comparisons: Sequence[ExtremeBins], terms: RunTerms, spec: Statistics
) -> pl.DataFrame:
    """Build the findings on each model and attribute: whether the extreme bins differ."""
    min_sizes = spec.min_units, spec.min_clusters
    is_large_enough = np.array(
        [comparison.contrast.is_large_enough(*min_sizes)[0] for comparison in comparisons],
        dtype=np.bool_,
    )
    p = _adjust_p_over_attributes_and_models(comparisons, is_large_enough, spec)
    rows = [
        _build_extreme_bin_finding(
            comparison,
            terms,
            spec,
            p[k] if np.isfinite(p[k]) else None,
            is_large_enough=bool(is_large_enough[k]),
        )
        for k, comparison in enumerate(comparisons)
    ]
    rows.sort(key=lambda row: (row["p_adjusted"] is None, row["p_adjusted"] or 0.0))
    return build_ranked_findings_table(rows)


def _adjust_p_over_attributes_and_models(
    comparisons: Sequence[ExtremeBins], is_large_enough: npt.NDArray[np.bool_], spec: Statistics
) -> FloatArray:
    """Adjust p-values over attributes by max-T, and over models by Bonferroni.

    Models may have been evaluated on different clusters, so that they have no joint distribution.
    """
    p = np.full(len(comparisons), np.nan)
    models = list(dict.fromkeys(comparison.scores.model for comparison in comparisons))
    for model in models:
        model_index = np.array(
            [k for k, comparison in enumerate(comparisons) if comparison.scores.model == model]
        )
        contrasts = [comparisons[k].contrast for k in model_index]
        adjusted = adjust_contrast_p_max_t(
            contrasts,
            replicates=spec.replicates,
            seed=spec.seed,
            one_sided=False,
            is_tested=is_large_enough[model_index],
        )
        p[model_index] = np.minimum(adjusted * len(models), 1.0)  # Bonferroni between models
    return p


def _build_extreme_bin_finding(
    comparison: ExtremeBins,
    terms: RunTerms,
    spec: Statistics,
    p: float | None,
    *,
    is_large_enough: bool,
) -> dict[str, Any]:
    low, high = (float(bound[0]) for bound in comparison.contrast.interval(spec.level))
    has_interval = is_large_enough and np.isfinite(low)
    status = Status.OK if has_interval else Status.INSUFFICIENT_UNITS
    if is_large_enough and not has_interval:
        status = Status.NO_VARIATION
    bounds = (low, high) if has_interval else (None, None)
    labels = comparison.binned_number.labels
    claim = terms.begin_sentence(
        comparison.scores.model,
        _format_extreme_bin_claim(
            comparison, terms, spec, bounds, p, is_large_enough=is_large_enough
        ),
    )
    row = comparison.scores.build_finding(
        "trends",
        claim,
        reference="fairface",
        n=int(comparison.contrast.n[0] + comparison.contrast.n_other[0]),
        effect=float(comparison.contrast.difference[0]) if is_large_enough else None,
        low=bounds[0],
        high=bounds[1],
    )
    columns = {
        "attribute": comparison.binned_number.name,
        "group_a": labels[0],
        "group_b": labels[-1],
    }
    return row | columns | {"status": status.value, "p_adjusted": p}


def _format_extreme_bin_claim(
    comparison: ExtremeBins,
    terms: RunTerms,
    spec: Statistics,
    bounds: tuple[float | None, float | None],
    p: float | None,
    *,
    is_large_enough: bool,
) -> str:
    labels, unit = comparison.binned_number.labels, terms.find_unit(comparison.scores.row)
    measure = terms.format_metric(comparison.scores.row)
    title = terms.format_attribute(comparison.binned_number.name)
    n = f"n = {comparison.contrast.n[0]:,.0f} and {comparison.contrast.n_other[0]:,.0f}"
    bins_phrase = f"the lowest bin of {title} ({labels[0]}) and the highest ({labels[-1]})"
    if not is_large_enough:
        return f"{measure}: {bins_phrase} have too few people to be compared; {n}."
    difference = float(comparison.contrast.difference[0])
    if bounds[0] is None or bounds[1] is None:
        range_text = "no interval"
    else:
        low, high = (-bounds[1], -bounds[0]) if difference < 0 else (bounds[0], bounds[1])
        range_text = (
            f"{format_confidence_level(terms)} interval "
            f"{format_interval(low, high, unit, difference)}"
        )
    if p is None or p > 1.0 - spec.level:
        return (
            f"no difference in {lower_unless_acronym(measure)} was found between {bins_phrase}: "
            f"{format_gap_size(difference, unit)} ({range_text}; {terms.format_p(p)}; {n})."
        )
    direction = "lower" if difference < 0 else "higher"
    return (
        f"{measure} is {format_gap_size(difference, unit)} {direction} ({range_text}) in the lowest"
        f" bin of {title} ({labels[0]}) than in the highest ({labels[-1]}); {terms.format_p(p)};"
        f" {n}. The table shows whether groups differ within the bins."
    )
