"""The tables that people who test biometric systems ask for, from a finished run.

Each is a pure function of a run: ``performance`` (failures and errors by group, the form of
ISO/IEC 19795-10), ``differentials`` (how far the groups' error rates lie apart, as NIST sums them
up, never without the errors themselves), ``impostor_matrix`` and ``false_positive_matrix`` (who is
taken for whom, across groups), ``gallery_by_group``, and of age estimation ``age_performance``. The
texts of the ISO standards are not public: the tables follow what is public of them, and state no
conformity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import polars as pl

from isolux.disparity.biometrics.performance import (
    RATES,
    age_performance,
    differentials,
    is_biometric,
    performance,
)
from isolux.groups.interval_methods import standard_error
from isolux.groups.measure import measure_groups
from isolux.groups.measure.pair_rows import PairRows, pair_rows
from isolux.groups.measure.pairs import needed
from isolux.groups.membership import Membership, membership
from isolux.groups.settings import groupings
from isolux.stats.intervals import keeps_promise, logit_t
from isolux.stats.resampling.rows import replicate_pairs
from isolux.stats.statistic import IntArray, Pairs
from isolux.stats.verification import false_match_rate, tallied
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import Metric
from isolux.vocabulary.spec import AuditSpec, Statistics, recorded_spec
from isolux.vocabulary.tables import SCORES, Status

__all__ = [
    "RATES",
    "age_performance",
    "differentials",
    "false_positive_matrix",
    "gallery_by_group",
    "impostor_matrix",
    "is_biometric",
    "performance",
]

_FMR = "false_match_rate"
_CROSS = "false_positives_across_groups"
_F, _S, _I = pl.Float64(), pl.String(), pl.Int64()
_PAIRED = {
    "model": _S,
    "attribute": _S,
    "group_a": _S,
    "group_b": _S,
    "pairs": _I,
    "clusters": _I,
    "threshold": _F,
    _FMR: _F,
    "low": _F,
    "high": _F,
    "status": _S,
    "reason": _S,
}
_SEARCHED = {
    "model": _S,
    "attribute": _S,
    "group": _S,
    "gallery_group": _S,
    "searches": _I,
    "enrolled": _I,
    "value": _F,
    "low": _F,
    "high": _F,
    "status": _S,
    "reason": _S,
}


def impostor_matrix(run: Run, *, replicates: int = 500, most_groups: int = 24) -> pl.DataFrame:
    """Measure the false match rate between each two groups, and within each, at one threshold.

    Examples
    --------
    See ``docs/methods/biometrics.md``.
    """
    evidence = run.evidence.get("pairs")
    if str(run.record.get("task")) != "face_verification" or evidence is None:
        raise SpecError(
            "nothing says who was compared with whom",
            expected="a run of face_verification that keeps its pairs",
            found=f"a run of {run.record.get('task')}",
            hint="audit again with keep_pairs",
        )
    spec = recorded_spec(run.record)
    statistics = spec.statistics.model_copy(update={"replicates": replicates})
    units = _numbered(run)
    rows = []
    for (model,), own in evidence.partition_by("model", as_dict=True).items():
        pairs = pair_rows(own, units)
        for attribute, names, inside in _attributes(run, spec, units["unit_id"], most_groups):
            for a, b in combinations_with_replacement(range(len(names)), 2):
                cell = _cell(pairs, inside[:, a], inside[:, b], statistics)
                rows.append(
                    {
                        "model": model,
                        "attribute": attribute,
                        "group_a": names[a],
                        "group_b": names[b],
                        **cell,
                    }
                )
    return pl.DataFrame(rows, schema=_PAIRED)


def _numbered(run: Run) -> pl.DataFrame:
    """Give units and their clusters numbers: ``unit_id, unit, cluster``."""
    known = run.scores.select("unit_id", "cluster_id").unique("unit_id", maintain_order=True)
    cluster = pl.coalesce("cluster_id", pl.format("unit {}", "unit_id"))
    return known.select("unit_id", unit=pl.int_range(pl.len()), cluster=cluster.rank("dense") - 1)


def _attributes(
    run: Run, spec: AuditSpec, unit_ids: pl.Series, most: int
) -> Iterator[tuple[str, list[str], np.ndarray[tuple[int, int], np.dtype[np.bool_]]]]:
    """List each attribute's groups, and who is in them ``[n_units, g]``."""
    members = _members(run, spec).frame
    place = pl.DataFrame({"unit_id": unit_ids}).with_row_index("unit")
    for (attribute,), own in members.group_by(["attribute"], maintain_order=True):
        names = own["group"].unique(maintain_order=True).to_list()
        if len(names) > most:
            continue
        inside = np.zeros((len(unit_ids), len(names)), dtype=np.bool_)
        met = own.select("unit_id", "group").join(place, on="unit_id")
        column = met["group"].replace_strict(
            {name: k for k, name in enumerate(names)}, return_dtype=pl.Int64
        )
        inside[met["unit"].to_numpy(), column.to_numpy()] = True
        yield str(attribute), names, inside


