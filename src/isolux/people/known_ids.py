"""Every id by which a dataset knows a person: of the person, the photo, the file, the household.

A list of people who withdrew is looked up in all of them: an id that is looked for in the wrong
place withdraws no one, and that person would be published.
"""

from __future__ import annotations

import re

import polars as pl

from isolux.io.ids import IdFrom, reduced
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.tables import IMAGES, INSTANCES

_ID_LIKE = re.compile(
    r"(?i:(?:.*[_ ])?(?:ids?|uuid|guid)|subject|person|participant|identity|name|household|family|"
    r"video|session|file|filename|file_name|path|photo|image|picture)|.*(?:Id|ID)"
)
_SHORT: tuple[IdFrom, ...] = ("basename", "stem")


def known_ids(dataset: Dataset) -> pl.DataFrame:
    """List each person's ids."""
    instances = INSTANCES.conform(dataset.instances)
    columns = [c for c in instances.columns if c == "instance_id" or c.endswith(("_id", "uri"))]
    parts = [
        instances.select(who="instance_id", kind=pl.lit(c), id=pl.col(c).cast(pl.String))
        for c in columns
        if not isinstance(instances.schema[c], (pl.List, pl.Struct))
    ]
    images = IMAGES.conform(dataset.images)
    if images["uri"].is_not_null().any():
        files = instances.select(who="instance_id", image_id="image_id").join(
            images.select("image_id", "uri"), on="image_id"
        )
        parts.append(files.select("who", kind=pl.lit("uri"), id="uri"))
    rows = dataset.instance_attributes()
    of_them = rows.filter(pl.col("attribute").is_in(id_like(rows["attribute"])))
    parts.append(of_them.select(who="unit_id", kind="attribute", id="value"))
    return pl.concat(parts, how="vertical_relaxed").drop_nulls()


def id_like(attributes: pl.Series) -> list[str]:
    """Name the attributes that are ids by their names: ``subject``, never ``race``."""
    return [a for a in attributes.unique(maintain_order=True) if _ID_LIKE.fullmatch(a)]


def ids_by_name(dataset: Dataset) -> dict[str, pl.DataFrame]:
    """Give each column of ids that the data know, by the names that a list may call it."""
    known = known_ids(dataset)
    kinds = [kind for kind in known["kind"].unique(maintain_order=True) if kind.endswith("_id")]
    found = {kind: known.filter(kind=kind) for kind in kinds}
    rows = dataset.instance_attributes().drop_nulls("value")
    for name in id_like(rows["attribute"]):
        if name not in found:
            own = rows.filter(attribute=name)
            found[name] = own.select(who="unit_id", kind=pl.lit("attribute"), id="value")
    named = {name: found[kind] for name, kind in dataset.id_columns.items() if kind in found}
    return {**named, **found}


def matched(known: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """Find whom ids name: whole, and where that finds no one by a file's name or its stem."""
    asked = pl.DataFrame({"asked": ids.cast(pl.String).unique()})
    found = [asked.join(known, left_on="asked", right_on="id")]
    for way in _SHORT:
        left = asked.join(found[-1], on="asked", how="anti")
        for earlier in found[:-1]:
            left = left.join(earlier, on="asked", how="anti")
        short = left.with_columns(key=reduced(left["asked"], way))
        files = known.with_columns(key=reduced(known["id"], way))
        found.append(short.join(files, on="key").select("asked", "who", "kind"))
    return pl.concat([part.select("asked", "who", "kind") for part in found]).unique()
