"""Annotated and predicted parts of faces, with one face in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, JoinError, SpecError, TableError, format_location
from isolux.core.tables import INSTANCES, PART_MASK_FILES, check, to_polars
from isolux.geometry.body_parts import (
    PersonParts,
    check_image_size,
    image_sizes,
    list_part_names,
    read_part_masks,
    read_part_polygons,
)
from isolux.geometry.masks import Masks
from isolux.io.paths import resolve_inside
from isolux.tasks._ids import refuse_no_match
from isolux.tasks.face_parsing.part_images import Size, read_label_image, read_part_image
from isolux.tasks.face_parsing.part_names import BACKGROUND, COMBINED, LABELS, PartVocabulary

Source = Literal["picture", "masks", "polygons", "files"]
FilesByModel = dict[str, dict[int, list[tuple[str, str, int]]]]
IntArray = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
COLUMNS: dict[Source, str] = {
    "picture": "part_mask_uri",
    "masks": "part_masks",
    "polygons": "segments",
    "files": "part_mask_files",
}


@dataclass(frozen=True, slots=True)
class PartAnnotations:
    """The annotated parts of faces: which column, and where its files are.

    Parameters
    ----------
    rows : polars.DataFrame
        Instances with ``height`` and ``width`` of their images, and ``reason``: why a face is not
        scored, null for the others.
    source : {"picture", "masks", "polygons", "files"}
    root : Path or None
        Of label or part images: the folder that their paths start from.
    name : str
        The dataset's, for errors.
    """

    rows: pl.DataFrame
    source: Source
    root: Path | None
    name: str

    @property
    def column(self) -> str:
        """The column of instances that holds the parts."""
        return COLUMNS[self.source]

    @property
    def part_names(self) -> list[str] | None:
        """Names of the annotated parts; None for label images, which have numbers."""
        if not self.rows.height:
            return []
        if self.source == "picture":
            return None
        names = list_part_names(self.rows[self.column])
        # CelebAMask-HQ has no file of a part that a face lacks: its full list of parts applies.
        is_celeba = self.source == "files" and set(names) <= set(LABELS)
        return sorted({*names, *LABELS[1:]}) if is_celeba else names


@dataclass(frozen=True, slots=True)
class PartPixelCounts:
    """Pixels of each part: ``truth [n, K + 1]``, and ``predicted_px`` and ``common_px`` of a model.

    ``missed [n]``: the model has no mask of this face.
    """

    truth_px: IntArray
    predicted_px: IntArray
    common_px: IntArray
    is_missed: npt.NDArray[np.bool_]


def find_part_annotations(
    dataset: Dataset, rows: pl.DataFrame, source: Source | None, root: str | Path | None
) -> PartAnnotations:
    """Find the annotated parts: in the requested column, else in the first that has any."""
    requested: Sequence[Source] = [source] if source else list(COLUMNS)
    available_sources = [
        s for s in requested if COLUMNS[s] in rows.columns and rows[COLUMNS[s]].count()
    ]
    if rows.height and not available_sources:
        raise SpecError(
            "no face in the dataset has annotated parts",
            expected="instances with " + " or ".join(COLUMNS[s] for s in requested),
            found="nothing but nulls",
            where=dataset.name,
            hint="FHIBE's are loaded by release='face', its polygons by segments=True",
        )
    selected_source = (available_sources or ["picture"])[0]
    sized_rows = pl.concat(
        [rows.drop("height", "width", strict=False), image_sizes(dataset, rows)], how="horizontal"
    )
    null_columns = [pl.lit(None).alias(c) for c in COLUMNS.values() if c not in sized_rows.columns]
    root_dir = None
    if selected_source in ("picture", "files") and rows.height:
        root_dir = _find_root(
            dataset, rows[COLUMNS[selected_source]], root, COLUMNS[selected_source]
        )
    return PartAnnotations(
        sized_rows.with_columns(null_columns), selected_source, root_dir, dataset.name
    )


def _find_root(dataset: Dataset, cells: pl.Series, root: str | Path | None, column: str) -> Path:
    """Return the given folder, or the nearest above the dataset's files that has the first path."""
    if root is not None:
        return Path(root).expanduser()
    paths = cells.drop_nulls()
    if paths.dtype != pl.String:
        paths = paths.explode().drop_nulls().struct.field("uri")
    first_path = str(paths[0]) if len(paths) else ""
    for file in dataset.inputs:
        for folder in Path(file).expanduser().resolve().parents:
            # The nearest folder in which the first path exists; absolute paths need the root to be
            # named.
            if not Path(first_path).is_absolute() and (folder / first_path).is_file():
                return folder
    raise FileError(
        "the pictures of the annotated parts are nowhere",
        expected="root, the folder that their paths start from",
        found=repr(first_path),
        where=format_location(dataset.name, None, column),
    )


