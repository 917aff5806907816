"""Audits of boxes, masks and poses, built from a line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from pycocotools.mask import encode

from isolux.core.containers import Dataset
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES
from isolux.geometry.keypoints import COCO_KEYPOINTS
from isolux.groups.membership import build_membership
from isolux.plausibility import AuditInputs
from isolux.tasks import score
from tests.plausibility._inputs import INFO

Boxes = Sequence[tuple[str, Sequence[float]]]
SIDES = ("box_x", "box_y", "box_w", "box_h")
WIDTH, HEIGHT = 640, 480


def detect(
    people: Boxes,
    predicted: Boxes,
    races: Sequence[str],
    *,
    task: str = "detection",
    classes: Sequence[str] | None = None,
    scores: Sequence[float] | None = None,
    labels: Sequence[str | None] | None = None,
    people_columns: Mapping[str, Any] | None = None,
    predicted_columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> AuditInputs:
    """Score ``(image, box)`` of people and predictions, and group the people by race."""
    ids = [f"p{i}" for i in range(len(people))]
    instances = pl.DataFrame(
        {"instance_id": ids, "image_id": [image for image, _ in people], **_sides(people)}
    ).with_columns(**{name: pl.Series(column) for name, column in (people_columns or {}).items()})
    if classes is not None:
        instances = instances.with_columns(classes=pl.Series([[name] for name in classes]))
    attributes = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "race", "value": list(races)}
    )
    images = pl.DataFrame({"image_id": sorted({image for image, _ in [*people, *predicted]})})
    dataset = Dataset(
        "made up",
        INFO,
        INSTANCES.conform(instances.with_columns(cluster_id="image_id")),
        ATTRIBUTES.conform(attributes),
        IMAGES.conform(images.with_columns(width=pl.lit(WIDTH), height=pl.lit(HEIGHT))),
    )
    n = len(predicted)
    outputs = pl.DataFrame(
        {"model": ["m"] * n, "image_id": [image for image, _ in predicted], **_sides(predicted),
         "score": [0.9] * n if scores is None else list(scores),
         "label": pl.Series([None] * n if labels is None else list(labels), dtype=pl.String)}
    ).with_columns(
        **{name: pl.Series(column) for name, column in (predicted_columns or {}).items()}
    )  # fmt: skip
    measured = score(task, dataset, outputs, **options)
    membership = build_membership(
        dataset.instance_attributes(), ["race"], units=measured.evaluated_units()
    )
    return AuditInputs(task, dataset, outputs, measured, membership, options)


def _sides(boxes: Boxes) -> dict[str, list[float]]:
    return {name: [float(box[k]) for _, box in boxes] for k, name in enumerate(SIDES)}


@dataclass(frozen=True, slots=True)
class Scene:
    """People of two races in random places, and a model's boxes of those whom it finds."""

    people: Boxes
    races: list[str]
    predicted: Boxes
    scores: list[float]
    person: list[int | None]
    """Whom each prediction is about; None: nobody."""

    def with_predicted(
        self, change: Callable[[float, float, float, float], Sequence[float]]
    ) -> Boxes:
        """Change the four numbers of every prediction."""
        return [(image, change(*box)) for image, box in self.predicted]


def draw_scene(
    n_images: int = 40,
    n_each: int = 3,
    *,
    found: Mapping[str, float] | None = None,
    noise: float = 0.05,
    n_false: int = 1,
    seed: int = 0,
) -> Scene:
    """Draw people of 40 to 160 pixels; boxes are off by ``noise`` of their sides."""
    rng = np.random.default_rng(seed)
    shares = found or {"A": 0.9, "B": 0.9}
    people, races, predicted, scores, person = [], [], [], [], []
    for k in range(n_images):
        image = f"{k:03}.jpg"
        for _ in range(n_each):
            sides = rng.uniform((40, 60), (140, 160))
            corner = rng.uniform((0, 0), (WIDTH, HEIGHT) - sides)
            people.append((image, (*corner, *sides)))
            races.append(str(rng.choice(list(shares))))
            if rng.random() < shares[races[-1]]:
                box = np.array([*corner, *sides]) + rng.normal(0, noise, 4) * np.tile(sides, 2)
                predicted.append((image, tuple(box)))
                scores.append(float(rng.uniform(0.5, 1)))
                person.append(len(people) - 1)
        for _ in range(n_false):
            sides = rng.uniform((40, 60), (140, 160))
            predicted.append((image, (*rng.uniform((0, 0), (WIDTH, HEIGHT) - sides), *sides)))
            scores.append(float(rng.uniform(0.1, 0.7)))
            person.append(None)
    return Scene(people, races, predicted, scores, person)


JOINTS = COCO_KEYPOINTS
_PLACES = np.random.default_rng(3).uniform(0.05, 0.95, (len(JOINTS), 2))
"""Where each joint is in a person's box."""


def pose(
    scene: Scene, order: Sequence[int] | None = None, seed: int = 0, **options: Any
) -> AuditInputs:
    """Poses of a scene: every joint at its place in its box; predicted joint k is ``order[k]``."""
    rng = np.random.default_rng(seed)
    chosen = range(len(JOINTS)) if order is None else order

    def columns(boxes: Boxes, places: np.ndarray, noise: float) -> dict[str, list]:
        sides = np.array([box for _, box in boxes])
        points = sides[:, None, :2] + places * sides[:, None, 2:]
        points = points + rng.normal(0, noise, points.shape)
        return {
            "keypoints_x": points[:, :, 0].tolist(),
            "keypoints_y": points[:, :, 1].tolist(),
            "keypoints_v": np.full(points.shape[:2], 2).tolist(),
        }

    return detect(
        scene.people,
        scene.predicted,
        scene.races,
        task="keypoints",
        scores=scene.scores,
        people_columns=columns(scene.people, _PLACES, 0.0),
        predicted_columns=columns(scene.predicted, _PLACES[list(chosen)], 1.5),
        area_of_box=0.53,
        **options,
    )


def mask(scene: Scene, shift: tuple[float, float] = (0.0, 0.0)) -> AuditInputs:
    """Rectangles as masks, predicted ones moved by ``shift`` pixels."""

    def columns(boxes: Boxes, move: tuple[float, float]) -> dict[str, list]:
        counts = []
        for _, (x, y, w, h) in boxes:
            pixels = np.zeros((HEIGHT, WIDTH), np.uint8, order="F")
            left, upper = round(x + move[0]), round(y + move[1])
            rows = slice(max(upper, 0), max(upper + round(h), 0))
            pixels[rows, max(left, 0) : max(left + round(w), 0)] = 1
            counts.append(encode(pixels)["counts"].decode())
        sizes = {"mask_height": [HEIGHT] * len(counts), "mask_width": [WIDTH] * len(counts)}
        return {"mask_counts": counts, **sizes}

    return detect(
        scene.people,
        scene.predicted,
        scene.races,
        task="segmentation",
        scores=scene.scores,
        people_columns=columns(scene.people, (0.0, 0.0)),
        predicted_columns=columns(scene.predicted, shift),
    )
