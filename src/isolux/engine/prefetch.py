"""Prefetching one image: decode, crop, prepare.

Threads of the command do this, and on a machine with a GPU processes beside it: the same function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from isolux.engine.inference import ModelResponse
from isolux.engine.source_images import DecodedImage, SourceImage, decode_and_crop_units
from isolux.io.image_folder import ImageFolder


@dataclass(slots=True)
class PrefetchedImage:
    """A prefetched image with the model's inputs and their size in memory.

    Parameters
    ----------
    decoded : DecodedImage
        Without its cuts.
    model_inputs : list
        What the model is shown of each unit; None where there is nothing.
    responses : list of ModelResponse or None
        Why there is nothing; None: there is something, and the model says more.
    n_bytes : int
        Of all that is shown.
    """

    decoded: DecodedImage
    model_inputs: list[Any]
    responses: list[ModelResponse | None]
    n_bytes: int = 0


def decode_and_prepare_image(
    image: SourceImage, folder: ImageFolder, prepare: Callable[..., Any] | None, box_factor: float
) -> PrefetchedImage:
    """Decode an image, crop its units, and prepare them as model inputs."""
    opened = decode_and_crop_units(image, folder, box_factor)
    # Without its crops: a shard of large images would fill the memory until it is committed.
    prefetched_image = PrefetchedImage(replace(opened, crops=()), [], [])
    for crop in opened.crops:
        if crop.pixels is None:
            prefetched_image.model_inputs.append(None)
            prefetched_image.responses.append(ModelResponse(None, crop.reason, "picture"))
            continue
        try:
            # A pose model is given people's boxes with the image (``by_box``).
            boxes = () if image.boxes is None else (image.boxes,)
            model_input = crop.pixels if prepare is None else prepare(crop.pixels, *boxes)
        except Exception as error:  # noqa: BLE001 - whatever a model raises is its own
            reason = (str(error).splitlines() or [""])[0][:200]
            prefetched_image.model_inputs.append(None)
            prefetched_image.responses.append(
                ModelResponse(
                    None,
                    f"the model's preparation raised {type(error).__name__}: {reason}",
                    "model",
                )
            )
            continue
        prefetched_image.model_inputs.append(model_input)
        prefetched_image.responses.append(None)
        n_input_bytes = getattr(model_input, "nbytes", None)
        prefetched_image.n_bytes += (
            n_input_bytes if isinstance(n_input_bytes, int) else crop.pixels.nbytes
        )
    return prefetched_image
