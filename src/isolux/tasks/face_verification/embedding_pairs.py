"""Pairs of embeddings, and the evidence of pairs in compact form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.tasks._embeddings.vectors import NO_PREDICTION, ModelEmbeddings, read_embeddings
from isolux.tasks.face_verification.pairs import ComparedPairs, PairList

_BYTES_PER_PAIR = 28
"""Measured at the peak, of 5 GB with 20,000 embeddings: two ids, similarity, and their lists."""
_CHUNK_PAIRS = 1 << 20
"""Pairs that are aggregated to lists at once, rounded up to whole units."""


def build_pairs_table(
    lists: Sequence[PairList],
    units: pl.DataFrame,
    false_accept_rate: float,
    thresholds: Sequence[float | None],
    pair_orders: Sequence[npt.NDArray[np.uint32]] = (),
    max_per_group: int | None = None,
) -> pl.DataFrame:
    """Lay out the evidence ``pairs``."""
    # Codes instead of texts: millions of pairs repeat the same few ids.
    ids = pl.Enum(units["unit_id"])
    empty = np.zeros(0, dtype=np.uint32)
    tables = [
        _model_pairs_table(
            pair_list, units, ids, pair_order, max_per_group is not None
        ).with_columns(far=pl.lit(false_accept_rate), threshold=pl.lit(threshold, dtype=pl.Float64))
        for pair_list, threshold, pair_order in zip(
            lists, thresholds, pair_orders or [empty] * len(lists), strict=True
        )
    ]
    table = pl.concat(tables)
    return (
        table
        if max_per_group is None
        else table.with_columns(most=pl.lit(max_per_group, dtype=pl.Int64))
    )


def _model_pairs_table(
    pair_list: PairList,
    units: pl.DataFrame,
    ids: pl.Enum,
    pair_order: npt.NDArray[np.uint32],
    has_draws: bool,
) -> pl.DataFrame:
    # In chunks that end where the first unit changes: building lists doubles the memory.
    cuts = np.searchsorted(pair_list.first, pair_list.first[_CHUNK_PAIRS::_CHUNK_PAIRS])
    starts = np.unique(np.concatenate([[0], cuts])).tolist()
    chunk_tables = []
    for start, stop in zip(starts, [*starts[1:], len(pair_list.first)], strict=True):
        chunk = slice(start, stop)
        genuine = pl.Series(pair_list.genuine[chunk])
        similarity = pl.Series(pair_list.similarity[chunk])
        columns = {
            "place": pl.Series(pair_list.first[chunk]).set_sorted(),
            "other_id": pl.Series(pair_list.second[chunk]).cat.to(ids),
            # A failed comparison is null, so that statistics can distinguish it from a low
            # similarity.
            "similarity": similarity.fill_nan(None),
            "genuine": pl.select(pl.when(genuine >= 0).then(genuine == 1)).to_series(),
        }
        if has_draws:
            columns["draw"] = pl.Series(pair_order[chunk], dtype=pl.UInt32)
        chunk_tables.append(
            pl.DataFrame(columns).group_by("place", maintain_order=True).agg(pl.all())
        )
    unit_lists = pl.concat(chunk_tables)
    unit_index = unit_lists["place"]
    return unit_lists.select(
        pl.lit(pair_list.model).alias("model"),
        units["unit_id"].gather(unit_index).alias("unit_id"),
        units["cluster_id"].gather(unit_index).alias("cluster_id"),
        pl.exclude("place"),
    )


LevelArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HardImpostorRule:
    """Which impostor pairs are compared: a bit in common, at most ``width`` levels apart.

    ``bits [n_units]`` is 0, and ``level [n_units]`` far from any, where unknown.
    """

    bits: npt.NDArray[np.uint64]
    level: LevelArray
    width: int

    @property
    def takes_all(self) -> bool:
        """Whether every two units are compared."""
        return bool((self.bits == 1).all() and (self.level == 0).all())


def build_hard_rule(
    dataset: Dataset,
    unit_ids: pl.Series,
    shared_attribute: str | None,
    level_attribute: str | None,
    width: int,
) -> HardImpostorRule:
    """Encode what two units must share to be compared: value bits and levels, by unit."""
    bits = np.ones(len(unit_ids), dtype=np.uint64)
    level = np.zeros(len(unit_ids), dtype=np.int64)
    if not len(unit_ids):
        return HardImpostorRule(bits, level, width)
    if shared_attribute is not None:
        rows = _attribute_rows(dataset, unit_ids, shared_attribute).drop_nulls("value")
        names = rows["value"].unique().sort()
        if len(names) > 64:  # a bit each of one word
            raise SpecError(
                f"{shared_attribute!r} has too many values to share",
                expected="at most 64",
                found=f"{len(names)}",
            )
        bit_by_value = {name: i for i, name in enumerate(names)}
        code = rows["value"].replace_strict(bit_by_value, return_dtype=pl.UInt64).to_numpy()
        # Units of an unknown value share no bit with anyone, so they form no impostor pair.
        bits[:] = 0
        np.bitwise_or.at(bits, rows["unit"].to_numpy(), np.uint64(1) << code.astype(np.uint64))
    if level_attribute is not None:
        level = _unit_levels(
            _attribute_rows(dataset, unit_ids, level_attribute),
            len(unit_ids),
            level_attribute,
            width,
        )
    return HardImpostorRule(bits, level, width)


def _unit_levels(rows: pl.DataFrame, n_units: int, level_attribute: str, width: int) -> LevelArray:
    known_levels = rows.select("unit", level="number").drop_nulls().unique()
    is_integer = known_levels["level"].round() == known_levels["level"]
    if (
        known_levels.is_empty()
        # Levels are steps of a scale (Monk, Fitzpatrick); "one level apart" has no meaning for
        # fractions.
        or not is_integer.all()
        or known_levels["unit"].is_duplicated().any()
    ):
        raise SpecError(
            f"the levels of {level_attribute!r} cannot be told apart",
            expected="one whole number (column `number` of the attributes) for each unit",
            found="none" if known_levels.is_empty() else "fractions, or two numbers of one unit",
        )
    # Unknown levels get values further than ``width`` from any other, so that they never match.
    level = (np.arange(n_units, dtype=np.int64) + 1) * (width + 1) + 2**40
    level[known_levels["unit"].to_numpy()] = known_levels["level"].cast(pl.Int64).to_numpy()
    return level


def _attribute_rows(dataset: Dataset, unit_ids: pl.Series, attribute: str) -> pl.DataFrame:
    """Read an attribute's rows with the index of their unit: ``unit, value, number``."""
    rows = dataset.values_of(attribute)
    rows = rows if "number" in rows.columns else rows.with_columns(number=pl.lit(None, pl.Float64))
    id_column_by_kind = {"instance": "instance_id", "image": "image_id", "subject": "subject_id"}
    tables = []
    unit_index = pl.DataFrame({"instance_id": unit_ids}).with_row_index("unit")
    units = unit_index.join(dataset.instances, on="instance_id", how="left", maintain_order="left")
    for unit_kind, column in id_column_by_kind.items():
        if column in units.columns:
            kind_rows = rows.filter(unit_kind=unit_kind).select("unit_id", "value", "number")
            matched_rows = units.select("unit", unit_id=column).join(kind_rows, on="unit_id")
            tables.append(matched_rows.select("unit", "value", "number"))
    return pl.concat(tables)


