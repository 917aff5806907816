"""Two models on the same people, paired: is the second better, who gained, who lost, which gaps.

Both models' scores go into one set of cluster sums, so every replicate resamples the same people
for both and what they share cancels. A group's change is tested by flipping, cluster by cluster,
which model is which: exact if neither model is better for anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from isolux.api._tables_from_memory import RunHolder, run_of, write_with_report
from isolux.api.compare.lost_groups import caution_on_lost_groups
from isolux.api.compare.notes import note_differences, order_models, order_runs, shared_sample
from isolux.api.compare.person_matching import list_scored_units, match_people, single_model_name
from isolux.core import registry
from isolux.core.containers import Run, Scores
from isolux.core.counts import refuse_count_tables
from isolux.core.errors import SpecError
from isolux.core.notebook import FindingsFrame
from isolux.core.notes import Caution, split_cautions_from_notes
from isolux.core.spec import AuditSpec, read_recorded_spec
from isolux.core.survey_sample import SAMPLE, is_survey_sample
from isolux.core.tables import COMPARISONS, FINDINGS
from isolux.disparity.class_rankings import rank_classes_by_largest_gap
from isolux.disparity.models import compare_models
from isolux.disparity.paired_measures import compute_relative_changes
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings, read_references
from isolux.io.ids import IdFrom
from isolux.io.record_paths import make_paths_relative
from isolux.people.withdrawal import remove_withdrawn_from_runs
from isolux.people.withdrawal_lists import read_withdrawn_list
from isolux.stats.survey_sums import unweighted_cluster_sums


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models held against each other.

    ``run.disparities`` is the table of comparisons (``model_a``, ``model_b``, b − a);
    ``run.group_metrics`` holds both models; ``rankings`` the classes by disparity, side by side.
    """

    run: Run
    rankings: pl.DataFrame

    @property
    def disparities(self) -> pl.DataFrame:
        """Everyone's and each group's change from the first model to the second, and each gap's."""
        return self.run.disparities

    def _repr_html_(self) -> str:
        return self.run._repr_html_()

    @property
    def findings(self) -> pl.DataFrame:
        """Whether the second model is better, who gained and who lost, in plain sentences."""
        return FindingsFrame(self.run.findings, self.run.record)

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the comparison as a directory with its ``report.html``; return that path."""
        from isolux.report.html import write_comparison_report

        return write_with_report(self.run, out, write_comparison_report, overwrite=overwrite)


def compare(
    a: Run | RunHolder | str | Path,
    b: Run | RunHolder | str | Path,
    *,
    id_from: IdFrom | None = None,
    allow_disagreement: float = 0.0,
    relative: bool = False,
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
) -> Comparison:
    """Compare two models that were audited on the same people.

    Parameters
    ----------
    a, b : Audit, Run or path
        Two audits of one task by the same attributes. The first one's settings and attributes
        are used for both.
    id_from : {"column", "basename", "stem"}, optional
        The part of the ids that identifies people in both runs; default: the whole id. The number
        of a row is no id.
    allow_disagreement : float
        Share of people whose true label or group may differ between the runs, 0 to 1; the first
        run's are used.
    relative : bool
        Also give each group's change relative to the first model's value (the baseline).
    withdrawn : str or Path, optional
        File with the ids of people who withdrew: they are left out of both runs. Whoever had
        withdrawn when one of the runs was made is in neither's part of the comparison anyway.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.

    Returns
    -------
    Comparison
        ``.disparities`` has one row per metric and group (kind ``model_difference``): value of b
        less value of a on the people whom both scored, with interval and adjusted p. The first is
        everyone's on the metric asked for first: the planned comparison, a family of its own. Also
        one per metric and attribute (``gap_change``): how much wider the gap between ``group_a``
        and ``group_b`` became, the groups with the worst and the best mean of both models (with a
        reference: the reference and the group farthest from it).

    Raises
    ------
    JoinError
        When the two have nobody in common, name their people by row numbers of different files,
        or do not agree on the truth or the groups of those who meet.
    SpecError
        When they are of different tasks.

    Examples
    --------
    >>> import polars as pl
    >>> from isolux.api.audit import audit
    >>> who = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...                     "light": ["day", "night"] * 200})
    >>> scored = lambda name, v: who.select("unit_id", model=pl.lit(name), value=pl.Series(v * 100))
    >>> old = audit(scored("old", [1.0, 1.0, 1.0, 0.0]), who, by="light", replicates=500)
    >>> new = audit(scored("new", [1.0, 1.0, 0.0, 1.0]), who, by="light", replicates=500)
    >>> change = compare(old, new).disparities.filter(kind="model_difference")
    >>> change.select("group_a", "value").rows()
    [('overall', 0.0), ('day', -0.5), ('night', 0.5)]
    """
    first, second = run_of(a), run_of(b)
    folders = [Path(source).name if isinstance(source, str | Path) else "" for source in (a, b)]
    for run in (first, second):
        refuse_count_tables(run.evidence, "a comparison of models", "two audits of the same people")
    if withdrawn is not None:
        withdrawn_ids = read_withdrawn_list(withdrawn)
        first, second = remove_withdrawn_from_runs(
            (first, second), withdrawn_ids, allow_unmatched=allow_unmatched
        )
    pairing = pair_runs(
        first, second, id_from=id_from, allow_disagreement=allow_disagreement, folders=folders
    )
    scores, estimates, spec, names = pairing.scores, pairing.estimates, pairing.spec, pairing.models
    compared_units = scores.evaluated_units()["unit_id"]  # whoever withdrew from one is not of them
    reference_groups = read_references(spec.groups, spec.disparity.reference)
    model_comparison = compare_models(
        estimates, spec.comparing, names, reference_groups, requested_metrics(spec, first)
    )
    relative_rows = (
        compute_relative_changes(estimates, spec.comparing, names)
        if relative
        else COMPARISONS.empty()
    )
    notes = (*pairing.notes, *scores.notes)
    record = _build_record(first, second, spec, names, notes, model_comparison.families, estimates)
    run = Run(
        record=make_paths_relative(record) if spec.report.paths == "relative" else record,
        scores=scores.units,
        attributes=first.attributes.filter(pl.col("unit_id").is_in(compared_units.implode())),
        group_metrics=_order_by_model(estimates.to_table(), names),
        disparities=pl.concat([model_comparison.table, relative_rows]),
        findings=FINDINGS.empty(),
        evidence=dict(scores.evidence),
    )
    change_findings = registry.load("analyses", "model_changes").explain(run)
    return Comparison(
        replace(run, findings=change_findings.findings),
        rank_classes_by_largest_gap(run.group_metrics, names),
    )


def requested_metrics(spec: AuditSpec, run: Run) -> tuple[str, ...]:
    """Return the metrics in the requested order, else the task's defaults."""
    task = str(run.record.get("task"))
    default_metrics = registry.task_info(task).defaults if task in registry.names("tasks") else ()
    return spec.task.metrics or tuple(default_metrics)


