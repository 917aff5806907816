"""A first policy for a run: margins that people of this number can decide, with a comment a line.

A margin is proposed that the run would have kept with the policy's power if no two groups differed,
rounded up to whole points; beside it stand the gap that was measured and what could have been
detected. Whether a margin is acceptable is no question of statistics, and the file says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from isolux.disparity.comparisons import compare_groups
from isolux.disparity.whole import both_ways
from isolux.groups.estimates import Estimates
from isolux.groups.unknown import UNKNOWN
from isolux.policy.asking import Measured
from isolux.policy.cells import Side, too_small
from isolux.policy.sentences import found_differences
from isolux.statements.numbers import points, with_unit
from isolux.stats.design import IntArray
from isolux.vocabulary.printable import escape_json, plain
from isolux.vocabulary.words import brief

_LEVEL, _POWER = 0.95, 0.8
_METRICS = 3
_COLUMN = 46
_NAMED = 8
_WIDEST = 30
"""Points from which a margin says so little that it is only mentioned."""
_FOUND_WITHIN = 0.1
"""The widest margin that is proposed of shares that were found to differ."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_WORDS = frozenset(("yes", "no", "true", "false", "on", "off", "null", "y", "n"))


def proposal(measured: Measured, run: str = "") -> str:
    """Write a policy as YAML."""
    lines = [
        f"# A policy for {plain(run) or 'this run'}, proposed by isolux gate --init.",
        "# The limits below are what this many people can decide, not what is acceptable:",
        "# that is for you to say. Change them, then: isolux gate RUN --policy THIS_FILE",
        *_lines(
            [
                ("policy: 1", "the version of this format"),
                (
                    f"level: {_LEVEL:g}",
                    "a wrong pass, and a wrong fail, in at most 5 of 100 audits",
                ),
                (f"power: {_POWER:g}", "probability that the requested people would decide"),
                ("rules:", "each answers pass, fail or insufficient"),
            ]
        ),
    ]
    estimates = measured.estimates
    names, found = _metrics(estimates), found_differences(measured)
    for name in names:
        lines += ["", *_everyone(measured, name)]
        for attribute in estimates.domain_of:
            lines += _apart(measured, name, attribute, found=(attribute, name) in found)
    lines += _other_differences(measured, found, names)
    for attribute in estimates.domain_of:
        lines += ["", *_covered(measured, attribute)]
    ran = [str(one["name"]) for one in measured.record.get("analyses") or ()]
    if ran:
        lines += [
            "",
            *_lines(
                [(f"  - ran: [{', '.join(ran)}]", "without them the run is not what was agreed")]
            ),
        ]
    return "\n".join(lines) + "\n"


def _metrics(estimates: Estimates) -> list[str]:
    """Choose the metrics to ask about: of everyone's answers first, then of classes."""
    whole = [m.metric for m in estimates.measures if m.label is None]
    return list(dict.fromkeys([*whole, *(m.metric for m in estimates.measures)]))[:_METRICS]


def _everyone(measured: Measured, name: str) -> Iterator[str]:
    estimates = measured.estimates
    judged = [j for j, m in enumerate(estimates.measures) if m.metric == name and m.label is None]
    title = next(m.info.title for m in estimates.measures if m.metric == name)
    yield f"  # {plain(title)}"
    for j in judged[:1]:
        measure = estimates.measures[j]
        kept, _ = too_small(estimates, j, np.zeros(1, dtype=np.int64), measured.least)
        if not len(kept) or measure.info.direction == "none":
            continue
        side = Side(estimates, j, kept)
        # What was measured now, and what will be, each err: hence the root of two.
        ends = side.alone()(reach_of(1, 2.0**0.5))
        falls = measure.info.direction == "lower"
        end = float(np.asarray(ends.high if falls else ends.low)[0])
        limit = _written(end, measure.info.unit, up=falls, level=True)
        if limit is None:
            continue
        today = with_unit(float(side.value[0]), measure.info.unit)
        yield from _lines(
            [
                (f"  - metric: {_quoted(name)}", f"{today} of {int(side.units[0]):,} now"),
                (
                    f"    {'at_most' if falls else 'at_least'}: {limit}",
                    f"a model that does not change passes with probability {_POWER:g}",
                ),
            ]
        )


