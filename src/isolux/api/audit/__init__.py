"""An audit from end to end; read it from top to bottom.

    load → read predictions → score → put into groups → can it be right? → measure → compare groups
    → say it plainly

The steps from "put into groups" on stand in ``pipeline.py``, the same for files and for memory.

``run_audit`` starts from files, as the command line does; ``audit`` from files too, or from scores
that are already at hand, made by ``isolux.score`` or by anyone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.api._tables_from_memory import (
    add_null_scores_of_unscored,
    select_attribute_columns,
    to_dataset,
    to_scores,
    write_with_report,
)
from isolux.api.audit.inputs import (
    InMemoryTable,
    OpenProgress,
    build_task_options,
    fill_default_task_settings,
    has_prediction_columns,
    read_audit_settings,
    read_in_memory_table,
    read_predictions,
    resolve_imported_model_setting,
    unwrap_numpy_scalars,
)
from isolux.api.audit.pipeline import run_pipeline
from isolux.api.audit.protocol import build_other_half_spec, fill_protocol_settings
from isolux.api.audit.unused_settings import refuse_unused_settings
from isolux.core.containers import Dataset, Run, Scores
from isolux.core.counts import add_multiplicity_evidence
from isolux.core.errors import IsoluxError, SpecError
from isolux.core.inputs import IN_MEMORY
from isolux.core.notebook import FindingsFrame
from isolux.core.progress import report_step
from isolux.core.schema import to_polars
from isolux.core.spec import AuditSpec, parse_spec
from isolux.core.survey_sample import describe_survey_sample
from isolux.io.atomic import refuse_existing
from isolux.people.loading import load_audit_people
from isolux.people.redaction import redact_errors_in_block
from isolux.statements.groups import parse_group_templates
from isolux.statements.metric_lines import format_line_value
from isolux.tasks import score

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, slots=True)
class Audit:
    """A finished audit: its tables, and how it was made.

    Examples
    --------
    See ``audit``.
    """

    run: Run
    spec: AuditSpec

    def __repr__(self) -> str:
        """Say what was audited and the first findings, on a screen."""
        return format_audit(self.run)

    def _repr_html_(self) -> str:
        from isolux.api.plot import build_run_cell

        return build_run_cell(self.run)

    def plot(
        self,
        metric: str | None = None,
        attribute: str | None = None,
        *,
        label: str | None = None,
        threshold: float | None = None,
    ) -> alt.LayerChart:
        """Draw a metric of each group with its interval; see ``isolux.plot``."""
        from isolux.api.plot import plot

        return plot(self.run, metric, attribute, label=label, threshold=threshold)

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
        return FindingsFrame(self.run.findings, self.run.record)

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run directory with its ``report.html`` and return the report's path.

        Raises
        ------
        OutputError
            When the directory exists and ``overwrite`` is not set, or cannot be written.
        """
        from isolux.report.html import write_report

        return write_with_report(self.run, out, write_report, overwrite=overwrite)


def run_audit(
    spec: AuditSpec,
    *,
    open_progress: OpenProgress | None = None,
    in_memory_table: InMemoryTable | None = None,
) -> Audit:
    """Audit what a spec describes, from files to findings."""
    typed_spec, spec = spec, resolve_imported_model_setting(fill_protocol_settings(spec))
    parse_group_templates(spec.report.describe_as, spec.groups.attributes)
    if spec.protocol is not None:
        from isolux.api.audit.survey_sample import refuse_weighted_protocol

        refuse_weighted_protocol(spec)
    refuse_unused_settings(spec)
    options = build_task_options(spec)  # before minutes of reading
    report_step("reading the people")
    dataset = load_audit_people(spec, None if in_memory_table is None else in_memory_table.frame)
    if in_memory_table is not None:
        dataset = replace(dataset, notes=(*in_memory_table.notes, *dataset.notes))
    injected_effects = _read_injected_effects(spec)
    with redact_errors_in_block(dataset.withdrawn_ids, partial(_list_ids, dataset)):
        return _join_score_and_audit(
            typed_spec, spec, dataset, options, injected_effects, open_progress
        )


