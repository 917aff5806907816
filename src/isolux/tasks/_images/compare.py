"""Pairs of images brought to one size, and their pixel metrics."""

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

from isolux.core.errors import FileError
from isolux.io.image_tables import ARCHIVE_SEPARATOR
from isolux.io.images import Pixels, decode_image, read_image, resize_image
from isolux.io.tar import read_tar_files
from isolux.stats.statistic import FloatArray
from isolux.tasks._images.settings import ImageComparisonSettings

# Wang et al. (2004), section III-B: a Gaussian window; K1 and K2 keep 0 / 0 away.
SSIM_WINDOW = 11
# Standard deviation of the window, in pixels.
_SSIM_SIGMA = 1.5
_K1, _K2 = 0.01, 0.03


ERROR_FLOOR = 1e-8
"""Added to PSNR's mean squared error, as FHIBE's code has it by way of PIQ: at most 80 dB."""


def peak_signal_to_noise_db(
    first: Pixels, second: Pixels, *, error_floor: float = ERROR_FLOOR
) -> float:
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
    # Signed: uint8 differences would wrap around at 0.
    differences = first.astype(np.int32) - second.astype(np.int32)
    # Summed in integers, so that the result does not depend on the order of addition.
    squared = float(np.einsum("ijk,ijk->", differences, differences, dtype=np.int64))
    # The floor is added to the mean, as in PIQ, not to each square.
    error = squared / (255.0**2 * differences.size) + error_floor
    # Below 0 dB only by the error floor: black against white has an error of 1.
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

    half_window = SSIM_WINDOW // 2
    window = np.exp(-(np.arange(-half_window, half_window + 1) ** 2) / (2 * _SSIM_SIGMA**2))
    # Wang et al. (2004): the weights of the window sum to one.
    window /= window.sum()
    a, b = first.astype(np.float64), second.astype(np.float64)
    # Variances and covariance as means of products less products of means, by one filter.
    stacked = np.stack([a, b, a * a, b * b, a * b])
    # A Gaussian is separable: two passes of 11 weights instead of one of 121.
    for axis in (1, 2):
        stacked = correlate1d(stacked, window, axis=axis, mode="nearest")
    # Only windows that lie inside the image count, so the filter's border mode has no effect.
    mean_a, mean_b, aa, bb, ab = stacked[:, half_window:-half_window, half_window:-half_window]
    c1, c2 = (_K1 * 255) ** 2, (_K2 * 255) ** 2
    product = mean_a * mean_b
    squared_means = mean_a**2 + mean_b**2
    numerator = (2 * product + c1) * (2 * (ab - product) + c2)
    denominator = (squared_means + c1) * (aa + bb - squared_means + c2)
    # Rounding may exceed the range by a last digit, which the table of scores would refuse.
    return float(np.clip((numerator / denominator).mean(), -1.0, 1.0))


Distance = Callable[[npt.NDArray[np.uint8], npt.NDArray[np.uint8]], FloatArray]
"""Two stacks ``[n, h, w, 3]`` to ``[n]``."""
_PreparedPair = tuple[int, Pixels, Pixels]
# VGG-16 halves the image four times.
_MIN_LPIPS_SIDE_PX = 16
# Pairs in memory at once, so that a large dataset takes little of it.
_BATCH_PAIRS = 32
# Of the ratio of width to height, for rounding to whole pixels.
_SHAPE_TOLERANCE = 0.02
# Decoding releases Python's lock; four images of the largest size fit into 2 GiB.
_N_WORKERS = 4


@dataclass(frozen=True, slots=True)
class ImagePair:
    """An original, a model's output, and the box to compare in (x, y, w, h; pixels)."""

    original: Path
    output: str
    box: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class ImageMetricValues:
    """One metric of each pair or unit: values ``[n]`` (NaN: none), and the reasons for NaN."""

    values: FloatArray
    reason: npt.NDArray[np.object_]


def compare_images(
    pairs: Sequence[ImagePair],
    settings: ImageComparisonSettings,
    metrics: Sequence[str],
    distance: Distance | None,
) -> dict[str, ImageMetricValues]:
    """Measure pairs of images, in memory that does not grow with their number."""
    n = len(pairs)
    values_by_metric = {
        name: ImageMetricValues(np.full(n, np.nan), np.full(n, None, dtype=object))
        for name in metrics
    }
    is_compared = np.zeros(n, dtype=bool)
    with closing(_iterate_outputs(pairs)) as sources, ThreadPoolExecutor(_N_WORKERS) as pool:
        while chunk := list(islice(sources, _BATCH_PAIRS)):
            prepared_pairs: list[_PreparedPair] = []
            for pair, images in pool.map(
                partial(_prepare_pair, pairs=pairs, settings=settings), chunk
            ):
                is_compared[pair] = True
                if not isinstance(images, str):
                    prepared_pairs.append((pair, *images))
                    continue
                for metric_values in values_by_metric.values():
                    metric_values.reason[pair] = images
            for name, metric_values in values_by_metric.items():
                _fill_metric(name, metric_values, prepared_pairs, distance, pool)
    # A missing file of an archive is not a bad image: a reason here would hide an incomplete file.
    if not is_compared.all():
        missing_output = pairs[int(np.argmin(is_compared))].output
        raise FileError("a picture is gone since it was listed", where=missing_output)
    return values_by_metric