def _written(value: float, unit: str, *, up: bool, level: bool = False) -> str | None:
    """Write a limit or margin on the careful side, with its unit; None: a share that asks nothing.

    Examples
    --------
    >>> _written(0.8231, "fraction", up=False, level=True), _written(0.041, "fraction", up=True)
    ('82 %', '5 points')
    >>> _written(3.214, "years", up=True), _written(0.1234, "", up=True)
    ('3.3 years', '0.13 units')
    """
    away = math.ceil if up else math.floor
    if unit == "fraction":
        points_of = away(100 * value + (-1e-9 if up else 1e-9))
        if level:
            return f"{points_of} %" if 0 < points_of < 100 else None
        return f"{points_of} point{'s' if points_of != 1 else ''}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1) if value else 1.0
    return f"{away(value / step) * step:.6g} {unit or 'units'}"


def reach_of(cases: int, spread: float = 1.0) -> float:
    """Return how many standard errors a margin needs: the bound's own, and those of the power."""
    from scipy.special import ndtri

    return float(ndtri(_LEVEL) + spread * ndtri(1.0 - (1.0 - _POWER) / max(cases, 1)))


def _apart(measured: Measured, name: str, attribute: str, *, found: bool = False) -> Iterator[str]:
    kept = _margin(measured, name, attribute, among_large=found)
    if kept is None:
        yield (
            f"  # {plain(attribute)}: no rule, because a group is too small for a reliable interval"
        )
        return
    margin, widest, pair, unit = kept
    if found:
        yield from _differs(name, attribute, kept)
        return
    seen = _detectable(measured, name, attribute, unit)
    told = f"; a gap of {seen} could have been detected" if seen else ""
    limit = _written(margin, unit, up=True)
    if unit == "fraction" and 100 * margin > _WIDEST:
        yield (
            f"  # {plain(attribute)}: no rule, because this few people cannot decide a margin "
            f"below {limit}{told}"
        )
        return
    yield from _lines(
        [
            (f"  - metric: {_quoted(name)}", "no two groups are further apart:"),
            (
                f"    attribute: {_quoted(attribute)}",
                f"widest gap now: {points(widest, unit)}, {pair[0]} and {pair[1]}",
            ),
            (f"    within: {limit}", f"equal groups pass with probability {_POWER:g}{told}"),
        ]
    )


def _differs(
    name: str, attribute: str, kept: tuple[float, float, tuple[str, str], str]
) -> list[str]:
    """Ask about a difference that was found, with a margin below it: the run does not pass now."""
    margin, widest, pair, unit = kept
    top = min(margin, _FOUND_WITHIN) if unit == "fraction" else margin
    least = _written(top, unit, up=True) if top < widest else _below(widest, unit)
    return _lines(
        [
            (
                f"  - metric: {_quoted(name)}",
                "DOES NOT PASS NOW: the audit found a difference here",
            ),
            (
                f"    attribute: {_quoted(attribute)}",
                f"widest gap now: {points(widest, unit)}, {pair[0]} and {pair[1]}",
            ),
            (f"    within: {least}", "which difference you accept is for you to say"),
        ]
    )


def _below(widest: float, unit: str) -> str:
    """Write a margin that is below the widest gap; a share's is 1 point or more, else tenths."""
    if unit == "fraction":
        whole = math.floor(100 * widest - 1e-9)
        return f"{whole} point{'s' if whole != 1 else ''}" if whole else f"{90 * widest:.2g} points"
    return f"{0.9 * widest:.2g} {unit or 'units'}"


