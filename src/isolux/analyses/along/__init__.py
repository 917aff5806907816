"""The score along a number: age, income, size, luminance, skin tone as an angle.

FairFace (Figures 5 and 6) shows how the individual typology angle is spread in each group, and a
model's accuracy against it. This does both for any attribute that is a number: people are parted
into bins of it (fifths, or edges of the user's), the metric is measured in each bin with an
interval by cluster bootstrap, for everyone and for each group of the audit, and the two ends are
compared. Groups that meet in every bin but are spread differently differ by where they are; groups
apart within the bins differ by something else. ``confounders`` adjusts for it; this looks.

Where a group has no people at a number, nothing is said of it there. Bins are of everyone, so that
groups are compared at the same numbers.

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

from isolux.analyses._contrasts import Contrasts, adjusted_p, cluster_sums, contrast
from isolux.analyses._judged import Judged, findings_table, judged_of, nothing_to_judge, words_for
from isolux.analyses._regrouping import (
    MOST_GROUPS,
    at_least,
    check_settings,
    groups_of,
    largest_groups,
    settings_of,
)
from isolux.analyses.along.bins import (
    Numbered,
    binned_numbers,
    chosen_numbers,
    curve_by_group,
    spread_by_group,
)
from isolux.groups.unknown import KNOWN_SUFFIX
from isolux.statements.numbers import interval, points
from isolux.statements.words import Words, level_of, lowered
from isolux.stats.statistic import FloatArray
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo
from isolux.vocabulary.spec import Groups, Statistics
from isolux.vocabulary.tables import FINDINGS, Status

CURVE, SPREAD = "{} along {}", "How {} is spread"
"""Captions of the two tables of an attribute."""

INFO = AnalysisInfo(
    title="Along a number",
    summary="The score of everyone and of each group along age, size, light or skin tone (ITA), "
    "and how that number is spread in each group.",
    references=(works.FAIRFACE.at("Figures 5 and 6"), works.WESTFALL_YOUNG.at("single-step max-T")),
    assumptions=(
        "A score that is associated with a number need not be caused by it.",
        "Only the two ends are tested; a score that is lowest in the middle shows in the table.",
        "Intervals hold for one bin at a time, not for the curve.",
        "Clusters are independent of one another.",
    ),
)

_NONE: Mapping[str, str] = {}


def explain(
    run: Run,
    *,
    attribute: Sequence[str] = (),
    bins: Mapping[str, str] = _NONE,
    by: Sequence[str] = (),
    metric: str = "",
    replicates: int | None = None,
) -> Explained:
    """Lay out a score along numbers, by group, and compare the two ends.

    Parameters
    ----------
    run : Run
        Its scores, attributes and settings are read.
    attribute : sequence of str
        Numeric attributes to measure along. Default: the first four that were computed
        (``--derive``), or else the first four numeric ones.
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
    Explained
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
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_settings("along", replicates=at_least(100, replicates))
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec, words = settings_of(run, replicates=replicates), replace(words_for(run), corrected=True)
    several = judged_of(run, spec.task, words, "along", {"metric": metric})
    names = chosen_numbers(run, spec.groups, attribute)
    _refuse_stray(bins, names)
    told: list[Ends] = []
    tables: dict[str, list[pl.DataFrame]] = {}
    for judged in several:
        members = _groups(run, spec.groups, judged.units, by)
        for name in names:
            numbered = binned_numbers(run, spec.groups, judged.units, name, bins.get(name))
            told.append(ends_of(judged, numbered))
            others = members.filter(~_mentions(name))
            title, measure = words.title(name), lowered(words.measure(judged.row))
            curve = curve_by_group(judged, numbered, others, words, spec.statistics)
            spread = spread_by_group(numbered, others)
            spread = spread.select(pl.lit(judged.model).alias("model"), pl.all())
            caption = CURVE.format(measure, title)
            tables.setdefault(caption[:1].upper() + caption[1:], []).append(curve)
            tables.setdefault(SPREAD.format(title), []).append(spread)
    findings = findings_of(told, words, spec.statistics)
    notes = [note for judged in several for note in judged.notes]
    notes += [note for one in told for note in _unknown(one, words)]
    made = {caption: pl.concat(parts) for caption, parts in tables.items()}
    return Explained(findings, made, tuple(dict.fromkeys(notes)))


def _refuse_stray(bins: Mapping[str, str], names: Sequence[str]) -> None:
    stray = sorted(set(bins) - set(names))
    if stray:
        raise SpecError(
            "bins are given for what is not gone along",
            expected="one of " + ", ".join(names),
            found=", ".join(stray),
            where="--analysis-option along.bins",
        )


def _groups(run: Run, settings: Groups, units: pl.Series, by: Sequence[str]) -> pl.DataFrame:
    """Put units into the audit's groups, the largest of each attribute."""
    stray = [name for name in by if name not in settings.by]
    if stray:
        raise SpecError(
            "groups are shown of what is not audited",
            expected="some of " + ", ".join(settings.by),
            found=", ".join(stray),
            where="--analysis-option along.by",
        )
    members = groups_of(run, settings, units)
    if by:
        members = members.filter(pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX).is_in(list(by)))
    return largest_groups(members, MOST_GROUPS)