def _order_by_model(table: pl.DataFrame, names: tuple[str, str]) -> pl.DataFrame:
    """Order rows by model, the first model first."""
    return pl.concat([table.filter(model=name) for name in names])


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Two models' scores of the people in both runs, and both models' group estimates."""

    scores: Scores
    estimates: Estimates
    spec: AuditSpec
    models: tuple[str, str]
    notes: tuple[str, ...]


def pair_runs(
    first: Run,
    second: Run,
    *,
    id_from: IdFrom | None = None,
    allow_disagreement: float = 0.0,
    folders: Sequence[str] = ("", ""),
) -> PairedScores:
    """Measure two runs on their common people; parameters and errors as in ``compare``."""
    spec = _shared_spec(first, second)
    names = _name_models(first, second, folders)
    matches = match_people(first, second, spec, id_from, allow_disagreement)
    scores = _stack_paired_scores(first, second, names, matches.units)
    ordered_scores = order_models(scores, [names[k] for k in order_runs((first, second))])
    members = build_membership(
        first.attributes,
        spec.groups.by,
        read_groupings(spec.groups, first.attributes),
        units=ordered_scores.evaluated_units(),
    )
    estimates = measure_groups(ordered_scores, members, spec.statistics)
    lost_group_cautions = caution_on_lost_groups(first, second, matches.units, names)
    return PairedScores(scores, estimates, spec, names, (*lost_group_cautions, *matches.notes))


def _shared_spec(first: Run, second: Run) -> AuditSpec:
    tasks = [run.record.get("task") for run in (first, second)]
    if tasks[0] != tasks[1]:
        raise SpecError(
            "the two runs are of different tasks",
            expected="two models on one task",
            found=f"{tasks[0]} and {tasks[1]}",
        )
    return read_recorded_spec(first.record)


def _name_models(first: Run, second: Run, folders: Sequence[str]) -> tuple[str, str]:
    """Name the two models: by their names, else their runs', else first and second."""
    a, b = (single_model_name(run) for run in (first, second))
    if a != b:
        return a, b
    first_folder, second_folder = folders
    return (
        (first_folder, second_folder)
        if first_folder and second_folder and first_folder != second_folder
        else (f"{a} (first)", f"{b} (second)")
    )


