"""Settings that all tasks share that compare generated images with originals."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from isolux.core.plugin_options import SharedOption

Crop = Literal["none", "face", "box"]


class ImageComparisonSettings(TypedDict, total=False):
    """Where the originals are, and how two images are prepared and measured."""

    originals: Annotated[
        str | None,
        SharedOption(
            None,
            "The folder that the dataset's paths begin in. Not given: that of the file that its"
            " loader read, or one of three above it.",
        ),
    ]
    original_embeddings: Annotated[
        str | None,
        SharedOption(
            None,
            "A file of the originals' embeddings, by the network that made ``predictions``.",
        ),
    ]
    size_px: Annotated[
        int,
        SharedOption(
            256,
            "Both pictures are resized to squares with this side by a bilinear filter, as in "
            "FHIBE's code. 0: they are not resized and must have the same size.",
        ),
    ]
    crop: Annotated[
        Crop,
        SharedOption(
            "none",
            "Compare only what is inside the instance's ``face_box_x, …`` or ``box_x, …``, in "
            "pixels of the original. FHIBE's face table holds aligned crops, which need none.",
        ),
    ]
    lpips_weights: Annotated[
        str,
        SharedOption(
            "vgg16",
            'torchvision\'s weights of VGG-16, a file; ``"vgg16"``: where PyTorch keeps what'
            " torchvision fetched. Nothing is downloaded.",
        ),
    ]
    device: Annotated[str, SharedOption("cpu", "Where PyTorch runs LPIPS: ``cpu``, ``cuda``.")]
    model: Annotated[
        str | None,
        SharedOption(None, "What to call the model if there is not one prediction to say so."),
    ]
