"""Every id by which a dataset knows a person: of the person, the photo, the file, the household.

A list of people who withdrew is looked up in all of them: an id that is looked for in the wrong
place withdraws no one, and that person would be published.
"""

from __future__ import annotations

import re

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.tables import IMAGES, INSTANCES
from isolux.io.ids import IdFrom, reduce_ids

_ID_LIKE = re.compile(
    r"(?i:(?:.*[_ ])?(?:ids?|uuid|guid)|subject|person|participant|identity|name|household|family|"
    r"video|session|file|filename|file_name|path|photo|image|picture)|.*(?:Id|ID)"
)
_FILE_NAME_FORMS: tuple[IdFrom, ...] = ("basename", "stem")


def list_known_ids(dataset: Dataset) -> pl.DataFrame:
    """List each person's ids."""
    instances = INSTANCES.conform(dataset.instances)
    columns = [c for c in instances.columns if c == "instance_id" or c.endswith(("_id", "uri"))]
    tables = [
        instances.select(who="instance_id", kind=pl.lit(c), id=pl.col(c).cast(pl.String))
        for c in columns
        if not isinstance(instances.schema[c], (pl.List, pl.Struct))
    ]
    images = IMAGES.conform(dataset.images)
    if images["uri"].is_not_null().any():
        files = instances.select(who="instance_id", image_id="image_id").join(
            images.select("image_id", "uri"), on="image_id"
        )
        tables.append(files.select("who", kind=pl.lit("uri"), id="uri"))
    rows = dataset.instance_attributes()
    id_rows = rows.filter(pl.col("attribute").is_in(list_id_attributes(rows["attribute"])))
    tables.append(id_rows.select(who="unit_id", kind="attribute", id="value"))
    return pl.concat(tables, how="vertical_relaxed").drop_nulls()


def list_id_attributes(attributes: pl.Series) -> list[str]:
    """Name the attributes that are ids by their names: ``subject``, never ``race``."""
    return [a for a in attributes.unique(maintain_order=True) if _ID_LIKE.fullmatch(a)]


def index_ids_by_column_name(dataset: Dataset) -> dict[str, pl.DataFrame]:
    """Index the ids of people by each name that a list may use for their column."""
    all_ids = list_known_ids(dataset)
    id_kinds = [
        id_kind
        for id_kind in all_ids["kind"].unique(maintain_order=True)
        if id_kind.endswith("_id")
    ]
    ids_by_kind = {id_kind: all_ids.filter(kind=id_kind) for id_kind in id_kinds}
    rows = dataset.instance_attributes().drop_nulls("value")
    for name in list_id_attributes(rows["attribute"]):
        if name not in ids_by_kind:
            attribute_rows = rows.filter(attribute=name)
            ids_by_kind[name] = attribute_rows.select(
                who="unit_id", kind=pl.lit("attribute"), id="value"
            )
    ids_by_alias = {
        name: ids_by_kind[id_kind]
        for name, id_kind in dataset.id_columns.items()
        if id_kind in ids_by_kind
    }
    return {**ids_by_alias, **ids_by_kind}


def match_ids_to_people(all_ids: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """Match ids to people: whole ids first, then file names, then file stems."""
    queries = pl.DataFrame({"asked": ids.cast(pl.String).unique()})
    matches = [queries.join(all_ids, left_on="asked", right_on="id")]
    for id_form in _FILE_NAME_FORMS:
        unmatched = queries.join(matches[-1], on="asked", how="anti")
        for earlier in matches[:-1]:
            unmatched = unmatched.join(earlier, on="asked", how="anti")
        short = unmatched.with_columns(key=reduce_ids(unmatched["asked"], id_form))
        files = all_ids.with_columns(key=reduce_ids(all_ids["id"], id_form))
        matches.append(short.join(files, on="key").select("asked", "who", "kind"))
    return pl.concat([table.select("asked", "who", "kind") for table in matches]).unique()
