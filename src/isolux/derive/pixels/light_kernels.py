"""One pass over a picture for its light and lightness, one over each person's pixels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

FloatArray = npt.NDArray[np.float64]
Map = npt.NDArray[np.float32]

# Sums may be taken in another order, which lets the processor take several at once.
_FASTMATH = {"reassoc", "contract"}
_SURROUNDINGS_MARGIN = 0.5  # of the box's width and height, on each side


@njit(nogil=True, fastmath=_FASTMATH)
def light_maps(rgb: npt.NDArray[np.uint8], linear: Map, lightness: Map) -> tuple[Map, Map]:
    """Give each pixel's luminance (0 to 1) and L* (0 to 100): ``[h, w]`` both."""
    h, w = rgb.shape[0], rgb.shape[1]
    steps = np.float32(lightness.shape[0] - 2)
    luminance = np.empty((h, w), np.float32)
    light = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            luminance_value = (
                linear[0, rgb[y, x, 0]] + linear[1, rgb[y, x, 1]] + linear[2, rgb[y, x, 2]]
            )
            table_position = luminance_value * steps
            low = np.int32(table_position)
            luminance[y, x] = luminance_value
            light[y, x] = lightness[low] + (table_position - low) * (
                lightness[low + 1] - lightness[low]
            )
    return luminance, light


@njit(nogil=True, fastmath=_FASTMATH)
def picture_light(luminance: Map, light: Map) -> FloatArray:
    """Measure luminance, contrast and sharpness; NaN where it is too small for a Laplacian."""
    h, w = luminance.shape
    total = first = second = 0.0
    for y in range(h):
        for x in range(w):
            total += luminance[y, x]
            first += light[y, x]
            second += np.float64(light[y, x]) * light[y, x]
    n = h * w
    edges = edges_squared = 0.0
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            edge = _laplacian(light, y, x)
            edges += edge
            edges_squared += edge * edge
    inner = max(h - 2, 0) * max(w - 2, 0)
    measures = np.empty(3)
    measures[0] = total / n
    measures[1] = _standard_deviation(first, second, n)
    measures[2] = _standard_deviation(edges, edges_squared, inner)
    return measures


@njit(nogil=True, fastmath=_FASTMATH)
def people_light(
    luminance: Map,
    light: Map,
    boxes: FloatArray,
    edges: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int64],
    mask_height: npt.NDArray[np.int64],
    factor: int,
) -> FloatArray:
    """Measure each person: ``[n, 5]``; NaN where there is no pixel to measure."""
    n = boxes.shape[0]
    h, w = luminance.shape
    measures = np.full((n, 5), np.nan)
    for person in range(n):
        has_box = not math.isnan(boxes[person, 0])
        inside = _pixels_in_box(boxes[person], (h, w)) if has_box else (0, 0, 0, 0)
        box_sums = _sums_of_box(luminance, light, inside)
        if starts[person + 1] > starts[person]:
            runs = edges[starts[person] : starts[person + 1]]
            person_sums = _sums_of_mask(luminance, light, runs, mask_height[person], factor)
        else:
            person_sums = box_sums
        if person_sums[0] > 0:
            measures[person, 0] = person_sums[1] / person_sums[0]
            measures[person, 1] = person_sums[2] / person_sums[0]
        if person_sums[0] > 0 and h > 2 and w > 2:
            measures[person, 2] = _standard_deviation(
                person_sums[3], person_sums[4], person_sums[0]
            )
        if has_box:
            _measure_surroundings(luminance, light, boxes[person], box_sums, measures[person])
    return measures


