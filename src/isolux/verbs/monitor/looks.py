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

import numpy as np
import polars as pl

from isolux.stats.sequences import thinned
from isolux.verbs._in_memory import RunSource, run_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.counts import refuse_counts
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import recorded_spec

Repeated = Literal["refuse", "first", "different"]
"""What becomes of ids that are in several runs: an error; only the first time counts; they are
different people."""

_FREE = (
    "data",
    "withdrawn",
    "images",
    "file",
    "format",
    "id_from",
    "data_option",
    "model_name",
    "prediction_option",
    "analyses",
    "repair_ages",
)
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
        own = _clusters(look)
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


def _times(runs: Sequence[Run], names: Sequence[str], at: Sequence[str]) -> list[str]:
    if at and len(at) != len(runs):
        raise SpecError(
            "not every run has a time",
            expected=f"{len(runs)} times",
            found=f"{len(at)}",
            where="--at",
        )
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


_SAME = 1e-9
"""Weights that differ by less, as a share, are one."""
_SLACK = 1e-9
"""A weight above the heaviest by less, as a share, is rounding."""


def kept_by_weight(
    looks: Sequence[Look], heaviest: float | None, seed: int
) -> tuple[list[Look], tuple[str, ...]]:
    """Keep each look's clusters by their weights, and say how many are kept."""
    _refuse_ways(looks)
    drawn = dict(looks[0].run.record.get("sample") or {})
    by_cells = bool(drawn.get("population"))
    if not (drawn.get("weight") or by_cells):
        if heaviest is not None:
            raise SpecError(
                "these runs have no weights",
                expected="runs of audits with --weight",
                found=f"--heaviest {heaviest:g}",
            )
        return list(looks), ()
    _refuse_both(drawn, heaviest)
    most, kept, of, left = heaviest, [], 0, 0
    for t, look in enumerate(looks):
        weights = _of_clusters(look)
        largest = float(weights["weight"].max() or 0.0)  # type: ignore[arg-type]
        if by_cells:
            most = largest
        most = largest if most is None else most
        if largest > most * (1.0 + _SLACK):
            raise _too_heavy(look, largest, most, looks[0], given=heaviest is not None)
        rng = np.random.default_rng([seed, t, 1])
        own = weights.filter(pl.Series(thinned(rng, weights["weight"].to_numpy(), most)))
        units = _clusters(look).join(own, on="cluster", how="semi")["unit_id"]
        scores = look.run.scores.filter(pl.col("unit_id").is_in(units.implode()))
        kept.append(Look(look.name, look.at, replace(look.run, scores=scores)))
        of, left = of + weights.height, left + own.height
    bound = "" if by_cells else f" ({most:g})"
    note = (
        f"weighted: each cluster is kept with a chance of its weight over the heaviest{bound}, so "
        f"that those kept stand for the population; {left:,} of {of:,} clusters are"
    )
    return kept, (note,)


def _clusters(look: Look) -> pl.DataFrame:
    cluster = pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id"))
    return look.run.scores.select(pl.col("unit_id").cast(pl.String), cluster=cluster).unique()


def _of_clusters(look: Look) -> pl.DataFrame:
    """Return each cluster's weight, by name, so that the order of rows moves nothing."""
    table = look.run.evidence[SAMPLE].unique("unit_id", keep="first").select("unit_id", "weight")
    held = _clusters(look).join(table, on="unit_id", how="left").group_by("cluster")
    found = held.agg(pl.col("weight").max(), least=pl.col("weight").min()).sort("cluster")
    torn = found.filter(pl.col("least") < pl.col("weight") * (1.0 - _SAME))
    if torn.height:
        row = torn.row(0, named=True)
        raise SpecError(
            f"weights differ within {torn.height:,} of {found.height:,} clusters, and a cluster "
            "counts once: its units' weights do not tell how often it was drawn",
            expected="one weight for all units of a cluster",
            found=f"{row['least']:g} and {row['weight']:g} in {row['cluster'][2:]!r}",
            where=look.name,
            hint="audit with clusters that were drawn as a whole, or without --cluster where units "
            "were drawn one by one",
        )
    return found


def _refuse_ways(looks: Sequence[Look]) -> None:
    for look in looks:
        if (look.run.record.get("sample") or {}).get("other_way"):
            raise SpecError(
                "two-way clusters cannot be monitored: a bet needs independent clusters, and "
                "photos by one photographer are in many",
                expected="an audit with one --cluster, that of which more photos are alike",
                found="clusters both ways",
                where=look.name,
            )


def _refuse_both(drawn: dict[str, Any], heaviest: float | None) -> None:
    if drawn.get("population") and (drawn.get("weight") or heaviest is not None):
        raise SpecError(
            "design weights that were adjusted to a population have no largest value known before "
            "a look",
            expected="--weight (with --heaviest), or --population, in the audits",
            found="--population with " + ("--weight" if drawn.get("weight") else "--heaviest"),
        )


def _too_heavy(look: Look, largest: float, most: float, first: Look, *, given: bool) -> SpecError:
    bound = "--heaviest" if given else f"the largest weight of {first.name}"
    return SpecError(
        "a cluster weighs more than the heaviest there can be, so that chances of being kept "
        "cannot be set",
        expected=f"at most {most:g}, {bound}",
        found=f"{largest:g}",
        where=look.name,
        hint="--heaviest names the largest weight that the design can give: one over the smallest "
        "chance of being drawn",
    )
