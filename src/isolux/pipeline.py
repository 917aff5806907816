"""An audit from end to end; read it from top to bottom.

    load → read predictions → score → put into groups → measure → compare groups → say it plainly

``run_audit`` starts from files, as the command line does; ``audit`` starts from scores that are
already at hand, made by ``isolux.score`` or by anyone.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from isolux import registry
from isolux.containers import Dataset, Run, Scores
from isolux.datasets import load
from isolux.disparity.measured import measure_disparities
from isolux.errors import SpecError
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.membership import membership
from isolux.groups.settings import check_references, groupings, references
from isolux.in_memory import FROM_MEMORY, as_dataset, as_scores
from isolux.info import Info, Reference
from isolux.io import run_directory
from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.settings_files import read_label_map_file, read_mapping
from isolux.predictions import from_attributes, join, read_outputs, read_predictions
from isolux.spec import AuditSpec, parse_merges, parse_spec
from isolux.tables import ATTRIBUTES, FINDINGS, check
from isolux.tasks import score

__all__ = ["Audit", "audit", "read_spec_file", "run_audit"]

_VERSIONS = ("isolux", "numpy", "polars", "scipy", "numba", "altair", "vl-convert-python")


@dataclass(frozen=True, slots=True)
class Audit:
    """A finished audit: its tables, and how it was made.

    Examples
    --------
    See ``audit``.
    """

    run: Run
    spec: AuditSpec

    @property
    def group_metrics(self) -> pl.DataFrame:
        """Every metric of every group, with intervals: table ``group_metrics``."""
        return self.run.group_metrics

    @property
    def disparities(self) -> pl.DataFrame:
        """Every comparison: table ``disparities``."""
        return self.run.disparities

    @property
    def findings(self) -> pl.DataFrame:
        """Plain sentences, what matters first: table ``findings``."""
        return self.run.findings

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run directory with its ``report.html`` and return the report's path.

        Raises
        ------
        OutputError
            When the directory exists and ``overwrite`` is not set, or cannot be written.
        """
        from isolux.report.html import write_report

        where = run_directory.save(
            self.run,
            out,
            overwrite=overwrite,
            extra=lambda folder: write_report(self.run, folder / "report.html"),
        )
        return where / "report.html"


def run_audit(spec: AuditSpec) -> Audit:
    """Audit what a spec describes, from files to findings.

    Parameters
    ----------
    spec : AuditSpec
        ``isolux.spec.parse_spec`` makes one of loose values.

    Raises
    ------
    IsoluxError
        Whatever is wrong with the files or the settings, named.
    """
    _refuse_nothing_to_compare(spec)
    dataset = _load(spec)
    predictions, notes, inputs = _predictions(spec, dataset)
    scores = score(spec.task, dataset, predictions, **_task_options(spec))
    return _audited(spec, dataset, replace(scores, notes=(*notes, *scores.notes)), inputs)


def audit(
    scores: Scores | object,
    attributes: Dataset | object,
    by: str | Sequence[str],
    *,
    planted: Sequence[Mapping[str, Any]] | None = None,
    **settings: Any,
) -> Audit:
    """Audit scores that are at hand.

    Parameters
    ----------
    scores : Scores or frame
        From ``isolux.score``; or any frame with ``unit_id`` and ``value`` (0 to 1, higher is
        better, null: not scored), and if wanted ``cluster_id``, ``metric``, ``label``, ``model``.
    attributes : Dataset or frame
        Who is who: a dataset, the table ``attributes``, or a wide frame with ``unit_id`` and one
        column per attribute.
    by : str or sequence of str
        Attributes and intersections: ``"race"``, ``["race", "race*gender"]``.
    planted : sequence of dict, optional
        What a synthetic population holds in truth; the report shows it beside what was found.
    **settings
        Fields of ``isolux.spec.AuditSpec``: ``min_units``, ``interval``, ``seed``, ….

    Returns
    -------
    Audit
        ``.group_metrics``, ``.disparities``, ``.findings``, ``.spec``, ``.report(dir)``.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...     "light": ["day", "night"] * 200, "value": [1.0, 1.0, 1.0, 0.0] * 100})
    >>> found = audit(people.select("unit_id", "value"), people.select("unit_id", "light"),
    ...               by="light", replicates=500)
    >>> found.group_metrics.select("group", "value").rows()
    [('everyone', 0.75), ('day', 1.0), ('night', 0.5)]
    """
    values: dict[str, object] = {"data": FROM_MEMORY, "by": by, **settings}
    dataset = as_dataset(attributes)
    found = as_scores(scores)
    if dataset.name != FROM_MEMORY:
        values["data"] = dataset.name
    tasks = found.units["task"].unique().to_list()
    values.setdefault("task", tasks[0] if tasks else "classification")
    spec = parse_spec(values)
    _refuse_nothing_to_compare(spec)
    return _audited(spec, dataset, found, dict(dataset.inputs), planted)


