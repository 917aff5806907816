"""One pass over a picture for its light and lightness, one over each person's pixels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

FloatArray = npt.NDArray[np.float64]
Map = npt.NDArray[np.float32]

# Sums may be taken in another order, which lets the processor take several at once.
_LOOSE = {"reassoc", "contract"}
_AROUND = 0.5  # of the box's width and height, on each side


@njit(nogil=True, fastmath=_LOOSE)
def light_maps(rgb: npt.NDArray[np.uint8], linear: Map, lightness: Map) -> tuple[Map, Map]:
    """Give each pixel's luminance (0 to 1) and L* (0 to 100): ``[h, w]`` both."""
    h, w = rgb.shape[0], rgb.shape[1]
    steps = np.float32(lightness.shape[0] - 2)
    luminance = np.empty((h, w), np.float32)
    light = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            value = linear[0, rgb[y, x, 0]] + linear[1, rgb[y, x, 1]] + linear[2, rgb[y, x, 2]]
            place = value * steps
            low = np.int32(place)
            luminance[y, x] = value
            light[y, x] = lightness[low] + (place - low) * (lightness[low + 1] - lightness[low])
    return luminance, light


@njit(nogil=True, fastmath=_LOOSE)
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
    found = np.empty(3)
    found[0] = total / n
    found[1] = _spread(first, second, n)
    found[2] = _spread(edges, edges_squared, inner)
    return found


@njit(nogil=True, fastmath=_LOOSE)
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
    found = np.full((n, 5), np.nan)
    for person in range(n):
        boxed = not math.isnan(boxes[person, 0])
        inside = _inside(boxes[person], (h, w)) if boxed else (0, 0, 0, 0)
        of_box = _sums_of_box(luminance, light, inside)
        if starts[person + 1] > starts[person]:
            runs = edges[starts[person] : starts[person + 1]]
            own = _sums_of_mask(luminance, light, runs, mask_height[person], factor)
        else:
            own = of_box
        if own[0] > 0:
            found[person, 0] = own[1] / own[0]
            found[person, 1] = own[2] / own[0]
        if own[0] > 0 and h > 2 and w > 2:
            found[person, 2] = _spread(own[3], own[4], own[0])
        if boxed:
            _around(luminance, light, boxes[person], of_box, found[person])
    return found


@njit(nogil=True, fastmath=_LOOSE)
def _sums_of_box(
    luminance: Map, light: Map, inside: tuple[int, int, int, int]
) -> tuple[float, float, float, float, float]:
    """Add up pixels, luminance, L*, its Laplacian (a border's: its neighbour's), that squared."""
    h, w = light.shape
    left, upper, right, lower = inside
    total = first = edges = squared = 0.0
    for y in range(upper, lower):
        for x in range(left, right):
            total += luminance[y, x]
            first += light[y, x]
    if h > 2 and w > 2:
        for y in range(upper, lower):
            inner = min(max(y, 1), h - 2)
            for x in range(left, right):
                edge = _laplacian(light, inner, min(max(x, 1), w - 2))
                edges += edge
                squared += edge * edge
    return float((lower - upper) * (right - left)), total, first, edges, squared


@njit(nogil=True, fastmath=_LOOSE)
def _sums_of_mask(
    luminance: Map, light: Map, edges: npt.NDArray[np.int32], height: int, factor: int
) -> tuple[float, float, float, float, float]:
    """Add up the same over a mask, read at the middle of the pixels that became one."""
    h, w = luminance.shape
    middle = factor // 2
    n, total, first, laplacians, squared = 0, 0.0, 0.0, 0.0, 0.0
    for run in range(0, edges.shape[0], 2):
        for place in range(edges[run], edges[run + 1]):
            x, y = place // height, place % height
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


@njit(nogil=True, fastmath=_LOOSE)
def _around(
    luminance: Map,
    light: Map,
    box: FloatArray,
    of_box: tuple[float, float, float, float, float],
    found: FloatArray,
) -> None:
    """Measure what lies around a box: all of the larger box less the box."""
    wide, high = (box[2] - box[0]) * _AROUND, (box[3] - box[1]) * _AROUND
    outer = np.array([box[0] - wide, box[1] - high, box[2] + wide, box[3] + high])
    left, upper, right, lower = _inside(outer, luminance.shape)
    total = first = 0.0
    for y in range(upper, lower):
        for x in range(left, right):
            total += luminance[y, x]
            first += light[y, x]
    n = (lower - upper) * (right - left) - of_box[0]
    if n > 0:
        found[3] = max(total - of_box[1], 0.0) / n
        found[4] = max(first - of_box[2], 0.0) / n


@njit(nogil=True, fastmath=_LOOSE)
def _inside(box: FloatArray, shape: tuple[int, int]) -> tuple[int, int, int, int]:
    """Give the pixels whose middle lies in a box, as far as they lie in the picture."""
    h, w = shape
    left = min(max(math.ceil(min(max(box[0], -1.0), w + 1.0) - 0.5), 0), w)
    upper = min(max(math.ceil(min(max(box[1], -1.0), h + 1.0) - 0.5), 0), h)
    right = min(max(math.ceil(min(max(box[2], -1.0), w + 1.0) - 0.5), left), w)
    lower = min(max(math.ceil(min(max(box[3], -1.0), h + 1.0) - 0.5), upper), h)
    return left, upper, right, lower


@njit(nogil=True, fastmath=_LOOSE)
def _laplacian(light: Map, y: int, x: int) -> float:
    around = light[y - 1, x] + light[y + 1, x] + light[y, x - 1] + light[y, x + 1]
    return float(around) - 4.0 * float(light[y, x])


@njit(nogil=True, fastmath=_LOOSE)
def _spread(first: float, second: float, n: float) -> float:
    if n <= 0:
        return math.nan
    mean = first / n
    return math.sqrt(max(second / n - mean * mean, 0.0))
