"""Simulate a scene: people in images, the boxes of detectors, and the injected effects.

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

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import ATTRIBUTES, BOX_PREDICTIONS, IMAGES, INSTANCES
from isolux_worlds._random_streams import FloatArray, IntArray, build_named_rng
from isolux_worlds.populations.population import to_range
from isolux_worlds.scenes.scene import (
    CROWDING,
    OCCLUDED,
    SIDE_PX,
    SIZE,
    SIZE_EDGES_PX,
    Detector,
    Scene,
    check_detector_effects_exist,
    compute_detection_rate,
    compute_false_positive_rate,
    compute_iou_beta_parameters,
    sum_effects,
)
from isolux_worlds.scenes.true_recall import find_crowding_level, injected_recall

__all__ = ["SceneWorld", "simulate_scene"]

_ASPECT, _ASPECT_SPREAD = 2.0, 0.2  # height over width; standard deviation of its logarithm
_BOX = ("box_x", "box_y", "box_w", "box_h")
_GAP_PX = 8.0
_HIDDEN = 0.2  # of the narrower one's width
_STRIP_PX = 48.0  # below the people, for false alarms
# Beta shapes of scores, which are not calibrated.
_BETA_FOR_PEOPLE, _BETA_FOR_FALSE_ALARMS = (5.0, 2.0), (2.0, 4.0)
_SCENE_INFO = DatasetInfo(
    title="Synthetic scene",
    summary="People who never lived, as boxes in images that were never taken.",
    references=(Reference("isolux-synthetic", "isolux: isolux_worlds.simulate_scene."),),
    label_source="declared by the user",
    assumptions=("what was injected holds of the population, not of every sample",),
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
        ``instances`` with boxes in pixels and ``area``, clusters as simulated; ``attributes`` of
        people (``size``, ``occluded`` and ``crowding`` among them) and of images; ``images`` with
        width and height.
    predictions : polars.DataFrame
        Table ``BOX_PREDICTIONS`` of all detectors, label ``person``.
    injected_effects : polars.DataFrame
        See ``injected_recall``; ``injected_detection_record`` makes a run's record of it.
    """

    scene: Scene
    detectors: tuple[Detector, ...]
    seed: int
    dataset: Dataset
    predictions: pl.DataFrame
    injected_effects: pl.DataFrame


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
    >>> truth = world.injected_effects.filter(metric="recall_at_iou", group="overall")
    >>> overall = truth["value"].item()
    >>> round(overall, 3), abs(found - overall) < 0.05
    (0.7, True)
    """
    drawn_by = (detectors,) if isinstance(detectors, Detector) else tuple(detectors)
    names = [d.name for d in drawn_by]
    if not names or len(set(names)) < len(names):
        problem, expected = (
            "a scene needs detectors, each with a unique name",
            "one or more, every name once",
        )
        raise SpecError(problem, expected=expected, found=", ".join(names) or "none")
    for detector in drawn_by:
        check_detector_effects_exist(scene, detector)
    crowd = _draw_scene_people(scene, seed)
    boxes, images = _place_people_boxes(crowd, seed)
    detections = [
        _draw_detections(scene, detector, crowd, boxes, images, seed) for detector in drawn_by
    ]
    predictions = BOX_PREDICTIONS.conform(pl.concat(detections))
    dataset, truth = (
        _build_scene_dataset(scene, crowd, boxes, images),
        injected_recall(scene, drawn_by),
    )
    return SceneWorld(scene, drawn_by, seed, dataset, predictions, truth)


@dataclass(frozen=True, slots=True)
class _People:
    """Who there is: people ``[n]`` in images ``[m]`` of clusters."""

    cluster_of_image: IntArray
    image: IntArray
    index_in_image: IntArray
    side_px: FloatArray
    code: Mapping[str, IntArray]
    image_code: Mapping[str, IntArray]
    difficulty: FloatArray


def _draw_scene_people(scene: Scene, seed: int) -> _People:
    rng = build_named_rng(seed, "counts")
    per_cluster = rng.integers(*to_range(scene.images), scene.clusters, endpoint=True)
    cluster_of_image = np.repeat(np.arange(scene.clusters), per_cluster)
    per_image = rng.integers(*to_range(scene.people), len(cluster_of_image), endpoint=True)
    image = np.repeat(np.arange(len(cluster_of_image)), per_image)
    index_in_image = np.arange(len(image)) - np.repeat(np.cumsum(per_image) - per_image, per_image)
    code: dict[str, IntArray] = {CROWDING[0]: find_crowding_level(per_image)[image]}
    image_code: dict[str, IntArray] = {CROWDING[0]: find_crowding_level(per_image)}
    sizes = {"person": len(image), "image": len(cluster_of_image), "cluster": scene.clusters}
    for attribute in scene.attributes:
        shares = np.array(list(attribute.shares.values()))
        draws = build_named_rng(seed, "attribute", attribute.name).random(sizes[attribute.varies])
        states = np.searchsorted(np.cumsum(shares)[:-1], draws, side="right").astype(np.int64)
        if attribute.varies == "person":
            code[attribute.name] = states
            continue
        of_image = states if attribute.varies == "image" else states[cluster_of_image]
        image_code[attribute.name], code[attribute.name] = of_image, of_image[image]
    octaves = np.log2(scene.side_px) + sum_effects(scene.size_effects, scene.values, code)
    octaves = octaves + scene.side_spread * build_named_rng(seed, "size").standard_normal(
        len(image)
    )
    side_px = np.asarray(np.clip(2.0**octaves, *SIDE_PX))
    code[SIZE[0]] = np.digitize(side_px, SIZE_EDGES_PX).astype(np.int64)
    logit = np.log(scene.occluded / (1 - scene.occluded))
    logit = logit + sum_effects(scene.occlusion_effects, scene.values, code)
    hidden = build_named_rng(seed, "occluded").random(len(image)) < 1 / (1 + np.exp(-logit))
    code[OCCLUDED[0]] = np.asarray(hidden, dtype=np.int64)
    hard = build_named_rng(seed, "difficulty").standard_normal(scene.clusters)[
        cluster_of_image[image]
    ]
    return _People(cluster_of_image, image, index_in_image, side_px, code, image_code, hard)


def _place_people_boxes(crowd: _People, seed: int) -> tuple[FloatArray, pl.DataFrame]:
    """Stand people side by side on one ground, each image as large as that takes.

    Returns boxes ``[n, 4]``, and of images ``cluster_id, image_id, width, height, strip_top``.
    """
    n = len(crowd.image)
    aspect = np.exp(
        np.log(_ASPECT) + _ASPECT_SPREAD * build_named_rng(seed, "aspect").standard_normal(n)
    )
    width, height = crowd.side_px / np.sqrt(aspect), crowd.side_px * np.sqrt(aspect)
    first = crowd.index_in_image == 0
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
    of_cluster = crowd.cluster_of_image
    number = np.arange(len(of_cluster)) - np.searchsorted(of_cluster, of_cluster)
    cluster = pl.format("c{}", pl.Series(of_cluster).cast(pl.String).str.zfill(6))
    images = pl.select(
        cluster_id=cluster,
        image_id=pl.format("{}_{}", cluster, pl.Series(number).cast(pl.String)),
        width=pl.Series(np.maximum(np.ceil(right + _GAP_PX), 640).astype(np.int64)),
        height=pl.Series(np.maximum(np.ceil(strip + _STRIP_PX), 480).astype(np.int64)),
        strip_top=pl.Series(strip),
    )
    return np.stack([x, ground[crowd.image] - height, width, height], axis=1), images


def _draw_detections(
    scene: Scene,
    detector: Detector,
    crowd: _People,
    boxes: FloatArray,
    images: pl.DataFrame,
    seed: int,
) -> pl.DataFrame:
    """Draw one detector's boxes ``[n, 4]``: of detected people, then its false positives."""
    rng = build_named_rng(seed, "detector", detector.name)
    is_detected = _draw_is_detected(scene, detector, crowd, rng)
    a, b = compute_iou_beta_parameters(scene, detector, crowd.code)
    n = len(crowd.image)
    overlap = 0.5 + 0.5 * rng.beta(np.broadcast_to(a, (n,)), np.broadcast_to(b, (n,)))
    predicted_boxes = _draw_boxes_with_iou(boxes, overlap, rng)
    scores = rng.beta(*_BETA_FOR_PEOPLE, n)
    alarms = rng.poisson(
        compute_false_positive_rate(scene, detector, crowd.image_code, images.height)
    )
    alarm_image = np.repeat(np.arange(len(alarms)), alarms)
    side_px = rng.uniform(12, 40, len(alarm_image))
    x = rng.uniform(0, 1, len(alarm_image)) * (images["width"].to_numpy()[alarm_image] - side_px)
    made_up = np.stack(
        [x, images["strip_top"].to_numpy()[alarm_image] + 4, side_px, side_px], axis=1
    )
    rows = pl.DataFrame(
        np.concatenate([predicted_boxes[is_detected], made_up]), schema=list(_BOX), orient="row"
    )
    return rows.select(
        pl.lit(detector.name).alias("model"),
        images["image_id"].gather(np.concatenate([crowd.image[is_detected], alarm_image])),
        pl.lit("person").alias("label"),
        *_BOX,
        score=pl.Series(
            np.concatenate(
                [scores[is_detected], rng.beta(*_BETA_FOR_FALSE_ALARMS, len(alarm_image))]
            )
        ),
    )


