"""The painter's kernels: a list of shapes becomes pixels and, by the same shapes, label pictures.

``canvas.Canvas`` (shapes in order, farthest first) → ``paint_shapes_in_order`` → picture, owner,
part. Colours are blended by how much of a pixel a shape covers; a label is set where that is half
or more. Ellipses and capsules are covered by their distance functions, polygons by the exact area
that they leave in each pixel (signed areas summed along rows, as font renderers do [1]_).

References
----------
.. [1] Levien, R. (2016). Inside the fastest font renderer in the world.
   https://medium.com/@raphlinus/inside-the-fastest-font-renderer-in-the-world-75ae5270c445
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

__all__ = ["COLUMNS", "paint_shapes_in_order"]

COLUMNS = 28
"""Numbers of a shape; ``canvas.Canvas`` writes them in this order."""
SHAPE_TYPE, GEO, SOFT, ALPHA, RED, RED_B, MODE, GRAD, ROUND = 0, 1, 7, 8, 9, 12, 15, 16, 20
OWNER_COLUMN, PART_COLUMN, CLIP_OWNER, CLIP_PART, GRAIN, GRAIN_PX, HAZE = 21, 22, 23, 24, 25, 26, 27
POLYGON, ELLIPSE, CAPSULE = 0, 1, 2
FLAT, LINEAR, CYLINDER = 0, 1, 2

_Floats = npt.NDArray[np.float64]
_Picture = npt.NDArray[np.float32]
_Labels = npt.NDArray[np.uint8]
# Nothing is allocated in here, and numba is quicker where it need not keep count of arrays.
_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


@njit(None, **_FLAGS)
def _hash_pixel(x: int, y: int, salt: int) -> int:
    """Return 32 bits that a place and a salt decide."""
    h = (x * 374761393 + y * 668265263 + salt * 2147483647) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 2246822519) & 0xFFFFFFFF
    return h ^ (h >> 15)


@njit(None, **_FLAGS)
def _pixel_noise(x: int, y: int, salt: int) -> float:
    """Return a number from −1 to 1 that a place and a salt decide."""
    bits: int = _hash_pixel(x, y, salt)
    return (bits & 0xFFFF) / 32767.5 - 1.0


@njit(None, **_FLAGS)
def _value_noise(x: float, y: float, salt: int) -> float:
    """Value noise: corners of a unit grid, blended smoothly."""
    x0, y0 = math.floor(x), math.floor(y)
    fx, fy = x - x0, y - y0
    fx, fy = fx * fx * (3 - 2 * fx), fy * fy * (3 - 2 * fy)
    i, j = int(x0), int(y0)
    top: float = _pixel_noise(i, j, salt) * (1 - fx) + _pixel_noise(i + 1, j, salt) * fx
    low: float = _pixel_noise(i, j + 1, salt) * (1 - fx) + _pixel_noise(i + 1, j + 1, salt) * fx
    return top * (1 - fy) + low * fy


@njit(None, **_FLAGS)
def _compute_pixel_window_of_shape(
    shape: _Floats, points: _Floats, height: int, width: int
) -> tuple[int, int, int, int]:
    """Return rows and columns (first, one past the last) that a shape can touch."""
    shape_type = int(shape[SHAPE_TYPE])
    reach = shape[SOFT] + 1.0
    if shape_type == POLYGON:
        first, last = int(shape[GEO]), int(shape[GEO + 1])
        x0, x1, y0, y1 = np.inf, -np.inf, np.inf, -np.inf
        for k in range(first, last):
            x0, x1 = min(x0, points[k, 0]), max(x1, points[k, 0])
            y0, y1 = min(y0, points[k, 1]), max(y1, points[k, 1])
    elif shape_type == ELLIPSE:
        c, s = shape[GEO + 4], shape[GEO + 5]
        rx, ry = shape[GEO + 2], shape[GEO + 3]
        dx, dy = math.hypot(rx * c, ry * s), math.hypot(rx * s, ry * c)
        x0, x1, y0, y1 = shape[1] - dx, shape[1] + dx, shape[2] - dy, shape[2] + dy
    else:
        x0 = min(shape[1] - shape[3], shape[4] - shape[6])
        x1 = max(shape[1] + shape[3], shape[4] + shape[6])
        y0 = min(shape[2] - shape[3], shape[5] - shape[6])
        y1 = max(shape[2] + shape[3], shape[5] + shape[6])
    return (
        int(max(0.0, min(float(height), math.floor(y0 - reach)))),
        int(max(0.0, min(float(height), math.ceil(y1 + reach)))),
        int(max(0.0, min(float(width), math.floor(x0 - reach)))),
        int(max(0.0, min(float(width), math.ceil(x1 + reach)))),
    )


@njit(None, **_FLAGS)
def _add_edge_over_several_pixels(
    a: float, b: float, d: float, row: _Picture, left: int, right: int
) -> None:
    """Add the part of an edge that crosses one row from ``a`` to ``b``, over several pixels."""
    s = 1.0 / (b - a)
    covered = 0.0
    end = math.ceil(b)
    for x in range(max(math.floor(a), left), min(end, right)):
        u0, u1 = max(a, float(x)), min(b, x + 1.0)
        before = s * (u0 - a)
        now = before + s * (u1 - u0)
        # mean over the pixel of the share of the edge that lies left of each place in it
        mean = 0.5 * (before + now) * (u1 - u0) + now * (x + 1.0 - u1)
        row[x] += d * (mean - covered)
        covered = mean
    if end < right:
        row[end] += d * (1.0 - covered)


@njit(None, **_FLAGS)
def _add_polygon_edges(
    shape: _Floats, points: _Floats, area: _Picture, low: int, high: int, left: int, right: int
) -> None:
    """Add every edge of a polygon to the signed areas of the rows ``low`` to ``high``."""
    first, last = int(shape[GEO]), int(shape[GEO + 1])
    for k in range(first, last):
        n = first + (k + 1 - first) % (last - first)  # from the last corner back to the first
        x0, y0, x1, y1, sign = points[k, 0], points[k, 1], points[n, 0], points[n, 1], 1.0
        if y0 > y1:
            x0, y0, x1, y1, sign = x1, y1, x0, y0, -1.0
        slope = (x1 - x0) / (y1 - y0)
        for y in range(max(low, math.floor(y0)), min(high, math.ceil(y1))):
            top, bottom = max(float(y), y0), min(y + 1.0, y1)
            if bottom <= top:
                continue
            d = sign * (bottom - top)
            a, b = x0 + slope * (top - y0), x0 + slope * (bottom - y0)
            a, b = min(a, b), max(a, b)
            if b <= left:  # wholly to the left of the window: covers the row from there on
                area[y, left] += d
            elif a < right:
                _add_edge_within_row(a, b, d, area[y], left, right)


@njit(None, **_FLAGS)
def _add_edge_within_row(
    a: float, b: float, d: float, row: _Picture, left: int, right: int
) -> None:
    """Add the part of an edge that crosses one row from ``a`` to ``b``."""
    first = math.floor(a)
    if first < left or b > first + 1.0:
        _add_edge_over_several_pixels(a, b, d, row, left, right)
        return
    first_share = 0.5 * (a + b) - first
    row[first] += d * (1.0 - first_share)
    if first + 1 < right:
        row[first + 1] += d * first_share


@njit(None, **_FLAGS)
def _signed_ellipse_distance_px(shape: _Floats, x: float, y: float, cutoff_px: float) -> float:
    """Return about how many pixels a place lies inside (below 0) or outside an ellipse."""
    dx, dy = x - shape[1], y - shape[2]
    u = (dx * shape[5] + dy * shape[6]) / shape[3]
    v = (dy * shape[5] - dx * shape[6]) / shape[4]
    r2 = u * u + v * v
    rim = 1.0 + cutoff_px / min(shape[3], shape[4])
    if r2 > rim * rim:  # no place of the rim is nearer than the smaller radius' share
        return 2.0 * cutoff_px
    r = math.sqrt(r2)
    g = math.sqrt(u * u / (shape[3] * shape[3]) + v * v / (shape[4] * shape[4]))
    if g < 1e-9:
        return -2.0 * cutoff_px  # the middle
    distance: float = r * (r - 1.0) / g
    return distance


@njit(None, **_FLAGS)
def _signed_capsule_distance_and_normal(
    shape: _Floats, x: float, y: float
) -> tuple[float, float, float]:
    """Return distance to a tapered capsule, and the place across and along its normal (−1 to 1)."""
    ax, ay, bx, by = shape[1], shape[2], shape[4], shape[5]
    dx, dy = bx - ax, by - ay
    long2 = dx * dx + dy * dy
    t = 0.0
    if long2 > 1e-9:
        t = min(1.0, max(0.0, ((x - ax) * dx + (y - ay) * dy) / long2))
    r = max(shape[3] + (shape[6] - shape[3]) * t, 1e-3)
    nx, ny = x - (ax + dx * t), y - (ay + dy * t)
    distance = math.sqrt(nx * nx + ny * ny) - r
    if long2 > 0.25 * r * r:  # a limb is shaded across alone, so that joints show no balls
        across = (ny * dx - nx * dy) / long2
        nx, ny = -across * dy, across * dx
    return distance, nx / r, ny / r


@njit(None, **_FLAGS)
def _lambert_shading_factor(nx: float, ny: float, strength: float, light: _Floats) -> float:
    """Return the shade of a surface whose normal is (nx, ny, what is left to 1): 1 to the front."""
    n2 = nx * nx + ny * ny
    if n2 > 1.0:
        n = math.sqrt(n2)
        nx, ny, n2 = nx / n, ny / n, 1.0
    nz = math.sqrt(1.0 - n2)
    lambert = nx * light[0] + ny * light[1] + nz * light[2]
    shade: float = 1.0 + strength * (max(lambert, -0.2) - light[2])
    return shade


@njit(None, **_FLAGS)
def _shading_factor_at(
    shape: _Floats, x: float, y: float, u: float, v: float, light: _Floats
) -> float:
    """Return what a shape's colour is multiplied by at a place with the normal (u, v)."""
    shade = 1.0
    if shape[ROUND] != 0.0:
        if int(shape[MODE]) == CYLINDER:
            gx, gy = shape[GRAD + 2] - shape[GRAD], shape[GRAD + 3] - shape[GRAD + 1]
            g2 = max(gx * gx + gy * gy, 1e-9)
            t = 2.0 * ((x - shape[GRAD]) * gx + (y - shape[GRAD + 1]) * gy) / g2 - 1.0
            g = math.sqrt(g2)
            t = min(1.0, max(-1.0, t))
            t *= 0.97 * abs(t)  # flat in front, falling away at the edges, as a face or a chest is
            shade = _lambert_shading_factor(t * gx / g, t * gy / g, shape[ROUND], light)
        else:
            shade = _lambert_shading_factor(u * 0.95, v * 0.95, shape[ROUND], light)
    if shape[GRAIN] != 0.0:
        px = shape[GRAIN_PX]
        if px <= 1.0:
            shade += shape[GRAIN] * _pixel_noise(int(x), int(y), int(shape[RED]))
        else:
            shade += shape[GRAIN] * _value_noise(x / px, y / px, int(shape[RED]))
    return shade


