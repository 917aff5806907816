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
def compute_luminance_and_lightness(
    rgb: npt.NDArray[np.uint8], linear_by_byte: Map, lightness_by_luminance: Map
) -> tuple[Map, Map]:
    """Give each pixel's luminance (0 to 1) and L* (0 to 100): ``[h, w]`` both."""
    h, w = rgb.shape[0], rgb.shape[1]
    steps = np.float32(lightness_by_luminance.shape[0] - 2)
    luminance = np.empty((h, w), np.float32)
    light = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            luminance_value = (
                linear_by_byte[0, rgb[y, x, 0]]
                + linear_by_byte[1, rgb[y, x, 1]]
                + linear_by_byte[2, rgb[y, x, 2]]
            )
            table_position = luminance_value * steps
            low = np.int32(table_position)
            luminance[y, x] = luminance_value
            light[y, x] = lightness_by_luminance[low] + (table_position - low) * (
                lightness_by_luminance[low + 1] - lightness_by_luminance[low]
            )
    return luminance, light


@njit(nogil=True, fastmath=_FASTMATH)
def measure_image_light(luminance: Map, light: Map) -> FloatArray:
    """Measure luminance, contrast and sharpness; NaN where it is too small for a Laplacian."""
    h, w = luminance.shape
    luminance_sum = lightness_sum = lightness_squared_sum = 0.0
    for y in range(h):
        for x in range(w):
            luminance_sum += luminance[y, x]
            lightness_sum += light[y, x]
            lightness_squared_sum += np.float64(light[y, x]) * light[y, x]
    n = h * w
    laplacian_sum = laplacian_squared_sum = 0.0
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            edge = _compute_laplacian_at(light, y, x)
            laplacian_sum += edge
            laplacian_squared_sum += edge * edge
    inner = max(h - 2, 0) * max(w - 2, 0)
    measures = np.empty(3)
    measures[0] = luminance_sum / n
    measures[1] = _sd_from_sums(lightness_sum, lightness_squared_sum, n)
    measures[2] = _sd_from_sums(laplacian_sum, laplacian_squared_sum, inner)
    return measures


