"""For the person who publishes: how much of a page is hidden, and because of which attributes.

This is told on their screen, and never on the page: that an attribute has a small group is itself
something that a reader should not learn.
"""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.containers import Run

_MANY = 0.5  # of the groups: from that share it is worth a sentence


def hiding(run: Run, cut: Run, minimum: int) -> str:
    """Say how many groups are hidden where these are many, and of which attributes they are."""
    every, shown = (_groups(one.group_metrics) for one in (run, cut))
    n, hidden = every.height, every.height - shown.height
    gone = [
        one
        for one in every["attribute"].unique(maintain_order=True)
        if one not in shown["attribute"]
    ]
    many = hidden >= _MANY * n
    if not hidden or not (many or gone):
        return ""
    said = f"--publish-min {minimum} hides {hidden:,} of {n:,} groups."
    said += f" No group of {_and(gone)} is shown." if gone else ""
    people = pl.min_horizontal("n_units", "n_clusters")
    few = _groups(run.group_metrics.filter(people < minimum))
    names = few["attribute"].unique(maintain_order=True).to_list()
    if names:
        said += (
            f" Groups or classes of fewer people are in {_and(names)}: an audit whose --by leaves "
            "these out shows more of the others."
        )
    return said


def _groups(rows: pl.DataFrame) -> pl.DataFrame:
    told = rows.filter(pl.col("attribute").is_not_null()).select("attribute", "group")
    return told.unique(maintain_order=True)


def _and(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
