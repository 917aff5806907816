"""People who withdrew after an audit, taken out of what a page shows of it.

The run's values were measured with them and stay so. What a file says of everyone else must not be
subtracted from those values: what is left would be the people who withdrew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.people.withdrawal import runs_without
from isolux.people.withdrawn_lists import read_withdrawn
from isolux.viewer import Shown
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError

_HINT = "audit again with --withdrawn FILE, and view that run"


def shown_without(
    shown: Sequence[Shown], withdrawn: str | Path, *, allow_unmatched: bool
) -> list[Shown]:
    """Take out who is on a list: their rows, and whatever would tell of them by subtraction."""
    listed = read_withdrawn(withdrawn)
    kept = runs_without([one.run for one in shown], listed, allow_unmatched=allow_unmatched)
    return [
        replace(one, run=_told(run), whole=False) if _units(run) != _units(one.run) else one
        for one, run in zip(shown, kept, strict=True)
    ]


def refuse_differences(before: Sequence[Shown], after: Sequence[Shown], *, people: bool) -> None:
    """Refuse a file in which what is listed, less what is counted, is who withdrew."""
    if all(one.whole for one in after):
        return
    if people:
        raise SpecError(
            "people who withdrew could be worked out from this file: the run's values still count "
            "them, and the list of all others would be in it as well",
            expected="--bundle without --people, or a run without those who withdrew",
            found="--people with --withdrawn",
            hint=_HINT,
        )
    units = [_units(one.run) for one in after]
    gone = [_units(one.run) - left for one, left in zip(before, units, strict=True)]
    for i, some in enumerate(units):
        for j, others in enumerate(units[:i]):
            if gone[i] != gone[j] and some & others:
                raise SpecError(
                    "people who withdrew could be worked out from this file: one run's values "
                    "count more of them than the other's, and most people are in both",
                    expected="runs that count the same people",
                    found=f"{after[j].name} and {after[i].name}",
                    hint=f"{_HINT}; or write a file for each run",
                )


def _units(run: Run) -> frozenset[str]:
    tables = [run.scores, run.attributes, *run.evidence.values()]
    held = [t["unit_id"].drop_nulls().cast(pl.String) for t in tables if "unit_id" in t.columns]
    return frozenset(pl.concat(held).unique().to_list()) if held else frozenset()


def _told(run: Run) -> Run:
    told = (
        "People withdrew after this audit, and its values still rest on them: audit again with "
        "--withdrawn to take them out of the values. Spreads of scores, and who gained and lost, "
        "are left out."
    )
    warnings = [told, *(run.record.get("warnings") or ())]
    return replace(run, record={**run.record, "warnings": warnings})
