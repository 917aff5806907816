"""Checking a finished audit against a policy: pass, fail, or not enough people.

    run directory → hashes → measured again from its scores → policy's rules → decision

The numbers are measured again from the run's scores, so no decision depends on an edited table, and
intervals are available at any level. What a policy is, and what its answers guarantee:
``docs/methods/gate.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.api._tables_from_memory import (
    RunHolder,
    RunSource,
    read_unchanged_run,
    reraise_as_run_error,
    run_or_none,
    to_scores,
)
from isolux.api.compare import pair_runs
from isolux.api.compare.person_matching import list_scored_units
from isolux.core import registry
from isolux.core.containers import Run, Scores
from isolux.core.errors import IsoluxError, RunError, SpecError
from isolux.core.info import TaskInfo
from isolux.core.progress import report_step
from isolux.core.spec import AuditSpec, read_recorded_spec
from isolux.core.survey_sample import is_survey_sample
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.missing_predictions import count_missing_predictions
from isolux.groups.run_membership import count_scored_people, rebuild_membership
from isolux.policy import Decision, Policy, read_policy
from isolux.policy.evaluation import Baseline, PolicyInputs
from isolux.policy.rule_answers import answer_policy
from isolux.policy.rules import BaselinePeople


def gate(
    run: Run | RunHolder | str | Path,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    baseline: Run | RunHolder | str | Path | None = None,
) -> Decision:
    """Check a finished audit against a policy: pass, fail, or not enough people to tell.

    Parameters
    ----------
    run : Audit, Run, str or Path
        A finished audit, or its directory.
    policy : Policy, mapping, str or Path
        A YAML or JSON file, or what it holds.
    baseline : Audit, Run, str or Path, optional
        The run that `max_drop` looks back to.

    Returns
    -------
    Decision
        ``.answer``, ``.rules``, ``.exit_code``, ``.text()``, ``.json()``, ``.junit()``,
        ``.markdown()``.

    Raises
    ------
    SpecError, UnknownNameError, FileError
        The policy is wrong: a margin without unit, a metric that no task knows, no such file.
    RunError
        The run cannot be used: missing, damaged, changed since it was written, of an older version,
        cut for publishing, or numbers that its scores do not give.

    Examples
    --------
    >>> import polars as pl, isolux
    >>> people = pl.DataFrame({"unit_id": [str(i) for i in range(2000)],
    ...                        "light": ["day", "night"] * 1000, "value": [1.0] * 1999 + [0.0]})
    >>> found = isolux.audit(people, by="light", replicates=100)
    >>> rule = {"metric": "score", "attribute": "light", "at_least": "95 %"}
    >>> isolux.gate(found, {"policy": 1, "rules": [rule]}).answer
    'pass'
    """
    checked_policy = read_policy(policy)
    baseline_rules = [rule for rule in checked_policy.rules if rule.needs_baseline]
    if baseline_rules and baseline is None:
        raise SpecError(
            "a rule asks for a baseline, and none is given",
            expected="the run to look back to: --baseline RUN, or baseline=…",
            found=f"{baseline_rules[0].kind} without one",
            where=f"{checked_policy.source}, rule {baseline_rules[0].number}",
        )
    finished = load_finished_run(run)
    baselines: dict[BaselinePeople, Baseline] = {}
    notes: tuple[str, ...] = ()
    if baseline_rules and baseline is not None:
        baseline_run = load_finished_run(baseline, description="the baseline")
        notes = caution_on_identical_scores(finished, baseline_run)
        pairings = {rule.baseline_people for rule in baseline_rules}
        baselines = {
            pairing: prepare_baseline(
                finished, baseline_run, pairing, checked_policy.max_missing_share
            )
            for pairing in pairings
        }
    decision = answer_policy(checked_policy, remeasure_run(finished, baselines))
    decision = replace(decision, notes=(*notes, *decision.notes))
    return _name_sources(decision, checked_policy, run, baseline if baseline_rules else None)


def _name_sources(
    decision: Decision, checked_policy: Policy, run: RunSource, baseline: RunSource | None
) -> Decision:
    return replace(
        decision,
        policy=checked_policy.name
        or ("" if checked_policy.source == "in memory" else checked_policy.source),
        run=str(run) if isinstance(run, str | Path) else "",
        baseline=str(baseline) if isinstance(baseline, str | Path) else "",
    )


def proposed_policy(run: Run | RunHolder | str | Path) -> str:
    """Propose a policy for a run, as YAML with a comment a line."""
    from isolux.policy.proposal import propose_policy_yaml

    name = str(run) if isinstance(run, str | Path) else ""
    return propose_policy_yaml(remeasure_run(load_finished_run(run)), name)


_KEYS = ["model", "metric", "label", "threshold", "attribute", "values"]
_RELATIVE_TOLERANCE = 1e-9
"""Relative difference up to which a remeasured value equals the recorded one."""


def load_finished_run(run: Any, *, description: str = "the run") -> Run:
    """Take a run from memory, or read its directory if its hashes match."""
    source = str(run) if isinstance(run, str | Path) else None
    hint = "audit again: nothing is decided about numbers that were changed"
    finished_run = (
        run_or_none(run)
        if source is None
        else read_unchanged_run(run, hint, description=description)
    )
    if finished_run is None:
        raise RunError(
            f"{description} is none",
            expected="an audit, a run or its directory",
            found=type(run).__name__,
        )
    _refuse_unfit_runs(finished_run, description, source)
    return finished_run


def _refuse_unfit_runs(run: Run, description: str, source: str | None) -> None:
    if "model_a" in run.disparities.columns:
        raise RunError(
            f"{description} compares two models",
            expected="a run of `isolux audit`",
            found="a comparison",
            where=source,
            hint="gate the newer model's run, with the other as --baseline",
        )
    if run.record.get("publish_min"):
        raise RunError(
            f"{description} is cut for publishing: groups of fewer than"
            f" {run.record['publish_min']} are "
            "hidden",
            expected="the whole run that it was made of",
            found="a run without people",
            where=source,
        )


def remeasure_run(
    run: Run, baselines: Mapping[BaselinePeople, Baseline] | None = None
) -> PolicyInputs:
    """Measure a run again from its scores, and check the result against its tables."""
    report_step("measuring the groups")
    with reraise_as_run_error("the run"):
        spec = read_recorded_spec(run.record)
        estimates, missing_metrics = _remeasure_groups(run, spec)
    _check_recorded_values(run, estimates)
    no_baseline, baselines = Baseline(problem="no baseline is given"), baselines or {}
    membership = rebuild_membership(run)
    min_sizes = (spec.statistics.min_units, spec.statistics.min_clusters)
    return PolicyInputs(
        estimates,
        run.record,
        run.findings,
        min_sizes,
        missing_metrics,
        baselines.get("same", no_baseline),
        baselines.get("different", no_baseline),
        run.disparities,
        baselines.get("shared", no_baseline),
        count_missing_predictions(run.scores, membership, run.evidence),
        count_scored_people(run, membership),
    )


def _remeasure_groups(run: Run, spec: AuditSpec) -> tuple[Estimates, dict[str, str]]:
    """Measure the groups again, and list metrics whose evidence the run lacks."""
    task_info, missing_metrics = _select_metrics(run)
    scores = Scores(run.scores, task_info, run.evidence, task=str(run.record.get("task") or ""))
    return measure_groups(scores, rebuild_membership(run), spec.statistics), missing_metrics


def _select_metrics(run: Run) -> tuple[TaskInfo, dict[str, str]]:
    task = str(run.record.get("task") or "")
    if task not in registry.names("tasks"):
        return to_scores(run.scores).info, {}
    task_info, recorded_names = registry.task_info(task), set(run.record.get("metrics") or ())
    recorded_metrics = [m for m in task_info.metrics if m.name in recorded_names]
    units = run.record.get("measures") or {}
    recorded_metrics = [
        replace(m, unit=units.get(m.name, {}).get("unit", m.unit)) for m in recorded_metrics
    ]
    measurable_metrics = [
        m for m in recorded_metrics if m.statistic is None or m.evidence in run.evidence
    ]
    missing_metrics = {
        m.name: f"the run does not keep what it rests on ({m.evidence}): audit again with "
        "--option keep_pairs=yes"
        for m in recorded_metrics
        if m not in measurable_metrics
    }
    return replace(task_info, metrics=tuple(measurable_metrics)), missing_metrics


def _check_recorded_values(run: Run, estimates: Estimates) -> None:
    """Refuse a run whose recorded values or counts differ from those of its scores."""
    columns = [*_KEYS, "n_units", "value"]
    joined_values = pl.col("values").list.join("\x00")
    written_table = run.group_metrics.select(columns).with_columns(values=joined_values)
    remeasured_table = estimates.to_table().select(columns).with_columns(values=joined_values)
    measures = remeasured_table.select(_KEYS[:4]).unique()
    recorded_table = written_table.join(measures, on=_KEYS[:4], how="semi", nulls_equal=True)
    matched_rows = recorded_table.join(
        remeasured_table, on=_KEYS, how="full", nulls_equal=True, suffix="_again"
    )
    recorded_values, remeasured_values = (
        matched_rows["value"].to_numpy(),
        matched_rows["value_again"].to_numpy(),
    )
    is_equal_value = np.isclose(
        recorded_values,
        remeasured_values,
        rtol=_RELATIVE_TOLERANCE,
        atol=_RELATIVE_TOLERANCE,
        equal_nan=True,
    )
    is_equal_count = (
        (matched_rows["n_units"] == matched_rows["n_units_again"]).fill_null(value=False).to_numpy()
    )
    if bool(np.all(is_equal_value & is_equal_count)):
        return
    first = matched_rows.filter(pl.Series(~(is_equal_value & is_equal_count))).row(0, named=True)
    raise RunError(
        "the run's scores do not give the numbers that it holds",
        expected=f"{first['metric']} of {first['values'] or 'everyone'}: {first['value']} of "
        f"{first['n_units']} units, as group_metrics.parquet has it",
        found=f"{first['value_again']} of {first['n_units_again']}",
        hint="it is of another version, weighted in a way that a gate cannot repeat, or was changed"
        ": audit again",
    )


def prepare_baseline(
    run: Run, baseline_run: Run, people: BaselinePeople, max_missing: float = 0.01
) -> Baseline:
    """Prepare the baseline: a pairing on the same people, or estimates of other people."""
    report_step("measuring the baseline")
    n_shared = _count_shared_ids(run, baseline_run)
    problem = _describe_unfit_baseline(
        run, baseline_run, people, n_shared
    ) or _describe_missing_predictions(baseline_run, max_missing)
    if problem:
        return Baseline(problem=problem)
    try:
        if people == "different":
            return Baseline(independent_estimates=remeasure_run(baseline_run).estimates)
        pairing = pair_runs(run, baseline_run)
    except IsoluxError as error:
        return Baseline(problem=_format_clause(error))
    return Baseline(
        paired_estimates=pairing.estimates,
        models=(pairing.models[1], pairing.models[0]),
        n_shared_people=n_shared,
    )


def caution_on_identical_scores(run: Run, baseline_run: Run) -> tuple[str, ...]:
    """Caution where a baseline has the run's own scores: it may be the same run."""
    columns = [name for name in run.scores.columns if name != "model"]
    scores, baseline_scores = (
        run_or_baseline.scores.select(columns).sort(columns)
        for run_or_baseline in (run, baseline_run)
    )
    if scores.is_empty() or scores.height != baseline_scores.height:
        return ()
    if not scores.equals(baseline_scores):
        return _caution_on_other_ids(run, baseline_run)
    message = (
        "WARNING: the baseline has the scores of the run, person by person, so that nothing is lost"
    )
    return (f"{message}. Is it another run?",)


