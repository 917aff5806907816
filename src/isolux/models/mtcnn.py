"""Faces by MTCNN: ``mtcnn:``. The package facenet-pytorch ships its weights; nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import SpecError
from isolux.core.extras import import_optional
from isolux.core.info import ModelInfo, Reference
from isolux.io.images import Pixels
from isolux.models._boxes import build_box_table
from isolux.models._torch import build_device_error, hash_state_dict, import_torch

INFO = ModelInfo(
    title="MTCNN",
    summary=(
        "Finds faces with three small networks, each of which filters the results of the one "
        "before."
    ),
    references=(
        Reference(
            key="mtcnn",
            citation="Zhang, K., Zhang, Z., Li, Z., & Qiao, Y. (2016). Joint face detection and"
            " alignment using multitask cascaded convolutional networks. IEEE Signal Processing"
            " Letters, 23(10), 1499–1503.",
            location="section II; weights of facenet-pytorch",
            url="https://arxiv.org/abs/1604.02878",
        ),
    ),
    licence="MIT (facenet-pytorch); trained on WIDER FACE and CelebA",
    assumptions=("faces are at least 20 pixels high",),
    predicts="boxes",
    needs="isolux[mtcnn] and facenet-pytorch 2.6 (pip install --no-deps facenet-pytorch==2.6.0)",
    packages=("facenet-pytorch", "torch", "torchvision"),
)


@dataclass(frozen=True, slots=True)
class MtcnnFaceDetector:
    """The loaded cascade."""

    inner: Any
    identity: dict[str, Any]
    predicts: str = "boxes"

    def __call__(self, pictures: Sequence[Pixels]) -> pl.DataFrame:
        """Find faces; one picture at a time, as the cascade's pyramid goes by each one's size."""
        rows: list[tuple[Any, ...]] = []
        for k, picture in enumerate(pictures):
            boxes, scores = self.inner.detect(np.ascontiguousarray(picture))
            if boxes is None:
                continue
            height, width = picture.shape[:2]
            corners = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
            x_min, x_max = (np.clip(corners[:, c], 0, width) for c in (0, 2))
            top, bottom = (np.clip(corners[:, c], 0, height) for c in (1, 3))
            rows += [
                (k, "face", float(a), float(b), float(c - a), float(d - b), float(s))
                for a, b, c, d, s in zip(x_min, top, x_max, bottom, scores, strict=True)
            ]
        return build_box_table(rows)


def load(
    spec: str = "",
    *,
    thresholds: Sequence[float] = (0.6, 0.7, 0.7),
    device: str = "cpu",
) -> MtcnnFaceDetector:
    """Load the cascade; the defaults are facenet-pytorch's.

    Parameters
    ----------
    spec : str
        Nothing: the weights are the package's own.
    thresholds : sequence of float
        What each of the three networks must reach to let a box pass.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.

    Returns
    -------
    MtcnnFaceDetector

    Raises
    ------
    SpecError
        Something is named, facenet-pytorch is not installed, or no such device.

    Examples
    --------
    >>> load("nowhere/weights.bin")
    Traceback (most recent call last):
        ...
    isolux.core.errors.SpecError: mtcnn: has weights of its own
      expected: mtcnn:
      found: 'nowhere/weights.bin'
    """
    if spec:
        raise SpecError("mtcnn: has weights of its own", expected="mtcnn:", found=repr(spec))
    if len(thresholds) != 3:
        raise SpecError(
            "the cascade has three networks", expected="three thresholds", found=str(thresholds)
        )
    import_torch("the model mtcnn:", "mtcnn")
    package = import_optional(
        "facenet_pytorch",
        package="facenet-pytorch",
        extra="mtcnn",
        purpose="the model mtcnn:",
        no_deps_packages="facenet-pytorch==2.6.0",
    )
    try:
        inner = package.MTCNN(
            keep_all=True, thresholds=list(thresholds), device=device, post_process=False
        ).eval()
    except (RuntimeError, AssertionError) as error:
        raise build_device_error(error, device) from error
    threshold_list = list(thresholds)
    identity = {"weights": hash_state_dict(inner), "thresholds": threshold_list, "device": device}
    return MtcnnFaceDetector(inner, identity)
