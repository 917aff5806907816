"""Pairs of units and how alike a model finds them, as a table gives them, each pair once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._threshold import area_beyond_chance
from isolux.vocabulary.errors import TableError, place
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.schema import to_polars

_NEEDED = ("model", "instance_id", "other_id", "score")
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
    at = frame.select(
        pl.col("instance_id", "other_id").cast(pl.Enum(unit_ids), strict=False).to_physical()
    )
    ours = at["instance_id"].is_not_null() & at["other_id"].is_not_null()
    refuse_no_match(
        "no pair is of two units of the dataset",
        frame["instance_id"],
        unit_ids,
        n_matched=int(ours.sum()),
    )
    apart = ours & (at["instance_id"] != at["other_id"])
    coded = frame.select("model", "genuine", similarity="score").hstack(at).filter(apart)
    identity = units["identity"].rank("dense").fill_null(0).to_numpy().astype(np.int64)
    models = tuple(sorted(frame["model"].unique())) or (model or "model",)
    once = [_once(coded.filter(pl.col("model") == m), m, identity, unit_ids) for m in models]
    kept = sum(len(one.first) for one, _ in once)
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
    lists, failures = zip(*once, strict=True)
    return Compared(models, lists, pl.concat(failures), "in no pair", notes)


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
        size = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1.0)
        _refuse_pairs(
            high - low > _ALIKE * size,
            (key, unit_ids),
            "{n} pair(s) have two similarities",
            "one similarity for two units, in whichever order they are named",
            lambda at: f"{low[at]:g} and {high[at]:g} for ",
        )
        _refuse_pairs(
            least < said,
            (key, unit_ids),
            "{n:,} pair(s) are called both genuine and impostors",
            "one answer for two units, in whichever order they are named",
        )
    first, second = (key // n).astype(np.int32), (key % n).astype(np.int32)
    same = (identity[first] == identity[second]).astype(np.int8)
    same[(identity[first] == 0) | (identity[second] == 0)] = -1
    torn = (said >= 0) & (same >= 0) & (said != same)
    kinds = [word for kind, word in ((1, "genuine"), (0, "impostors")) if kind in said[torn]]
    _refuse_pairs(
        torn,
        (key, unit_ids),
        f"{{n:,}} of {len(said):,} pairs are called {' or '.join(kinds)} against the identities of"
        " their people",
        "genuine where both are one person, and only there",
        hint="name the column of persons with --option identity=COLUMN, or leave one of the two"
        " out",
    )
    same = np.where(said >= 0, said, same).astype(np.int8)
    return PairList(model, first, second, score, same), _rates(
        model, (first, second), np.isnan(score), unit_ids
    )


def _rates(
    model: str, places: tuple[IntArray, IntArray], failed: npt.NDArray[np.bool_], ids: pl.Series
) -> pl.DataFrame:
    """Find the share of each unit's comparisons that failed."""
    sides = np.concatenate(places)
    compared = np.bincount(sides, minlength=len(ids))
    lost = np.bincount(sides[np.tile(failed, 2)], minlength=len(ids))
    units = np.flatnonzero(compared)
    return pl.select(
        model=pl.repeat(model, len(units), dtype=pl.String),
        unit_id=ids.gather(units),
        value=pl.Series(lost[units] / compared[units], dtype=pl.Float64),
    )


def _refuse_pairs(
    is_wrong: npt.NDArray[np.bool_],
    places: tuple[npt.NDArray[np.int64], pl.Series],
    problem: str,
    expected: str,
    found: Callable[[int], str] = lambda _: "",
    hint: str | None = None,
) -> None:
    """Refuse pairs that contradict themselves or the dataset, showing the first."""
    if is_wrong.any():
        at, (key, ids) = int(np.argmax(is_wrong)), places
        first, second = (ids[int(place)] for place in divmod(int(key[at]), len(ids)))
        raise TableError(
            problem.format(n=int(is_wrong.sum())),
            expected=expected,
            found=f"{found(at)}{first!r} and {second!r}",
            where="predictions",
            hint=hint,
        )


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    where = "predictions"
    require_columns(frame, _NEEDED)
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
    if min(int(genuine.sum()), int((~genuine).sum())) < _LEAST:
        return []
    area, noise = area_beyond_chance(similarity, genuine)
    z, curve = (area - 0.5) / noise, f"(area under the curve {area:.2f})"
    if z >= _CHANCE:
        return []
    text = (
        f"The scores of {pairs.model!r} tell one person's pairs from two people's no better than"
        f" chance {curve}. Are they of these pairs?"
    )
    if z < -_CHANCE:
        ask = (
            "Is larger more alike? Leave --smaller alike out, or is the truth turned round?"
            if turned
            else "Is smaller more alike? --smaller alike (smaller='alike')."
        )
        text = (
            "Two people's pairs are more alike than one person's by the scores of"
            f" {pairs.model!r} {curve}. {ask}"
        )
    return [Caution(text)]
