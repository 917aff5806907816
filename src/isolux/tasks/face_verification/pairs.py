"""Pairs of units with similarities, read from a table, each pair once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import TableError, format_location
from isolux.core.notes import Caution
from isolux.core.schema import to_polars
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._threshold import auc_with_null_se

_REQUIRED_COLUMNS = ("model", "instance_id", "other_id", "score")
_CAUTION_SHARE = 0.1
_SIMILARITY_TOLERANCE = 1e-6
"""Similarities of one pair that differ by less are rounding: a·b and b·a on a processor."""


IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PairList:
    """The pairs of one model, each once, by the indices of their units in the order of ids.

    Parameters
    ----------
    model : str
    first, second : [m] int32
        The smaller index and the larger; ``first`` rising, ``second`` rising within it.
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

    def impostor_similarities(self) -> npt.NDArray[np.float64]:
        """Similarities of impostor pairs that did not fail."""
        similarities: npt.NDArray[np.float64] = self.similarity[
            (self.genuine == 0) & ~np.isnan(self.similarity)
        ]
        return similarities

    def count_pairs(self, genuine_code: int) -> int:
        """Count the pairs of one kind: 1, 0 or −1, as in ``genuine``."""
        return int(np.count_nonzero(self.genuine == genuine_code))


@dataclass(frozen=True, slots=True)
class ComparedPairs:
    """The comparisons of all models.

    Parameters
    ----------
    models : tuple of str
        Sorted.
    pairs : tuple of PairList
        One a model.
    failures : polars.DataFrame
        ``model, unit_id, value``: the share of a unit's comparisons that failed, for units that
        were compared.
    missing_reason : str
        Why a unit has no row there.
    notes : tuple of str
    """

    models: tuple[str, ...]
    pairs: tuple[PairList, ...]
    failures: pl.DataFrame
    missing_reason: str
    notes: tuple[str, ...]


def read_pairs(predictions: object, units: pl.DataFrame, *, model: str | None) -> ComparedPairs:
    """Check a table of pairs, and keep each pair once."""
    frame, unit_ids = _check_pairs_table(to_polars(predictions)), units["unit_id"]
    unit_index = frame.select(
        pl.col("instance_id", "other_id").cast(pl.Enum(unit_ids), strict=False).to_physical()
    )
    is_matched = unit_index["instance_id"].is_not_null() & unit_index["other_id"].is_not_null()
    refuse_no_match(
        "no pair is of two units of the dataset",
        frame["instance_id"],
        unit_ids,
        n_matched=int(is_matched.sum()),
    )
    # An image compared with itself is always accepted, and would raise the true accept rate.
    has_two_units = is_matched & (unit_index["instance_id"] != unit_index["other_id"])
    coded_rows = (
        frame.select("model", "genuine", similarity="score")
        .hstack(unit_index)
        .filter(has_two_units)
    )
    # Code 0 is an unknown identity: ranks start at 1.
    identity = units["identity"].rank("dense").fill_null(0).to_numpy().astype(np.int64)
    models = tuple(sorted(frame["model"].unique())) or (model or "model",)
    unique_lists = [
        _deduplicate_pairs(coded_rows.filter(model=m), m, identity, unit_ids) for m in models
    ]
    n_kept = sum(len(pair_list.first) for pair_list, _ in unique_lists)
    counts = (
        (frame.height - int(is_matched.sum()), "are of units that the dataset has not: left out"),
        (int(is_matched.sum()) - coded_rows.height, "compare a unit with itself: left out"),
        (coded_rows.height - n_kept, "repeat another, in the same or the other order: left out"),
    )
    notes = tuple(
        note_excluded_pairs(f"{n:,} of {frame.height:,} pairs {problem}.", n, frame.height)
        for n, problem in counts
        if n
    )
    lists, failures = zip(*unique_lists, strict=True)
    return ComparedPairs(models, lists, pl.concat(failures), "in no pair", notes)


def note_excluded_pairs(text: str, n: int, total: int) -> str:
    """Return a note, or a caution where at least a tenth of the pairs are excluded."""
    return Caution(text) if n >= _CAUTION_SHARE * total else text