@njit(None, **_FLAGS)
def _gradient_share_at(shape: _Floats, x: float, y: float) -> float:
    """Return where between its two colours a shape is, 0 to 1."""
    gx, gy = shape[GRAD + 2] - shape[GRAD], shape[GRAD + 3] - shape[GRAD + 1]
    t: float = ((x - shape[GRAD]) * gx + (y - shape[GRAD + 1]) * gy) / max(gx * gx + gy * gy, 1e-9)
    return min(1.0, max(0.0, t))


@njit(None, **_FLAGS)
def _blend_shape_colour_into_pixel(
    shape: _Floats, x: int, y: int, alpha: float, shade: float, picture: _Picture, haze: _Floats
) -> None:
    """Lay a shape's colour over a pixel."""
    haze_share = shape[HAZE]
    t = _gradient_share_at(shape, x + 0.5, y + 0.5) if int(shape[MODE]) == LINEAR else 0.0
    for c in range(3):
        colour = shape[RED + c]
        if t > 0.0:
            colour += (shape[RED_B + c] - colour) * t
        colour = min(255.0, max(0.0, colour * shade))
        if haze_share > 0.0:
            colour += (haze[c] - colour) * haze_share
        before = float(picture[y, x, c])
        picture[y, x, c] = np.float32(before + alpha * (colour - before))


