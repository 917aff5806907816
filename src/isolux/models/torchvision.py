"""torchvision's detectors: ``torchvision:NAME`` (Faster, Mask and Keypoint R-CNN, RetinaNet, …).

A picture is given as it is, from 0 to 1: the network scales and normalises it itself. Pictures of
one size are asked together; a batch that had to be filled up to one size would move answers.

torchvision publishes its weights as pickles, which can run any program when they are loaded. They
are read from torch's cache with ``trust_checkpoint=yes`` alone, as weights and nothing else.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.core.extras import import_optional
from isolux.core.info import ModelInfo, Reference
from isolux.io.images import Pixels
from isolux.models._boxes import BOX_SCHEMA, MASK_SCHEMA, POSE_SCHEMA, encode_mask
from isolux.models._classes import read_class_names
from isolux.models._torch import (
    hash_state_dict,
    import_torch,
    iterate_batches_of_equal_shape,
    move_to_device_for_inference,
    read_safetensors_and_hash,
)

INFO = ModelInfo(
    title="torchvision",
    summary="Runs a detector of torchvision: boxes, masks or poses.",
    references=(
        Reference(
            key="torchvision",
            citation="TorchVision maintainers and contributors (2016). TorchVision: PyTorch's"
            " computer vision library [Computer software].",
            url="https://github.com/pytorch/vision",
        ),
    ),
    licence="BSD-3-Clause; each set of weights' own",
    assumptions=("weights of one's own were trained with torchvision's own scaling of pictures",),
    predicts="several",
    needs="isolux[torchvision]; a file of weights, or torchvision's own in torch's cache",
    packages=("torchvision", "torch"),
)

DetectionType = Literal["boxes", "masks", "keypoints"]
_TYPES_BY_PREFIX: tuple[tuple[str, DetectionType], ...] = (
    ("maskrcnn", "masks"),
    ("keypointrcnn", "keypoints"),
)
_MASK_THRESHOLD = 0.5  # from which share on a pixel is a mask's, as torchvision's examples take it
_KEYPOINTS = "roi_heads.keypoint_predictor.kps_score_lowres.weight"
_BATCH_COUNTER = "num_batches_tracked"  # which frozen layers, and so published weights, do not have
_SCHEMAS: dict[DetectionType, dict[str, Any]] = {
    "boxes": BOX_SCHEMA,
    "masks": MASK_SCHEMA,
    "keypoints": POSE_SCHEMA,
}


@dataclass(frozen=True, slots=True)
class ImageTensor:
    """A picture as the network takes it: ``[3, height, width]``, 0 to 1."""

    values: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return int(self.values.nbytes)


@dataclass(frozen=True)
class TorchvisionDetector:
    """A loaded detector."""

    torch: Any
    inner: Any
    predicts: DetectionType
    names: tuple[str, ...]
    device: str
    identity: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=())

    def prepare(self, pixels: Pixels) -> ImageTensor:
        """Bring a picture to numbers from 0 to 1."""
        return ImageTensor(
            np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32) / 255.0
        )

    def __call__(self, pictures: Sequence[ImageTensor]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[tuple[Any, ...]] = []
        with self.torch.inference_mode():
            for offset, batch in iterate_batches_of_equal_shape(
                pictures, lambda image_input: image_input.values.shape
            ):
                tensors = [
                    self.torch.from_numpy(image_input.values).to(self.device)
                    for image_input in batch
                ]
                for k, outputs in enumerate(self.inner(tensors)):
                    arrays = {
                        name: image_input.float().cpu().numpy()
                        for name, image_input in outputs.items()
                    }
                    rows += convert_torchvision_detections_to_rows(
                        arrays, self.predicts, self.names, offset + k
                    )
        return pl.DataFrame(rows, schema=_SCHEMAS[self.predicts], orient="row")


def convert_torchvision_detections_to_rows(
    outputs: Mapping[str, npt.NDArray[Any]],
    detection_type: DetectionType,
    names: Sequence[str],
    image_index: int,
) -> list[tuple[Any, ...]]:
    """Make rows of what torchvision's detectors give for one picture."""
    rows: list[tuple[Any, ...]] = []
    for k, (box, label, score) in enumerate(
        zip(outputs["boxes"], outputs["labels"], outputs["scores"], strict=True)
    ):
        x_min, top, x_max, bottom = (float(edge) for edge in box)
        number = int(label)
        name = names[number] if number < len(names) else str(number)
        row = (image_index, name, x_min, top, x_max - x_min, bottom - top, float(score))
        rows.append((*row, *_convert_mask_or_pose(outputs, detection_type, k)))
    return rows


