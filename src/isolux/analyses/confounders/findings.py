"""From cases to findings: the verdict on what ranks first, then the gaps at an equal mix.

The last step of the analysis ``confounders``, with the notes of what was left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses.confounders.cases import OVERLAP, PROBABLE, Case, number_of
from isolux.analyses.confounders.tests import Family
from isolux.analyses.confounders.words import (
    explanation_sentence,
    gap_sentence,
    nothing_sentence,
    row_of,
)
from isolux.statements.words import Words, words_of
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Run
from isolux.vocabulary.tables import FINDINGS, Status

__all__ = ["ICON2", "SENSITIVITY", "STANDARDISATION", "findings_of", "notes_of"]

ICON2, STANDARDISATION, SENSITIVITY = "icon2", "keiding-clayton-2014", "cinelli-hazlett-2020"
"""Keys of the analysis's references."""
_SHOWN = 5


def findings_of(
    run: Run, cases: Sequence[Case], family: Family, *, probable: float, alpha: float
) -> pl.DataFrame:
    """Say what was found: table ``findings``, what is established first."""
    words = words_of(run)
    rows = [
        row for case in cases for row in _told(case, words, family, probable=probable, alpha=alpha)
    ]
    if not rows:
        return FINDINGS.empty()
    # What is established first; what holds for all classes before a single one; what cannot be
    # told last. Within that, in the order of metrics and attributes.
    rows.sort(
        key=lambda row: (
            row["p_adjusted"] is None or row["p_adjusted"] > alpha,
            row.get("effect") is None,
            row["label"] is not None,
        )
    )
    ranked = [{**row, "rank": i} for i, row in enumerate(rows, start=1)]
    return FINDINGS.conform(pl.DataFrame(ranked, infer_schema_length=None))


def _told(
    case: Case, words: Words, family: Family, *, probable: float, alpha: float
) -> Iterator[dict[str, Any]]:
    """Say of one metric and attribute what explains the gap, and what is left of it."""
    n = int(case.layout.of_groups(case.cells.units)[case.facts.judged].sum())
    common = {"analysis": "confounders", "n": n, **row_of(case)}
    if case.pair is None:
        status = Status.INSUFFICIENT_UNITS.value
        yield {**common, "claim": nothing_sentence(case, words, None), "status": status,
               "p_adjusted": None}  # fmt: skip
        return
    raw_p = raw_p_of(case, family)
    if raw_p is None or raw_p > alpha or not case.ranked:
        gap = case.gap_of(case.raw)
        yield {
            **common,
            "claim": nothing_sentence(case, words, raw_p),
            "effect": gap.value,
            "low": gap.low,
            "high": gap.high,
            "p_adjusted": raw_p,
            "reference": ICON2,
            "status": Status.OK.value if raw_p is not None else Status.UNDEFINED.value,
        }
    else:
        yield common | _explained(case, words, family, raw_p, probable=probable, alpha=alpha)
    crossed_ones = [s for s in range(len(case.layout.strata)) if s not in case.singles]
    for s in dict.fromkeys([*case.ranked[:1], *crossed_ones]):
        p = _smallest(family, case.level[s].statistic[[case.pair]])
        own = _own_p(case, family)
        gap = case.gap_of(case.level[s])
        shown = own is not None and own <= alpha
        claimed = _claimed_p(case, s, p, own)
        yield {
            **common,
            "claim": gap_sentence(case, s, words, p, claimed=claimed, alpha=alpha, stands=shown),
            "effect": gap.value,
            "low": gap.low,
            "high": gap.high,
            "p_adjusted": claimed,
            "reference": STANDARDISATION,
            "status": _gap_status(case, s),
        }