def _stack_paired_scores(
    first: Run, second: Run, names: tuple[str, str], units_b: pl.DataFrame
) -> Scores:
    """Stack both runs' scores and evidence, for the people and metrics that both scored."""
    task_info = (
        registry.task_info(str(first.record["task"]))
        if first.record["task"] in registry.names("tasks")
        else None
    )
    shared_ids = units_b["as_first"]
    key = ["metric", "label", "threshold", "unit_id"]
    a = first.scores.filter(pl.col("unit_id").is_in(shared_ids.implode()))
    a = a.with_columns(model=pl.lit(names[0]))
    b = _map_to_first_ids(second.scores, units_b).with_columns(model=pl.lit(names[1]))
    b = b.drop("cluster_id").join(
        a.select("unit_id", "cluster_id").unique("unit_id"), on="unit_id", how="left"
    )
    columns = a.columns
    a, b = (
        scores.join(
            other_scores.filter(pl.col("value").is_not_null()), on=key, how="semi", nulls_equal=True
        )
        for scores, other_scores in ((a, b), (b, a))
    )
    units = pl.concat([a.select(columns), b.select(columns)])
    evidence: dict[str, pl.DataFrame] = {}
    evidence_names = (first.evidence.keys() & second.evidence.keys()) - {SAMPLE}
    if task_info is not None and task_info.predictions == "outputs":
        evidence_names = set()  # pairs and false positives have no single person to be paired by
    clusters = a.select("unit_id", "cluster_id").unique("unit_id")
    if first.scores.is_empty() and second.scores.is_empty():
        clusters = _list_ranked_by_both(first, second, units_b, evidence_names)
    for name in evidence_names:
        evidence_a = first.evidence[name].filter(pl.col("unit_id").is_in(shared_ids.implode()))
        evidence_b = _map_to_first_ids(second.evidence[name], units_b)
        model_tables = [
            e.with_columns(model=pl.lit(n))
            for e, n in zip((evidence_a, evidence_b), names, strict=True)
        ]
        stacked = pl.concat(model_tables, how="vertical_relaxed").drop("cluster_id")
        evidence[name] = stacked.join(clusters, on="unit_id", how="inner", maintain_order="left")
    evidence |= _restrict_sample(shared_sample(first, second, units_b), [units, *evidence.values()])
    if task_info is None:
        from isolux.api._tables_from_memory import to_scores

        task_info = to_scores(units).info
    metric_names = set(first.record.get("metrics", [])) & set(second.record.get("metrics", []))
    metrics = tuple(m for m in task_info.metrics if m.name in metric_names)
    unpaired = [m.name for m in metrics if m.statistic is not None and m.evidence not in evidence]
    note = f"Not compared, for want of a pairing by person: {', '.join(unpaired)}."
    return Scores(units, replace(task_info, metrics=metrics), evidence, (note,) if unpaired else ())