def _convert_mask_or_pose(
    outputs: Mapping[str, npt.NDArray[Any]], detection_type: DetectionType, detection_index: int
) -> tuple[Any, ...]:
    if detection_type == "masks":
        return encode_mask(outputs["masks"][detection_index, 0] > _MASK_THRESHOLD)
    if detection_type == "keypoints":
        confidences = 0.5 * (
            1.0 + np.tanh(0.5 * outputs["keypoints_scores"][detection_index].astype(float))
        )
        x, y = outputs["keypoints"][detection_index, :, :2].astype(float).T.tolist()
        return x, y, confidences.tolist()
    return ()


def load(
    spec: str,
    *,
    answers: DetectionType | None = None,
    weights: str | None = None,
    labels: str | None = None,
    min_score: float = 0.05,
    max_detections: int = 100,
    device: str = "cpu",
    online: bool = False,
    trust_checkpoint: bool = False,
) -> TorchvisionDetector:
    """Load a detector.

    Parameters
    ----------
    spec : str
        A name of torchvision's: ``fasterrcnn_resnet50_fpn``, ``keypointrcnn_resnet50_fpn``.
    answers : {"boxes", "masks", "keypoints"}, optional
        Default: what the network is for.
    weights : str, optional
        The weights, as a safetensors file. Default: torchvision's own, from torch's cache.
    labels : str, optional
        File with the names of its classes, without that of nothing. Default: torchvision's.
    min_score : float
        Boxes of a lower score are left out.
    max_detections : int
        Boxes of a picture, at most.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    online : bool
        Let torchvision's weights be fetched.
    trust_checkpoint : bool
        Read torchvision's own weights, which are a pickle.

    Returns
    -------
    TorchvisionDetector

    Raises
    ------
    SpecError
        torchvision is not installed or cannot be loaded, no weights, an answer that the network
        does not give, no such device.
    UnknownNameError
        No such detector, with the nearest names.

    Examples
    --------
    ``docs/how_to/models.md`` runs one. A detector that there is not, or a library that is not here:

    >>> from isolux.core.errors import IsoluxError
    >>> try:
    ...     load("absent_rcnn")
    ... except IsoluxError:
    ...     print("said by name")
    said by name
    """
    purpose = f"the model torchvision:{spec}"
    torch = import_torch(purpose, "torchvision")
    import_optional("torchvision", package="torchvision", extra="torchvision", purpose=purpose)
    library = import_module("torchvision.models")
    _check_torchvision_detector_exists(library, spec)
    detection_type = _choose_detection_type(spec, answers)
    official = library.get_model_weights(spec).DEFAULT
    limits = _build_limit_arguments(spec, min_score, max_detections)
    if weights is None:
        _check_weights_are_cached_and_safe(
            torch, official, online=online, is_trusted=trust_checkpoint
        )
        inner = library.get_model(spec, weights=official, progress=False, **limits)
        names = _read_class_names_or_default(labels, official.meta["categories"])
        weight_hashes = {"state": hash_state_dict(inner)}
    else:
        names = _read_class_names_or_default(labels, official.meta["categories"])
        state, weight_hashes = read_safetensors_and_hash(weights)
        inner = _build_detector_from_state_dict(library, spec, len(names), state, limits, weights)
    identity = {
        "name": spec,
        "weights": weight_hashes,
        "answers": detection_type,
        "classes": list(names),
        "min_score": min_score,
        "max_detections": max_detections,
        "device": device,
    }
    return TorchvisionDetector(
        torch, move_to_device_for_inference(inner, device), detection_type, names, device, identity
    )


