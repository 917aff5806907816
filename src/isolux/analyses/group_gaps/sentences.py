"""Findings in plain sentences: effect first, then interval, then n, then p.

Wording follows fairlearn's guide for contributors: a disparity is measured, its absence is never
certified, and groups are called what the dataset calls them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from isolux.statements.numbers import interval, points, value_text
from isolux.statements.words import Words, level_of, lowered
from isolux.vocabulary.words import OUTSIDE, brief, describe_unknown_order

__all__ = ["differs", "no_difference", "only_overall", "unseen", "without_value"]

_NONE_SEEN = "How small a difference this audit could have detected cannot be said from these data."
_FLAT = (
    "Nothing varies in these data, so how small a difference this audit could have detected cannot "
    "be said."
)
_WHOLE = "The whole population was drawn, so there is no difference beyond what its values show."
_ALONE = ", of this comparison alone)."
_NOISY = (
    " Chance alone makes this value larger, most in a small group; intervals and tests allow for "
    "that."
)
_EQUAL = 1e-12
_LISTED = 10
_NEARLY = 0.9
"""A gap that shrinks by less is said as it is."""


def differs(row: Mapping[str, Any], words: Words) -> str:
    """Say how two groups differ: effect, interval, n, p; then the spread over all groups.

    Where people of unknown value alone are apart, the known groups come first: the claim is about
    them, and the unknown have a sentence of their own.
    """
    known = _known(row, words)
    told = f"{known}For {brief(row['group_a'])} it is " if known else _of_group(row, words)
    told += _apart(row, words)
    if known:
        return words.start(row["model"], told + _care(row))
    if not row["pair"]:
        told += " The test was against everyone else; "
        alone = f"no pair of groups{_here(words)} stands out."
        told += alone if not row["n_untested"] else _bare(row, words)
    elif row["n_pairs"] > 1:
        told += f" {row['n_differ']:,} of {row['n_pairs']:,} pairs of groups differ by this test."
        told += f" Beside them, {_bare(row, words)}" if row["n_untested"] else ""
    told += (
        _second(row, words)
        + _shrunken(row, words)
        + _spread(row, words)
        + _beside(row, words)
        + _care(row)
    )
    return words.start(row["model"], told + (_within(row, words) if words.margin else ""))


def _second(row: Mapping[str, Any], words: Words) -> str:
    """Name the group that may be worse off than the one that leads."""
    if row["second_group"] is None:
        return ""
    value = row["second_value"]
    ends = {"value": value, "low": row["second_low"], "high": row["second_high"]}
    way = "lower" if value < 0 else "higher"
    told = (
        f" For {brief(row['second_group'])} it is "
        f"{points(value, words.unit(row), (row['second_low'], row['second_high']))} {way} "
        f"({_interval({**row, **ends}, words)}) than for {brief(row['second_reference'])}"
    )
    if not row["second_differs"]:
        return f"{told}, a difference that is not established."
    return f"{told}; {describe_unknown_order(row['n_others'], way, f'{way[:-2]}est')}."


def _of_group(row: Mapping[str, Any], words: Words) -> str:
    return f"{words.measure(row)} for {brief(row['group_a'])} ({words.title(row['attribute'])}) is "


def _apart(row: Mapping[str, Any], words: Words) -> str:
    """Say by how much the first group is lower or higher than the second, and how surely."""
    value = row["value"]
    notes = [note for note in (words.better(row, value), _interval(row, words)) if note]
    far = points(value, words.unit(row), (row["low"], row["high"]))
    return (
        f"{far} {'lower' if value < 0 else 'higher'} "
        f"({'; '.join(notes)}) than for {brief(row['group_b'])}; {_counts(row, words)}; "
        f"{words.p(row['p_adjusted'])}."
    )


def _known(row: Mapping[str, Any], words: Words) -> str:
    """Say of the known groups that they were not found to differ, where only the unknown do."""
    if not row["aside"] or row["known_gap"] is None:
        return ""
    gap, unit = row["known_gap"], words.unit(row)
    return (
        f"no two known groups of {words.title(row['attribute'])} were found to differ in "
        f"{lowered(words.measure(row))}; {_gap(gap, row, unit)}. "
    )


def _gap(gap: float, row: Mapping[str, Any], unit: str) -> str:
    if abs(gap) < _EQUAL:
        return "they have the same value"
    way = "below" if gap < 0 else "above"
    return f"the widest gap is {points(gap, unit)}, {row['known_a']} {way} {row['known_b']}"


def only_overall(row: Mapping[str, Any], words: Words) -> str:
    """Say that the groups differ as a whole though no single pair stands out."""
    told = (
        f"{words.measure(row)} differs across {words.title(row['attribute'])} "
        f"({words.p(row['any_p'])}), but no single pair of groups{_here(words)} stands out; "
        f"{_widest(row, words)}."
    )
    told += _spread(row, words) + _beside(row, words) + _care(row)
    return words.start(row["model"], told + _within(row, words))


def _here(words: Words) -> str:
    """Say of a page that hides comparisons that it speaks of those that it shows."""
    return " shown here" if words.withheld else ""


def no_difference(row: Mapping[str, Any], words: Words) -> str:
    """Say that nothing was found, and what could have been: never that nothing is there."""
    measure = lowered(words.measure(row))
    if row["any_p"] is None and row["n_untested"]:
        told = f"{_bare(row, words)}{_care(row)}"
        return words.start(row["model"], f"{words.measure(row)} was not tested: {told}")
    equal = abs(row["value"]) < _EQUAL
    seen = "all groups judged have the same value" if equal else _widest(row, words)
    told = (
        f"no difference in {measure}{',' if ',' in measure else ''} was found across "
        f"{words.title(row['attribute'])} ({words.p(row['any_p'])}); {seen}. "
        f"{_could_see(row, words)}"
    )
    if row["n_untested"]:
        told += f" But {_bare(row, words)}"
    shown = not equal and row["range_low"] is not None
    care, within = _care(row, interval=shown), _within(row, words)
    if row["flat"] and not shown and row["detectable_best"] is None:
        care = ""  # that nothing varies is said
    most, worst = row["at_most"], row["detectable_worst"]
    if not care and within.endswith(_ALONE) and worst is not None and most <= worst:
        # What could be seen is asked before looking, how large a gap may be after it. Near 0 and 1
        # they are far apart, and without a word the second would read as a denial of the first.
        told = f"{told.removesuffix('.')}, though going by the observed values, "
        within = f"{within[1:2].lower()}{within[2:]}"
    return words.start(row["model"], told + care + within + _beside(row, words))


def _bare(row: Mapping[str, Any], words: Words) -> str:
    """Say that groups are apart though nothing varies within them: no p-value can say so."""
    gap, n = row["untested_gap"], row["n_untested"]
    ends = {"value": gap, "low": row["untested_low"], "high": row["untested_high"]}
    told = (
        f"{brief(row['untested_a'])} ({words.title(row['attribute'])}) is "
        f"{points(gap, words.unit(row))} {'lower' if gap < 0 else 'higher'} "
        f"({_interval({**row, **ends}, words)}) than {brief(row['untested_b'])}, but that cannot "
        "be tested, because nothing varies within either group."
    )
    return told if n == 1 else f"{told} The same applies to {n - 1:,} more of the pairs."


def _shrunken(row: Mapping[str, Any], words: Words) -> str:
    """Say how large a gap is once it counts that it was chosen for being large."""
    value, less, unit = row["value"], row["shrunken"], words.unit(row)
    if not row["pair"] or row["n_gaps"] < 2 or less is None:
        return ""
    if abs(less) > _NEARLY * abs(value) or points(less, unit) == points(value, unit):
        return ""
    return (
        f" Chosen from {row['n_gaps']:,} gaps of this metric, it is probably overstated: shrunk in "
        f"the light of all of them (empirical Bayes), it is {points(less, unit)}."
    )


def _within(row: Mapping[str, Any], words: Words) -> str:
    """Say how far apart the groups are at most; of a margin that was asked about, whether within.

    Nothing where intervals may be too narrow: a claim of sameness must not rest on them.
    """
    at_most, unit = row["at_most"], words.unit(row)
    judged = at_most is not None and row["within_status"] == "ok"
    if words.margin is None or unit != "fraction":
        if not judged or words.census:
            return ""
        claim = _alike(row, words, at_most, unit)
        return f" {claim[:1].upper()}{claim[1:]} ({level_of(words)} upper bound{_ALONE}"
    if not judged:
        why = row["within_reason"] or "a group has too few clusters for an interval"
        return f" Whether {_alike(row, words, words.margin)} cannot be judged: {why}."
    claim = _alike(row, words, words.margin)
    p = replace(words, corrected=True).p(row["within_p"])  # by Holm, whatever else is not
    if row["within_p"] is not None and row["within_p"] <= 1.0 - words.level:
        return f" That {claim} is shown: at most {points(at_most, unit)} ({p})."
    if 100 * at_most <= words.margin:
        return (
            f" That {claim} is not shown once all such claims are corrected for ({p}); taken "
            f"alone, the {level_of(words)} upper bound is {points(at_most, unit)}."
        )
    return f" That {claim} is not shown ({p}): it may be up to {points(at_most, unit)}."


def _alike(
    row: Mapping[str, Any], words: Words, most: float | None, unit: str | None = None
) -> str:
    """Say that groups are at most so far apart; without a unit, ``most`` is in points."""
    if unit is None:
        far = f"{most:g} {'point' if most == 1 else 'points'}"
    else:
        far = points(most or 0.0, unit)
    reference = words.references.get(row["attribute"])
    if reference is not None:
        return f"no group judged is more than {far} from {reference}"
    return f"no two groups judged are more than {far} apart"


def without_value(rows: Sequence[Mapping[str, Any]], words: Words, *, everywhere: bool) -> str:
    """Name the groups of one attribute that have no value, with their n."""
    first = rows[0]
    named = [_group_with_n(row, words, everywhere=everywhere) for row in rows[:_LISTED]]
    if len(rows) > _LISTED:
        named.append(f"{len(rows) - _LISTED} more groups")
    listed = ", ".join(named[:-1]) + " and " + named[-1] if len(named) > 1 else named[0]
    title = words.title(first["attribute"])
    if first["small"]:
        where = "" if everywhere else ", on some measures"
        need = _need(first, words)
        unknown = "is unknown." if everywhere else "by those measures is unknown."
        told = (
            f"too little data to judge groups of {title}{where}: {listed}.{need} How well the "
            f"model works for them {unknown}"
        )
    else:
        told = f"no value for groups of {title}: {listed}; {first['reason'] or first['status']}."
    return words.start(first["model"], told)


def _need(row: Mapping[str, Any], words: Words) -> str:
    """Say what a group needs: units and clusters, or what its own reason names instead."""
    reason = str(row["reason"] or "")
    if " needs " in reason:
        return f" {brief(row['group'])}: {reason}."
    return f" A group needs {words.needed}." if words.needed else ""


def _interval(row: Mapping[str, Any], words: Words) -> str:
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "no interval"
    unit = words.unit(row)
    # The words say "lower", so the interval is of how much lower.
    ends = (-high, -low) if row["value"] < 0 else (low, high)
    return f"{level_of(words)} interval {interval(*ends, unit, row['value'])}"


def _counts(row: Mapping[str, Any], words: Words) -> str:
    told = f"n = {row['n_units_a']:,} and {row['n_units_b']:,}"
    if words.cluster is None:
        return told
    clusters = f"{row['n_clusters_a']:,} and {row['n_clusters_b']:,}"
    return f"{told} in {clusters} clusters ({words.cluster})"


def _widest(row: Mapping[str, Any], words: Words) -> str:
    """Name the widest gap, with an interval that holds for all pairs at once, if there is one."""
    unit = words.unit(row)
    way = "below" if row["value"] < 0 else "above"
    low, high = row["range_low"], row["range_high"]
    of = " of known groups" if row["with_unknown"] and row["named"] else ""
    far = points(row["value"], unit, (low, high))
    told = f"the widest gap{of}{_here(words)} is {far}, "
    told += f"{brief(row['group_a'])} {way} {brief(row['group_b'])}"
    if low is None or high is None:
        return told
    ends = interval(low, high, unit, row["value"])
    # All pairs of this attribute at once, but not the audit's other attributes and metrics: so
    # it can leave 0 out where the family-adjusted test finds nothing.
    return f"{told} ({level_of(words)} interval {ends}, not adjusted for the other tests)"


def _could_see(row: Mapping[str, Any], words: Words) -> str:
    best, worst = row["detectable_best"], row["detectable_worst"]
    if best is None:
        return _FLAT if row["flat"] and not words.census else unseen(words)
    unit = words.unit(row)
    told = (
        f"This audit could have detected (power 0.8) a difference of {points(best, unit)} between "
        f"{brief(row['group_a_best'])} and {brief(row['group_b_best'])}"
    )
    if points(best, unit) == points(worst, unit):
        return f"{told}; a smaller one may exist."
    return (
        f"{told}, and one of {points(worst, unit)} between {brief(row['group_a_worst'])} and "
        f"{brief(row['group_b_worst'])}; smaller ones may exist."
    )


def unseen(words: Words) -> str:
    """Say why no smallest difference is named."""
    return _WHOLE if words.census else _NONE_SEEN


def _spread(row: Mapping[str, Any], words: Words) -> str:
    # Of the same groups as the pair: a spread that people of unknown value are part of is not.
    if row["spread"] is None or row["n_pairs"] < 2 or row["with_unknown"]:
        return ""
    unit = words.unit(row)
    if row["spread"] == 0:
        return " Over all groups, the values vary no more than chance alone would explain."
    told = " Beyond chance, the groups' values vary by "
    low, high = row["spread_low"], row["spread_high"]
    told += points(row["spread"], unit, (low, high))
    if low is None or high is None:
        return f"{told} (standard deviation)."
    ends = interval(low, high, unit, row["spread"])
    if unit == "fraction" and high >= 0.5:  # the largest that shares can have: no upper end
        ends = f"{value_text(low, unit, (row['spread'],))} and up"
    return f"{told} (standard deviation; {level_of(words)} interval {ends})."


def _beside(row: Mapping[str, Any], words: Words) -> str:
    """Say what a value does not tell: that chance enlarges it, or that everyone's is no measure."""
    metric = words.metrics.get(row["metric"])
    told = _NOISY if metric is not None and metric.noisy else ""
    return f"{told} {OUTSIDE[0].upper()}{OUTSIDE[1:]}." if row["outside"] else told


def _care(row: Mapping[str, Any], *, interval: bool | None = None) -> str:
    """Say what is in doubt.

    ``interval``: whether the sentence has one; not given: where the pair of groups has.
    """
    if row["status"] != "boundary":
        return ""
    why = row["reason"] or "few clusters, or values near 0 or 1"
    if not (row["low"] is not None if interval is None else interval):
        return f" Read this with caution: {why}."
    if row["flat"]:
        why = "nothing varies"
    return f" Read this interval with caution, it may be too narrow: {why}."


def _group_with_n(row: Mapping[str, Any], words: Words, *, everywhere: bool) -> str:
    n = f"n = {row['n_units']:,}"
    if words.cluster is not None:
        n += f" in {row['n_clusters']:,} cluster{'' if row['n_clusters'] == 1 else 's'}"
    if ": " in str(row["reason"]):  # n is enough, and a part of the group is not
        n += f", but {row['reason']}"
    name = brief(row["group"])
    if everywhere:
        return f"{name} ({n})"
    return f"{name} ({row['n_without']:,} of {row['n_measures']:,} measures; at most {n})"
