"""Counts of people who were read, scored and assigned to groups: ``record["accounting"]``.

``statements.accounting`` formats them as one line of the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.counts import COUNTS, TIMES, add_multiplicity, count_people
from isolux.core.spec import split_intersection
from isolux.groups.membership import Membership
from isolux.groups.missing_predictions import is_share_uneven
from isolux.groups.unknown_values import KNOWN_SUFFIX
from isolux.stats.constants import MIN_GROUP_SIZE_FOR_LOSSES

_UNITS_BY_KIND = {
    "image": "photos",
    "household": "households",
    "query": "queries",
    "subject": "people",
}
_UNITS_BY_TASK = {
    "face_verification": "pairs",
    "counts": "cases",
    "face_detection": "faces",
    "detection": "boxes",
    "open_vocabulary": "boxes",
}
_PHOTO_COLUMNS = ("image", "photo", "picture", "file")


@dataclass(frozen=True, slots=True)
class Losses:
    """People without a score, or not detected, by group.

    Parameters
    ----------
    unscored, undetected : polars.DataFrame
        As ``count_missing_predictions`` and ``count_undetected`` return them.
    """

    unscored: pl.DataFrame
    undetected: pl.DataFrame


def account_for_units(
    dataset: Dataset,
    scores: Scores,
    members: Membership,
    losses: Losses,
    alpha: float,
    n_clusters_per_unit: float = 1.0,
) -> dict[str, Any]:
    """Count the units that were read, scored and assigned to groups."""
    unit = _unit_noun(dataset, scores)
    models = _count_pairs(scores) if unit == "pairs" else _count_units(scores)
    max_units = max(
        (m["n_scored"] + sum(m["reasons"].values()) for m in models.values()), default=0
    )
    counts_people = unit in ("people", "photos", "faces", "boxes") and dataset.instances.height
    all_people = add_multiplicity(
        dataset.instances.select("instance_id"), dataset.multiplicity, "instance_id"
    )
    undetected, unscored = losses.undetected, losses.unscored
    for name, n in undetected.filter(pl.col("attribute").is_null()).select("model", "lost").rows():
        if name in models:
            models[name]["n_undetected"] = n
    losses_by_kind = {
        "score": unscored.select("model", "attribute", "group", "n", lost="unscored"),
        "detection": undetected,
    }
    return {
        "unit": unit,
        "n_read": max(count_people(all_people) if counts_people else 0, max_units),
        "models": models,
        "attributes": {name: dict(counts) for name, counts in members.unit_counts.items()},
        "uneven": [
            {"loss": loss, **row}
            for loss, loss_table in losses_by_kind.items()
            for row in _list_uneven_attributes(loss_table, members, alpha, n_clusters_per_unit)
        ],
    }


def _unit_noun(dataset: Dataset, scores: Scores) -> str:
    """Return the noun of the counted units: pairs, photos, faces, people and so on."""
    unit_kinds = scores.units["unit_kind"].cast(pl.String).unique().drop_nulls().to_list()
    if scores.task in _UNITS_BY_TASK:
        return _UNITS_BY_TASK[scores.task]
    if len(unit_kinds) == 1 and unit_kinds[0] in _UNITS_BY_KIND:
        return _UNITS_BY_KIND[unit_kinds[0]]
    ids = [name.lower() for name, column in dataset.id_columns.items() if column == "instance_id"]
    if any(word in name for name in ids for word in _PHOTO_COLUMNS):
        return "photos"
    people = dataset.instances
    if dataset.name == "table":  # each row has its own image
        return "people"
    has_one_person_per_image = "image_id" in people.columns and people["image_id"].is_unique().all()
    return (
        "photos"
        if has_one_person_per_image and dataset.images.height == people.height > 0
        else "people"
    )


def _count_units(scores: Scores) -> dict[str, dict[str, Any]]:
    """Count the units with a score, and the reasons of missing scores, by model."""
    units = scores.units.select("model", "unit_id", "reason", scored=pl.col("value").is_not_null())
    tables = [units]
    for name in dict.fromkeys(m.evidence for m in scores.info.metrics if m.evidence):
        table = scores.evidence.get(name, pl.DataFrame())
        if not {"model", "unit_id"} <= set(table.columns):
            continue
        reason = pl.col("reason") if "reason" in table.columns else pl.lit(None, dtype=pl.String)
        model_rows = table.select("model", "unit_id", reason=reason, scored=reason.is_null())
        tables.append(model_rows.drop_nulls("unit_id"))
    unit_rows = (
        pl.concat(tables, how="vertical_relaxed")
        .group_by(pl.col("model", "unit_id").cast(pl.String))
        .agg(pl.col("scored").any(), pl.col("reason").drop_nulls().first())
    )
    if COUNTS in scores.evidence:
        counts = scores.evidence[COUNTS].select("unit_id", TIMES).unique("unit_id")
        unit_rows = unit_rows.join(counts, on="unit_id", how="left")
    return {
        str(model): {
            "n_scored": count_people(model_rows.filter("scored")),
            "n_undetected": 0,
            "reasons": {
                str(reason or "no score"): count_people(rows)
                for (reason,), rows in model_rows.filter(~pl.col("scored")).group_by("reason")
            },
        }
        for (model,), model_rows in unit_rows.sort("model").group_by("model", maintain_order=True)
    }


def _count_pairs(scores: Scores) -> dict[str, dict[str, Any]]:
    """Count the pairs, and the failed comparisons, by model."""
    models = {}
    for (model,), rows in scores.evidence["pairs"].group_by("model", maintain_order=True):
        similarity, genuine = (rows[c].list.explode() for c in ("similarity", "genuine"))
        n, unknown = len(similarity), genuine.null_count()
        failed = int((similarity.is_null() & genuine.is_not_null()).sum())
        reasons = {"unknown truth": unknown, "the comparison failed": failed}
        models[str(model)] = {
            "n_scored": n - unknown - failed,
            "n_undetected": 0,
            "reasons": {reason: count for reason, count in reasons.items() if count},
        }
    return models


def _list_uneven_attributes(
    loss_table: pl.DataFrame, members: Membership, alpha: float, n_clusters_per_unit: float
) -> Iterable[dict[str, Any]]:
    """List the attributes whose groups differ in the share of losses."""
    handles = [c.handle for c in members.intersections if len(split_intersection(c.handle)) == 1]
    # The second report of an attribute, without unknown units, has the same losses.
    names = [name for name in handles if not name.endswith(KNOWN_SUFFIX)]
    rows = loss_table.filter(
        pl.col("attribute").is_in(names), pl.col("n") >= MIN_GROUP_SIZE_FOR_LOSSES
    )
    for (model, name), attribute_rows in rows.group_by("model", "attribute", maintain_order=True):
        ordered = attribute_rows.sort(
            pl.col("lost") / pl.col("n"), descending=True, maintain_order=True
        )
        # Tests count clusters, as units of one cluster are lost together.
        n_lost, n = (np.rint(n_clusters_per_unit * ordered[c].to_numpy()) for c in ("lost", "n"))
        # Bonferroni's correction over the attributes.
        if is_share_uneven(n_lost, n, alpha / max(len(names), 1)):
            extreme_groups = ordered[np.unique([0, ordered.height - 1])]
            groups = [list(row) for row in extreme_groups.select("group", "lost", "n").rows()]
            yield {"model": model, "attribute": name, "groups": groups}
