"""COCO's three spellings of a mask to columns: polygons, compressed and plain run lengths.

Polygons stay the text they are; plain run lengths (COCO's crowds) are compressed, so that tasks
meet two forms and no more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import TableError, format_location
from isolux.io.cell_parsing import first_true_row

_COMPRESSED_DTYPE = pl.Struct({"size": pl.List(pl.Int64), "counts": pl.String})
_UNCOMPRESSED_DTYPE = pl.Struct({"size": pl.List(pl.Int64), "counts": pl.List(pl.Int64)})
_RUN_LENGTHS_FORM = '{"size": [height, width], "counts": …}'
_BLOCK_ROWS = 8_192  # masks: bounds the copies of their text that are held at once


def parse_segmentations_to_mask_columns(
    segmentation_json: pl.Series, height: pl.Series, width: pl.Series, source: str, field: str
) -> pl.DataFrame:
    """Turn segmentations, as JSON text, into mask columns."""
    frame = pl.DataFrame(
        {"text": segmentation_json, "kind": _detect_mask_encodings(segmentation_json)}
    ).with_row_index("row")
    mask_source = _MaskSource(source, field)
    is_unknown = (frame["kind"] == "neither").fill_null(value=False)
    if is_unknown.any():
        raise mask_source.error(
            "a mask is neither polygons nor run lengths",
            segmentation_json,
            first_true_row(is_unknown),
        )
    tables = [
        _select_compressed_masks(frame.filter(kind="compressed"), mask_source),
        _compress_uncompressed_masks(frame.filter(kind="plain"), mask_source),
    ]
    runs = pl.concat(tables)
    by_row = frame.select("row").join(runs, on="row", how="left", maintain_order="left")
    is_no_polygon = (frame["kind"] != "polygons").fill_null(value=True)
    polygons = (
        segmentation_json.set(is_no_polygon, None) if is_no_polygon.any() else segmentation_json
    )
    mask_columns = by_row.select("mask_counts", "mask_height", "mask_width", mask_polygons=polygons)
    _check_mask_size_matches_image(mask_columns, height, width, segmentation_json, mask_source)
    return mask_columns


def _detect_mask_encodings(texts: pl.Series) -> pl.Series:
    """Detect the form of each mask (null: no mask) from the first characters of its text."""
    text = pl.col("text")
    first_guess = texts.to_frame("text").select(
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
    forms = first_guess["kind"]
    runs = (forms == "compressed").fill_null(value=False).arg_true()
    is_uncompressed = texts.gather(runs).str.contains(r'"counts"\s*:\s*\[')
    return forms.scatter(runs.filter(is_uncompressed), "plain")


class _MaskSource:
    """File and field of masks, for errors."""

    def __init__(self, source: str, field: str) -> None:
        self.where, self.field = source, field

    def error(self, problem: str, texts: pl.Series, row: int, expected: str = "") -> TableError:
        return TableError(
            problem,
            expected=expected
            or '[[x, y, …], …] or {"size": [height, width], "counts": …} as COCO writes them',
            found=str(texts[row])[:80],
            where=format_location(self.where, row + 1, self.field),
        )


def _parse_run_lengths(
    mask_rows: pl.DataFrame, struct_dtype: pl.Struct, mask_source: _MaskSource
) -> pl.DataFrame:
    """Read the run lengths of these rows: ``row, height, width, counts``."""
    try:
        mask = pl.col("text").str.json_decode(struct_dtype)
        blocks = [block.select("row", mask=mask) for block in mask_rows.iter_slices(_BLOCK_ROWS)]
        read = pl.concat(blocks or [mask_rows.select("row", mask=mask)]).unnest("mask")
    except pl.exceptions.PolarsError as error:
        rows = mask_rows["row"].to_list()
        texts = pl.Series([None] * (rows[-1] + 1), dtype=pl.String).scatter(rows, mask_rows["text"])
        raise mask_source.error(
            "a mask's run lengths cannot be read",
            texts,
            _find_first_unparsable_row(mask_rows, struct_dtype),
        ) from error
    is_valid = (read["size"].list.len() == 2) & read["counts"].is_not_null()
    is_valid &= read["size"].list.min() > 0
    is_valid &= (
        read["size"].list.max() < 1 << 20
    )  # a million pixels a side: an area then fits 40 bits
    bad = ~is_valid.fill_null(value=False)
    problem, expected = "a mask's run lengths lack their size or counts", _RUN_LENGTHS_FORM
    _raise_if_any_mask_is_bad(bad, problem, expected, mask_rows, mask_source)
    return read.select(
        "row",
        "counts",
        mask_height=pl.col("size").list.get(0),
        mask_width=pl.col("size").list.get(1),
    )


def _find_first_unparsable_row(mask_rows: pl.DataFrame, struct_dtype: pl.Struct) -> int:
    """Find the row that cannot be read. Runs only once reading all of them has failed."""
    for row, text in mask_rows.select("row", "text").iter_rows():
        try:
            pl.Series([text]).str.json_decode(struct_dtype)
        except pl.exceptions.PolarsError:
            return int(row)
    return int(mask_rows["row"][0])


def _select_compressed_masks(mask_rows: pl.DataFrame, mask_source: _MaskSource) -> pl.DataFrame:
    read = _parse_run_lengths(mask_rows, _COMPRESSED_DTYPE, mask_source)
    sums = sum_compressed_run_lengths(read["counts"])
    is_unfilled = sums != (read["mask_height"] * read["mask_width"]).to_numpy()
    _check_runs_fill_mask(mask_rows, is_unfilled, mask_source)
    return read.select("row", "mask_height", "mask_width", mask_counts="counts")


def _compress_uncompressed_masks(mask_rows: pl.DataFrame, mask_source: _MaskSource) -> pl.DataFrame:
    read = _parse_run_lengths(mask_rows, _UNCOMPRESSED_DTYPE, mask_source)
    counts, pixels = read["counts"], read["mask_height"] * read["mask_width"]
    is_valid = counts.list.sum() == pixels
    is_valid &= counts.list.min() >= 0
    is_valid &= counts.list.max() <= pixels  # else the sum may have run over
    is_valid &= counts.list.drop_nulls().list.len() == counts.list.len()
    _check_runs_fill_mask(mask_rows, (~is_valid.fill_null(value=False)).to_numpy(), mask_source)
    from isolux.geometry.masks import masks_from_counts, masks_to_coco

    sizes_px = [read[name].to_numpy() for name in ("mask_height", "mask_width")]
    texts = [
        m["counts"].decode("ascii") for m in masks_to_coco(masks_from_counts(counts, *sizes_px))
    ]
    packed = pl.Series(texts, dtype=pl.String)
    return read.select("row", "mask_height", "mask_width", mask_counts=packed)


def _check_runs_fill_mask(
    mask_rows: pl.DataFrame, is_unfilled: npt.NDArray[np.bool_], mask_source: _MaskSource
) -> None:
    problem = "a mask's run lengths do not fill it"
    expected = "runs that add up to height times width"
    _raise_if_any_mask_is_bad(pl.Series(is_unfilled), problem, expected, mask_rows, mask_source)


def _raise_if_any_mask_is_bad(
    is_bad: pl.Series,
    problem: str,
    expected: str,
    mask_rows: pl.DataFrame,
    mask_source: _MaskSource,
) -> None:
    if is_bad.any():
        i = first_true_row(is_bad)
        raise TableError(
            problem,
            expected=expected,
            found=str(mask_rows["text"][i])[:80],
            where=format_location(
                mask_source.where, int(mask_rows["row"][i]) + 1, mask_source.field
            ),
        )


def _check_mask_size_matches_image(
    mask_columns: pl.DataFrame,
    height: pl.Series,
    width: pl.Series,
    texts: pl.Series,
    mask_source: _MaskSource,
) -> None:
    is_mismatch = (mask_columns["mask_height"] != height) | (mask_columns["mask_width"] != width)
    is_mismatch = is_mismatch.fill_null(value=False)
    if is_mismatch.any():
        row = first_true_row(is_mismatch)
        raise mask_source.error(
            f"a mask is {mask_columns['mask_height'][row]} × {mask_columns['mask_width'][row]}"
            " pixels, its image is not",
            texts,
            row,
            expected=f"{height[row]} × {width[row]} pixels (height × width), as the image",
        )


def sum_compressed_run_lengths(counts: pl.Series) -> npt.NDArray[np.int64]:
    """Add up the runs of each compressed mask; -1 where the text does not hold run lengths."""
    if not len(counts):
        return np.zeros(0, np.int64)
    from isolux.datasets._coco.run_length_kernels import sum_mask_run_lengths

    sums = [np.zeros(0, np.int64)]
    for first in range(0, len(counts), _BLOCK_ROWS):
        block = counts[first : first + _BLOCK_ROWS]
        lengths = block.str.len_bytes().to_numpy().astype(np.int64)  # [n]
        characters = np.frombuffer("".join(block.to_list()).encode(), dtype=np.uint8)
        sums.append(sum_mask_run_lengths(characters, np.concatenate([[0], np.cumsum(lengths)])))
    return np.concatenate(sums)
