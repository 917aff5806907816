"""From judged searches to the table ``scores`` and the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates
from isolux.tasks.identification.judging import Judged, Why
from isolux.tasks.identification.metrics import FNIR, FPIR, FTA, FTE, HIT
from isolux.tasks.identification.roles import Roles
from isolux.vocabulary.tables import SCORES

__all__ = ["At", "candidates_table", "gallery_table", "score_rows"]

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class At:
    """Where one model is judged: ranks, the rank limit, the threshold (NaN: none).

    ``set_on`` is how many searches for people who are not enrolled it was set on; 0: it was given.
    """

    ranks: tuple[int, ...]
    limit: int
    threshold: float
    set_on: int


def score_rows(
    found: Candidates, judged: Judged, at: At, roles: Roles, names: Sequence[str]
) -> pl.DataFrame:
    """Make the rows of one model: table ``scores``."""
    units = roles.units.select("unit_id", "cluster_id").with_columns(
        model=pl.lit(found.model), task=pl.lit("identification"), unit_kind=pl.lit("instance")
    )
    words = pl.Series([None, *(why.value for why in Why)], dtype=pl.String)
    parts = [SCORES.empty()]
    for name, rank, value, why in _values(found, judged, at, roles):
        if name not in names:
            continue
        parts.append(
            SCORES.conform(
                units.with_columns(
                    pl.Series("value", np.where(why == 0, value, np.nan)).fill_nan(None),
                    words.gather(why).alias("reason"),
                    metric=pl.lit(name),
                    threshold=pl.lit(rank, dtype=pl.Float64),
                )
            )
        )
    return pl.concat(parts)


def _values(
    found: Candidates, judged: Judged, at: At, roles: Roles
) -> Iterator[tuple[str, float | None, npt.NDArray[np.bool_], Codes]]:
    base = np.where((judged.why == 0) & roles.setting, Why.SET_ON.code, judged.why).astype(np.int8)
    of_mated = np.where((base == 0) & ~judged.mated, Why.NOT_ENROLLED.code, base).astype(np.int8)
    of_others = np.where((base == 0) & ~judged.other, Why.ENROLLED.code, base).astype(np.int8)
    for k in at.ranks:
        yield HIT, float(k), judged.rank <= k, of_mated
    returned = judged.best >= at.threshold
    missed = ~((judged.rank <= at.limit) & (judged.own >= at.threshold))
    for name, hit, own in ((FPIR, returned, of_others), (FNIR, missed, of_mated)):
        none = math.isnan(at.threshold)
        why = np.where((own == 0) & none, Why.NO_THRESHOLD.code, own).astype(np.int8)
        yield name, None, hit, why
    for name, state, part, not_it in (
        (FTA, found.state, roles.searched, Why.NOT_SEARCHED),
        (FTE, found.held, roles.enrolled, Why.NOT_TO_BE_ENROLLED),
    ):
        absent = (state == MISSING).fill_null(value=False).to_numpy()
        why = np.where(absent, Why.MISSING.code, 0)
        why = np.where(part, why, not_it.code).astype(np.int8)
        yield name, None, (state == FAILED).fill_null(value=False).to_numpy(), why


def candidates_table(found: Candidates, judged: Judged, at: At, roles: Roles) -> pl.DataFrame:
    """Lay out the evidence ``candidates``: one row a search, with whom else it found."""
    ids, person = roles.units["unit_id"], roles.person
    probe, entry = (found.rows[c].to_numpy() for c in ("probe", "entry"))
    others = found.rows.filter(pl.Series(person[probe] != person[entry]))
    others = others.sort("probe", "order", "entry")
    lists = (
        others.select("probe", other_id=ids.gather(others["entry"]), similarity="score")
        .group_by("probe", maintain_order=True)
        .agg("other_id", "similarity")
    )
    rows = roles.units.select("unit_id", "cluster_id").with_columns(
        pl.Series("mated", judged.mated),
        pl.Series("counts", (judged.why == 0) & ~roles.setting),
        pl.Series("failed", judged.failed),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("probe"),
        model=pl.lit(found.model),
        threshold=pl.lit(None if math.isnan(at.threshold) else at.threshold, dtype=pl.Float64),
    )
    rows = rows.filter(pl.Series(roles.searched)).join(
        lists, on="probe", how="left", maintain_order="left"
    )
    return rows.select(
        "model", "unit_id", "cluster_id", pl.when("counts").then("mated").alias("mated"),
        "failed", "threshold",
        pl.col("other_id").fill_null(pl.lit([], dtype=pl.List(pl.String))),
        pl.col("similarity").fill_null(pl.lit([], dtype=pl.List(pl.Float64))),
    )  # fmt: skip


def gallery_table(found: Candidates, roles: Roles) -> pl.DataFrame:
    """Lay out the evidence ``gallery``: one row an enrolled image."""
    held = pl.col("held")
    template = pl.when(held.is_null()).then(True).when(held == FAILED).then(False)  # noqa: FBT003
    known = pl.lit(found.of_embeddings)
    return (
        roles.units.with_columns(found.held.alias("held"))
        .filter(pl.Series(roles.enrolled))
        .select(
            pl.lit(found.model).alias("model"),
            "unit_id",
            "cluster_id",
            template=pl.when(known).then(template),
        )
    )
