"""COCO results JSON: boxes, masks or keypoints of any detector, as pycocotools takes them.

One object for each detection, ``image_id, category_id, score`` and where it is, decoded by msgspec
a block at a time. Lin et al. (2014).
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import polars as pl

from isolux.core import citations
from isolux.core.errors import FileError as FileError
from isolux.core.info import FormatInfo
from isolux.io.frames import open_bytes
from isolux.io.json_values import decode_json, format_json_id
from isolux.io.refusals import refuse_cells
from isolux.predictions._detections import DetectionKind, build_detections, model_name_from_path
from isolux.predictions._file_probe import FileProbe
from isolux.predictions._json_text import JsonText
from isolux.predictions.coco_results.rows import not_a_list_error, read_rows

INFO = FormatInfo(
    title="COCO results",
    summary="A JSON list (or one under annotations) of detections: image_id, category_id, score,"
    " and bbox, segmentation (run lengths) or keypoints.",
    references=(
        citations.COCO.with_location(
            "the format of results: https://cocodataset.org/#format-results"
        ),
    ),
    assumptions=(
        "bbox is x, y of the upper left corner, width and height, in pixels",
        "a detection is in the file as often as the model gave it",
    ),
    suffixes=(".json", ".json.gz"),
)


class _CocoResultCategory(msgspec.Struct, gc=False):
    id: int | float | str
    name: str


class _CocoResultCategories(msgspec.Struct):
    categories: list[_CocoResultCategory]


class _CocoResultFile(msgspec.Struct):
    annotations: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    categories: list[_CocoResultCategory] = []


def read(
    path: str | Path,
    *,
    model: str | None = None,
    kind: DetectionKind | None = None,
    categories: str | Path | Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Read detections.

    Parameters
    ----------
    path : str or Path
        The JSON file, also gzipped (``.json.gz``): a list, or an object with the list under
        ``annotations`` (and, if it has them, ``categories``).
    model : str, optional
        The model's name; not given: the file's.
    kind : {"boxes", "masks", "keypoints"}, optional
        Default: masks if the file has any, else keypoints, else boxes.
    categories : str, Path or mapping, optional
        The names of categories: an annotation file of COCO, or category_id (as text) to name.
        Default: ``label`` is the category_id as text.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``, ``MASK_PREDICTIONS`` or ``KEYPOINT_PREDICTIONS``: pixels;
        score as in the file (higher is surer). In the order of the file, duplicates kept. An
        empty list gives no rows: everyone was missed.

    Raises
    ------
    FileError
        No such file; no JSON, or cut off, with the byte.
    TableError
        With the row: a box that is not four finite numbers or has a negative side, a score that
        is missing or no number (text such as "0.9" is taken), a mask as polygons, keypoints that
        are not triples, results of which only some have a mask.

    Examples
    --------
    >>> import tempfile
    >>> row = '{"image_id": 7, "category_id": 1, "bbox": [4, 5, 20, 30.5], "score": 0.9}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "detr.json"
    ...     _ = file.write_text(f"[{row}]")
    ...     read(file, categories={"1": "person"}).row(0)
    ('detr', '7', 'person', 4.0, 5.0, 20.0, 30.5, 0.9)
    """
    location = str(path)
    with open_bytes(path) as stream:
        source = JsonText(stream, location)
        frame = None if source.text.startswith(b"{") else read_rows(source)
    if frame is None:
        frame, own_categories = _read_wrapped(path, location)
        categories = categories if categories is not None else own_categories
    if "keypoints" in frame.columns:
        frame = _split_keypoints(frame, location)
    if "label" in frame.columns and categories is not None:
        frame = frame.with_columns(_name_categories(frame["label"], categories, location))
    return build_detections(
        frame, location, detection_kind=kind, model=model or model_name_from_path(path)
    )


def _read_wrapped(path: str | Path, source: str) -> tuple[pl.DataFrame, Mapping[str, str] | None]:
    """Read results that stand in an object's ``annotations``, and its own names of categories."""
    with open_bytes(path) as stream:
        content = stream.read()
    results = decode_json(content, _CocoResultFile, source)
    if isinstance(results.annotations, msgspec.UnsetType):
        raise not_a_list_error(
            f"an object that begins with {content.strip()[:60].decode('utf-8', 'replace')!r}",
            source,
        )
    names = {format_json_id(category.id): category.name for category in results.categories}
    frame = read_rows(JsonText(io.BytesIO(bytes(results.annotations)), f"{source}, annotations"))
    return frame, names or None


def _split_keypoints(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Part flat keypoints x, y, v, x, y, v, … into a column for each of the three."""
    flat = frame["keypoints"]
    lengths = flat.list.len()
    is_invalid = ((lengths % 3 != 0) | (lengths == 0)).fill_null(value=False)
    is_invalid |= flat.list.eval(pl.element().is_null()).list.any().fill_null(value=False)
    refuse_cells(
        is_invalid,
        flat,
        "keypoints are not triples of numbers",
        "x, y and a third number for each keypoint",
        source,
        format_found=lambda row: f"{lengths[row]} numbers: {flat[row].to_list()[:6]}",
    )
    names = ("keypoints_x", "keypoints_y", "keypoints_v")
    columns = {name: pl.col("keypoints").list.gather_every(3, k) for k, name in enumerate(names)}
    return frame.with_columns(**columns).drop("keypoints")


def _name_categories(
    labels: pl.Series, categories: str | Path | Mapping[str, str], source: str
) -> pl.Series:
    """Put the names of categories in the place of their ids."""
    names = (
        dict(categories)
        if isinstance(categories, Mapping)
        else _read_category_names(Path(categories))
    )
    is_named = labels.is_in(list(names)) | labels.is_null()
    problem = "{n} result(s) are of a category that has no name"
    expected = "category_id among " + ", ".join(list(names)[:20])
    refuse_cells(~is_named, labels, problem, expected, source, column="category_id")
    return labels.replace_strict(names, return_dtype=pl.String).alias("label")


def _read_category_names(path: Path) -> dict[str, str]:
    with open_bytes(path) as stream:
        category_file = decode_json(stream.read(), _CocoResultCategories, str(path))
    return {format_json_id(category.id): category.name for category in category_file.categories}


def mismatch(probe: FileProbe) -> str | None:
    """Say why these are no results of COCO; None: they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net.json"), "file", b'[{"image_id": 7, "bbox": [1, 2, 3, 4]}]'))
    >>> mismatch(FileProbe(Path("net.json"), "file", b'{"answers": []}'))
    'its first objects have no category, box, mask or keypoints'
    """
    if re.search(rb'"(labels|frames|box2d)"\s*:', probe.head):
        return "it has labels or frames, as Scalabel has"
    if re.search(rb'"caption"\s*:', probe.head):
        return "it has captions"
    field_match = re.search(rb'"(category_id|bbox|segmentation|keypoints)"\s*:', probe.head)
    has_list = re.match(rb'\s*(\[\s*\]|\{.*"annotations"\s*:)', probe.head, re.DOTALL)
    if field_match or has_list:
        return None
    return "its first objects have no category, box, mask or keypoints"
