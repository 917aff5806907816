"""An audit from end to end; read it from top to bottom.

    load → read predictions → score → put into groups → measure → compare groups → say it plainly

The steps from "put into groups" on stand in ``found.py``, the same for files and for memory.

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

from isolux.io.atomic import refuse_existing
from isolux.people.blotting import blotted_errors
from isolux.people.loading import judged_people
from isolux.statements.groups import read_templates
from isolux.tasks import score
from isolux.verbs._in_memory import (
    add_unscored,
    as_dataset,
    as_scores,
    columns_of,
    write_with_report,
)
from isolux.verbs.audit.found import found_in
from isolux.verbs.audit.inputs import (
    Held,
    Watched,
    asked_for,
    held_people,
    holds_answers,
    plain_numbers,
    read_answers,
    resolved,
    task_options,
    with_imported,
)
from isolux.verbs.audit.protocol import beside_of, with_protocol
from isolux.vocabulary.containers import Dataset, Run, Scores
from isolux.vocabulary.counts import with_counts
from isolux.vocabulary.drawn import words_of
from isolux.vocabulary.errors import IsoluxError, SpecError
from isolux.vocabulary.given import IN_MEMORY
from isolux.vocabulary.notebook import FindingsFrame
from isolux.vocabulary.progress import at
from isolux.vocabulary.spec import AuditSpec, parse_spec

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
        return audit_text(self.run)

    def _repr_html_(self) -> str:
        return self.run._repr_html_()

    def plot(
        self,
        metric: str | None = None,
        attribute: str | None = None,
        *,
        label: str | None = None,
        threshold: float | None = None,
    ) -> alt.LayerChart:
        """Draw a metric of each group with its interval; see ``isolux.plot``."""
        from isolux.verbs.plot import plot

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
    spec: AuditSpec, *, watched: Watched | None = None, held: Held | None = None
) -> Audit:
    """Audit what a spec describes, from files to findings."""
    given, spec = spec, with_imported(with_protocol(spec))
    _check_comparisons(spec)
    if spec.protocol is not None:
        from isolux.verbs.audit.drawn import refuse_protocol

        refuse_protocol(spec)
    options = task_options(spec)  # before minutes of reading
    at("reading the people")
    dataset = judged_people(spec, None if held is None else held.frame)
    if held is not None:
        dataset = replace(dataset, notes=(*held.notes, *dataset.notes))
    planted = _planted(spec)
    with blotted_errors(dataset.withdrawn, partial(_ids_of, dataset)):
        return _judged(given, spec, dataset, options, planted, watched)


def _ids_of(dataset: Dataset) -> frozenset[str]:
    ids = pl.concat([dataset.instances[c].cast(pl.String) for c in ("instance_id", "image_id")])
    return frozenset(ids.drop_nulls().to_list())


def _judged(
    given: AuditSpec,
    spec: AuditSpec,
    dataset: Dataset,
    options: dict[str, Any],
    planted: Sequence[Mapping[str, Any]] | None,
    watched: Watched | None,
) -> Audit:
    """Bring a model's answers to the people, judge them and audit."""
    run = None
    if spec.model.spec is not None or spec.predictions.file is not None:
        from isolux.verbs.audit.predicted import answers_of_model

        at("")  # a model that runs shows how far it is
        run = answers_of_model(spec, dataset, watched)
    if run is None:
        at("reading the answers")
        predictions, notes, inputs = read_answers(spec, dataset)
    else:
        dataset, predictions, notes, inputs = run.dataset, run.predictions, run.notes, run.inputs
    at(f"scoring {spec.task.name}")
    scores = score(spec.task.name, dataset, predictions, **options)
    scores = with_counts(replace(scores, notes=(*notes, *scores.notes)), dataset.times)
    ran = {} if run is None else {"ran": run.record}
    beside, said = _beside(given)
    scores = replace(scores, notes=(*scores.notes, *said))
    return Audit(*found_in(resolved(spec), dataset, scores, inputs, planted, ran, beside))


def _beside(spec: AuditSpec) -> tuple[pl.DataFrame | None, tuple[str, ...]]:
    """Measure what a paper's table sets beside this audit, or say why that is not there."""
    try:
        other = beside_of(spec)
        return (None, ()) if other is None else (run_audit(other).group_metrics, ())
    except IsoluxError as error:
        why = str(error).splitlines()[0]
        return None, (f"{spec.protocol}: the half of its table beside this one is left out: {why}",)


def _planted(spec: AuditSpec) -> list[dict[str, Any]] | None:
    if spec.report.planted is None:
        return None
    from isolux.verbs.audit.planted import read_planted

    return read_planted(
        spec.report.planted,
        task=spec.task.name,
        by=spec.groups.by,
        model=spec.predictions.model_name,
    )


