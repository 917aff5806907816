"""Findings in plain sentences: effect first, then interval, then n, then p.

Wording follows fairlearn's guide for contributors: a disparity is measured, its absence is never
certified, and groups are called what the dataset calls them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isolux.groups.unknown import KNOWN_SUFFIX
from isolux.info import Metric

__all__ = ["Words", "differs", "no_difference", "only_overall", "without_value"]

_MINUS = "\N{MINUS SIGN}"
_LISTED = 10


@dataclass(frozen=True, slots=True)
class Words:
    """What the run calls things.

    Parameters
    ----------
    terms : mapping of str to str
        Attribute to the words to print for it.
    metrics : mapping of str to Metric
        The task's metrics; one that is not there is called by its name, and has no direction.
    level : float
        Of the intervals.
    corrected : bool
        Whether p-values are adjusted for the family.
    models : int
        With more than one, sentences begin with the model's name.
    cluster : str or None
        What was sampled independently.
    needed : str
        What a group needs to be judged: "50 units and 10 clusters".
    """

    terms: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    level: float = 0.95
    corrected: bool = True
    models: int = 1
    cluster: str | None = None
    needed: str = ""

    def title(self, attribute: str) -> str:
        """Call an attribute or intersection by the dataset's terms.

        Examples
        --------
        >>> Words(terms={"gender": "perceived gender presentation"}).title("race*gender (known)")
        'race × perceived gender presentation (known)'
        """
        said = []
        for part in attribute.split("*"):
            plain = part.removesuffix(KNOWN_SUFFIX)
            rest = part[len(plain) :]
            said.append(self.terms.get(plain, plain.replace("_", " ")) + rest)
        return " × ".join(said)

    def measure(self, row: Mapping[str, Any]) -> str:
        """Call a metric, its class and its threshold: ``recall of nurse``."""
        metric = self.metrics.get(row["metric"])
        name = metric.title if metric else str(row["metric"]).replace("_", " ")
        of = f" of {row['label']}" if row["label"] is not None else ""
        at = f" at {row['threshold']:g}" if row["threshold"] is not None else ""
        return f"{name}{of}{at}"

    def unit(self, row: Mapping[str, Any]) -> str:
        """Return the metric's unit."""
        metric = self.metrics.get(row["metric"])
        return metric.unit if metric else "fraction"

    def better(self, row: Mapping[str, Any], value: float) -> str:
        """Say whether that way is worse where "lower" alone does not say so."""
        metric = self.metrics.get(row["metric"])
        if metric is None or metric.direction == "none":
            return "neither way is better by itself"
        if metric.direction == "lower":
            return "worse" if value > 0 else "better"
        return ""

    def p(self, value: float | None) -> str:
        """Print a p-value, and that it is adjusted.

        Examples
        --------
        >>> Words().p(0.0002), Words(corrected=False).p(0.04)
        ('adjusted p < 0.001', 'p = 0.040 (not adjusted for the other tests)')
        """
        if value is None:
            return "not tested"
        said = "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
        return (
            f"adjusted {said}" if self.corrected else f"{said} (not adjusted for the other tests)"
        )

    def start(self, model: str, sentence: str) -> str:
        """Begin with a capital letter; with the model where there are several."""
        upper = sentence[:1].upper() + sentence[1:]
        return f"{model}: {upper}" if self.models > 1 else upper


def differs(row: Mapping[str, Any], words: Words) -> str:
    """Say how two groups differ: effect, interval, n, p; then the spread over all groups."""
    value = row["value"]
    notes = [note for note in (words.better(row, value), _interval(row, words)) if note]
    told = (
        f"{words.measure(row)} for {row['group_a']} ({words.title(row['attribute'])}) is "
        f"{_size(value, words.unit(row))} {'lower' if value < 0 else 'higher'} "
        f"({'; '.join(notes)}) than for {row['group_b']}; {_counts(row, words)}; "
        f"{words.p(row['p_adjusted'])}."
    )
    if not row["pair"]:
        told += " The test was against everyone else; no pair of groups stands out."
    elif row["n_pairs"] > 1:
        told += f" {row['n_differ']:,} of {row['n_pairs']:,} pairs of groups differ by this test."
    return words.start(row["model"], told + _spread(row, words) + _care(row))


def only_overall(row: Mapping[str, Any], words: Words) -> str:
    """Say that the groups differ as a whole though no single pair stands out."""
    told = (
        f"{words.measure(row)} differs across {words.title(row['attribute'])} "
        f"({words.p(row['any_p'])}), but no single pair of groups stands out; the widest gap "
        f"is {_widest(row, words)}."
    )
    return words.start(row["model"], told + _spread(row, words) + _care(row))