def _refuse_nothing_to_compare(spec: AuditSpec) -> None:
    if not spec.by:
        raise SpecError(
            "there is nothing to compare people by",
            expected='at least one attribute or intersection, as in --by race --by "race*gender"',
            found="none",
        )


def _load(spec: AuditSpec) -> Dataset:
    name, colon, path = spec.data.partition(":")
    if not colon or not path:
        raise SpecError(
            "the data to audit are not named",
            expected="NAME:PATH, such as table:people.csv",
            found=repr(spec.data),
            hint="`isolux list datasets` shows the names",
        )
    options: dict[str, Any] = {
        key: value
        for key, value in (
            ("id", spec.id),
            ("cluster", spec.cluster),
            ("separator", spec.separator),
            ("repair_ages", spec.repair_ages or None),
        )
        if value is not None
    }
    return load(name, path, **options)


def _predictions(
    spec: AuditSpec, dataset: Dataset
) -> tuple[pl.DataFrame, tuple[str, ...], dict[str, str]]:
    """Read the answers, from their own file or from the people's own table, and join them."""
    inputs = dict(dataset.inputs)
    if spec.predictions is not None:
        inputs |= _hashes(spec.predictions)
    if registry.task_info(spec.task).predictions == "outputs":
        return _outputs(spec), (), inputs
    common: dict[str, Any] = {
        "score": spec.score_column,
        "scale": spec.score_scale,
        "detected": spec.detected_column,
        "separator": spec.separator,
        "model": spec.model_name,
    }
    if spec.predictions is None:
        if spec.prediction_column is None:
            raise SpecError(
                "there are no predictions to audit",
                expected="--prediction-column COLUMN, or --predictions FILE",
                found="neither",
            )
        return from_attributes(dataset, spec.prediction_column, **common), (), inputs
    answers = read_predictions(
        spec.predictions,
        id=spec.prediction_id,
        column=spec.prediction_column,
        format=spec.format,
        **common,
    )
    joined, notes = join(dataset, answers, id_from=spec.id_from)
    return joined, notes, inputs


def _outputs(spec: AuditSpec) -> pl.DataFrame:
    """Read boxes, masks, keypoints or embeddings; the task brings them to its images."""
    if spec.predictions is None:
        raise SpecError(
            "there are no predictions to audit",
            expected=f"--predictions FILE: what the task {spec.task} judges stands in no column",
            found="none",
        )
    return read_outputs(spec.predictions, format=spec.format, model=spec.model_name)


def _hashes(path: str) -> dict[str, str]:
    """Hash a file of predictions, or the names and sizes of a folder of them."""
    return {path: sha256_listing(path) if Path(path).is_dir() else sha256_file(path)}


def _task_options(spec: AuditSpec) -> dict[str, Any]:
    """Hand a task the settings that it takes; one that was set in vain is refused there."""
    options: dict[str, Any] = {
        "target": spec.target,
        "positive": spec.positive,
        "metrics": spec.metric,
        "top_k": spec.top_k,
        "undetected": spec.undetected,
        "score_of": spec.score_of,
        "person_label": spec.person_label,
        "person_class": spec.person_class,
        "matching": spec.matching,
        "score_threshold": spec.score_threshold,
        "max_detections": spec.max_detections,
        "label_map": parse_merges(spec.label_map, "label_map") or None,
        "prediction_map": read_label_map_file(spec.prediction_map) if spec.prediction_map else None,
        "unknown_values": spec.unknown_values,
        "model": spec.model_name,
    }
    taken = inspect.signature(registry.load("tasks", spec.task).score).parameters
    fields = AuditSpec.model_fields
    unasked = {key: fields[key].get_default() for key in options if key in fields}
    return {
        key: value
        for key, value in options.items()
        if value is not None and (key in taken or (key in unasked and value != unasked[key]))
    }