def _members(run: Run, spec: AuditSpec) -> Membership:
    info = registry.task_info(str(run.record.get("task")))
    units = Scores(run.scores, info, run.evidence).judged_units()
    return membership(
        run.attributes, spec.groups.by, groupings(spec.groups, run.attributes), units=units
    )


def _cell(
    rows: PairRows,
    a: np.ndarray[tuple[int], np.dtype[np.bool_]],
    b: np.ndarray[tuple[int], np.dtype[np.bool_]],
    spec: Statistics,
) -> dict[str, object]:
    """Measure the impostor pairs of which one is in ``a`` and the other in ``b``."""
    whole = rows.pairs
    first, second = whole.first, whole.second
    met = ~whole.genuine & ((a[first] & b[second]) | (b[first] & a[second]))
    kept = np.flatnonzero(met)
    cluster = rows.cluster_of
    own = replace(
        whole,
        similarity=whole.similarity[kept],
        genuine=whole.genuine[kept],
        first=cluster[first[kept]],
        second=cluster[second[kept]],
    )
    n_clusters = _clusters(own, (first[kept], second[kept]), a, b)
    threshold = rows.read_at(false_match_rate())
    found: dict[str, object] = {"pairs": len(kept), "clusters": n_clusters, "threshold": threshold}
    least = 1 if rows.given else needed(whole.far)
    unresolved = (
        f"{len(kept):,} impostor pairs; a value at a false accept rate of {whole.far:g} needs"
        f" {least:,}"
    )
    for few, why, word in (
        (threshold is None, "no threshold could be set", Status.UNDEFINED),
        (len(kept) == 0, "no such pairs", Status.NOT_SCORED),
        (
            len(kept) < spec.min_units,
            f"fewer than {spec.min_units} pairs",
            Status.INSUFFICIENT_UNITS,
        ),
        (len(kept) < least, unresolved, Status.INSUFFICIENT_UNITS),
    ):
        if few:
            return found | {"status": word.value, "reason": why}
    value, drawn = replicate_pairs(
        [false_match_rate()], tallied(own), int(cluster.max(initial=-1)) + 1, spec
    )
    counts: IntArray = np.array([n_clusters])
    se = standard_error(drawn, counts)
    ends = logit_t(value, se, counts.astype(float), spec.level)
    enough = n_clusters >= spec.min_clusters
    status, reason = Status.OK, None
    if not enough:
        status, reason = Status.INSUFFICIENT_CLUSTERS, f"fewer than {spec.min_clusters} clusters"
    elif not keeps_promise(value, se, counts.astype(float))[0]:
        status, reason = Status.BOUNDARY, "too near 0 or 1 for its size"
    return found | {
        _FMR: float(value[0]),
        "low": float(ends.low[0]) if enough else None,
        "high": float(ends.high[0]) if enough else None,
        "status": status.value,
        "reason": reason,
    }


