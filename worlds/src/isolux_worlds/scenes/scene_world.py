"""Draw a scene: a dataset of people in images, what detectors drew in them, and what was planted.

People of an image stand side by side on one ground; who is occluded is overlapped by the person to
the left (if there is one) by a fifth of the narrower one's width. Boxes of detections leave the
truth's columns or rows as they are, and false alarms lie below everyone, so that nothing but a
person's own detection overlaps that person by .5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.tables import ATTRIBUTES, BOX_PREDICTIONS, IMAGES, INSTANCES
from isolux_worlds._draw import FloatArray, IntArray, stream
from isolux_worlds.populations.population import range_of
from isolux_worlds.scenes.detector import (
    Detector,
    check_detector,
    false_alarm_rate,
    found_rate,
    overlap_shapes,
)
from isolux_worlds.scenes.planted_boxes import crowding_of, planted_detection
from isolux_worlds.scenes.scene import (
    CROWDING,
    OCCLUDED,
    SIDE_PX,
    SIZE,
    SIZE_EDGES_PX,
    Scene,
    summed_effects,
)

__all__ = ["SceneWorld", "simulate_scene"]

_ASPECT, _ASPECT_SPREAD = 2.0, 0.2  # height over width; standard deviation of its logarithm
_GAP_PX = 8.0
_HIDDEN = 0.2  # of the narrower one's width
_STRIP_PX = 48.0  # below the people, for false alarms
_SURE, _UNSURE = (5.0, 2.0), (2.0, 4.0)  # Beta shapes of scores; calibrated by nothing
_INFO = DatasetInfo(
    title="Synthetic scene",
    summary="People who never lived, as boxes in images that were never taken.",
    references=(
        Reference(key="isolux-synthetic", citation="isolux: isolux_worlds.simulate_scene."),
    ),
    judgement="declared by the user",
    assumptions=("what was planted holds of the population, not of every sample",),
)


@dataclass(frozen=True, slots=True)
class SceneWorld:
    """People in images, what detectors drew, and the scene's true recalls.

    Parameters
    ----------
    scene : Scene
    detectors : tuple of Detector
    seed : int
    dataset : Dataset
        ``instances`` with boxes in pixels and ``area``, clusters as planted; ``attributes`` of
        people (``size``, ``occluded`` and ``crowding`` among them) and of images; ``images`` with
        width and height.
    predictions : polars.DataFrame
        Table ``BOX_PREDICTIONS`` of all detectors, label ``person``.
    planted : polars.DataFrame
        See ``planted_detection``; ``planted_detection_record`` makes a run's record of it.
    """

    scene: Scene
    detectors: tuple[Detector, ...]
    seed: int
    dataset: Dataset
    predictions: pl.DataFrame
    planted: pl.DataFrame


def simulate_scene(
    scene: Scene, detectors: Detector | Sequence[Detector], seed: int = 0
) -> SceneWorld:
    """Draw a world; the same seed gives the same world, number for number.

    Each attribute and detector has its own random stream, so adding one leaves the others' draws
    as they were. A million people take seconds.

    Raises
    ------
    SpecError, UnknownNameError
        No detector, or two of one name; effects of what the scene has not.

    Examples
    --------
    >>> from isolux_worlds import Detector, Scene
    >>> from isolux.tasks import score
    >>> world = simulate_scene(Scene(clusters=400), Detector(name="m", base_rate=0.7), seed=1)
    >>> scores = score("detection", world.dataset, world.predictions)
    >>> found = scores.units.filter(metric="recall_at_iou", threshold=0.5)["value"].mean()
    >>> truth = world.planted.filter(metric="recall_at_iou", group="everyone")["value"].item()
    >>> round(truth, 3), abs(found - truth) < 0.05
    (0.7, True)
    """
    drawn_by = (detectors,) if isinstance(detectors, Detector) else tuple(detectors)
    names = [d.name for d in drawn_by]
    if not names or len(set(names)) < len(names):
        raise SpecError(
            "a scene needs detectors, each with a unique name",
            expected="one or more, every name once",
            found=", ".join(names) or "none",
        )
    for detector in drawn_by:
        check_detector(scene, detector)
    crowd = _people(scene, seed)
    boxes = _placed(crowd, seed)
    ids = _identifiers(crowd)
    parts = [_drawn(scene, d, crowd, boxes, ids.images, seed) for d in drawn_by]
    return SceneWorld(
        scene,
        drawn_by,
        seed,
        _dataset(scene, crowd, boxes, ids),
        BOX_PREDICTIONS.conform(pl.concat(parts)),
        planted_detection(scene, drawn_by),
    )


@dataclass(frozen=True, slots=True)
class _People:
    """Who there is: people ``[n]`` in images ``[m]`` of clusters."""

    cluster_of_image: IntArray
    image: IntArray
    place: IntArray
    side: FloatArray
    code: Mapping[str, IntArray]
    image_code: Mapping[str, IntArray]
    difficulty: FloatArray


@dataclass(frozen=True, slots=True)
class _Boxes:
    x: FloatArray
    y: FloatArray
    width: FloatArray
    height: FloatArray
    image_width: IntArray
    image_height: IntArray
    strip_top: FloatArray


@dataclass(frozen=True, slots=True)
class _Ids:
    clusters: pl.Series
    images: pl.Series


def _people(scene: Scene, seed: int) -> _People:
    rng = stream(seed, "counts")
    per_cluster = rng.integers(*range_of(scene.images), scene.clusters, endpoint=True)
    cluster_of_image = np.repeat(np.arange(scene.clusters), per_cluster)
    per_image = rng.integers(*range_of(scene.people), len(cluster_of_image), endpoint=True)
    image = np.repeat(np.arange(len(cluster_of_image)), per_image)
    place = np.arange(len(image)) - np.repeat(np.cumsum(per_image) - per_image, per_image)
    cluster = cluster_of_image[image]
    code: dict[str, IntArray] = {CROWDING[0]: crowding_of(per_image)[image]}
    image_code: dict[str, IntArray] = {CROWDING[0]: crowding_of(per_image)}
    sizes = {"person": len(image), "image": len(cluster_of_image), "cluster": scene.clusters}
    for attribute in scene.attributes:
        shares = np.array(list(attribute.shares.values()))
        draws = stream(seed, "attribute", attribute.name).random(sizes[attribute.varies])
        own = np.searchsorted(np.cumsum(shares)[:-1], draws, side="right").astype(np.int64)
        if attribute.varies == "person":
            code[attribute.name] = own
            continue
        of_image = own if attribute.varies == "image" else own[cluster_of_image]
        image_code[attribute.name], code[attribute.name] = of_image, of_image[image]
    side = _sides(scene, code, len(image), seed)
    code[SIZE[0]] = np.digitize(side, SIZE_EDGES_PX).astype(np.int64)
    code[OCCLUDED[0]] = _occluded(scene, code, len(image), seed)
    hard = stream(seed, "difficulty").standard_normal(scene.clusters)[cluster]
    return _People(cluster_of_image, image, place, side, code, image_code, hard)


def _sides(scene: Scene, code: Mapping[str, IntArray], n: int, seed: int) -> FloatArray:
    octaves = np.log2(scene.side_px) + summed_effects(scene.size_effects, scene.values, code)
    drawn = stream(seed, "size").standard_normal(n)
    return np.asarray(np.clip(2.0 ** (octaves + scene.side_spread * drawn), *SIDE_PX))


def _occluded(scene: Scene, code: Mapping[str, IntArray], n: int, seed: int) -> IntArray:
    logit = np.log(scene.occluded / (1 - scene.occluded))
    total = logit + summed_effects(scene.occlusion_effects, scene.values, code)
    hidden = stream(seed, "occluded").random(n) < 1 / (1 + np.exp(-total))
    return np.asarray(hidden, dtype=np.int64)


def _placed(crowd: _People, seed: int) -> _Boxes:
    """Stand people side by side on one ground, each image as large as that takes."""
    n, m = len(crowd.image), len(crowd.cluster_of_image)
    aspect = np.exp(np.log(_ASPECT) + _ASPECT_SPREAD * stream(seed, "aspect").standard_normal(n))
    width, height = crowd.side / np.sqrt(aspect), crowd.side * np.sqrt(aspect)
    first = crowd.place == 0
    before = np.where(first, 0.0, np.concatenate([[0.0], width[:-1]]))
    hidden = (crowd.code[OCCLUDED[0]] == 1) & ~first
    step = before + np.where(hidden, -_HIDDEN * np.minimum(before, width), _GAP_PX)
    run = np.cumsum(step)
    starts = np.flatnonzero(first)
    x = run - (run[starts] - _GAP_PX)[crowd.image]
    tallest = np.maximum.reduceat(height, starts)
    right = np.maximum.reduceat(x + width, starts)
    margin = tallest / 3 + _GAP_PX
    ground = margin + tallest
    strip = ground + margin
    return _Boxes(
        x,
        ground[crowd.image] - height,
        width,
        height,
        np.maximum(np.ceil(right + _GAP_PX), 640).astype(np.int64).reshape(m),
        np.maximum(np.ceil(strip + _STRIP_PX), 480).astype(np.int64).reshape(m),
        strip,
    )


def _drawn(
    scene: Scene, detector: Detector, crowd: _People, boxes: _Boxes, ids: pl.Series, seed: int
) -> pl.DataFrame:
    """Draw one detector's boxes: of the people it finds, then its false alarms."""
    rng = stream(seed, "detector", detector.name)
    found = _who_is_found(scene, detector, crowd, rng)
    a, b = overlap_shapes(scene, detector, crowd.code)
    n = len(crowd.image)
    overlap = 0.5 + 0.5 * rng.beta(np.broadcast_to(a, (n,)), np.broadcast_to(b, (n,)))
    own = _about(boxes, overlap, rng)
    sure = rng.beta(*_SURE, n)
    alarms = rng.poisson(
        false_alarm_rate(scene, detector, crowd.image_code, len(crowd.cluster_of_image))
    )
    where = np.repeat(np.arange(len(alarms)), alarms)
    side = rng.uniform(12, 40, len(where))
    x = rng.uniform(0, 1, len(where)) * (boxes.image_width[where] - side)
    made_up = (x, boxes.strip_top[where] + 4, side, side)
    columns = [np.concatenate([o[found], f]) for o, f in zip(own, made_up, strict=True)]
    return pl.DataFrame(
        {
            "model": pl.repeat(detector.name, len(columns[0]), eager=True),
            "image_id": ids.gather(np.concatenate([crowd.image[found], where])),
            "label": pl.repeat("person", len(columns[0]), eager=True),
            **dict(zip(("box_x", "box_y", "box_w", "box_h"), columns, strict=True)),
            "score": np.concatenate([sure[found], rng.beta(*_UNSURE, len(where))]),
        }
    )


