"""From a picture to what a network takes, and from its pixels back to the picture's.

The authors of a model define this; a resize by another filter or another crop is another model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.io.images import Pixels
from isolux.io.resizing import Filter, resize_and_crop

_RELATIVE_TOLERANCE = 1.01  # of the largest pixel: 1/255 may be written as .0039

Fit = Literal["stretch", "crop", "pad"]
Colours = Literal["rgb", "bgr"]


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A network's input for one picture, and where its pixels lie in that picture.

    It waits for its batch as bytes, a quarter of the room that its numbers take.

    Parameters
    ----------
    pixels : ndarray of uint8
        ``[3, height, width]``, or ``[height, width, 3]``.
    table : ndarray [3, 256] or None
        The number that the network is given for each byte of each channel; None if it takes bytes.
    scale : (float, float)
        Pixels of the input per pixel of the picture, in x and in y.
    offset : (float, float)
        Where the picture's upper left corner lies in the input: x, y; negative where it is cut off.
    size : (int, int)
        The picture's width and height.
    """

    pixels: Pixels
    table: npt.NDArray[Any] | None
    scale: tuple[float, float]
    offset: tuple[float, float]
    size: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return int(self.pixels.nbytes)

    @property
    def values(self) -> npt.NDArray[Any]:
        """What the network is given."""
        if self.table is None:
            return self.pixels
        out = np.empty(self.pixels.shape, self.table.dtype)
        self.write_values_into(out)
        return out

    def write_values_into(self, out: npt.NDArray[Any]) -> None:
        """Write the values into an array of their shape."""
        if self.table is None:
            out[:] = self.pixels
            return
        is_channels_first = self.pixels.shape[0] == 3
        for k, channel_values in enumerate(self.table):
            target = out[k] if is_channels_first else out[..., k]
            channel = self.pixels[k] if is_channels_first else self.pixels[..., k]
            target[...] = np.take(channel_values, channel, mode="clip")

    def to_image_xy(self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Any:
        """Bring points of the input to the picture's pixels, ends of the picture included."""
        width, height = self.size
        return (
            np.clip((x - self.offset[0]) / self.scale[0], 0, width),
            np.clip((y - self.offset[1]) / self.scale[1], 0, height),
        )


@dataclass(frozen=True)
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
        white = 255 * self.scale
        if max(map(abs, (*self.mean, *self.std))) > max(white, 1.0) * _RELATIVE_TOLERANCE:
            raise SpecError(
                "mean or std is larger than any pixel, so that all pictures would look alike",
                expected=f"numbers up to {white:g}: pixels of 0 to 255 are multiplied by"
                f" scale={self.scale:g} first",
                found=f"mean {list(self.mean)}, std {list(self.std)}",
                hint="scale=1 leaves pixels at 0 to 255",
            )

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of what it makes of a picture."""
        size = self.height, self.width
        return (3, *size) if self.channels_first else (*size, 3)

    @cached_property
    def table(self) -> npt.NDArray[Any] | None:
        """The number for each byte of each channel ``[3, 256]``; None if it takes bytes."""
        if self.dtype == "uint8":
            return None
        mean = np.asarray(self.mean, np.float32)
        std = np.asarray(self.std, np.float32)
        byte_values = np.arange(256, dtype=np.uint8)[:, None] * np.float32(self.scale)
        return np.ascontiguousarray(((byte_values - mean) / std).astype(self.dtype).T)

    def __call__(self, pixels: Pixels) -> ModelInput:
        """Prepare one picture ``[height, width, 3]``."""
        resized, scale, offset = self._resize_and_pad_or_crop(pixels)
        oriented = resized[..., ::-1] if self.colours == "bgr" else resized
        if self.channels_first:
            oriented = oriented.transpose(2, 0, 1)
        height, width = pixels.shape[:2]
        return ModelInput(
            np.ascontiguousarray(oriented), self.table, scale, offset, (width, height)
        )

    def _compute_resized_size(self, height: int, width: int) -> tuple[int, int]:
        """Compute the resized height and width before cropping or padding."""
        is_width_bound = self.height * width <= self.width * height  # in shape, beside the input
        if self.fit == "pad":
            factor = self.height / height if is_width_bound else self.width / width
            return max(round(height * factor), 1), max(round(width * factor), 1)
        # As torchvision: the side that binds first, and the other one's fraction left out.
        if is_width_bound:
            w = round(self.width / self.share)
            return max(int(w * height / width), self.height), w
        h = round(self.height / self.share)
        return h, max(int(h * width / height), self.width)

    def _resize_and_pad_or_crop(
        self, pixels: Pixels
    ) -> tuple[Pixels, tuple[float, float], tuple[float, float]]:
        """Resize, then cut off or fill; give the scale and where the picture's corner lies."""
        height, width = pixels.shape[:2]
        if self.fit == "stretch":
            h, w = self.height, self.width
        else:
            h, w = self._compute_resized_size(height, width)
        top, left_px = (
            _compute_leading_padding(self.height - h),
            _compute_leading_padding(self.width - w),
        )
        rows = slice(max(top, 0), min(top + h, self.height))
        columns = slice(max(left_px, 0), min(left_px + w, self.width))
        fitted = resize_and_crop(
            pixels,
            (h, w),
            slice(rows.start - top, rows.stop - top),
            slice(columns.start - left_px, columns.stop - left_px),
            self.filter,
        )
        if fitted.shape[:2] != (self.height, self.width):
            canvas = np.full((self.height, self.width, 3), self.fill, np.uint8)
            canvas[rows, columns] = fitted
            fitted = canvas
        return fitted, (w / width, h / height), (float(left_px), float(top))


def _compute_leading_padding(margin_px: int) -> int:
    """Return the padding before the image; negative: pixels to crop, as torchvision rounds."""
    return margin_px // 2 if margin_px >= 0 else -round(-margin_px / 2)


def stack_model_inputs(inputs: Sequence[ModelInput]) -> npt.NDArray[Any]:
    """Stack the inputs of a batch into one array ``[n, …]``."""
    first = inputs[0]
    dtype = first.pixels.dtype if first.table is None else first.table.dtype
    out = np.empty((len(inputs), *first.pixels.shape), dtype)
    for target, model_input in zip(out, inputs, strict=True):
        model_input.write_values_into(target)
    return out


def copy_batch_to_device(torch: Any, inputs: Sequence[ModelInput], device: str) -> Any:
    """Copy the inputs of a batch ``[n, 3, height, width]`` to the network's device."""
    table = inputs[0].table
    if device == "cpu" or table is None:
        return torch.from_numpy(stack_model_inputs(inputs)).to(device)
    # To memory that a GPU reads by itself. A copy by numpy would let go of Python's lock each time.
    shape, size = (len(inputs), *inputs[0].pixels.shape), inputs[0].nbytes
    batch = torch.empty(shape, dtype=torch.uint8, pin_memory=device.startswith("cuda"))
    target_bytes = memoryview(batch.numpy()).cast("B")
    for k, model_input in enumerate(inputs):
        target_bytes[k * size : (k + 1) * size] = model_input.pixels.data.cast("B")
    pixel_bytes = batch.to(device, non_blocking=True)
    byte_table = torch.from_numpy(table).to(device)
    return torch.stack([byte_table[k][pixel_bytes[:, k].long()] for k in range(3)], dim=1)


def run_network_on_inputs(
    torch: Any,
    network: Callable[[Any], Any],
    inputs: Sequence[ModelInput],
    device: str,
    n_outputs: int,
) -> npt.NDArray[Any]:
    """Run a network over prepared pictures: ``[n, width]``, also of none."""
    if not inputs:
        return np.zeros((0, n_outputs))
    with torch.inference_mode():
        return np.asarray(
            network(copy_batch_to_device(torch, inputs, device)).float().cpu().numpy()
        )
