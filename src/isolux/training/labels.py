"""Whose label is learnt: people with one value of an attribute, or of one class."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.tables import INSTANCES


def clusters_of(dataset: Dataset) -> pl.DataFrame:
    """List people with what was sampled together: ``instance_id, cluster``, in their order."""
    return INSTANCES.conform(dataset.instances).select(
        "instance_id", cluster=pl.coalesce("cluster_id", pl.format("own\x1f{}", "instance_id"))
    )


def labels_of(dataset: Dataset, target: str | None) -> pl.DataFrame:
    """List who has one label: ``instance_id, label``; those with several or none are not there."""
    if target is None:
        instances = INSTANCES.conform(dataset.instances)
        if instances["classes"].is_null().all():
            raise SpecError(
                "nothing says what is to be learnt",
                expected="--target ATTRIBUTE (target=…), or instances with classes",
                found="neither",
            )
        values = instances.select("instance_id", label="classes").explode("label")
    else:
        dataset.values_of(target)  # which names those there are
        values = (
            dataset.instance_attributes()
            .filter(attribute=target)
            .select(instance_id="unit_id", label="value")
        )
    return (
        values.drop_nulls("label").unique(maintain_order=True)
        .group_by("instance_id", maintain_order=True)
        .agg(pl.col("label"))
        .filter(pl.col("label").list.len() == 1)
        .with_columns(pl.col("label").list.first())
    )  # fmt: skip
