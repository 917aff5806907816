"""Runs as snapshots of one model: in order, with the same settings, each person once.

Sequential tests need people that are independent between snapshots (``stats/sequences``), and
numbers that mean the same in each. Runs that do not fit are refused by name.
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

from isolux.api._tables_from_memory import RunSource, run_of
from isolux.core.containers import Run
from isolux.core.counts import refuse_count_tables
from isolux.core.errors import SpecError
from isolux.core.spec import read_recorded_spec
from isolux.core.survey_sample import SAMPLE
from isolux.stats.sequential_tests import thin_clusters_to_equal_weight

Repeated = Literal["refuse", "first", "different"]
"""What becomes of ids that are in several runs: an error; only the first time counts; they are
different people."""

_MAY_DIFFER = (
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
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One run, with its name and time."""

    name: str
    timestamp: str
    run: Run


def read_snapshots(runs: Sequence[RunSource], timestamps: Sequence[str] = ()) -> list[Snapshot]:
    """Read runs as snapshots, and refuse runs that cannot be monitored together."""
    if len(runs) < 2:
        raise SpecError(
            "there is nothing to watch", expected="two runs or more", found=f"{len(runs)}"
        )
    loaded = [run_of(run) for run in runs]
    names = [_name_run(run, i) for i, run in enumerate(runs, start=1)]
    times = _read_or_parse_timestamps(loaded, names, timestamps)
    snapshots = [Snapshot(*fields) for fields in zip(names, times, loaded, strict=True)]
    for snapshot in snapshots:
        refuse_count_tables(snapshot.run.evidence, "watching", "runs of people, named by their ids")
        if "model_a" in snapshot.run.disparities.columns:
            raise SpecError(
                "a comparison of two models cannot be watched",
                expected="runs of `isolux audit`",
                found=snapshot.name,
            )
    for earlier, later in pairwise(snapshots):
        if later.timestamp < earlier.timestamp:
            raise SpecError(
                "the looks are out of order",
                expected=f"{later.name} after {earlier.name}",
                found=f"{earlier.timestamp}, then {later.timestamp}",
                hint="name the runs in order of time; --timestamp says when each was, if not when"
                " made",
            )
        _check_same_settings(snapshots[0], later)
    return snapshots


def resolve_repeated_clusters(
    snapshots: Sequence[Snapshot], repeated_people: Repeated
) -> tuple[list[Snapshot], tuple[str, ...]]:
    """Handle clusters in several runs: refuse, keep the first, or treat as different people."""
    rows_only = [
        snapshot.name for snapshot in snapshots if snapshot.run.record.get("ids") == "row numbers"
    ]
    if repeated_people == "different" or len(rows_only) == len(snapshots):
        reason = (
            "row numbers"
            if repeated_people != "different"
            else "taken as different people in each run"
        )
        return list(snapshots), (
            f"ids are {reason}: whether people were seen twice cannot be told",
        )
    earlier_clusters: pl.DataFrame | None = None
    deduplicated_snapshots, n_excluded = [], 0
    for snapshot in snapshots:
        clusters = _list_clusters(snapshot)
        names = clusters.select("cluster").unique().with_columns(look=pl.lit(snapshot.name))
        if earlier_clusters is not None:
            repeated_clusters = names.join(earlier_clusters, on="cluster")
            if repeated_clusters.height and repeated_people == "refuse":
                raise _build_repeated_people_error(repeated_clusters, snapshot)
            n_excluded += repeated_clusters.height
            names = names.join(earlier_clusters, on="cluster", how="anti")
        new_ids = clusters.join(names, on="cluster", how="semi")["unit_id"].unique()
        scores = snapshot.run.scores.filter(pl.col("unit_id").is_in(new_ids.implode()))
        deduplicated_snapshots.append(
            Snapshot(snapshot.name, snapshot.timestamp, replace(snapshot.run, scores=scores))
        )
        earlier_clusters = (
            names if earlier_clusters is None else pl.concat([earlier_clusters, names])
        )
    note = f"{n_excluded:,} clusters that an earlier run had already are left out of later ones"
    return deduplicated_snapshots, (note,) if n_excluded else ()


def _name_run(run: RunSource, position: int) -> str:
    return str(run) if isinstance(run, str | Path) else f"run {position}"


