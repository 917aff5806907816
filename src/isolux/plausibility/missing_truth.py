"""Truth that is missing not at random: the share without truth differs by group, or by answer."""

from __future__ import annotations

import numpy as np
import polars as pl

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
    compare_shares,
    list_shares,
    mask_attributes,
    read_unit_scores,
)
from isolux.stats.label_noise import GapBounds
from isolux.stats.statistic import IntArray

_ADVICE_ON_BLANKS = (
    "If an empty cell means a class, as where only findings are noted, say so: --label-map"
    " 'CLASS=\"\"'."
)
UNKNOWN_TRUTH = "unknown truth"

INFO = PlausibilityInfo(
    title="Truth missing not at random",
    summary="Whether the share of people without truth is the same in all groups, and for all "
    "answers of the model; if not, how far the widest gap may be from what it is of the others.",
    rule=f"Warns at p < {ALPHA:g}, divided by the tests of the audit (attributes and answers, "
    f"times models), where the gap could move by {100 * MIN_BIAS:g} points or more.",
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where a group, or an answer, says something about whether the truth is known."""
    models = read_unit_scores(inputs, UNKNOWN_TRUTH)
    masks = mask_attributes(inputs) if models else {}
    alpha = ALPHA / max((len(masks) + 1) * len(models), 1)
    cautions: list[Caution] = []
    for scores in models:
        missing = (scores.reason == UNKNOWN_TRUTH).fill_null(value=False).to_numpy()
        is_counted = missing | np.isfinite(scores.score)
        gaps = {
            name: _bound_gap(scores, groups, missing) if can_bound(inputs) else None
            for name, groups in masks.items()
        }
        by_group = [
            _describe(f"{name}, model {scores.model!r}", shares, scores, gaps[name])
            for name, groups in masks.items()
            if (shares := _test_groups(scores, groups, missing, is_counted, alpha))
            and _is_relevant(scores, gaps[name])
        ]
        cautions += by_group
        shares = _test_answers(inputs, scores, missing, is_counted, alpha)
        widest = max(filter(None, gaps.values()), key=lambda gap: gap.max_bias, default=None)
        if shares and _is_relevant(scores, widest):
            subject = f"answers of {scores.model!r}"
            cautions.append(_describe(subject, shares, scores, None if by_group else widest))
    if inputs.task == "classification":
        return [Caution(f"{caution} {_ADVICE_ON_BLANKS}") for caution in cautions]
    return cautions


def _is_relevant(scores: PersonScores, gap: BoundedGap | None) -> bool:
    return gap is None or not scores.is_fraction or gap.max_bias >= MIN_BIAS


def _test_groups(
    scores: PersonScores,
    groups: dict[str, BoolArray],
    missing: BoolArray,
    is_counted: BoolArray,
    alpha: float,
) -> str:
    """List the shares of the groups where they differ; empty: they do not, or one is all."""
    category = np.full(len(missing), -1, dtype=np.int64)
    for k, members in enumerate(groups.values()):
        category[members & is_counted] = k
    if len(groups) < 2 or compare_shares(missing, category, scores) >= alpha:
        return ""
    sizes = [int(scores.times[members & is_counted].sum()) for members in groups.values()]
    n_missing = [int(scores.times[members & missing].sum()) for members in groups.values()]
    return list_shares(list(groups), n_missing, sizes)


def _test_answers(
    inputs: AuditInputs,
    scores: PersonScores,
    missing: BoolArray,
    is_counted: BoolArray,
    alpha: float,
) -> str:
    """List the shares of the answers where they differ; empty: they do not."""
    names, category = _read_answers(inputs, scores)
    category = np.where(is_counted, category, -1)
    if len(names) < 2 or compare_shares(missing, category, scores) >= alpha:
        return ""
    sizes, n_missing = (
        np.bincount(category[rows], scores.times[rows], len(names)).astype(np.int64).tolist()
        for rows in (category >= 0, missing & (category >= 0))
    )
    return list_shares(names, n_missing, sizes)


def _read_answers(inputs: AuditInputs, scores: PersonScores) -> tuple[list[str], IntArray]:
    """Read each person's first answer: names and codes ``[n]``; −1: none."""
    n_units = len(inputs.membership.units)
    predictions = inputs.predictions
    required_columns = {"model", "instance_id", "label"}
    if predictions is None or not required_columns <= set(predictions.columns):
        return [], np.full(n_units, -1, dtype=np.int64)
    rows = predictions.filter(pl.col("model").cast(pl.String) == scores.model)
    if "rank" in rows.columns:
        rows = rows.filter(pl.col("rank") == 1)
    first = rows.select(
        unit_id=pl.col("instance_id").cast(pl.String), label=pl.col("label").cast(pl.String)
    ).unique("unit_id", keep="first", maintain_order=True)
    units = pl.DataFrame({"unit_id": inputs.membership.units.cast(pl.String)})
    label = units.join(first, on="unit_id", how="left", maintain_order="left")["label"]
    names = label.drop_nulls().unique().sort()
    code = label.replace_strict(names, range(len(names)), default=-1, return_dtype=pl.Int64)
    return names.to_list(), code.fill_null(-1).to_numpy()


def _bound_gap(
    scores: PersonScores, groups: dict[str, BoolArray], missing: BoolArray
) -> BoundedGap | None:
    """Bound the widest gap, whatever scores people without truth would have."""
    if scores.metric is not None and (scores.metric.low, scores.metric.high) != (0.0, 1.0):
        return None
    scored = np.isfinite(scores.score)

    def bound(members: BoolArray, other_members: BoolArray) -> GapBounds:
        bounds = []
        for mask in (members, other_members):
            n_missing = scores.times[mask & missing].sum()
            total = scores.times[mask & scored] @ scores.score[mask & scored]
            n = scores.times[mask & scored].sum() + n_missing
            bounds.append((total / n, (total + n_missing) / n))
        return GapBounds(bounds[0][0] - bounds[1][1], bounds[0][1] - bounds[1][0])

    return bound_widest_gap(scores, groups, bound)


def _describe(subject: str, shares: str, scores: PersonScores, gap: BoundedGap | None) -> Caution:
    """``subject``: as in the caution on missing scores, which this one then replaces."""
    text = (
        f"Missing truths are uneven ({subject}): {shares}. Whoever has no truth counts in no metric"
        " that needs it, so that comparisons of groups may be wrong."
    )
    if gap is not None:
        text += (
            f" {scores.title[:1].upper()}{scores.title[1:]} of {gap.group} less that of all others"
            f" is {scores.format_gap([gap.gap])} of those with a truth, and"
            f" {scores.format_gap([gap.bounds.low, gap.bounds.high])} whatever is missing."
        )
    return Caution(text)
