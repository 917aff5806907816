"""Missing predictions and scores by group: if they are uneven, every comparison may be biased.

A model without a prediction where it would be wrong looks better than it is; one whose missing
predictions count as mistakes looks worse; and unknown truths may be those of difficult photos. So
all are counted by group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.core.counts import COUNTS, TIMES
from isolux.core.notes import Caution
from isolux.groups.membership import Membership
from isolux.stats.proportions import estimate_design_effect
from isolux.stats.statistic import FloatArray, IntArray

NO_PREDICTION, NO_SCORE = "no prediction", "no score"
"""Reasons of a score that is null because the model has no prediction of the unit."""
_NOT_APPLICABLE = re.compile(
    r"a crowd, not one person|marked to be ignored|takes part in matching only|several people .*"
    r"|not (small|medium|large)|not of the level .*|none of these parts|used to choose the prompts"
    r"|of legal age|under the legal age|younger than those who count|(not )?enrolled"
    r"|enrolled, not searched for|the person is (not )?enrolled|not to be enrolled"
    r"|the threshold was set on them|no threshold could be set|the same photo as another row"
    r"|no other value in its scene|its scene lacks a value|neutral pronoun|no gender said"
    r"|no entry to compare with has its value|no image of known value"
    r"|fewer than \d+ (images|entries to compare with)|\d+ is the whole list"
    r"|none among the first \d+|ties hold .*|one score holds .*"
)
"""Reasons of units that a metric excludes by its definition or by a setting."""
_HIGH_MISSING_SHARE, _MIN_SHARE_DIFFERENCE, _UNEVEN_P, _MIN_GROUP_SIZE, _MAX_LISTED = (
    0.05,
    0.03,
    0.01,
    20,
    3,
)


def count_missing_predictions(
    scores: pl.DataFrame, members: Membership, evidence: Mapping[str, pl.DataFrame] | None = None
) -> pl.DataFrame:
    """Count units without a score, overall and by group."""
    evidence = evidence or {}
    expected = _list_expected_scores(scores, evidence)
    models = expected.drop_nulls("reason")["model"].unique().sort()
    frames = [
        _count_model_missing(
            str(m), expected.filter(pl.col("model") == m), members, evidence.get(COUNTS)
        )
        for m in models
    ]
    return pl.concat(frames) if frames else pl.DataFrame(schema=_SCHEMA)


_SCHEMA = {
    "model": pl.String(),
    "attribute": pl.String(),
    "group": pl.String(),
    "n": pl.Int64(),
    "missing": pl.Int64(),
    "unscored": pl.Int64(),
    "reasons": pl.String(),
    "metric": pl.String(),
    "right": pl.Float64(),
    "scored": pl.Int64(),
    "lacking": pl.Int64(),
    "design_effect": pl.Float64(),
}
_KEY = ("model", "unit_id", "metric", "label", "threshold", "value")
_CLUSTER = "cluster_id"


def _list_expected_scores(
    scores: pl.DataFrame, evidence: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """List the scores that units have or should have, with the reason of missing ones."""
    tables = [
        table.select(
            "model", "unit_id", "reason", *_cluster(table), metric=pl.lit(None, dtype=pl.String)
        )
        for table in evidence.values()
        if {"model", "unit_id", "reason"} <= set(table.columns)
    ]
    missing_reason = pl.when(pl.col("value").is_null()).then(pl.col("reason").fill_null(NO_SCORE))
    score_rows = scores.select(*_KEY, *_cluster(scores), reason=missing_reason)
    rows = pl.concat([score_rows, *tables], how="diagonal_relaxed")
    excluded_reasons = [
        reason
        for reason in rows["reason"].unique().drop_nulls()
        if _NOT_APPLICABLE.fullmatch(reason)
    ]
    if (
        find_evidence_with_undetected(evidence) is not None
    ):  # ``on_missed`` warns of these: they count as mistakes
        excluded_reasons.append("not detected")
    return rows.filter(~pl.col("reason").is_in(excluded_reasons).fill_null(value=False))


def _cluster(table: pl.DataFrame) -> list[pl.Expr]:
    return [
        pl.col(_CLUSTER) if _CLUSTER in table.columns else pl.lit(None, pl.String).alias(_CLUSTER)
    ]


def _count_model_missing(
    model: str, expected: pl.DataFrame, members: Membership, counts: pl.DataFrame | None
) -> pl.DataFrame:
    reason = pl.col("reason")
    unit_rows = expected.group_by("unit_id").agg(
        silent=reason.is_in([NO_PREDICTION, NO_SCORE]).fill_null(value=False).all(),
        unscored=reason.is_not_null().any(),
        reason=reason.drop_nulls().unique().sort().str.join(", "),
        cluster=pl.col(_CLUSTER).drop_nulls().first().cast(pl.String),
    )
    metric = _find_fraction_metric(expected)
    metric_rows = expected.filter(
        (pl.col("metric") == (metric or ""))
        & pl.col("label").is_null()
        & pl.col("threshold").is_null()
    )
    metric_values = metric_rows.select("unit_id", "value", about=pl.lit(1))
    unit_rows = unit_rows.join(metric_values, on="unit_id", how="left")
    units = pl.DataFrame({"unit_id": members.units}).join(
        unit_rows, on="unit_id", how="left", maintain_order="left"
    )
    # A row of a sharded table represents several people (decision 23).
    multiplicity = _unit_multiplicity(units, counts)
    n = units["silent"].is_not_null().to_numpy() * multiplicity
    missing = units["silent"].fill_null(value=False).to_numpy() * multiplicity
    unscored = units["unscored"].fill_null(value=False).to_numpy() * multiplicity
    right = units["value"].fill_null(0.0).to_numpy() * multiplicity
    scored = units["value"].is_not_null().to_numpy() * multiplicity
    n_lacking = units["about"].fill_null(0).to_numpy() * multiplicity - scored
    unit_counts = (n, missing, unscored, right, scored, n_lacking)
    reasons = _format_missing_reasons(units.with_columns(worth=multiplicity))
    effect = _clustering_of_losses(units.with_columns(worth=multiplicity))
    table = [
        (
            model,
            a,
            g,
            int(k),
            int(m),
            int(u),
            reasons,
            metric,
            None if metric is None else float(r),
            int(s),
            int(x),
            effect,
        )
        for a, g, k, m, u, r, s, x in _iterate_group_sums(members, unit_counts)
    ]
    return pl.DataFrame(table, schema=_SCHEMA, orient="row")


def _clustering_of_losses(units: pl.DataFrame) -> float:
    """Return the design effect of a missing score: people of a cluster may lack it together."""
    clusters = (
        units.drop_nulls(["unscored", "cluster"])
        .group_by("cluster")
        .agg((pl.col("unscored") * pl.col("worth")).sum(), n=pl.col("worth").sum())
    )
    if clusters.is_empty():
        return 1.0
    return float(
        np.nan_to_num(estimate_design_effect(clusters["unscored"], clusters["n"]), nan=1.0)
    )


def _iterate_group_sums(
    members: Membership, unit_counts: Sequence[IntArray | FloatArray]
) -> Iterator[tuple[Any, ...]]:
    """Yield attribute, group and the sum of each count: overall, then for every group."""
    yield None, None, *(unit_count.sum() for unit_count in unit_counts)
    for membership in members.intersections:
        names, size = membership.to_group_table()["group"].to_list(), len(membership.cells)
        sums = [
            np.bincount(membership.cell, unit_count[membership.unit], size)
            for unit_count in unit_counts
        ]
        yield from ((membership.handle, *row) for row in zip(names, *sums, strict=True))


def _format_missing_reasons(units: pl.DataFrame) -> str:
    """Format the reasons of missing scores with counts, the most frequent first."""
    reason_counts = units.filter("unscored").group_by("reason").agg(pl.col("worth").sum())
    rows = reason_counts.sort("worth", "reason", descending=[True, False]).rows()
    remainder = f", and {len(rows) - _MAX_LISTED:,} more reasons" if len(rows) > _MAX_LISTED else ""
    return ", ".join(f"{reason}: {n:,}" for reason, n in rows[:_MAX_LISTED]) + remainder


def _find_fraction_metric(expected: pl.DataFrame) -> str | None:
    """Find the first metric over all classes whose scores are 0 to 1."""
    # Only scores of 0 to 1 bound a group's value, whatever the missing ones are.
    overall_rows = expected.filter(pl.col("label").is_null() & pl.col("threshold").is_null())
    for name in overall_rows["metric"].drop_nulls().unique(maintain_order=True):
        metric_rows = overall_rows.filter(pl.col("metric") == name)
        values = metric_rows["value"].drop_nulls()
        if (
            len(values)
            and values.is_between(0, 1).all()
            and values.null_count() < metric_rows.height
        ):
            return str(name)
    return None


_MISSING_NOUNS = {NO_PREDICTION: "predictions", "no answer": "answers", "unknown truth": "truths"}
_EXCLUDED_FATE = "They count in no metric that needs what they lack (is the file whole?)"


def caution_on_missing_scores(
    missing_counts: pl.DataFrame, *, bounds: bool = True, fate: str = _EXCLUDED_FATE
) -> list[Caution]:
    """Caution where a group has clearly more people without a score, or many without prediction."""
    notes = []
    for model, attribute, rows in _iterate_large_groups(missing_counts, "unscored"):
        is_uneven_loss = _are_losses_uneven(rows, "unscored", missing_counts)
        has_many_missing = bool((rows["missing"] >= _HIGH_MISSING_SHARE * rows["n"]).any())
        if not (is_uneven_loss or has_many_missing):
            continue
        descriptions = [
            _describe_group(row, bounds=bounds)
            for row in _select_extreme_groups(rows).iter_rows(named=True)
        ]
        # The reasons begin with the most frequent one.
        noun = _MISSING_NOUNS.get(str(rows["reasons"][0]).partition(":")[0], "scores")
        opening = (
            f"Missing {noun} are uneven" if is_uneven_loss else f"{noun.capitalize()} are missing"
        )
        notes.append(
            Caution(
                f"{opening} ({attribute}, model {model!r}): {'; '.join(descriptions)}. Reasons:"
                f" {rows['reasons'][0]}. {fate}, so that comparisons of these groups may be wrong."
            )
        )
    return notes


def find_evidence_with_undetected(evidence: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Return the classification evidence if undetected people count as mistakes."""
    classification = evidence.get("classification")
    if classification is None or not {"detected", "correct"} <= set(classification.columns):
        return None
    scored = classification.filter(pl.col("correct").is_not_null())
    scored = scored.with_columns(pl.col("detected").fill_null(value=True))
    undetected = scored.filter(~pl.col("detected"))
    return scored if undetected.height and not undetected["correct"].any() else None