def compare_embeddings(
    embedded: ModelEmbeddings,
    units: pl.DataFrame,
    hard_impostors: HardImpostorRule,
    max_pairs: int,
) -> PairList:
    """List the pairs of one model's embeddings with their similarities."""
    from isolux.tasks._embeddings.search_kernels import inner_products_of_lists
    from isolux.tasks.face_verification.pair_kernels import count_pairs, list_pairs

    # Without identities a pair is neither genuine nor impostor.
    is_identified = units["identity"].is_not_null().to_numpy()
    # Units without a template are compared too, and the comparison fails: the generalised rates
    # count it as a rejection.
    has_prediction = (embedded.reason != NO_PREDICTION).fill_null(value=True).to_numpy()
    usable_rows = np.flatnonzero(has_prediction & is_identified)
    identity_code = units["identity"].gather(usable_rows).rank("dense").cast(pl.Int64).to_numpy()
    usable_units = (
        identity_code,
        hard_impostors.bits[usable_rows],
        hard_impostors.level[usable_rows],
        hard_impostors.width,
    )
    n = len(usable_rows)
    n_pairs = n * (n - 1) // 2
    if n_pairs > max_pairs and not hard_impostors.takes_all:
        n_pairs = sum(count_pairs(*usable_units))
    if n_pairs > max_pairs:
        raise SpecError(
            f"{n:,} embeddings make {n_pairs:,} pairs",
            expected=f"at most {max_pairs:,}, each of which takes some {_BYTES_PER_PAIR} bytes",
            found=f"about {n_pairs * _BYTES_PER_PAIR / 1e9:,.0f} GB",
            hint=f"--max-pairs {n_pairs} allows them; --impostors hard compares fewer, and a table"
            " of pairs those that you choose",
        )
    # Pairs are counted first, so that the arrays are allocated once in their final size.
    first, second, genuine = list_pairs(*usable_units, sum(count_pairs(*usable_units)))
    is_failed = embedded.row_index[usable_rows] < 0
    # Zeros for failed units, so that rows stay aligned; their similarities become NaN below.
    vectors = np.zeros((len(usable_rows), embedded.n_dimensions), dtype=embedded.vectors.dtype)
    vectors[~is_failed] = embedded.vectors[embedded.row_index[usable_rows[~is_failed]]]
    starts = np.searchsorted(first, np.arange(len(usable_rows) + 1, dtype=np.int32))
    similarity = inner_products_of_lists(vectors, starts, second)
    if is_failed.any():
        similarity[is_failed[first] | is_failed[second]] = np.nan
    unit_index = usable_rows.astype(np.int32)
    first[:] = unit_index[first]  # from rows of usable units to rows of all units
    second[:] = unit_index[second]
    return PairList(embedded.model, first, second, similarity, genuine)


