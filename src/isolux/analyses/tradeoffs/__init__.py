"""Trade-offs: what a threshold gives each group, and what abstaining does to the gap.

Two views of a score. Against the threshold: how many of each group's positives and of its others
lie at or above it, and where each group's threshold would have to lie for its positives to fare as
everyone's do at the operating one (equal opportunity). Against coverage: when the least sure
answers are left to another judge, who remains, and how often the rest is wrong; abstaining lowers
everyone's error and may still widen the gap (Jones et al. 2021).

Detectors have the first view for people found at an overlap of .50, verifiers for pairs at
thresholds that everyone's impostors set. Every interval resamples clusters; those of curves hold at
one point at a time. A threshold of its own for each group is no advice: it treats people by their
group, which may be unlawful, and it mends a score that should be mended where it is made.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.analyses._judged import findings_table, nothing_to_judge
from isolux.analyses._regrouping import at_least, check_settings, groups_of, settings_of
from isolux.analyses.tradeoffs.coverage import COVERAGE, add_coverage
from isolux.analyses.tradeoffs.evidence import (
    CLASSIFICATION,
    DETECTIONS,
    People,
    Seen,
    found_people,
    graded_people,
    large_groups,
    sure_people,
)
from isolux.analyses.tradeoffs.pairs import MATCHES, PAIRS, add_pairs
from isolux.analyses.tradeoffs.thresholds import RATES, add_thresholds, meets_at
from isolux.statements.words import words_of
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.spec import Groups
from isolux.vocabulary.tables import FINDINGS

__all__ = ["COVERAGE", "INFO", "MATCHES", "RATES", "explain", "meets_at"]

INFO = AnalysisInfo(
    title="Trade-offs",
    summary="Rates by group against the threshold, thresholds at which groups would meet, and "
    "whether abstaining widens the gap.",
    references=(
        Reference(
            "jones-2021",
            "Jones, E., Sagawa, S., Koh, P. W., Kumar, A., & Liang, P. (2021). Selective "
            "classification can magnify disparities across groups. In International Conference on "
            "Learning Representations (ICLR).",
            "section 3: group accuracies against coverage",
            "https://arxiv.org/abs/2010.14134",
        ),
        Reference(
            "hardt-2016",
            "Hardt, M., Price, E., & Srebro, N. (2016). Equality of opportunity in supervised "
            "learning. In Advances in Neural Information Processing Systems 29 (pp. 3315–3323).",
            "section 2: equal opportunity; section 4: thresholds by group",
            "https://arxiv.org/abs/1610.02413",
        ),
    ),
    assumptions=(
        "Scores of one model are of one scale for all people.",
        "Intervals of curves hold at one point at a time, not for the curve.",
        "Separate thresholds for each group would treat people by their group: this measures only.",
        "People who are left out are judged in another way, whose errors are not counted here.",
        (
            "Leaving out the least confident answers lowers all errors, and with them gaps in "
            "points; the two errors, not the gap, show whether a gap shrinks as fast as the errors "
            "do."
        ),
    ),
)


def explain(
    run: Run,
    *,
    thresholds: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
    operating: float = 0.5,
    coverages: Sequence[float] = (0.9, 0.8, 0.7, 0.6, 0.5),
    false_match_rates: Sequence[float] = (0.1, 0.01, 0.001),
    most_groups: int = 6,
    replicates: int | None = None,
) -> Explained:
    """Lay out rates against thresholds and errors against coverage, by group.

    Parameters
    ----------
    run : Run
        With the evidence of classification (with scores), ``detections`` (boxes, masks or poses
        with average precision) or ``pairs`` (verification).
    thresholds : sequence of float
        Scores at which rates are shown.
    operating : float
        The threshold in use: for each group, the threshold is found at which its positives do as
        well as everyone's do at this one.
    coverages : sequence of float
        Shares of everyone that are kept, above 0, at most 1; 1 is added. The gap at the smallest of
        them is compared with that at 1.
    false_match_rates : sequence of float
        Shares of everyone's impostor pairs that pass at the thresholds of pairs.
    most_groups : int
        Per attribute; the largest are kept.
    replicates : int, optional
        Bootstrap replicates; default: the audit's own.

    Returns
    -------
    Explained
        Findings. Of each attribute, the group whose threshold lies furthest off: ``effect, low,
        high`` are its threshold less ``operating``, in the score's unit (below 0: the group's
        scores are too low), ``n`` its positives. And the groups whose gap in error is moved by
        abstaining: ``effect`` is the gap at the least coverage less that at 1, 0 to 1 (above 0: it
        widens), ``p_adjusted`` Holm's over all groups and models.
        Tables ``RATES``, ``meets_at(operating)``, ``COVERAGE``, ``MATCHES``, those that the run
        allows.

    Raises
    ------
    SpecError
        A run without scores, or with one and the same for all people; settings out of range.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    are_shares = all(0.0 < c <= 1.0 for c in coverages) and min(coverages, default=1.0) < 1.0
    are_rates = bool(false_match_rates) and all(0.0 < f < 1.0 for f in false_match_rates)
    of_shares = "shares above 0 and at most 1, one of them below 1"
    check_settings(
        "tradeoffs",
        thresholds=(thresholds, bool(thresholds), "one number or more"),
        coverages=(coverages, are_shares, of_shares),
        false_match_rates=(false_match_rates, are_rates, "shares above 0 and below 1"),
        most_groups=at_least(1, most_groups),
    )
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec, seen, words = settings_of(run, replicates=replicates), Seen(), words_of(run)

    def members_of(people: People) -> pl.DataFrame:
        members = _groups(run, spec.groups, people.rows["unit_id"])
        return large_groups(people, members, spec.statistics, most_groups, seen)

    for people in [*graded_people(run, seen), *found_people(run, seen)]:
        members = members_of(people)
        add_thresholds(people, members, thresholds, operating, spec.statistics, words, seen)
    sure = [(people, members_of(people)) for people in sure_people(run, seen)]
    add_coverage(sure, coverages, spec.statistics, words, seen)
    if PAIRS in run.evidence:
        units = _of_pairs(run.evidence[PAIRS])
        add_pairs(run, _groups(run, spec.groups, units), false_match_rates, spec.statistics, seen)
    if not seen.tables:
        raise _nothing(run, seen)
    notes = dict.fromkeys([*seen.notes, *(f"Trade-offs: {why}." for why in seen.lacking)])
    return Explained(findings_table(seen.findings), seen.tables, tuple(notes))


def _groups(run: Run, settings: Groups, units: pl.Series) -> pl.DataFrame:
    return groups_of(run, settings, units.unique(maintain_order=True))


def _of_pairs(pairs: pl.DataFrame) -> pl.Series:
    first = pairs["unit_id"].cast(pl.String)
    second = pairs["other_id"].explode().unique().cast(pl.String)
    return pl.concat([first, second]).drop_nulls().unique().sort()


def _nothing(run: Run, seen: Seen) -> SpecError:
    found = "; ".join(seen.lacking) or "none of them; the task " + repr(run.record.get("task"))
    return SpecError(
        "this run has no scores that a threshold could part",
        expected=f"the evidence {CLASSIFICATION} with scores, {DETECTIONS} or {PAIRS}",
        found=found,
        where="the analysis tradeoffs",
        hint="audit again with --score-column (and --positive), of detectors with --metric "
        "average_precision, of verifiers with --keep-pairs",
    )
