"""From a picture to what a network takes, and from its pixels back to the picture's.

The authors of a model define this; a resize by another filter or another crop is another model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isolux.io.images import Pixels
from isolux.vocabulary.errors import SpecError

__all__ = ["Colours", "Filter", "Fit", "Prepared", "Preprocessing", "stacked"]

Fit = Literal["stretch", "crop", "pad"]
Filter = Literal["nearest", "bilinear", "bicubic", "lanczos"]
Colours = Literal["rgb", "bgr"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A network's input for one picture, and where its pixels lie in that picture.

    Parameters
    ----------
    values : ndarray
        ``[3, height, width]``, or ``[height, width, 3]``.
    scale : (float, float)
        Pixels of the input per pixel of the picture, in x and in y.
    offset : (float, float)
        Where the picture's upper left corner lies in the input: x, y; negative where it is cut off.
    size : (int, int)
        The picture's width and height.
    """

    values: npt.NDArray[Any]
    scale: tuple[float, float]
    offset: tuple[float, float]
    size: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return int(self.values.nbytes)

    def to_picture(self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Any:
        """Bring points of the input to the picture's pixels, ends of the picture included."""
        width, height = self.size
        return (
            np.clip((x - self.offset[0]) / self.scale[0], 0, width),
            np.clip((y - self.offset[1]) / self.scale[1], 0, height),
        )


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """How a picture becomes a network's input.

    Parameters
    ----------
    height, width : int
        The input's size in pixels.
    fit : {"stretch", "crop", "pad"}
        Bring it to that size whatever its shape; or keep its shape and cut off what is too long, or
        fill what is missing, in the middle, with ``fill``.
    share : float
        Of ``"crop"``: the side that is cut out, as a share of the resized picture's shorter side
        (0.875: 224 of 256).
    filter : {"nearest", "bilinear", "bicubic", "lanczos"}
        Pillow's, which averages over what it makes smaller.
    mean, std : sequence of 3 float
        Taken away and divided by, on a scale from 0 to 1, in the order of ``colours``.
    scale : float
        What a pixel of 0 to 255 is multiplied by before that.
    colours : {"rgb", "bgr"}
    channels_first : bool
    fill : int
        Grey, 0 to 255.
    dtype : str
        ``"float32"``, ``"float16"`` or ``"uint8"``.
    """

    height: int
    width: int
    fit: Fit = "stretch"
    share: float = 1.0
    filter: Filter = "bilinear"
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    scale: float = 1 / 255
    colours: Colours = "rgb"
    channels_first: bool = True
    fill: int = 114
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if len(self.mean) != 3 or len(self.std) != 3 or not all(self.std):
            raise SpecError(
                "mean and std do not fit a colour picture",
                expected="three numbers each, std not 0",
                found=f"mean {list(self.mean)}, std {list(self.std)}",
            )

    def said(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def __call__(self, pixels: Pixels) -> Prepared:
        """Prepare one picture ``[height, width, 3]``."""
        resized, scale, offset = self._fitted(pixels)
        values = resized[..., ::-1] if self.colours == "bgr" else resized
        if self.dtype == "uint8":
            array: npt.NDArray[Any] = np.ascontiguousarray(values)
        else:
            mean = np.asarray(self.mean, np.float32)
            std = np.asarray(self.std, np.float32)
            array = ((values * np.float32(self.scale) - mean) / std).astype(self.dtype)
        if self.channels_first:
            array = array.transpose(2, 0, 1)
        height, width = pixels.shape[:2]
        return Prepared(np.ascontiguousarray(array), scale, offset, (width, height))

    def _size_of(self, height: int, width: int) -> tuple[int, int]:
        """Give a picture's height and width before it is cut off or filled up."""
        tall = self.height * width <= self.width * height  # in shape, beside the input
        if self.fit == "pad":
            factor = self.height / height if tall else self.width / width
            return max(round(height * factor), 1), max(round(width * factor), 1)
        # As torchvision: the side that binds first, and the other one's fraction left out.
        if tall:
            w = round(self.width / self.share)
            return max(int(w * height / width), self.height), w
        h = round(self.height / self.share)
        return h, max(int(h * width / height), self.width)

    def _fitted(self, pixels: Pixels) -> tuple[Pixels, tuple[float, float], tuple[float, float]]:
        """Resize, then cut off or fill; give the scale and where the picture's corner lies."""
        height, width = pixels.shape[:2]
        if self.fit == "stretch":
            whole = _resized(pixels, self.height, self.width, self.filter)
            return whole, (self.width / width, self.height / height), (0.0, 0.0)
        h, w = self._size_of(height, width)
        small = _resized(pixels, h, w, self.filter)
        top, left = _middle(self.height - h), _middle(self.width - w)
        canvas = np.full((self.height, self.width, 3), self.fill, np.uint8)
        rows = slice(max(top, 0), min(top + h, self.height))
        columns = slice(max(left, 0), min(left + w, self.width))
        canvas[rows, columns] = small[
            rows.start - top : rows.stop - top, columns.start - left : columns.stop - left
        ]
        return canvas, (w / width, h / height), (float(left), float(top))


def _middle(free: int) -> int:
    """Give how many of the free pixels lie before; negative: cut off, as torchvision does."""
    return free // 2 if free >= 0 else -round(-free / 2)


def _resized(pixels: Pixels, height: int, width: int, filter_name: str) -> Pixels:
    from PIL import Image

    if pixels.shape[:2] == (height, width):
        return pixels
    how = Image.Resampling[filter_name.upper()]
    return np.asarray(Image.fromarray(pixels).resize((width, height), how), dtype=np.uint8)


def stacked(shown: Sequence[Prepared]) -> npt.NDArray[Any]:
    """Put the inputs of a batch into one array ``[n, …]``."""
    return np.stack([one.values for one in shown])