def _read_or_parse_timestamps(
    runs: Sequence[Run], names: Sequence[str], timestamps: Sequence[str]
) -> list[str]:
    if timestamps and len(timestamps) != len(runs):
        raise SpecError(
            "not every run has a time",
            expected=f"{len(runs)} times",
            found=f"{len(timestamps)}",
            where="--timestamp",
        )
    times: list[datetime] = []
    for i, name in enumerate(names):
        text = str(timestamps[i] if timestamps else runs[i].record.get("created", ""))
        try:
            parsed_time = datetime.fromisoformat(text)
        except ValueError:
            raise SpecError(
                f"{name} has no time",
                expected="ISO 8601, such as 2026-03-05 or 2026-03-05T14:00",
                found=repr(text),
                where="--timestamp",
            ) from None
        times.append(parsed_time)
    has_offset = [time.tzinfo is not None for time in times]
    if any(has_offset) and not all(has_offset):
        raise SpecError(
            "times with and without an offset from UTC cannot be put in order",
            expected="an offset in each (2026-03-05T14:00+02:00), or in none",
            found=f"{times[has_offset.index(True)].isoformat()} and "
            f"{times[has_offset.index(False)].isoformat()}",
            where="--timestamp",
        )
    times = [time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time for time in times]
    return [time.isoformat(timespec="seconds") for time in times]


def _check_same_settings(first: Snapshot, later: Snapshot) -> None:
    for key in ("task", "model"):
        a, b = first.run.record.get(key), later.run.record.get(key)
        if a != b:
            raise SpecError(
                f"the runs are of different {key}s, whose numbers are not of one thing",
                expected=f"{a!r}, as {first.name} has it",
                found=f"{b!r} in {later.name}",
                hint="name the model alike in all runs (--model-name), or compare the two"
                if key == "model"
                else None,
            )
    first_settings, later_settings = (_list_settings(snapshot.run) for snapshot in (first, later))
    for key in sorted(first_settings.keys() | later_settings.keys()):
        if first_settings.get(key) != later_settings.get(key):
            raise SpecError(
                f"the runs differ in the setting {key!r}, so that a change could be the setting's",
                expected=f"{first_settings.get(key)!r}, as {first.name} has it",
                found=f"{later_settings.get(key)!r} in {later.name}",
                hint="audit them alike",
            )


def _list_settings(run: Run) -> dict[str, Any]:
    """List the settings that alter what is scored and who is in which group."""
    spec = read_recorded_spec(run.record)
    settings: dict[str, Any] = {}
    for stage in ("people", "sample", "predictions", "task", "groups"):
        stage_settings = getattr(spec, stage).model_dump(mode="json")
        settings |= {
            f"{stage}.{name}": setting
            for name, setting in stage_settings.items()
            if name not in _MAY_DIFFER
        }
    return settings


def _build_repeated_people_error(repeated_clusters: pl.DataFrame, snapshot: Snapshot) -> SpecError:
    examples = repeated_clusters["cluster"].str.slice(2).sort().head(_MAX_LISTED).to_list()
    return SpecError(
        "people are in two runs, and would be counted as new evidence twice",
        expected="each person, or cluster, in one run",
        found=f"{repeated_clusters.height:,} of {repeated_clusters['look_right'][0]} again in"
        f" {snapshot.name}: " + ", ".join(examples),
        hint="--repeated-people first keeps the first time; --repeated-people different, if"
        " ids start again in every run",
    )


_EQUAL_WEIGHT_TOLERANCE = 1e-9
"""Relative difference up to which weights within a cluster are equal."""
_MAX_WEIGHT_TOLERANCE = 1e-9
"""Relative excess over the maximum weight that is rounding."""


