"""How a run was made, written down: the content of ``audit.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from isolux.groups.estimates import Estimates
from isolux.people.synthetic import synthetic_marker, synthetic_note
from isolux.stats.statistic import PairStatistic
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.info import Info, Reference, TaskInfo
from isolux.vocabulary.notes import by_severity
from isolux.vocabulary.spec import AuditSpec

_VERSIONS = ("isolux", "numpy", "polars", "scipy", "numba", "vl-convert-python")


def record_of(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    estimates: Estimates,
    inputs: Mapping[str, str],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Write down what was audited, with which settings, versions and references."""
    data = dataset.info
    # A metric that is no mean of units' scores leaves ``units`` empty: its evidence then says.
    tables = [t for t in (scores.units, *scores.evidence.values()) if t.height]
    # Expressions, since a column of one value may be kept as that value.
    named = [t.select(pl.col("model").cast(pl.String).unique(maintain_order=True)) for t in tables]
    models = list(dict.fromkeys(m for own in named for m in own.to_series().drop_nulls()))
    unclustered = all(
        t.select(pl.col("cluster_id").is_null().all()).item()
        for t in tables
        if "cluster_id" in t.columns
    )
    used: list[Info] = [data, scores.info]
    marker = synthetic_marker(
        [*filter(None, [spec.people.data.partition(":")[2]]), *dataset.inputs]
    )
    told = [] if marker is None else [synthetic_note(marker)]
    warnings, plain = by_severity([*told, *notes])
    return {
        "isolux": _version("isolux"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": spec.flat(),
        "dataset": {
            "title": data.title,
            "licence": data.licence,
            "judgement": data.judgement,
            "citation": [r.citation for r in data.references],
            "terms": dict(data.terms),
            "units": dict(data.units),
            "noun": data.noun,
            **({} if marker is None else {"synthetic": True}),
        },
        "model": ", ".join(models),
        "task": spec.task.name,
        "metrics": _reading_order(scores.info),
        "measures": {
            m.name: {"title": m.title, "unit": m.unit, "direction": m.direction}
            for m in scores.info.metrics
        },
        **({"chosen": dict(scores.chosen)} if scores.chosen else {}),
        "ids": "row numbers" if dataset.ids_are_rows else "declared",
        "evidence": sorted(scores.evidence),
        "inputs": dict(inputs),
        "versions": {name: v for name in _VERSIONS if (v := _version(name))},
        "seed": spec.statistics.seed,
        "warnings": warnings,
        "notes": plain,
        "references": _references(used, spec),
        "clusters": {
            "column": None if unclustered else (spec.people.cluster or _cluster_word(dataset)),
            "n_clusters": int(estimates.n_clusters[0].max(initial=0)),
            "n_units": _people(estimates),
        },
    }


def _reading_order(info: TaskInfo) -> list[str]:
    """Name what was measured: what is read first where ``--metric`` names nothing, first."""
    names = [metric.name for metric in info.metrics]
    return [name for name in info.defaults if name in names] + [
        name for name in names if name not in info.defaults
    ]


def _people(estimates: Estimates) -> int:
    """Count who was judged; a measure of pairs counts pairs."""
    of_units = [not isinstance(m.info.statistic, PairStatistic) for m in estimates.measures]
    counts = estimates.n_units[0][of_units] if any(of_units) else estimates.n_units[0]
    return int(counts.max(initial=0))


def _cluster_word(dataset: Dataset) -> str | None:
    """Name what a loader took as clusters when nobody said what to take; None: each row alone."""
    instances = dataset.instances
    # Pairs of which nothing says who is in them are rows, each with two units.
    of_pairs = "pair_id" in instances.columns
    if of_pairs and instances["cluster_id"].equals(instances["pair_id"]):
        return None
    for column in ("subject_id", "image_id", "video_id", "household_id"):
        if column in instances.columns and instances["cluster_id"].equals(instances[column]):
            return column.removesuffix("_id")
    return "people" if of_pairs else "cluster_id"


@cache
def _version(package: str) -> str:
    """Look a package's version up; a process audits many times, and each look reads a file."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _references(used: Sequence[Info], spec: AuditSpec) -> list[dict[str, str]]:
    """List what ran and nothing else, each publication once."""
    from isolux.stats.references import of_methods

    found: dict[tuple[str, str], Reference] = {}
    every = [r for info in used for r in info.references]
    drawn = any(spec.sample.model_dump().values())
    methods = of_methods(spec.statistics.interval, spec.disparity.correction, drawn=drawn)
    for reference in [*every, *methods]:
        found.setdefault((reference.key, reference.place), reference)
    return [
        {"key": r.key, "citation": r.citation, "place": r.place, "url": r.url}
        for r in found.values()
    ]
