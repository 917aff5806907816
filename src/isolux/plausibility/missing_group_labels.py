"""Group labels that are missing not at random: people of unknown group score unlike the others."""

from __future__ import annotations

import numpy as np

from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._unit_scores import (
    ALPHA,
    MIN_BIAS,
    BoolArray,
    BoundedGap,
    UnitScores,
    bound_widest_gap,
    can_bound,
    compare_means,
    iterate_single_attributes,
    mask_groups,
    read_unit_scores,
)
from isolux.stats.label_noise import GapBounds, gap_bounds_with_unknown_group
from isolux.vocabulary.info import PlausibilityInfo
from isolux.vocabulary.notes import Caution

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
    crossings = [
        crossing
        for crossing in iterate_single_attributes(inputs)
        if unit_counts.get(crossing.handle, {}).get("n_unknown")
    ]
    models = read_unit_scores(inputs) if crossings else []
    cautions = []
    for crossing in crossings:
        groups = mask_groups(crossing, len(inputs.membership.units))
        known = np.logical_or.reduce(
            [*groups.values(), np.zeros(len(inputs.membership.units), bool)]
        )
        for scores in models:
            scored = np.isfinite(scores.score)
            sides = known & scored, ~known & scored
            if compare_means(scores, *sides) >= ALPHA / (len(crossings) * len(models)):
                continue
            gap = _bound_gap(scores, groups, sides[1]) if can_bound(inputs) else None
            if gap is None or not scores.is_fraction or gap.max_bias >= MIN_BIAS:
                cautions.append(_describe(crossing.handle, scores, sides, gap))
    return cautions


def _bound_gap(
    scores: UnitScores, groups: dict[str, BoolArray], unknown: BoolArray
) -> BoundedGap | None:
    """Bound the widest gap if people of unknown group are of any group."""
    scored = np.isfinite(scores.score)

    def bound(members: BoolArray, others: BoolArray) -> GapBounds:
        return gap_bounds_with_unknown_group(
            *(scores.score[mask & scored] for mask in (members, others, unknown))
        )

    return bound_widest_gap(scores, groups, bound)


def _describe(
    attribute: str,
    scores: UnitScores,
    sides: tuple[BoolArray, BoolArray],
    gap: BoundedGap | None,
) -> Caution:
    known_mean, unknown_mean = (scores.format(float(scores.score[side].mean())) for side in sides)
    n = int(sides[1].sum())
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