def count_undetected(
    scored: pl.DataFrame | None, members: Membership, unit_counts: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Count undetected people, overall and by group."""
    rows: list[tuple[object, ...]] = []
    for (model,), model_rows in (
        () if scored is None else scored.group_by("model", maintain_order=True)
    ):
        units = pl.DataFrame({"unit_id": members.units}).join(
            model_rows.select("unit_id", "detected", cluster=pl.col(_CLUSTER).cast(pl.String)),
            on="unit_id",
            how="left",
            maintain_order="left",
        )
        multiplicity = _unit_multiplicity(units, unit_counts)
        n = units["detected"].is_not_null().to_numpy() * multiplicity
        n_undetected = (~units["detected"].fill_null(value=True)).to_numpy() * multiplicity
        counts = _iterate_group_sums(members, (n, n_undetected))
        effect = _clustering_of_losses(
            units.with_columns(worth=multiplicity, unscored=~pl.col("detected"))
        )
        rows += [(model, name, group, int(m), int(k), effect) for name, group, m, k in counts]
    return pl.DataFrame(rows, schema=_UNDETECTED, orient="row")


_UNDETECTED = {
    "model": pl.String(),
    "attribute": pl.String(),
    "group": pl.String(),
    "n": pl.Int64(),
    "lost": pl.Int64(),
    "design_effect": pl.Float64(),
}


def caution_on_undetected(undetected_counts: pl.DataFrame) -> list[Caution]:
    """Caution where undetected people, who count as mistakes, are uneven over groups."""
    notes = []
    for model, attribute, rows in _iterate_large_groups(undetected_counts, "lost"):
        if not _are_losses_uneven(rows, "lost", undetected_counts):
            continue
        descriptions = [
            f"{name} lacks {k:,} of {m:,} ({100 * k / m:.0f} %)"
            for name, m, k in _select_extreme_groups(rows).select("group", "n", "lost").rows()
        ]
        notes.append(
            Caution(
                f"Missing answers are uneven ({attribute}, model {model!r}): "
                f"{'; '.join(descriptions)}. They count as not detected, so as mistakes: a "
                "difference of accuracy may be one of detection. "
                "--undetected leave-out leaves them out."
            )
        )
    return notes


def _iterate_large_groups(
    loss_counts: pl.DataFrame, loss_column: str
) -> Iterator[tuple[Any, Any, pl.DataFrame]]:
    """Yield the large enough groups of each model and attribute, largest share first."""
    # In a smaller group one missing score is 5 % or more, above the 3 points that count as uneven.
    groups = loss_counts.filter(
        pl.col("attribute").is_not_null() & (pl.col("n") >= _MIN_GROUP_SIZE)
    )
    for (model, attribute), attribute_rows in groups.group_by(
        "model", "attribute", maintain_order=True
    ):
        share = pl.col(loss_column) / pl.col("n")
        yield model, attribute, attribute_rows.sort(share, descending=True, maintain_order=True)


def _are_losses_uneven(groups: pl.DataFrame, loss_column: str, loss_counts: pl.DataFrame) -> bool:
    """Test one attribute's losses; people of a cluster count as much as they are worth."""
    unit_worth = 1.0 / groups["design_effect"]
    n_lost, n = ((groups[name] * unit_worth).round().to_numpy() for name in (loss_column, "n"))
    n_attributes = loss_counts["attribute"].drop_nulls().n_unique()
    return is_share_uneven(n_lost, n, _UNEVEN_P / n_attributes)


def _select_extreme_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Select the groups with the largest shares, and the one with the smallest."""
    return (
        rows
        if rows.height <= _MAX_LISTED
        else pl.concat([rows.head(_MAX_LISTED - 1), rows.tail(1)])
    )


def _unit_multiplicity(units: pl.DataFrame, counts: pl.DataFrame | None) -> IntArray:
    """Return how many people each unit represents."""
    if counts is None:
        return np.ones(units.height, dtype=np.int64)
    multiplicities = counts.select("unit_id", TIMES).unique("unit_id")
    unit_rows = units.join(multiplicities, on="unit_id", how="left", maintain_order="left")
    return unit_rows[TIMES].fill_null(1).to_numpy().astype(np.int64)


def is_share_uneven(
    missing: FloatArray | IntArray, n: FloatArray | IntArray, alpha: float = _UNEVEN_P
) -> bool:
    """Check whether shares differ by 3 points or more, and significantly."""
    from scipy.stats import chi2_contingency, fisher_exact

    share = missing / np.maximum(n, 1)
    if len(n) < 2 or not missing.any() or share.max() - share.min() < _MIN_SHARE_DIFFERENCE:
        return False
    table = np.array([missing, n - missing])
    # Where everyone is missing nothing is uneven, and chi-squared would divide by 0.
    if not table[1].any():
        return False
    # Exact for two groups, whose counts may be small; only chi-squared is feasible for more.
    if len(n) == 2:
        return bool(fisher_exact(table)[1] < alpha)
    return bool(chi2_contingency(table)[1] < alpha)


def _describe_group(row: dict[str, object], *, bounds: bool) -> str:
    n, missing, n_right = int(str(row["n"])), int(str(row["unscored"])), row["right"]
    text = f"{row['group']} lacks {missing:,} of {n:,} ({100 * missing / n:.0f} %)"
    scored, n_lacking = int(str(row["scored"])), int(str(row["lacking"]))
    if not (bounds and n_right is not None and scored and n_lacking):
        return text
    n_right, n_concerned = float(str(n_right)), scored + n_lacking
    # Nothing is assumed about the missing scores: all of them 0, or all of them 1.
    current, low, high = (
        100 * x
        for x in (n_right / scored, n_right / n_concerned, (n_right + n_lacking) / n_concerned)
    )
    wrong_word, correct_word = ("wrong", "right") if row["metric"] == "accuracy" else ("0", "1")
    missing_people = (
        "all of them" if n_lacking == missing else f"the {n_lacking:,} of them whom it is about"
    )
    return (
        f"{text}, and its {row['metric']} of {current:.1f} % would be {low:.1f} % "
        f"if {missing_people} were {wrong_word}, {high:.1f} % if all were {correct_word}"
    )
