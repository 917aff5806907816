"""People without a score, by group: where they are uneven, every comparison may be wrong.

A model that gives no answer where it would be wrong looks better than it is; one whose missing
answers count as mistakes looks worse; and a truth that is not known may be that of the hard photos.
So all are counted by group before any value is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.groups.membership import Membership
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.counts import COUNTS, TIMES
from isolux.vocabulary.notes import Caution

NO_PREDICTION, NO_SCORE = "no prediction", "no score"
"""The reasons of a score that is null because the model said nothing of the unit."""
_NOT_ASKED = re.compile(
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
"""Reasons of people whom a metric is not about, by its definition or by a setting."""
_MANY, _APART, _P, _FEWEST, _SHOWN = 0.05, 0.03, 0.01, 20, 3


def unanswered(
    scores: pl.DataFrame, members: Membership, evidence: Mapping[str, pl.DataFrame] | None = None
) -> pl.DataFrame:
    """Count who has no score, of everyone and of each group."""
    evidence = evidence or {}
    asked = _asked(scores, evidence)
    models = asked.drop_nulls("reason")["model"].unique().sort()
    frames = [
        _of_model(str(m), asked.filter(pl.col("model") == m), members, evidence.get(COUNTS))
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
}
_KEY = ("model", "unit_id", "metric", "label", "threshold", "value")


def _asked(scores: pl.DataFrame, evidence: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """List the scores that people have or should have; a reason stands where there is none."""
    tables = [
        table.select("model", "unit_id", "reason", metric=pl.lit(None, dtype=pl.String))
        for table in evidence.values()
        if {"model", "unit_id", "reason"} <= set(table.columns)
    ]
    lost = pl.when(pl.col("value").is_null()).then(pl.col("reason").fill_null(NO_SCORE))
    rows = pl.concat([scores.select(*_KEY, reason=lost), *tables], how="diagonal_relaxed")
    outside = [
        reason for reason in rows["reason"].unique().drop_nulls() if _NOT_ASKED.fullmatch(reason)
    ]
    if missed(evidence) is not None:  # ``on_missed`` warns of these: they count as mistakes
        outside.append("not detected")
    return rows.filter(~pl.col("reason").is_in(outside).fill_null(value=False))


def _of_model(
    model: str, asked: pl.DataFrame, members: Membership, times: pl.DataFrame | None
) -> pl.DataFrame:
    reason = pl.col("reason")
    each = asked.group_by("unit_id").agg(
        silent=reason.is_in([NO_PREDICTION, NO_SCORE]).fill_null(value=False).all(),
        unscored=reason.is_not_null().any(),
        reason=reason.drop_nulls().unique().sort().str.join(", "),
    )
    metric = _share(asked)
    held = asked.filter(
        (pl.col("metric") == (metric or ""))
        & pl.col("label").is_null()
        & pl.col("threshold").is_null()
    )
    of_it = held.select("unit_id", "value", about=pl.lit(1))
    each = each.join(of_it, on="unit_id", how="left")
    units = pl.DataFrame({"unit_id": members.units}).join(
        each, on="unit_id", how="left", maintain_order="left"
    )
    worth = _worth(units, times)
    n = units["silent"].is_not_null().to_numpy() * worth
    missing = units["silent"].fill_null(value=False).to_numpy() * worth
    unscored = units["unscored"].fill_null(value=False).to_numpy() * worth
    right = units["value"].fill_null(0.0).to_numpy() * worth
    scored = units["value"].is_not_null().to_numpy() * worth
    lacking = units["about"].fill_null(0).to_numpy() * worth - scored
    parts = (n, missing, unscored, right, scored, lacking)
    reasons = _reasons(units.with_columns(worth=worth))
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
        )
        for a, g, k, m, u, r, s, x in _sums(members, parts)
    ]
    return pl.DataFrame(table, schema=_SCHEMA, orient="row")


def _sums(members: Membership, parts: Sequence[IntArray | FloatArray]) -> Iterator[tuple[Any, ...]]:
    """Give attribute, group and the sum of each part: of everyone, and of every group."""
    yield None, None, *(part.sum() for part in parts)
    for one in members.crossings:
        names, size = one.listed()["group"].to_list(), len(one.cells)
        sums = [np.bincount(one.cell, part[one.unit], size) for part in parts]
        yield from ((one.handle, *row) for row in zip(names, *sums, strict=True))


def _reasons(units: pl.DataFrame) -> str:
    """List why people have no score, with how many they are, the most frequent first."""
    counted = units.filter("unscored").group_by("reason").agg(pl.col("worth").sum())
    rows = counted.sort("worth", "reason", descending=[True, False]).rows()
    more = f", and {len(rows) - _SHOWN:,} more reasons" if len(rows) > _SHOWN else ""
    return ", ".join(f"{reason}: {n:,}" for reason, n in rows[:_SHOWN]) + more


def _share(asked: pl.DataFrame) -> str | None:
    """Name the first metric over all classes whose scores are 0 to 1."""
    whole = asked.filter(pl.col("label").is_null() & pl.col("threshold").is_null())
    for name in whole["metric"].drop_nulls().unique(maintain_order=True):
        of = whole.filter(pl.col("metric") == name)
        values = of["value"].drop_nulls()
        if len(values) and values.is_between(0, 1).all() and values.null_count() < of.height:
            return str(name)
    return None


_LACKED = {NO_PREDICTION: "predictions", "no answer": "answers", "unknown truth": "truths"}
_LEFT_OUT = "They count in no metric that needs what they lack (is the file whole?)"


def cautions(counted: pl.DataFrame, *, bounds: bool = True, fate: str = _LEFT_OUT) -> list[Caution]:
    """Caution where a group has clearly more people without a score, or many without prediction."""
    told = []
    for model, attribute, rows in _groups(counted, "unscored"):
        uneven = is_uneven(rows["unscored"].to_numpy(), rows["n"].to_numpy())
        many = bool((rows["missing"] >= _MANY * rows["n"]).any())
        if not (uneven or many):
            continue
        of = [_of_group(row, bounds=bounds) for row in _both_ends(rows).iter_rows(named=True)]
        what = _LACKED.get(str(rows["reasons"][0]).partition(":")[0], "scores")
        lead = f"Missing {what} are uneven" if uneven else f"{what.capitalize()} are missing"
        told.append(
            Caution(
                f"{lead} ({attribute}, model {model!r}): {'; '.join(of)}. Reasons:"
                f" {rows['reasons'][0]}. {fate}, so that comparisons of these groups may be wrong."
            )
        )
    return told


def missed(evidence: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Take the evidence of answers where people who were not detected count as mistakes."""
    found = evidence.get("classification")
    if found is None or not {"detected", "correct"} <= set(found.columns):
        return None
    judged = found.filter(pl.col("correct").is_not_null())
    judged = judged.with_columns(pl.col("detected").fill_null(value=True))
    lost = judged.filter(~pl.col("detected"))
    return judged if lost.height and not lost["correct"].any() else None


