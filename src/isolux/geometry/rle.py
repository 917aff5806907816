"""Run lengths in and out: COCO's, compressed or not, polygons and bitmaps. See ``masks.py``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, TableError, format_location
from isolux.geometry._pairs import FloatArray, IntArray

_MAX_COORDINATE_PX = 1_000_000  # pixels from an image's corner that a polygon's point may lie


@dataclass(frozen=True, slots=True)
class Masks:
    """Masks as runs of foreground, all in flat arrays.

    Parameters
    ----------
    edges : [e] int32
        First position and position after the last, of each run, positions counted down the columns
        (x × height + y). Sorted within a mask.
    starts : [n + 1] int
        Mask k has the edges ``starts[k]`` to ``starts[k + 1]``; always an even number of them.
    height, width : [n] int
        Of each mask's image, in pixels.
    area_px : [n] int
        Pixels of foreground.
    box_xywh : [n, 4] float
        The tight box; zeros for a mask without pixels.
    """

    edges: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    height: npt.NDArray[np.int64]
    width: npt.NDArray[np.int64]
    area_px: npt.NDArray[np.int64]
    box_xywh: FloatArray

    def __len__(self) -> int:
        return len(self.height)


def masks_from_counts(
    counts: pl.Series | Sequence[str] | Sequence[bytes] | Sequence[Sequence[int]],
    height: IntArray,
    width: IntArray,
    *,
    file: object | None = None,
    rows: IntArray | None = None,
) -> Masks:
    """Read the ``counts`` of COCO's run lengths, compressed (text) or not (lists of numbers).

    Shapes: ``counts`` [n], ``height, width`` [n], ``rows`` [n].

    Examples
    --------
    In an image 4 high and 3 wide, two pixels of background, three of foreground, seven of
    background: rows 2 and 3 of the first column and row 0 of the second.

    >>> mask = masks_from_counts([[2, 3, 7]], np.array([4]), np.array([3]))
    >>> mask.area_px.tolist(), mask.box_xywh.tolist()
    ([3], [[0.0, 0.0, 2.0, 4.0]])
    """
    series = counts if isinstance(counts, pl.Series) else pl.Series(list(counts))
    row_numbers = np.arange(len(series)) if rows is None else rows
    height, width = _check_image_sizes(height, width, len(series), file, row_numbers)
    if not len(series):
        return masks_from_edges(np.empty(0, np.int32), np.zeros(1, np.int64), height, width)
    if series.null_count():
        row = int(row_numbers[series.is_null().arg_max() or 0])
        raise TableError("a mask is null", where=format_location(file, row + 1, "counts"))
    if series.dtype in {pl.String, pl.Binary}:
        runs, starts = _decode_compressed(series)
    else:
        runs, starts = _read_run_lengths(series, file)
    return _masks_from_runs(runs, starts, height, width, file, row_numbers)


def masks_from_coco(
    segmentations: Sequence[Any], height: IntArray, width: IntArray, *, file: object | None = None
) -> Masks:
    """Read COCO's ``segmentation`` fields of any kind: polygons and run lengths, mixed.

    Shapes: ``height, width`` [n].

    Examples
    --------
    >>> square = [[1.0, 1.0, 3.0, 1.0, 3.0, 3.0, 1.0, 3.0]]
    >>> masks = masks_from_coco([square], np.array([5]), np.array([5]))
    >>> masks.area_px.tolist(), masks.box_xywh.tolist()
    ([4], [[1.0, 1.0, 2.0, 2.0]])
    """
    coco = _import_pycocotools_mask()

    height, width = _check_image_sizes(height, width, len(segmentations), file)
    counts: list[bytes] = []
    for row, segmentation in enumerate(segmentations):
        h, w = int(height[row]), int(width[row])
        if isinstance(segmentation, Mapping):
            _check_segmentation_size(
                segmentation, h, w, format_location(file, row + 1, "segmentation")
            )
            run_lengths = segmentation["counts"]
            if isinstance(run_lengths, str | bytes):
                counts.append(
                    run_lengths.encode("ascii", "replace")
                    if isinstance(run_lengths, str)
                    else run_lengths
                )
                continue
            # Uncompressed runs are added up before pycocotools sees them.
            checked = masks_from_counts([run_lengths], height[[row]], width[[row]], file=file)
            counts.append(masks_to_coco(checked)[0]["counts"])
        else:
            _check_polygons(segmentation, format_location(file, row + 1, "segmentation"))
            # Several polygons of one object are one mask in COCO.
            counts.append(coco.merge(coco.frPyObjects(segmentation, h, w))["counts"])
    return masks_from_counts(pl.Series(counts, dtype=pl.Binary), height, width, file=file)


def masks_to_coco(masks: Masks) -> list[dict[str, Any]]:
    """Write masks as COCO's compressed run lengths: ``{"size": [h, w], "counts": bytes}`` each.

    Examples
    --------
    >>> masks_to_coco(masks_from_counts([[2, 3, 7]], np.array([4]), np.array([3])))
    [{'size': [4, 3], 'counts': b'237'}]
    """
    coco = _import_pycocotools_mask()

    encoded = []
    for k in range(len(masks)):
        h, w = int(masks.height[k]), int(masks.width[k])
        edges = masks.edges[masks.starts[k] : masks.starts[k + 1]].astype(np.int64)
        # COCO's runs begin with background, possibly of length 0; an empty last run is omitted.
        runs = np.diff(np.concatenate([[0], edges, [h * w]]))
        runs = runs[:-1] if len(runs) > 1 and runs[-1] == 0 else runs
        encoded.append(coco.frPyObjects({"size": [h, w], "counts": runs.tolist()}, h, w))
    return encoded


def _decode_compressed(series: pl.Series) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    from isolux.geometry._mask_kernels import count_runs, decode_counts

    binary = series.cast(pl.Binary)
    text = np.frombuffer(b"".join(binary.to_list()), dtype=np.uint8)
    starts = np.append(0, np.cumsum(binary.bin.size().cast(pl.Int64).to_numpy()))
    run_starts = np.empty(len(starts), np.int64)
    count_runs(text, starts, run_starts)
    runs = np.empty(run_starts[-1], np.int32)
    decode_counts(text, starts, run_starts, runs)
    return runs, run_starts


def _read_run_lengths(
    series: pl.Series, file: object | None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    if not (isinstance(series.dtype, pl.List) and series.dtype.inner.is_integer()):  # type: ignore[attr-defined, unused-ignore]
        raise TableError(
            "counts are neither text nor lists of whole numbers",
            expected="COCO run lengths",
            found=str(series.dtype),
            where=format_location(file, None, "counts"),
        )
    lengths = series.list.len().cast(pl.Int64)
    starts = np.append(0, np.cumsum(lengths.to_numpy()))
    # -1 marks a run that cannot be read; edges are 32-bit.
    runs = series.filter(lengths > 0).explode().cast(pl.Int64).fill_null(-1).to_numpy()
    return np.where(runs < 2**31, runs, -1).astype(np.int32), starts


def _masks_from_runs(
    runs: npt.NDArray[np.int32],
    run_starts: npt.NDArray[np.int64],
    height: npt.NDArray[np.int64],
    width: npt.NDArray[np.int64],
    file: object | None,
    rows: IntArray,
) -> Masks:
    """Check that run lengths fill their images, and convert them to edges."""
    from isolux.geometry._mask_kernels import runs_to_edges

    edges, starts = np.empty(len(runs), np.int32), np.zeros(len(run_starts), np.int64)
    total = np.zeros(len(height), np.int64)
    runs_to_edges(runs, run_starts, edges, starts, total)
    if (total < 0).any():
        raise TableError(
            "a mask's run lengths cannot be read",
            expected="COCO's counts, compressed or as whole numbers from 0",
            found="a character outside COCO's alphabet, a number cut off, or one below 0",
            where=format_location(file, int(rows[np.argmax(total < 0)]) + 1, "counts"),
        )
    if (total != height * width).any():
        row = int(np.argmax(total != height * width))
        raise TableError(
            "a mask has another size than its image",
            expected=f"{height[row]} × {width[row]} = {height[row] * width[row]} pixels",
            found=f"runs of {total[row]} pixels in all",
            where=format_location(file, int(rows[row]) + 1, "counts"),
        )
    return masks_from_edges(edges[: starts[-1]], starts, height, width)


def _import_pycocotools_mask() -> Any:
    from pycocotools import mask  # type: ignore[import-untyped, unused-ignore]

    return mask


def masks_from_edges(
    edges: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int64],
    height: npt.NDArray[np.int64],
    width: npt.NDArray[np.int64],
) -> Masks:
    """Measure masks given as runs of foreground; see ``Masks``."""
    from isolux.geometry._mask_kernels import measure_masks

    area = np.zeros(len(height), np.int64)
    box = np.zeros((len(height), 4))
    edges = np.ascontiguousarray(edges)
    measure_masks(edges, starts, height, area, box)
    return Masks(edges, starts, height, width, area, box)


def _check_image_sizes(
    height: IntArray, width: IntArray, n: int, file: object | None, rows: IntArray | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    h, w = (np.asarray(length_px, dtype=np.int64) for length_px in (height, width))
    if h.shape != (n,) or w.shape != (n,):
        raise SpecError(
            "there are not as many sizes as masks",
            expected=f"{n} heights and widths",
            found=f"shapes {h.shape} and {w.shape}",
        )
    # Positions are 32-bit integers.
    is_invalid = (h < 1) | (w < 1) | (h * w >= 2**31)
    if is_invalid.any():
        row = int(np.argmax(is_invalid))
        raise TableError(
            "a mask has an impossible size",
            expected="height and width from 1, fewer than 2³¹ pixels",
            found=f"{h[row]} × {w[row]}",
            where=format_location(file, (row if rows is None else int(rows[row])) + 1, "size"),
        )
    return h, w


def _check_segmentation_size(
    segmentation: Mapping[str, Any], height: int, width: int, source: str | None
) -> None:
    if "counts" not in segmentation or list(segmentation.get("size", ())) != [height, width]:
        raise TableError(
            "a mask has another size than its image",
            expected=f"counts, and the size [{height}, {width}] (height, width)",
            found=f"keys {sorted(segmentation)}, size {segmentation.get('size')}",
            where=source,
        )


def _check_polygons(polygons: Any, source: str | None) -> None:
    is_list = isinstance(polygons, Sequence) and not isinstance(polygons, str) and len(polygons) > 0
    if not is_list or any(len(p) < 6 or len(p) % 2 for p in polygons):
        raise TableError(
            "a polygon has fewer than three points, or half a point",
            expected="a list of polygons [x0, y0, x1, y1, x2, y2, …]",
            found=str(polygons)[:80],
            where=source,
        )
    # pycocotools traces every outline pixel by pixel, also far outside the image.
    if any(
        not math.isfinite(sum(p)) or min(p) < -_MAX_COORDINATE_PX or max(p) > _MAX_COORDINATE_PX
        for p in polygons
    ):
        raise TableError(
            "a polygon has a point that is not finite, or far outside any image",
            expected=f"pixels from −{_MAX_COORDINATE_PX:,} to {_MAX_COORDINATE_PX:,}",
            found=str(polygons)[:80],
            where=source,
        )