def _check_torchvision_detector_exists(library: Any, spec: str) -> None:
    detector_names = library.list_models(module=library.detection)
    if spec not in detector_names:
        near = difflib.get_close_matches(spec, detector_names, n=12, cutoff=0.4) or detector_names
        raise UnknownNameError("detector of torchvision", spec, near)


def _choose_detection_type(spec: str, answers: DetectionType | None) -> DetectionType:
    native_type: DetectionType = next(
        (detection_type for start, detection_type in _TYPES_BY_PREFIX if spec.startswith(start)),
        "boxes",
    )
    if answers not in (None, "boxes", native_type):
        raise SpecError(
            f"torchvision's {spec} does not answer with {answers}",
            expected="boxes" if native_type == "boxes" else f"boxes or {native_type}",
            found=str(answers),
        )
    return answers or native_type


def _build_limit_arguments(spec: str, min_score: float, max_detections: int) -> dict[str, Any]:
    """Name the two limits as the network does."""
    if "rcnn" in spec:
        return {"box_score_thresh": min_score, "box_detections_per_img": max_detections}
    return {"score_thresh": min_score, "detections_per_img": max_detections}


def _read_class_names_or_default(
    labels: str | None, default_names: Sequence[str]
) -> tuple[str, ...]:
    return tuple(default_names) if labels is None else ("nothing", *read_class_names(labels))


def _check_weights_are_cached_and_safe(
    torch: Any, official: Any, *, online: bool, is_trusted: bool
) -> None:
    """Refuse weights that are not on this machine, and a pickle that is not trusted."""
    name = str(official.url).rpartition("/")[2]
    path = Path(torch.hub.get_dir()) / "checkpoints" / name
    if not online and not path.is_file():
        raise SpecError(
            "torchvision's weights are not on this machine",
            expected="--model-option weights=FILE.safetensors, or the file in torch's cache",
            found="none",
            where=str(path),
            hint="--model-option online=yes lets them be fetched",
        )
    if not is_trusted:
        raise SpecError(
            "torchvision's weights are a pickle, and loading one can run any program that is in it",
            expected="weights as .safetensors: --model-option weights=FILE",
            found=name,
            hint="or, where you trust its source, --model-option trust_checkpoint=yes",
        )


def _build_detector_from_state_dict(
    library: Any,
    spec: str,
    n_classes: int,
    state_dict: Mapping[str, Any],
    limits: Mapping[str, Any],
    source: str,
) -> Any:
    """Make a network of so many classes, with weights of one's own."""
    network_settings = dict(limits)
    if _KEYPOINTS in state_dict:
        network_settings["num_keypoints"] = int(state_dict[_KEYPOINTS].shape[1])
    try:
        inner = library.get_model(
            spec, weights=None, weights_backbone=None, num_classes=n_classes, **network_settings
        )
        missing, unexpected = inner.load_state_dict(state_dict, strict=False)
    except (RuntimeError, TypeError) as error:
        raise SpecError(
            "these are the weights of another network, or of another number of classes",
            expected=f"{spec} of {n_classes:,} classes, nothing among them",
            found=" ".join(str(error).split())[:300],
            where=source,
            hint="--model-option labels=FILE names the classes",
        ) from error
    missing = [name for name in missing if not name.endswith(_BATCH_COUNTER)]
    if missing or unexpected:
        raise FileError(
            "these are the weights of another network",
            expected=f"those of {spec}",
            found=f"without {len(missing):,} of its own, with {len(unexpected):,} others: "
            + ", ".join([*missing, *unexpected][:3]),
            where=source,
        )
    return inner
