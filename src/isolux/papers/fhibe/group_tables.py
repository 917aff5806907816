"""FHIBE's tables: of each group how many scores and people it has, their median and mean.

The paper's tables are in its supplement, which is not at hand. Its Methods compare medians of
groups, and the reports of the evaluation tool print mean and median with the size of a group; one
such table an attribute is what these functions make, from a run's ``group_metrics`` and scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.groups.membership import membership
from isolux.groups.settings import groupings
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import recorded_spec
from isolux.vocabulary.tables import Status

_KEY = ("model", "metric", "label", "threshold")
_PERCENT, _DIGITS = 100.0, 1
_CLUSTERS = {"subject": "n_subjects", "image": "n_images"}


def scores_by_group(run: Run) -> dict[str, pl.DataFrame]:
    """Lay scores out by the groups of each attribute."""
    shown = _cells(run, run.scores["metric"].unique().to_list())
    if shown.is_empty():
        return {}
    found = shown.join(
        _medians(run),
        on=[*_KEY, "attribute", "group"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).with_columns(median=pl.when(pl.col("value").is_not_null()).then(pl.col("median")))
    at = [name for name in ("label", "threshold") if found[name].is_not_null().any()]
    columns = ["model", "metric", *at, "group", "n_scores", _clusters(run), "median", "mean"]
    return _by_attribute(found.rename({"value": "mean"}), columns)


def verification_by_group(run: Run) -> dict[str, pl.DataFrame]:
    """Lay true accept rates out by the groups of each attribute."""
    of_group = ["model", "attribute", "values"]
    # The rate's own n are its genuine pairs; whether a face could be compared is told of each.
    faces = _cells(run, ["failure_rate"]).select(*of_group, n_faces="n_scores")
    found = _cells(run, ["tar_at_far"]).rename({"value": "tar"})
    found = found.join(faces, on=of_group, how="left", maintain_order="left")
    columns = ["model", "group", "n_faces", _clusters(run), "tar", "low", "high"]
    return _by_attribute(found, columns)


def answers_by_group(run: Run) -> dict[str, pl.DataFrame]:
    """Lay out what a model says by the groups of each attribute, a column a group."""
    found = _cells(run, run.scores["metric"].unique().to_list())
    made = {}
    for (attribute,), rows in found.group_by("attribute", maintain_order=True):
        told = rows.with_columns((pl.col("value") * _PERCENT).round(_DIGITS))
        made[str(attribute)] = told.pivot(
            on="group", index=["model", "metric", "label"], values="value", maintain_order=True
        )
    return made


def _cells(run: Run, metrics: Sequence[str]) -> pl.DataFrame:
    """Take the groups of these metrics; everyone is not a group."""
    rows = run.group_metrics.filter(
        pl.col("attribute").is_not_null(), pl.col("metric").is_in(metrics)
    )
    # Groups of fewer subjects than the minimum have a value in the run; FHIBE looks at none such.
    told = pl.col("status").is_in([Status.OK.value, Status.BOUNDARY.value])
    rows = rows.with_columns(pl.when(told).then(pl.col("value", "low", "high")).name.keep())
    return rows.rename({"n_units": "n_scores", "n_clusters": _clusters(run)})


def _clusters(run: Run) -> str:
    """Name the column that counts what was sampled independently."""
    return _CLUSTERS.get(run.record.get("clusters", {}).get("column"), "n_clusters")


def _medians(run: Run) -> pl.DataFrame:
    """Compute the median score of every group: the key, ``attribute, group, median``."""
    scored = run.scores.filter(pl.col("value").is_not_null())
    settings = recorded_spec(run.record).groups
    people = run.scores.select("unit_id").unique(maintain_order=True)
    members = membership(
        run.attributes, settings.by, groupings(settings, run.attributes), units=people
    ).frame.select("attribute", "group", "unit_id")
    return (
        scored.select(*_KEY, "unit_id", "value")
        .join(members, on="unit_id")
        .group_by(*_KEY, "attribute", "group")
        .agg(median=pl.col("value").median())
    )


def _by_attribute(found: pl.DataFrame, columns: Sequence[str]) -> dict[str, pl.DataFrame]:
    names = found["attribute"].unique(maintain_order=True)
    return {name: found.filter(pl.col("attribute") == name).select(columns) for name in names}
