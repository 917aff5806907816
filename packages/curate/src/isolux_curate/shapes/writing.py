"""Objects that annotators agree on, as a flat table and in COCO's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux_curate.shapes.drawings import BOX

if TYPE_CHECKING:
    from isolux_curate.shapes import Shapes


def flat_table(found: Shapes) -> pl.DataFrame:
    """Make one table of the objects and what was said of them; lists of numbers are text."""
    table = found.objects
    if found.attributes.height:
        wide = found.attributes.pivot("attribute", index="instance_id", values="value")
        new = [c for c in wide.columns if c not in table.columns or c == "instance_id"]
        table = table.join(wide.select(new), on="instance_id", how="left", maintain_order="left")
    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    return table.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists
    )


def coco_of(found: Shapes) -> dict[str, Any]:
    """Write the agreed objects in COCO's form, with how well annotators agree as attributes."""
    agreed = found.objects.filter(status="agreed")
    labels = agreed["label"].fill_null("object").unique().sort().to_list()
    said: dict[str, dict[str, Any]] = {}
    for who, name, value in found.attributes.drop("votes").iter_rows():
        said.setdefault(who, {})[name] = value
    names = found.objects["image_id"].unique(maintain_order=True)
    plain = names.str.contains(r"^(0|[1-9]\d{0,17})$").all()  # numbers, as tools for COCO want them
    ids = {name: int(name) if plain else name for name in names}
    annotations = [
        {"id": k, "instance_id": row["instance_id"], "image_id": ids[row["image_id"]]}
        | _annotation(row, labels, said)
        for k, row in enumerate(agreed.iter_rows(named=True), 1)
    ]
    categories: list[dict[str, Any]] = [{"id": k + 1, "name": n} for k, n in enumerate(labels)]
    if "keypoint_names" in agreed.columns and agreed.height:
        for category in categories:
            category["keypoints"] = list(agreed["keypoint_names"][0])
    sizes = {row["image_id"]: row for row in found.images.iter_rows(named=True)}
    pictures = [{"id": ids[name]} | _picture(sizes.get(name, {}), name) for name in names]
    return {"images": pictures, "annotations": annotations, "categories": categories}


def _picture(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    sides = {side: row[side] for side in ("width", "height") if row.get(side) is not None}
    return {"file_name": row.get("uri") or name} | sides


def _annotation(
    row: Mapping[str, Any], labels: Sequence[str], said: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    own = {k: row[k] for k in ("drawn_by", "asked", "iou", "oks", "dice") if row.get(k) is not None}
    box = [row[side] for side in BOX]
    written: dict[str, Any] = {
        "category_id": labels.index(row["label"] or "object") + 1,
        "bbox": box,
        "area": row.get("area", box[2] * box[3]),
        "iscrowd": 0,
        "attributes": dict(said.get(row["instance_id"], {})) | own,
    }
    if "mask_counts" in row:
        size = [row["mask_height"], row["mask_width"]]
        written["segmentation"] = {"size": size, "counts": row["mask_counts"]}
    if "keypoints_x" in row:
        triples = zip(*(row[f"keypoints_{c}"] for c in "xyv"), strict=True)
        written["keypoints"] = [number for triple in triples for number in triple]
        written["num_keypoints"] = sum(v > 0 for v in row["keypoints_v"])
    return written