def _other_differences(
    measured: Measured, found: Sequence[tuple[str, str]], names: Sequence[str]
) -> list[str]:
    """Ask about differences of attributes that were found on no metric that is asked about."""
    lines: list[str] = []
    seen = {attribute for attribute, metric in found if metric in names}
    for attribute, metric in found:
        if attribute in seen or attribute not in measured.estimates.domain_of:
            continue
        seen.add(attribute)
        lines += ["", *_apart(measured, metric, attribute, found=True)]
    return lines


def _margin(
    measured: Measured, name: str, attribute: str, *, among_large: bool = False
) -> tuple[float, float, tuple[str, str], str] | None:
    """Reckon the margin that alike groups would keep; the widest gap now, of whom, its unit."""
    estimates, unit = measured.estimates, ""
    cases: list[tuple[IntArray, IntArray, int]] = []
    for j, measure in enumerate(estimates.measures):
        if measure.metric != name or (measure.label is not None and _has_whole(estimates, name)):
            continue
        rows = np.array(
            [g for g in estimates.members(attribute) if UNKNOWN not in estimates.groups[g].values],
            dtype=np.int64,
        )
        kept, small = too_small(estimates, j, rows, measured.least)
        if (small or len(kept) < 2) and not among_large:
            return None
        if len(kept) < 2:
            continue
        cases.append((*both_ways(kept), j))
        unit = measure.info.unit
    pairs = sum(len(first) for first, _, _ in cases)
    if not pairs:
        return None
    reach, margin, widest, who = reach_of(pairs), 0.0, -1.0, ("", "")
    for first, second, j in cases:
        apart = compare_groups(estimates, attribute, j).pairs(first, second)
        gap, ends = apart.a - apart.b, apart.interval(reach)
        margin = max(margin, float(np.nanmax(np.asarray(ends.high) - gap)))
        k = int(np.nanargmax(gap))
        if gap[k] > widest:
            widest = float(gap[k])
            named = [brief(estimates.groups[int(side[k])].name) for side in (first, second)]
            who = (named[0], named[1])
    return margin, widest, who, unit


def _has_whole(estimates: Estimates, name: str) -> bool:
    return any(m.metric == name and m.label is None for m in estimates.measures)


def _detectable(measured: Measured, name: str, attribute: str, unit: str) -> str:
    """Say what the audit could have detected between the groups that are least sure."""
    if measured.disparities is None:
        return ""
    rows = measured.disparities.filter(
        pl.col("metric") == name,
        pl.col("attribute") == attribute,
        pl.col("kind") == "difference",
        ~pl.any_horizontal(
            pl.col(side).str.split(" × ").list.contains(UNKNOWN) for side in ("group_a", "group_b")
        ),
    )
    most = rows["detectable"].max()
    return points(most, unit) if isinstance(most, float) else ""


def _covered(measured: Measured, attribute: str) -> Iterator[str]:
    estimates = measured.estimates
    rows = [g for g in estimates.members(attribute) if UNKNOWN not in estimates.groups[g].values]
    units = estimates.n_units.max(axis=1)
    large = [g for g in rows if units[g] >= measured.least[0]]
    if not large:
        return
    smallest = min(large, key=lambda g: int(units[g]))
    listed = ", ".join(_quoted(estimates.groups[g].name) for g in large)
    small = [brief(estimates.groups[g].name) for g in rows if g not in large]
    more = f" and {len(small) - _NAMED} more" if small[_NAMED:] else ""
    left = f"; smaller and left out: {', '.join(small[:_NAMED])}{more}" if small else ""
    least = f"{brief(estimates.groups[smallest].name)}, {int(units[smallest]):,}"
    now = f"in each of them; the smallest now: {least}"
    yield from _lines(
        [
            (f"  - covered: {_quoted(attribute)}", "who must be in the data"),
            (f"    groups: [{listed}]", f"those of {measured.least[0]} people or more{left}"),
            (f"    people: {measured.least[0]}", now),
        ]
    )


def _quoted(name: str) -> str:
    """Write a name so that YAML reads it as that text."""
    if _PLAIN.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return escape_json(json.dumps(name, ensure_ascii=False))


def _lines(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{line:<{_COLUMN}}  # {plain(comment)}" for line, comment in pairs]