def _iterate_outputs(pairs: Sequence[ImagePair]) -> Generator[tuple[int, bytes | str]]:
    """Yield each pair's output: a path, or the bytes of a file in an archive."""
    archived: dict[str, dict[str, list[int]]] = {}
    for number, pair in enumerate(pairs):
        archive, separator, member = pair.output.partition(ARCHIVE_SEPARATOR)
        if separator:
            archived.setdefault(archive, {}).setdefault(member, []).append(number)
        else:
            yield number, pair.output
    # Each archive is read once from start to end: its files cannot be reached directly.
    for archive, members in archived.items():
        with closing(read_tar_files(archive)) as files:
            for name, contents in files:
                yield from ((number, contents) for number in members.pop(name, ()))


def _prepare_pair(
    source: tuple[int, bytes | str], pairs: Sequence[ImagePair], settings: ImageComparisonSettings
) -> tuple[int, tuple[Pixels, Pixels] | str]:
    """Read a pair and bring it to one size, or return the reason why not; runs in threads."""
    number, output_source = source
    pair, crop, size = pairs[number], settings["crop"], settings["size_px"]
    output = (
        decode_image(output_source, pair.output)
        if isinstance(output_source, bytes)
        else read_image(output_source)
    )
    original = read_image(pair.original)
    full_size = original.shape[:2]
    # Comparing the whole image instead would mix two quantities in one mean.
    if crop != "none" and pair.box is None:
        return number, "no face box" if crop == "face" else "no box"
    # Resizing would distort one of the two.
    if not _has_same_aspect_ratio(output.shape[:2], full_size):
        return number, "picture of another shape than the original"
    if crop != "none" and pair.box is not None:
        # The box is in pixels of the original.
        factors = (output.shape[1] / full_size[1], output.shape[0] / full_size[0])
        original = _crop(original, pair.box, (1.0, 1.0))
        output = _crop(output, pair.box, factors)
        if not original.size or not output.size:
            return number, "box outside the picture"
    if size:
        return number, (resize_image(original, size, size), resize_image(output, size, size))
    # With size_px=0 nothing is resized, because resizing changes PSNR and SSIM.
    if original.shape != output.shape:
        return number, "picture of another size than the original"
    return number, (original, output)


def _has_same_aspect_ratio(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Return whether two images have the same aspect ratio, but for rounding."""
    ratio = (first[1] / first[0]) / (second[1] / second[0])
    return max(ratio, 1 / ratio) <= 1 + _SHAPE_TOLERANCE


def _crop(
    pixels: Pixels, box_xywh: tuple[float, float, float, float], factors: tuple[float, float]
) -> Pixels:
    """Crop to all pixels that the box touches, inside the image."""
    x, y, w, h = box_xywh
    x_min, x_max = x * factors[0], (x + w) * factors[0]
    y_min, y_max = y * factors[1], (y + h) * factors[1]
    # Rounded outwards, so that a box of less than a pixel is not empty.
    rows = slice(max(math.floor(y_min), 0), max(math.ceil(y_max), 0))
    columns = slice(max(math.floor(x_min), 0), max(math.ceil(x_max), 0))
    return pixels[rows, columns]


def _fill_metric(
    name: str,
    metric_values: ImageMetricValues,
    prepared_pairs: Sequence[_PreparedPair],
    distance: Distance | None,
    pool: ThreadPoolExecutor,
) -> None:
    """Compute one metric of some pairs, in place."""
    min_side_px = {"lpips": _MIN_LPIPS_SIDE_PX, "ssim": SSIM_WINDOW}.get(name, 1)
    for pair, original, _ in prepared_pairs:
        if min(original.shape[:2]) < min_side_px:
            metric_values.reason[pair] = f"picture under {min_side_px} pixels"
    # Smaller images have no window of SSIM, and no features left in LPIPS.
    usable = [
        pair_images
        for pair_images in prepared_pairs
        if min(pair_images[1].shape[:2]) >= min_side_px
    ]
    if name == "lpips" and distance is not None:
        _fill_distances(metric_values, usable, distance)
        return
    measure = peak_signal_to_noise_db if name == "psnr" else structural_similarity
    values = pool.map(lambda pair_images: measure(pair_images[1], pair_images[2]), usable)
    metric_values.values[[pair for pair, _, _ in usable]] = list(values)


def _fill_distances(
    metric_values: ImageMetricValues, usable: Sequence[_PreparedPair], distance: Distance
) -> None:
    """Run the network on all pairs of one size as a batch."""
    # A batch needs one size; crops usually differ.
    shapes: dict[tuple[int, ...], list[_PreparedPair]] = {}
    for pair in usable:
        shapes.setdefault(pair[1].shape, []).append(pair)
    for pairs in shapes.values():
        numbers, originals, outputs = zip(*pairs, strict=True)
        metric_values.values[list(numbers)] = distance(np.stack(originals), np.stack(outputs))
