"""FHIBE: 10,318 photos of 1,981 people who consented, and what they say of themselves.

Xiang et al. (2025). Reads the processed CSV of the body or face release, or the JSON file of each
image. Age, pronouns, ancestry and natural colours are self-reported. A person may give several
answers; ancestry is nested (``NESTED_ATTRIBUTES``). Part polygons are the bulk of the data and are
read only when asked for.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError, format_location, refuse_unknown_names
from isolux.core.info import DatasetInfo
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._columns import BOX_COLUMNS, FACE_BOX_COLUMNS
from isolux.datasets._files import Inputs, build_recursive_patterns, find_first_file_or_none
from isolux.datasets._image_sizes import parse_pixel_counts
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import build_clustered_dataset
from isolux.datasets.fhibe.attributes import (
    build_fhibe_attributes,
    parse_box_cells,
    parse_keypoint_cells,
    parse_python_literal,
)
from isolux.datasets.fhibe.value_lists import (
    IMAGE_COLUMNS,
    KEYPOINTS,
    PERSON_COLUMNS,
    REGIONS,
    REQUIRED_COLUMNS,
)
from isolux.geometry.keypoints import COCO_KEYPOINTS
from isolux.io.hashing import sha256_file
from isolux.io.json_values import decode_json
from isolux.io.paths import resolve_inside
from isolux.io.refusals import refuse_cells

NESTED_ATTRIBUTES = {"ancestry": REGIONS}
"""Attribute to its nesting: broad answer to its parts, as ``Grouping.nested`` takes it."""

INFO = DatasetInfo(
    title="FHIBE",
    summary="10,318 photos of 1,981 consenting people; self-reported attributes, joints, parts.",
    references=(citations.FHIBE.with_location("Methods"),),
    licence="FHIBE's own terms of use: fairness evaluation and mitigation, after registration",
    training_allowed=False,
    training_terms="its terms allow the evaluation of fairness and the mitigation of bias only",
    withdrawal="people may withdraw their consent at any time; use the newest release",
    label_source="self-reported",
    terms=(
        ("pronoun", "self-reported pronouns"),
        ("ancestry", "self-reported ancestry"),
        ("ancestry_region", "self-reported ancestry, by region"),
        ("nationality", "self-reported nationality"),
        ("age", "self-reported age"),
        ("age_group", "self-reported age"),
        ("natural_skin_color", "self-reported natural skin colour (Fitzpatrick type)"),
        ("apparent_skin_color", "skin colour apparent in the photo (Fitzpatrick type)"),
    ),
    sibling_image_globs=("main_*.png", "faces_crop_and_align_*.png"),
    assumptions=(
        "people are independent of one another, photos of one person are not",
        "a person's answers hold for each of their photos",
    ),
)

_CSV_FILES = {
    "body": "fhibe_downsampled.csv",
    "face": "fhibe_face_crop_align.csv",
}
_COCO_KEYPOINT_INDICES = [
    [name.lower() for name in KEYPOINTS].index(name) for name in COCO_KEYPOINTS
]
_JSON_PATTERNS = {"body": "main_annos_*.json", "face": "faces_crop_and_align_annos_*.json"}


def load(
    path: str | Path,
    *,
    release: Literal["body", "face"] = "body",
    source: Literal["csv", "json"] | None = None,
    segments: bool = False,
    box: Literal["person", "face"] = "person",
    keypoint_set: Literal["fhibe", "coco"] = "fhibe",
) -> Dataset:
    r"""Load FHIBE.

    ``cluster`` of ``isolux.load`` may be ``subject`` (where not given), ``image``, ``row``, or
    a column.

    Parameters
    ----------
    path : str or Path
        The unpacked release, a folder in it, or its CSV.
    release : {"body", "face"}
        Whole photos, a row for each person in each; or aligned faces of 512 pixels.
    source : {"csv", "json"}, optional
        The processed CSV or the JSON file of each image; the CSV if there is one. The full-size
        release has JSON alone.
    segments : bool
        Keep each person's part polygons as text, which face parsing and segmentation read.
    box : {"person", "face"}
        Whose box ``box_x, …`` is: a detector is judged by it. ``face_box_x, …`` are there anyway.
    keypoint_set : {"fhibe", "coco"}
        All 33 keypoints in FHIBE's order, or COCO's 17 in COCO's, as models of poses have them.

    Returns
    -------
    Dataset
        ``instances``: ``<image>_<subject>``, ``subject_id``, the person's box and the face's in
        pixels, 33 keypoints, ``is_primary``. ``attributes`` of people: ``age`` (years, as
        ``number``), ``age_group``, ``pronoun``, ``ancestry``, ``ancestry_region``, skin colours
        as Fitzpatrick types (``number`` 1 to 6), …; of images: ``scene``, ``lighting``, …
        Answers stand without their number; free text is ``Not listed``.

    Raises
    ------
    FileError, TableError, UnknownNameError
        A row that is too short or long, a cell that is not a literal, an age below 18, a keypoint
        that FHIBE does not have; with row and column.

    Examples
    --------
    >>> import tempfile
    >>> columns = "image_id,filepath,json_path,subject_id,is_primary,image_height,image_width"
    >>> row = "i1,data/i1.png,data/i1.json,s1,True,64,48"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "fhibe_downsampled.csv"
    ...     ancestry = "\"['0. Africa', '2. Eastern Africa']\""
    ...     _ = file.write_text(f"{columns},age,ancestry\n{row},31,{ancestry}\n")
    ...     dataset = load(folder)
    >>> dataset.values_of("ancestry")["value"].to_list()
    ['Africa', 'Eastern Africa']
    >>> dataset.values_of("age_group")["value"].to_list()
    ['[30,40)']
    """
    check_literal_settings(load, release=release, source=source, box=box, keypoint_set=keypoint_set)
    root, inputs = Path(path).expanduser(), Inputs()
    all_rows, read_path = _read_fhibe_table_and_source(
        root, release, source, inputs, segments=segments
    )
    rows, withdrawn = _drop_people_without_consent(all_rows)
    people = _choose_box_and_keypoints(_build_fhibe_people(rows, read_path), box, keypoint_set)
    return build_clustered_dataset(
        "fhibe",
        INFO,
        instances=people,
        attributes=build_fhibe_attributes(rows, people, read_path),
        images=_build_fhibe_images(rows, read_path),
        inputs=inputs,
        source=read_path,
        notes=withdrawn,
        cluster="subject",
        clusters={"subject": "subject_id", "image": "image_id", "row": None},
    )


def _read_fhibe_table_and_source(
    root: Path, release: str, source: str | None, inputs: Inputs, *, segments: bool
) -> tuple[pl.DataFrame, str]:
    """Read the wide frame, and name the file or folder it came from."""
    name = _CSV_FILES[release]
    file = root if root.is_file() else find_first_file_or_none(root, build_recursive_patterns(name))
    if file is not None and source != "json" and file.suffix.lower() != ".json":
        frame = read_fhibe_csv(file, segments=segments)
        inputs[str(file)] = sha256_file(file)
        return frame, str(file)
    folder = root.parent if root.is_file() else root
    files = [root] if root.is_file() else sorted(root.glob(f"**/{_JSON_PATTERNS[release]}"))
    if not files or source == "csv" or not root.exists():
        raise FileError(
            "the folder holds no FHIBE annotations" if root.is_dir() else "there is no such file",
            expected=name if source == "csv" else f"{name} or {_JSON_PATTERNS[release]}",
            where=str(root),
        )
    return read_fhibe_json(files, folder, inputs, segments=segments), str(root)


def _drop_people_without_consent(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Leave out people whose consent the data say is withdrawn; how many, not whom."""
    if "consent" not in rows.columns:
        return rows, ()
    consenting = rows.filter(
        (pl.col("consent").str.to_lowercase() != "false").fill_null(value=True)
    )
    n = rows.height - consenting.height
    return consenting, (f"{n:,} row(s) of people without consent are left out.",) if n else ()