def _draw_is_detected(
    scene: Scene, detector: Detector, crowd: _People, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw who is detected: each with the injected probability, correlated within a cluster."""
    from scipy.special import ndtr

    rate = compute_detection_rate(
        scene, detector, crowd.code, np.log2(crowd.side_px / scene.side_px)
    )
    detector_noise = rng.standard_normal(len(rate))
    shared = np.sqrt(scene.correlation) * crowd.difficulty
    return np.asarray(ndtr(shared + np.sqrt(1 - scene.correlation) * detector_noise) < rate)


def _draw_boxes_with_iou(
    boxes: FloatArray, overlap: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Boxes of exactly that IoU: cut off above, cut off at the right, or moved up or down.

    A box cut to a share q of itself overlaps the whole by q; one moved by (1 − q) / (1 + q) of its
    height, by q. ``boxes``: [n, 4].
    """
    direction = rng.integers(0, 4, len(overlap))
    x, y, width, height = boxes.T
    shift, cut = height * (1 - overlap) / (1 + overlap), height * (1 - overlap)
    y = y + np.select([direction == 0, direction == 2, direction == 3], [cut, shift, -shift], 0.0)
    width = np.where(direction == 1, width * overlap, width)
    return np.stack([x, y, width, np.where(direction == 0, height * overlap, height)], axis=1)


def _build_scene_dataset(
    scene: Scene, crowd: _People, boxes: FloatArray, images: pl.DataFrame
) -> Dataset:
    of_person = images.select("image_id", "cluster_id")[crowd.image]
    instances = pl.DataFrame(boxes, schema=list(_BOX), orient="row").select(
        pl.format("{}_{}", of_person["image_id"], pl.Series(crowd.index_in_image)).alias(
            "instance_id"
        ),
        *of_person,
        *_BOX,
        classes=pl.lit(["person"]),
        area=pl.col("box_w") * pl.col("box_h"),
    )
    level = {a.name: a.varies for a in scene.attributes}
    units = {"image": images["image_id"], "instance": instances["instance_id"]}
    tables = []
    for name, values in scene.values.items():
        unit_kind = "image" if level.get(name) == "image" else "instance"
        code = crowd.image_code[name] if unit_kind == "image" else crowd.code[name]
        texts = pl.Series(list(values), dtype=pl.String).gather(code)
        names = (pl.lit(unit_kind).alias("unit_kind"), pl.lit(name).alias("attribute"))
        tables.append(pl.select(units[unit_kind].alias("unit_id"), *names, texts.alias("value")))
    return Dataset(
        name="synthetic",
        info=_SCENE_INFO,
        instances=INSTANCES.conform(instances),
        attributes=ATTRIBUTES.conform(pl.concat(tables)),
        images=IMAGES.conform(images.select("image_id", "width", "height")),
    )
