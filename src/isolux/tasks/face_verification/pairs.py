"""Pairs of units and how alike a model finds them, as a table gives them, each pair once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.roc import auc
from isolux.vocabulary.errors import JoinError, TableError, UnknownNameError, place
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.schema import to_polars

_NEEDED = ("model", "instance_id", "other_id", "score")
_UNNAMED = "model"
_MANY = 0.1
_ALIKE = 1e-6
"""Similarities of one pair that differ by less are rounding: a·b and b·a on a processor."""


IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PairList:
    """The pairs of one model, each once, by the places of their units in the order of the ids.

    Parameters
    ----------
    model : str
    first, second : [m] int32
        The smaller place and the larger; ``first`` rising, ``second`` rising within it.
    similarity : [m] float
        NaN: the comparison failed.
    genuine : [m] int8
        1: one person; 0: two; −1: an identity is unknown.
    """

    model: str
    first: IntArray
    second: IntArray
    similarity: npt.NDArray[np.float64]
    genuine: npt.NDArray[np.int8]

    def impostors(self) -> npt.NDArray[np.float64]:
        """Similarities of impostor pairs that did not fail."""
        kept: npt.NDArray[np.float64] = self.similarity[
            (self.genuine == 0) & ~np.isnan(self.similarity)
        ]
        return kept

    def count(self, kind: int) -> int:
        """Count the pairs of one kind: 1, 0 or −1, as in ``genuine``."""
        return int(np.count_nonzero(self.genuine == kind))


@dataclass(frozen=True, slots=True)
class Compared:
    """What models compared.

    Parameters
    ----------
    models : tuple of str
        Sorted.
    pairs : tuple of PairList
        One a model.
    failures : polars.DataFrame
        ``model, unit_id, value``: the share of a unit's comparisons that failed, for units that
        were compared.
    missing : str
        Why a unit has no row there.
    notes : tuple of str
    """

    models: tuple[str, ...]
    pairs: tuple[PairList, ...]
    failures: pl.DataFrame
    missing: str
    notes: tuple[str, ...]


def read_pairs(predictions: object, units: pl.DataFrame, *, model: str | None) -> Compared:
    """Check given pairs, and keep each once."""
    frame, unit_ids = _checked(to_polars(predictions)), units["unit_id"]
    names = tuple(sorted(frame["model"].unique()))
    at = frame.select(
        pl.col("instance_id", "other_id").cast(pl.Enum(unit_ids), strict=False).to_physical()
    )
    ours = at["instance_id"].is_not_null() & at["other_id"].is_not_null()
    if frame.height and len(unit_ids) and not ours.any():
        raise JoinError(
            "no pair is of two units of the dataset",
            expected="instance ids such as " + _three(unit_ids),
            found=_three(frame["instance_id"]),
            where="predictions",
        )
    apart = ours & (at["instance_id"] != at["other_id"])
    coded = frame.select("model", "genuine", similarity="score").hstack(at).filter(apart)
    identity = units["identity"].rank("dense").fill_null(0).to_numpy().astype(np.int64)
    lists, failures = [], []
    for name in names or (model or _UNNAMED,):
        one, failed = _once(coded.filter(pl.col("model") == name), name, identity, unit_ids)
        lists.append(one)
        failures.append(failed)
    kept = sum(len(one.first) for one in lists)
    counts = (
        (frame.height - int(ours.sum()), "are of units that the dataset has not: left out"),
        (int(ours.sum()) - coded.height, "compare a unit with itself: left out"),
        (coded.height - kept, "repeat another, in the same or the other order: left out"),
    )
    notes = tuple(
        told_by_share(f"{n:,} of {frame.height:,} pairs {what}.", n, frame.height)
        for n, what in counts
        if n
    )
    models = tuple(one.model for one in lists)
    return Compared(models, tuple(lists), pl.concat(failures), "in no pair", notes)


def told_by_share(text: str, n: int, total: int) -> str:
    """Return a note, or a caution where a tenth of the pairs or more are left out."""
    return Caution(text) if n >= _MANY * total else text


def _once(
    rows: pl.DataFrame, model: str, identity: npt.NDArray[np.int64], unit_ids: pl.Series
) -> tuple[PairList, pl.DataFrame]:
    """Keep every pair once, and count each unit's failures."""
    n = max(len(identity), 1)
    one, other = (rows[c].to_numpy().astype(np.int32) for c in ("instance_id", "other_id"))
    key = np.minimum(one, other).astype(np.int64) * n + np.maximum(one, other)
    score = rows["similarity"].to_numpy()  # null: NaN
    said = rows["genuine"].cast(pl.Int8).fill_null(-1).to_numpy()
    if (key[1:] <= key[:-1]).any():
        order = np.argsort(key, kind="stable")
        key, score, said = key[order], score[order], said[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if len(starts) < len(key):
        low, high = np.fmin.reduceat(score, starts), np.fmax.reduceat(score, starts)
        every = np.where(said < 0, np.int8(2), said)  # who does not say it contradicts nothing
        least = np.minimum.reduceat(every, starts)
        key, score, said = key[starts], low, np.maximum.reduceat(said, starts)
        _refuse_torn(key, low, high, unit_ids)
        _refuse_both(key, least < said, unit_ids)
    first, second = (key // n).astype(np.int32), (key % n).astype(np.int32)
    same = (identity[first] == identity[second]).astype(np.int8)
    same[(identity[first] == 0) | (identity[second] == 0)] = -1
    _refuse_other_people(said, same, (first, second), unit_ids)
    same = np.where(said >= 0, said, same).astype(np.int8)
    failed = np.isnan(score)
    sides = np.concatenate([first, second])
    compared = np.bincount(sides, minlength=n)
    lost = np.bincount(sides[np.tile(failed, 2)], minlength=n)
    units = np.flatnonzero(compared)
    rate = pl.select(
        model=pl.repeat(model, len(units), dtype=pl.String),
        unit_id=unit_ids.gather(units),
        value=pl.Series(lost[units] / compared[units], dtype=pl.Float64),
    )
    return PairList(model, first, second, score, same), rate


def _refuse_other_people(
    said: npt.NDArray[np.int8],
    known: npt.NDArray[np.int8],
    places: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]],
    unit_ids: pl.Series,
) -> None:
    """Refuse pairs that are called genuine, or impostors, against what is known of their people."""
    torn = np.flatnonzero((said >= 0) & (known >= 0) & (said != known))
    if len(torn):
        at = int(torn[0])
        first, second = (unit_ids[int(place[at])] for place in places)
        kinds = [word for kind, word in ((1, "genuine"), (0, "impostors")) if kind in said[torn]]
        raise TableError(
            f"{len(torn):,} of {len(said):,} pairs are called {' or '.join(kinds)} against the"
            " identities of their people",
            expected="genuine where both are one person, and only there",
            found=f"{first!r} and {second!r}",
            where="predictions",
            hint="name the column of persons with --option identity=COLUMN, or leave one of the two"
            " out",
        )


