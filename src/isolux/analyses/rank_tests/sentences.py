"""Claims of the rank tests in sentences: the worse group, how often, by how much, how certain.

``D`` is FHIBE's disparity of medians; the test itself compares how often one group scores worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from isolux.core.formatting import join_words
from isolux.statements.numbers import format_fixed, format_interval, format_signed_gap
from isolux.statements.run_terms import (
    RunTerms,
    format_confidence_level,
    lower_unless_acronym,
)

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
_MAX_LISTED = 8


def format_leading_pair_difference(
    row: Mapping[str, Any], terms: RunTerms, test_description: str
) -> str:
    """Write which pair of groups of one attribute differs most."""
    text = (
        f"{terms.format_metric(row)} by {terms.format_attribute(row['attribute'])}:"
        f" {row['group_a']} {'scores lower' if row['direction'] == 'none' else 'is served worse'}"
        f" than {row['group_b']}"
    )
    if row["direction"] == "none":
        text += " (neither way is better by itself)"
    text += (
        f"; {_format_medians(row, terms)}. Of two units, one of each, that of {row['group_a']} has "
        f"the {'lower' if row['direction'] == 'none' else 'worse'} score in "
        f"{100 * row['worse']:.0f} of 100 cases, ties half; {_format_counts(row, terms)}; "
        f"{terms.format_adjusted_p(row['p_adjusted'])} ({test_description})."
    )
    if row["against"]:
        text += f" The {row['decided_by']}s and the ranks point opposite ways: look at both groups."
    if row["pairs"] > 1:
        text += f" {row['n_found']:,} of {row['pairs']:,} pairs of groups differ by this test."
    return terms.begin_sentence(row["model"], text)


def format_no_difference_found(
    rows: Sequence[Mapping[str, Any]], terms: RunTerms, test_name: str, level: float
) -> str:
    """Write for one measure where no difference was found, and where the published test claims."""
    names = [terms.format_attribute(row["attribute"]) for row in rows]
    text = (
        f"{lower_unless_acronym(terms.format_metric(rows[0]))}: the {test_name} found no difference"
        " between "
    )
    text += f"groups of {_format_shortened_list(names)}"
    p_values = [row["p_adjusted"] for row in rows if row["p_adjusted"] is not None]
    text += f" (smallest {terms.format_adjusted_p(min(p_values))})." if p_values else "."
    claimed = [row for row in rows if row["n_published"]]
    if claimed:
        attribute_list = [
            f"{terms.format_attribute(row['attribute'])} ({row['n_published']:,} of"
            f" {row['pairs']:,} pairs)"
            for row in claimed
        ]
        text += (
            " FHIBE's published test would claim differences by"
            f" {_format_shortened_list(attribute_list)} at {1 - level:.3g}: it "
            + ("treats every unit as a different person and " if terms.cluster is not None else "")
            + "corrects for one attribute at a time, so they may be chance."
        )
    return terms.begin_sentence(rows[0]["model"], text)


def _format_shortened_list(names: Sequence[str]) -> str:
    rest_text = [f"{len(names) - _MAX_LISTED:,} more"] if len(names) > _MAX_LISTED else []
    return join_words([*names[:_MAX_LISTED], *rest_text], conjunction="and")


def _format_medians(row: Mapping[str, Any], terms: RunTerms) -> str:
    unit = terms.find_unit(row)
    format_points = partial(format_signed_gap, unit=unit)

    if row["decided_by"] == "median":
        text = (
            f"the medians are {format_points(row['median_a'])} and {format_points(row['median_b'])}"
        )
    else:
        text = f"the medians are the same ({format_points(row['median_a'])}), so "
        if row["decided_by"] == "mean":
            means = f"{format_points(row['mean_a'])} and {format_points(row['mean_b'])}"
            text += f"the means decide: {means}"
        else:
            text += f"with the same means ({format_points(row['mean_a'])}), the ranks alone decide"
    if row["disparity"] is None:
        return f"{text}; D is undefined, for a median is 0 or negative"
    text += f", D = {format_fixed(row['disparity'], 2)}"
    if row["low"] is None:
        return text
    interval_text = format_interval(row["low"], row["high"], "", n_decimals=2)
    return f"{text} ({format_confidence_level(terms)} interval {interval_text})"


def _format_counts(row: Mapping[str, Any], terms: RunTerms) -> str:
    text = f"n = {row['n_a']:,} and {row['n_b']:,}"
    if terms.cluster is None:
        return text
    return f"{text} in {row['clusters_a']:,} and {row['clusters_b']:,} clusters ({terms.cluster})"
