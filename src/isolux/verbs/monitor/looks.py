"""Runs as looks at one thing: in order, of one model, by one set of rules, each person once.

What bets need is that a day's people tell nothing of the next day's (``stats/sequences``), and
that a number means the same on every day. What does not fit is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import polars as pl

from isolux.verbs._run_source import RunSource, run_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.counts import refuse_counts
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import recorded_spec

Repeated = Literal["refuse", "first", "different"]
"""What becomes of ids that are in several runs: an error; only the first time counts; they are
different people."""

_FREE = ("data", "withdrawn", "images", "file", "format", "id_from", "data_option", "model_name",
         "prediction_option", "analyses", "repair_ages")  # fmt: skip
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Look:
    """One run, at one time."""

    name: str
    at: str
    run: Run


def looks_of(runs: Sequence[RunSource], at: Sequence[str] = ()) -> list[Look]:
    """Read runs as looks, and refuse those that cannot stand in one row."""
    if len(runs) < 2:
        raise SpecError(
            "there is nothing to watch", expected="two runs or more", found=f"{len(runs)}"
        )
    loaded = [run_of(run) for run in runs]
    names = [_name(run, i) for i, run in enumerate(runs, start=1)]
    times = _times(loaded, names, at)
    looks = [Look(*parts) for parts in zip(names, times, loaded, strict=True)]
    for look in looks:
        refuse_counts(look.run.evidence, "watching", "runs of people, named by their ids")
        if "model_a" in look.run.disparities.columns:
            raise SpecError(
                "a comparison of two models cannot be watched",
                expected="runs of `isolux audit`",
                found=look.name,
            )
    for before, after in pairwise(looks):
        if after.at < before.at:
            raise SpecError(
                "the looks are out of order",
                expected=f"{after.name} after {before.name}",
                found=f"{before.at}, then {after.at}",
                hint="name the runs in order of time; --at says when each was, if not when made",
            )
        _check_alike(looks[0], after)
    return looks


def people_once(looks: Sequence[Look], repeated: Repeated) -> tuple[list[Look], tuple[str, ...]]:
    """Let each cluster count once, or refuse, or take equal ids as different people."""
    rows_only = [look.name for look in looks if look.run.record.get("ids") == "row numbers"]
    if repeated == "different" or len(rows_only) == len(looks):
        why = "row numbers" if repeated != "different" else "taken as different people in each run"
        return list(looks), (f"ids are {why}: whether people were seen twice cannot be told",)
    seen: pl.DataFrame | None = None
    kept, left = [], 0
    for look in looks:
        own = _clusters(look.run)
        names = own.select("cluster").unique().with_columns(look=pl.lit(look.name))
        if seen is not None:
            again = names.join(seen, on="cluster")
            if again.height and repeated == "refuse":
                raise _seen_again(again, look)
            left += again.height
            names = names.join(seen, on="cluster", how="anti")
        fresh = own.join(names, on="cluster", how="semi")["unit_id"].unique()
        scores = look.run.scores.filter(pl.col("unit_id").is_in(fresh.implode()))
        kept.append(Look(look.name, look.at, replace(look.run, scores=scores)))
        seen = names if seen is None else pl.concat([seen, names])
    note = f"{left:,} clusters that an earlier run had already are left out of later ones"
    return kept, (note,) if left else ()


def _name(run: RunSource, place: int) -> str:
    return str(run) if isinstance(run, str | Path) else f"run {place}"


def _clusters(run: Run) -> pl.DataFrame:
    return run.scores.select(
        "unit_id",
        cluster=pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id")),
    ).unique()


def _times(runs: Sequence[Run], names: Sequence[str], at: Sequence[str]) -> list[str]:
    if at and len(at) != len(runs):
        raise SpecError(
            "not every run has a time", expected=f"{len(runs)} times", found=f"{len(at)}",
            where="--at",
        )  # fmt: skip
    found: list[datetime] = []
    for i, name in enumerate(names):
        text = str(at[i] if at else runs[i].record.get("created", ""))
        try:
            told = datetime.fromisoformat(text)
        except ValueError:
            raise SpecError(
                f"{name} has no time",
                expected="ISO 8601, such as 2026-03-05 or 2026-03-05T14:00",
                found=repr(text),
                where="--at",
            ) from None
        found.append(told)
    zoned = [time.tzinfo is not None for time in found]
    if any(zoned) and not all(zoned):
        raise SpecError(
            "times with and without an offset from UTC cannot be put in order",
            expected="an offset in each (2026-03-05T14:00+02:00), or in none",
            found=f"{found[zoned.index(True)].isoformat()} and "
            f"{found[zoned.index(False)].isoformat()}",
            where="--at",
        )
    found = [time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time for time in found]
    return [time.isoformat(timespec="seconds") for time in found]


def _check_alike(first: Look, other: Look) -> None:
    for key in ("task", "model"):
        a, b = first.run.record.get(key), other.run.record.get(key)
        if a != b:
            raise SpecError(
                f"the runs are of different {key}s, whose numbers are not of one thing",
                expected=f"{a!r}, as {first.name} has it",
                found=f"{b!r} in {other.name}",
                hint="name the model alike in all runs (--model-name), or compare the two"
                if key == "model"
                else None,
            )
    ours, theirs = (_rules(look.run) for look in (first, other))
    for key in sorted(ours.keys() | theirs.keys()):
        if ours.get(key) != theirs.get(key):
            raise SpecError(
                f"the runs differ in the setting {key!r}, so that a change could be the setting's",
                expected=f"{ours.get(key)!r}, as {first.name} has it",
                found=f"{theirs.get(key)!r} in {other.name}",
                hint="audit them alike",
            )


def _rules(run: Run) -> dict[str, Any]:
    """Return every setting that alters what is scored and who is in which group."""
    spec = recorded_spec(run.record)
    kept: dict[str, Any] = {}
    for stage in ("people", "sample", "predictions", "task", "groups"):
        own = getattr(spec, stage).model_dump(mode="json")
        kept |= {f"{stage}.{name}": value for name, value in own.items() if name not in _FREE}
    return kept


def _seen_again(again: pl.DataFrame, look: Look) -> SpecError:
    some = again["cluster"].str.slice(2).sort().head(_SHOWN).to_list()
    return SpecError(
        "people are in two runs, and would be counted as new evidence twice",
        expected="each person, or cluster, in one run",
        found=f"{again.height:,} of {again['look_right'][0]} again in {look.name}: "
        + ", ".join(some),
        hint="--repeated first keeps the first time; --repeated different, if ids start again in "
        "every run",
    )
