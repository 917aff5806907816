"""The true classes of each unit, and the identity of each person."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.counts import add_multiplicity
from isolux.core.errors import SpecError, TableError, format_columns
from isolux.core.tables import INSTANCES

_ID_COLUMN_BY_KIND = {"instance": "instance_id", "image": "image_id", "subject": "subject_id"}


def instances_with_truth(
    dataset: Dataset, target: str | None, merge: Mapping[str, str], unknown_values: Collection[str]
) -> pl.DataFrame:
    """List the instances in their order, with all true classes of each."""
    instances = INSTANCES.conform(dataset.instances)
    # A dataset without rows has no attributes to look up, and gives an empty table.
    if target is None or not instances.height:
        rows = _read_classes(dataset, instances)
    else:
        rows = _read_target(dataset, instances, target)
    # Words for unknown are compared without case and blanks.
    word = pl.col("value").str.strip_chars().str.to_lowercase()
    # An unknown truth is null rather than a class, or predictions of it would count as mistakes.
    is_unknown = word.is_in([w.strip().lower() for w in unknown_values])
    is_known = pl.col("value").is_not_null() & ~is_unknown
    # Merged after the test for unknown: a merge may give a class a name that means unknown.
    merged_value = pl.col("value").replace(dict(merge))
    units = instances.select(unit_id="instance_id", cluster_id="cluster_id")
    units = add_multiplicity(units, dataset.multiplicity, "unit_id")
    # One value each, in the order of the units: no grouping is needed.
    if rows["unit_id"].equals(units["unit_id"]):
        return units.with_columns(
            rows.select(truth=pl.when(is_known).then(pl.concat_list(merged_value))).to_series()
        )
    truth = (
        rows.filter(is_known)
        .with_columns(merged_value)
        .group_by("unit_id", maintain_order=True)
        # Merged classes may coincide, and a class must not count twice for one person.
        .agg(truth=pl.col("value").unique(maintain_order=True))
    )
    return units.join(truth, on="unit_id", how="left", maintain_order="left")


def fill_blank_truths(
    units: pl.DataFrame, dataset: Dataset, target: str | None, blank_class: str
) -> pl.DataFrame:
    """Give a class to who has no truth because the cell is empty; a word for unknown stays so."""
    instances = INSTANCES.conform(dataset.instances)
    if target is None:
        rows = _read_classes(dataset, instances)
    else:
        rows = _read_target(dataset, instances, target)
    blanks = rows.group_by("unit_id").agg(pl.col("value").is_null().all()).filter("value")
    is_blank = pl.col("truth").is_null() & pl.col("unit_id").is_in(blanks["unit_id"].implode())
    filled = pl.lit([blank_class], dtype=pl.List(pl.String))
    return units.with_columns(truth=pl.when(is_blank).then(filled).otherwise("truth"))


def instances_with_empty_truths(dataset: Dataset) -> pl.DataFrame:
    """List the instances as ``instances_with_truth`` does, with empty truths."""
    units = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    truth = pl.lit([], dtype=pl.List(pl.String))
    return add_multiplicity(units, dataset.multiplicity, "unit_id").with_columns(truth=truth)


def list_truth_values(dataset: Dataset, target: str | None) -> pl.Series:
    """List the distinct truths as they are spelt, with words for unknown."""
    if not dataset.instances.height:
        return pl.Series([], dtype=pl.String)
    instances = INSTANCES.conform(dataset.instances)
    rows = dataset.values_of(target)["value"] if target else instances["classes"].explode()
    return rows.unique().drop_nulls()


def _read_classes(dataset: Dataset, instances: pl.DataFrame) -> pl.DataFrame:
    """Read the column ``classes`` of instances, one row per class."""
    if instances.height and instances["classes"].is_null().all():
        names = sorted(dataset.attributes["attribute"].unique())
        raise SpecError(
            "nothing says what the true class is",
            expected="target, the attribute that holds it, or instances with classes",
            found="no target and no instance with classes, but "
            + format_columns(names, "attributes"),
            hint="name the attribute that holds the right answer: --target NAME, in Python"
            " target='NAME'",
        )
    return instances.select(unit_id="instance_id", value="classes").explode("value")


def _read_target(dataset: Dataset, instances: pl.DataFrame, target: str) -> pl.DataFrame:
    """Read an attribute of instances, images or subjects, one row per instance and value."""
    rows = dataset.values_of(target)
    unit_kinds = rows["unit_kind"].unique(maintain_order=True).to_list()
    usable_kinds = [k for k in unit_kinds if k in _ID_COLUMN_BY_KIND]
    if not usable_kinds:
        raise SpecError(
            f"the target {target!r} does not describe what is judged",
            expected="an attribute of an instance, an image or a subject",
            found=f"an attribute of a {' or a '.join(unit_kinds)}",
        )
    frames = []
    for unit_kind in usable_kinds:
        values = rows.filter(unit_kind=unit_kind).select("unit_id", "value")
        # Attributes of images and subjects hold for all of their instances.
        if unit_kind != "instance":
            owners = instances.select("instance_id", unit_id=_ID_COLUMN_BY_KIND[unit_kind])
            values = owners.join(values, on="unit_id").select(unit_id="instance_id", value="value")
        frames.append(values)
    return pl.concat(frames)


def units_with_identity(
    dataset: Dataset, identity: str | None, *, subject_ids_only: bool = False
) -> pl.DataFrame:
    """List the units with their identity, which is the cluster where the dataset has none."""
    instances = INSTANCES.conform(dataset.instances)
    if subject_ids_only and identity is None:
        identities = instances["subject_id"].alias("identity")
    else:
        identities = _read_identity(dataset, instances, identity)
    return instances.select(
        unit_id="instance_id",
        # Images of one person are not independent, so the person is the cluster where none is set.
        cluster_id=pl.coalesce("cluster_id", identities),
        identity=identities,
    )


def _read_identity(dataset: Dataset, instances: pl.DataFrame, identity: str | None) -> pl.Series:
    """Read who each instance shows: a column, an attribute, or the subject or cluster."""
    if identity is None:
        # subject_id first: a cluster may be a household or a session, with several people.
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
    # Repeated rows that agree are harmless; two different identities make pairs contradictory.
    rows = dataset.values_of(identity).select("unit_id", "value").unique()
    duplicates = rows.filter(pl.col("unit_id").is_duplicated())
    if duplicates.height:
        raise TableError(
            "a person has two identities",
            expected=f"one value of {identity!r} for each instance",
            found=repr(duplicates["unit_id"][0]),
        )
    identities = instances.select(unit_id="instance_id").join(
        rows, on="unit_id", how="left", maintain_order="left"
    )
    return identities["value"].alias("identity")
