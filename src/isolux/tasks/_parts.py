"""Masks of the parts of people: from the tables' columns to run lengths, and to whole people.

``part_masks`` holds run lengths, ``segments`` polygons as the text that FHIBE's files have. FHIBE
has no mask of a whole person: it is the union of all parts (Xiang et al., 2025), bags and clothes
among them. Their tool fills polygons with OpenCV, from corners cut to whole pixels; here they are
filled as COCO fills them, so outlines differ by up to a pixel.
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

from isolux.geometry.masks import (
    Masks,
    masks_from_coco,
    masks_from_counts,
    masks_to_coco,
    union_of_parts,
)
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, place
from isolux.vocabulary.tables import IMAGES, INSTANCES

_NUMBER = re.compile(r"^[0-9]+\.\s*")
_NAMES = r"""['"]class_name['"]\s*:\s*['"]([^'"]*)['"]"""
_LONGEST = 20_000_000  # characters of one person's polygons
_POLYGONS = "[{'class_name': '0. Face skin', 'polygon': [{'x': …, 'y': …}, …]}, …]"
_MASK = {"mask_counts": pl.String(), "mask_height": pl.Int64(), "mask_width": pl.Int64()}


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one person: as many names as masks; a name may occur twice."""

    names: tuple[str, ...]
    masks: Masks


class _Point(msgspec.Struct):
    x: float
    y: float


class _Segment(msgspec.Struct):
    class_name: str
    polygon: list[_Point]


def image_sizes(dataset: Dataset, rows: pl.DataFrame) -> pl.DataFrame:
    """Give the ``height`` and ``width`` of each row's image, null where the dataset has none."""
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


def parts_named(column: pl.Series) -> list[str]:
    """List the parts that ``part_masks`` or ``segments`` name, sorted; nothing is filled."""
    held = column.drop_nulls()
    if not len(held):
        return []
    if held.dtype == pl.String:
        names = held.str.extract_all(_NAMES).explode().drop_nulls().unique()
        names = names.str.extract(_NAMES, 1).str.replace(_NUMBER.pattern, "")
    else:
        names = held.explode().drop_nulls().struct.field("part")
    return sorted(names.drop_nulls().unique().to_list())


def parts_of_list(held: Sequence[dict[str, Any]], where: str | None) -> Parts:
    """Read one person's ``part_masks``: run lengths with a part, a height and a width each."""
    sides = (np.array([one[side] for one in held], np.int64) for side in ("height", "width"))
    counts = pl.Series([one["counts"] for one in held], dtype=pl.String)
    names = tuple(str(one["part"]) for one in held)
    return Parts(names, masks_from_counts(counts, *sides, file=where))


def parts_of_cell(cell: str, height: int, width: int, where: str | None) -> Parts:
    """Fill one person's ``segments``, polygons of one part together."""
    of = _polygons(cell, where)
    sides = (np.full(len(of), side, np.int64) for side in (height, width))
    return Parts(tuple(of), masks_from_coco(list(of.values()), *sides, file=where))


def _polygons(cell: str, where: str | None) -> dict[str, list[list[float]]]:
    of: dict[str, list[list[float]]] = {}
    for segment in _segments(cell, where):
        if len(segment.polygon) > 2:
            name = _NUMBER.sub("", segment.class_name.strip())
            of.setdefault(name, []).append([v for p in segment.polygon for v in (p.x, p.y)])
    return of


def _segments(cell: str, where: str | None) -> list[_Segment]:
    """Read the text as JSON, which it nearly is, else as the Python literal that it is."""
    problem = f"{len(cell):,} characters"
    if len(cell) <= _LONGEST:
        try:
            # JSON's reader is far faster; only names with an apostrophe need Python's.
            with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                return msgspec.json.decode(cell.replace("'", '"'), type=list[_Segment])
            return msgspec.convert(ast.literal_eval(cell), type=list[_Segment])
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
            problem = str(error)[:120]
    raise TableError(
        "a person's part polygons cannot be read",
        expected=_POLYGONS,
        found=f"{problem}: {cell[:80]!r}",
        where=where,
    )


def whole_people(dataset: Dataset, parts: Sequence[str] = ()) -> Dataset:
    """Give everyone the union of their parts as their mask; null for people without parts."""
    rows = INSTANCES.conform(dataset.instances)
    wanted = _wanted(dataset, rows, (parts,) if isinstance(parts, str) else parts)
    masks = _no_masks(rows.height)
    if "part_masks" in rows.columns:
        masks = masks.update(_of_lists(rows, wanted, dataset.name), on="row")
    if "segments" in rows.columns:
        bare = rows.with_row_index("row").filter(masks["mask_counts"].is_null())
        masks = masks.update(_of_cells(bare, wanted, dataset), on="row")
    rest = rows.drop("mask_polygons", *_MASK, strict=False)
    return replace(dataset, instances=pl.concat([rest, masks.drop("row")], how="horizontal"))


def _wanted(dataset: Dataset, rows: pl.DataFrame, parts: Sequence[str]) -> list[str]:
    columns = [name for name in ("part_masks", "segments") if name in rows.columns]
    known = {name for column in columns for name in parts_named(rows[column])}
    if rows.height and not known:
        raise SpecError(
            "nobody in the dataset has masks of parts",
            expected="instances with part_masks or segments",
            found="neither" if not columns else "nothing but nulls in " + ", ".join(columns),
            where=dataset.name,
            hint="FHIBE's polygons are loaded when asked for: segments=True",
        )
    for part in parts if rows.height else ():
        if part not in known:
            raise UnknownNameError("part", part, known, where=dataset.name)
    return list(parts)


def _no_masks(height: int) -> pl.DataFrame:
    rows = pl.int_range(height, dtype=pl.UInt32, eager=True).alias("row")
    return pl.DataFrame([rows]).with_columns(
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in _MASK.items()
    )


def _of_lists(rows: pl.DataFrame, wanted: list[str], where: str) -> pl.DataFrame:
    """Unite run lengths, everyone's at once."""
    every = rows.select("part_masks").with_row_index("row").explode("part_masks")
    every = every.unnest("part_masks").filter(pl.col("counts").is_not_null())
    if wanted:
        every = every.filter(pl.col("part").is_in(wanted))
    sides = (every[side].to_numpy() for side in ("height", "width"))
    row = every["row"].to_numpy()
    masks = masks_from_counts(every["counts"], *sides, file=where, rows=row)
    people, whole = np.unique(row, return_inverse=True)
    return _written(people.tolist(), union_of_parts(masks, whole, len(people)))


def _of_cells(rows: pl.DataFrame, wanted: list[str], dataset: Dataset) -> pl.DataFrame:
    """Fill all polygons of a person at once, one person after another."""
    sizes = image_sizes(dataset, rows)
    cells = pl.concat([rows.select("row", "image_id", "segments"), sizes], how="horizontal")
    people, done = [], []
    for row, image, cell, height, width in cells.drop_nulls("segments").iter_rows():
        where = place(dataset.name, row + 1, "segments")
        known_size(height, width, image, where)
        of = _polygons(cell, where)
        drawn = [p for name, found in of.items() if not wanted or name in wanted for p in found]
        if drawn:
            people.append(row)
            sides = (np.array([side]) for side in (height, width))
            done.append(masks_from_coco([drawn], *sides, file=where))
    return pl.concat(
        [_no_masks(0), *(_written([row], mask) for row, mask in zip(people, done, strict=True))]
    )


def known_size(
    height: int | None, width: int | None, image: str, where: str | None
) -> tuple[int, int]:
    """Refuse polygons in an image whose size is not known."""
    if height is None or width is None:
        raise TableError(
            "parts are given as polygons, but how large their image is, is not known",
            expected="width and height in the table images",
            found=f"image {image!r}",
            where=where,
        )
    return height, width


def _written(rows: list[int], masks: Masks) -> pl.DataFrame:
    counts = [one["counts"].decode() for one in masks_to_coco(masks)]
    found = {
        "row": rows,
        "mask_counts": counts,
        "mask_height": masks.height,
        "mask_width": masks.width,
    }
    return pl.DataFrame(found, schema={"row": pl.UInt32, **_MASK})
