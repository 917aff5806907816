"""A sample that stands for a population, or a table in which identical rows are counted.

The table ``sample`` beside the scores turns the design of an audit into one of weights and strata,
the table ``counts`` repeats its clusters; without them nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.groups.measure.columns import Judged
from isolux.stats.design import Design, build_design
from isolux.stats.drawn_design import CENSUS, build_drawn, with_other_way
from isolux.stats.raking import Margins
from isolux.stats.sampling import Strata
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.counts import COUNTS
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import Statistics


def counted(
    design: Design, evidence: Mapping[str, pl.DataFrame], unit_ids: pl.Series, cluster_of: IntArray
) -> Design:
    """Return the design in which each unit, a cluster of its own, is as many copies as it counts.

    Shapes: ``cluster_of`` [n_units].
    """
    if COUNTS not in evidence:
        return design
    times = evidence[COUNTS].select("unit_id", "times").unique("unit_id")
    held = pl.DataFrame({"unit_id": unit_ids.cast(pl.String)}).join(
        times, on="unit_id", how="left", maintain_order="left"
    )
    of_cluster = np.zeros(len(design.distinct_of), dtype=np.int64)
    of_cluster[cluster_of] = held["times"].fill_null(1).to_numpy()
    copies = np.zeros(len(design.copies), dtype=np.int64)
    np.add.at(copies, design.distinct_of, of_cluster)
    return replace(design, copies=copies)


def drawn(
    design: Design,
    judged: Judged,
    entries: tuple[IntArray, IntArray],
    evidence: Mapping[str, pl.DataFrame],
    spec: Statistics,
) -> Design:
    """Return the design with every unit's weight and stratum; the same where there are none.

    Shapes: ``entries`` [n].
    """
    if SAMPLE not in evidence:
        return design
    _refuse(judged, spec)
    table = evidence[SAMPLE].unique("unit_id", keep="first", maintain_order=True)
    held = pl.DataFrame({"unit_id": judged.unit_ids.cast(pl.String)}).join(
        table, on="unit_id", how="left", maintain_order="left"
    )
    weight = held["weight"].to_numpy().astype(np.float64)
    scaled = weight / weight.mean() if len(weight) else weight
    strata = strata_of_clusters(held, judged.cluster_of)
    rows = judged.columns[judged.row_of]
    margins = _margins(held)
    found = build_drawn(rows, judged.cluster_of, entries, design, scaled, strata, margins)
    if "other_cluster" not in held.columns or held["other_cluster"].is_null().all():
        return found
    other = (held["other_cluster"].rank("dense") - 1).to_numpy().astype(np.int64)
    groups = design.n_groups
    plain = build_design(judged.columns, other, *entries, groups, judged.row_of)
    return with_other_way(found, rows, (judged.cluster_of, other), entries, plain, margins)


def _margins(held: pl.DataFrame) -> Margins | None:
    """Take the cells of a population that the weights add up to; None: there is none."""
    codes = [
        held[name].to_numpy().astype(np.int64)
        for name in held.columns
        if name.startswith("margin_")
    ]
    sizes = tuple(int(code.max(initial=-1)) + 1 for code in codes)
    if not codes:
        return None
    return Margins(tuple(codes), sizes, held["base_weight"].to_numpy().astype(np.float64))


def _refuse(judged: Judged, spec: Statistics) -> None:
    """Refuse what cannot take weights, by name."""
    names = [str(judged.measures[j][2]) for j in judged.detected]
    if names:
        others = [str(parts[2]) for parts in judged.measures if str(parts[2]) not in names]
        raise SpecError(
            f"{', '.join(dict.fromkeys(names))} takes no weights and no strata: a false alarm "
            "does not represent a person, so no weight applies to it",
            expected="metrics that are of people: --metric "
            + (" --metric ".join(dict.fromkeys(others)) or "with another task"),
            found="--weight or --strata",
        )
    if spec.interval == "bca" or spec.weights == "poisson":
        raise SpecError(
            "a sample with weights or strata has no such bootstrap",
            expected="--interval score, logit-t, percentile, wilson or clopper-pearson, and "
            "weights multinomial",
            found=f"--interval {spec.interval} weights {spec.weights}",
        )


def strata_of_clusters(held: pl.DataFrame, cluster_of: IntArray) -> Strata | None:
    """Give strata numbers, and say in which each cluster is; None: the sample has none.

    Shapes: ``cluster_of`` [n].
    """
    finite = "stratum_size" in held.columns and held["stratum_size"].is_not_null().any()
    if held["stratum"].is_null().all() and not finite:
        return None
    code = (held["stratum"].fill_null("").rank("dense") - 1).to_numpy().astype(np.int64)
    of = np.zeros(int(cluster_of.max(initial=-1)) + 1, dtype=np.int64)
    of[cluster_of] = code
    counts = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.int64)
    counts[code] = held["stratum_clusters"].to_numpy()
    return Strata(of, counts, _left(held, code, counts))


def _left(held: pl.DataFrame, code: IntArray, drawn: IntArray) -> FloatArray | None:
    """Return the share of each stratum's clusters that were not drawn; None if no size is known."""
    if "stratum_size" not in held.columns or held["stratum_size"].is_null().all():
        return None
    size = np.ones(len(drawn))
    size[code] = held["stratum_size"].to_numpy()
    return np.maximum(1.0 - drawn / size, CENSUS)
