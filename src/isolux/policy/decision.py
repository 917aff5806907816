"""What a policy answers: of each rule pass, fail or insufficient, and of all rules together.

One object holds what command, function and pytest plugin show. ``record`` is its JSON, as
``docs/schemas/gate-1.json`` declares it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from isolux.core.notes import SMALL_GROUPS_SHOWN
from isolux.core.printable import clean_line

Answer = Literal["pass", "fail", "insufficient"]
EXIT_CODES: Mapping[str, int] = {"pass": 0, "fail": 1, "insufficient": 3}
"""2 is misuse (the policy or a flag is wrong), 4 a run that cannot be used."""
SCHEMA = "https://github.com/isolux/isolux/blob/main/docs/schemas/gate-1.json"


@dataclass(frozen=True, slots=True)
class RuleCase:
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
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: field_value for name, field_value in fields.items() if field_value is not None
        }


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What one rule answers, and why.

    Parameters
    ----------
    number : int
        From 1, in the policy.
    kind, title : str
    answer : {"pass", "fail", "insufficient"}
    text : str
        Sentences: what decided it; of an insufficient one, how many more people would.
    cases : tuple of RuleCase
        What it rests on, the worst first.
    """

    number: int
    kind: str
    title: str
    answer: Answer
    text: str
    cases: tuple[RuleCase, ...] = ()


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
    uncovered_attributes : str
        Attributes of the run that no rule asks about, and of which a difference was found; empty:
        none. JSON has it as the last of the notes.
    context : mapping
        Model, task, level, power and number of cases.
    """

    answer: Answer
    rules: tuple[RuleAnswer, ...]
    policy: str = ""
    run: str = ""
    baseline: str = ""
    notes: tuple[str, ...] = ()
    uncovered_attributes: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)

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
            **dict(self.context),
            "notes": [
                *self.notes,
                *([self.uncovered_attributes] if self.uncovered_attributes else []),
            ],
            "rules": [
                {
                    "rule": rule_answer.number,
                    "kind": rule_answer.kind,
                    "title": rule_answer.title,
                    "answer": rule_answer.answer,
                    "text": rule_answer.text,
                    "cases": [case.record for case in rule_answer.cases],
                }
                for rule_answer in self.rules
            ],
        }

    def json(self) -> str:
        """Return the decision as JSON text."""
        import json

        return json.dumps(self.record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def text(self) -> str:
        """Return what command, function and pytest say: a line a rule, and what it comes to."""
        return format_decision_text(self)

    def markdown(self) -> str:
        """Return a summary for a CI job's page."""
        return format_decision_markdown(self)

    def junit(self) -> str:
        """Return JUnit XML: a test case a rule; insufficient is an error, never a skip."""
        return format_decision_junit_xml(self)

    def __str__(self) -> str:
        return self.text()


_ANSWER_WORDS: dict[Answer, str] = {"pass": "PASS", "fail": "FAIL", "insufficient": "INSUFFICIENT"}
_ANSWER_MARKS: dict[Answer, str] = {
    "pass": "✅ pass",
    "fail": "❌ fail",
    "insufficient": "❔ insufficient",
}
_ANSWER_MEANINGS: dict[Answer, str] = {
    "pass": "every rule is shown to hold",
    "fail": "a rule is shown not to hold, names something that does not exist, or has no value",
    "insufficient": "no rule is shown not to hold, and not every rule is shown to hold",
}


def format_decision_text(decision: Decision) -> str:
    """Print warnings, what it comes to, each rule and why, those that fail first, and notes."""
    notes = [f"note: {_join_lines_by_spaces(note)}" for note in decision.notes]
    warnings = [note for note in notes if note.startswith("note: WARNING")]
    summary = f"{_ANSWER_MEANINGS[decision.answer]} ({_format_answer_counts(decision)})"
    lines = [*warnings, f"{_ANSWER_WORDS[decision.answer]}: {summary}."]
    lines += (
        [f"{_capitalise_first(_join_lines_by_spaces(decision.uncovered_attributes))}."]
        if decision.uncovered_attributes
        else []
    )
    order = ("fail", "insufficient", "pass")
    lines.append("")
    for rule_answer in sorted(decision.rules, key=lambda rule: order.index(rule.answer)):
        word, rule_title = (
            _ANSWER_WORDS[rule_answer.answer],
            _join_lines_by_spaces(rule_answer.title),
        )
        lines.append(f"{word}  {rule_answer.number}. {rule_title}")
        lines.append(f"      {_join_lines_by_spaces(rule_answer.text)}")
    return "\n".join(
        [*lines, "", _explain_error_rates(decision), *(n for n in notes if n not in warnings)]
    )