def _list_ids(dataset: Dataset) -> frozenset[str]:
    ids = pl.concat([dataset.instances[c].cast(pl.String) for c in ("instance_id", "image_id")])
    return frozenset(ids.drop_nulls().to_list())


def _join_score_and_audit(
    typed_spec: AuditSpec,
    spec: AuditSpec,
    dataset: Dataset,
    options: dict[str, Any],
    injected_effects: Sequence[Mapping[str, Any]] | None,
    open_progress: OpenProgress | None,
) -> Audit:
    """Join predictions to people, score them and run the audit pipeline."""
    run = None
    if spec.model.spec is not None or spec.predictions.file is not None:
        from isolux.api.audit.model_predictions import run_model_or_read_predictions

        report_step("")  # a model that runs shows how far it is
        run = run_model_or_read_predictions(spec, dataset, open_progress)
    if run is None:
        report_step("reading the answers")
        predictions, notes, inputs = read_predictions(spec, dataset)
    else:
        dataset, predictions, notes, inputs = run.dataset, run.predictions, run.notes, run.inputs
    report_step(f"scoring {spec.task.name}")
    scores = score(spec.task.name, dataset, predictions, **options)
    scores = add_multiplicity_evidence(
        replace(scores, notes=(*notes, *scores.notes)), dataset.multiplicity
    )
    extra_record = {} if run is None else {"ran": run.record}
    other_half, other_half_notes = _audit_other_half(typed_spec)
    scores = replace(scores, notes=(*scores.notes, *other_half_notes))
    return Audit(
        *run_pipeline(
            fill_default_task_settings(spec),
            dataset,
            scores,
            inputs,
            injected_effects,
            extra_record,
            other_half,
            to_polars(predictions),
            options,
        )
    )


def _audit_other_half(spec: AuditSpec) -> tuple[Run | None, tuple[str, ...]]:
    """Audit the second half of a paper's table, or return a note why it is missing."""
    try:
        other_spec = build_other_half_spec(spec)
        return (None, ()) if other_spec is None else (run_audit(other_spec).run, ())
    except IsoluxError as error:
        reason = str(error).splitlines()[0]
        return None, (
            f"{spec.protocol}: the half of its table beside this one is left out: {reason}",
        )


def _read_injected_effects(spec: AuditSpec) -> list[dict[str, Any]] | None:
    if spec.report.injected is None:
        return None
    from isolux.api.audit.injected_effects import read_injected_effects

    return read_injected_effects(
        spec.report.injected,
        task=spec.task.name,
        by=spec.groups.by,
        model=spec.predictions.model_name,
    )


