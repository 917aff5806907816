"""Who is who: the identity of each unit, and the cluster that is resampled with it."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.tables import INSTANCES

__all__ = ["units_with_identity"]


def units_with_identity(
    dataset: Dataset, identity: str | None, *, told: bool = False
) -> pl.DataFrame:
    """List the units with their identity, and a cluster where the dataset has none."""
    instances = INSTANCES.conform(dataset.instances)
    if told and identity is None:
        found = instances["subject_id"].alias("identity")
    else:
        found = _identity(dataset, instances, identity)
    return instances.select(
        unit_id="instance_id",
        cluster_id=pl.coalesce("cluster_id", found),
        identity=found,
    )


def _identity(dataset: Dataset, instances: pl.DataFrame, identity: str | None) -> pl.Series:
    if identity is None:
        for column in ("subject_id", "cluster_id"):
            if instances[column].is_not_null().any() or instances.is_empty():
                return instances[column].alias("identity")
        raise SpecError(
            "nothing says who is who",
            expected="identity, the column or attribute that names the person, or subject_id",
            found="instances without subject_id and cluster_id",
        )
    if identity in instances.columns:
        return instances[identity].cast(pl.String).alias("identity")
    if instances.is_empty():
        return instances["cluster_id"].alias("identity")
    rows = dataset.values_of(identity).select("unit_id", "value").unique()
    twice = rows.filter(pl.col("unit_id").is_duplicated())
    if twice.height:
        raise TableError(
            "a person has two identities",
            expected=f"one value of {identity!r} for each instance",
            found=repr(twice["unit_id"][0]),
        )
    joined = instances.select(unit_id="instance_id").join(
        rows, on="unit_id", how="left", maintain_order="left"
    )
    return joined["value"].alias("identity")
