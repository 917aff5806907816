"""MediaPipe's detector of faces and its model of poses: ``mediapipe:faces``, ``mediapipe:pose``.

Both lie in the package with their weights. BlazeFace finds faces; BlazePose finds one person in a
picture and gives 33 keypoints, in its own order, in FHIBE's or as COCO's 17.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.extras import import_optional
from isolux.core.info import ModelInfo, Reference
from isolux.io.hashing import sha256_file
from isolux.io.images import Pixels
from isolux.models._boxes import POSE_SCHEMA, build_box_table

INFO = ModelInfo(
    title="MediaPipe",
    summary="Finds faces, or one person's pose, with the networks of the mediapipe package.",
    references=(
        Reference(
            key="blazeface",
            citation="Bazarevsky, V., Kartynnik, Y., Vakunov, A., Raveendran, K., & Grundmann, M."
            " (2019). BlazeFace: Sub-millisecond neural face detection on mobile GPUs. arXiv.",
            url="https://arxiv.org/abs/1907.05047",
        ),
        Reference(
            key="blazepose",
            citation="Bazarevsky, V., Grishchenko, I., Raveendran, K., Zhu, T., Zhang, F., &"
            " Grundmann, M. (2020). BlazePose: On-device real-time body pose tracking. arXiv.",
            url="https://arxiv.org/abs/2006.10204",
        ),
    ),
    assumptions=("each picture has one person whose pose is wanted",),
    predicts="several",
    needs="mediapipe 0.10.21 or older (pip install --no-deps mediapipe==0.10.21); its weights come "
    "with it",
    packages=("mediapipe", "protobuf"),
)

_VERSION = "mediapipe==0.10.21"  # later ones bring no networks; its requirements exclude NumPy 2
Order = Literal["coco", "fhibe", "blazepose"]
_MODEL_NAMES = ("faces", "pose")
_PAIRS = ((1, 4), (2, 5), (3, 6), (7, 8), (9, 10), *((k, k + 1) for k in range(11, 33, 2)))
_COCO = (0, 2, 5, 7, 8, 11, 12, 13, 14, 15, 16, 23, 24, 25, 26, 27, 28)
"""BlazePose's numbers of COCO's 17 keypoints; both have left before right."""


def list_blazepose_keypoint_indices(order: Order) -> tuple[int, ...]:
    """Return BlazePose's number of each keypoint of an order."""
    if order == "coco":
        return _COCO
    numbers = list(range(33))
    if order == "fhibe":
        for left_number, right_number in _PAIRS:
            numbers[left_number], numbers[right_number] = right_number, left_number
    return tuple(numbers)


@dataclass(frozen=True)
class MediaPipeFaceDetector:
    """The detector of faces."""

    process: Any
    identity: dict[str, Any]
    predicts: str = "boxes"

    def __call__(self, pictures: Sequence[Pixels]) -> pl.DataFrame:
        """Answer for pictures."""
        rows: list[tuple[Any, ...]] = []
        for k, pixels in enumerate(pictures):
            height, width = pixels.shape[:2]
            detections = self.process(np.ascontiguousarray(pixels)).detections or ()
            for detection in detections:
                box = detection.location_data.relative_bounding_box
                spans = ((box.xmin, box.width, width), (box.ymin, box.height, height))
                (x, w), (y, h) = (
                    _clip_interval_to_pixels(start, long, side_px) for start, long, side_px in spans
                )
                rows.append((k, "face", x, y, w, h, float(detection.score[0])))
        return build_box_table(rows)


def _clip_interval_to_pixels(
    start_share: float, length_share: float, side_px: int
) -> tuple[float, float]:
    """Bring shares to pixels, cut off at the picture's edges: where it begins, and how long."""
    low, high = (
        min(max(share * side_px, 0.0), float(side_px))
        for share in (start_share, start_share + length_share)
    )
    return low, high - low


