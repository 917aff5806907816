"""Two pictures made comparable, and measured pixel by pixel."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isolux.io.image_tables import ARCHIVED
from isolux.io.images import Pixels, decode_image, read_image, resize_image
from isolux.io.tar import tar_files
from isolux.stats.statistic import FloatArray
from isolux.tasks._images.settings import Crop
from isolux.vocabulary.errors import FileError

# Wang et al. (2004), section III-B: a Gaussian window; K1 and K2 keep 0 / 0 away.
SSIM_WINDOW = 11
_SSIM_SIGMA = 1.5
_K1, _K2 = 0.01, 0.03


def peak_signal_to_noise_db(first: Pixels, second: Pixels, *, error_floor: float) -> float:
    """Return −10 · log10(mean squared difference + ``error_floor``) of pixels from 0 to 1.

    Examples
    --------
    One of twelve numbers differs, by 51 of 255: the mean square is .04 / 12, hence 24.771 dB.

    >>> grey = np.full((2, 2, 3), 100, dtype=np.uint8)
    >>> other = grey.copy()
    >>> other[0, 0, 0] = 151
    >>> round(peak_signal_to_noise_db(grey, other, error_floor=0.0), 3)
    24.771
    >>> round(peak_signal_to_noise_db(grey, grey, error_floor=1e-8), 3)
    80.0
    """
    apart = first.astype(np.int32) - second.astype(np.int32)
    squared = float(np.einsum("ijk,ijk->", apart, apart, dtype=np.int64))
    error = squared / (255.0**2 * apart.size) + error_floor
    return max(-10.0 * math.log10(error), 0.0) if error > 0 else math.inf


def structural_similarity(first: Pixels, second: Pixels) -> float:
    """Return SSIM: equation 13 of Wang et al. (2004), averaged over windows and the three colours.

    Examples
    --------
    Two even greys, 100 and 200: (2 · 100 · 200 + 2.55²) / (100² + 200² + 2.55²).

    >>> grey = np.full((11, 11, 3), 100, dtype=np.uint8)
    >>> round(structural_similarity(grey, 2 * grey), 6)
    0.800026
    """
    from scipy.ndimage import correlate1d

    half = SSIM_WINDOW // 2
    window = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * _SSIM_SIGMA**2))
    window /= window.sum()
    a, b = first.astype(np.float64), second.astype(np.float64)
    stacked = np.stack([a, b, a * a, b * b, a * b])
    for axis in (1, 2):
        stacked = correlate1d(stacked, window, axis=axis, mode="nearest")
    mean_a, mean_b, aa, bb, ab = stacked[:, half:-half, half:-half]
    c1, c2 = (_K1 * 255) ** 2, (_K2 * 255) ** 2
    product = mean_a * mean_b
    squares = mean_a**2 + mean_b**2
    like = (2 * product + c1) * (2 * (ab - product) + c2)
    total = (squares + c1) * (aa + bb - squares + c2)
    return float(np.clip((like / total).mean(), -1.0, 1.0))


Distance = Callable[[npt.NDArray[np.uint8], npt.NDArray[np.uint8]], FloatArray]
"""Two stacks ``[n, h, w, 3]`` to ``[n]``."""
IDENTICAL = "identical pictures: PSNR is infinite"
_SMALLEST_LPIPS = 16  # VGG-16 halves four times
_AT_ONCE = 32  # pictures held together, so that a large dataset takes little memory
_WORKERS = 4  # decoding leaves Python's lock; four pictures of the largest size fit into 2 GiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How two pictures are compared; the fields are the options of the tasks, by their names."""

    size_px: int
    crop: Crop
    crop_outputs: bool
    exif_orientation: bool
    shape_tolerance: float
    error_floor: float


@dataclass(frozen=True, slots=True)
class Pair:
    """An original, what a model made of it, and the box to compare in (x, y, w, h; pixels)."""

    original: Path
    output: str
    box: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One metric of each pair or unit: values ``[n]`` (NaN: none) and why there is none."""

    value: FloatArray
    reason: npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class _Both:
    """A pair's pictures of one size, or why there are none."""

    pair: int
    reason: str | None
    pictures: tuple[Pixels, Pixels] | None


def compare(
    pairs: Sequence[Pair], how: Comparison, metrics: Sequence[str], distance: Distance | None
) -> dict[str, Measured]:
    """Measure pairs of pictures, in memory that does not grow with their number."""
    n = len(pairs)
    result = {
        name: Measured(np.full(n, np.nan), np.full(n, None, dtype=object)) for name in metrics
    }
    seen = np.zeros(n, dtype=bool)
    with closing(_sources(pairs)) as sources, ThreadPoolExecutor(_WORKERS) as pool:
        while chunk := list(islice(sources, _AT_ONCE)):
            done = list(pool.map(partial(_prepared, pairs=pairs, how=how), chunk))
            for both in done:
                seen[both.pair] = True
                for found in result.values():
                    found.reason[both.pair] = both.reason
            ready = [both for both in done if both.pictures is not None]
            for name, found in result.items():
                _measure(name, found, ready, how, distance, pool)
    if not seen.all():
        gone = pairs[int(np.argmin(seen))].output
        raise FileError("a picture is gone since it was listed", where=gone)
    return result


