"""Yes, no, or not enough people: a policy asked of a finished audit.

    run directory → hashes → measured again from its scores → policy's rules → decision

The numbers are made again from the run's scores, so a decision never rests on a table that somebody
changed, and intervals can be asked at any level. What a policy is, and what its answers promise:
``docs/methods/gate.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.regrouping import regroup
from isolux.groups.unanswered import unanswered
from isolux.policy import Decision, Policy, read_policy
from isolux.policy.asking import Baseline, Measured
from isolux.policy.deciding import decide
from isolux.policy.rules import SamePeople
from isolux.verbs._in_memory import (
    HasRun,
    RunSource,
    as_scores,
    broken_run,
    held_run,
    read_unchanged,
)
from isolux.verbs.compare import paired
from isolux.verbs.compare.joining import judged_units
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.drawn import is_drawn
from isolux.vocabulary.errors import IsoluxError, RunError, SpecError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.progress import at
from isolux.vocabulary.spec import AuditSpec, recorded_spec


def gate(
    run: Run | HasRun | str | Path,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    baseline: Run | HasRun | str | Path | None = None,
) -> Decision:
    """Check a finished audit against a policy: pass, fail, or not enough people to tell.

    Parameters
    ----------
    run : Audit, Run, str or Path
        A finished audit, or its directory.
    policy : Policy, mapping, str or Path
        A YAML or JSON file, or what it holds.
    baseline : Audit, Run, str or Path, optional
        The run that `lost_at_most` looks back to.

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
    asked = read_policy(policy)
    needs = [rule for rule in asked.rules if rule.asks_baseline]
    if needs and baseline is None:
        raise SpecError(
            "a rule asks for a baseline, and none is given",
            expected="the run to look back to: --baseline RUN, or baseline=…",
            found=f"{needs[0].kind} without one",
            where=f"{asked.source}, rule {needs[0].place}",
        )
    finished = loaded(run)
    looked: dict[SamePeople, Baseline] = {}
    notes: tuple[str, ...] = ()
    if needs and baseline is not None:
        before = loaded(baseline, what="the baseline")
        notes = same_scores(finished, before)
        ways = {rule.same_people for rule in needs}
        looked = {way: against(finished, before, way, asked.unanswered) for way in ways}
    found = decide(asked, measured_run(finished, looked))
    found = replace(found, notes=(*notes, *found.notes))
    return _named(found, asked, run, baseline if needs else None)


def _named(found: Decision, asked: Policy, run: RunSource, baseline: RunSource | None) -> Decision:
    return replace(
        found,
        policy=asked.name or ("" if asked.source == "in memory" else asked.source),
        run=str(run) if isinstance(run, str | Path) else "",
        baseline=str(baseline) if isinstance(baseline, str | Path) else "",
    )


def proposed_policy(run: Run | HasRun | str | Path) -> str:
    """Propose a policy for a run, as YAML with a comment a line."""
    from isolux.policy.proposal import proposal

    name = str(run) if isinstance(run, str | Path) else ""
    return proposal(measured_run(loaded(run)), name)


_KEYS = ["model", "metric", "label", "threshold", "attribute", "values"]
_ALIKE = 1e-9
"""A share made again differs from what was written by rounding alone."""


def loaded(run: Any, *, what: str = "the run") -> Run:
    """Take a run from memory, or read its directory if nothing in it was changed."""
    where = str(run) if isinstance(run, str | Path) else None
    hint = "audit again: nothing is decided about numbers that were changed"
    found = held_run(run) if where is None else read_unchanged(run, hint, what=what)
    if found is None:
        raise RunError(
            f"{what} is none", expected="an audit, a run or its directory", found=type(run).__name__
        )
    _refuse_others(found, what, where)
    return found


def _refuse_others(run: Run, what: str, where: str | None) -> None:
    if "model_a" in run.disparities.columns:
        raise RunError(
            f"{what} compares two models",
            expected="a run of `isolux audit`",
            found="a comparison",
            where=where,
            hint="gate the newer model's run, with the other as --baseline",
        )
    if run.record.get("publish_min"):
        raise RunError(
            f"{what} is cut for publishing: groups of fewer than {run.record['publish_min']} are "
            "hidden",
            expected="the whole run that it was made of",
            found="a run without people",
            where=where,
        )


