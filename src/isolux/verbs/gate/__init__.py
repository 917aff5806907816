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

from isolux.policy import Decision, Policy, read_policy
from isolux.policy.asking import Baseline
from isolux.policy.deciding import decide
from isolux.policy.rules import SamePeople
from isolux.verbs._run_source import HasRun, RunSource
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError


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
    from isolux.verbs.gate.measuring import against, loaded, measured_run, same_scores

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
    from isolux.verbs.gate.measuring import loaded, measured_run

    name = str(run) if isinstance(run, str | Path) else ""
    return proposal(measured_run(loaded(run)), name)