def _sources(pairs: Sequence[Pair]) -> Generator[tuple[int, bytes | str]]:
    """Give each pair with its output: a path, or the bytes of a file in an archive."""
    archived: dict[str, dict[str, list[int]]] = {}
    for number, pair in enumerate(pairs):
        archive, parted, member = pair.output.partition(ARCHIVED)
        if parted:
            archived.setdefault(archive, {}).setdefault(member, []).append(number)
        else:
            yield number, pair.output
    for archive, members in archived.items():
        with closing(tar_files(archive)) as files:
            for name, data in files:
                yield from ((number, data) for number in members.pop(name, ()))


def _prepared(source: tuple[int, bytes | str], pairs: Sequence[Pair], how: Comparison) -> _Both:
    """Read a pair and bring it to one size; this runs in several threads."""
    number, data = source
    pair = pairs[number]
    turned = how.exif_orientation
    if isinstance(data, bytes):
        output = decode_image(data, pair.output, exif_orientation=turned)
    else:
        output = read_image(data, exif_orientation=turned)
    original = read_image(pair.original, exif_orientation=turned)
    if how.crop != "none":
        if pair.box is None:
            return _Both(number, "no face box" if how.crop == "face" else "no box", None)
        whole = original.shape[:2]
        original = _cropped(original, pair.box, (1.0, 1.0))
        if how.crop_outputs:
            factors = (output.shape[1] / whole[1], output.shape[0] / whole[0])
            if not _alike(output.shape[:2], whole, how.shape_tolerance):
                return _Both(number, "picture of another shape than the original", None)
            output = _cropped(output, pair.box, factors)
        if not original.size or not output.size:
            return _Both(number, "box outside the picture", None)
    return _of_one_size(number, original, output, how)


def _of_one_size(number: int, original: Pixels, output: Pixels, how: Comparison) -> _Both:
    cropped_apart = how.crop != "none" and how.crop_outputs
    if not cropped_apart and not _alike(output.shape[:2], original.shape[:2], how.shape_tolerance):
        return _Both(number, "picture of another shape than the original", None)
    if how.size_px:
        sized = tuple(resize_image(p, how.size_px, how.size_px) for p in (original, output))
        return _Both(number, None, (sized[0], sized[1]))
    if original.shape != output.shape:
        return _Both(number, "picture of another size than the original", None)
    return _Both(number, None, (original, output))


def _alike(first: tuple[int, ...], second: tuple[int, ...], tolerance: float) -> bool:
    """Tell whether two pictures have one ratio of width to height, within a share of it."""
    ratio = (first[1] / first[0]) / (second[1] / second[0])
    return max(ratio, 1 / ratio) <= 1 + tolerance


def _cropped(
    pixels: Pixels, box_xywh: tuple[float, float, float, float], factors: tuple[float, float]
) -> Pixels:
    """Cut out every pixel that the box touches; what lies outside the picture is left out."""
    x, y, w, h = box_xywh
    left, right = x * factors[0], (x + w) * factors[0]
    upper, lower = y * factors[1], (y + h) * factors[1]
    rows = slice(max(math.floor(upper), 0), max(math.ceil(lower), 0))
    columns = slice(max(math.floor(left), 0), max(math.ceil(right), 0))
    return pixels[rows, columns]


def _measure(
    name: str,
    found: Measured,
    ready: Sequence[_Both],
    how: Comparison,
    distance: Distance | None,
    pool: ThreadPoolExecutor,
) -> None:
    """Fill in one metric of some pairs."""
    smallest = {"lpips": _SMALLEST_LPIPS, "ssim": SSIM_WINDOW}.get(name, 1)
    usable: list[tuple[int, Pixels, Pixels]] = []
    for both in ready:
        if both.pictures is None:
            continue
        if min(both.pictures[0].shape[:2]) < smallest:
            found.reason[both.pair] = f"picture under {smallest} pixels"
            continue
        usable.append((both.pair, *both.pictures))
    if name == "lpips" and distance is not None:
        _stacked(found, usable, distance)
        return
    measure: Callable[[Pixels, Pixels], float] = structural_similarity
    if name == "psnr":
        measure = partial(peak_signal_to_noise_db, error_floor=how.error_floor)
    values = pool.map(lambda item: measure(item[1], item[2]), usable)
    for (number, _, _), value in zip(usable, values, strict=True):
        if math.isinf(value):
            found.reason[number] = IDENTICAL
        else:
            found.value[number] = value


def _stacked(
    found: Measured, usable: Sequence[tuple[int, Pixels, Pixels]], distance: Distance
) -> None:
    """Run the network on all pairs of one size together."""
    shapes: dict[tuple[int, ...], list[tuple[int, Pixels, Pixels]]] = {}
    for item in usable:
        shapes.setdefault(item[1].shape, []).append(item)
    for items in shapes.values():
        first = np.stack([original for _, original, _ in items])
        second = np.stack([output for _, _, output in items])
        found.value[[number for number, _, _ in items]] = distance(first, second)
