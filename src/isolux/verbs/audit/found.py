"""From scores to findings: the same for files and for tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from isolux.disparity.measured import Disparities, measure_disparities
from isolux.groups.accounting import Losses, account_for
from isolux.groups.binning import Bins, bin_labels, parse_bins, quantile_edges
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.membership import Membership, membership
from isolux.groups.settings import check_references, groupings, references
from isolux.groups.small_groups import with_small_groups
from isolux.groups.unanswered import cautions, count_undetected, missed, on_missed, unanswered
from isolux.io.background_packing import begin_packing
from isolux.io.record_paths import unrooted
from isolux.people.blotting import unnamed
from isolux.people.drawn import is_asked, ways_of
from isolux.people.synthetic import synthetic_marker, synthetic_note
from isolux.stats.statistic import PairStatistic
from isolux.verbs.audit.protocol import with_tables
from isolux.verbs.explain import explain_run, first_analyses, role_options, with_references
from isolux.verbs.ledger import audits_share
from isolux.vocabulary.containers import Dataset, Run, Scores
from isolux.vocabulary.counts import COUNTS, TIMES, refuse_repeated_groups, with_times
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import Info, TaskInfo
from isolux.vocabulary.notes import Caution, by_severity
from isolux.vocabulary.progress import at
from isolux.vocabulary.spec import AuditSpec
from isolux.vocabulary.tables import ATTRIBUTES, FINDINGS, SCORES, check

MOST_GROUPS = 300
"""Values that an attribute may have: 300 groups are 45,000 pairs for every metric."""
PAIRS = "pairs"
"""Evidence that can hold millions of rows, and that no comparison of models reads."""


def found_in(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    inputs: Mapping[str, str],
    planted: Sequence[Mapping[str, Any]] | None = None,
    more: Mapping[str, Any] | None = None,
    beside: pl.DataFrame | None = None,
) -> tuple[Run, AuditSpec]:
    """Put scores into groups, measure, compare and explain."""
    judged = scores.judged_units()["unit_id"]
    sampled: dict[str, Any] = {}
    if is_asked(spec.sample) or ways_of(spec.people.cluster)[1] or SAMPLE in scores.evidence:
        from isolux.verbs.audit.drawn import drawn_scores, population_inputs, record_of_sample

        dataset, scores = drawn_scores(spec, dataset, scores)
        inputs = {**inputs, **population_inputs(spec)}
        sampled = record_of_sample(spec, scores)
    spec, dataset = with_image_bins(spec, dataset)
    attributes = check(dataset.instance_attributes(), ATTRIBUTES)
    members = _members(spec, dataset, scores, attributes)
    refuse_repeated_groups(dataset, spec.groups.attributes)
    scores = _with_emptied(spec, scores, attributes, judged)
    if spec.report.out is not None:
        begin_packing(scores.units, SCORES)
    whole = scores.evidence
    kept = {k: table for k, table in whole.items() if spec.report.keep_pairs or k != PAIRS}
    estimates, disparities = _compared(spec, scores, members)
    scores = replace(scores, evidence=kept)
    lost = _count_losses(scores, members)
    notes = _notes(spec, dataset, scores, members, disparities, lost)
    record = record_of(spec, dataset, scores, estimates, inputs, notes) | {
        "families": {disparities.family.name: disparities.family.size},
        **sampled,
    }
    of = record["clusters"]
    record["accounting"] = account_for(
        dataset,
        replace(scores, evidence=whole),
        members,
        lost,
        1.0 - spec.statistics.level,
        of["n_clusters"] / max(of["n_units"], 1),
    )
    if record["accounting"]["unit"] == "pairs":  # of both kinds: no metric counts them together
        n_pairs = max((m["n_scored"] for m in record["accounting"]["models"].values()), default=0)
        alone = {} if of["column"] else {"n_clusters": n_pairs}
        record["clusters"] = {**of, **alone, "n_units": n_pairs}
    if planted is not None:
        record["planted"] = [dict(row) for row in planted]
    record |= more or {}
    run = Run(
        record=record | {"dataset": {"name": dataset.name, **record["dataset"]}},
        scores=scores.units,
        attributes=attributes,
        group_metrics=with_small_groups(estimates, spec.statistics),
        disparities=disparities.table,
        findings=FINDINGS.empty(),
        evidence=whole,
    )
    run = _explained(run, spec, kept)
    record = with_tables(run, spec, beside)
    if spec.report.paths == "relative":
        record = unrooted(record)
    return replace(run, record=record), spec


def _members(
    spec: AuditSpec, dataset: Dataset, scores: Scores, attributes: pl.DataFrame
) -> Membership:
    times = dataset.times
    if times is None and COUNTS in scores.evidence:
        counts = scores.evidence[COUNTS].select(TIMES, instance_id="unit_id")
        times = counts.unique("instance_id")
    with told_of_unread(dataset):
        return membership(
            attributes,
            spec.groups.by,
            groupings(spec.groups, attributes),
            units=with_times(scores.judged_units(), times, "unit_id"),
            most=MOST_GROUPS,
            where=dataset.numbered_in,
        )


def _with_emptied(
    spec: AuditSpec, scores: Scores, attributes: pl.DataFrame, judged: pl.Series
) -> Scores:
    """Caution on groups of which everyone weighs 0."""
    left = scores.judged_units()["unit_id"]
    if len(left) == len(judged):
        return scores
    from isolux.people.odd_weights import cautions_on_emptied

    whole = [a for a, each in groupings(spec.groups, attributes).items() if each.bins is None]
    rows = attributes.filter(pl.col("attribute").cast(pl.String).is_in(whole))
    told = cautions_on_emptied(rows, judged, left)
    return replace(scores, notes=(*told, *scores.notes))


def _compared(
    spec: AuditSpec, scores: Scores, members: Membership
) -> tuple[Estimates, Disparities]:
    """Measure the groups, and each pair of them."""
    against = references(spec.groups, spec.disparity.reference)
    check_references(against, members.groups)
    at("measuring the groups")
    estimates = measure_groups(scores, members, spec.statistics)
    at("comparing the groups")
    share = audits_share(spec.explain.analyses)
    return estimates, measure_disparities(estimates, spec.comparing, against, share=share)


def _count_losses(scores: Scores, members: Membership) -> Losses:
    times = scores.evidence.get(COUNTS)
    return Losses(
        unanswered(scores.units, members, scores.evidence),
        count_undetected(missed(scores.evidence), members, times),
    )


def _notes(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    members: Membership,
    found: Disparities,
    lost: Losses,
) -> tuple[str, ...]:
    each = scores.info.one_by_one and SAMPLE not in scores.evidence
    lacking = cautions(lost.unscored, bounds=each)
    lacking += on_missed(lost.undetected)
    notes = (
        *lacking,
        *_on_margin(spec, scores),
        *dataset.notes,
        *scores.notes,
        *members.notes,
        *found.notes,
    )
    return tuple(unnamed(notes, dataset.withdrawn))


def _on_margin(spec: AuditSpec, scores: Scores) -> list[Caution]:
    """Caution where a margin in points was asked of what is no share."""
    if spec.disparity.margin is None:
        return []
    other = [m.title for m in scores.info.metrics if m.unit != "fraction"]
    if not other:
        return []
    told = f"--margin {spec.disparity.margin:g} is in points, and {', '.join(other)}"
    return [Caution(f"{told} is not a share: that no two groups differ by more was not tested.")]


def _explained(run: Run, spec: AuditSpec, kept: Mapping[str, pl.DataFrame]) -> Run:
    """Explain with what every audit does first, then with the analyses that were asked for."""
    run = replace(explain_run(run, first_analyses(run)), evidence=dict(kept))
    said = role_options(spec.explain.role, spec.explain.analyses)
    named = spec.explain.analyses
    return explain_run(run, named, [*spec.explain.analysis_option, *said], planned=named)


# Quantiles over images: `--bins income=quantile:3:images`, as ICON² parts its images.

_END = ":images"


def with_image_bins(spec: AuditSpec, dataset: Dataset) -> tuple[AuditSpec, Dataset]:
    """Turn quantiles over images into edges, with a note for each."""
    if not any(text.endswith(_END) for text in spec.groups.bins):
        return spec, dataset
    bins, notes = [], list(dataset.notes)
    for text in spec.groups.bins:
        if not text.endswith(_END):
            bins.append(text)
            continue
        name, _, rule = text.removesuffix(_END).partition("=")
        asked = parse_bins(rule)
        edges, n = _edges(dataset, name.strip(), asked, text)
        end = ":right" if asked.closed == "right" else ""
        bins.append(f"{name}=edges:" + ",".join(map(repr, edges)) + end)
        labels = ", ".join(bin_labels(edges, asked.closed))
        notes.append(f"{name.strip()}: quantiles over {n:,} images: {labels}")
    return spec.updated(bins=tuple(bins)), replace(dataset, notes=tuple(notes))


def _edges(dataset: Dataset, name: str, asked: Bins, text: str) -> tuple[tuple[float, ...], int]:
    """Choose the edges that part the images, each with the median of its people's numbers."""
    if not asked.quantiles:
        raise SpecError(
            "only quantiles can be over images",
            expected=f"{name}=quantile:K{_END}",
            found=repr(text),
            where="--bins",
        )
    people = dataset.instances
    rows = dataset.instance_attributes().filter(attribute=name)
    if "image_id" in people.columns and rows.height:
        number = pl.coalesce("number", pl.col("value").cast(pl.Float64, strict=False))
        placed = rows.select(unit_id="unit_id", number=number).join(
            people.select(unit_id="instance_id", image_id="image_id"), on="unit_id"
        )
        numbers = placed.drop_nulls().group_by("image_id").agg(pl.col("number").median())["number"]
        edges = quantile_edges(numbers, asked.quantiles, asked.closed)
        if edges:
            return edges, len(numbers)
    raise SpecError(
        f"{name!r} cannot be parted over images",
        expected="people with an image_id and a number of that attribute, not all alike",
        found=f"{rows['value'].drop_nulls().len():,} known values of {name!r}",
        where=f"--bins {text}",
        hint=f"--bins {name}=quantile:{asked.quantiles} splits the people instead",
    )


# A column that was read and is no attribute: an error that asks for it says why it is none.


@contextmanager
def told_of_unread(dataset: Dataset) -> Iterator[None]:
    """Add to an error about a name what ``Dataset.unread`` says of it."""
    try:
        yield
    except UnknownNameError as error:
        why = dataset.unread.get(error.name)
        if why is None:
            raise
        raise UnknownNameError(
            error.kind, error.name, error.known, where=error.where, found=f"a column: {why}"
        ) from error


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


def _references(used: Sequence[Info], spec: AuditSpec) -> list[Mapping[str, str]]:
    """List what ran and nothing else, each publication once."""
    from isolux.stats.references import of_methods

    drawn = any(spec.sample.model_dump().values())
    methods = of_methods(spec.statistics.interval, spec.disparity.correction, drawn=drawn)
    return with_references((), [*(r for info in used for r in info.references), *methods])