def _clusters(
    own: Pairs,
    people: tuple[IntArray, IntArray],
    a: np.ndarray[tuple[int], np.dtype[np.bool_]],
    b: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> int:
    """Count the clusters of the group that has fewer: a rate between two is no surer than that."""
    ends = np.concatenate([own.first, own.second])
    who = np.concatenate(people)
    return min(len(np.unique(ends[side[who]])) for side in (a, b))


def false_positive_matrix(run: Run, *, most_groups: int = 24) -> pl.DataFrame:
    """Measure how often people who are not enrolled are taken for enrolled people of each group.

    Examples
    --------
    See ``docs/methods/biometrics.md``.
    """
    held = _candidates(run)
    spec = recorded_spec(run.record)
    members = _members(run, spec)
    above = (
        held.filter(pl.col("mated").eq(other=False))
        .explode("other_id", "similarity")
        .filter(pl.col("similarity") >= pl.col("threshold"))
        .select("model", "unit_id", other="other_id")
    )
    searches = held.filter(pl.col("mated").eq(other=False) & pl.col("threshold").is_not_null())
    enrolled = gallery_by_group(run)
    parts = []
    for (attribute,), own in members.frame.group_by(["attribute"], maintain_order=True):
        names = own["group"].unique(maintain_order=True).to_list()
        if len(names) > most_groups or searches.is_empty():
            continue
        met = above.join(
            own.select(other="unit_id", label="group"), on="other", how="inner"
        ).unique(["model", "unit_id", "label"])
        every = searches.select("model", "unit_id", "cluster_id").join(
            pl.DataFrame({"label": names}), how="cross"
        )
        rows = every.join(
            met.select("model", "unit_id", "label", value=pl.lit(1.0)),
            on=["model", "unit_id", "label"],
            how="left",
            maintain_order="left",
        ).with_columns(pl.col("value").fill_null(0.0))
        table = _measured(rows, own, spec.statistics)
        counts = enrolled.filter(pl.col("attribute").eq_missing(pl.lit(attribute)))
        parts.append(
            table.join(
                counts.select("model", gallery_group="group", enrolled="images"),
                on=["model", "gallery_group"],
                how="left",
                maintain_order="left",
            )
        )
    if not parts:
        return pl.DataFrame(schema=_SEARCHED)
    found = pl.concat(parts).with_columns(pl.col("enrolled").fill_null(0))
    none = pl.col("enrolled") == 0  # that no one of them is returned is no merit of the model
    found = found.with_columns(
        *(pl.when(~none).then(c).alias(c) for c in ("value", "low", "high")),
        status=pl.when(none).then(pl.lit(Status.NOT_SCORED.value)).otherwise("status"),
        reason=pl.when(none).then(pl.lit("nobody of this group is enrolled")).otherwise("reason"),
    )
    return found.select(list(_SEARCHED)).cast(_SEARCHED)  # type: ignore[arg-type]


def _measured(rows: pl.DataFrame, members: pl.DataFrame, spec: Statistics) -> pl.DataFrame:
    info = registry.task_info("identification")
    metric = Metric(
        name=_CROSS,
        title="False positives across groups",
        direction="lower",
        definition="Share of searches that return someone of a group of the gallery.",
    )
    units = SCORES.conform(
        rows.with_columns(
            task=pl.lit("identification"), metric=pl.lit(_CROSS), unit_kind=pl.lit("instance")
        )
    )
    scores = Scores(units, replace(info, metrics=(metric,), defaults=(_CROSS,)))
    table = measure_groups(scores, members, spec).table()
    return table.filter(pl.col("attribute").is_not_null()).select(
        "model",
        "attribute",
        "group",
        "value",
        "low",
        "high",
        "status",
        "reason",
        gallery_group="label",
        searches="n_units",
    )


def gallery_by_group(run: Run) -> pl.DataFrame:
    """Count who is in the gallery, by group.

    Examples
    --------
    See ``docs/methods/biometrics.md``.
    """
    _candidates(run)
    gallery = run.evidence["gallery"]
    members = _members(run, recorded_spec(run.record)).frame.select("attribute", "group", "unit_id")
    everyone = gallery.with_columns(
        attribute=pl.lit(None, dtype=pl.String), group=pl.lit("everyone")
    )
    of_groups = members.join(gallery, on="unit_id", how="inner", maintain_order="left")
    order = ["model", "unit_id", "cluster_id", "template", "attribute", "group"]
    both = pl.concat([everyone.select(order), of_groups.select(order)])
    whole = gallery.group_by("model").agg(whole=pl.len())
    who = pl.coalesce("cluster_id", "unit_id")
    counted = both.group_by("model", "attribute", "group", maintain_order=True).agg(
        images=pl.len().cast(pl.Int64),
        people=who.n_unique().cast(pl.Int64),
        without_template=pl.when(pl.col("template").is_not_null().all())
        .then((~pl.col("template")).sum())
        .cast(pl.Int64),
    )
    return counted.join(whole, on="model", how="left", maintain_order="left").select(
        "model",
        "attribute",
        "group",
        "images",
        "people",
        pl.col("images").truediv("whole").alias("share"),
        "without_template",
    )


def _candidates(run: Run) -> pl.DataFrame:
    found = run.evidence.get("candidates")
    if str(run.record.get("task")) != "identification" or found is None:
        raise SpecError(
            "nothing says who is in the gallery",
            expected="a run of identification",
            found=f"a run of {run.record.get('task')}",
        )
    return found
