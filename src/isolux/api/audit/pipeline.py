"""From scores to findings: the same for files and for tables in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from isolux.api.audit.protocol import build_protocol_record
from isolux.api.error_budget import compute_audit_error_share
from isolux.api.explain import (
    CONFOUNDERS,
    list_default_analyses,
    merge_references,
    role_flags_to_options,
    run_analyses,
)
from isolux.core.containers import Dataset, Run, Scores
from isolux.core.counts import COUNTS, TIMES, add_multiplicity, refuse_ambiguous_count_rows
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import PluginInfo, TaskInfo
from isolux.core.notes import Caution, split_cautions_from_notes
from isolux.core.progress import report_step
from isolux.core.spec import AuditSpec
from isolux.core.survey_sample import SAMPLE
from isolux.core.tables import ATTRIBUTES, FINDINGS, SCORES, check
from isolux.disparity.disparity_table import Disparities, measure_disparities
from isolux.groups.binning import Bins, format_bin_labels, parse_bins, quantile_bin_edges
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.membership import Membership, build_membership
from isolux.groups.missing_predictions import (
    caution_on_missing_scores,
    caution_on_undetected,
    count_missing_predictions,
    count_undetected,
    find_evidence_with_undetected,
)
from isolux.groups.option_parsing import check_references, read_groupings, read_references
from isolux.groups.small_intersections import add_shrinkage_estimates
from isolux.groups.unit_accounting import Losses, account_for_units
from isolux.io.background_packing import begin_packing
from isolux.io.record_paths import make_paths_relative
from isolux.people.redaction import redact_ids
from isolux.people.survey_columns import has_any_survey_setting, parse_cluster_columns
from isolux.people.synthetic import find_synthetic_marker_file, format_synthetic_note
from isolux.plausibility import AuditInputs, check_plausibility
from isolux.stats.statistic import PairStatistic

MAX_GROUPS = 300
"""Values that an attribute may have: 300 groups are 45,000 pairs for every metric."""
PAIRS = "pairs"
"""Evidence that can hold millions of rows, and that no comparison of models reads."""


def run_pipeline(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    inputs: Mapping[str, str],
    injected_effects: Sequence[Mapping[str, Any]] | None = None,
    extra_record: Mapping[str, Any] | None = None,
    other_half: Run | None = None,
    predictions: pl.DataFrame | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Run, AuditSpec]:
    """Group scores, measure and compare the groups, and run the analyses.

    ``predictions`` and ``options`` are what the task's ``score`` received; scores that were given
    in memory have neither.
    """
    scored_ids = scores.evaluated_units()["unit_id"]
    sample_record: dict[str, Any] = {}
    if (
        has_any_survey_setting(spec.sample)
        or parse_cluster_columns(spec.people.cluster)[1]
        or SAMPLE in scores.evidence
    ):
        from isolux.api.audit.survey_sample import (
            add_survey_sample,
            build_sample_record,
            hash_population_files,
        )

        dataset, scores = add_survey_sample(spec, dataset, scores)
        inputs = {**inputs, **hash_population_files(spec)}
        sample_record = build_sample_record(spec, scores)
    spec, dataset = resolve_image_bins(spec, dataset)
    spec = move_bins_to_confounders(spec)
    attributes = check(dataset.instance_attributes(), ATTRIBUTES)
    members = _form_groups(spec, dataset, scores, attributes)
    clusters = [name for name in parse_cluster_columns(spec.people.cluster) if name is not None]
    refuse_ambiguous_count_rows(dataset, spec.groups.attributes, clusters)
    task = scores.task or spec.task.name
    options = options or {}
    audit_inputs = AuditInputs(
        task, dataset, predictions, scores, members, {**spec.flat(), **options}, options
    )
    scores = replace(scores, notes=(*check_plausibility(audit_inputs), *scores.notes))
    scores = _caution_on_zero_weight_groups(spec, scores, attributes, scored_ids)
    if spec.report.out is not None:
        begin_packing(scores.units, SCORES)
    all_evidence = scores.evidence
    recorded_evidence = {
        k: table for k, table in all_evidence.items() if spec.report.keep_pairs or k != PAIRS
    }
    estimates, disparities = _measure_and_compare(spec, scores, members)
    scores = replace(scores, evidence=recorded_evidence)
    losses = _count_losses(scores, members)
    notes = _build_notes(spec, dataset, scores, members, disparities, losses)
    record = build_record(spec, dataset, scores, estimates, inputs, notes) | {
        "families": disparities.family.sizes,
        **sample_record,
    }
    cluster_counts = record["clusters"]
    record["accounting"] = account_for_units(
        dataset,
        replace(scores, evidence=all_evidence),
        members,
        losses,
        1.0 - spec.statistics.level,
        cluster_counts["n_clusters"] / max(cluster_counts["n_units"], 1),
    )
    if record["accounting"]["unit"] == "pairs":  # no metric counts both kinds together
        n_pairs = max((m["n_scored"] for m in record["accounting"]["models"].values()), default=0)
        pair_clusters = {} if cluster_counts["column"] else {"n_clusters": n_pairs}
        record["clusters"] = {**cluster_counts, **pair_clusters, "n_units": n_pairs}
    if injected_effects is not None:
        record["injected"] = [dict(row) for row in injected_effects]
    record |= extra_record or {}
    run = Run(
        record=record | {"dataset": {"name": dataset.name, **record["dataset"]}},
        scores=scores.units,
        attributes=attributes,
        group_metrics=add_shrinkage_estimates(estimates, spec.statistics),
        disparities=disparities.table,
        findings=FINDINGS.empty(),
        evidence=all_evidence,
    )
    run = _run_analyses(run, spec, recorded_evidence)
    record = build_protocol_record(run, spec, other_half)
    if spec.report.paths == "relative":
        record = make_paths_relative(record)
    return replace(run, record=record), spec


def _form_groups(
    spec: AuditSpec, dataset: Dataset, scores: Scores, attributes: pl.DataFrame
) -> Membership:
    multiplicity = dataset.multiplicity
    if multiplicity is None and COUNTS in scores.evidence:
        counts = scores.evidence[COUNTS].select(TIMES, instance_id="unit_id")
        multiplicity = counts.unique("instance_id")
    with explain_skipped_columns(dataset):
        return build_membership(
            attributes,
            spec.groups.by,
            read_groupings(spec.groups, attributes),
            units=add_multiplicity(scores.evaluated_units(), multiplicity, "unit_id"),
            max_values=MAX_GROUPS,
            source=dataset.numbered_table,
        )


def _caution_on_zero_weight_groups(
    spec: AuditSpec, scores: Scores, attributes: pl.DataFrame, scored_ids: pl.Series
) -> Scores:
    """Caution on groups in which everyone has weight 0."""
    remaining_ids = scores.evaluated_units()["unit_id"]
    if len(remaining_ids) == len(scored_ids):
        return scores
    from isolux.people.weight_checks import caution_on_zero_weight_values

    unbinned = [
        a
        for a, grouping in read_groupings(spec.groups, attributes).items()
        if grouping.bins is None
    ]
    rows = attributes.filter(pl.col("attribute").cast(pl.String).is_in(unbinned))
    cautions = caution_on_zero_weight_values(rows, scored_ids, remaining_ids)
    return replace(scores, notes=(*cautions, *scores.notes))


def _measure_and_compare(
    spec: AuditSpec, scores: Scores, members: Membership
) -> tuple[Estimates, Disparities]:
    """Measure the groups, and each pair of them."""
    reference_groups = read_references(spec.groups, spec.disparity.reference)
    check_references(reference_groups, members.groups)
    report_step("measuring the groups")
    estimates = measure_groups(scores, members, spec.statistics)
    report_step("comparing the groups")
    share = compute_audit_error_share(spec.explain.analyses)
    return estimates, measure_disparities(estimates, spec.comparing, reference_groups, share=share)


def _count_losses(scores: Scores, members: Membership) -> Losses:
    multiplicity = scores.evidence.get(COUNTS)
    return Losses(
        count_missing_predictions(scores.units, members, scores.evidence),
        count_undetected(find_evidence_with_undetected(scores.evidence), members, multiplicity),
    )


def _build_notes(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    members: Membership,
    disparities: Disparities,
    losses: Losses,
) -> tuple[str, ...]:
    has_bounds = scores.info.has_independent_scores and SAMPLE not in scores.evidence
    missing_notes = caution_on_missing_scores(losses.unscored, bounds=has_bounds)
    # The stage of plausibility says the same of missing truths, with the bounds of a gap.
    openings = {note.partition("):")[0] for note in scores.notes if isinstance(note, Caution)}
    missing_notes = [note for note in missing_notes if note.partition("):")[0] not in openings]
    missing_notes += caution_on_undetected(losses.undetected)
    notes = (
        *missing_notes,
        *_caution_on_margin(spec, scores),
        *dataset.notes,
        *scores.notes,
        *members.notes,
        *disparities.notes,
    )
    return tuple(redact_ids(notes, dataset.withdrawn_ids))


def _caution_on_margin(spec: AuditSpec, scores: Scores) -> list[Caution]:
    """Caution where a margin in points is set for metrics that are not fractions."""
    if spec.disparity.margin is None:
        return []
    other_metrics = [m.title for m in scores.info.metrics if m.unit != "fraction"]
    if not other_metrics:
        return []
    message = f"--margin {spec.disparity.margin:g} is in points, and {', '.join(other_metrics)}"
    return [Caution(f"{message} is not a share: that no two groups differ by more was not tested.")]


def _run_analyses(run: Run, spec: AuditSpec, recorded_evidence: Mapping[str, pl.DataFrame]) -> Run:
    """Run the analyses of every audit, then those requested."""
    run = replace(run_analyses(run, list_default_analyses(run)), evidence=dict(recorded_evidence))
    roles = role_flags_to_options(spec.explain.role, spec.explain.analyses)
    analyses = spec.explain.analyses
    return run_analyses(run, analyses, [*spec.explain.analysis_option, *roles], planned=analyses)


# Quantiles over images: `--bins income=quantile:3:images`, as ICON² splits its images.

_IMAGE_BINS_SUFFIX = ":images"


def resolve_image_bins(spec: AuditSpec, dataset: Dataset) -> tuple[AuditSpec, Dataset]:
    """Replace quantiles over images by fixed edges, with a note for each."""
    if not any(text.endswith(_IMAGE_BINS_SUFFIX) for text in spec.groups.bins):
        return spec, dataset
    bins, notes = [], list(dataset.notes)
    for text in spec.groups.bins:
        if not text.endswith(_IMAGE_BINS_SUFFIX):
            bins.append(text)
            continue
        name, _, rule = text.removesuffix(_IMAGE_BINS_SUFFIX).partition("=")
        bin_rule = parse_bins(rule)
        edges, n = _compute_image_bin_edges(dataset, name.strip(), bin_rule, text)
        end = ":right" if bin_rule.closed == "right" else ""
        bins.append(f"{name}=edges:" + ",".join(map(repr, edges)) + end)
        labels = ", ".join(format_bin_labels(edges, bin_rule.closed))
        notes.append(f"{name.strip()}: quantiles over {n:,} images: {labels}")
    return spec.updated(bins=tuple(bins)), replace(dataset, notes=tuple(notes))


def move_bins_to_confounders(spec: AuditSpec) -> AuditSpec:
    """Turn ``--bins`` of attributes that are not audited into those of explanatory ones."""
    rules = {}
    for text in spec.groups.bins if CONFOUNDERS in spec.explain.analyses else ():
        name, equals, rule = (part.strip() for part in text.partition("="))
        if equals and name not in spec.groups.attributes:
            rules[name] = (text, rule)
    if not rules:
        return spec
    moved_texts = [text for text, _ in rules.values()]
    bins = json.dumps({name: rule for name, (_, rule) in rules.items()}, ensure_ascii=False)
    return spec.updated(
        bins=tuple(text for text in spec.groups.bins if text not in moved_texts),
        analysis_option=(*spec.explain.analysis_option, f"{CONFOUNDERS}.bins={bins}"),
    )


def _compute_image_bin_edges(
    dataset: Dataset, name: str, bin_rule: Bins, text: str
) -> tuple[tuple[float, ...], int]:
    """Compute quantile edges over images, each with the median of its people's numbers."""
    if not bin_rule.quantiles:
        raise SpecError(
            "only quantiles can be over images",
            expected=f"{name}=quantile:K{_IMAGE_BINS_SUFFIX}",
            found=repr(text),
            where="--bins",
        )
    people = dataset.instances
    rows = dataset.instance_attributes().filter(attribute=name)
    if "image_id" in people.columns and rows.height:
        number = pl.coalesce("number", pl.col("value").cast(pl.Float64, strict=False))
        image_numbers = rows.select(unit_id="unit_id", number=number).join(
            people.select(unit_id="instance_id", image_id="image_id"), on="unit_id"
        )
        numbers = (
            image_numbers.drop_nulls().group_by("image_id").agg(pl.col("number").median())["number"]
        )
        edges = quantile_bin_edges(numbers, bin_rule.quantiles, bin_rule.closed)
        if edges:
            return edges, len(numbers)
    raise SpecError(
        f"{name!r} cannot be parted over images",
        expected="people with an image_id and a number of that attribute, not all alike",
        found=f"{rows['value'].drop_nulls().len():,} known values of {name!r}",
        where=f"--bins {text}",
        hint=f"--bins {name}=quantile:{bin_rule.quantiles} splits the people instead",
    )