def audit(
    scores: Scores | str | Path | object,
    attributes: Dataset | object = None,
    by: str | Sequence[str] = (),
    *,
    injected: Sequence[Mapping[str, Any]] | str | Path | None = None,
    **settings: Any,
) -> Audit:
    """Audit files, as ``isolux audit`` does, a table of answers, or scores that are at hand.

    Parameters
    ----------
    scores : str, Path, Scores or frame
        NAME:PATH (``"fairface:labels.csv"``) or a YAML file of settings: everything else is then
        named by the flags' names. Or a table in memory with a row a person, whose columns
        ``target`` and ``prediction_column`` (``score_column``, …) name truth and answer: a frame
        of polars, pandas, pyarrow or ``datasets``, or a mapping of names to arrays, tensors or
        lists. Or scores: from ``isolux.score``; or any frame with ``unit_id`` and ``value`` (0 to
        1, higher is better, null: not scored), and if wanted ``cluster_id``, ``metric``,
        ``label``, ``model``.
    attributes : str, Path, Dataset or frame
        Of files, and of a table with answers: a file with more attributes of these people, as
        ``--attributes`` names it. Of scores: who is who, as a dataset, the table ``attributes``,
        or a wide frame with ``unit_id`` and one column per attribute; not given: the columns of
        ``scores`` that ``by`` names.
    by : str or sequence of str
        Attributes and intersections: ``"race"``, ``["race", "race*gender"]``. Not given: every
        metric of everyone, and no comparison.
    injected : sequence of dict, or path, optional
        What a synthetic population holds in truth, or its ``injected.json``; the report shows it
        beside what was found.
    **settings
        Settings by the flags' names: ``min_units``, ``interval``, ``seed``, …; of files and of
        tables with answers also ``target``, ``predictions``, ``cluster``, …, and the task's own.
        ``out`` (and ``overwrite``): a new directory for the run and its report, as
        ``.report(dir)`` writes them.

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
    [('overall', 0.75), ('day', 1.0), ('night', 0.5)]

    Truth and answers side by side:

    >>> table = {"light": ["day", "night"] * 200, "truth": ["cat", "dog", "dog", "cat"] * 100,
    ...          "answer": ["cat", "dog", "dog", "dog"] * 100}
    >>> found = audit(table, by="light", target="truth", prediction_column="answer",
    ...               metric=["accuracy"], replicates=500)
    >>> found.group_metrics.select("group", "value").rows()
    [('overall', 0.75), ('day', 1.0), ('night', 0.5)]
    """
    settings = unwrap_numpy_scalars(settings)
    out, overwrite = settings.get("out"), bool(settings.get("overwrite", False))
    if out is not None:
        settings["out"] = str(out)
        refuse_existing(out, overwrite=overwrite)  # before minutes of work
    finished_audit = _audit_any_source(scores, attributes, by, injected, settings)
    if out is not None:
        finished_audit.report(out, overwrite=overwrite)
    return finished_audit


def _audit_any_source(
    scores: Scores | str | Path | object,
    attributes: Dataset | object,
    by: str | Sequence[str],
    injected_effects: Sequence[Mapping[str, Any]] | str | Path | None,
    settings: dict[str, Any],
) -> Audit:
    """Audit any input of ``audit``."""
    has_people = isinstance(scores, str | Path) or has_prediction_columns(scores, settings)
    if has_people and isinstance(attributes, str | Path):
        settings = {**settings, "attributes": attributes}
        attributes = None
    if isinstance(scores, str | Path):
        return _audit_files(
            scores, attributes, {"by": by, "injected": injected_effects, **settings}
        )
    if has_people:
        in_memory_table = read_in_memory_table(scores, attributes, settings)
        return audit_in_memory_table(
            in_memory_table, {"by": by, "injected": injected_effects, **settings}
        )
    if isinstance(injected_effects, str | Path):
        raise SpecError(
            "an injected.json is read beside files",
            expected="a list of truths",
            found=repr(injected_effects),
        )
    values: dict[str, object] = {"data": IN_MEMORY, "by": by, **settings}
    if attributes is None:
        from isolux.api.audit.survey_sample import list_survey_columns

        attributes = select_attribute_columns(scores, by, list_survey_columns(settings))
    dataset = to_dataset(attributes)
    score_table = to_scores(scores)
    if not isinstance(scores, Scores):
        score_table = add_null_scores_of_unscored(score_table, dataset)
    if dataset.name != IN_MEMORY:
        values["data"] = dataset.name
    tasks = score_table.units["task"].unique().to_list()
    values.setdefault("task", tasks[0] if tasks else score_table.task or "classification")
    spec = parse_spec(values)
    parse_group_templates(spec.report.describe_as, spec.groups.attributes)
    refuse_unused_settings(spec)
    _refuse_missing_clusters(spec, score_table)
    return Audit(*run_pipeline(spec, dataset, score_table, dict(dataset.inputs), injected_effects))


def audit_in_memory_table(in_memory_table: InMemoryTable, settings: Mapping[str, Any]) -> Audit:
    """Audit people and predictions in memory, with settings by the flags' names."""
    return run_audit(
        parse_spec({"data": IN_MEMORY, **_select_given_settings(settings)}),
        in_memory_table=in_memory_table,
    )


