"""Pairs of embeddings, and the evidence of pairs, held small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.tasks._embeddings.vectors import NO_PREDICTION, Embedded, read_embeddings
from isolux.tasks.face_verification.pairs import Compared, PairList
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

_PART = 1 << 20
"""Pairs made into lists at once, and those of one unit more."""


def pairs_table(
    lists: Sequence[PairList],
    units: pl.DataFrame,
    far: float,
    thresholds: Sequence[float | None],
    draws: Sequence[npt.NDArray[np.uint32]] = (),
    most: int | None = None,
) -> pl.DataFrame:
    """Lay out the evidence ``pairs``."""
    ids = pl.Enum(units["unit_id"])
    empty = np.zeros(0, dtype=np.uint32)
    parts = [
        _of_model(one, units, ids, draw, most is not None).with_columns(
            far=pl.lit(far), threshold=pl.lit(threshold, dtype=pl.Float64)
        )
        for one, threshold, draw in zip(
            lists, thresholds, draws or [empty] * len(lists), strict=True
        )
    ]
    table = pl.concat(parts)
    return table if most is None else table.with_columns(most=pl.lit(most, dtype=pl.Int64))


def _of_model(
    one: PairList,
    units: pl.DataFrame,
    ids: pl.Enum,
    draw: npt.NDArray[np.uint32],
    drawn: bool,
) -> pl.DataFrame:
    # A part at a time, cut where the first unit changes: making lists takes as much again.
    cuts = np.searchsorted(one.first, one.first[_PART::_PART])
    starts = np.unique(np.concatenate([[0], cuts])).tolist()
    parts = []
    for start, stop in zip(starts, [*starts[1:], len(one.first)], strict=True):
        part = slice(start, stop)
        genuine, similarity = pl.Series(one.genuine[part]), pl.Series(one.similarity[part])
        columns = {
            "place": pl.Series(one.first[part]).set_sorted(),
            "other_id": pl.Series(one.second[part]).cat.to(ids),
            "similarity": similarity.fill_nan(None),
            "genuine": pl.select(pl.when(genuine >= 0).then(genuine == 1)).to_series(),
        }
        if drawn:
            columns["draw"] = pl.Series(draw[part], dtype=pl.UInt32)
        parts.append(pl.DataFrame(columns).group_by("place", maintain_order=True).agg(pl.all()))
    held = pl.concat(parts)
    place = held["place"]
    return held.select(
        pl.lit(one.model).alias("model"),
        units["unit_id"].gather(place).alias("unit_id"),
        units["cluster_id"].gather(place).alias("cluster_id"),
        pl.exclude("place"),
    )


LevelArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HardRule:
    """Which impostor pairs are compared: a bit in common, at most ``width`` levels apart.

    ``bits [n_units]`` is 0, and ``level [n_units]`` far from any, where unknown.
    """

    bits: npt.NDArray[np.uint64]
    level: LevelArray
    width: int


def hard_rule(
    dataset: Dataset, unit_ids: pl.Series, same: str | None, near: str | None, width: int
) -> HardRule:
    """Lay out what two units must share, by unit."""
    bits = np.ones(len(unit_ids), dtype=np.uint64)
    level = np.zeros(len(unit_ids), dtype=np.int64)
    if not len(unit_ids):
        return HardRule(bits, level, width)
    if same is not None:
        rows = _of_units(dataset, unit_ids, same).drop_nulls("value")
        names = rows["value"].unique().sort()
        if len(names) > 64:  # a bit each of one word
            raise SpecError(
                f"{same!r} has too many values to share",
                expected="at most 64",
                found=f"{len(names)}",
            )
        number = {name: i for i, name in enumerate(names)}
        code = rows["value"].replace_strict(number, return_dtype=pl.UInt64).to_numpy()
        bits[:] = 0
        np.bitwise_or.at(bits, rows["unit"].to_numpy(), np.uint64(1) << code.astype(np.uint64))
    if near is not None:
        level = _levels(_of_units(dataset, unit_ids, near), len(unit_ids), near, width)
    return HardRule(bits, level, width)


def _levels(rows: pl.DataFrame, n_units: int, near: str, width: int) -> LevelArray:
    known = rows.select("unit", level="number").drop_nulls().unique()
    whole = known["level"].round() == known["level"]
    if known.is_empty() or not whole.all() or known["unit"].is_duplicated().any():
        raise SpecError(
            f"the levels of {near!r} cannot be told apart",
            expected="one whole number (column `number` of the attributes) for each unit",
            found="none" if known.is_empty() else "fractions, or two numbers of one unit",
        )
    # Unknown levels lie apart from all others, and from one another.
    level = (np.arange(n_units, dtype=np.int64) + 1) * (width + 1) + 2**40
    level[known["unit"].to_numpy()] = known["level"].cast(pl.Int64).to_numpy()
    return level


def _of_units(dataset: Dataset, unit_ids: pl.Series, attribute: str) -> pl.DataFrame:
    """Rows of an attribute with the place of their unit: ``unit, value, number``."""
    rows = dataset.values_of(attribute)
    rows = rows if "number" in rows.columns else rows.with_columns(number=pl.lit(None, pl.Float64))
    owners = {"instance": "instance_id", "image": "image_id", "subject": "subject_id"}
    parts = []
    places = pl.DataFrame({"instance_id": unit_ids}).with_row_index("unit")
    units = places.join(dataset.instances, on="instance_id", how="left", maintain_order="left")
    for kind, column in owners.items():
        if column in units.columns:
            of_kind = rows.filter(pl.col("unit_kind") == kind).select("unit_id", "value", "number")
            met = units.select("unit", unit_id=column).join(of_kind, on="unit_id")
            parts.append(met.select("unit", "value", "number"))
    return pl.concat(parts)


def compare(embedded: Embedded, units: pl.DataFrame, rule: HardRule) -> PairList:
    """List the pairs of one model's embeddings with their similarities."""
    from isolux.tasks._embeddings.kernels import inner_lists
    from isolux.tasks.face_verification.kernels import count_pairs, list_pairs

    known = units["identity"].is_not_null().to_numpy()
    # Of whom no template could be made is compared too, and the comparison fails.
    there = (embedded.reason != NO_PREDICTION).fill_null(value=True).to_numpy()
    usable = np.flatnonzero(there & known)
    who = units["identity"].gather(usable).rank("dense").cast(pl.Int64).to_numpy()
    of_usable = (who, rule.bits[usable], rule.level[usable], rule.width)
    first, second, genuine = list_pairs(*of_usable, sum(count_pairs(*of_usable)))
    failed = embedded.row[usable] < 0
    vectors = np.zeros((len(usable), embedded.width), dtype=embedded.vectors.dtype)
    vectors[~failed] = embedded.vectors[embedded.row[usable[~failed]]]
    starts = np.searchsorted(first, np.arange(len(usable) + 1, dtype=np.int32))
    similarity = inner_lists(vectors, starts, second)
    if failed.any():
        similarity[failed[first] | failed[second]] = np.nan
    at = usable.astype(np.int32)
    first[:] = at[first]  # from places among the usable to places among all
    second[:] = at[second]
    return PairList(embedded.model, first, second, similarity, genuine)


def pairs_of_embeddings(
    frame: pl.DataFrame, units: pl.DataFrame, rule: HardRule, model: str | None
) -> Compared:
    """Compare every model's embeddings, and say of whom no template could be made."""
    found, notes = read_embeddings(frame, units["unit_id"], model=model)
    failures, more = [], list(notes)
    for one in found:
        there = (one.reason != NO_PREDICTION).fill_null(value=True)
        failed = one.reason.is_not_null()
        rows = units.select("unit_id", model=pl.lit(one.model), value=failed.cast(pl.Float64))
        failures.append(rows.filter(there))
        n, lost = int(there.sum()), int((failed & there).sum())
        if lost:
            text = (
                f"No template of {one.model!r} could be made of {lost:,} of {n:,} images: rates"
                " of matches are about the others alone; the generalised rates count them."
            )
            more.append(Caution(text) if n >= 20 and lost >= 0.1 * n else text)
    pairs = tuple(compare(one, units, rule) for one in found)
    models = tuple(one.model for one in found)
    return Compared(models, pairs, pl.concat(failures), NO_PREDICTION, tuple(more))
