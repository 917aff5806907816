"""People without an answer, by group: where they are uneven, every comparison may be wrong.

A model that gives no answer where it would be wrong looks better than it is; one whose missing
answers count as mistakes looks worse. So both are counted by group before any value is believed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from isolux.groups.membership import Membership
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.counts import TIMES
from isolux.vocabulary.notes import Caution

__all__ = ["NO_PREDICTION", "cautions", "missed", "on_missed", "unanswered"]

NO_PREDICTION = "no prediction"
"""The reason of a score that is null because the model said nothing of the unit."""
_MANY, _APART, _P, _FEWEST, _SHOWN = 0.05, 0.03, 0.01, 20, 3


def unanswered(
    scores: pl.DataFrame, members: Membership, times: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Count who has no prediction, of everyone and of each group.

    Parameters
    ----------
    scores : polars.DataFrame
        Table ``scores``.
    members : Membership
    times : polars.DataFrame, optional
        ``unit_id, times``: how many people a unit stands for; not given: one each.

    Returns
    -------
    polars.DataFrame
        ``model, attribute, group`` (both null: everyone), ``n`` (people with a score or without a
        prediction), ``missing`` (those of ``n`` without one), ``metric`` (the first that is a share
        over all classes; null: there is none), and of the people whom that metric is about
        ``right`` (the sum of their scores), ``scored`` and ``lacking`` (how many have a score, or
        no prediction). No row where everyone has a prediction.

    Examples
    --------
    >>> from isolux.groups.membership import membership
    >>> who = pl.DataFrame({"unit_kind": "instance", "unit_id": ["a", "b"], "attribute": "light",
    ...                     "value": ["day", "night"]})
    >>> scores = pl.DataFrame({"model": "m", "metric": "accuracy", "label": None, "threshold": None,
    ...     "unit_id": ["a", "b"], "value": [1.0, None], "reason": [None, "no prediction"]})
    >>> unanswered(scores, membership(who, ["light"])).select("group", "n", "missing").rows()
    [(None, 2, 1), ('day', 1, 0), ('night', 1, 1)]
    """
    silent = scores.filter(pl.col("reason") == NO_PREDICTION)
    frames = [_of_model(str(m), scores, members, times)
              for m in silent["model"].unique().sort()]  # fmt: skip
    return pl.concat(frames) if frames else pl.DataFrame(schema=_SCHEMA)


_SCHEMA = {
    "model": pl.String(), "attribute": pl.String(), "group": pl.String(), "n": pl.Int64(),
    "missing": pl.Int64(), "metric": pl.String(), "right": pl.Float64(),
    "scored": pl.Int64(), "lacking": pl.Int64(),
}  # fmt: skip


def _of_model(
    model: str, scores: pl.DataFrame, members: Membership, times: pl.DataFrame | None
) -> pl.DataFrame:
    mine = scores.filter(pl.col("model") == model)
    asked = mine.filter(pl.col("value").is_not_null() | (pl.col("reason") == NO_PREDICTION))
    each = asked.group_by("unit_id").agg(silent=pl.col("value").is_null().all())
    metric = _share(asked)
    held = asked.filter(
        (pl.col("metric") == (metric or "")) & pl.col("label").is_null()
        & pl.col("threshold").is_null()
    )  # fmt: skip
    of_it = held.select("unit_id", "value", about=pl.lit(1))
    each = each.join(of_it, on="unit_id", how="left")
    units = pl.DataFrame({"unit_id": members.units}).join(
        each, on="unit_id", how="left", maintain_order="left"
    )
    worth = _worth(units, times)
    n = units["silent"].is_not_null().to_numpy() * worth
    missing = units["silent"].fill_null(value=False).to_numpy() * worth
    right = units["value"].fill_null(0.0).to_numpy() * worth
    scored = units["value"].is_not_null().to_numpy() * worth
    lacking = units["about"].fill_null(0).to_numpy() * worth - scored
    parts = (n, missing, right, scored, lacking)
    rows = [(None, None, *(part.sum() for part in parts))]
    for one in members.crossings:
        names, size = one.listed()["group"].to_list(), len(one.cells)
        sums = [np.bincount(one.cell, part[one.unit], size) for part in parts]
        rows += [(one.handle, *row) for row in zip(names, *sums, strict=True)]
    table = [
        (model, a, g, int(k), int(m), metric, None if metric is None else float(r), int(s), int(x))
        for a, g, k, m, r, s, x in rows
    ]
    return pl.DataFrame(table, schema=_SCHEMA, orient="row")


def _share(asked: pl.DataFrame) -> str | None:
    """Name the first metric over all classes whose scores are 0 to 1."""
    whole = asked.filter(pl.col("label").is_null() & pl.col("threshold").is_null())
    for name in whole["metric"].unique(maintain_order=True):
        of = whole.filter(pl.col("metric") == name)
        values = of["value"].drop_nulls()
        if len(values) and values.is_between(0, 1).all() and values.null_count() < of.height:
            return str(name)
    return None