def _restrict_sample(
    sample: dict[str, pl.DataFrame], tables: Sequence[pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """Restrict the survey sample to the compared units."""
    compared_ids = pl.concat([table.select(pl.col("unit_id").cast(pl.String)) for table in tables])
    is_compared = pl.col("unit_id").is_in(compared_ids["unit_id"].drop_nulls().unique().implode())
    return {name: table.filter(is_compared) for name, table in sample.items()}


def _list_ranked_by_both(
    first: Run, second: Run, units_b: pl.DataFrame, names: Iterable[str]
) -> pl.DataFrame:
    """List units ranked by both models, with clusters, where no metric is a mean of units."""
    ranked_units = [pl.DataFrame(schema={"unit_id": pl.String, "cluster_id": pl.String})]
    for name in names:
        is_ranked = pl.col("reason").is_null()
        a = first.evidence[name].filter(is_ranked)
        b = _map_to_first_ids(second.evidence[name].filter(is_ranked), units_b)
        ranked_units.append(a.join(b, on="unit_id", how="semi").select("unit_id", "cluster_id"))
    return pl.concat(ranked_units, how="vertical_relaxed").unique("unit_id", maintain_order=True)


def _map_to_first_ids(frame: pl.DataFrame, units_b: pl.DataFrame) -> pl.DataFrame:
    matched_rows = frame.join(units_b, on="unit_id", how="inner", maintain_order="left")
    return matched_rows.with_columns(unit_id=pl.col("as_first")).drop("as_first")


def _build_record(
    first: Run,
    second: Run,
    spec: AuditSpec,
    names: Sequence[str],
    pairing_notes: tuple[str, ...],
    families: dict[str, int],
    estimates: Any,
) -> dict[str, Any]:
    n = round(float(unweighted_cluster_sums(estimates.cluster_sums).totals()[0, 0]))
    n_unmatched = [len(list_scored_units(run)) - n for run in (first, second)]
    # The first of each run first: screens show a few, and what makes all numbers wrong leads.
    run_warnings = zip_longest(*(run.record.get("warnings") or () for run in (first, second)))
    notes: list[str] = [
        Caution(f"{name}: {text}")
        for texts in run_warnings
        for name, text in zip(names, texts, strict=True)
        if text is not None
    ]
    notes += pairing_notes
    notes += [
        f"{count:,} people of {name} are not scored by both models and were left out."
        for name, count in zip(names, n_unmatched, strict=True)
        if count
    ]
    notes += note_differences(first, second, names)
    warnings, plain_notes = split_cautions_from_notes(notes)
    inputs = {
        f"{n}: {k}": v
        for n, r in zip(names, (first, second), strict=True)
        for k, v in r.record.get("inputs", {}).items()
    }
    return {
        **{k: first.record.get(k) for k in ("isolux", "dataset", "task", "versions", "references")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": spec.flat(),
        "model": " and ".join(names),
        "models": list(names),
        "metrics": list(dict.fromkeys(m.metric for m in estimates.measures)),
        "inputs": inputs,
        "seed": spec.statistics.seed,
        "warnings": warnings,
        "notes": plain_notes,
        "clusters": {
            **first.record.get("clusters", {}),
            "n_clusters": estimates.cluster_sums.n_clusters,
            "n_units": n,
        },
        "families": families,
        **({"sample": first.record["sample"]} if is_survey_sample(first.record) else {}),
    }
