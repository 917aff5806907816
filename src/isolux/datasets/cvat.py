"""CVAT's own XML (for images 1.1): boxes and polygons of all images in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import polars as pl

from isolux.datasets._drawn import dataset_of_boxes, number_in, parsed
from isolux.datasets._files import Inputs, file_in
from isolux.io.ids import reduced
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.info import DatasetInfo, Reference

INFO = DatasetInfo(
    title="CVAT XML",
    summary="Boxes and polygons with attributes, as CVAT exports them for images.",
    references=(
        Reference(
            key="cvat",
            citation="CVAT.ai Corporation. Computer Vision Annotation Tool: CVAT for images.",
            place="XML annotation format, version 1.1",
            url="https://docs.cvat.ai/docs/manual/advanced/xml_format/",
        ),
    ),
    licence="the licence of your annotations",
    judgement="declared by the user",
    assumptions=(
        "images are independent of one another, those in one image are not",
        "a polygon is taken by the box around it",
    ),
)


def load(path: str | Path) -> Dataset:
    """Load boxes.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        ``annotations.xml``, or the folder that holds it.

    Returns
    -------
    Dataset
        ``images``: named by their file's name without its suffix. ``instances``: the box in pixels
        (of a polygon the one around it), ``classes``. ``attributes``: ``category``, ``occluded``
        and those of CVAT.

    Raises
    ------
    FileError, TableError
        No such file, no XML or another kind; a box that lacks a number or is turned over.

    Examples
    --------
    >>> import tempfile
    >>> box = '<box label="dog" occluded="0" xtl="4" ytl="5" xbr="24" ybr="35"/>'
    >>> image = f'<image id="0" name="a/7.jpg" width="64" height="48">{box}</image>'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "annotations.xml"
    ...     _ = file.write_text(f"<annotations>{image}</annotations>")
    ...     load(folder).instances.select("image_id", "classes", "box_w", "box_h").row(0)
    ('7', ['dog'], 20.0, 30.0)
    """
    file = file_in(path, ("annotations.xml", "*.xml"), "annotations (XML)")
    inputs, where = Inputs(), str(file)
    tree = parsed(inputs.read(file), where, "annotations")
    images: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    marks: list[dict[str, str | None]] = []
    for one in tree.iterfind("image"):
        name = one.get("name", one.get("id", ""))
        sides = {side: int(number_in(one.get(side), where, side)) for side in ("width", "height")}
        image = reduced(pl.Series([name]), "stem")[0]
        images.append({"image_id": image, "uri": name, **sides})
        for shape in one:
            box = _box(shape, f"{where}, image {name!r}")
            if box is not None:
                rows.append({"image_id": image, **box})
                marks.append(_marks(shape))
    schema = {"image_id": pl.String, "uri": pl.String, "width": pl.Int64, "height": pl.Int64}
    return dataset_of_boxes(
        "cvat", INFO, rows, pl.DataFrame(images, schema=schema), marks, inputs, where
    )


def _box(shape: Element, where: str) -> dict[str, Any] | None:
    if shape.tag == "box":
        names = ("xtl", "ytl", "xbr", "ybr")
        left, top, right, bottom = (number_in(shape.get(n), where, n) for n in names)
    elif shape.tag == "polygon":
        pairs = [pair.split(",") for pair in (shape.get("points") or "").split(";") if pair]
        points = [[number_in(part, where, "points") for part in pair] for pair in pairs]
        if len(points) < 3 or any(len(point) != 2 for point in points):
            raise TableError("a polygon is not made of points", expected="x,y;x,y;x,y",
                             found=repr(shape.get("points"))[:80], where=where)  # fmt: skip
        xs, ys = zip(*points, strict=True)
        left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
    else:
        return None
    return {
        "category": shape.get("label"), "box_x": left, "box_y": top, "box_w": right - left,
        "box_h": bottom - top, "ignore": False, "is_crowd": False,
    }  # fmt: skip


def _marks(shape: Element) -> dict[str, str | None]:
    own = {"occluded": {"1": "true", "0": "false"}.get(shape.get("occluded", ""))}
    for each in shape.iterfind("attribute"):
        if name := each.get("name"):
            own[name] = (each.text or "").strip() or None
    return own