def compare_all_models(
    frame: pl.DataFrame,
    units: pl.DataFrame,
    hard_impostors: HardImpostorRule,
    model: str | None,
    max_pairs: int,
) -> ComparedPairs:
    """Compare every model's embeddings, and record failures to make a template."""
    embeddings, notes = read_embeddings(frame, units["unit_id"], model=model)
    failures, all_notes = [], list(notes)
    for model_embeddings in embeddings:
        has_prediction = (model_embeddings.reason != NO_PREDICTION).fill_null(value=True)
        is_failed = model_embeddings.reason.is_not_null()
        rows = units.select(
            "unit_id", model=pl.lit(model_embeddings.model), value=is_failed.cast(pl.Float64)
        )
        failures.append(rows.filter(has_prediction))
        n, n_failed = int(has_prediction.sum()), int((is_failed & has_prediction).sum())
        if n_failed:
            text = (
                f"No template of {model_embeddings.model!r} could be made of {n_failed:,} of"
                f" {n:,} images: rates"
                " of matches are about the others alone; the generalised rates count them."
            )
            # From a tenth of 20 or more images, as for missing predictions.
            all_notes.append(Caution(text) if n >= 20 and n_failed >= 0.1 * n else text)
    pairs = tuple(
        compare_embeddings(model_embeddings, units, hard_impostors, max_pairs)
        for model_embeddings in embeddings
    )
    models = tuple(model_embeddings.model for model_embeddings in embeddings)
    return ComparedPairs(models, pairs, pl.concat(failures), NO_PREDICTION, tuple(all_notes))