def thin_clusters_by_weight(
    snapshots: Sequence[Snapshot], given_max_weight: float | None, seed: int
) -> tuple[list[Snapshot], tuple[str, ...]]:
    """Thin each snapshot's clusters in proportion to their weights, and note how many are kept."""
    _refuse_two_way_clusters(snapshots)
    sample_record = dict(snapshots[0].run.record.get("sample") or {})
    is_calibrated = bool(sample_record.get("population"))
    if not (sample_record.get("weight") or is_calibrated):
        if given_max_weight is not None:
            raise SpecError(
                "these runs have no weights",
                expected="runs of audits with --weight",
                found=f"--max-weight {given_max_weight:g}",
            )
        return list(snapshots), ()
    _refuse_calibrated_weights(sample_record, given_max_weight)
    max_weight, thinned_snapshots, n_clusters, n_kept = given_max_weight, [], 0, 0
    for t, snapshot in enumerate(snapshots):
        weights = _read_cluster_weights(snapshot)
        largest_weight = float(weights["weight"].max() or 0.0)  # type: ignore[arg-type]
        if is_calibrated:
            max_weight = largest_weight
        max_weight = largest_weight if max_weight is None else max_weight
        if largest_weight > max_weight * (1.0 + _MAX_WEIGHT_TOLERANCE):
            raise _build_excess_weight_error(
                snapshot,
                largest_weight,
                max_weight,
                snapshots[0],
                is_user_set=given_max_weight is not None,
            )
        rng = np.random.default_rng([seed, t, 1])
        kept_clusters = weights.filter(
            pl.Series(thin_clusters_to_equal_weight(rng, weights["weight"].to_numpy(), max_weight))
        )
        units = _list_clusters(snapshot).join(kept_clusters, on="cluster", how="semi")["unit_id"]
        scores = snapshot.run.scores.filter(pl.col("unit_id").is_in(units.implode()))
        thinned_snapshots.append(
            Snapshot(snapshot.name, snapshot.timestamp, replace(snapshot.run, scores=scores))
        )
        n_clusters, n_kept = n_clusters + weights.height, n_kept + kept_clusters.height
    max_weight_text = "" if is_calibrated else f" ({max_weight:g})"
    note = (
        "weighted: each cluster is kept with a chance of its weight over the heaviest"
        f"{max_weight_text}, so that those kept stand for the population; {n_kept:,} of"
        f" {n_clusters:,} clusters are"
    )
    return thinned_snapshots, (note,)


def _list_clusters(snapshot: Snapshot) -> pl.DataFrame:
    cluster = pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id"))
    return snapshot.run.scores.select(pl.col("unit_id").cast(pl.String), cluster=cluster).unique()


def _read_cluster_weights(snapshot: Snapshot) -> pl.DataFrame:
    """Return each cluster's weight, sorted by name so that results do not depend on row order."""
    table = (
        snapshot.run.evidence[SAMPLE].unique("unit_id", keep="first").select("unit_id", "weight")
    )
    cluster_rows = (
        _list_clusters(snapshot).join(table, on="unit_id", how="left").group_by("cluster")
    )
    cluster_weights = cluster_rows.agg(pl.col("weight").max(), least=pl.col("weight").min()).sort(
        "cluster"
    )
    inconsistent_rows = cluster_weights.filter(
        pl.col("least") < pl.col("weight") * (1.0 - _EQUAL_WEIGHT_TOLERANCE)
    )
    if inconsistent_rows.height:
        row = inconsistent_rows.row(0, named=True)
        raise SpecError(
            f"weights differ within {inconsistent_rows.height:,} of {cluster_weights.height:,}"
            " clusters, and a cluster "
            "counts once: its units' weights do not tell how often it was drawn",
            expected="one weight for all units of a cluster",
            found=f"{row['least']:g} and {row['weight']:g} in {row['cluster'][2:]!r}",
            where=snapshot.name,
            hint="audit with clusters that were drawn as a whole, or without --cluster where units "
            "were drawn one by one",
        )
    return cluster_weights


def _refuse_two_way_clusters(snapshots: Sequence[Snapshot]) -> None:
    for snapshot in snapshots:
        if (snapshot.run.record.get("sample") or {}).get("other_way"):
            raise SpecError(
                "two-way clusters cannot be monitored: a bet needs independent clusters, and "
                "photos by one photographer are in many",
                expected="an audit with one --cluster, that of which more photos are alike",
                found="clusters both ways",
                where=snapshot.name,
            )


def _refuse_calibrated_weights(sample_record: dict[str, Any], max_weight: float | None) -> None:
    if sample_record.get("population") and (sample_record.get("weight") or max_weight is not None):
        raise SpecError(
            "design weights that were adjusted to a population have no largest value known before "
            "a look",
            expected="--weight (with --max-weight), or --population, in the audits",
            found="--population with "
            + ("--weight" if sample_record.get("weight") else "--max-weight"),
        )


def _build_excess_weight_error(
    snapshot: Snapshot,
    largest_weight: float,
    max_weight: float,
    first: Snapshot,
    *,
    is_user_set: bool,
) -> SpecError:
    bound = "--max-weight" if is_user_set else f"the largest weight of {first.name}"
    return SpecError(
        "a cluster weighs more than the heaviest there can be, so that chances of being kept "
        "cannot be set",
        expected=f"at most {max_weight:g}, {bound}",
        found=f"{largest_weight:g}",
        where=snapshot.name,
        hint="--max-weight names the largest weight that the design can give: one over the"
        " smallest chance of being drawn",
    )
