"""A decision as a screen and a CI job's page show it."""

from __future__ import annotations

from isolux.policy.decision import Answer, Decision
from isolux.report.wording import plain

_WORD: dict[Answer, str] = {"pass": "PASS", "fail": "FAIL", "insufficient": "INSUFFICIENT"}
_MARK: dict[Answer, str] = {"pass": "✅ pass", "fail": "❌ fail", "insufficient": "❔ insufficient"}
_MEANS: dict[Answer, str] = {
    "pass": "every rule is shown to hold",
    "fail": "a rule is shown not to hold, names something that does not exist, or has no value",
    "insufficient": "no rule is shown not to hold, and not every rule is shown to hold",
}


def decision_text(decision: Decision) -> str:
    """Print warnings, what it comes to, each rule and why, those that fail first, and notes."""
    notes = [f"note: {_one_line(note)}" for note in decision.notes]
    warnings = [note for note in notes if note.startswith("note: WARNING")]
    means = f"{_MEANS[decision.answer]} ({_counts(decision)})"
    lines = [*warnings, f"{_WORD[decision.answer]}: {means}."]
    lines += [f"{_first_upper(_one_line(decision.unasked))}."] if decision.unasked else []
    order = ("fail", "insufficient", "pass")
    lines.append("")
    for one in sorted(decision.rules, key=lambda rule: order.index(rule.answer)):
        lines.append(f"{_WORD[one.answer]}  {one.place}. {_one_line(one.title)}")
        lines.append(f"      {_one_line(one.text)}")
    return "\n".join([*lines, "", _error(decision), *(n for n in notes if n not in warnings)])


def decision_markdown(decision: Decision) -> str:
    """Write a summary: the answer, a table of rules, notes."""
    lines = [f"## {_MARK[decision.answer]}: {_cell(_subject(decision))}", "",
             f"{_MEANS[decision.answer].capitalize()} ({_counts(decision)}).", "",
             *_left(decision), "| | rule | why |", "|---|---|---|"]  # fmt: skip
    lines += [
        f"| {_MARK[one.answer]} | {one.place}. {_cell(one.title)} | {_cell(one.text)} |"
        for one in decision.rules
    ]
    lines += ["", _error(decision)]
    if decision.notes:
        lines += ["", *(f"- {_cell(note)}" for note in decision.notes)]
    return "\n".join([*lines, ""])


def _left(decision: Decision) -> list[str]:
    said = _cell(_first_upper(decision.unasked))
    return [f"**{said}.**", ""] if said else []


def _subject(decision: Decision) -> str:
    model = str(decision.about.get("model") or "")
    run = f" ({decision.run})" if decision.run else ""
    policy = f", by {decision.policy}" if decision.policy else ""
    return f"{model or 'the run'}{run}{policy}"


def _counts(decision: Decision) -> str:
    answers = [one.answer for one in decision.rules]
    words: tuple[tuple[Answer, str], ...] = (
        ("pass", "pass"), ("fail", "fail"), ("insufficient", "insufficient"),
    )  # fmt: skip
    told = [f"{answers.count(key):,} {word}" for key, word in words if key in answers]
    return f"of {len(answers):,} rule{'s' if len(answers) != 1 else ''}: {', '.join(told)}"


def _error(decision: Decision) -> str:
    level = float(decision.about.get("level", 0.95))
    cases = int(decision.about.get("cases", 0))
    wrong = f"{100 * (1 - level):.4g} %"
    over = f"Holm over {cases:,} cases, an equal share for each rule"
    return (
        f"Bounds are one-sided, each at {100 * level:g} %. Over the whole policy, a rule that does "
        f"not hold lets it pass in at most {wrong} of audits, and one that holds in all of its "
        f"rules fails in at most {wrong}" + (f" ({over})." if cases > 1 else ".")
    )


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _one_line(text: str) -> str:
    return plain(" ".join(text.split()))


def _cell(text: str) -> str:
    """Keep names from ending a cell of a table, and from being read as markup."""
    safe = _one_line(text)
    for sign in ("&", "\\", "`", "*", "[", "]", "<", ">", "|", "~", "@"):
        safe = safe.replace(sign, f"&#{ord(sign)};")
    return safe