def measured_run(run: Run, looked: Mapping[SamePeople, Baseline] | None = None) -> Measured:
    """Measure a run again from its scores, and hold the result to the run's own table."""
    at("measuring the groups")
    with broken_run("the run"):
        spec = recorded_spec(run.record)
        estimates, absent = _estimates(run, spec)
    _refuse_other_numbers(run, estimates)
    none, looked = Baseline(problem="no baseline is given"), looked or {}
    least = (spec.statistics.min_units, spec.statistics.min_clusters)
    return Measured(
        estimates,
        run.record,
        run.findings,
        least,
        absent,
        looked.get("same", none),
        looked.get("different", none),
        run.disparities,
        looked.get("shared", none),
        unanswered(run.scores, regroup(run), run.evidence),
    )


def _estimates(run: Run, spec: AuditSpec) -> tuple[Estimates, dict[str, str]]:
    """Measure again; and name the metrics whose evidence the run does not keep."""
    info, absent = _kept_metrics(run)
    scores = Scores(run.scores, info, run.evidence, task=str(run.record.get("task") or ""))
    return measure_groups(scores, regroup(run), spec.statistics), absent


def _kept_metrics(run: Run) -> tuple[TaskInfo, dict[str, str]]:
    task = str(run.record.get("task") or "")
    if task not in registry.names("tasks"):
        return as_scores(run.scores).info, {}
    info, measured = registry.task_info(task), set(run.record.get("metrics") or ())
    wanted = [m for m in info.metrics if m.name in measured]
    units = run.record.get("measures") or {}
    wanted = [replace(m, unit=units.get(m.name, {}).get("unit", m.unit)) for m in wanted]
    kept = [m for m in wanted if m.statistic is None or m.evidence in run.evidence]
    absent = {
        m.name: f"the run does not keep what it rests on ({m.evidence}): audit again with "
        "--option keep_pairs=yes"
        for m in wanted
        if m not in kept
    }
    return replace(info, metrics=tuple(kept)), absent


def _refuse_other_numbers(run: Run, estimates: Estimates) -> None:
    """Refuse a run whose table says other values, or of other people, than its scores give."""
    columns = [*_KEYS, "n_units", "value"]
    keyed = pl.col("values").list.join("\x00")
    written = run.group_metrics.select(columns).with_columns(values=keyed)
    again = estimates.table().select(columns).with_columns(values=keyed)
    measures = again.select(_KEYS[:4]).unique()
    held = written.join(measures, on=_KEYS[:4], how="semi", nulls_equal=True)
    both = held.join(again, on=_KEYS, how="full", nulls_equal=True, suffix="_again")
    value, other = both["value"].to_numpy(), both["value_again"].to_numpy()
    alike = np.isclose(value, other, rtol=_ALIKE, atol=_ALIKE, equal_nan=True)
    count = (both["n_units"] == both["n_units_again"]).fill_null(value=False).to_numpy()
    if bool(np.all(alike & count)):
        return
    first = both.filter(pl.Series(~(alike & count))).row(0, named=True)
    raise RunError(
        "the run's scores do not give the numbers that it holds",
        expected=f"{first['metric']} of {first['values'] or 'everyone'}: {first['value']} of "
        f"{first['n_units']} units, as group_metrics.parquet has it",
        found=f"{first['value_again']} of {first['n_units_again']}",
        hint="it is of another version, weighted in a way that a gate cannot repeat, or was changed"
        ": audit again",
    )


def against(run: Run, before: Run, people: SamePeople, most: float = 0.01) -> Baseline:
    """Prepare the baseline: both models on the same people, or other people's own estimates."""
    at("measuring the baseline")
    met = _met(run, before)
    problem = _unfit(run, before, people, met) or _silent(before, most)
    if problem:
        return Baseline(problem=problem)
    try:
        if people == "different":
            return Baseline(other=measured_run(before).estimates)
        both = paired(run, before)
    except IsoluxError as error:
        return Baseline(problem=_clause(error))
    return Baseline(paired=both.estimates, models=(both.models[1], both.models[0]), people=met)