def _caution_on_other_ids(run: Run, baseline_run: Run) -> tuple[str, ...]:
    """Caution where scores are equal row by row and only the ids differ."""
    id_columns = ("model", "unit_id", "cluster_id")
    scores, baseline_scores = (
        run_or_baseline.scores.drop(*id_columns) for run_or_baseline in (run, baseline_run)
    )
    if scores["value"].drop_nulls().n_unique() < 2 or not scores.equals(baseline_scores):
        return ()
    message = "WARNING: the baseline has the scores of the run, row by row, under other ids"
    return (f"{message}. Are they the same people?",)


def _describe_unfit_baseline(
    run: Run, baseline_run: Run, people: BaselinePeople, n_shared: int
) -> str:
    """Describe why a baseline does not fit the rule's ``people``; empty: it fits."""
    if people != "different" and not n_shared:
        return (
            "it has none of this run's people; if they are others on purpose, write "
            "`people: different`"
        )
    if people == "shared":
        return ""
    if people == "same":
        n_run, n_baseline = len(list_scored_units(run)), len(list_scored_units(baseline_run))
        if n_run == n_baseline == n_shared:
            return ""
        return (
            f"{n_baseline - n_shared:,} of its {n_baseline:,} people are not in this run, and "
            f"{n_run - n_shared:,} of this run's {n_run:,} are not in it; to compare the"
            f" {n_shared:,} "
            "in both, write `people: shared`"
        )
    if n_shared:
        return (
            f"{n_shared:,} people are in both runs, though the rule says that they are different; "
            "write `people: same`, or name people by ids that are theirs alone"
        )
    spec, baseline_spec = read_recorded_spec(run.record), read_recorded_spec(baseline_run.record)
    setting = _find_different_setting(spec, baseline_spec, run.record, baseline_run.record)
    return f"it differs in the setting {setting}: another number is measured" if setting else ""


