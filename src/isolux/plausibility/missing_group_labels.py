"""Group labels that are missing not at random: people of unknown group score unlike the others."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._unit_scores import (
    ALPHA,
    MIN_BIAS,
    BoolArray,
    BoundedGap,
    PersonScores,
    bound_widest_gap,
    can_bound,
    compare_means,
    mask_attributes,
    read_unit_scores,
)
from isolux.stats.label_noise import GapBounds, gap_bounds_with_unknown_group

INFO = PlausibilityInfo(
    title="Group labels missing not at random",
    summary="Whether the people of unknown group score like those of known group, by the metric "
    "asked for first; if not, how far the widest gap may be from what it is of the known.",
    rule=f"Warns at p < {ALPHA:g}, divided by the tests of the audit (attributes times models), "
    f"where the gap could move by {100 * MIN_BIAS:g} points or more.",
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where the score of people says something about whether their group is known."""
    unit_counts = inputs.membership.unit_counts
    masks = {
        name: groups
        for name, groups in mask_attributes(inputs).items()
        if unit_counts.get(name, {}).get("n_unknown")
    }
    models = read_unit_scores(inputs) if masks else []
    cautions = []
    for name, groups in masks.items():
        is_known = np.logical_or.reduce(
            [*groups.values(), np.zeros(len(inputs.membership.units), bool)]
        )
        unknown = ~is_known & ~_mask_values(inputs, name)
        for scores in models:
            scored = np.isfinite(scores.score)
            known_and_unknown = is_known & scored, unknown & scored
            if compare_means(scores, *known_and_unknown) >= ALPHA / (len(masks) * len(models)):
                continue
            gap = _bound_gap(scores, groups, known_and_unknown[1]) if can_bound(inputs) else None
            if gap is None or not scores.is_fraction or gap.max_bias >= MIN_BIAS:
                cautions.append(_describe(name, scores, known_and_unknown, gap))
    return cautions


def _mask_values(inputs: AuditInputs, attribute: str) -> BoolArray:
    """Mask the people of a known value: who is of one that was left out is not unknown."""
    rows = inputs.dataset.instance_attributes().filter(pl.col("attribute") == attribute)
    words = [
        word.strip().lower() for word in inputs.options.get("unknown_values") or UNKNOWN_VALUES
    ]
    value = pl.col("value").cast(pl.String).str.strip_chars().str.to_lowercase()
    is_known = rows.filter(value.is_not_null() & ~value.is_in(words))["unit_id"].cast(pl.String)
    return inputs.membership.units.cast(pl.String).is_in(is_known.implode()).to_numpy()


def _bound_gap(
    scores: PersonScores, groups: dict[str, BoolArray], unknown: BoolArray
) -> BoundedGap | None:
    """Bound the widest gap if people of unknown group are of any group."""
    scored = np.isfinite(scores.score)

    def bound(members: BoolArray, other_members: BoolArray) -> GapBounds:
        return gap_bounds_with_unknown_group(
            *(scores.expand(mask & scored) for mask in (members, other_members, unknown))
        )

    return bound_widest_gap(scores, groups, bound)


def _describe(
    attribute: str,
    scores: PersonScores,
    known_and_unknown: tuple[BoolArray, BoolArray],
    gap: BoundedGap | None,
) -> Caution:
    known_mean, unknown_mean = (scores.format(scores.mean(mask)) for mask in known_and_unknown)
    n = int(scores.times[known_and_unknown[1]].sum())
    text = (
        f"{attribute}: the {n:,} people of unknown {attribute} score unlike the others"
        f" ({scores.title} {unknown_mean} against {known_mean}, model {scores.model!r}): labels are"
        " missing not at random, and gaps between the known may be wrong."
    )
    if gap is not None:
        text += (
            f" {scores.title[:1].upper()}{scores.title[1:]} of {gap.group} less that of all others"
            f" is {scores.format_gap([gap.gap])} of the known, and"
            f" {scores.format_gap([gap.bounds.low, gap.bounds.high])} whichever group each of the"
            " unknown belongs to."
        )
    return Caution(text)