def _build_fhibe_people(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    for name in ("image_id", "subject_id"):
        refuse_cells(
            rows[name].is_null(), rows[name], f"a row has no {name}", "an id in every row", source
        )
    joined_ids = pl.format("{}_{}", "image_id", "subject_id")
    # The face release's image_id already ends with the subject's.
    has_subject_suffix = pl.col("image_id").str.ends_with(pl.format("_{}", "subject_id"))
    ids = rows.select(
        pl.when(has_subject_suffix)
        .then(pl.col("image_id"))
        .otherwise(joined_ids)
        .alias("instance_id"),
        "image_id",
        "subject_id",
        classes=pl.lit(["person"]),
        is_primary=pl.col("is_primary").str.to_lowercase() == "true",
        annotation_uri="json_path",
    )
    tables = [ids]
    for column, names in (("person_bbox", BOX_COLUMNS), ("face_bbox", FACE_BOX_COLUMNS)):
        cells = rows.get_column(column, default=_build_null_column(column, rows.height))
        box_table = parse_box_cells(cells, source, names)
        tables.append(check_box_columns(box_table, source, box_columns=names, field=column))
    if "keypoints" in rows.columns:
        tables.append(parse_keypoint_cells(rows["keypoints"], source))
    if "CelebA" in rows.columns:
        tables.append(rows.select(part_mask_uri=_find_combined_mask_files(rows["CelebA"], source)))
    if "segments" in rows.columns:
        tables.append(rows.select("segments"))
    return pl.concat(tables, how="horizontal").with_columns(area=pl.col("box_w") * pl.col("box_h"))


def _choose_box_and_keypoints(people: pl.DataFrame, box: str, keypoint_set: str) -> pl.DataFrame:
    """Put the face's box in the place of the person's, and COCO's keypoints in that of FHIBE's."""
    if box == "face":
        people = people.with_columns(
            *(
                pl.col(face_column).alias(box_column)
                for box_column, face_column in zip(BOX_COLUMNS, FACE_BOX_COLUMNS, strict=True)
            ),
            classes=pl.lit(["face"]),
            area=pl.col(FACE_BOX_COLUMNS[2]) * pl.col(FACE_BOX_COLUMNS[3]),
        )
    if keypoint_set == "coco" and "keypoints_x" in people.columns:
        columns = ("keypoints_x", "keypoints_y", "keypoints_v", "keypoint_names")
        people = people.with_columns(pl.col(c).list.gather(_COCO_KEYPOINT_INDICES) for c in columns)
    return people


def _build_null_column(name: str, height: int) -> pl.Series:
    return pl.Series(name, [None] * height, dtype=pl.String)


def _find_combined_mask_files(cells: pl.Series, source: str) -> pl.Series:
    """Find the mask with all parts in one picture among each face's mask files."""
    paths: list[str | None] = []
    for row, cell in enumerate(cells, start=1):
        try:
            mask_paths = parse_python_literal(cell) if cell is not None else []
            paths.append(
                next((str(p) for p in mask_paths if str(p).endswith("combined.png")), None)
            )
        except (ValueError, TypeError) as error:
            raise TableError(
                "a cell is not a list of mask files",
                found=repr(cell)[:80],
                where=format_location(source, row, "CelebA"),
            ) from error
    return pl.Series(paths, dtype=pl.String)


def _build_fhibe_images(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    size_columns = [
        parse_pixel_counts(
            rows[f"image_{dimension}"],
            dimension=dimension,
            source=source,
            column=f"image_{dimension}",
        )
        for dimension in ("width", "height")
    ]
    check_paths_stay_inside(rows["filepath"], source, "filepath")
    frame = rows.select("image_id", uri="filepath").with_columns(size_columns)
    return frame.unique("image_id", keep="first", maintain_order=True)


# FHIBE's two spellings, the processed CSV and a JSON file for each image, to one wide frame.

KEPT_COLUMNS = (
    *REQUIRED_COLUMNS,
    *IMAGE_COLUMNS,
    *PERSON_COLUMNS,
    "consent",
    "person_bbox",
    "face_bbox",
    "keypoints",
    "segments",
    "CelebA",
)
_MAX_CELL_LENGTH = 32 << 20  # characters


def read_fhibe_csv(path: Path, *, segments: bool) -> pl.DataFrame:
    """Read the processed CSV row by row: memory holds the columns kept, not the file."""
    source = str(path)
    with _raise_csv_field_size_limit(), path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        number = 0
        try:
            header = next(reader, [])
            columns = _find_column_indices_to_read(header, segments=segments, source=source)
            cells: list[list[str | None]] = [[] for _ in columns]
            for number, row in enumerate(reader, start=1):
                if len(row) != len(header):
                    raise _build_ragged_row_error(len(row), len(header), number, source)
                for column_cells, column_index in zip(cells, columns.values(), strict=True):
                    column_cells.append(row[column_index].strip("\0 ") or None)
        except UnicodeDecodeError as error:
            raise FileError("the file is not UTF-8 text", found=str(error), where=source) from error
        except csv.Error as error:
            raise FileError(
                "the table cannot be parsed",
                found=str(error),
                where=format_location(source, number + 1),
            ) from error
    if not number:
        raise FileError("the table has columns but no rows", where=source)
    return pl.DataFrame(
        dict(zip(columns, cells, strict=True)), schema=dict.fromkeys(columns, _STRING)
    )


_STRING = pl.String()


def _find_column_indices_to_read(
    header: list[str], *, segments: bool, source: str
) -> dict[str, int]:
    if not header:
        raise FileError("the file is empty", where=source)
    refuse_unknown_names("column", REQUIRED_COLUMNS, header, where=source)
    return {
        name: header.index(name)
        for name in dict.fromkeys(KEPT_COLUMNS)
        if name in header and (segments or name != "segments")
    }


def _build_ragged_row_error(n_cells: int, n_columns: int, row: int, source: str) -> FileError:
    return FileError(
        f"a row has {'fewer' if n_cells < n_columns else 'more'} cells than there are columns",
        expected=f"{n_columns} cells",
        found=str(n_cells),
        where=format_location(source, row),
        hint="the file may be cut off" if n_cells < n_columns else None,
    )


@contextmanager
def _raise_csv_field_size_limit() -> Iterator[None]:
    """Allow cells beyond 128 KiB, which polygons are, while this file is read."""
    old_limit = csv.field_size_limit(_MAX_CELL_LENGTH)
    try:
        yield
    finally:
        csv.field_size_limit(old_limit)


class _FhibeFile(msgspec.Struct):
    image_annotation: dict[str, Any]
    subject_annotation: list[dict[str, Any]]


def read_fhibe_json(
    files: list[Path], root: Path, inputs: Inputs, *, segments: bool
) -> pl.DataFrame:
    """Read the JSON file of each image; values are written as the CSV has them."""
    columns = [name for name in dict.fromkeys(KEPT_COLUMNS) if segments or name != "segments"]
    cells: dict[str, list[str | None]] = {name: [] for name in columns}
    for file in files:
        resolve_inside(root, file)
        annotations = decode_json(inputs.read(file), _FhibeFile, str(file))
        relative = file.relative_to(root).as_posix()
        stem = file.name.partition("annos_")[2].removesuffix(".json")
        file_values = {
            "image_id": stem,
            "json_path": relative,
            "filepath": relative.replace("annos_", "").removesuffix(".json") + ".png",
        }
        for person in annotations.subject_annotation:
            values = {"is_primary": True, **annotations.image_annotation, **person, **file_values}
            for name in columns:
                cells[name].append(_convert_json_to_csv_cell(values.get(name)))
    frame = pl.DataFrame(cells, schema=dict.fromkeys(columns, _STRING))
    absent = [n for n in columns if n not in REQUIRED_COLUMNS and frame[n].is_null().all()]
    return frame.drop(absent)


def _convert_json_to_csv_cell(json_value: Any) -> str | None:
    if json_value is None:
        return None
    return (json_value.strip("\0 ") if isinstance(json_value, str) else repr(json_value)) or None