def _mentions(name: str) -> pl.Expr:
    """Tell groups that are made of the number itself."""
    plain = pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX)
    return plain.str.split("*").list.contains(name)


def _unknown(one: Ends, words: Words) -> list[str]:
    lacking = int((one.numbered.code < 0).sum())
    title = words.title(one.numbered.name)
    return [f"Along {title}: {lacking:,} unit(s) of unknown {title} are left out"] * bool(lacking)


# Whether a score differs between the two ends of a number, in sentences. For `along`.


@dataclass(frozen=True, slots=True)
class Ends:
    """The lowest and the highest bin of one attribute, for one model."""

    judged: Judged
    numbered: Numbered
    ends: Contrasts


def ends_of(judged: Judged, numbered: Numbered) -> Ends:
    """Compare the lowest bin with the highest."""
    last = len(numbered.labels) - 1
    inside = np.column_stack([numbered.code == 0, numbered.code == last])
    sums = cluster_sums(judged.value, inside, judged.cluster, judged.n_clusters)
    found = contrast(sums.at(np.array([0])), sums.at(np.array([1])))
    return Ends(judged, numbered, found)


def findings_of(told: Sequence[Ends], words: Words, spec: Statistics) -> pl.DataFrame:
    """Say of each model and attribute whether the two ends differ: table ``findings``."""
    least = spec.min_units, spec.min_clusters
    large = np.array([one.ends.enough(*least)[0] for one in told], dtype=np.bool_)
    p = _adjusted(told, large, spec)
    rows = [
        _row(one, words, spec, p[k] if np.isfinite(p[k]) else None, large=bool(large[k]))
        for k, one in enumerate(told)
    ]
    rows.sort(key=lambda row: (row["p_adjusted"] is None, row["p_adjusted"] or 0.0))
    return findings_table(rows)


def _adjusted(told: Sequence[Ends], large: npt.NDArray[np.bool_], spec: Statistics) -> FloatArray:
    """Adjust over all attributes and models: models were asked about the same clusters or not."""
    p = np.full(len(told), np.nan)
    models = list(dict.fromkeys(one.judged.model for one in told))
    for model in models:
        own = np.array([k for k, one in enumerate(told) if one.judged.model == model])
        parts = [told[k].ends for k in own]
        found = adjusted_p(
            parts, replicates=spec.replicates, seed=spec.seed, one_sided=False, tested=large[own]
        )
        p[own] = np.minimum(found * len(models), 1.0)  # Bonferroni between models
    return p


def _row(
    one: Ends, words: Words, spec: Statistics, p: float | None, *, large: bool
) -> dict[str, Any]:
    low, high = (float(end[0]) for end in one.ends.interval(spec.level))
    known = large and np.isfinite(low)
    status = Status.OK if known else Status.INSUFFICIENT_UNITS
    if large and not known:
        status = Status.BOUNDARY
    ends = (low, high) if known else (None, None)
    labels = one.numbered.labels
    claim = words.start(one.judged.model, _claim(one, words, spec, ends, p, large=large))
    row = one.judged.finding(
        "along",
        claim,
        reference="fairface",
        n=int(one.ends.n[0] + one.ends.n_other[0]),
        effect=float(one.ends.difference[0]) if large else None,
        low=ends[0],
        high=ends[1],
    )
    named = {"attribute": one.numbered.name, "group_a": labels[0], "group_b": labels[-1]}
    return row | named | {"status": status.value, "p_adjusted": p}


def _claim(
    one: Ends,
    words: Words,
    spec: Statistics,
    ends: tuple[float | None, float | None],
    p: float | None,
    *,
    large: bool,
) -> str:
    labels, unit = one.numbered.labels, words.unit(one.judged.row)
    measure, title = words.measure(one.judged.row), words.title(one.numbered.name)
    n = f"n = {one.ends.n[0]:,.0f} and {one.ends.n_other[0]:,.0f}"
    where = f"the lowest bin of {title} ({labels[0]}) and the highest ({labels[-1]})"
    if not large:
        return f"{measure}: {where} have too few people to be compared; {n}."
    value = float(one.ends.difference[0])
    if ends[0] is None or ends[1] is None:
        range_text = "no interval"
    else:
        low, high = (-ends[1], -ends[0]) if value < 0 else (ends[0], ends[1])
        range_text = f"{level_of(words)} interval {interval(low, high, unit, value)}"
    if p is None or p > 1.0 - spec.level:
        return (
            f"no difference in {lowered(measure)} was found between {where}: "
            f"{points(value, unit)} ({range_text}; {words.p(p)}; {n})."
        )
    way = "lower" if value < 0 else "higher"
    return (
        f"{measure} is {points(value, unit)} {way} ({range_text}) in the lowest bin of {title} "
        f"({labels[0]}) than in the highest ({labels[-1]}); {words.p(p)}; {n}. "
        "The table shows whether groups differ within the bins."
    )
