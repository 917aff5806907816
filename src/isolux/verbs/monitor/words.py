"""What monitoring says of one gap: an alarm and since when, a change, or how large it could be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from isolux.statements.numbers import interval, signed_points
from isolux.verbs.monitor.gaps import Gap
from isolux.verbs.monitor.looks import Look
from isolux.vocabulary.drawn import weighted_title


def sentence(
    gap: Gap, found: dict[str, Any], looks: Sequence[Look], level: float, threshold: float
) -> str:
    """Word what is known of a gap after the last look."""
    name = weighted_title(gap.metric.titled(gap.named["threshold"]), looks[0].run.record)
    what = f"{name} of {gap.named['label']}" if gap.named["label"] else name
    who = f"{gap.named['group']} ({gap.named['attribute'].replace('_', ' ')})"
    said = f"{100 * level:g} % at every look"
    if found["alarm_at"] is None:
        could = _range(gap, found["constant_low"], found["constant_high"])
        start = (
            f"{what} for {who}: no gap to {gap.others} is shown in {len(looks)} looks "
            f"(e-value {e_text(found['e_value'])}; an alarm needs {e_text(threshold)})"
        )
        return (
            f"{start}. If it is always the same, {gap.named['group']} less {gap.others} is "
            f"{could} ({said})."
        )
    alarm, since = looks[found["alarm_at"] - 1], looks[found["since"] - 1]
    begun = (
        "most likely since the first look"
        if found["since"] == 1
        else f"most likely since look {found['since']} ({since.at})"
    )
    looks_late = "1 look" if found["delay"] == 1 else f"{found['delay']} looks"
    late = f", {looks_late} earlier" if found["since"] != 1 and found["delay"] else ""
    size = _size(gap, found, len(looks), said)
    differs = "has differed" if found["began_from"] is None else "differs"  # it may be over
    told = (
        f"{what} for {who} {differs} from that for {gap.others}: alarm at look {found['alarm_at']} "
        f"({alarm.at}; an alarm needs an e-value of {e_text(threshold)}, the largest so far is "
        f"{e_text(found['e_value'])}), {begun} "
        f"({100 * found['share']:.0f} % of the evidence){late}; {size}."
    )
    if found["changed_at"] is not None:
        when = looks[found["changed_at"] - 1].at
        told += (
            f" It has changed: no single gap fits all looks, which is known since look"
            f" {found['changed_at']} ({when})."
        )
    return told


def _size(gap: Gap, found: dict[str, Any], looks: int, said: str) -> str:
    """Word how large a gap has been since it began; one that came and went has no one size."""
    less = f"{gap.named['group']} less {gap.others}"
    if found["began_from"] is None:
        measured = gap.of_look(looks - 1) * gap.scale
        size = signed_points(measured, gap.metric.unit)
        last = "" if math.isnan(measured) else f"; in the last look {less} is {size}"
        return f"no gap that began once and kept one size since fits these looks{last}"
    if found["low"] is None:
        return f"how large {less} is since then, later looks will say"
    first, latest = found["began_from"], found["began_to"]
    when = f"at look {first}" if first == latest else f"between looks {first} and {latest}"
    unsettled = ", its sign not known yet" if found["low"] < 0.0 < found["high"] else ""
    size = _range(gap, found["low"], found["high"])
    return f"if it began once, it did so {when}, and {less} is {size} since{unsettled} ({said})"


def _range(gap: Gap, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "of no one size"
    unit = gap.metric.unit
    return f"from {interval(low, high, unit)} {'points' if unit == 'fraction' else unit}".rstrip()


def e_text(x: float) -> str:
    """Write an e-value: 0.2, 2,797, 4.0e+18."""
    return f"{x:,.1f}" if x < 100 else f"{x:,.0f}" if x < 1e6 else f"{x:.1e}"
