"""Rates in people: of so many, for how many the model is right; how many times as often it errs."""

from __future__ import annotations

import re

from isolux.statements.numbers import SMALL_RATE, fixed
from isolux.vocabulary.info import Metric

_BASES = (100, 1_000, 10_000, 1_000_000)
"""Of how many people a sentence speaks."""
_TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times",
          7: "seven times", 8: "eight times", 9: "nine times", 10: "ten times"}  # fmt: skip


def describe_counts(metric: Metric, label: str, values: tuple[float, float]) -> str:
    """Say two rates in people: of so many of each group, how many the model is right about.

    Examples
    --------
    >>> metric = Metric(name="accuracy", title="Accuracy", definition="", direction="higher",
    ...                 in_people="Of {people} the model is right for {n}")
    >>> describe_counts(metric, "", (0.63, 0.97)), describe_counts(metric, "", (0.0002, 0.0018))
    ('it is right for 63 of 100 against 97', 'it is right for 2 of 10,000 against 18')
    """
    template = metric.in_people
    if not template or ("{label}" in template and not label):
        return ""
    base = _base(*values)
    first, second = (f"{round(base * x):,}" for x in values)
    short = template.removeprefix("Of {people} the model ")
    counts = f"{first} against {second}"
    if short != template:
        template, counts = f"it {short}", f"{first} of {base:,} against {second}"
    slots = {"people": f"{base:,}", "n": counts, "label": label}
    text = template.replace("the model", "it", 1).replace("Of ", "of ", 1)
    return re.sub(r"\{(\w+)\}", lambda slot: slots.get(slot[1], slot[0]), text)


def _base(first: float, second: float) -> int:
    """Choose of how many people to speak: of so many that both counts and the gap are seen."""
    is_small = max(first, second) < SMALL_RATE
    for base in _BASES[2 if is_small else 0 :]:
        a, b = base * first, base * second
        is_seen = all(x >= 0.5 or x == 0 for x in (a, b))
        if is_seen and (round(a) != round(b) or first == second):
            return base
    return _BASES[-1]


def describe_ratio(
    metric: Metric, values: tuple[float, float], ends: tuple[float | None, float | None]
) -> str:
    """Say how many times as often an error is made: strangers are accepted nine times as often.

    Examples
    --------
    >>> metric = Metric(name="false_match_rate", title="", definition="", direction="lower",
    ...                 in_times="strangers are accepted {times} as often")
    >>> describe_ratio(metric, (0.0018, 0.0002), (0.001, 0.002))
    'strangers are accepted nine times as often'
    """
    low, high = ends
    is_shown = low is not None and high is not None and not low <= 0 <= high
    if not metric.in_times or not is_shown or min(values) <= 0:
        return ""
    return metric.in_times.replace("{times}", _times(max(values) / min(values)))


def _times(ratio: float) -> str:
    if ratio > 10.5:
        return f"{ratio:,.0f} times"
    near = round(ratio)
    is_whole = near in _TIMES and abs(ratio - near) <= 0.05 * near
    return _TIMES[near] if is_whole else f"{fixed(ratio)} times"