# Columns that the loader skipped: an error about one of them gives the reason.


@contextmanager
def explain_skipped_columns(dataset: Dataset) -> Iterator[None]:
    """Add the reason in ``Dataset.skipped_columns`` to an error about an unknown name."""
    try:
        yield
    except UnknownNameError as error:
        reason = dataset.skipped_columns.get(error.name)
        if reason is None:
            raise
        raise UnknownNameError(
            error.name_type,
            error.name,
            error.valid_names,
            where=error.where,
            found=f"a column: {reason}",
        ) from error


_VERSIONS = ("isolux", "numpy", "polars", "scipy", "numba", "vl-convert-python")


def build_record(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    estimates: Estimates,
    inputs: Mapping[str, str],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Build the record of the audit: data, settings, versions and references."""
    dataset_info = dataset.info
    # A metric that is not a mean of units' scores leaves ``units`` empty: its evidence is used.
    tables = [t for t in (scores.units, *scores.evidence.values()) if t.height]
    # Expressions, since a column of one value may be kept as that value.
    model_columns = [
        t.select(pl.col("model").cast(pl.String).unique(maintain_order=True)) for t in tables
    ]
    models = list(
        dict.fromkeys(
            m for model_column in model_columns for m in model_column.to_series().drop_nulls()
        )
    )
    unclustered = all(
        t.select(pl.col("cluster_id").is_null().all()).item()
        for t in tables
        if "cluster_id" in t.columns
    )
    infos: list[PluginInfo] = [dataset_info, scores.info]
    marker = find_synthetic_marker_file(
        [*filter(None, [spec.people.data.partition(":")[2]]), *dataset.inputs]
    )
    synthetic_notes = [] if marker is None else [format_synthetic_note(marker)]
    warnings, plain_notes = split_cautions_from_notes([*synthetic_notes, *notes])
    return {
        "isolux": _installed_version("isolux"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": spec.flat(),
        "dataset": {
            "title": dataset_info.title,
            "licence": dataset_info.licence,
            "label_source": dataset_info.label_source,
            "citation": [r.citation for r in dataset_info.references],
            "terms": dict(dataset_info.terms),
            "units": dict(dataset_info.units),
            "noun": dataset_info.noun,
            **({} if marker is None else {"synthetic": True}),
        },
        "model": ", ".join(models),
        "task": spec.task.name,
        "metrics": _order_metrics(scores.info),
        "measures": {
            m.name: {"title": m.title, "unit": m.unit, "direction": m.direction}
            for m in scores.info.metrics
        },
        **({"chosen": dict(scores.task_choices)} if scores.task_choices else {}),
        "ids": "row numbers" if dataset.has_row_number_ids else "declared",
        "evidence": sorted(scores.evidence),
        "inputs": dict(inputs),
        "versions": {name: v for name in _VERSIONS if (v := _installed_version(name))},
        "seed": spec.statistics.seed,
        "warnings": warnings,
        "notes": plain_notes,
        "references": _list_references(infos, spec),
        "clusters": {
            "column": None if unclustered else (spec.people.cluster or _name_clusters(dataset)),
            "n_clusters": int(estimates.n_clusters[0].max(initial=0)),
            "n_units": _count_units(estimates),
        },
    }


def _order_metrics(task_info: TaskInfo) -> list[str]:
    """Order the metrics: the task's default metrics first."""
    names = [metric.name for metric in task_info.metrics]
    return [name for name in task_info.defaults if name in names] + [
        name for name in names if name not in task_info.defaults
    ]


def _count_units(estimates: Estimates) -> int:
    """Count the scored units; metrics of pairs count pairs."""
    counts_units = [not isinstance(m.info.statistic, PairStatistic) for m in estimates.measures]
    counts = estimates.n_units[0][counts_units] if any(counts_units) else estimates.n_units[0]
    return int(counts.max(initial=0))


def _name_clusters(dataset: Dataset) -> str | None:
    """Name the loader's default clusters; None: each row is a cluster."""
    instances = dataset.instances
    # Pairs without known people are rows, each with two units.
    has_pairs = "pair_id" in instances.columns
    if has_pairs and instances["cluster_id"].equals(instances["pair_id"]):
        return None
    for column in ("subject_id", "image_id", "video_id", "household_id"):
        if column in instances.columns and instances["cluster_id"].equals(instances[column]):
            return column.removesuffix("_id")
    return "people" if has_pairs else "cluster_id"


@cache
def _installed_version(package: str) -> str:
    """Look up a package's version; cached, because each lookup reads a file."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _list_references(infos: Sequence[PluginInfo], spec: AuditSpec) -> list[Mapping[str, str]]:
    """List the references of what ran, each publication once."""
    from isolux.stats.references import list_method_references

    is_survey_sample = any(spec.sample.model_dump().values())
    methods = list_method_references(
        spec.statistics.interval, spec.disparity.correction, is_survey_sample=is_survey_sample
    )
    return merge_references(
        (), [*(r for plugin_info in infos for r in plugin_info.references), *methods]
    )