def cautions(counted: pl.DataFrame, *, bounds: bool = True) -> list[Caution]:
    """Caution where a group has many people without a prediction, or clearly more than another.

    Parameters
    ----------
    counted : polars.DataFrame
        As ``unanswered`` returns it.
    bounds : bool
        Whether counts say how far a value could move: each person counts once, and a person's
        score depends on the prediction of no one else.

    Returns
    -------
    list of Caution
        One for each model and attribute. A group of fewer than 20 people is not looked at.
    """
    told = []
    groups = counted.filter(pl.col("attribute").is_not_null() & (pl.col("n") >= _FEWEST))
    for (model, attribute), own in groups.group_by(["model", "attribute"], maintain_order=True):
        rows = own.with_columns(share=pl.col("missing") / pl.col("n"))
        rows = rows.sort("share", descending=True)
        uneven = _uneven(*(rows[name].cast(pl.Float64).to_numpy() for name in ("missing", "n")))
        many = rows.filter(pl.col("share") >= _MANY)
        if not (uneven or many.height):
            continue
        shown = (many if many.height else rows).head(_SHOWN)
        of = [_of_group(row, bounds=bounds) for row in shown.iter_rows(named=True)]
        more = many.height - len(of)
        of += [f"and {more:,} more group{'s' * (more > 1)}"] if more > 0 else []
        lead = "Missing predictions are uneven" if uneven else "Predictions are missing"
        told.append(
            Caution(
                f"{lead} ({attribute}, model {model!r}): {'; '.join(of)}. They count in no metric, "
                "so that comparisons of these groups may be wrong: is the file whole?"
            )
        )
    return told


def missed(evidence: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Take the evidence of answers where people who were not detected count as mistakes.

    Parameters
    ----------
    evidence : mapping of str to polars.DataFrame
        As ``Scores`` holds it.

    Returns
    -------
    polars.DataFrame or None
        The judged rows of ``classification``, ``detected`` true or false. None if everyone who
        was judged was detected, or if those who were not are left out.
    """
    found = evidence.get("classification")
    if found is None or not {"detected", "correct"} <= set(found.columns):
        return None
    judged = found.filter(pl.col("correct").is_not_null())
    judged = judged.with_columns(pl.col("detected").fill_null(value=True))
    lost = judged.filter(~pl.col("detected"))
    return judged if lost.height and not lost["correct"].any() else None


def on_missed(
    judged: pl.DataFrame | None, members: Membership, times: pl.DataFrame | None = None
) -> list[Caution]:
    """Caution where people who were not detected, and count as mistakes, are of some groups.

    Parameters
    ----------
    judged : polars.DataFrame, optional
        As ``missed`` returns it.
    members : Membership
    times : polars.DataFrame, optional
        As ``unanswered`` takes it.

    Returns
    -------
    list of Caution
        One for each model and attribute whose groups differ by 3 points or more in it, and by more
        than chance. A group of fewer than 20 people is not looked at.
    """
    told = []
    for (model,), mine in () if judged is None else judged.group_by("model", maintain_order=True):
        units = pl.DataFrame({"unit_id": members.units}).join(
            mine.select("unit_id", "detected"), on="unit_id", how="left", maintain_order="left"
        )
        worth = _worth(units, times)
        n = units["detected"].is_not_null().to_numpy() * worth
        lost = (~units["detected"].fill_null(value=True)).to_numpy() * worth
        for one in members.crossings:
            names, size = one.listed()["group"], len(one.cells)
            of, gone = (np.bincount(one.cell, part[one.unit], size) for part in (n, lost))
            rows = pl.DataFrame({"group": names, "n": of, "lost": gone})
            rows = rows.filter(pl.col("n") >= _FEWEST)
            rows = rows.sort(pl.col("lost") / pl.col("n"), descending=True, maintain_order=True)
            if not _uneven(rows["lost"].to_numpy(), rows["n"].to_numpy()):
                continue
            most = [f"{name} lacks {k:,.0f} of {m:,.0f} ({100 * k / m:.0f} %)"
                    for name, m, k in _both_ends(rows).rows()]  # fmt: skip
            told.append(
                Caution(
                    f"Missing answers are uneven ({one.handle}, model {model!r}): "
                    f"{'; '.join(most)}. They count as not detected, so as mistakes: a difference "
                    "of accuracy may be one of detection. --undetected leave-out leaves them out."
                )
            )
    return told


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


def _uneven(missing: FloatArray, n: FloatArray) -> bool:
    """Tell whether shares differ by 3 points or more, and by more than chance."""
    from scipy.stats import chi2_contingency, fisher_exact

    share = missing / np.maximum(n, 1)
    if len(n) < 2 or not missing.any() or share.max() - share.min() < _APART:
        return False
    table = np.array([missing, n - missing])
    if not table[1].any():
        return False
    if len(n) == 2:
        return bool(fisher_exact(table)[1] < _P)
    return bool(chi2_contingency(table)[1] < _P)


def _of_group(row: dict[str, object], *, bounds: bool) -> str:
    n, missing, right = int(str(row["n"])), int(str(row["missing"])), row["right"]
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