def _select_given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Select the settings that are set, with paths as text."""
    given_settings = {
        key: setting
        for key, setting in settings.items()
        if setting is not None and not (isinstance(setting, tuple) and not setting)
    }
    return {
        key: str(setting) if isinstance(setting, Path) else setting
        for key, setting in given_settings.items()
    }


def _audit_files(source: str | Path, attributes: object, settings: Mapping[str, Any]) -> Audit:
    if attributes is not None:
        raise SpecError(
            "files say themselves who is who",
            expected=f"isolux.audit({str(source)!r}, by=…, …), every setting by its name; more"
            " attributes as a file: attributes=FILE",
            found=f"a second argument: {type(attributes).__name__}",
        )
    return run_audit(read_audit_settings(source, _select_given_settings(settings)))


def _refuse_missing_clusters(spec: AuditSpec, scores: Scores) -> None:
    """Refuse a cluster column that the scores lack: intervals would be too short."""
    tables = [table for table in (scores.units, *scores.evidence.values()) if table.height]
    has_clusters = [
        t["cluster_id"].is_not_null().any() for t in tables if "cluster_id" in t.columns
    ]
    if spec.people.cluster and tables and not any(has_clusters):
        raise SpecError(
            f"clusters were requested (cluster={spec.people.cluster!r}), but the scores have none",
            expected="a column cluster_id with an id of each row's cluster; of a dataset, "
            f"isolux.load(…, cluster={spec.people.cluster!r}) before isolux.score",
            found="no cluster_id, so that each row would count as a cluster",
        )


_MAX_LINE_WIDTH, _MAX_CLAIMS, _MAX_WARNINGS, _MAX_LINES = 80, 3, 2, 5


def format_audit(run: Run) -> str:
    """Format what was audited, the first findings and where the tables are."""
    record = run.record
    spec, clusters = record.get("spec") or {}, record.get("clusters") or {}
    target = f" of {spec['target']}" if spec.get("target") else ""
    dataset = (record.get("dataset") or {}).get("title")
    dataset_text = f" on {dataset}" if dataset else ""
    column = clusters.get("column")
    cluster_text = f" in {clusters.get('n_clusters', 0):,} clusters ({column})" if column else ""
    claims = run.findings.sort("rank")["claim"].to_list()
    head = (
        f"Audit of {record.get('model')}{dataset_text}: {record.get('task')}{target}, "
        f"{clusters.get('n_units', 0):,} units{cluster_text}"
    )
    head += f", by {', '.join(spec['by'])}" if spec.get("by") else "; no attribute, so no groups"
    lines = [_wrap_text(text) for text in (head, describe_survey_sample(record)) if text]
    warnings = list(record.get("warnings") or ())
    lines += [_wrap_text(f"WARNING: {text}") for text in warnings[:_MAX_WARNINGS]]
    if len(warnings) > _MAX_WARNINGS:
        lines.append(f"… and {len(warnings) - _MAX_WARNINGS:,} more in .run.record['warnings']")
    if not spec.get("by"):
        claims = _list_overall_values(run)
    lines += [_wrap_text(f"• {claim}") for claim in claims[:_MAX_CLAIMS]]
    if len(claims) > _MAX_CLAIMS:
        table = ".findings" if spec.get("by") else ".group_metrics"
        lines.append(f"… and {len(claims) - _MAX_CLAIMS:,} more in {table}")
    lines.append("Tables: .group_metrics, .disparities, .findings; .report(DIR) writes the page.")
    return "\n".join(lines)


def _list_overall_values(run: Run) -> list[str]:
    from isolux.report.summary import summarise_run

    overall = summarise_run(run).overall
    return [format_line_value(line, e.value, e.low, e.high) for line, e in overall]


def _wrap_text(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _MAX_LINE_WIDTH, max_lines=_MAX_LINES, placeholder=" …"))
