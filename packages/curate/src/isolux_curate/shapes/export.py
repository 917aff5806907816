"""Agreed objects as a flat table and as COCO JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux_curate.shapes.drawings import BOX_COLUMNS

if TYPE_CHECKING:
    from isolux_curate.shapes import Shapes


def build_flat_object_attribute_table(shapes: Shapes) -> pl.DataFrame:
    """Build one table of objects and their attributes; lists of numbers become text."""
    table = shapes.objects
    if shapes.attributes.height:
        wide = shapes.attributes.pivot("attribute", index="instance_id", values="value")
        new = [c for c in wide.columns if c not in table.columns or c == "instance_id"]
        table = table.join(wide.select(new), on="instance_id", how="left", maintain_order="left")
    lists = [name for name, dtype in table.schema.items() if isinstance(dtype, pl.List)]
    return table.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists
    )


def convert_agreed_objects_to_coco(shapes: Shapes) -> dict[str, Any]:
    """Convert the agreed objects to COCO JSON, with the annotators' agreement as attributes."""
    agreed = shapes.objects.filter(status="agreed")
    labels = agreed["label"].fill_null("object").unique().sort().to_list()
    attributes_by_object: dict[str, dict[str, Any]] = {}
    for object_id, name, attribute_value in shapes.attributes.drop("votes").iter_rows():
        attributes_by_object.setdefault(object_id, {})[name] = attribute_value
    names = shapes.objects["image_id"].unique(maintain_order=True)
    has_numeric_names = names.str.contains(
        r"^(0|[1-9]\d{0,17})$"
    ).all()  # COCO tools need numeric ids
    ids = {name: int(name) if has_numeric_names else name for name in names}
    annotations = [
        {"id": k, "instance_id": row["instance_id"], "image_id": ids[row["image_id"]]}
        | _build_coco_annotation(row, labels, attributes_by_object)
        for k, row in enumerate(agreed.iter_rows(named=True), 1)
    ]
    categories: list[dict[str, Any]] = [{"id": k + 1, "name": n} for k, n in enumerate(labels)]
    if "keypoint_names" in agreed.columns and agreed.height:
        for category in categories:
            category["keypoints"] = list(agreed["keypoint_names"][0])
    sizes = {row["image_id"]: row for row in shapes.images.iter_rows(named=True)}
    pictures = [{"id": ids[name]} | _build_coco_image(sizes.get(name, {}), name) for name in names]
    return {"images": pictures, "annotations": annotations, "categories": categories}


def _build_coco_image(image_row: Mapping[str, Any], image_id: str) -> dict[str, Any]:
    size = {
        field: image_row[field] for field in ("width", "height") if image_row.get(field) is not None
    }
    return {"file_name": image_row.get("uri") or image_id} | size


def _build_coco_annotation(
    object_row: Mapping[str, Any],
    labels: Sequence[str],
    attributes_by_object: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    agreement = {
        k: object_row[k]
        for k in ("drawn_by", "asked", "iou", "oks", "dice")
        if object_row.get(k) is not None
    }
    box = [object_row[column] for column in BOX_COLUMNS]
    annotation: dict[str, Any] = {
        "category_id": labels.index(object_row["label"] or "object") + 1,
        "bbox": box,
        "area": object_row.get("area", box[2] * box[3]),
        "iscrowd": 0,
        "attributes": dict(attributes_by_object.get(object_row["instance_id"], {})) | agreement,
    }
    if "mask_counts" in object_row:
        size = [object_row["mask_height"], object_row["mask_width"]]
        annotation["segmentation"] = {"size": size, "counts": object_row["mask_counts"]}
    if "keypoints_x" in object_row:
        triples = zip(*(object_row[f"keypoints_{c}"] for c in "xyv"), strict=True)
        annotation["keypoints"] = [number for triple in triples for number in triple]
        annotation["num_keypoints"] = sum(v > 0 for v in object_row["keypoints_v"])
    return annotation