def _describe_missing_predictions(baseline_run: Run, max_missing: float) -> str:
    """Describe the group with too many missing predictions in the baseline; empty: none."""
    missing_counts = count_missing_predictions(
        baseline_run.scores, rebuild_membership(baseline_run), baseline_run.evidence
    )
    for row in missing_counts.filter(pl.col("missing") > max_missing * pl.col("n")).iter_rows(
        named=True
    ):
        group = row["group"] or "everyone"
        return (
            f"of {group}, {row['missing']:,} of its {row['n']:,} people have no prediction,"
            " and the "
            f"policy allows {100 * max_missing:g} % (unanswered_at_most)"
        )
    return ""


def _count_shared_ids(run: Run, baseline_run: Run) -> int:
    """Count ids scored in both runs; row numbers are not ids."""
    if "row numbers" in {
        run_or_baseline.record.get("ids") for run_or_baseline in (run, baseline_run)
    }:
        files = [
            dict(run_or_baseline.record.get("inputs") or {})
            for run_or_baseline in (run, baseline_run)
        ]
        if not set(files[0].values()) & set(files[1].values()):
            return 0
    ids = list_scored_units(baseline_run)
    return int(list_scored_units(run).is_in(ids.implode()).sum())


def _find_different_setting(
    run_spec: AuditSpec,
    baseline_spec: AuditSpec,
    record: Mapping[str, Any],
    baseline_record: Mapping[str, Any],
) -> str:
    """Find the first setting of groups or task that differs; empty: none."""
    if record.get("task") != baseline_record.get("task"):
        return "task"
    if is_survey_sample(record) != is_survey_sample(baseline_record):
        return "weight or strata"
    for stage in ("groups", "task"):
        settings, baseline_settings = (
            getattr(stage_spec, stage).model_dump(mode="json")
            for stage_spec in (run_spec, baseline_spec)
        )
        for key in settings:
            if key != "by" and settings.get(key) != baseline_settings.get(key):
                return f"{key!r}"
    return ""


def _format_clause(error: IsoluxError) -> str:
    has_usable_hint = error.hint and "--allow-" not in error.hint  # flags that a gate does not have
    sentences = [error.problem, *([f"({error.hint})"] if has_usable_hint else [])]
    return " ".join(sentences)