def format_decision_markdown(decision: Decision) -> str:
    """Write a summary: the answer, a table of rules, notes."""
    subject = _escape_markdown(_format_decision_subject(decision))
    lines = [
        f"## {_ANSWER_MARKS[decision.answer]}: {subject}",
        "",
        f"{_ANSWER_MEANINGS[decision.answer].capitalize()} ({_format_answer_counts(decision)}).",
        "",
        *_format_uncovered_attributes(decision),
        "| | rule | why |",
        "|---|---|---|",
    ]
    lines += [
        f"| {_ANSWER_MARKS[rule_answer.answer]} "
        f"| {rule_answer.number}. {_escape_markdown(rule_answer.title)} "
        f"| {_escape_markdown(rule_answer.text)} |"
        for rule_answer in decision.rules
    ]
    lines += ["", _explain_error_rates(decision)]
    if decision.notes:
        lines += ["", *(f"- {_escape_markdown(note)}" for note in decision.notes)]
    lines += ["", SMALL_GROUPS_SHOWN]
    return "\n".join([*lines, ""])


def _format_uncovered_attributes(decision: Decision) -> list[str]:
    text = _escape_markdown(_capitalise_first(decision.uncovered_attributes))
    return [f"**{text}.**", ""] if text else []


def _format_decision_subject(decision: Decision) -> str:
    model = str(decision.context.get("model") or "")
    run = f" ({decision.run})" if decision.run else ""
    policy = f", by {decision.policy}" if decision.policy else ""
    return f"{model or 'the run'}{run}{policy}"


def _format_answer_counts(decision: Decision) -> str:
    answers = [rule_answer.answer for rule_answer in decision.rules]
    words: tuple[tuple[Answer, str], ...] = (
        ("pass", "pass"),
        ("fail", "fail"),
        ("insufficient", "insufficient"),
    )
    counts = [f"{answers.count(key):,} {word}" for key, word in words if key in answers]
    return f"of {len(answers):,} rule{'s' if len(answers) != 1 else ''}: {', '.join(counts)}"


def _explain_error_rates(decision: Decision) -> str:
    level = float(decision.context.get("level", 0.95))
    cases = int(decision.context.get("cases", 0))
    error_rate = f"{100 * (1 - level):.4g} %"
    correction = f"Holm over {cases:,} cases, an equal share for each rule"
    return (
        f"Bounds are one-sided, each at {100 * level:g} %. Over the whole policy, a rule that does "
        f"not hold lets it pass in at most {error_rate} of audits, and one that holds in all of "
        f"its rules fails in at most {error_rate}" + (f" ({correction})." if cases > 1 else ".")
    )


def _capitalise_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _join_lines_by_spaces(text: str) -> str:
    return clean_line(" ".join(text.split()))


def _escape_markdown(text: str) -> str:
    """Keep names from ending a cell of a table, and from being read as markup."""
    escaped = _join_lines_by_spaces(text)
    for symbol in ("&", "\\", "`", "*", "[", "]", "<", ">", "|", "~", "@"):
        escaped = escaped.replace(symbol, f"&#{ord(symbol)};")
    return escaped


def format_decision_junit_xml(decision: Decision) -> str:
    """Write the XML: one suite named by the policy, one case for each rule."""
    answers = [rule_answer.answer for rule_answer in decision.rules]
    counts = {
        "tests": str(len(answers)),
        "failures": str(answers.count("fail")),
        "errors": str(answers.count("insufficient")),
        "skipped": "0",
        "time": "0",
    }
    root = ET.Element("testsuites", {"name": "isolux gate", **counts})
    suite = ET.SubElement(
        root, "testsuite", {"name": _clean_text_for_xml(decision.policy or "isolux gate"), **counts}
    )
    properties = ET.SubElement(suite, "properties")
    for name, property_text in (
        ("run", decision.run),
        ("baseline", decision.baseline),
        *([("unasked", decision.uncovered_attributes)] if decision.uncovered_attributes else []),
        *((k, str(v)) for k, v in decision.context.items()),
        ("privacy", SMALL_GROUPS_SHOWN),
    ):
        ET.SubElement(
            properties, "property", {"name": name, "value": _clean_text_for_xml(property_text)}
        )
    for rule_answer in decision.rules:
        case = ET.SubElement(
            suite,
            "testcase",
            {
                "classname": "isolux.gate",
                "name": _clean_text_for_xml(f"{rule_answer.number}. {rule_answer.title}"),
                "time": "0",
            },
        )
        if rule_answer.answer != "pass":
            element_name = "failure" if rule_answer.answer == "fail" else "error"
            problem = ET.SubElement(
                case,
                element_name,
                {"type": rule_answer.answer, "message": _clean_text_for_xml(rule_answer.text)},
            )
            problem.text = _clean_text_for_xml(rule_answer.text)
        ET.SubElement(case, "system-out").text = _clean_text_for_xml(rule_answer.text)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean_text_for_xml(text: str) -> str:
    return clean_line(text)
