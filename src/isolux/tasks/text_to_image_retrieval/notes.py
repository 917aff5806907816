"""Notes on ranked lists: the database, chance, ties, and the uncertainty from images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.core.notes import Caution
from isolux.stats.intervals import Z_95

if TYPE_CHECKING:
    from isolux.tasks.text_to_image_retrieval.lists import SearchedImages
    from isolux.tasks.text_to_image_retrieval.rows import QueryValues, RankingSettings


_CAUTION_SE_RATIO = 1.0
"""Standard error from images over that from queries: above 1 intervals are a third too short."""
_MAX_LISTED = 10


def build_notes(
    query_values: Sequence[QueryValues],
    queries: pl.DataFrame,
    images: SearchedImages,
    settings: RankingSettings,
) -> tuple[str, ...]:
    """Build the notes; what makes values misleading is a caution."""
    notes: list[str] = []
    for model_values in query_values:
        for k in settings.ks:
            notes += _note_max_skew(model_values, k, images)
        notes += _caution_on_ties(model_values, settings)
    if not queries.height or not len(images.known_rows):
        return tuple(notes)
    group_totals = images.member.sum(axis=0)
    shares = group_totals / group_totals.sum()
    group_shares = list(zip(images.groups, shares.tolist(), strict=True))
    n_excluded, n_hidden = len(images.ids) - len(images.known_rows), len(group_shares) - 10
    notes.append(
        f"The database has {len(images.known_rows):,} images of known value ("
        + ", ".join(f"{group} {share:.1%}" for group, share in group_shares[:10])
        + (f" and {n_hidden:,} more)" if n_hidden > 0 else ")")
        + (f"; {n_excluded:,} of unknown value are left out." if n_excluded else ".")
    )
    # The smallest expected share: below 1/K, counting an absent group as one image exceeds it.
    min_expected = (
        1.0 / max(len(images.groups), 1) if settings.against == "uniform" else float(shares.min())
    )
    # Then an absent group has a positive skew, as if it were shown too often.
    small_ks = [k for k in settings.ks if min_expected < 1.0 / k]
    if small_ks and settings.zero == "1/k":
        rarest_group = images.groups[int(shares.argmin())]
        text = (
            f"With K = {small_ks[0]} a value of {min_expected:.1%} of the images, such as"
            f" {rarest_group!r}, is expected less than once: one that is not there at all counts as"
            " one image, more than its share. Take a larger top_k, or zero='leave out'."
        )
        notes.append(Caution(text))
    return tuple(notes)


def _caution_on_ties(model_values: QueryValues, settings: RankingSettings) -> list[str]:
    """Caution where ties, not scores, decide most of the first K images."""
    consequence = (
        "Those queries are not scored."
        if settings.ties == "shared"
        else "Those places say how the database is ordered: ties='shared' leaves them out."
    )
    notes: list[str] = []
    for k, queries in model_values.tied_queries.items():
        tie_phrase = (
            "of all images tie for the first place"
            if k is None
            else f"of the first {k} places fall among images of one score, any of which could be"
            " there"
        )
        text = (
            f"In {len(queries):,} of {len(model_values.ranked_queries):,} queries of"
            f" {model_values.lists.model!r} most"
            f" {tie_phrase}. {consequence} Were scores rounded, or a default filled in?"
        )
        # Only metrics that were requested: NDKL reads the whole list, the others its first K.
        if queries and (
            model_values.needs_full_ranking if k is None else model_values.needs_first_k
        ):
            notes.append(Caution(text))
    return notes


def _note_max_skew(model_values: QueryValues, k: int, images: SearchedImages) -> list[str]:
    """Compare a model's mean MaxSkew with chance, and with its standard error from images."""
    values, chance = np.array(model_values.max_skews[k]), model_values.expected_skews[k]
    if not len(values):
        return []
    model = model_values.lists.model
    mean, mean_chance = float(values.mean()), float(np.mean(chance))
    chance_text = (
        f"{_describe_first_k(model_values, k, images)} MaxSkew@{k} of {model} is {mean:.3f} on"
        f" average over {len(values):,} queries; of the same images in random order it would be"
        f" {mean_chance:.3f}."
    )
    image_se = (
        model_values.resampled_images.standard_error(k)
        # Both standard errors must be of the same queries.
        if model_values.resampled_images.n_queries == len(values)
        else float("nan")
    )
    if not np.isfinite(image_se):
        return [chance_text]
    query_se = float(values.std(ddof=1)) / len(values) ** 0.5
    # Errors from queries and from images are independent, so their variances add up.
    half_width = Z_95 * (query_se**2 + image_se**2) ** 0.5
    low, high = mean - half_width, mean + half_width
    text = (
        "Intervals are about other queries, the images being given. Other images would move the"
        f" mean MaxSkew@{k} of {model} by {image_se:.3f} more (one standard error; other queries:"
        f" {query_se:.3f}). Over both its 95 % interval is {low:.3f} to {high:.3f}; a random order"
        f" gives {mean_chance:.3f}."
    )
    return [chance_text, Caution(text) if image_se > _CAUTION_SE_RATIO * query_se else text]


def _describe_first_k(model_values: QueryValues, k: int, images: SearchedImages) -> str:
    """Describe the groups' mean shares of the first k images, and the expected ones."""
    lines = [line for line in model_values.evidence_rows if line[3] == k]
    phrases = []
    for group in images.groups[:_MAX_LISTED]:
        shares = np.array([(line[6], line[7]) for line in lines if line[4] == group], dtype=float)
        share, expected = np.nanmean(shares, axis=0)
        phrases.append(f"{group} {share:.1%} ({expected:.1%} expected)")
    return f"The first {k} images are " + ", ".join(phrases) + "."
