"""Pictures that a model makes: from a network's numbers to 8 bits, and to a table of PNG files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, TableError
from isolux.models._preprocessing import Preprocessing


def build_image_table(images: Sequence[npt.NDArray[np.uint8] | None]) -> pl.DataFrame:
    """Make a row of each picture, as PNG; of None, one without.

    Examples
    --------
    >>> table = build_image_table([np.zeros((1, 1, 3), np.uint8), None])
    >>> table["picture"].to_list(), table["png"].is_null().to_list()
    ([0, 1], [False, True])
    """
    encoded = [None if image is None else _encode_png(image) for image in images]
    return pl.DataFrame(
        {
            "picture": pl.int_range(len(encoded), eager=True),
            "png": pl.Series(encoded, dtype=pl.Binary),
        }
    )


def _encode_png(image: npt.NDArray[np.uint8]) -> bytes:
    from PIL import Image

    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise TableError(
            "the model gives a picture that cannot be written",
            expected="[height, width, 3] of 8 bits, RGB",
            found=f"{list(pixels.shape)} of {pixels.dtype}",
        )
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, format="PNG")
    return buffer.getvalue()


def restore_image(
    values: npt.NDArray[Any], prepare: Preprocessing, output_range: Sequence[float] | None
) -> npt.NDArray[np.uint8]:
    """Turn an output ``[3, h, w]`` or ``[h, w, 3]`` into a picture.

    ``output_range``: the numbers of black and of white; None: as those of the network's input.
    """
    image = np.asarray(values, dtype=np.float64)
    if image.ndim != 3 or 3 not in (image.shape[0], image.shape[2]):
        raise SpecError(
            "the network's output is not a picture",
            expected="[n, 3, height, width] or [n, height, width, 3]",
            found=f"{list(image.shape)} for each picture",
            hint="name another output: --model-option scores_output=NAME",
        )
    if image.shape[2] != 3 or (image.shape[0] == 3 and prepare.channels_first):
        image = image.transpose(1, 2, 0)
    if output_range is None:
        image = (image * np.asarray(prepare.std) + np.asarray(prepare.mean)) / prepare.scale
    else:
        black, white = output_range
        image = (image - black) / (white - black) * 255
    if prepare.colours == "bgr":
        image = image[..., ::-1]
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)