def same_scores(run: Run, before: Run) -> tuple[str, ...]:
    """Warn where a baseline's scores are the run's own: it may be the run itself by mistake."""
    columns = [name for name in run.scores.columns if name != "model"]
    now, then = (one.scores.select(columns).sort(columns) for one in (run, before))
    if now.is_empty() or now.height != then.height:
        return ()
    if not now.equals(then):
        return _other_ids(run, before)
    told = (
        "WARNING: the baseline has the scores of the run, person by person, so that nothing is lost"
    )
    return (f"{told}. Is it another run?",)


def _other_ids(run: Run, before: Run) -> tuple[str, ...]:
    """Warn where scores are alike row by row, and only the ids differ."""
    named = ("model", "unit_id", "cluster_id")
    now, then = (one.scores.drop(*named) for one in (run, before))
    if now["value"].drop_nulls().n_unique() < 2 or not now.equals(then):
        return ()
    told = "WARNING: the baseline has the scores of the run, row by row, under other ids"
    return (f"{told}. Are they the same people?",)


def _unfit(run: Run, before: Run, people: SamePeople, met: int) -> str:
    """Say why a baseline is not what the rule says of its people; empty: it is."""
    if people != "different" and not met:
        return (
            "it has none of this run's people; if they are others on purpose, write "
            "`people: different`"
        )
    if people == "shared":
        return ""
    if people == "same":
        n_ours, n_theirs = len(judged_units(run)), len(judged_units(before))
        if n_ours == n_theirs == met:
            return ""
        return (
            f"{n_theirs - met:,} of its {n_theirs:,} people are not in this run, and "
            f"{n_ours - met:,} of this run's {n_ours:,} are not in it; to compare the {met:,} "
            "in both, write `people: shared`"
        )
    if met:
        return (
            f"{met:,} people are in both runs, though the rule says that they are different; "
            "write `people: same`, or name people by ids that are theirs alone"
        )
    ours, theirs = recorded_spec(run.record), recorded_spec(before.record)
    differ = _unlike(ours, theirs, run.record, before.record)
    return f"it differs in the setting {differ}: another number is measured" if differ else ""


def _silent(before: Run, most: float) -> str:
    """Say of whom a baseline lacks predictions: its errors may be among them."""
    counted = unanswered(before.scores, regroup(before), before.evidence)
    for row in counted.filter(pl.col("missing") > most * pl.col("n")).iter_rows(named=True):
        whom = row["group"] or "everyone"
        return (
            f"of {whom}, {row['missing']:,} of its {row['n']:,} people have no prediction, and the "
            f"policy allows {100 * most:g} % (unanswered_at_most)"
        )
    return ""


def _met(run: Run, before: Run) -> int:
    """Count ids that both runs judged; row numbers are not ids."""
    if "row numbers" in {one.record.get("ids") for one in (run, before)}:
        files = [dict(one.record.get("inputs") or {}) for one in (run, before)]
        if not set(files[0].values()) & set(files[1].values()):
            return 0
    ids = judged_units(before)
    return int(judged_units(run).is_in(ids.implode()).sum())


def _unlike(
    ours: AuditSpec, theirs: AuditSpec, now: Mapping[str, Any], then: Mapping[str, Any]
) -> str:
    """Name the first setting that makes a group or a score another; empty: all are alike."""
    if now.get("task") != then.get("task"):
        return "task"
    if is_drawn(now) != is_drawn(then):
        return "weight or strata"
    for stage in ("groups", "task"):
        one, two = (getattr(spec, stage).model_dump(mode="json") for spec in (ours, theirs))
        for key in one:
            if key != "by" and one.get(key) != two.get(key):
                return f"{key!r}"
    return ""


def _clause(error: IsoluxError) -> str:
    hint = error.hint and "--allow-" not in error.hint  # flags that a gate does not have
    parts = [error.problem, *([f"({error.hint})"] if hint else [])]
    return " ".join(parts)