def add_face_reasons(dataset: Dataset) -> pl.DataFrame:
    """Return the instances with the reason of those that are not scored."""
    rows = INSTANCES.conform(dataset.instances)
    reason_by_flag = {
        "is_crowd": (False, "a crowd, not one person"),
        "ignore": (False, "marked to be ignored"),
        "judged": (True, "takes part in matching only"),
    }
    # As in detection: crowds and ignored people are not scored.
    reason = [
        pl.when((pl.col(flag) != usual_value).fill_null(value=False)).then(pl.lit(reason_text))
        for flag, (usual_value, reason_text) in reason_by_flag.items()
        if flag in rows.columns
    ]
    return rows.with_columns(reason=pl.coalesce(*reason, pl.lit(None, dtype=pl.String)))


def join_files_to_faces(
    predictions: object, rows: pl.DataFrame
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Join each file to its face: by instance id, else by the id of an image with one face."""
    file_rows = to_polars(predictions)
    if {"instance_id", "uri"} <= set(file_rows.columns):
        raise SpecError(
            "the answers are pictures of people, and face parsing judges pictures of parts",
            expected="label pictures or a picture for each part",
            found=f"such as {file_rows['uri'].head(1).to_list()}",
            hint="--format part_masks reads these files as parts",
        )
    file_rows = check(file_rows, PART_MASK_FILES, source="predictions")
    file_rows = file_rows.select("model", "image_id", "part", "uri").with_row_index("file_row")
    faces = rows.select("image_id", "instance_id", row=pl.int_range(pl.len(), dtype=pl.Int64))
    by_instance = faces.select("row", image_id="instance_id")
    by_image = faces.group_by("image_id").agg(row_image=pl.col("row").first(), n=pl.len())
    matched_rows = file_rows
    # An instance id goes first: it is exact also where an image has several faces.
    for lookup in (by_instance, by_image):
        matched_rows = matched_rows.join(lookup, on="image_id", how="left", maintain_order="left")
    ambiguous_rows = matched_rows.filter(pl.col("row").is_null(), pl.col("n") > 1)
    # Giving one file to all faces of an image would compare most faces with another's mask.
    if ambiguous_rows.height:
        raise JoinError(
            "part masks do not say which face of their image they are of",
            expected="the id of an instance, or of an image with one face",
            found=f"{ambiguous_rows['image_id'][0]!r}, an image of {ambiguous_rows['n'][0]} faces",
            where=f"predictions, row {ambiguous_rows['file_row'][0] + 1}",
        )
    matched_files = matched_rows.with_columns(row=pl.coalesce("row", "row_image")).drop_nulls("row")
    refuse_no_match(
        "no part mask is of a face of the dataset",
        file_rows["image_id"],
        rows["image_id"],
        n_matched=matched_files.height,
        expected="image ids such as ",
        source=None,
    )
    n_excluded = file_rows.height - matched_files.height
    note = f"{n_excluded:,} part masks are of images that the dataset has not; they were left out."
    return matched_files, (note,) if n_excluded else ()


def group_files_by_face(files: pl.DataFrame, models: Sequence[str]) -> FilesByModel:
    """Group files by model and face: part, path, and row of the predictions."""
    files_by_model: FilesByModel = {name: {} for name in models}
    columns = files.select("model", "row", "part", "uri", "file_row")
    for name, row, part_name, uri, row_number in columns.iter_rows():
        files_by_model[name].setdefault(row, []).append(
            (part_name, str(Path(uri).expanduser()), row_number)
        )
    return files_by_model


def count_pixels(
    truth: PartAnnotations,
    files_by_model: FilesByModel,
    vocabulary: PartVocabulary,
    *,
    last_wins: bool,
) -> dict[str, PartPixelCounts]:
    """Count the pixels of each part in the annotation and in every model's masks, face by face."""
    from isolux.tasks.face_parsing.part_kernels import count_part_pixels, finalise_bits

    shape = truth.rows.height, len(vocabulary.names) + 1
    pixels = np.zeros(shape, np.int64)
    counts_by_model = {
        model: PartPixelCounts(
            pixels,
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            # Missed until a file is read: a face without any file scores 0.
            np.ones(shape[0], dtype=np.bool_),
        )
        for model in files_by_model
    }
    columns = ["instance_id", "image_id", "height", "width", "reason", truth.column]
    # The kernel counts truth and prediction; for the annotation alone the other counts are
    # discarded.
    unused = np.zeros((2, shape[1]), np.int64)
    for row, face in enumerate(truth.rows.select(columns).iter_rows(named=True)):
        # Faces that are not scored are not read, which also skips their damaged files.
        if not face[truth.column] or face["reason"] is not None:
            continue
        bits, size = _paint_annotation(truth, row, face, vocabulary)
        finalise_bits(bits, last_wins)
        count_part_pixels(bits, bits, pixels[row], *unused)
        for model, model_files in files_by_model.items():
            files = model_files.get(row)
            if not files:
                continue
            predicted_bits = _paint_predictions(files, vocabulary, size)
            finalise_bits(predicted_bits, last_wins)
            counts = counts_by_model[model]
            counts.is_missed[row] = False
            # The annotation's area is counted again with each model, and must not be added again.
            repeated_area = np.zeros(shape[1], np.int64)
            count_part_pixels(
                bits, predicted_bits, repeated_area, counts.predicted_px[row], counts.common_px[row]
            )
    return counts_by_model


def _paint_annotation(
    truth: PartAnnotations, row: int, face: Mapping[str, Any], vocabulary: PartVocabulary
) -> tuple[Bits, Size]:
    """Paint the annotation of one face, in the size of the image or else of its masks."""
    source = format_location(
        f"{truth.name}, instance {face['instance_id']!r}", row + 1, truth.column
    )
    image_size = (
        None if None in (face["height"], face["width"]) else (face["height"], face["width"])
    )
    cell = face[truth.column]
    if truth.source == "picture":
        # Refuses paths that lead out of the folder, since a dataset's table is input from outside.
        path = resolve_inside(truth.root or Path(), cell)
        numbers = read_label_image(path, image_size, f"{path}, of {source}")
        bits = np.zeros(numbers.size, np.uint64)
        _paint_labels(bits, numbers, vocabulary.of_truth, f"{path}, of {source}")
        return bits, (numbers.shape[0], numbers.shape[1])
    if truth.source == "files":
        return _paint_files(cell, truth.root or Path(), image_size, vocabulary, source)
    if truth.source == "masks":
        part_masks = read_part_masks(cell, source)
    else:
        height, width = check_image_size(face["height"], face["width"], face["image_id"], source)
        part_masks = read_part_polygons(cell, height, width, source)
    return _paint_parts(part_masks, image_size, vocabulary, source)


def _paint_files(
    cell: Sequence[Mapping[str, str]],
    root: Path,
    image_size: Size | None,
    vocabulary: PartVocabulary,
    source: str | None,
) -> tuple[Bits, Size]:
    """Paint the image of each part; an unknown size is that of the first image."""
    from isolux.tasks.face_parsing.part_kernels import paint

    index_by_name = {name: k for k, name in enumerate(vocabulary.names, start=1)}
    size, bits = image_size, np.zeros(0, np.uint64)
    for part_file in cell:
        path = resolve_inside(root, part_file["uri"])
        picture = np.ascontiguousarray(read_part_image(path, size, f"{path}, of {source}"))
        if not bits.size:
            size = (picture.shape[0], picture.shape[1])
            bits = np.zeros(picture.size, np.uint64)
        # The background is computed as what no part covers, so that both sides mean the same.
        if part_file["part"] != BACKGROUND:
            paint(bits, picture.ravel(), 1 << index_by_name[part_file["part"]])
    return bits, size or (1, 1)


def _paint_parts(
    part_masks: PersonParts, image_size: Size | None, vocabulary: PartVocabulary, source: str | None
) -> tuple[Bits, Size]:
    from isolux.tasks.face_parsing.part_kernels import paint_runs

    masks = part_masks.masks
    # An unknown image size is taken from the masks, which must agree among themselves.
    size = image_size or ((int(masks.height[0]), int(masks.width[0])) if len(masks) else (1, 1))
    _check_mask_sizes(masks, size, source)
    bits = np.zeros(size[0] * size[1], np.uint64)
    index_by_name = {name: k for k, name in enumerate(vocabulary.names, start=1)}
    for k, name in enumerate(part_masks.names):
        if name != BACKGROUND:
            edges = masks.edges[masks.starts[k] : masks.starts[k + 1]]
            paint_runs(bits, edges, *size, 1 << index_by_name[name])
    return bits, size


def _check_mask_sizes(masks: Masks, size: Size, source: str | None) -> None:
    # Resizing a mask would move its outline, and with it F1 of small parts.
    differs = (masks.height != size[0]) | (masks.width != size[1])
    if differs.any():
        k = int(np.argmax(differs))
        raise TableError(
            "a mask has another size than its image",
            expected=f"{size[0]} × {size[1]} (height × width)",
            found=f"{masks.height[k]} × {masks.width[k]}",
            where=source,
        )


def _paint_predictions(
    files: Sequence[tuple[str, str, int]], vocabulary: PartVocabulary, size: Size
) -> Bits:
    """Paint one model's masks of one face; a label image takes precedence over part images."""
    from isolux.tasks.face_parsing.part_kernels import paint

    bits = np.zeros(size[0] * size[1], np.uint64)
    # Files of both kinds describe the same parts; where they disagree, painting both would unite
    # them.
    label_pictures = [file for file in files if file[0] == COMBINED]
    for part_name, path, row in label_pictures or files:
        source = format_location(path, row + 1, "uri")
        if part_name == COMBINED:
            _paint_labels(bits, read_label_image(path, size, source), vocabulary.of_labels, source)
        elif vocabulary.number_of[part_name]:  # the background is what no part covers
            picture = np.ascontiguousarray(read_part_image(path, size, source)).ravel()
            paint(bits, picture, 1 << vocabulary.number_of[part_name])
    return bits


def _paint_labels(
    bits: Bits, numbers: npt.NDArray[np.uint8], part_indices: Sequence[int], source: str | None
) -> None:
    from isolux.tasks.face_parsing.part_kernels import paint_labels

    # A number without a bit stays 0, by which the kernel recognises it.
    bit_of = np.zeros(256, np.uint64)
    bit_of[: len(part_indices)] = np.uint64(1) << np.array(part_indices, np.uint64)
    unknown = paint_labels(bits, np.ascontiguousarray(numbers).ravel(), bit_of)
    if unknown >= 0:
        raise FileError(
            "a label picture holds a number that means no part",
            expected=f"0 to {len(part_indices) - 1}, a number for each of labels",
            found=str(unknown),
            where=source,
            hint="labels names what the numbers mean, from 0",
        )
