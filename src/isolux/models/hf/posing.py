"""Poses by a model that is shown each person's box: ViTPose and its kin.

The boxes are the dataset's own, as the publications judge such models (COCO's top-down protocol,
FHIBE): a pose of each person, in the whole picture's pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.images import Pixels
from isolux.models._boxes import POSE_SCHEMA
from isolux.models.hf.loading import Loaded

_BOXES_GIVEN = "The model is shown the boxes of the dataset's people; nobody else can have a pose."
_AT_ONCE = 64  # people: a picture may show a crowd


@dataclass(frozen=True, slots=True)
class Boxed:
    """A picture's people as the model takes them ``[n, 3, h, w]``, and their boxes x, y, w, h."""

    values: npt.NDArray[Any] | None
    boxes: tuple[tuple[float, float, float, float], ...]

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return 0 if self.values is None else int(self.values.nbytes)


@dataclass(frozen=True)
class Posing:
    """A pose of each person whose box is given."""

    loaded: Loaded
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

    def prepare(self, pixels: Pixels, boxes: Sequence[tuple[float, float, float, float]]) -> Boxed:
        """Prepare each person of one picture by the model's own processor."""
        kept = tuple(box for box in boxes if box[2] > 0 and box[3] > 0)
        if not kept:
            return Boxed(None, ())
        given = [[list(box) for box in kept]]
        found = self.loaded.processor(pixels, boxes=given, return_tensors="np")
        return Boxed(np.asarray(found["pixel_values"]), kept)

    def __call__(self, pictures: Sequence[Boxed]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        people = [(k, box) for k, one in enumerate(pictures) for box in one.boxes]
        if not people:
            return pl.DataFrame(schema=POSE_SCHEMA)
        values = np.concatenate([one.values for one in pictures if one.values is not None])
        rows: list[tuple[Any, ...]] = []
        with self.loaded.torch.inference_mode():
            for at in range(0, len(people), _AT_ONCE):
                some = people[at : at + _AT_ONCE]
                rows += self._rows(values[at : at + _AT_ONCE], some)
        return pl.DataFrame(rows, schema=POSE_SCHEMA, orient="row")

    def _rows(self, values: npt.NDArray[Any], people: Sequence[Any]) -> list[tuple[Any, ...]]:
        torch, model = self.loaded.torch, self.loaded.model
        given = {"pixel_values": torch.from_numpy(values).to(self.loaded.device, model.dtype)}
        if getattr(model.config.backbone_config, "num_experts", 1) > 1:  # 0: COCO's people
            given["dataset_index"] = torch.zeros(len(people), dtype=torch.long)
        boxes = [np.array([box]) for _, box in people]
        found = self.loaded.processor.post_process_pose_estimation(model(**given), boxes=boxes)
        rows = []
        for (k, box), (pose,) in zip(people, found, strict=True):
            points = pose["keypoints"].float().cpu().numpy().astype(float)
            sure = pose["scores"].float().cpu().numpy().astype(float)
            x, y = points.T.tolist()
            rows.append((k, "person", *box, float(sure.mean()), x, y, sure.tolist()))
        return rows
