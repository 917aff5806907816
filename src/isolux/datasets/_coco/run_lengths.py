"""COCO's three spellings of a mask to columns: polygons, compressed and plain run lengths.

Polygons stay the text they are; plain run lengths (COCO's crowds) are compressed, so that tasks
meet two forms and no more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.cells import row_of
from isolux.vocabulary.errors import TableError, place

_COMPRESSED = pl.Struct({"size": pl.List(pl.Int64), "counts": pl.String})
_PLAIN = pl.Struct({"size": pl.List(pl.Int64), "counts": pl.List(pl.Int64)})
_RUNS = '{"size": [height, width], "counts": …}'
_BLOCK = 8_192  # masks: bounds the copies of their text that are held at once


def masks_of(
    texts: pl.Series, height: pl.Series, width: pl.Series, where: str, field: str
) -> pl.DataFrame:
    """Turn segmentations, as JSON text, into mask columns."""
    frame = pl.DataFrame({"text": texts, "kind": _kinds(texts)}).with_row_index("row")
    at = _Place(where, field)
    wrong = (frame["kind"] == "neither").fill_null(value=False)
    if wrong.any():
        raise at.error("a mask is neither polygons nor run lengths", texts, row_of(wrong))
    parts = [
        _compressed(frame.filter(pl.col("kind") == "compressed"), at),
        _plain(frame.filter(pl.col("kind") == "plain"), at),
    ]
    runs = pl.concat(parts)
    placed = frame.select("row").join(runs, on="row", how="left", maintain_order="left")
    other = (frame["kind"] != "polygons").fill_null(value=True)
    polygons = texts.set(other, None) if other.any() else texts
    found = placed.select(
        "mask_counts", "mask_height", "mask_width", polygons.alias("mask_polygons")
    )
    _refuse_other_sizes(found, height, width, texts, at)
    return found


def _kinds(texts: pl.Series) -> pl.Series:
    """Tell the form of each mask; null: none. Only run lengths, which are few, are searched."""
    text = pl.col("text")
    begun = texts.to_frame("text").select(
        text,
        kind=pl.when(text.is_in(["[]", "[ ]"]))
        .then(None)
        .when(text.str.starts_with("["))
        .then(pl.lit("polygons"))
        .when(text.str.starts_with("{"))
        .then(pl.lit("compressed"))
        .when(text.is_not_null())
        .then(pl.lit("neither")),
    )
    kinds = begun["kind"]
    runs = (kinds == "compressed").fill_null(value=False).arg_true()
    plain = texts.gather(runs).str.contains(r'"counts"\s*:\s*\[')
    return kinds.scatter(runs.filter(plain), "plain")


class _Place:
    """Where masks stand, for messages."""

    def __init__(self, where: str, field: str) -> None:
        self.where, self.field = where, field

    def error(self, problem: str, texts: pl.Series, row: int, expected: str = "") -> TableError:
        return TableError(
            problem,
            expected=expected
            or '[[x, y, …], …] or {"size": [height, width], "counts": …} as COCO writes them',
            found=str(texts[row])[:80],
            where=place(self.where, row + 1, self.field),
        )


def _decoded(part: pl.DataFrame, kind: pl.Struct, at: _Place) -> pl.DataFrame:
    """Read the run lengths of these rows: ``row, height, width, counts``."""
    try:
        mask = pl.col("text").str.json_decode(kind)
        blocks = [block.select("row", mask=mask) for block in part.iter_slices(_BLOCK)]
        read = pl.concat(blocks or [part.select("row", mask=mask)]).unnest("mask")
    except pl.exceptions.PolarsError as error:
        rows = part["row"].to_list()
        texts = pl.Series([None] * (rows[-1] + 1), dtype=pl.String).scatter(rows, part["text"])
        raise at.error(
            "a mask's run lengths cannot be read", texts, _first_bad(part, kind)
        ) from error
    good = (read["size"].list.len() == 2) & read["counts"].is_not_null()
    good &= read["size"].list.min() > 0
    good &= read["size"].list.max() < 1 << 20  # a million pixels a side: an area then fits 40 bits
    bad = ~good.fill_null(value=False)
    problem, expected = "a mask's run lengths lack their size or counts", _RUNS
    _refuse(bad, problem, expected, part, at)
    return read.select(
        "row",
        "counts",
        mask_height=pl.col("size").list.get(0),
        mask_width=pl.col("size").list.get(1),
    )


def _first_bad(part: pl.DataFrame, kind: pl.Struct) -> int:
    """Find the row that cannot be read. Runs only once reading all of them has failed."""
    for row, text in part.select("row", "text").iter_rows():
        try:
            pl.Series([text]).str.json_decode(kind)
        except pl.exceptions.PolarsError:
            return int(row)
    return int(part["row"][0])


def _compressed(part: pl.DataFrame, at: _Place) -> pl.DataFrame:
    read = _decoded(part, _COMPRESSED, at)
    sums = totals(read["counts"])
    wrong = sums != (read["mask_height"] * read["mask_width"]).to_numpy()
    _refuse_unfilled(part, wrong, at)
    return read.select("row", "mask_height", "mask_width", mask_counts="counts")


def _plain(part: pl.DataFrame, at: _Place) -> pl.DataFrame:
    read = _decoded(part, _PLAIN, at)
    counts, pixels = read["counts"], read["mask_height"] * read["mask_width"]
    usable = counts.list.sum() == pixels
    usable &= counts.list.min() >= 0
    usable &= counts.list.max() <= pixels  # else the sum may have run over
    usable &= counts.list.drop_nulls().list.len() == counts.list.len()
    _refuse_unfilled(part, (~usable.fill_null(value=False)).to_numpy(), at)
    from isolux.geometry.masks import masks_from_counts, masks_to_coco

    sides = [read[name].to_numpy() for name in ("mask_height", "mask_width")]
    texts = [m["counts"].decode("ascii") for m in masks_to_coco(masks_from_counts(counts, *sides))]
    packed = pl.Series(texts, dtype=pl.String)
    return read.select("row", "mask_height", "mask_width", mask_counts=packed)


def _refuse_unfilled(part: pl.DataFrame, wrong: npt.NDArray[np.bool_], at: _Place) -> None:
    problem, expected = (
        "a mask's run lengths do not fill it",
        "runs that add up to height times width",
    )
    _refuse(pl.Series(wrong), problem, expected, part, at)


def _refuse(bad: pl.Series, problem: str, expected: str, part: pl.DataFrame, at: _Place) -> None:
    if bad.any():
        i = row_of(bad)
        raise TableError(
            problem,
            expected=expected,
            found=str(part["text"][i])[:80],
            where=place(at.where, int(part["row"][i]) + 1, at.field),
        )


def _refuse_other_sizes(
    found: pl.DataFrame, height: pl.Series, width: pl.Series, texts: pl.Series, at: _Place
) -> None:
    other = (found["mask_height"] != height) | (found["mask_width"] != width)
    other = other.fill_null(value=False)
    if other.any():
        row = row_of(other)
        raise at.error(
            f"a mask is {found['mask_height'][row]} × {found['mask_width'][row]} pixels,"
            " its image is not",
            texts,
            row,
            expected=f"{height[row]} × {width[row]} pixels (height × width), as the image",
        )


def totals(counts: pl.Series) -> npt.NDArray[np.int64]:
    """Add up the runs of each compressed mask; -1 where the text does not hold run lengths."""
    if not len(counts):
        return np.zeros(0, np.int64)
    from isolux.datasets._coco.run_length_kernels import total_runs

    found = [np.zeros(0, np.int64)]
    for first in range(0, len(counts), _BLOCK):
        block = counts[first : first + _BLOCK]
        lengths = block.str.len_bytes().to_numpy().astype(np.int64)  # [n]
        data = np.frombuffer("".join(block.to_list()).encode(), dtype=np.uint8)
        found.append(total_runs(data, np.concatenate([[0], np.cumsum(lengths)])))
    return np.concatenate(found)