def no_difference(row: Mapping[str, Any], words: Words) -> str:
    """Say that nothing was found, and what could have been: never that nothing is there."""
    told = (
        f"no difference in {_lower(words.measure(row))} was found across "
        f"{words.title(row['attribute'])} ({words.p(row['any_p'])}); the widest gap is "
        f"{_widest(row, words)}. {_could_see(row, words)}"
    )
    return words.start(row["model"], told + _care(row))


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
        need = f" A group needs {words.needed}." if words.needed else ""
        told = (
            f"too few data to judge groups of {title}{where}: {listed}.{need} "
            "How the model serves them stays open."
        )
    else:
        told = f"no value for groups of {title}: {listed}; {first['reason'] or first['status']}."
    return words.start(first["model"], told)


def _size(value: float, unit: str) -> str:
    """Print the size of a difference with its unit; points of a hundred for fractions."""
    if unit != "fraction":
        return f"{abs(value):.3g} {unit}".strip()
    number = _number(abs(value), unit)
    return f"{number} {'point' if number == '1.0' else 'points'}"


def _number(value: float, unit: str) -> str:
    if unit != "fraction":
        return f"{value:.3g}".replace("-", _MINUS)
    said = f"{100 * value:.1f}"
    return said.lstrip("-") if float(said) == 0 else said.replace("-", _MINUS)


def _interval(row: Mapping[str, Any], words: Words) -> str:
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "no interval"
    unit = words.unit(row)
    # The words say "lower", so the interval is of how much lower.
    ends = (-high, -low) if row["value"] < 0 else (low, high)
    first, last = (_number(end, unit) for end in ends)
    return f"{_level(words)} interval {first} to {last}"


def _level(words: Words) -> str:
    return f"{100 * words.level:g} %"


def _counts(row: Mapping[str, Any], words: Words) -> str:
    told = f"n = {row['n_units_a']:,} and {row['n_units_b']:,}"
    if words.cluster is None:
        return told
    clusters = f"{row['n_clusters_a']:,} and {row['n_clusters_b']:,}"
    return f"{told} in {clusters} clusters ({words.cluster})"


def _widest(row: Mapping[str, Any], words: Words) -> str:
    """Name the widest gap, with an interval that holds for all pairs at once where there is one."""
    unit = words.unit(row)
    way = "below" if row["value"] < 0 else "above"
    told = f"{_size(row['value'], unit)}, {row['group_a']} {way} {row['group_b']}"
    low, high = row["range_low"], row["range_high"]
    if low is None or high is None:
        return told
    ends = f"{_number(low, unit)} to {_number(high, unit)}"
    # All pairs of this attribute at once, but not the audit's other attributes and metrics: so
    # it can leave 0 out where the family-adjusted test finds nothing.
    return f"{told} ({_level(words)} interval {ends}, not adjusted for the other tests)"


def _could_see(row: Mapping[str, Any], words: Words) -> str:
    best, worst = row["detectable_best"], row["detectable_worst"]
    if best is None:
        return "How large a difference this audit could have seen is not known."
    unit = words.unit(row)
    told = (
        f"This audit could have seen (power 0.8) a difference of {_size(best, unit)} between "
        f"{row['group_a_best']} and {row['group_b_best']}"
    )
    if _size(best, unit) == _size(worst, unit):
        return f"{told}; a smaller one could be there."
    return (
        f"{told}, and one of {_size(worst, unit)} between {row['group_a_worst']} and "
        f"{row['group_b_worst']}; smaller ones could be there."
    )


def _spread(row: Mapping[str, Any], words: Words) -> str:
    if row["spread"] is None or row["n_pairs"] < 2:
        return ""
    unit = words.unit(row)
    if row["spread"] == 0:
        return " Over all groups, the values spread no more than chance alone would make them."
    told = f" Beyond chance, the groups' values spread by {_size(row['spread'], unit)}"
    low, high = row["spread_low"], row["spread_high"]
    if low is None or high is None:
        return f"{told} (standard deviation)."
    ends = f"{_number(low, unit)} to {_number(high, unit)}"
    if unit == "fraction" and high > 1.0:  # of two groups the interval has no upper end to speak of
        ends = f"{_number(low, unit)} and up"
    return f"{told} (standard deviation; {_level(words)} interval {ends})."


def _care(row: Mapping[str, Any]) -> str:
    if row["status"] != "boundary":
        return ""
    why = row["reason"] or "few clusters, or values near 0 or 1"
    return f" Read this interval with care, it may be too narrow: {why}."


def _group_with_n(row: Mapping[str, Any], words: Words, *, everywhere: bool) -> str:
    n = f"n = {row['n_units']:,}"
    if words.cluster is not None:
        n += f" in {row['n_clusters']:,} cluster{'' if row['n_clusters'] == 1 else 's'}"
    if everywhere:
        return f"{row['group']} ({n})"
    return f"{row['group']} ({row['n_without']:,} of {row['n_measures']:,} measures; at most {n})"


def _lower(text: str) -> str:
    """Lower the first letter, unless the word is an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