def audit(
    scores: Scores | str | Path | object,
    attributes: Dataset | object = None,
    by: str | Sequence[str] = (),
    *,
    planted: Sequence[Mapping[str, Any]] | str | Path | None = None,
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
    attributes : Dataset or frame
        Who is who: a dataset, the table ``attributes``, or a wide frame with ``unit_id`` and one
        column per attribute. Not given: the columns of ``scores`` that ``by`` names.
    by : str or sequence of str
        Attributes and intersections: ``"race"``, ``["race", "race*gender"]``.
    planted : sequence of dict, or path, optional
        What a synthetic population holds in truth, or its ``planted.json``; the report shows it
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
    [('everyone', 0.75), ('day', 1.0), ('night', 0.5)]

    Truth and answers side by side:

    >>> table = {"light": ["day", "night"] * 200, "truth": ["cat", "dog", "dog", "cat"] * 100,
    ...          "answer": ["cat", "dog", "dog", "dog"] * 100}
    >>> found = audit(table, by="light", target="truth", prediction_column="answer",
    ...               metric=["accuracy"], replicates=500)
    >>> found.group_metrics.select("group", "value").rows()
    [('everyone', 0.75), ('day', 1.0), ('night', 0.5)]
    """
    settings = plain_numbers(settings)
    out, overwrite = settings.get("out"), bool(settings.get("overwrite", False))
    if out is not None:
        settings["out"] = str(out)
        refuse_existing(out, overwrite=overwrite)  # before minutes of work
    found = _of_anything(scores, attributes, by, planted, settings)
    if out is not None:
        found.report(out, overwrite=overwrite)
    return found


def _of_anything(
    scores: Scores | str | Path | object,
    attributes: Dataset | object,
    by: str | Sequence[str],
    planted: Sequence[Mapping[str, Any]] | str | Path | None,
    settings: dict[str, Any],
) -> Audit:
    """Audit what ``audit`` takes."""
    if isinstance(scores, str | Path):
        return _of_files(scores, attributes, {"by": by, "planted": planted, **settings})
    if holds_answers(scores, settings):
        held = held_people(scores, attributes, settings)
        return audit_held(held, {"by": by, "planted": planted, **settings})
    if isinstance(planted, str | Path):
        raise SpecError(
            "a planted.json is read beside files", expected="a list of truths", found=repr(planted)
        )
    values: dict[str, object] = {"data": IN_MEMORY, "by": by, **settings}
    if attributes is None:
        from isolux.verbs.audit.drawn import columns_of_sample

        attributes = columns_of(scores, by, columns_of_sample(settings))
    dataset = as_dataset(attributes)
    found = as_scores(scores)
    if not isinstance(scores, Scores):
        found = add_unscored(found, dataset)
    if dataset.name != IN_MEMORY:
        values["data"] = dataset.name
    tasks = found.units["task"].unique().to_list()
    values.setdefault("task", tasks[0] if tasks else found.task or "classification")
    spec = parse_spec(values)
    _check_comparisons(spec)
    _refuse_lost_clusters(spec, found)
    return Audit(*found_in(spec, dataset, found, dict(dataset.inputs), planted))


def audit_held(held: Held, settings: Mapping[str, Any]) -> Audit:
    """Audit people and answers that are in memory, with settings by the flags' names."""
    return run_audit(parse_spec({"data": IN_MEMORY, **_text_paths(settings)}), held=held)


def _text_paths(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Take the settings that were given, paths as text."""
    given = {
        key: value
        for key, value in settings.items()
        if value is not None and not (isinstance(value, tuple) and not value)
    }
    return {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}


def _of_files(data: str | Path, attributes: object, settings: Mapping[str, Any]) -> Audit:
    if attributes is not None:
        raise SpecError(
            "files say themselves who is who",
            expected=f"isolux.audit({str(data)!r}, by=…, …), every setting by its name",
            found=f"a second argument: {type(attributes).__name__}",
        )
    return run_audit(asked_for(data, _text_paths(settings)))


def _refuse_lost_clusters(spec: AuditSpec, scores: Scores) -> None:
    """Refuse clusters that scores do not have: every interval would be too short unseen."""
    tables = [table for table in (scores.units, *scores.evidence.values()) if table.height]
    held = [t["cluster_id"].is_not_null().any() for t in tables if "cluster_id" in t.columns]
    if spec.people.cluster and tables and not any(held):
        raise SpecError(
            f"clusters were requested (cluster={spec.people.cluster!r}), but the scores have none",
            expected="a column cluster_id with an id of each row's cluster; of a dataset, "
            f"isolux.load(…, cluster={spec.people.cluster!r}) before isolux.score",
            found="no cluster_id, so that each row would count as a cluster",
        )


def _check_comparisons(spec: AuditSpec) -> None:
    if not spec.groups.by:
        raise SpecError(
            "there is nothing to compare people by",
            expected='at least one attribute or intersection, as in --by race --by "race*gender"',
            found="none",
        )
    read_templates(spec.report.describe_as, spec.groups.attributes)


_WIDTH, _CLAIMS, _WARNINGS, _LINES = 80, 3, 2, 5


def audit_text(run: Run) -> str:
    """Say in a screen what was audited, the first findings, and where the tables are."""
    record = run.record
    spec, clusters = record.get("spec") or {}, record.get("clusters") or {}
    target = f" of {spec['target']}" if spec.get("target") else ""
    dataset = (record.get("dataset") or {}).get("title")
    of = f" on {dataset}" if dataset else ""
    column = clusters.get("column")
    within = f" in {clusters.get('n_clusters', 0):,} clusters ({column})" if column else ""
    claims = run.findings.sort("rank")["claim"].to_list()
    head = (
        f"Audit of {record.get('model')}{of}: {record.get('task')}{target}, "
        f"{clusters.get('n_units', 0):,} units{within}, by {', '.join(spec.get('by') or ())}"
    )
    told = [_brief(text) for text in (head, words_of(record)) if text]
    warnings = list(record.get("warnings") or ())
    told += [_brief(f"WARNING: {text}") for text in warnings[:_WARNINGS]]
    if len(warnings) > _WARNINGS:
        told.append(f"… and {len(warnings) - _WARNINGS:,} more in .run.record['warnings']")
    told += [_brief(f"• {claim}") for claim in claims[:_CLAIMS]]
    if len(claims) > _CLAIMS:
        told.append(f"… and {len(claims) - _CLAIMS:,} more in .findings")
    told.append("Tables: .group_metrics, .disparities, .findings; .report(DIR) writes the page.")
    return "\n".join(told)


def _brief(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH, max_lines=_LINES, placeholder=" …"))
