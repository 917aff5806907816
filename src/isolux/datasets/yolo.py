"""YOLO's label files: a text file for each picture, a line for each box, in shares of it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError, format_location
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._box_annotations import build_box_dataset, parse_ascii_number
from isolux.datasets._files import Inputs, find_first_file_or_none
from isolux.datasets._image_sizes import read_oriented_image_size, read_sizes_from_table_or_folder
from isolux.datasets._relative_paths import note_images_without_annotation
from isolux.datasets._tables import left_join_in_order
from isolux.io.frames import refuse_unless_file
from isolux.io.hashing import sha256_listing
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.settings_files import read_mapping
from isolux.io.text import check_utf8

INFO = DatasetInfo(
    title="YOLO labels",
    summary="Boxes and polygons as YOLO's tools write them: a text file for each picture.",
    references=(
        Reference(
            key="yolo",
            citation="Redmon, J., Divvala, S., Girshick, R., & Farhadi, A. (2016). You only look"
            " once: Unified, real-time object detection. In Proceedings of the IEEE Conference on"
            " Computer Vision and Pattern Recognition (CVPR) (pp. 779–788).",
            location="the labels of darknet and of Ultralytics",
            url="https://docs.ultralytics.com/datasets/detect/",
        ),
    ),
    licence="the licence of your annotations",
    label_source="declared by the user",
    noun="objects",
    assumptions=(
        "images are independent of one another, those in one image are not",
        "a picture whose label file is empty holds nothing; one without a file was not looked at",
        "a polygon is taken by the box around it",
    ),
)
_EMPTY_SHA256 = hashlib.sha256().hexdigest()
_NAME_FILES = ("data.yaml", "*.yaml", "*.yml", "classes.txt", "obj.names", "*.names")


def load(
    path: str | Path,
    *,
    sizes: str | Path | None = None,
    names: str | Path | None = None,
) -> Dataset:
    r"""Load boxes.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        The folder with the label files (``7.txt`` for the picture ``7.jpg``), or one with
        ``labels`` and ``images`` in it, or one label file.
    sizes : str or Path, optional
        Where the pictures' sizes come from: the folder of pictures, whose headers are read, or a
        table with ``image_id``, ``width`` and ``height``. Default: ``images`` beside ``labels``,
        else the folder itself.
    names : str or Path, optional
        The names of classes: ``data.yaml`` or a text file with a name a line. Default: looked for
        beside the labels; without one classes are called by their numbers.

    Returns
    -------
    Dataset
        ``instances``: the box in pixels, ``classes``. ``attributes``: ``category``.
        ``categories``: the classes' numbers.

    Raises
    ------
    FileError, TableError
        No label files; a picture whose size is not known; a line that is no box, a share beyond
        the picture, a class without a name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = Path(folder)
    ...     _ = (root / "7.txt").write_text("0 0.5 0.5 0.5 0.25\n")
    ...     _ = (root / "sizes.csv").write_text("image_id,width,height\n7,40,40\n")
    ...     load(root / "7.txt", sizes=root / "sizes.csv").instances.select(
    ...         "classes", "box_x", "box_y", "box_w", "box_h").row(0)
    (['0'], 10.0, 15.0, 20.0, 10.0)
    """
    root = Path(path).expanduser()
    files = _list_yolo_label_files(root)
    inputs = Inputs()
    box_tables = []
    for file in files:
        is_empty = file.is_file() and not file.stat().st_size
        box_tables.append(_parse_yolo_boxes(b"" if is_empty else inputs.read(file), file))
        inputs.setdefault(str(file), _EMPTY_SHA256)
    if len(inputs) > 1 and root.is_dir():
        inputs = Inputs({str(root): sha256_listing(root)})
    ids = pl.Series([file.stem for file in files], dtype=pl.String)
    size_table = (
        _read_sizes_of_labelled_images(files)
        if sizes is None
        else read_sizes_from_table_or_folder(sizes, ids, inputs)
    )
    class_names = _read_class_names_by_number(root if root.is_dir() else root.parent, names, inputs)
    boxes = left_join_in_order(pl.concat(box_tables), size_table.drop("uri"), "image_id")
    _check_all_images_have_sizes(ids, size_table, str(root))
    rows = boxes.select(
        "image_id",
        category=_convert_yolo_classes_to_names(boxes["category"], class_names, str(root)),
        box_x=pl.col("left") * pl.col("width"),
        box_y=pl.col("top") * pl.col("height"),
        box_w=(pl.col("right") - pl.col("left")) * pl.col("width"),
        box_h=(pl.col("bottom") - pl.col("top")) * pl.col("height"),
        ignore=pl.lit(value=False),
        is_crowd=pl.lit(value=False),
    )
    images = left_join_in_order(pl.DataFrame({"image_id": ids}), size_table, "image_id")
    dataset = build_box_dataset(
        "yolo",
        INFO,
        rows,
        images.select("image_id", "uri", "width", "height"),
        [{}] * rows.height,
        inputs,
        str(root),
        _note_images_without_label_file(files, root),
    )
    return replace(dataset, categories=class_names)


def _list_yolo_label_files(root: Path) -> list[Path]:
    if not root.is_dir():
        refuse_unless_file(root)
        return [root]
    for folder in (root / "labels", root):
        files = sorted(folder.rglob("*.txt")) if folder.is_dir() else []
        files = [file for file in files if file.name not in ("classes.txt", "train.txt", "val.txt")]
        if files:
            return files
    raise FileError(
        "the folder holds no label files", expected="labels/*.txt or *.txt", where=str(root)
    )


def _note_images_without_label_file(files: list[Path], root: Path) -> tuple[str, ...]:
    """Count pictures without a label file; of one label file nothing is said of other pictures."""
    folders = (
        {folder for file in files for folder in _list_image_folders_of_label_file(file)}
        if root.is_dir()
        else set()
    )
    return note_images_without_annotation(
        sorted(folders),
        {file.stem for file in files},
        annotation_word="label file",
        empty="An empty file",
    )


def _list_image_folders_of_label_file(file: Path) -> list[Path]:
    """Say where the picture of a label file may be: ``images/val`` of ``labels/val``, beside it."""
    folder_names = list(file.parent.parts)
    if "labels" not in folder_names:
        return [file.parent]
    label_position = len(folder_names) - 1 - folder_names[::-1].index("labels")
    return [
        Path(*folder_names[:label_position], "images", *folder_names[label_position + 1 :]),
        file.parent,
    ]


def _read_sizes_of_labelled_images(files: list[Path]) -> pl.DataFrame:
    """Read the sizes of pictures: ``images/val/7.jpg`` of ``labels/val/7.txt``, or beside it."""
    rows = []
    for file in files:
        candidates = (
            folder / f"{file.stem}{suffix}"
            for folder in _list_image_folders_of_label_file(file)
            for suffix in IMAGE_SUFFIXES
        )
        picture = next((candidate for candidate in candidates if candidate.is_file()), None)
        if picture is not None:
            size = read_oriented_image_size(picture)
            rows.append((file.stem, size.width, size.height, picture.name))
    schema = {"image_id": pl.String, "width": pl.Int64, "height": pl.Int64, "uri": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _parse_yolo_boxes(content: bytes, file: Path) -> pl.DataFrame:
    """Read the lines of one file: class and the sides of the box, in shares of the picture."""
    source = str(file)
    rows: list[dict[str, Any]] = []
    text = check_utf8(content, source).decode("utf-8") if content else ""
    for k, line in enumerate(text.splitlines(), start=1):
        cells = line.split()
        if not cells:
            continue
        try:
            numbers = [parse_ascii_number(cell) for cell in cells[1:]]
        except ValueError:
            numbers = []
        is_polygon = len(numbers) >= 6 and len(numbers) % 2 == 0
        if len(numbers) != 4 and not is_polygon:
            raise TableError(
                "a line is not a box",
                expected="class, centre x and y, width, height (shares)",
                found=repr(line[:60]),
                where=format_location(source, k),
            )
        x, y, w, h = _compute_bounding_box_of_polygon(numbers) if is_polygon else numbers
        if not all(-0.5 <= number <= 1.5 for number in (x, y, w, h)):
            raise TableError(
                "a box is not in shares of its picture",
                expected="0 to 1",
                found=repr(line[:60]),
                where=format_location(source, k),
                hint="pixels are not YOLO's: write them as coco or a table",
            )
        rows.append(
            {
                "image_id": file.stem,
                "category": cells[0],
                "left": x - w / 2,
                "top": y - h / 2,
                "right": x + w / 2,
                "bottom": y + h / 2,
            }
        )
    side_schema = dict.fromkeys(("left", "top", "right", "bottom"), pl.Float64)
    return pl.DataFrame(rows, schema={"image_id": pl.String, "category": pl.String, **side_schema})


def _compute_bounding_box_of_polygon(points: list[float]) -> tuple[float, float, float, float]:
    xs, ys = points[::2], points[1::2]
    x_min, x_max, y_min, y_max = min(xs), max(xs), min(ys), max(ys)
    return (x_min + x_max) / 2, (y_min + y_max) / 2, x_max - x_min, y_max - y_min


def _read_class_names_by_number(
    folder: Path, requested_path: str | Path | None, inputs: Inputs
) -> dict[str, str]:
    """Give number to name, and the file that says so with its hash."""
    parents = (folder, folder.parent) if folder.name in ("labels", "train", "val") else (folder,)
    file = Path(requested_path).expanduser() if requested_path is not None else None
    for parent in parents if file is None else ():
        file = file or find_first_file_or_none(parent, _NAME_FILES)
    if file is None:
        return {}
    content = inputs.read(file)
    if file.suffix.lower() in (".yaml", ".yml"):
        names = read_mapping(file).get("names")
    else:
        names = [
            line.strip() for line in check_utf8(content, str(file)).decode("utf-8").splitlines()
        ]
        names = [name for name in names if name]
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict):
        raise FileError(
            "the names of classes cannot be read",
            expected="names: a list, or numbers and names",
            found=type(names).__name__,
            where=str(file),
        )
    return {str(k): str(v) for k, v in names.items()}


def _convert_yolo_classes_to_names(
    numbers: pl.Series, names: dict[str, str], source: str
) -> pl.Series:
    if not names:
        return numbers
    unknown = numbers.filter(~numbers.is_in(list(names)))
    if len(unknown):
        raise TableError(
            "a class has no name",
            expected="one of " + ", ".join(list(names)[:20]),
            found=repr(unknown[0]),
            where=source,
        )
    return numbers.replace_strict(names, return_dtype=pl.String)


def _check_all_images_have_sizes(ids: pl.Series, sized: pl.DataFrame, source: str) -> None:
    absent = ids.filter(~ids.is_in(sized["image_id"].implode()))
    if len(absent):
        raise FileError(
            f"the sizes of {len(absent):,} of {len(ids):,} pictures are not known",
            expected="a picture or a row for each label file, as boxes are shares of it",
            found=", ".join(map(repr, absent.head(3))),
            where=source,
            hint="name the folder of pictures or a table: --data-option sizes=PATH",
        )
