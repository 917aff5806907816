"""What a rule is called, and what is said of its answer: one text for all who ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from isolux.policy.asking import Measured, plain
from isolux.policy.decision import Case
from isolux.policy.rules import Policy, Rule, level_of, margin_of
from isolux.statements.numbers import MINUS, p_equals, points, value_text, with_unit
from isolux.stats.statistic import PairStatistic
from isolux.vocabulary.spec import recorded_spec
from isolux.vocabulary.words import brief

if TYPE_CHECKING:
    from isolux.policy.asking import Measured
    from isolux.vocabulary.info import Metric


_SHOWN = 4
_OF_DIFFERENCE = ("within", "worse_by_at_most", "lost_at_most", "none_above")


def title(rule: Rule, measured: Measured) -> str:
    """Return the name that a policy gives a rule, or what it asks in a few words."""
    if rule.title:
        return rule.title
    if rule.kind == "ran":
        return f"{', '.join(rule.analyses)} must have run"
    if rule.kind == "covered":
        return _title_covered(rule)
    amount = rule.amount.text if rule.amount else f"{rule.ratio:g}"
    if rule.kind == "none_above":
        return f"No gap and no finding of {', '.join(rule.analyses)} above {amount}"
    name = _metric_title(rule, measured)
    of = _whom(rule)
    asked = {
        "at_least": f"{name} of {of}: at least {amount}",
        "at_most": f"{name} of {of}: at most {amount}",
        "within": f"{name}: no two of {of} more than {amount} apart",
        "worse_by_at_most": f"{name}: none of {of} more than {amount} worse than "
        f"{rule.than or 'everyone else'}",
        "lost_at_most": f"{name}: {of} lost at most {amount} since the baseline",
        "ratio_at_least": f"{name}: smallest over largest of {of} at least {amount}",
    }
    return asked[rule.kind]


def _title_covered(rule: Rule) -> str:
    least = [f"{rule.people:,} people"] if rule.people else []
    least += [f"{rule.clusters:,} clusters"] if rule.clusters else []
    return f"Groups covered: {_whom(rule)}" + (
        f", each with {' and '.join(least)}" if least else ""
    )


def _metric_title(rule: Rule, measured: Measured) -> str:
    found = [m.info.title for m in measured.estimates.measures if m.metric == rule.metric]
    name = found[0] if found else str(rule.metric)
    more = [rule.label] if rule.label else []
    more += [f"at {rule.threshold:g}"] if rule.threshold is not None else []
    more += [f"model {rule.model}"] if rule.model else []
    return f"{name} ({', '.join(more)})" if more else name


def _whom(rule: Rule) -> str:
    if rule.attribute is None:
        return "everyone"
    if len(rule.groups) > _SHOWN:
        return f"{len(rule.groups):,} groups of {rule.attribute}"
    if rule.groups:
        return f"{', '.join(rule.groups)} ({rule.attribute})"
    return f"the groups of {rule.attribute}"


def ruled(rule: Rule, cases: Sequence[Case], measured: Measured, policy: Policy) -> str:
    """Say what decided a rule, and of one that is not decided, what would."""
    return _ruled(rule, cases, measured, policy)


def _ruled(rule: Rule, cases: Sequence[Case], measured: Measured, policy: Policy) -> str:
    answer = cases[0].answer
    told = _once([case for case in cases if case.answer == answer])
    if answer == "pass":
        lead = "It holds" if len(told) == 1 else f"It holds in all {len(told):,} cases; nearest"
        n = measured.baseline(rule).people if rule.asks_baseline else 0
        both = f" {n:,} people are in both runs." if n else ""
        return f"{lead}: {_measured_ones(rule, told[:1], cases, measured)}.{both}"
    seen = [case for case in told if not case.reason]
    parts = [_measured_ones(rule, seen, cases, measured)] if seen else []
    parts += _by_reason([case for case in told if case.reason])
    text = "; ".join(parts)
    if answer == "fail":
        also = sum(case.answer == "insufficient" for case in _once(cases))
        return f"{_ended(text)}" + (f" Also not decided: {also:,}." if also else "")
    told_more = needed(told, policy, baseline=rule.asks_baseline, noun=noun_of(rule, measured))
    return f"{_ended(text)} {told_more}".strip()


def _ended(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _measured_ones(
    rule: Rule, told: Sequence[Case], cases: Sequence[Case], measured: Measured
) -> str:
    """Say the first few cases that have a number."""
    infos = {m.metric: m.info for m in measured.estimates.measures}
    several = len({(c.metric, c.label, c.threshold) for c in cases if c.metric}) > 1
    models = len({c.model for c in cases if c.model}) > 1
    said = [_case(rule, case, infos, several=several, models=models) for case in told[:_SHOWN]]
    return "; ".join(said) + _and_more(len(told) - _SHOWN)


def _by_reason(cases: Sequence[Case]) -> list[str]:
    """Name those who could not be asked, by why not."""
    found: dict[str, list[str]] = {}
    for case in cases:
        who = brief(str(case.group or case.attribute or case.metric or "the run"))
        found.setdefault(str(case.reason), []).append(who)
    said = [
        f"{', '.join(who[:_SHOWN])}{_and_more(len(who) - _SHOWN, comma=True)}: {why}"
        for why, who in found.items()
    ]
    return said[:_SHOWN]


def _and_more(n: int, *, comma: bool = False) -> str:
    return "" if n < 1 else f"{'' if comma else ';'} and {n:,} more"


def _once(cases: Sequence[Case]) -> list[Case]:
    """Leave out the second direction of a pair: the worse one stands first."""
    found: dict[tuple[object, ...], Case] = {}
    for case in cases:
        pair = frozenset((case.group, case.other))
        key = (case.model, case.metric, case.label, case.threshold, case.attribute, pair)
        found.setdefault(key, case)
    return list(found.values())


def _case(rule: Rule, case: Case, infos: dict[str, Metric], *, several: bool, models: bool) -> str:
    info = infos.get(str(case.metric))
    at = None if case.threshold is None else f"at {case.threshold:g}"
    parts = [
        case.model if models else None,
        *((info.title if info else None, case.label, at) if several else ()),
    ]
    of = ", ".join(part for part in parts if part)
    who = brief(case.group or "everyone")
    who = f"{who} ({of})" if of else who
    unit = info.unit if info else ""
    return f"{who} {_measured(rule, case, unit)}{_p(rule, case, unit)}"


def _p(rule: Rule, case: Case, unit: str) -> str:
    """Tell the adjusted p of what fails, and of what would fail if it were the only case."""
    if case.answer == "fail":
        return f", adjusted {p_equals(case.p_fail)}"
    if not _beyond(rule, case, unit):
        return ""
    return (
        ", beyond the limit on its own, but not once corrected for all cases "
        f"(adjusted {p_equals(case.p_fail)})"
    )


def _beyond(rule: Rule, case: Case, unit: str) -> bool:
    """Whether both bounds of an undecided case lie on the wrong side of its limit."""
    low, high = case.low, case.high
    if case.answer != "insufficient" or case.reason or low is None or high is None:
        return False
    if rule.amount is None:
        return rule.ratio is not None and high < rule.ratio
    if rule.kind in _OF_DIFFERENCE:
        margin = margin_of(rule.amount, unit, what=rule.kind, where=rule.where)
        return low > margin or high < -margin
    limit = level_of(rule.amount, unit, what=rule.kind, where=rule.where)
    return high < limit if rule.kind == "at_least" else low > limit


def _measured(rule: Rule, case: Case, unit: str) -> str:
    """Say a value with its bounds: ``77.4 % (74.6 to 80.0)``."""
    value, low, high = case.estimate, case.low, case.high
    if rule.kind == "ratio_at_least":
        return f"has {_three(value)} times that of {case.other} ({_three(low)} to {_three(high)})"
    ends = f"({value_text(low, unit)} to {value_text(high, unit)})"
    if rule.kind not in _OF_DIFFERENCE:
        return f"has {with_unit(value, unit)} {ends}"
    if rule.kind == "lost_at_most":
        return f"changed by {_plus(points(value, unit), value)} {_signed(low, high, unit)}"
    way = "above" if (value or 0) >= 0 else "below"
    flip = way == "below" and low is not None and high is not None
    first, last = (-high, -low) if flip else (low, high)  # type: ignore[operator]
    ends = f"({value_text(first, unit)} to {value_text(last, unit)})"
    return f"is {points(value, unit)} {way} {brief(str(case.other))} {ends}"


def _signed(low: float | None, high: float | None, unit: str) -> str:
    first, last = (value_text(end, unit, sign=True) for end in (low, high))
    return f"({first} to {last})"


def _plus(text: str, value: float | None) -> str:
    return f"{'+' if (value or 0) >= 0 else MINUS}{text}"


def _three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def noun_of(rule: Rule, measured: Measured) -> str:
    """Call what a metric is measured on: people, or pairs."""
    asked = [m for m in measured.estimates.measures if m.metric == rule.metric]
    in_pairs = bool(asked) and all(isinstance(m.info.statistic, PairStatistic) for m in asked)
    return "pairs" if in_pairs else "people"


def needed(
    cases: Sequence[Case], policy: Policy, *, baseline: bool = False, noun: str = "people"
) -> str:
    """Say how many more people of which group would decide what is not decided."""
    units: dict[str, tuple[int, int | None]] = {}
    for case in cases:
        for group, n, clusters in (
            (case.group, case.more, case.more_clusters),
            (case.other, case.more_other, None),
        ):
            if n and group is not None and case.reason is None:
                before = units.get(group, (0, None))
                units[group] = (n, clusters) if n > before[0] else before
    text = []
    if units:
        shown = sorted(units.items(), key=lambda item: -item[1][0])
        listed = [_people(brief(name), *number, noun) for name, number in shown[:_SHOWN]]
        listed += [f"more of {len(shown) - _SHOWN:,} other groups"] if shown[_SHOWN:] else []
        both = " in both runs" if baseline else ""
        text.append(f"About {_and(listed)}{both} would decide it (probability {policy.power:g}).")
    least = [case for case in cases if case.reason and (case.more or case.more_clusters)]
    if least:
        said = [f"{_lacks(case)} of {brief(str(case.group))}" for case in least[:_SHOWN]]
        cut = f"; and more of {len(least) - _SHOWN:,} others" if least[_SHOWN:] else ""
        text.append(f"To be judged at all, it takes {'; '.join(said)}{cut}.")
    untold = [
        case
        for case in cases
        if case.group and case.reason and not (case.more or case.more_clusters)
    ]
    if untold:
        named = _and([brief(str(case.group)) for case in untold[:_SHOWN]])
        cut = f" and {len(untold) - _SHOWN:,} others" if untold[_SHOWN:] else ""
        text.append(f"How many more {noun} of {named}{cut} it takes cannot be told.")
    if not text:
        text.append(
            "Even more than a million times as many people would not be sure to decide it."
            if any(case.reason is None for case in cases)
            else "More people would not help: look at the finding."
        )
    return " ".join(text)


def _people(name: str, n: int, clusters: int | None, noun: str) -> str:
    within = f" in {_rounded(clusters)} more clusters" if clusters and clusters < n else ""
    return f"{_rounded(n)} more {noun} of {name}{within}"


def _rounded(n: int) -> str:
    """Print two digits of a number that is known no better, never less than it is.

    Examples
    --------
    >>> _rounded(14_864), _rounded(86), _rounded(301)
    ('15,000', '86', '310')
    """
    step = 10 ** max(len(str(n)) - 2, 0)
    return f"{-(-n // step) * step:,}"


def _lacks(case: Case) -> str:
    parts = [f"{case.more:,} more {'people' if case.more > 1 else 'person'}"] if case.more else []
    clusters = case.more_clusters
    parts += [f"{clusters:,} more cluster{'s' if clusters != 1 else ''}"] if clusters else []
    return f"at least {' and '.join(parts)}"


def counted(rule: Rule, cases: Sequence[Case]) -> str:
    """Say what decided a rule of groups or analyses."""
    answer = cases[0].answer
    told = [case for case in cases if case.answer == answer]
    if answer == "pass":
        if rule.kind == "ran":
            return "All of them ran." if len(told) > 1 else "It ran."
        least = min(told, key=lambda case: case.n or 0)
        number = f"{len(told):,} groups are" if len(told) > 1 else "group is"
        return f"The {number} there; the smallest is {least.group}: {least.reason}."
    said = [f"{brief(str(case.group or case.attribute))}: {case.reason}" for case in told[:_SHOWN]]
    text = _ended("; ".join(said) + _and_more(len(told) - _SHOWN))
    if answer == "fail":
        return text
    lacks = [f"{_lacks(case)} of {brief(str(case.group))}" for case in told[:_SHOWN]]
    return f"{text} It takes {'; '.join(lacks)}."


def _and(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


_FACTS = ("covered", "ran")
_NAMES = 8
_FOUND = " (a difference was found)"


def found_differences(measured: Measured) -> list[tuple[str, str]]:
    """List attribute and metric of each difference that the audit itself found."""
    findings = measured.findings
    if not findings.height:
        return []
    alpha = 1.0 - recorded_spec(measured.record).statistics.level
    rows = findings.filter(
        pl.col("analysis") == "group_gaps",
        pl.col("p_adjusted") <= alpha,
        pl.col("attribute").is_not_null(),
        pl.col("metric").is_not_null(),
    ).sort("rank")
    return list(dict.fromkeys(rows.select("attribute", "metric").iter_rows()))


def unasked(policy: Policy, measured: Measured) -> str:
    """Name the attributes of a run whose groups no rule holds to a limit; empty: there are none."""
    if any(rule.kind == "none_above" for rule in policy.rules):
        return ""
    asked = {
        plain(rule.attribute)
        for rule in policy.rules
        if rule.attribute is not None and rule.kind not in _FACTS
    }
    left = [name for name in measured.estimates.domain_of if plain(name) not in asked]
    if not left:
        return ""
    differ = {plain(name) for name, _ in found_differences(measured)}
    found = [f"{name}{_FOUND}" for name in left if plain(name) in differ]
    named = found + [name for name in left if plain(name) not in differ]
    counted = {
        plain(rule.attribute)
        for rule in policy.rules
        if rule.attribute is not None and rule.kind == "covered"
    }
    bare = [one for one in named if plain(_name(one)) not in counted]
    parts = [f"not asked by any rule: {_listed(bare)}"] if bare else []
    rest = [one for one in named if one not in bare]
    if rest:
        parts.append(
            "counted by a rule, but no rule checks how well the model "
            f"works for them: {_listed(rest)}"
        )
    return "; ".join(parts)


def _name(entry: str) -> str:
    return entry.removesuffix(_FOUND)


def _listed(named: list[str]) -> str:
    shown = max(_NAMES, sum(one.endswith(_FOUND) for one in named))
    more = f" and {len(named) - shown:,} more" if named[shown:] else ""
    return ", ".join(named[:shown]) + more
