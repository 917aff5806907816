"""Pascal VOC's annotations, as LabelImg, CVAT and others write them: an XML file for each image."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._box_annotations import (
    build_box_dataset,
    find_child_text_or_none,
    parse_finite_number,
    parse_xml_with_root,
)
from isolux.datasets._files import Inputs, find_single_file
from isolux.datasets._relative_paths import note_images_without_annotation
from isolux.io.hashing import sha256_listing

INFO = DatasetInfo(
    title="Pascal VOC XML",
    summary="Boxes in Pascal VOC's form: an XML file for each image.",
    references=(
        Reference(
            key="voc",
            citation="Everingham, M., Van Gool, L., Williams, C. K. I., Winn, J., & Zisserman, A."
            " (2010). The Pascal visual object classes (VOC) challenge. International Journal of"
            " Computer Vision, 88(2), 303–338.",
            location="section 3 and the development kit",
            url="https://doi.org/10.1007/s11263-009-0275-4",
        ),
    ),
    licence="the licence of your annotations",
    label_source="declared by the user",
    noun="objects",
    terms=(("difficult", "marked as difficult"), ("truncated", "marked as cut off")),
    assumptions=(
        "images are independent of one another, those in one image are not",
        "a box is xmax − xmin pixels wide; --pixel-inclusive counts the last pixel, as VOC does",
        "what is marked as difficult is neither found nor missed, as in VOC's evaluation",
    ),
)
_MARK_FIELDS = ("pose", "truncated", "occluded", "difficult")


def load(path: str | Path) -> Dataset:
    r"""Load boxes.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        The folder with the XML files (itself or ``Annotations`` in it), or one such file. Images
        are named by their XML file, less its suffix, as VOC's lists and results do.

    Returns
    -------
    Dataset
        ``instances``: box in pixels, ``classes``, ``ignore`` (difficult). ``attributes``:
        ``category``, ``pose``, ``truncated``, ``occluded``, ``difficult``, and what stands under
        ``attributes`` of an object.

    Raises
    ------
    FileError, TableError
        No such file, no XML, another kind of XML; a box that lacks a number or is turned over.

    Examples
    --------
    >>> import tempfile
    >>> box = "<bndbox><xmin>4</xmin><ymin>5</ymin><xmax>24</xmax><ymax>35</ymax></bndbox>"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "7.xml"
    ...     _ = file.write_text(f"<annotation><object><name>dog</name>{box}</object></annotation>")
    ...     load(file).instances.select("image_id", "classes", "box_w", "box_h").row(0)
    ('7', ['dog'], 20.0, 30.0)
    """
    root = Path(path).expanduser()
    files = _list_voc_files(root)
    rows: list[dict[str, Any]] = []
    marks: list[dict[str, str | None]] = []
    images: list[dict[str, Any]] = []
    inputs = Inputs()
    for file in files:
        tree = parse_xml_with_root(inputs.read(file), str(file), "annotation")
        images.append(_read_voc_image(tree, file))
        for k, element in enumerate(tree.iterfind("object"), start=1):
            rows.append(_read_voc_object(element, file.stem, f"{file}, object {k}"))
            marks.append(_read_voc_attributes(element))
    schema = {"image_id": pl.String, "uri": pl.String, "width": pl.Int64, "height": pl.Int64}
    input_hashes = inputs if len(inputs) == 1 else {str(root): sha256_listing(root)}
    return build_box_dataset(
        "voc",
        INFO,
        rows,
        pl.DataFrame(images, schema=schema),
        marks,
        input_hashes,
        str(root),
        _note_images_without_voc_file(files, root),
    )


def _list_voc_files(root: Path) -> list[Path]:
    if not root.is_dir():
        return [find_single_file(root, ("*.xml",), "annotations (XML)")]
    for folder in (root / "Annotations", root / "annotations", root):
        files = sorted(folder.glob("*.xml")) if folder.is_dir() else []
        if files:
            return files
    raise FileError(
        "the folder holds no annotations", expected="*.xml or Annotations/*.xml", where=str(root)
    )


def _note_images_without_voc_file(files: list[Path], root: Path) -> tuple[str, ...]:
    """Count pictures without an XML file, beside the files or in the folders that VOC keeps."""
    if not root.is_dir():
        return ()
    folder = files[0].parent
    image_parent = root if folder != root else root.parent
    return note_images_without_annotation(
        [folder, *(image_parent / name for name in ("JPEGImages", "images"))],
        {file.stem for file in files},
        annotation_word="XML file",
        empty="A file without an object",
    )


def _read_voc_image(tree: Element, file: Path) -> dict[str, Any]:
    size_texts = [
        find_child_text_or_none(tree, f"size/{dimension}") for dimension in ("width", "height")
    ]
    numbers = [
        int(parse_finite_number(dimension, str(file), "size")) if dimension else None
        for dimension in size_texts
    ]
    width, height = (n if n is not None and n > 0 else None for n in numbers)
    uri = find_child_text_or_none(tree, "filename")
    return {"image_id": file.stem, "uri": uri, "width": width, "height": height}


def _read_voc_object(element: Element, image: str, source: str) -> dict[str, Any]:
    x_min, y_min, x_max, y_max = (
        parse_finite_number(find_child_text_or_none(element, f"bndbox/{corner}"), source, corner)
        for corner in ("xmin", "ymin", "xmax", "ymax")
    )
    return {
        "image_id": image,
        "category": find_child_text_or_none(element, "name"),
        "box_x": x_min,
        "box_y": y_min,
        "box_w": x_max - x_min,
        "box_h": y_max - y_min,
        "is_crowd": False,
        "ignore": find_child_text_or_none(element, "difficult") in ("1", "true"),
    }


def _read_voc_attributes(element: Element) -> dict[str, str | None]:
    values_by_name = {name: find_child_text_or_none(element, name) for name in _MARK_FIELDS}
    values_by_name |= {
        name: find_child_text_or_none(attribute_element, "value")
        for attribute_element in element.iterfind("attributes/attribute")
        if (name := find_child_text_or_none(attribute_element, "name"))
    }
    return {name: mark for name, mark in values_by_name.items() if mark is not None}