def _who_is_found(
    scene: Scene, detector: Detector, crowd: _People, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw who is found: each with the planted chance, people of a cluster alike."""
    from scipy.special import ndtr

    rate = found_rate(scene, detector, crowd.code, np.log2(crowd.side / scene.side_px))
    own = rng.standard_normal(len(rate))
    shared = np.sqrt(scene.correlation) * crowd.difficulty
    return np.asarray(ndtr(shared + np.sqrt(1 - scene.correlation) * own) < rate)


def _about(
    boxes: _Boxes, overlap: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Boxes of exactly that overlap: cut off above, cut off at the right, or moved up or down."""
    kind = rng.integers(0, 4, len(overlap))
    moved = boxes.height * (1 - overlap) / (1 + overlap)
    cut = boxes.height * (1 - overlap)
    y = boxes.y + np.select([kind == 0, kind == 2, kind == 3], [cut, moved, -moved], 0.0)
    width = np.where(kind == 1, boxes.width * overlap, boxes.width)
    height = np.where(kind == 0, boxes.height * overlap, boxes.height)
    return boxes.x, y, width, height


def _identifiers(crowd: _People) -> _Ids:
    clusters = pl.Series("cluster_id", crowd.cluster_of_image)
    starts = np.searchsorted(crowd.cluster_of_image, crowd.cluster_of_image)
    number = pl.Series(np.arange(len(starts)) - starts)
    named = pl.select(
        cluster_id=pl.format("c{}", clusters.cast(pl.String).str.zfill(6)),
        number=number.cast(pl.String),
    )
    images = named.select(pl.format("{}_{}", "cluster_id", "number").alias("image_id"))
    return _Ids(named["cluster_id"], images["image_id"])


def _dataset(scene: Scene, crowd: _People, boxes: _Boxes, ids: _Ids) -> Dataset:
    place = pl.Series(crowd.place).cast(pl.String)
    of_image = ids.images.gather(crowd.image)
    who = pl.select(instance_id=pl.format("{}_{}", of_image, place))["instance_id"]
    instances = pl.DataFrame(
        {
            "instance_id": who,
            "image_id": of_image,
            "cluster_id": ids.clusters.gather(crowd.image),
            "classes": pl.repeat(["person"], len(who), dtype=pl.List(pl.String), eager=True),
            "box_x": boxes.x,
            "box_y": boxes.y,
            "box_w": boxes.width,
            "box_h": boxes.height,
            "area": boxes.width * boxes.height,
        }
    )
    images = pl.DataFrame(
        {"image_id": ids.images, "width": boxes.image_width, "height": boxes.image_height}
    )
    level = {a.name: a.varies for a in scene.attributes}
    tables = [
        _values("image", ids.images, name, scene.values[name], crowd.image_code[name])
        if level.get(name) == "image"
        else _values("instance", who, name, scene.values[name], crowd.code[name])
        for name in scene.values
    ]
    return Dataset(
        name="synthetic",
        info=_INFO,
        instances=INSTANCES.conform(instances),
        attributes=ATTRIBUTES.conform(pl.concat(tables)),
        images=IMAGES.conform(images),
    )


def _values(
    kind: str, units: pl.Series, name: str, values: tuple[str, ...], code: IntArray
) -> pl.DataFrame:
    words = pl.Series(list(values), dtype=pl.String)
    return pl.DataFrame(
        {
            "unit_kind": pl.repeat(kind, len(units), eager=True),
            "unit_id": units,
            "attribute": pl.repeat(name, len(units), eager=True),
            "value": words.gather(code),
        }
    )
