"""A summary for the publisher: how much of a page is suppressed, and because of which attributes.

It is printed on their screen, never on the page: that an attribute has a small group must itself
not be published.
"""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Run

_MIN_REPORTED_SHARE = 0.5  # share of groups from which their suppression is reported


def describe_suppression(run: Run, published_run: Run, minimum: int) -> str:
    """Describe how many groups are suppressed, and which attributes cause it."""
    all_groups, published_groups = (
        _list_groups(source_run.group_metrics) for source_run in (run, published_run)
    )
    n_groups, n_hidden = all_groups.height, all_groups.height - published_groups.height
    hidden_attributes = [
        attribute
        for attribute in all_groups["attribute"].unique(maintain_order=True)
        if attribute not in published_groups["attribute"]
    ]
    is_large_share = n_hidden >= _MIN_REPORTED_SHARE * n_groups
    if not n_hidden or not (is_large_share or hidden_attributes):
        return ""
    text = f"--publish-min {minimum} hides {n_hidden:,} of {n_groups:,} groups."
    text += f" No group of {_join_names(hidden_attributes)} is shown." if hidden_attributes else ""
    people = pl.min_horizontal("n_units", "n_clusters")
    small_groups = _list_groups(run.group_metrics.filter(people < minimum))
    names = small_groups["attribute"].unique(maintain_order=True).to_list()
    if names:
        text += (
            f" Groups or classes of fewer people are in {_join_names(names)}: an audit whose"
            " --by leaves "
            "these out shows more of the others."
        )
    return text


def _list_groups(rows: pl.DataFrame) -> pl.DataFrame:
    attribute_rows = rows.filter(pl.col("attribute").is_not_null()).select("attribute", "group")
    return attribute_rows.unique(maintain_order=True)


def _join_names(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
