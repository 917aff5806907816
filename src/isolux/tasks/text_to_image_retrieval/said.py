"""What a report must say of ranked lists: the database, chance, and other images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.vocabulary.notes import Caution

if TYPE_CHECKING:
    from isolux.tasks.text_to_image_retrieval.lists import Images
    from isolux.tasks.text_to_image_retrieval.rows import Asked, QueryValues


_REACH = 1.96
_MUCH = 1.0
"""Of the spread between queries: intervals are then a third too short."""
_SHOWN = 10


def told(
    found: Sequence[QueryValues], queries: pl.DataFrame, images: Images, asked: Asked
) -> tuple[str, ...]:
    """Say what the numbers rest on; what makes them misleading is a caution."""
    notes: list[str] = []
    for one in found:
        for k in asked.ks:
            notes += _of_k(one, k, images)
        notes += _on_ties(one, asked)
    if not queries.height or not len(images.known):
        return tuple(notes)
    whole = images.member.sum(axis=0)
    shares = whole / whole.sum()
    named = list(zip(images.groups, shares.tolist(), strict=True))
    left, more = len(images.ids) - len(images.known), len(named) - 10
    notes.append(
        f"The database has {len(images.known):,} images of known value ("
        + ", ".join(f"{group} {share:.1%}" for group, share in named[:10])
        + (f" and {more:,} more)" if more > 0 else ")")
        + (f"; {left:,} of unknown value are left out." if left else ".")
    )
    least = 1.0 / max(len(images.groups), 1) if asked.against == "uniform" else float(shares.min())
    few = [k for k in asked.ks if least < 1.0 / k]
    if few and asked.zero == "1/k":
        rare = images.groups[int(shares.argmin())]
        text = (
            f"With K = {few[0]} a value of {least:.1%} of the images, such as {rare!r}, is expected"
            " less than once: one that is not there at all counts as one image, more than its"
            " share. Take a larger top_k, or zero='leave out'."
        )
        notes.append(Caution(text))
    return tuple(notes)


def _on_ties(one: QueryValues, asked: Asked) -> list[str]:
    """Caution where scores do not choose the first K images, because most of them tie."""
    what = (
        "Those queries are not scored."
        if asked.ties == "shared"
        else "Those places say how the database is ordered: ties='shared' leaves them out."
    )
    notes: list[str] = []
    for k, queries in one.tied.items():
        places = (
            "of all images tie for the first place"
            if k is None
            else f"of the first {k} places fall among images of one score, any of which could be"
            " there"
        )
        text = (
            f"In {len(queries):,} of {len(one.listed):,} queries of {one.lists.model!r} most"
            f" {places}. {what} Were scores rounded, or a default filled in?"
        )
        if queries and (one.looks_at_whole if k is None else one.looks_at_first):
            notes.append(Caution(text))
    return notes


def _of_k(one: QueryValues, k: int, images: Images) -> list[str]:
    """Set a model's mean MaxSkew beside chance and beside what other images would do to it."""
    values, chance = np.array(one.most[k]), one.chance[k]
    if not len(values):
        return []
    model = one.lists.model
    mean, random = float(values.mean()), float(np.mean(chance))
    beside = (
        f"{_held(one, k, images)} MaxSkew@{k} of {model} is {mean:.3f} on average over "
        f"{len(values):,} queries; of the same images in random order it would be {random:.3f}."
    )
    other = one.other.standard_error(k) if one.other.queries == len(values) else float("nan")
    if not np.isfinite(other):
        return [beside]
    own = float(values.std(ddof=1)) / len(values) ** 0.5
    both = _REACH * (own**2 + other**2) ** 0.5
    low, high = mean - both, mean + both
    text = (
        f"Intervals are about other queries, the images being given. Other images would move the "
        f"mean MaxSkew@{k} of {model} by {other:.3f} more (one standard error; other queries: "
        f"{own:.3f}). Over both its 95 % interval is {low:.3f} to {high:.3f}; a random order gives "
        f"{random:.3f}."
    )
    return [beside, Caution(text) if other > _MUCH * own else text]


def _held(one: QueryValues, k: int, images: Images) -> str:
    """Say whose the first k images are, and whose were expected, on average over queries."""
    lines = [line for line in one.lines if line[3] == k]
    parts = []
    for group in images.groups[:_SHOWN]:
        own = np.array([(line[6], line[7]) for line in lines if line[4] == group], dtype=float)
        share, expected = np.nanmean(own, axis=0)
        parts.append(f"{group} {share:.1%} ({expected:.1%} expected)")
    return f"The first {k} images are " + ", ".join(parts) + "."