def count_undetected(
    judged: pl.DataFrame | None, members: Membership, times: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Count the people who were not detected, of everyone and of each group."""
    rows: list[tuple[object, ...]] = []
    for (model,), mine in () if judged is None else judged.group_by("model", maintain_order=True):
        units = pl.DataFrame({"unit_id": members.units}).join(
            mine.select("unit_id", "detected"), on="unit_id", how="left", maintain_order="left"
        )
        worth = _worth(units, times)
        n = units["detected"].is_not_null().to_numpy() * worth
        lost = (~units["detected"].fill_null(value=True)).to_numpy() * worth
        counts = _sums(members, (n, lost))
        rows += [(model, name, group, int(m), int(k)) for name, group, m, k in counts]
    return pl.DataFrame(rows, schema=_UNDETECTED, orient="row")


_UNDETECTED = {
    "model": pl.String(),
    "attribute": pl.String(),
    "group": pl.String(),
    "n": pl.Int64(),
    "lost": pl.Int64(),
}


def on_missed(counted: pl.DataFrame) -> list[Caution]:
    """Caution where people who were not detected, and count as mistakes, are of some groups."""
    told = []
    for model, attribute, rows in _groups(counted, "lost"):
        if not is_uneven(rows["lost"].to_numpy(), rows["n"].to_numpy()):
            continue
        most = [
            f"{name} lacks {k:,} of {m:,} ({100 * k / m:.0f} %)"
            for name, m, k in _both_ends(rows).select("group", "n", "lost").rows()
        ]
        told.append(
            Caution(
                f"Missing answers are uneven ({attribute}, model {model!r}): "
                f"{'; '.join(most)}. They count as not detected, so as mistakes: a difference "
                "of accuracy may be one of detection. --undetected leave-out leaves them out."
            )
        )
    return told


def _groups(counted: pl.DataFrame, lost: str) -> Iterator[tuple[Any, Any, pl.DataFrame]]:
    """Give the groups of each model and attribute that are large enough, the worst first."""
    groups = counted.filter(pl.col("attribute").is_not_null() & (pl.col("n") >= _FEWEST))
    for (model, attribute), own in groups.group_by("model", "attribute", maintain_order=True):
        share = pl.col(lost) / pl.col("n")
        yield model, attribute, own.sort(share, descending=True, maintain_order=True)


def _both_ends(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the groups with the largest shares, and the one with the least."""
    return rows if rows.height <= _SHOWN else pl.concat([rows.head(_SHOWN - 1), rows.tail(1)])


def _worth(units: pl.DataFrame, times: pl.DataFrame | None) -> IntArray:
    """Return how many people each unit stands for."""
    if times is None:
        return np.ones(units.height, dtype=np.int64)
    held = times.select("unit_id", TIMES).unique("unit_id")
    counted = units.join(held, on="unit_id", how="left", maintain_order="left")
    return counted[TIMES].fill_null(1).to_numpy().astype(np.int64)


def is_uneven(missing: FloatArray | IntArray, n: FloatArray | IntArray, alpha: float = _P) -> bool:
    """Tell whether shares differ by 3 points or more, and by more than chance."""
    from scipy.stats import chi2_contingency, fisher_exact

    share = missing / np.maximum(n, 1)
    if len(n) < 2 or not missing.any() or share.max() - share.min() < _APART:
        return False
    table = np.array([missing, n - missing])
    if not table[1].any():
        return False
    if len(n) == 2:
        return bool(fisher_exact(table)[1] < alpha)
    return bool(chi2_contingency(table)[1] < alpha)


def _of_group(row: dict[str, object], *, bounds: bool) -> str:
    n, missing, right = int(str(row["n"])), int(str(row["unscored"])), row["right"]
    text = f"{row['group']} lacks {missing:,} of {n:,} ({100 * missing / n:.0f} %)"
    scored, lacking = int(str(row["scored"])), int(str(row["lacking"]))
    if not (bounds and right is not None and scored and lacking):
        return text
    right, about = float(str(right)), scored + lacking
    now, low, high = (100 * x for x in (right / scored, right / about, (right + lacking) / about))
    zero, one = ("wrong", "right") if row["metric"] == "accuracy" else ("0", "1")
    whom = "all of them" if lacking == missing else f"the {lacking:,} of them whom it is about"
    return (
        f"{text}, and its {row['metric']} of {now:.1f} % would be {low:.1f} % if {whom} were "
        f"{zero}, {high:.1f} % if all were {one}"
    )
