"""Masks of people's body parts: from table columns to run lengths, and to masks of people.

``part_masks`` has run lengths, ``segments`` polygons as text, as in FHIBE's files. FHIBE has no
mask of a whole person: it is the union of all parts (Xiang et al., 2025), bags and clothes
included. Their tool fills polygons with OpenCV, from corners truncated to whole pixels; here they
are filled as COCO does, so outlines differ by up to a pixel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError, format_location, refuse_unknown_names
from isolux.core.tables import IMAGES, INSTANCES
from isolux.geometry.masks import (
    Masks,
    masks_from_coco,
    masks_from_counts,
    masks_to_coco,
    union_of_parts,
)

# FHIBE numbers its parts ("0. Face skin"); the number is not part of the name.
_LEADING_NUMBER = re.compile(r"^[0-9]+\.\s*")
# Names alone are read by pattern: parsing all polygons takes far longer.
_CLASS_NAME_PATTERN = r"""['"]class_name['"]\s*:\s*['"]([^'"]*)['"]"""
# Longer texts of one person's polygons are refused.
_MAX_CELL_CHARACTERS = 20_000_000
# FHIBE stores segments as the text of a Python literal, not as JSON.
_EXPECTED_POLYGONS = "[{'class_name': '0. Face skin', 'polygon': [{'x': …, 'y': …}, …]}, …]"
_MASK_SCHEMA = {"mask_counts": pl.String(), "mask_height": pl.Int64(), "mask_width": pl.Int64()}


@dataclass(frozen=True, slots=True)
class PersonParts:
    """The parts of one person: a name for each mask; a name may occur twice."""

    names: tuple[str, ...]
    masks: Masks


class _FhibePoint(msgspec.Struct):
    x: float
    y: float


class _FhibeSegment(msgspec.Struct):
    class_name: str
    polygon: list[_FhibePoint]


def image_sizes(dataset: Dataset, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the ``height`` and ``width`` of each row's image, null where unknown."""
    return (
        rows.select("image_id")
        .join(
            IMAGES.conform(dataset.images).select("image_id", "height", "width"),
            on="image_id",
            how="left",
            maintain_order="left",
        )
        .select("height", "width")
    )


def list_part_names(column: pl.Series) -> list[str]:
    """List the parts in ``part_masks`` or ``segments``, sorted, without filling any mask."""
    cells = column.drop_nulls()
    if not len(cells):
        return []
    if cells.dtype == pl.String:
        names = cells.str.extract_all(_CLASS_NAME_PATTERN).explode().drop_nulls().unique()
        names = names.str.extract(_CLASS_NAME_PATTERN, 1).str.replace(_LEADING_NUMBER.pattern, "")
    else:
        names = cells.explode().drop_nulls().struct.field("part")
    return sorted(names.drop_nulls().unique().to_list())


def read_part_masks(entries: Sequence[dict[str, Any]], source: str | None) -> PersonParts:
    """Read one person's ``part_masks``: run lengths with a part, a height and a width each."""
    sizes = (
        np.array([entry[dimension] for entry in entries], np.int64)
        for dimension in ("height", "width")
    )
    counts = pl.Series([entry["counts"] for entry in entries], dtype=pl.String)
    names = tuple(str(entry["part"]) for entry in entries)
    return PersonParts(names, masks_from_counts(counts, *sizes, file=source))


def read_part_polygons(cell: str, height: int, width: int, source: str | None) -> PersonParts:
    """Fill one person's ``segments``; all polygons of a part form one mask."""
    polygons_by_part = _parse_polygons(cell, source)
    sizes = (np.full(len(polygons_by_part), side_px, np.int64) for side_px in (height, width))
    return PersonParts(
        tuple(polygons_by_part),
        masks_from_coco(list(polygons_by_part.values()), *sizes, file=source),
    )


def _parse_polygons(cell: str, source: str | None) -> dict[str, list[list[float]]]:
    """Parse the polygons of each part, as lists of x and y; fewer than three points are none."""
    polygons_by_part: dict[str, list[list[float]]] = {}
    for segment in _parse_segments(cell, source):
        # Fewer than three points enclose nothing.
        if len(segment.polygon) > 2:
            name = _LEADING_NUMBER.sub("", segment.class_name.strip())
            # A part may consist of several polygons, such as hair on both sides of a face.
            polygons_by_part.setdefault(name, []).append(
                [v for p in segment.polygon for v in (p.x, p.y)]
            )
    return polygons_by_part


def _parse_segments(cell: str, source: str | None) -> list[_FhibeSegment]:
    """Parse the text of a Python literal, as JSON where that works."""
    problem = f"{len(cell):,} characters"
    if len(cell) <= _MAX_CELL_CHARACTERS:
        try:
            # The JSON parser is far faster; only names with an apostrophe need Python's.
            with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                return msgspec.json.decode(cell.replace("'", '"'), type=list[_FhibeSegment])
            # literal_eval runs no code, whatever the file contains.
            return msgspec.convert(ast.literal_eval(cell), type=list[_FhibeSegment])
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
            problem = str(error)[:120]
    raise TableError(
        "a person's part polygons cannot be read",
        expected=_EXPECTED_POLYGONS,
        found=f"{problem}: {cell[:80]!r}",
        where=source,
    )


def unite_part_masks(dataset: Dataset, selected_parts: Sequence[str] = ()) -> Dataset:
    """Give each person the union of their parts as mask; null for people without parts."""
    rows = INSTANCES.conform(dataset.instances)
    if isinstance(selected_parts, str):
        selected_parts = (selected_parts,)
    part_names = _check_part_names(dataset, rows, selected_parts)
    masks = _null_masks(rows.height)
    if "part_masks" in rows.columns:
        masks = masks.update(_unite_run_lengths(rows, part_names, dataset.name), on="row")
    if "segments" in rows.columns:
        # Run lengths are exact and go first; polygons only fill in for people without them.
        unmasked_rows = rows.with_row_index("row").filter(masks["mask_counts"].is_null())
        masks = masks.update(_fill_polygons(unmasked_rows, part_names, dataset), on="row")
    # The dataset's own person mask is replaced: two masks of one person would be ambiguous.
    other_columns = rows.drop("mask_polygons", *_MASK_SCHEMA, strict=False)
    return replace(
        dataset, instances=pl.concat([other_columns, masks.drop("row")], how="horizontal")
    )


def _check_part_names(
    dataset: Dataset, rows: pl.DataFrame, selected_parts: Sequence[str]
) -> list[str]:
    """Check that the dataset has masks of parts, and those that were named."""
    columns = [name for name in ("part_masks", "segments") if name in rows.columns]
    known_parts = {name for column in columns for name in list_part_names(rows[column])}
    if rows.height and not known_parts:
        raise SpecError(
            "nobody in the dataset has masks of parts",
            expected="instances with part_masks or segments",
            found="neither" if not columns else "nothing but nulls in " + ", ".join(columns),
            where=dataset.name,
            hint="FHIBE's polygons are loaded when asked for: segments=True",
        )
    refuse_unknown_names(
        "part", selected_parts if rows.height else (), known_parts, where=dataset.name
    )
    return list(selected_parts)


def _null_masks(height: int) -> pl.DataFrame:
    """Build rows of null masks."""
    rows = pl.int_range(height, dtype=pl.UInt32, eager=True).alias("row")
    return pl.DataFrame([rows]).with_columns(
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in _MASK_SCHEMA.items()
    )


def _unite_run_lengths(rows: pl.DataFrame, part_names: list[str], source: str) -> pl.DataFrame:
    """Unite the run lengths of all people at once."""
    part_rows = rows.select("part_masks").with_row_index("row").explode("part_masks")
    part_rows = part_rows.unnest("part_masks").drop_nulls("counts")
    if part_names:
        part_rows = part_rows.filter(pl.col("part").is_in(part_names))
    sizes = (part_rows[dimension].to_numpy() for dimension in ("height", "width"))
    row = part_rows["row"].to_numpy()
    masks = masks_from_counts(part_rows["counts"], *sizes, file=source, rows=row)
    people, person_index = np.unique(row, return_inverse=True)
    return _masks_to_frame(people.tolist(), union_of_parts(masks, person_index, len(people)))


def _fill_polygons(rows: pl.DataFrame, part_names: list[str], dataset: Dataset) -> pl.DataFrame:
    """Fill all polygons of a person as one mask, one person after another."""
    sizes = image_sizes(dataset, rows)
    cells = pl.concat([rows.select("row", "image_id", "segments"), sizes], how="horizontal")
    people, person_masks = [], []
    for row, image, cell, height, width in cells.drop_nulls("segments").iter_rows():
        source = format_location(dataset.name, row + 1, "segments")
        # Polygons have no size of their own; a guessed one would shift the last rows and columns.
        check_image_size(height, width, image, source)
        polygons_by_part = _parse_polygons(cell, source)
        polygons = [
            p
            for name, part_polygons in polygons_by_part.items()
            if not part_names or name in part_names
            for p in part_polygons
        ]
        if polygons:
            people.append(row)
            mask_size = (np.array([side_px]) for side_px in (height, width))
            person_masks.append(masks_from_coco([polygons], *mask_size, file=source))
    return pl.concat(
        [
            _null_masks(0),
            *(_masks_to_frame([row], mask) for row, mask in zip(people, person_masks, strict=True)),
        ]
    )


def check_image_size(
    height: int | None, width: int | None, image: str, source: str | None
) -> tuple[int, int]:
    """Refuse polygons in an image of unknown size."""
    if height is None or width is None:
        raise TableError(
            "parts are given as polygons, but how large their image is, is not known",
            expected="width and height in the table images",
            found=f"image {image!r}",
            where=source,
        )
    return height, width


def _masks_to_frame(rows: list[int], masks: Masks) -> pl.DataFrame:
    """Encode masks as run lengths in the columns of instances."""
    counts = [rle["counts"].decode() for rle in masks_to_coco(masks)]
    columns = {
        "row": rows,
        "mask_counts": counts,
        "mask_height": masks.height,
        "mask_width": masks.width,
    }
    return pl.DataFrame(columns, schema={"row": pl.UInt32, **_MASK_SCHEMA})