def _refuse_torn(
    key: npt.NDArray[np.int64],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    unit_ids: pl.Series,
) -> None:
    size = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1.0)
    torn = np.flatnonzero(high - low > _ALIKE * size)
    if len(torn):
        at = int(torn[0])
        first, second = (unit_ids[int(p)] for p in divmod(int(key[at]), len(unit_ids)))
        raise TableError(
            f"{len(torn)} pair(s) have two similarities",
            expected="one similarity for two units, in whichever order they are named",
            found=f"{low[at]:g} and {high[at]:g} for {first!r} and {second!r}",
            where="predictions",
        )


def _refuse_both(
    key: npt.NDArray[np.int64], torn: npt.NDArray[np.bool_], unit_ids: pl.Series
) -> None:
    if torn.any():
        first, second = (unit_ids[int(p)] for p in divmod(int(key[np.argmax(torn)]), len(unit_ids)))
        raise TableError(
            f"{int(torn.sum()):,} pair(s) are called both genuine and impostors",
            expected="one answer for two units, in whichever order they are named",
            found=f"{first!r} and {second!r}",
            where="predictions",
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
    told = "genuine" in frame.columns
    genuine = pl.col("genuine") if told else pl.lit(None)
    frame = frame.select(text, pl.col("score").cast(pl.Float64), genuine=genuine.cast(pl.Boolean))
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


def _three(ids: pl.Series) -> str:
    return ", ".join(repr(i) for i in ids.head(3))


_LEAST = 30  # pairs of either kind below which chance may explain anything
_MOST = 200_000  # impostor pairs looked at
_CHANCE = 3.0


def agreement_of_pairs(pairs: PairList, *, turned: bool) -> list[Caution]:
    """Caution where genuine pairs are no more alike than impostor pairs.

    Under chance the area under the curve has mean 1/2 and variance (g + i + 1) / (12 g i) for g
    genuine and i impostor pairs that are independent (Mann and Whitney 1947, "On a test of whether
    one of two random variables is stochastically larger than the other", Annals of Mathematical
    Statistics 18, section 3).
    """
    known = (pairs.genuine >= 0) & ~np.isnan(pairs.similarity)
    similarity, genuine = pairs.similarity[known], pairs.genuine[known] == 1
    impostors = np.flatnonzero(~genuine)
    step = -(-len(impostors) // _MOST) or 1
    kept = np.concatenate([np.flatnonzero(genuine), impostors[::step]])
    similarity, genuine = similarity[kept], genuine[kept]
    g, i = int(genuine.sum()), int((~genuine).sum())
    if min(g, i) < _LEAST:
        return []
    area = float(auc(similarity, genuine, np.ones(len(genuine))))
    z = (area - 0.5) / np.sqrt((g + i + 1) / (12.0 * g * i))
    if z < -_CHANCE:
        ask = (
            "Is larger more alike? Leave --smaller alike out, or is the truth turned round?"
            if turned
            else "Is smaller more alike? --smaller alike (smaller='alike')."
        )
        return [
            Caution(
                f"Two people's pairs are more alike than one person's by the scores of"
                f" {pairs.model!r} (area under the curve {area:.2f}). {ask}"
            )
        ]
    if z < _CHANCE:
        return [
            Caution(
                f"The scores of {pairs.model!r} tell one person's pairs from two people's no better"
                f" than chance (area under the curve {area:.2f}). Are they of these pairs?"
            )
        ]
    return []