def _audited(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    inputs: Mapping[str, str],
    planted: Sequence[Mapping[str, Any]] | None = None,
) -> Audit:
    """Measure, compare and say it: the same for files and for memory."""
    attributes = check(dataset.instance_attributes(), ATTRIBUTES)
    members = membership(
        attributes, spec.by, groupings(spec, attributes), units=scores.judged_units()
    )
    against = references(spec)
    check_references(against, members.frame)
    estimates = measure_groups(scores, members.frame, spec)
    disparities = measure_disparities(estimates, spec, against)
    notes = (*dataset.notes, *scores.notes, *members.notes, *disparities.notes)
    record = _record(spec, dataset, scores, estimates, inputs, notes) | {
        "families": {disparities.family.name: disparities.family.size},
    }
    if planted is not None:
        record["planted"] = [dict(row) for row in planted]
    run = Run(
        record=record | {"dataset": {"name": dataset.name, **record["dataset"]}},
        scores=scores.units,
        attributes=attributes,
        group_metrics=estimates.table(),
        disparities=disparities.table,
        findings=FINDINGS.empty(),
        evidence=dict(scores.evidence),
    )
    found = registry.load("explain", "group_gaps").explain(run)
    return Audit(replace(run, findings=found), spec)


def _record(
    spec: AuditSpec,
    dataset: Dataset,
    scores: Scores,
    estimates: Estimates,
    inputs: Mapping[str, str],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Write down how the run was made: the content of ``audit.json``."""
    data = dataset.info
    models = scores.units["model"].unique(maintain_order=True).to_list()
    unclustered = bool(scores.units["cluster_id"].is_null().all())
    used: list[Info] = [data, scores.info, registry.info("explain", "group_gaps")]
    return {
        "isolux": _version("isolux"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": spec.model_dump(mode="json"),
        "dataset": {
            "title": data.title,
            "licence": data.licence,
            "judgement": data.judgement,
            "citation": [r.citation for r in data.references],
            "terms": dict(data.terms),
        },
        "model": ", ".join(models),
        "task": spec.task,
        "metrics": [m.name for m in scores.info.metrics],
        "evidence": sorted(scores.evidence),
        "inputs": dict(inputs),
        "versions": {name: v for name in _VERSIONS if (v := _version(name))},
        "seed": spec.seed,
        "notes": list(dict.fromkeys(notes)),
        "references": _references(used, spec),
        "clusters": {
            "column": None if unclustered else (spec.cluster or _cluster_word(dataset)),
            "n_clusters": int(estimates.n_clusters[0].max(initial=0)),
            "n_units": int(estimates.n_units[0].max(initial=0)),
        },
    }


def _cluster_word(dataset: Dataset) -> str:
    """Name what a loader took as clusters when nobody said what to take."""
    instances = dataset.instances
    for column in ("subject_id", "image_id"):
        if column in instances.columns and instances["cluster_id"].equals(instances[column]):
            return column.removesuffix("_id")
    return "cluster_id"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _references(used: Sequence[Info], spec: AuditSpec) -> list[dict[str, str]]:
    """List what ran and nothing else, each publication once."""
    from isolux.stats.references import of_methods

    found: dict[tuple[str, str], Reference] = {}
    every = [r for info in used for r in info.references]
    for reference in [*every, *of_methods(spec.interval, spec.correction)]:
        found.setdefault((reference.key, reference.place), reference)
    return [
        {"key": r.key, "citation": r.citation, "place": r.place, "url": r.url}
        for r in found.values()
    ]


def read_spec_file(path: str | Path) -> AuditSpec:
    """Read an audit from a YAML file whose fields are the flags' names.

    Raises
    ------
    FileError
        When there is no such file or it is no YAML.
    SpecError
        When a field is unknown or its value cannot be used.
    """
    values = {key.replace("-", "_"): value for key, value in read_mapping(path).items()}
    return parse_spec(values, where=str(path))
