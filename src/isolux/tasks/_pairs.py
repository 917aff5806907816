"""Pairs as predictions: two units and how alike a model finds them, each pair once.

``a, b`` and ``b, a`` are one pair, and nobody is compared with himself; a pair that is given twice
with two similarities is refused, because nothing says which one holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.errors import JoinError, TableError, UnknownNameError, place
from isolux.schema import to_polars

__all__ = ["Compared", "read_pairs"]

_NEEDED = ("model", "instance_id", "other_id", "score")
_UNNAMED = "model"
_ALIKE = 1e-6
"""Similarities of one pair that differ by less are rounding: a·b and b·a on a processor."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What models compared.

    Parameters
    ----------
    models : tuple of str
        Sorted.
    pairs : polars.DataFrame
        ``model, unit_id, cluster_id`` (of ``unit_id``, the smaller of the two ids), ``other_id,
        similarity`` (null: the comparison failed), ``genuine`` (null: an identity is unknown).
    failures : polars.DataFrame
        ``model, unit_id, value``: the share of a unit's comparisons that failed, for units that
        were compared.
    missing : str
        Why a unit has no row there.
    notes : tuple of str
    """

    models: tuple[str, ...]
    pairs: pl.DataFrame
    failures: pl.DataFrame
    missing: str
    notes: tuple[str, ...]


def read_pairs(predictions: object, units: pl.DataFrame, *, model: str | None) -> Compared:
    """Check given pairs, and keep each once.

    Parameters
    ----------
    predictions : frame
        ``model, instance_id, other_id, score`` (higher is more alike; null: the comparison failed).
    units : polars.DataFrame
        ``unit_id, cluster_id, identity`` of the dataset.
    model : str or None
        What to call the model if there is no prediction to say so.

    Raises
    ------
    UnknownNameError, TableError, JoinError
        A column that is missing, a similarity that is no finite number, a pair with two
        similarities, pairs of nobody in the dataset.
    """
    frame, unit_ids = _checked(to_polars(predictions)), units["unit_id"]
    known = pl.col("instance_id").is_in(unit_ids.implode()) & pl.col("other_id").is_in(
        unit_ids.implode()
    )
    ours = frame.filter(known)
    if frame.height and len(unit_ids) and not ours.height:
        raise JoinError(
            "no pair is of two units of the dataset",
            expected="instance ids such as " + _three(unit_ids),
            found=_three(frame["instance_id"]),
            where="predictions",
        )
    apart = ours.filter(pl.col("instance_id") != pl.col("other_id"))
    once = _once(apart)
    counts = (
        (frame.height - ours.height, "are of units that the dataset has not: left out"),
        (ours.height - apart.height, "compare a unit with itself: left out"),
        (apart.height - once.height, "repeat another, in the same or the other order: left out"),
    )
    notes = tuple(f"{n:,} of {frame.height:,} pairs {what}." for n, what in counts if n)
    sides = [
        once.select("model", unit_id=side, failed="failed") for side in ("unit_id", "other_id")
    ]
    failures = pl.concat(sides).group_by("model", "unit_id").agg(value=pl.col("failed").mean())
    models = tuple(sorted(frame["model"].unique())) or (model or _UNNAMED,)
    return Compared(models, _with_truth(once, units), failures, "in no pair", notes)


def _with_truth(pairs: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Add the cluster of the first unit, and whether both are one person."""
    others = units.select(other_id="unit_id", other_identity="identity")
    return (
        pairs.join(units, on="unit_id", how="left", maintain_order="left")
        .join(others, on="other_id", how="left", maintain_order="left")
        .select(
            "model",
            "unit_id",
            "cluster_id",
            "other_id",
            "similarity",
            genuine=pl.col("identity") == pl.col("other_identity"),
        )
    )


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    where = "predictions"
    for name in _NEEDED:
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=where)
    if not frame.schema["score"].is_numeric() and frame["score"].is_not_null().any():
        raise TableError(
            "a similarity is a number",
            expected="numbers; higher is more alike",
            found=str(frame.schema["score"]),
            where=place(where, column="score"),
        )
    text = pl.col("model", "instance_id", "other_id").cast(pl.String)
    frame = frame.select(text, pl.col("score").cast(pl.Float64))
    for bad, expected in (
        (pl.any_horizontal(pl.col("model", "instance_id", "other_id").is_null()), "two ids"),
        (pl.col("score").is_finite().not_(), "a finite similarity, or none"),
    ):
        rows = frame.select(bad.fill_null(value=False).arg_true()).to_series()
        if len(rows):
            raise TableError(
                f"{len(rows)} pair(s) cannot be used",
                expected=expected,
                found=repr(frame.row(int(rows[0]))),
                where=place(where, int(rows[0]) + 1),
            )
    return frame


def _once(pairs: pl.DataFrame) -> pl.DataFrame:
    """Keep every pair once, the smaller id first, in the order of the ids."""
    key = ["model", "unit_id", "other_id"]
    score = pl.col("score")
    once = (
        pairs.select(
            "model",
            unit_id=pl.min_horizontal("instance_id", "other_id"),
            other_id=pl.max_horizontal("instance_id", "other_id"),
            score=score,
        )
        .group_by(key)
        .agg(
            similarity=score.min(),
            spread=score.max() - score.min(),
            size=score.abs().max(),
            failed=score.is_null().all(),
        )
        .sort(key)
    )
    torn = once.filter(pl.col("spread") > _ALIKE * pl.max_horizontal("size", 1.0))
    if torn.height:
        row = torn.row(0, named=True)
        raise TableError(
            f"{torn.height} pair(s) have two similarities",
            expected="one similarity for two units, in whichever order they are named",
            found=f"{row['similarity']:g} and {row['similarity'] + row['spread']:g} for "
            f"{row['unit_id']!r} and {row['other_id']!r}",
            where="predictions",
        )
    return once.select(*key, "similarity", "failed")


def _three(ids: pl.Series) -> str:
    return ", ".join(repr(i) for i in ids.head(3))
