"""What a policy answers: of each rule pass, fail or insufficient, and of all rules together.

One object holds what command, function and pytest plugin show. ``record`` is its JSON, as
``docs/schemas/gate-1.json`` declares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Answer = Literal["pass", "fail", "insufficient"]
EXIT_CODES: Mapping[str, int] = {"pass": 0, "fail": 1, "insufficient": 3}
"""2 is misuse (the policy or a flag is wrong), 4 a run that cannot be used."""
SCHEMA = "https://github.com/isolux/isolux/blob/main/docs/schemas/gate-1.json"


@dataclass(frozen=True, slots=True)
class Case:
    """One value, difference or ratio that a rule is about.

    Parameters
    ----------
    answer : {"pass", "fail", "insufficient"}
    model, metric, label, threshold, attribute, group : optional
        What was measured, of whom; attribute None: everyone.
    other : str, optional
        The group, the "everyone else" or the "baseline" that it is held to.
    estimate, low, high : float, optional
        In the metric's unit (ratios: none), with one-sided bounds, each at the policy's level.
    p_fail : float, optional
        Of "the value is on the right side of its limit", adjusted over all cases of the policy.
    n, n_other : int, optional
        Units behind either side.
    more, more_other : int, optional
        Units to add to either side, so that the case is decided with the policy's power.
    more_clusters : int, optional
        The clusters in which those of the first side would come, as many to a cluster as now.
    reason : str, optional
        Why it could not be asked.
    """

    answer: Answer
    model: str | None = None
    metric: str | None = None
    label: str | None = None
    threshold: float | None = None
    attribute: str | None = None
    group: str | None = None
    other: str | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p_fail: float | None = None
    n: int | None = None
    n_other: int | None = None
    more: int | None = None
    more_other: int | None = None
    more_clusters: int | None = None
    reason: str | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The case as JSON has it; what is not known is left out."""
        every = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in every.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What one rule answers, and why.

    Parameters
    ----------
    place : int
        From 1, in the policy.
    kind, title : str
    answer : {"pass", "fail", "insufficient"}
    text : str
        Sentences: what decided it; of an insufficient one, how many more people would.
    cases : tuple of Case
        What it rests on, the worst first.
    """

    place: int
    kind: str
    title: str
    answer: Answer
    text: str
    cases: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy answers of a run.

    Parameters
    ----------
    answer : {"pass", "fail", "insufficient"}
        ``fail`` where a rule fails, else ``insufficient`` where one is, else ``pass``.
    rules : tuple of RuleAnswer
        In the policy's order.
    policy, run, baseline : str
        Names of files or folders; empty: in memory, or none.
    notes : tuple of str
        What must be read beside the answer, first of all the run's own warnings.
    unasked : str
        Attributes of the run that no rule asks about, and of which a difference was found; empty:
        none. JSON has it as the last of the notes.
    about : mapping
        Model, task, level, power and number of cases.
    """

    answer: Answer
    rules: tuple[RuleAnswer, ...]
    policy: str = ""
    run: str = ""
    baseline: str = ""
    notes: tuple[str, ...] = ()
    unasked: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 insufficient."""
        return EXIT_CODES[self.answer]

    @property
    def passed(self) -> bool:
        """Whether every rule passes."""
        return self.answer == "pass"

    @property
    def record(self) -> dict[str, Any]:
        """The decision as JSON has it."""
        return {
            "schema": SCHEMA,
            "answer": self.answer,
            "exit_code": self.exit_code,
            "policy": self.policy,
            "run": self.run,
            "baseline": self.baseline,
            **dict(self.about),
            "notes": [*self.notes, *([self.unasked] if self.unasked else [])],
            "rules": [
                {
                    "rule": one.place, "kind": one.kind, "title": one.title, "answer": one.answer,
                    "text": one.text, "cases": [case.record for case in one.cases],
                }
                for one in self.rules
            ],
        }  # fmt: skip

    def json(self) -> str:
        """Return the decision as JSON text."""
        import json

        return json.dumps(self.record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def text(self) -> str:
        """Return what command, function and pytest say: a line a rule, and what it comes to."""
        from isolux.policy.printed import decision_text

        return decision_text(self)

    def markdown(self) -> str:
        """Return a summary for a CI job's page."""
        from isolux.policy.printed import decision_markdown

        return decision_markdown(self)

    def junit(self) -> str:
        """Return JUnit XML: a test case a rule; insufficient is an error, never a skip."""
        from isolux.policy.junit import decision_junit

        return decision_junit(self)

    def __str__(self) -> str:
        return self.text()
