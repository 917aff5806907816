"""From cases to findings: the verdict on what ranks first, then the gaps at an equal mix.

The last step of the analysis ``confounders``, with the notes of what was left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._judged import findings_table
from isolux.analyses.confounders.cases import OVERLAP, PROBABLE, Case, Mix, Number
from isolux.analyses.confounders.sentences import Sentences
from isolux.analyses.confounders.tests import Family
from isolux.statements.words import Words
from isolux.vocabulary.tables import Status

ICON2, STANDARDISATION = "icon2", "keiding-clayton-2014"
"""Keys of the analysis's references."""
_MAX_LISTED = 5


def findings_of(
    cases: Sequence[Case], words: Words, family: Family, *, alpha: float
) -> pl.DataFrame:
    """Say what was found: table ``findings``, what is established first."""
    rows = [row for case in cases for row in _rows(Sentences(case, words, alpha), family)]
    # What is established first; what holds for all classes before a single one; what cannot be
    # told last. Within that, in the order of metrics and attributes.
    rows.sort(
        key=lambda row: (
            row["p_adjusted"] is None or row["p_adjusted"] > alpha,
            row["effect"] is None,
            row["label"] is not None,
        )
    )
    return findings_table(rows)


def _rows(say: Sentences, family: Family) -> Iterator[dict[str, Any]]:
    """Say of one metric and attribute what explains the gap, and what is left of it."""
    case = say.case
    common = {
        "analysis": "confounders",
        "n": int(case.layout.of_groups(case.cells.units)[case.facts.judged].sum()),
        "metric": case.row["metric"],
        "label": case.row["label"],
        "attribute": case.layout.sensitive.name,
        "effect": None,
        "p_adjusted": None,
    }
    if case.pair is None:
        yield common | {"claim": say.nothing(None), "status": Status.INSUFFICIENT_UNITS.value}
        return
    common |= dict(zip(("group_a", "group_b"), case.names, strict=True))
    p = case.smallest_p(family)
    if p is None or p > say.alpha or not case.ranked:
        status = Status.UNDEFINED if p is None else Status.OK
        gap = case.gap_of(case.facts.gap)
        yield common | _cells(say.nothing(p), gap, p, ICON2, status)
    else:
        s = case.ranked[0]
        proxy_p = family.smallest_p(case.proxies[s])
        verdict, delta = case.verdict(s), case.spread_of(case.of(s).reduction)
        sure = proxy_p is not None and proxy_p <= say.alpha
        claim = say.explanation(s, p, verdict=verdict, sure=sure)
        larger = max(p, proxy_p) if verdict == PROBABLE and proxy_p is not None else p
        status = Status.UNDEFINED if delta.value is None else Status.OK
        yield common | _cells(claim, delta, larger, ICON2, status)
    crossed = [s for s in range(len(case.layout.strata)) if s not in case.singles]
    p_unadjusted = case.p_of_gap(family)
    stands = p_unadjusted is not None and p_unadjusted <= say.alpha
    for s in dict.fromkeys([*case.ranked[:1], *crossed]):
        mix = case.mix_of(s, family)
        claimed_p = _claimed_p(mix, p_unadjusted)
        claim = say.gap(mix, claimed_p, stands=stands)
        yield common | _cells(claim, mix.gap, claimed_p, STANDARDISATION, _gap_status(mix))


def _cells(
    claim: str, effect: Number, p: float | None, reference: str, status: Status
) -> dict[str, Any]:
    return {
        "claim": claim,
        "effect": effect.value,
        "low": effect.low,
        "high": effect.high,
        "p_adjusted": p,
        "reference": reference,
        "status": status.value,
    }


def _claimed_p(mix: Mix, p_unadjusted: float | None) -> float | None:
    """Give the p of what a gap at an equal mix claims, by the role of what is held alike."""
    if mix.standing.reading == "after":
        return None
    if mix.standing.reading != "unknown" or mix.p is None:
        return mix.p
    return None if p_unadjusted is None else max(mix.p, p_unadjusted)


def _gap_status(mix: Mix) -> Status:
    if mix.gap.value is None:
        return Status.UNDEFINED
    is_sound = mix.standing.reading != "after" and mix.covered >= OVERLAP
    return Status.OK if is_sound else Status.BOUNDARY


def notes_of(cases: Sequence[Case], min_cell: int) -> Iterator[str]:
    """Say which groups and values were left out, and what a metric's road implies."""
    for case in cases:
        where = f"confounders, {case.row['metric']} by {case.layout.sensitive.name}"
        groups = case.layout.sensitive.groups
        small = [group for i, group in enumerate(groups) if i not in case.facts.judged]
        if small:
            yield f"{where}: left out for having too few people: {', '.join(small)}"
        if case.pair is not None:
            for s in range(len(case.layout.strata)):
                yield from _notes_of_values(case, s, where, min_cell)
        if case.info.statistic is not None and case.cells.weight.strides[:1] == (0,):
            yield f"{where}: resampling keeps each group's mix of explanatory values"


def _notes_of_values(case: Case, s: int, where: str, min_cell: int) -> Iterator[str]:
    strata, one = case.layout.strata[s], case.of(s)
    values = np.array(strata.values, dtype=np.object_)[~one.usable].tolist()
    is_single = len(strata.parts) == 1
    if values and not one.status and is_single:
        listed = ", ".join(values[:_MAX_LISTED]) + (" and more" * (len(values) > _MAX_LISTED))
        yield (
            f"{where}: at {len(values)} value(s) of {strata.name} some group has fewer than "
            f"{min_cell} people, so they are not controlled for: {listed}"
        )
    covered = one.mixed.covered(case.pair or 0)
    if not one.is_separated and covered < OVERLAP:
        fewer = "" if is_single else "name fewer attributes (confounders.explanatory), "
        yield (
            f"{where}: at an equal mix of {strata.name} {1 - covered:.0%} of the people of a group "
            f"are left out; {fewer}take wider bins (confounders.bins) or a "
            "smaller confounders.min_cell to compare more of them"
        )