@njit(nogil=True, fastmath=_FASTMATH)
def measure_people_light(
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
        inside = _clip_box_to_pixel_bounds(boxes[person], (h, w)) if has_box else (0, 0, 0, 0)
        box_sums = _sum_light_in_box(luminance, light, inside)
        if starts[person + 1] > starts[person]:
            runs = edges[starts[person] : starts[person + 1]]
            person_sums = _sum_light_in_mask(luminance, light, runs, mask_height[person], factor)
        else:
            person_sums = box_sums
        if person_sums[0] > 0:
            measures[person, 0] = person_sums[1] / person_sums[0]
            measures[person, 1] = person_sums[2] / person_sums[0]
        if person_sums[0] > 0 and h > 2 and w > 2:
            measures[person, 2] = _sd_from_sums(person_sums[3], person_sums[4], person_sums[0])
        if has_box:
            _fill_surroundings_measures(luminance, light, boxes[person], box_sums, measures[person])
    return measures


@njit(nogil=True, fastmath=_FASTMATH)
def _sum_light_in_box(
    luminance: Map, light: Map, pixel_bounds: tuple[int, int, int, int]
) -> tuple[float, float, float, float, float]:
    """Add up pixels, luminance, L*, its Laplacian (a border's: its neighbour's), that squared."""
    h, w = light.shape
    x_start, y_start, x_stop, y_stop = pixel_bounds
    luminance_sum = lightness_sum = laplacian_sum = laplacian_squared_sum = 0.0
    for y in range(y_start, y_stop):
        for x in range(x_start, x_stop):
            luminance_sum += luminance[y, x]
            lightness_sum += light[y, x]
    if h > 2 and w > 2:
        for y in range(y_start, y_stop):
            inner = min(max(y, 1), h - 2)
            for x in range(x_start, x_stop):
                edge = _compute_laplacian_at(light, inner, min(max(x, 1), w - 2))
                laplacian_sum += edge
                laplacian_squared_sum += edge * edge
    return (
        float((y_stop - y_start) * (x_stop - x_start)),
        luminance_sum,
        lightness_sum,
        laplacian_sum,
        laplacian_squared_sum,
    )


@njit(nogil=True, fastmath=_FASTMATH)
def _sum_light_in_mask(
    luminance: Map, light: Map, run_edges: npt.NDArray[np.int32], mask_height: int, factor: int
) -> tuple[float, float, float, float, float]:
    """Add up the same over a mask, read at the middle of the pixels that became one."""
    h, w = luminance.shape
    middle = factor // 2
    n, luminance_sum, lightness_sum, laplacian_sum, laplacian_squared_sum = 0, 0.0, 0.0, 0.0, 0.0
    for run in range(0, run_edges.shape[0], 2):
        for position in range(run_edges[run], run_edges[run + 1]):
            x, y = position // mask_height, position % mask_height
            if x % factor != middle or y % factor != middle:
                continue
            x, y = x // factor, y // factor
            if x >= w or y >= h:
                continue
            n += 1
            luminance_sum += luminance[y, x]
            lightness_sum += light[y, x]
            if h > 2 and w > 2:
                edge = _compute_laplacian_at(light, min(max(y, 1), h - 2), min(max(x, 1), w - 2))
                laplacian_sum += edge
                laplacian_squared_sum += edge * edge
    return float(n), luminance_sum, lightness_sum, laplacian_sum, laplacian_squared_sum


@njit(nogil=True, fastmath=_FASTMATH)
def _fill_surroundings_measures(
    luminance: Map,
    light: Map,
    box: FloatArray,
    box_sums: tuple[float, float, float, float, float],
    measures: FloatArray,
) -> None:
    """Measure what lies around a box: all of the larger box less the box."""
    margin_x = (box[2] - box[0]) * _SURROUNDINGS_MARGIN
    margin_y = (box[3] - box[1]) * _SURROUNDINGS_MARGIN
    outer = np.array([box[0] - margin_x, box[1] - margin_y, box[2] + margin_x, box[3] + margin_y])
    x_start, y_start, x_stop, y_stop = _clip_box_to_pixel_bounds(outer, luminance.shape)
    luminance_sum = lightness_sum = 0.0
    for y in range(y_start, y_stop):
        for x in range(x_start, x_stop):
            luminance_sum += luminance[y, x]
            lightness_sum += light[y, x]
    n = (y_stop - y_start) * (x_stop - x_start) - box_sums[0]
    if n > 0:
        measures[3] = max(luminance_sum - box_sums[1], 0.0) / n
        measures[4] = max(lightness_sum - box_sums[2], 0.0) / n


@njit(nogil=True, fastmath=_FASTMATH)
def _clip_box_to_pixel_bounds(box: FloatArray, shape: tuple[int, int]) -> tuple[int, int, int, int]:
    """Give the pixels whose middle lies in a box, as far as they lie in the picture."""
    h, w = shape
    left = min(max(math.ceil(min(max(box[0], -1.0), w + 1.0) - 0.5), 0), w)
    upper = min(max(math.ceil(min(max(box[1], -1.0), h + 1.0) - 0.5), 0), h)
    right = min(max(math.ceil(min(max(box[2], -1.0), w + 1.0) - 0.5), left), w)
    lower = min(max(math.ceil(min(max(box[3], -1.0), h + 1.0) - 0.5), upper), h)
    return left, upper, right, lower


@njit(nogil=True, fastmath=_FASTMATH)
def _compute_laplacian_at(light: Map, y: int, x: int) -> float:
    neighbour_sum = light[y - 1, x] + light[y + 1, x] + light[y, x - 1] + light[y, x + 1]
    return float(neighbour_sum) - 4.0 * float(light[y, x])


@njit(nogil=True, fastmath=_FASTMATH)
def _sd_from_sums(value_sum: float, squared_sum: float, n: float) -> float:
    if n <= 0:
        return math.nan
    mean = value_sum / n
    return math.sqrt(max(squared_sum / n - mean * mean, 0.0))
