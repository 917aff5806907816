"""Asking a transformers model for poses: it is shown each person's box, as ViTPose is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.images import Pixels
from isolux.models._boxes import POSE_SCHEMA
from isolux.models.hf.checkpoint import LoadedCheckpoint
from isolux.models.hf.image_models import CHANNELS_LAST

_BOXES_GIVEN = "The model is shown the boxes of the dataset's people; nobody else can have a pose."
_BATCH_SIZE = 64  # people: a picture may show a crowd


@dataclass(frozen=True, slots=True)
class PersonCrops:
    """A picture's people as the model takes them ``[n, 3, h, w]``, and their boxes x, y, w, h."""

    values: npt.NDArray[Any] | None
    boxes: tuple[tuple[float, float, float, float], ...]

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return 0 if self.values is None else int(self.values.nbytes)


@dataclass(frozen=True)
class PoseEstimator:
    """A pose of each person whose box is given."""

    loaded: LoadedCheckpoint
    predicts: str = "keypoints"
    by_box: bool = True

    @property
    def identity(self) -> dict[str, Any]:
        """What moves an answer."""
        return dict(self.loaded.identity)

    @property
    def notes(self) -> tuple[str, ...]:
        """Whose poses there are."""
        return (*self.loaded.notes, _BOXES_GIVEN)

    def prepare(
        self, pixels: Pixels, boxes: Sequence[tuple[float, float, float, float]]
    ) -> PersonCrops:
        """Prepare each person of one picture by the model's own processor."""
        valid_boxes = tuple(box for box in boxes if box[2] > 0 and box[3] > 0)
        if not valid_boxes:
            return PersonCrops(None, ())
        box_lists = [[list(box) for box in valid_boxes]]
        outputs = self.loaded.processor(
            pixels, boxes=box_lists, return_tensors="np", **CHANNELS_LAST
        )
        return PersonCrops(np.asarray(outputs["pixel_values"]), valid_boxes)

    def __call__(self, pictures: Sequence[PersonCrops]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        people = [(k, box) for k, picture in enumerate(pictures) for box in picture.boxes]
        if not people:
            return pl.DataFrame(schema=POSE_SCHEMA)
        values = np.concatenate(
            [picture.values for picture in pictures if picture.values is not None]
        )
        rows: list[tuple[Any, ...]] = []
        with self.loaded.torch.inference_mode():
            for offset in range(0, len(people), _BATCH_SIZE):
                batch = people[offset : offset + _BATCH_SIZE]
                rows += self._rows(values[offset : offset + _BATCH_SIZE], batch)
        return pl.DataFrame(rows, schema=POSE_SCHEMA, orient="row")

    def _rows(self, values: npt.NDArray[Any], people: Sequence[Any]) -> list[tuple[Any, ...]]:
        torch, model = self.loaded.torch, self.loaded.model
        inputs = {"pixel_values": torch.from_numpy(values).to(self.loaded.device, model.dtype)}
        if getattr(model.config.backbone_config, "num_experts", 1) > 1:  # 0: COCO's people
            inputs["dataset_index"] = torch.zeros(len(people), dtype=torch.long)
        boxes = [np.array([box]) for _, box in people]
        poses = self.loaded.processor.post_process_pose_estimation(model(**inputs), boxes=boxes)
        rows = []
        for (k, box), (pose,) in zip(people, poses, strict=True):
            points = pose["keypoints"].float().cpu().numpy().astype(float)
            confidences = pose["scores"].float().cpu().numpy().astype(float)
            x, y = points.T.tolist()
            rows.append((k, "person", *box, float(confidences.mean()), x, y, confidences.tolist()))
        return rows
