"""Objects from what several annotators drew: from a dataset of drawings to a folder of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from isolux.people.held import held_people
from isolux.vocabulary.containers import Dataset
from isolux_curate.shapes import Kind, MaskRule, Shapes, find_shapes

MARK = "shapes.json"
_BOX = ("box_x", "box_y", "box_w", "box_h")


@dataclass(frozen=True, slots=True)
class FoundShapes(Shapes):
    """Objects of several annotators' drawings, and how they were found.

    Parameters
    ----------
    objects : polars.DataFrame
        One row an object: label, ``drawn_by``, ``asked``, agreement, ``status``, drawing.
    annotators : polars.DataFrame
        Of each annotator: ``kept``, ``found``, ``alike`` (0 to 1) with their intervals.
    drawings : polars.DataFrame
        ``drawing_id, object_id, annotator``: what became of each drawing.
    attributes : polars.DataFrame
        What most annotators said of an object: ``instance_id, attribute, value, votes``.
    notes : tuple of str
    images : polars.DataFrame
        The dataset's.
    record : mapping of str to object
        The data, their hashes, the settings.

    Examples
    --------
    See ``consensus_shapes``.
    """

    images: pl.DataFrame = field(default_factory=pl.DataFrame)
    record: Mapping[str, Any] = field(default_factory=dict)

    def write(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the tables as CSV, the agreed objects in COCO's form, and ``shapes.json``."""
        import json

        from isolux_curate.table_folder import write_tables

        tables = {"objects": _flat(self)} | {
            n: getattr(self, n) for n in ("annotators", "drawings")
        }
        told = dict(self.record) | {"notes": list(self.notes)}
        drawn = {"agreed.json": json.dumps(_coco(self, self.images)) + "\n"}
        folder = write_tables(
            out, tables, told, mark=MARK, what="consensus folder", texts=drawn, overwrite=overwrite
        )
        return folder / "objects.csv"


def consensus_shapes(
    data: Dataset | str | Path,
    *,
    kind: Kind = "boxes",
    annotator: str = "annotator",
    least: int = 2,
    overlap: float = 0.5,
    mask_rule: MaskRule = "vote",
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    data_option: Sequence[str] = (),
) -> FoundShapes:
    r"""Find the objects that several annotators drew, one box, mask or pose each.

    Parameters
    ----------
    data : Dataset or str
        NAME:FILE of a dataset with one instance a drawing (``coco:drawn.json``, a table with the
        columns ``box_x, box_y, box_w, box_h``), or such a dataset.
    kind : {"boxes", "masks", "keypoints"}
        What was drawn.
    annotator : str
        The attribute that says who drew each; in COCO's form ``"attributes": {"annotator": …}``.
    least : int
        How many annotators must have drawn an object.
    overlap : float
        How similar drawings of one object must be, on average: IoU, for keypoints object keypoint
        similarity; above 0, up to 1.
    mask_rule : {"vote", "staple"}
        vote (pixels that more than half drew) or staple (weights annotators by how well they seem
        to draw; with three or fewer it tends to follow only one of them).
    withdrawn : str, optional
        File with the ids of people who withdrew.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    data_option : sequence of str
        A setting of the loader, NAME=VALUE.

    Returns
    -------
    FoundShapes
        ``.objects``, ``.annotators``, ``.drawings``, ``.notes``; ``.write(folder)``.

    Raises
    ------
    SpecError
        Nobody drew that; a drawing without an annotator, or with two.

    Examples
    --------
    >>> import tempfile
    >>> rows = "image,annotator,box_x,box_y,box_w,box_h\n"
    >>> rows += "a.jpg,x,0,0,10,10\na.jpg,y,1,0,10,10\na.jpg,y,50,0,10,10\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "drawn.csv"
    ...     _ = file.write_text(rows)
    ...     found = consensus_shapes(f"table:{file}")
    >>> found.objects.select("drawn_by", "iou", "status", "box_x").to_dicts()[0]
    {'drawn_by': 2, 'iou': 0.8181818181818182, 'status': 'agreed', 'box_x': 0.5}
    """
    dataset = held_people(
        data, withdrawn=withdrawn, allow_unmatched=allow_unmatched, data_option=data_option
    )
    settings: dict[str, Any] = {
        "kind": kind, "annotator": annotator, "least": least, "overlap": overlap,
        "mask_rule": mask_rule,
    }  # fmt: skip
    found = find_shapes(dataset, **settings)
    record = {"data": dataset.name, "inputs": dict(dataset.inputs), "settings": settings}
    notes = (*dataset.notes, *found.notes)
    return FoundShapes(
        found.objects, found.annotators, found.drawings, found.attributes, notes, dataset.images,
        record,
    )  # fmt: skip


def _flat(found: Shapes) -> pl.DataFrame:
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


def _coco(found: Shapes, images: pl.DataFrame) -> dict[str, Any]:
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
    sizes = {row["image_id"]: row for row in images.iter_rows(named=True)}
    pictures = [{"id": ids[name]} | _picture(sizes.get(name, {}), name) for name in names]
    return {"images": pictures, "annotations": annotations, "categories": categories}


def _picture(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    sides = {side: row[side] for side in ("width", "height") if row.get(side) is not None}
    return {"file_name": row.get("uri") or name} | sides


def _annotation(
    row: Mapping[str, Any], labels: Sequence[str], said: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    own = {k: row[k] for k in ("drawn_by", "asked", "iou", "oks", "dice") if row.get(k) is not None}
    box = [row[side] for side in _BOX]
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