@dataclass(frozen=True)
class MediaPipePoseModel:
    """The model of poses: of each picture one person's, or none."""

    process: Any
    order: Order
    identity: dict[str, Any]
    predicts: str = "keypoints"
    notes: tuple[str, ...] = ("BlazePose finds one person in a picture, however many there are.",)

    def __call__(self, pictures: Sequence[Pixels]) -> pl.DataFrame:
        """Answer for pictures."""
        rows: list[tuple[Any, ...]] = []
        for k, pixels in enumerate(pictures):
            landmarks = self.process(np.ascontiguousarray(pixels)).pose_landmarks
            if landmarks is not None:
                rows.append((k, "person", *self._row(landmarks.landmark, *pixels.shape[:2])))
        return pl.DataFrame(rows, schema=POSE_SCHEMA, orient="row")

    def _row(self, points: Sequence[Any], height: int, width: int) -> tuple[Any, ...]:
        x = np.array([point.x * width for point in points], dtype=float)
        y = np.array([point.y * height for point in points], dtype=float)
        confidences = np.clip([point.visibility for point in points], 0.0, 1.0)
        x_min, top = max(float(x.min()), 0.0), max(float(y.min()), 0.0)
        right, bottom = min(float(x.max()), width), min(float(y.max()), height)
        keypoint_order = list(list_blazepose_keypoint_indices(self.order))
        box_xywh = (x_min, top, max(right - x_min, 0.0), max(bottom - top, 0.0))
        return (
            *box_xywh,
            float(confidences.mean()),
            x[keypoint_order].tolist(),
            y[keypoint_order].tolist(),
            confidences[keypoint_order].tolist(),
        )


def load(
    spec: str,
    *,
    min_score: float = 0.5,
    full_range: bool = True,
    order: Order = "coco",
    complexity: int = 1,
) -> MediaPipeFaceDetector | MediaPipePoseModel:
    """Load one of the two.

    Parameters
    ----------
    spec : str
        ``faces`` or ``pose``.
    min_score : float
        What a face, or a person, must reach to be answered with.
    full_range : bool
        Of faces: the network for faces within 5 metres; no: that for those within 2.
    order : {"coco", "fhibe", "blazepose"}
        Of keypoints: COCO's 17, or all 33 in FHIBE's order (right first) or their own (left first).
    complexity : int
        Of poses: the network's size, 0 to 2; the package holds 1.

    Returns
    -------
    Faces or Poses

    Raises
    ------
    UnknownNameError
        Neither of the two.
    SpecError
        mediapipe is not installed, or cannot be loaded.

    Examples
    --------
    >>> load("hands")
    Traceback (most recent call last):
        ...
    isolux.core.errors.UnknownNameError: there is no model of mediapipe named 'hands'
      expected: one of faces, pose
    """
    if spec not in _MODEL_NAMES:
        raise UnknownNameError("model of mediapipe", spec, _MODEL_NAMES)
    package = import_optional(
        "mediapipe",
        package="mediapipe",
        extra="mediapipe",
        purpose=f"the model mediapipe:{spec}",
        no_deps_packages=_VERSION,
    )
    identity: dict[str, Any] = {
        "kind": spec,
        "min_score": min_score,
        "weights": _hash_network_files(Path(str(package.__file__)).parent),
    }
    try:
        if spec == "faces":
            detector = package.solutions.face_detection.FaceDetection(
                model_selection=int(full_range), min_detection_confidence=min_score
            )
            return MediaPipeFaceDetector(detector.process, identity | {"full_range": full_range})
        posing = package.solutions.pose.Pose(
            static_image_mode=True,
            model_complexity=complexity,
            min_detection_confidence=min_score,
        )
    except (AttributeError, RuntimeError, ValueError, OSError) as error:
        raise SpecError(
            f"mediapipe cannot load its model of {spec}",
            expected="mediapipe 0.10.21 or older, which brings its networks; complexity 0 to 2",
            found=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}",
            hint=f"pip install --no-deps {_VERSION}",
        ) from error
    return MediaPipePoseModel(
        posing.process, order, identity | {"order": order, "complexity": complexity}
    )


def _hash_network_files(folder: Path) -> str:
    """Hash the networks in the package."""
    files: Iterable[Path] = sorted((folder / "modules").rglob("*.tflite"))
    digest_text = "".join(f"{path.name} {sha256_file(path)}\n" for path in files)
    return hashlib.sha256(digest_text.encode()).hexdigest()
