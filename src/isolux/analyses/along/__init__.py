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
from dataclasses import replace

import polars as pl

from isolux.analyses._judged import judged_of, nothing_to_judge, words_for
from isolux.analyses._regrouping import (
    at_least,
    check_settings,
    groups_of,
    largest_groups,
    settings_of,
)
from isolux.analyses.along.bins import (
    binned_numbers,
    chosen_numbers,
    curve_by_group,
    spread_by_group,
)
from isolux.analyses.along.findings import Ends, ends_of, findings_of
from isolux.groups.unknown import KNOWN_SUFFIX
from isolux.statements.words import Words, lowered
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo
from isolux.vocabulary.spec import Groups
from isolux.vocabulary.tables import FINDINGS

CURVE, SPREAD = "{} along {}", "How {} is spread"
"""Captions of the two tables of an attribute."""

INFO = AnalysisInfo(
    title="Along a number",
    summary="The score of everyone and of each group along age, size, light or skin tone (ITA), "
    "and how that number is spread in each group.",
    references=(
        works.FAIRFACE.at("Figures 5 and 6"),
        works.WESTFALL_YOUNG.at("single-step max-T"),
    ),
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
    quantiles: int = 5,
    by: Sequence[str] = (),
    metric: str = "",
    most_groups: int = 12,
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
        its six classes. A number at an edge is in the bin above.
    quantiles : int
        Bins of attributes that ``bins`` does not name, of equal size.
    by : sequence of str
        Attributes and intersections of the audit whose groups are shown. Default: all.
    metric : str
        A metric with a score of each unit; empty: the run's first.
    most_groups : int
        Per attribute; the largest are kept.
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
    check_settings(
        "along",
        quantiles=at_least(2, quantiles),
        most_groups=at_least(1, most_groups),
        replicates=at_least(100, replicates),
    )
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec, words = settings_of(run, replicates=replicates), replace(words_for(run), corrected=True)
    several = judged_of(run, spec.task, words, "along", {"metric": metric})
    names = chosen_numbers(run, spec.groups, attribute)
    _refuse_stray(bins, names)
    told: list[Ends] = []
    tables: dict[str, list[pl.DataFrame]] = {}
    for judged in several:
        members = _groups(run, spec.groups, judged.units, by, most_groups)
        for name in names:
            numbered = binned_numbers(
                run, spec.groups, judged.units, name, bins.get(name), quantiles
            )
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


def _groups(
    run: Run, settings: Groups, units: pl.Series, by: Sequence[str], most: int
) -> pl.DataFrame:
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
    return largest_groups(members, most)


def _mentions(name: str) -> pl.Expr:
    """Tell groups that are made of the number itself."""
    plain = pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX)
    return plain.str.split("*").list.contains(name)


def _unknown(one: Ends, words: Words) -> list[str]:
    lacking = int((one.numbered.code < 0).sum())
    title = words.title(one.numbered.name)
    return [f"Along {title}: {lacking:,} unit(s) of unknown {title} are left out"] * bool(lacking)