def _deduplicate_pairs(
    rows: pl.DataFrame, model: str, identity: npt.NDArray[np.int64], unit_ids: pl.Series
) -> tuple[PairList, pl.DataFrame]:
    """Keep every pair once, whichever unit is named first, and count each unit's failures."""
    n = max(len(identity), 1)
    unit_a, unit_b = (rows[c].to_numpy().astype(np.int32) for c in ("instance_id", "other_id"))
    # One number for an unordered pair: (a, b) and (b, a) are the same comparison.
    key = np.minimum(unit_a, unit_b).astype(np.int64) * n + np.maximum(unit_a, unit_b)
    score = rows["similarity"].to_numpy()  # null: NaN
    declared_code = rows["genuine"].cast(pl.Int8).fill_null(-1).to_numpy()
    # Files are usually sorted already, and sorting millions of pairs takes time.
    if (key[1:] <= key[:-1]).any():
        order = np.argsort(key, kind="stable")
        key, score, declared_code = key[order], score[order], declared_code[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if len(starts) < len(key):
        # fmin and fmax skip NaN: a pair that failed once and was compared once has that similarity.
        low, high = np.fmin.reduceat(score, starts), np.fmax.reduceat(score, starts)
        declared_or_2 = np.where(
            declared_code < 0, np.int8(2), declared_code
        )  # undeclared (−1) counts as 2, so that it contradicts no declared pair
        min_declared = np.minimum.reduceat(declared_or_2, starts)
        key, score, declared_code = key[starts], low, np.maximum.reduceat(declared_code, starts)
        # Relative for large scores, absolute for those near 0.
        size = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1.0)
        _refuse_pairs(
            high - low > _SIMILARITY_TOLERANCE * size,
            (key, unit_ids),
            "{n} pair(s) have two similarities",
            "one similarity for two units, in whichever order they are named",
            lambda index: f"{low[index]:g} and {high[index]:g} for ",
            hint="keep the row that holds, or name the model of each row in a column model",
        )
        _refuse_pairs(
            min_declared < declared_code,
            (key, unit_ids),
            "{n:,} pair(s) are called both genuine and impostors",
            "one answer for two units, in whichever order they are named",
        )
    first, second = (key // n).astype(np.int32), (key % n).astype(np.int32)
    is_genuine = (identity[first] == identity[second]).astype(np.int8)
    is_genuine[(identity[first] == 0) | (identity[second] == 0)] = -1
    # One of the two is wrong, and nothing in the data says which.
    is_contradiction = (declared_code >= 0) & (is_genuine >= 0) & (declared_code != is_genuine)
    declared_names = [
        word
        for code, word in ((1, "genuine"), (0, "impostors"))
        if code in declared_code[is_contradiction]
    ]
    _refuse_pairs(
        is_contradiction,
        (key, unit_ids),
        f"{{n:,}} of {len(declared_code):,} pairs are called {' or '.join(declared_names)} against"
        " the identities of their people",
        "genuine where both are one person, and only there",
        hint="name the column of persons with --option identity=COLUMN, or leave one of the two"
        " out",
    )
    # The declaration fills in for unknown identities.
    is_genuine = np.where(declared_code >= 0, declared_code, is_genuine).astype(np.int8)
    return PairList(model, first, second, score, is_genuine), _failure_rates(
        model, (first, second), np.isnan(score), unit_ids
    )


def _failure_rates(
    model: str,
    pair_units: tuple[IntArray, IntArray],
    is_failed: npt.NDArray[np.bool_],
    ids: pl.Series,
) -> pl.DataFrame:
    """Compute the share of each unit's comparisons that failed."""
    unit_index = np.concatenate(pair_units)
    n_compared = np.bincount(unit_index, minlength=len(ids))
    # tile: each pair is counted for both of its units.
    n_failed = np.bincount(unit_index[np.tile(is_failed, 2)], minlength=len(ids))
    units = np.flatnonzero(n_compared)
    return pl.select(
        model=pl.repeat(model, len(units), dtype=pl.String),
        unit_id=ids.gather(units),
        value=pl.Series(n_failed[units] / n_compared[units], dtype=pl.Float64),
    )


def _refuse_pairs(
    is_wrong: npt.NDArray[np.bool_],
    keys_and_ids: tuple[npt.NDArray[np.int64], pl.Series],
    problem: str,
    expected: str,
    describe: Callable[[int], str] = lambda _: "",
    hint: str | None = None,
) -> None:
    """Refuse pairs that contradict each other or the dataset, naming the first."""
    if is_wrong.any():
        index, (key, ids) = int(np.argmax(is_wrong)), keys_and_ids
        first, second = (ids[int(position)] for position in divmod(int(key[index]), len(ids)))
        raise TableError(
            problem.format(n=int(is_wrong.sum())),
            expected=expected,
            found=f"{describe(index)}{first!r} and {second!r}",
            where="predictions",
            hint=hint,
        )


def _check_pairs_table(frame: pl.DataFrame) -> pl.DataFrame:
    source = "predictions"
    require_columns(frame, _REQUIRED_COLUMNS)
    if not frame.schema["score"].is_numeric() and frame["score"].is_not_null().any():
        raise TableError(
            "a similarity is a number",
            expected="numbers; higher is more alike",
            found=str(frame.schema["score"]),
            where=format_location(source, column="score"),
        )
    text = pl.col("model", "instance_id", "other_id").cast(pl.String)
    has_genuine = "genuine" in frame.columns
    genuine = pl.col("genuine") if has_genuine else pl.lit(None)
    frame = frame.select(text, pl.col("score").cast(pl.Float64), genuine=genuine.cast(pl.Boolean))
    for is_invalid, expected in (
        (pl.any_horizontal(pl.col("model", "instance_id", "other_id").is_null()), "two ids"),
        # An infinite similarity passes any threshold; an empty one is a failed comparison.
        (pl.col("score").is_finite().not_(), "a finite similarity, or none"),
    ):
        rows = frame.select(is_invalid.fill_null(value=False).arg_true()).to_series()
        if len(rows):
            raise TableError(
                f"{len(rows)} pair(s) cannot be used",
                expected=expected,
                found=repr(frame.row(int(rows[0]))),
                where=format_location(source, int(rows[0]) + 1),
            )
    return frame


_MIN_PAIRS = 30  # genuine and impostor pairs each, below which the check is not made
_MAX_IMPOSTORS = 200_000  # impostor pairs that the check uses, evenly spaced
_MIN_Z = 3.0


def check_pair_agreement(pairs: PairList, *, is_distance: bool) -> list[Caution]:
    """Caution where genuine pairs are no more similar than impostor pairs.

    If scores are unrelated to identity, the area under the curve has mean 1/2 and variance
    (g + i + 1) / (12 g i) for g genuine and i impostor pairs that are independent (Mann and
    Whitney 1947, "On a test of whether one of two random variables is stochastically larger than
    the other", Annals of Mathematical Statistics 18, section 3).
    """
    is_known = (pairs.genuine >= 0) & ~np.isnan(pairs.similarity)
    similarity, genuine = pairs.similarity[is_known], pairs.genuine[is_known] == 1
    impostors = np.flatnonzero(~genuine)
    # Impostor pairs grow with the square of the people; the check needs no more than a sample.
    step = -(-len(impostors) // _MAX_IMPOSTORS) or 1
    sample = np.concatenate([np.flatnonzero(genuine), impostors[::step]])
    similarity, genuine = similarity[sample], genuine[sample]
    if min(int(genuine.sum()), int((~genuine).sum())) < _MIN_PAIRS:
        return []
    # Pairs share people, so this standard error is too small; its order of magnitude is enough
    # here.
    area, area_sd = auc_with_null_se(similarity, genuine)
    z, area_text = (area - 0.5) / area_sd, f"(area under the curve {area:.2f})"
    if z >= _MIN_Z:
        return []
    text = (
        f"The scores of {pairs.model!r} tell one person's pairs from two people's no better than"
        f" chance {area_text}. Are they of these pairs?"
    )
    if z < -_MIN_Z:
        ask = (
            "Is larger more alike? Leave --lower-score-means same out, or is the truth reversed?"
            if is_distance
            else "Is smaller more alike? --lower-score-means same (lower_score_means='same')."
        )
        text = (
            "Two people's pairs are more alike than one person's by the scores of"
            f" {pairs.model!r} {area_text}. {ask}"
        )
    return [Caution(text)]