@njit(nogil=True, fastmath=_FASTMATH)
def _sums_of_box(
    luminance: Map, light: Map, inside: tuple[int, int, int, int]
) -> tuple[float, float, float, float, float]:
    """Add up pixels, luminance, L*, its Laplacian (a border's: its neighbour's), that squared."""
    h, w = light.shape
    x_start, y_start, x_stop, y_stop = inside
    total = first = edges = squared = 0.0
    for y in range(y_start, y_stop):
        for x in range(x_start, x_stop):
            total += luminance[y, x]
            first += light[y, x]
    if h > 2 and w > 2:
        for y in range(y_start, y_stop):
            inner = min(max(y, 1), h - 2)
            for x in range(x_start, x_stop):
                edge = _laplacian(light, inner, min(max(x, 1), w - 2))
                edges += edge
                squared += edge * edge
    return float((y_stop - y_start) * (x_stop - x_start)), total, first, edges, squared


@njit(nogil=True, fastmath=_FASTMATH)
def _sums_of_mask(
    luminance: Map, light: Map, edges: npt.NDArray[np.int32], height: int, factor: int
) -> tuple[float, float, float, float, float]:
    """Add up the same over a mask, read at the middle of the pixels that became one."""
    h, w = luminance.shape
    middle = factor // 2
    n, total, first, laplacians, squared = 0, 0.0, 0.0, 0.0, 0.0
    for run in range(0, edges.shape[0], 2):
        for position in range(edges[run], edges[run + 1]):
            x, y = position // height, position % height
            if x % factor != middle or y % factor != middle:
                continue
            x, y = x // factor, y // factor
            if x >= w or y >= h:
                continue
            n += 1
            total += luminance[y, x]
            first += light[y, x]
            if h > 2 and w > 2:
                edge = _laplacian(light, min(max(y, 1), h - 2), min(max(x, 1), w - 2))
                laplacians += edge
                squared += edge * edge
    return float(n), total, first, laplacians, squared


@njit(nogil=True, fastmath=_FASTMATH)
def _measure_surroundings(
    luminance: Map,
    light: Map,
    box: FloatArray,
    box_sums: tuple[float, float, float, float, float],
    measures: FloatArray,
) -> None:
    """Measure what lies around a box: all of the larger box less the box."""
    margin_x, margin_y = (
        (box[2] - box[0]) * _SURROUNDINGS_MARGIN,
        (box[3] - box[1]) * _SURROUNDINGS_MARGIN,
    )
    outer = np.array([box[0] - margin_x, box[1] - margin_y, box[2] + margin_x, box[3] + margin_y])
    x_start, y_start, x_stop, y_stop = _pixels_in_box(outer, luminance.shape)
    total = first = 0.0
    for y in range(y_start, y_stop):
        for x in range(x_start, x_stop):
            total += luminance[y, x]
            first += light[y, x]
    n = (y_stop - y_start) * (x_stop - x_start) - box_sums[0]
    if n > 0:
        measures[3] = max(total - box_sums[1], 0.0) / n
        measures[4] = max(first - box_sums[2], 0.0) / n


@njit(nogil=True, fastmath=_FASTMATH)
def _pixels_in_box(box: FloatArray, shape: tuple[int, int]) -> tuple[int, int, int, int]:
    """Give the pixels whose middle lies in a box, as far as they lie in the picture."""
    h, w = shape
    left = min(max(math.ceil(min(max(box[0], -1.0), w + 1.0) - 0.5), 0), w)
    upper = min(max(math.ceil(min(max(box[1], -1.0), h + 1.0) - 0.5), 0), h)
    right = min(max(math.ceil(min(max(box[2], -1.0), w + 1.0) - 0.5), left), w)
    lower = min(max(math.ceil(min(max(box[3], -1.0), h + 1.0) - 0.5), upper), h)
    return left, upper, right, lower


@njit(nogil=True, fastmath=_FASTMATH)
def _laplacian(light: Map, y: int, x: int) -> float:
    around = light[y - 1, x] + light[y + 1, x] + light[y, x - 1] + light[y, x + 1]
    return float(around) - 4.0 * float(light[y, x])


@njit(nogil=True, fastmath=_FASTMATH)
def _standard_deviation(first: float, second: float, n: float) -> float:
    if n <= 0:
        return math.nan
    mean = first / n
    return math.sqrt(max(second / n - mean * mean, 0.0))
