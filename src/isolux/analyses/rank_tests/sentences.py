"""Claims of the rank tests in plain sentences: who scores worse, how often, by how much, how sure.

``D`` is FHIBE's disparity of medians; how often one side scores worse is what the test is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from isolux.statements.numbers import fixed, interval, signed_points
from isolux.statements.words import Words, level_of, lowered
from isolux.vocabulary.words import listed

CORRECTIONS = {
    "holm": "Holm over {m:,} tests",
    "bh": "false discovery rate over {m:,} tests, Benjamini and Hochberg",
    "published": "Bonferroni within the attribute, as published",
}
TESTS = {
    "clustered": "clustered rank test",
    "naive": "Mann–Whitney test as published",
    "weighted": "rank test of weighted people by cluster",
    "rows": "Mann–Whitney test, rows taken for people",
}
_LISTED = 8


def differs(row: Mapping[str, Any], words: Words, how: str) -> str:
    """Say of one attribute which pair of groups is furthest apart."""
    told = (
        f"{words.measure(row)} by {words.title(row['attribute'])}: {row['group_a']} "
        f"{'scores lower' if row['direction'] == 'none' else 'is served worse'} than "
        f"{row['group_b']}"
    )
    if row["direction"] == "none":
        told += " (neither way is better by itself)"
    told += (
        f"; {_medians(row, words)}. Of two units, one of each, that of {row['group_a']} has the "
        f"{'lower' if row['direction'] == 'none' else 'worse'} score in {100 * row['worse']:.0f} "
        f"of 100 cases, ties half; {_counts(row, words)}; {words.own_p(row['p_adjusted'])} ({how})."
    )
    if row["against"]:
        told += f" The {row['decided_by']}s and the ranks point opposite ways: look at both groups."
    if row["pairs"] > 1:
        told += f" {row['n_found']:,} of {row['pairs']:,} pairs of groups differ by this test."
    return words.start(row["model"], told)


def nothing_more(rows: Sequence[Mapping[str, Any]], words: Words, how: str, level: float) -> str:
    """Say of one measure where nothing was found, and where the published test would claim."""
    names = [words.title(row["attribute"]) for row in rows]
    told = f"{lowered(words.measure(rows[0]))}: the {how} found no difference between "
    told += f"groups of {_listed(names)}"
    seen = [row["p_adjusted"] for row in rows if row["p_adjusted"] is not None]
    told += f" (smallest {words.own_p(min(seen))})." if seen else "."
    claimed = [row for row in rows if row["n_published"]]
    if claimed:
        named = [
            f"{words.title(row['attribute'])} ({row['n_published']:,} of {row['pairs']:,} pairs)"
            for row in claimed
        ]
        told += (
            f" FHIBE's published test would claim differences by {_listed(named)} at "
            f"{1 - level:.3g}: it "
            + ("treats every unit as a different person and " if words.cluster is not None else "")
            + "corrects for one attribute at a time, so they may be chance."
        )
    return words.start(rows[0]["model"], told)


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _LISTED:,} more"] if len(names) > _LISTED else []
    return listed([*names[:_LISTED], *more], last="and")


def _medians(row: Mapping[str, Any], words: Words) -> str:
    unit = words.unit(row)
    show = partial(signed_points, unit=unit)

    if row["decided_by"] == "median":
        told = f"the medians are {show(row['median_a'])} and {show(row['median_b'])}"
    else:
        told = f"the medians are the same ({show(row['median_a'])}), so "
        if row["decided_by"] == "mean":
            told += f"the means decide: {show(row['mean_a'])} and {show(row['mean_b'])}"
        else:
            told += f"with the same means ({show(row['mean_a'])}), the ranks alone decide"
    if row["disparity"] is None:
        return f"{told}; D is undefined, for a median is 0 or negative"
    told += f", D = {fixed(row['disparity'], 2)}"
    if row["low"] is None:
        return told
    ends = interval(row["low"], row["high"], "", places=2)
    return f"{told} ({level_of(words)} interval {ends})"


def _counts(row: Mapping[str, Any], words: Words) -> str:
    told = f"n = {row['n_a']:,} and {row['n_b']:,}"
    if words.cluster is None:
        return told
    return f"{told} in {row['clusters_a']:,} and {row['clusters_b']:,} clusters ({words.cluster})"