@njit(None, **_FLAGS)
def _pixel_coverage_and_normal(shape: _Floats, x: float, y: float) -> tuple[float, float, float]:
    """Return how much of a pixel an ellipse or a capsule covers, and its normal there."""
    soft = shape[SOFT]
    if int(shape[SHAPE_TYPE]) == ELLIPSE:
        d = _signed_ellipse_distance_px(shape, x, y, 0.5 * (1.0 + soft))
        u, v = (x - shape[1]) / shape[3], (y - shape[2]) / shape[4]
    else:
        d, u, v = _signed_capsule_distance_and_normal(shape, x, y)
    cover = min(1.0, max(0.0, 0.5 - d / (1.0 + soft)))
    if soft > 0.0:
        cover = cover * cover * (3.0 - 2.0 * cover)
    return cover, u, v


@njit(None, **_FLAGS)
def _is_inside_clip(shape: _Floats, owner: int, part_number: int) -> bool:
    """Return whether a shape may be painted where that part of that owner is on top."""
    if shape[CLIP_OWNER] < 0:
        return True
    is_same_owner = owner == int(shape[CLIP_OWNER])
    return is_same_owner and (shape[CLIP_PART] < 0 or part_number == int(shape[CLIP_PART]))


@njit(None, **_FLAGS)
def paint_shapes_in_order(
    shapes: _Floats,
    points: _Floats,
    picture: _Picture,
    owner: _Labels,
    part_labels: _Labels,
    touched: _Labels,
    body_px: npt.NDArray[np.int64],
    light: _Floats,
    haze: _Floats,
    area: _Picture,
) -> None:
    """Paint shapes in order onto a picture and its label pictures, all changed in place.

    ``shapes``: [n, COLUMNS] float; ``points``: [p, 2] float; ``picture``: [h, w, 3] float32;
    ``owner``, ``part_labels``, ``touched``: [h, w] uint8; ``body_px``: [256] int; ``light``,
    ``haze``: [3] float; ``area``: [h, w] float32.
    """
    for k in range(shapes.shape[0]):
        shape = shapes[k]
        low, high, left, right = _compute_pixel_window_of_shape(
            shape, points, picture.shape[0], picture.shape[1]
        )
        polygon, owner_number = int(shape[SHAPE_TYPE]) == POLYGON, int(shape[OWNER_COLUMN])
        if polygon and low < high and left < right:
            _add_polygon_edges(shape, points, area, low, high, left, right)
        is_flat = shape[ROUND] == 0.0 and shape[GRAIN] == 0.0
        for y in range(low, high):
            total, u, v = 0.0, 0.0, 0.0
            for x in range(left, right):
                if polygon:
                    total += area[y, x]
                    area[y, x] = 0.0
                    cover = min(1.0, abs(total))
                else:
                    cover, u, v = _pixel_coverage_and_normal(shape, x + 0.5, y + 0.5)
                if cover <= 0.003 or not _is_inside_clip(shape, owner[y, x], part_labels[y, x]):
                    continue
                shade = 1.0 if is_flat else _shading_factor_at(shape, x + 0.5, y + 0.5, u, v, light)
                _blend_shape_colour_into_pixel(
                    shape, x, y, cover * shape[ALPHA], shade, picture, haze
                )
                if owner_number >= 0 and cover >= 0.5:
                    owner[y, x] = owner_number
                    part_labels[y, x] = int(shape[PART_COLUMN])
                    if (
                        0 < owner_number < 255 and touched[y, x] != owner_number
                    ):  # a body's pixel counts once
                        touched[y, x] = owner_number
                        body_px[owner_number] += 1
