"""Open Images MIAP: every person in 100,000 images, with perceived gender and age presentation.

Schumann et al. (2021). Reads ``open_images_extended_miap_boxes_<split>.csv``, whose sides are parts
of the image, or the list in pixels that Fairness Indicators' code makes of it. Sizes of images are
not published with it: they come from a table or the pictures' headers (``sizes``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._files import (
    Inputs,
    build_recursive_patterns,
    find_first_file_or_none,
    find_single_file,
)
from isolux.datasets._image_sizes import add_image_sizes_or_nulls
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import (
    build_clustered_dataset,
    left_join_in_order,
    melt_columns_to_attribute_rows,
)
from isolux.io.cell_parsing import as_numbers, as_text
from isolux.io.ids import read_ids, reduce_ids
from isolux.io.json_values import decode_json
from isolux.io.refusals import refuse_cells, require_columns
from isolux.io.text import check_utf8

_ATTRIBUTES = ("gender_presentation", "age_presentation")

INFO = DatasetInfo(
    title="Open Images MIAP",
    summary="454,000 boxes of people in 100,000 images; perceived gender and age presentation.",
    references=(
        Reference(
            key="miap",
            citation="Schumann, C., Ricco, S., Prabhu, U., Ferrari, V., & Pantofaru, C. (2021). A"
            " step toward more inclusive people annotations for fairness. In Proceedings of the"
            " AAAI/ACM Conference on AI, Ethics, and Society (AIES) (pp. 916–925).",
            url="https://storage.googleapis.com/openimages/web/extended.html",
        ),
    ),
    licence="annotations CC BY 4.0; images CC BY 2.0",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="perceived",
    terms=(
        ("gender_presentation", "perceived gender presentation"),
        ("age_presentation", "perceived age presentation"),
        ("is_occluded", "marked as occluded"),
        ("is_truncated", "marked as cut off by the image's edge"),
        ("is_group_of", "marked as a box around a group"),
        ("is_depiction_of", "marked as a drawing or a statue"),
        ("is_inside_of", "marked as seen from inside"),
    ),
    assumptions=(
        "images are independent of one another, people in one image are not",
        "the groups come from annotators' judgements, not from what people say about themselves",
        "everyone in an image is annotated, or covered by a box around a group",
    ),
)
GENDERS = ("Predominantly Feminine", "Predominantly Masculine", "Unknown")
AGES = ("Young", "Middle", "Older", "Unknown")
SIDE_COLUMNS = ("XMin", "XMax", "YMin", "YMax")
FLAG_COLUMNS = {
    "is_occluded": ("IsOccluded",),
    "is_truncated": ("IsTruncated",),
    "is_group_of": ("IsGroupOf",),
    "is_depiction_of": ("IsDepictionOf",),
    "is_inside_of": ("IsInsideOf", "IsInside"),
}
_FLAG_WORDS = {"1": True, "0": False, "-1": None}  # Open Images writes -1 for "not known"
_COUNT_SUFFIX = " ({n} in all)"
_PERSON = "/m/01g317"
_SIDE_TOLERANCE = 1e-6  # of the image: sides are written with six decimals


def load(
    path: str | Path,
    *,
    split: Literal["train", "val", "test"] = "test",
    sizes: str | Path | None = None,
    min_side: float = 0.0,
) -> Dataset:
    r"""Load MIAP.

    Fairness Indicators (appendix B.2) takes ``min_side=100`` of the test split.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        The CSV (or Fairness Indicators' JSON list), or the folder that holds the CSV and perhaps
        ``open_images_extended_miap_images_<split>.lst``.
    split : {"train", "val", "test"}
        The part of the release, as in the files' names.
    sizes : str or Path, optional
        Where image sizes come from: a table with ``image_id``, ``width`` and ``height``, or the
        folder of the images, whose headers are read. Not given: boxes are null, as sides are
        published as parts of the image. The JSON list holds pixels and needs none.
    min_side : float
        Leave out boxes of which a side is shorter, in pixels; needs ``sizes``.

    Returns
    -------
    Dataset
        ``instances``: a box, ``<image>#<place among the image's boxes from 0>``, in pixels where
        sizes are known; ``is_crowd`` and ``ignore`` for a group; ``judged``. ``attributes``:
        ``gender_presentation``, ``age_presentation`` (``Unknown`` is a value), ``is_occluded``,
        ``is_truncated``, ``is_group_of``, ``is_depiction_of``, ``is_inside_of`` (null: not known).

    Raises
    ------
    FileError, TableError, UnknownNameError
        A damaged file, a side outside the image, sides that are swapped, a word or flag that MIAP
        does not have; with the row.
    SpecError
        ``min_side`` without sizes.

    Examples
    --------
    >>> import tempfile
    >>> columns = "ImageID,XMin,XMax,YMin,YMax,GenderPresentation,AgePresentation"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = Path(folder)
    ...     _ = (root / "boxes.csv").write_text(f"{columns}\na1,0.5,0.75,0,1,Unknown,Older\n")
    ...     _ = (root / "sizes.csv").write_text("image_id,width,height\na1,400,300\n")
    ...     people = load(root / "boxes.csv", sizes=root / "sizes.csv").instances
    >>> people.select("instance_id", "box_x", "box_y", "box_w", "box_h").row(0)
    ('a1#0', 200.0, 0.0, 100.0, 300.0)
    """
    check_literal_settings(load, split=split)
    name = f"open_images_extended_miap_boxes_{split}.csv"
    file = find_single_file(path, build_recursive_patterns(name), "MIAP boxes")
    inputs, source = Inputs(), str(file)
    all_boxes, images = _read_boxes_and_images(file, split, sizes, inputs)
    if min_side > 0 and all_boxes["box_w"].is_null().all() and all_boxes.height:
        raise SpecError(
            "boxes cannot be told apart by pixels, because no image has a known size",
            expected="sizes, a table of image_id, width and height or the folder of the images",
            found=f"min_side={min_side:g}",
            where=source,
            hint="name them with --data-option sizes=PATH (sizes=PATH)",
        )
    boxes, drop_notes = _drop_small_boxes(all_boxes, min_side)
    crowd = pl.col("is_group_of").fill_null(value=False)
    return build_clustered_dataset(
        "miap",
        INFO,
        instances=boxes.select(
            "instance_id",
            "image_id",
            *BOX_COLUMNS,
            area=pl.col("box_w") * pl.col("box_h"),
            is_crowd=crowd,
            ignore=crowd,
            judged=pl.lit(value=True),
            classes=pl.lit(["person"]),
        ),
        attributes=melt_columns_to_attribute_rows(
            boxes, "instance_id", (*_ATTRIBUTES, *FLAG_COLUMNS)
        ),
        images=images,
        inputs=inputs,
        source=source,
        notes=(*_note_images_without_size(all_boxes, images), *drop_notes),
        cluster="image",
        clusters={"image": "image_id", "row": None},
    )


def _read_boxes_and_images(
    file: Path, split: str, sizes: str | Path | None, inputs: Inputs
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the boxes, in pixels where the sizes of images are known, and the images."""
    source, pixels = str(file), file.suffix.lower() == ".json"
    if pixels:
        rows = read_miap_json(inputs.read(file), source)
    else:
        rows = read_miap_rows(inputs.read_table(file), source)
    check_paths_stay_inside(rows["image_id"], source, "ImageID")
    images = rows.select("image_id").unique(maintain_order=True)
    image_list = find_first_file_or_none(
        file.parent, (f"open_images_extended_miap_images_{split}.lst",)
    )
    if image_list is not None and not pixels:
        lines = check_utf8(inputs.read(image_list), str(image_list)).decode("utf-8").split()
        images = pl.concat([images, pl.DataFrame({"image_id": lines})]).unique(maintain_order=True)
    images = add_image_sizes_or_nulls(images, sizes, inputs).with_columns(
        pl.col("uri").fill_null(pl.format("{}.jpg", "image_id"))
    )
    return check_box_columns(
        _convert_sides_to_pixel_boxes(rows, images, pixels=pixels), source
    ), images


def _convert_sides_to_pixel_boxes(
    rows: pl.DataFrame, images: pl.DataFrame, *, pixels: bool
) -> pl.DataFrame:
    sized = left_join_in_order(rows, images.select("image_id", "width", "height"), "image_id")
    wide, high = (pl.lit(1.0), pl.lit(1.0)) if pixels else (pl.col("width"), pl.col("height"))
    number = pl.int_range(pl.len()).over("image_id")
    return sized.with_columns(
        instance_id=pl.format("{}#{}", "image_id", number),
        box_x=pl.col("left") * wide,
        box_y=pl.col("top") * high,
        box_w=(pl.col("right") - pl.col("left")) * wide,
        box_h=(pl.col("bottom") - pl.col("top")) * high,
    )


def _note_images_without_size(boxes: pl.DataFrame, images: pl.DataFrame) -> tuple[str, ...]:
    n_without_size = boxes["box_w"].null_count()
    if not n_without_size:
        return ()
    n = images.filter(pl.col("width").is_null()).height
    note = (
        f"The sizes of {n:,} of {images.height:,} images are not known, so {n_without_size:,} boxes"
        " have no place in pixels; sizes (a table, or the folder of the images) gives them."
    )
    return (note,)


def _drop_small_boxes(boxes: pl.DataFrame, min_side: float) -> tuple[pl.DataFrame, list[str]]:
    """Leave out boxes with a shorter side, and say how many for which reason."""
    has_no_size = boxes["box_w"].is_null() & (min_side > 0)
    is_small = ((boxes["box_w"] < min_side) | (boxes["box_h"] < min_side)).fill_null(value=False)
    if not (has_no_size | is_small).any():
        return boxes, []
    counts = {
        f"a side is shorter than {min_side:g} pixels": int(is_small.sum()),
        "its image's size is not known": int(has_no_size.sum()),
    }
    reason_list = ", ".join(f"{n:,} as {reason}" for reason, n in counts.items() if n)
    large_boxes = boxes.filter(~(has_no_size | is_small))
    n_dropped = boxes.height - large_boxes.height
    note = (
        f"{n_dropped:,} of {boxes.height:,} boxes are left out: {reason_list}"
        " (a box may have several)."
    )
    return large_boxes, [note]


class _MiapRow(msgspec.Struct, gc=False):
    path: str
    bbox: tuple[float | str, float | str, float | str, float | str]
    GenderPresentation: str | None = None
    AgePresentation: str | None = None
    LabelName: str | None = _PERSON
    IsOccluded: int | str | None = None
    IsTruncated: int | str | None = None
    IsGroupOf: int | str | None = None
    IsDepictionOf: int | str | None = None
    IsInsideOf: int | str | None = None


def read_miap_rows(table: pl.DataFrame, source: str) -> pl.DataFrame:
    """Read the rows of the CSV."""
    require_columns(
        table, ("ImageID", *SIDE_COLUMNS, "GenderPresentation", "AgePresentation"), source
    )
    edges = [as_numbers(table[name], source=source, column=name) for name in SIDE_COLUMNS]
    for edge in edges:
        bad = ~edge.is_between(-_SIDE_TOLERANCE, 1 + _SIDE_TOLERANCE).fill_null(value=False)
        refuse_cells(
            bad, table[edge.name], "a side is outside the image" + _COUNT_SUFFIX, "0 to 1", source
        )
    box = _check_box_sides(edges, source)
    return pl.DataFrame([read_ids(table, "ImageID", source).alias("image_id"), *box]).hstack(
        _read_miap_labels(table, source)
    )


def read_miap_json(content: bytes, source: str) -> pl.DataFrame:
    """Read Fairness Indicators' list: as ``read_miap_rows``, but sides are pixels."""
    rows = decode_json(content, list[_MiapRow], source)
    names = [name for name in _MiapRow.__struct_fields__ if name not in ("path", "bbox")]
    table = pl.DataFrame(
        {
            "path": pl.Series([row.path for row in rows], dtype=pl.String),
            **{
                f"bbox[{i}]": pl.Series([str(row.bbox[i]) for row in rows], dtype=pl.String)
                for i in range(4)
            },
            **{
                name: pl.Series(
                    [None if (v := getattr(row, name)) is None else str(v) for row in rows],
                    dtype=pl.String,
                )
                for name in names
            },
        }
    )
    order = ("bbox[0]", "bbox[2]", "bbox[1]", "bbox[3]")
    edges = [as_numbers(table[name], source=source, column=name) for name in order]
    for edge in edges:
        finite = edge.is_finite().fill_null(value=False)
        problem = "a side is not a number of pixels" + _COUNT_SUFFIX
        refuse_cells(~finite, table[edge.name], problem, "such as 31.5", source)
    ids = reduce_ids(read_ids(table, "path", source), "stem").alias("image_id")
    return pl.DataFrame([ids, *_check_box_sides(edges, source)]).hstack(
        _read_miap_labels(table, source)
    )


def _check_box_sides(edges: list[pl.Series], source: str) -> list[pl.Series]:
    x_min, x_max, y_min, y_max = edges
    for low, high in ((x_min, x_max), (y_min, y_max)):
        expected = f"{low.name} up to {high.name}; the CSV has the order {', '.join(SIDE_COLUMNS)}"
        pairs = pl.DataFrame([low, high]).select(pl.concat_list(low.name, high.name))
        cells = pairs.to_series().alias(high.name)
        refuse_cells(
            high < low, cells, "a box's sides are swapped" + _COUNT_SUFFIX, expected, source
        )
    names = ("left", "right", "top", "bottom")
    return [edge.alias(name) for edge, name in zip(edges, names, strict=True)]


def _read_miap_labels(table: pl.DataFrame, source: str) -> pl.DataFrame:
    if "LabelName" in table.columns:
        label = as_text(table["LabelName"])
        refuse_cells(
            label != _PERSON, label, "a box is of no person" + _COUNT_SUFFIX, _PERSON, source
        )
    label_columns = []
    for name, columns in FLAG_COLUMNS.items():
        column = next((c for c in columns if c in table.columns), None)
        cells = (
            pl.Series([None] * table.height, dtype=pl.String)
            if column is None
            else as_text(table[column])
        )
        is_unknown_word = ~cells.is_in(list(_FLAG_WORDS)).fill_null(value=True)
        problem = "a flag is neither set nor unset" + _COUNT_SUFFIX
        refuse_cells(is_unknown_word, cells, problem, "1, 0 or -1", source)
        label_columns.append(cells.replace_strict(_FLAG_WORDS, return_dtype=pl.Boolean).alias(name))
    for name, column, words in (
        ("gender_presentation", "GenderPresentation", GENDERS),
        ("age_presentation", "AgePresentation", AGES),
    ):
        cells = as_text(table[column])
        is_unknown_word = ~cells.is_in(words).fill_null(value=True)
        problem = "a word that MIAP does not have" + _COUNT_SUFFIX
        refuse_cells(is_unknown_word, cells, problem, ", ".join(words), source)
        label_columns.append(cells.alias(name))
    return pl.DataFrame(label_columns)