def _explained(
    case: Case, words: Words, family: Family, raw_p: float, *, probable: float, alpha: float
) -> dict[str, Any]:
    s = case.ranked[0]
    proxy_p = _smallest(family, case.proxy[s].statistic)
    verdict = case.verdict(s, probable)
    sure = proxy_p is not None and proxy_p <= alpha
    delta = case.spread_of(case.of(s).reduction)
    claim = explanation_sentence(
        case, s, words, raw_p, probable=probable, verdict=verdict, sure=sure
    )
    claimed = verdict == PROBABLE
    return {
        "claim": claim,
        "effect": delta.value,
        "low": delta.low,
        "high": delta.high,
        "p_adjusted": max(raw_p, proxy_p) if claimed and proxy_p is not None else raw_p,
        "reference": ICON2,
        "status": Status.UNDEFINED.value if delta.value is None else Status.OK.value,
    }


def _own_p(case: Case, family: Family) -> float | None:
    """Give the p of the gap as it stands, of the pair that speaks: the audit's, else ours."""
    pair = case.pair or 0
    if np.isfinite(case.audited.p[pair]):
        return float(case.audited.p[pair])
    return _smallest(family, case.raw.statistic[[pair]])


def _claimed_p(case: Case, s: int, level: float | None, own: float | None) -> float | None:
    """Give the p of what a gap at an equal mix claims, by the role of what is held alike."""
    reading = case.standing[s].reading
    if reading == "after":
        return None
    if reading != "unknown" or level is None:
        return level
    return None if own is None else max(level, own)


def _gap_status(case: Case, s: int) -> str:
    if case.gap_of(case.level[s]).value is None:
        return Status.UNDEFINED.value
    if case.standing[s].reading == "after":
        return Status.BOUNDARY.value
    return Status.OK.value if case.covered(s) >= OVERLAP else Status.BOUNDARY.value


def raw_p_of(case: Case, family: Family) -> float | None:
    """Give the p of the groups' surest gap: the audit's own, else this analysis's."""
    return case.audited.smallest if case.audited.known else _smallest(family, case.raw.statistic)


def _smallest(family: Family, statistic: FloatArray) -> float | None:
    """Adjust the p of the surest of some gaps; None where none could be tested."""
    known = statistic[np.isfinite(statistic)]
    return number_of(family.p(known).min()) if len(known) else None


def notes_of(cases: Sequence[Case], min_cell: int) -> tuple[str, ...]:
    """Say which groups and values were left out, and what a metric's road implies."""
    notes = []
    for case in cases:
        where = f"{case.row['metric']} by {case.layout.sensitive.name}"
        strata = case.layout.strata
        left = [g for i, g in enumerate(case.layout.sensitive.groups) if i not in case.facts.judged]
        if left:
            notes.append(
                f"confounders, {where}: left out for having too few people: {', '.join(left)}"
            )
        for s, one in enumerate(case.facts.explanations):
            missing = [v for v, u in zip(strata[s].values, one.usable, strict=True) if not u]
            if missing and not one.status and case.pair is not None and s in case.singles:
                shown = ", ".join(missing[:_SHOWN]) + (" and more" if len(missing) > _SHOWN else "")
                notes.append(
                    f"confounders, {where}: at {len(missing)} value(s) of {strata[s].name} some "
                    f"group has fewer than {min_cell} people, so they are not "
                    f"controlled for: {shown}"
                )
            if case.pair is not None and not one.apart and case.covered(s) < OVERLAP:
                several = len(strata[s].parts) > 1
                notes.append(
                    f"confounders, {where}: at an equal mix of {strata[s].name} "
                    f"{1 - case.covered(s):.0%} of the people of a group are left out; "
                    + ("cross fewer attributes (confounders.together), " if several else "")
                    + "take wider bins (confounders.bins, confounders.quantiles) or a smaller "
                    "confounders.min_cell to compare more of them"
                )
        if case.info.statistic is not None and case.cells.weight.strides[:1] == (0,):
            notes.append(
                f"confounders, {where}: resampling keeps each group's mix of explanatory values"
            )
    return tuple(dict.fromkeys(notes))
