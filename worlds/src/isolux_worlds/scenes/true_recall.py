"""The true recall of every group of a scene, by enumeration.

All combinations of attributes' values, occlusion, crowding and size are laid out as cells; the
recall of a group is the mean of its cells' by their probability. Sizes are cut into narrow bins
within which the chance of being found is taken at the middle (off by less than 1e-5); the borders
of small, medium and large are borders of bins. Nothing is drawn: the answer is the scene's, not a
sample's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.core.spec import split_intersection
from isolux.geometry.matching import IOU_THRESHOLDS
from isolux_worlds._random_streams import FloatArray, IntArray
from isolux_worlds.populations.injected_effects import (
    GROUP_RATES,
    iterate_group_rate_rows,
    select_widest_gaps,
)
from isolux_worlds.populations.population import check_number_of_cells, to_range
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
    compute_iou_beta_parameters,
    sum_effects,
)

__all__ = ["find_crowding_level", "injected_recall", "injected_recall_record"]

_BINS = 400  # between two of the borders of sizes
_MOST_CELLS = 20_000_000
_Number = TypeVar("_Number", np.float64, np.int64)


def find_crowding_level(n_people: IntArray) -> IntArray:
    """Index of the crowding level of an image: alone, few (2 or 3 people), many."""
    return np.digitize(n_people, (2, 4)).astype(np.int64)


def injected_recall(
    scene: Scene, detectors: tuple[Detector, ...] | Detector, thresholds: tuple[float, ...] = (0.5,)
) -> pl.DataFrame:
    """Give the true recall of everyone, every group and every intersection.

    Parameters
    ----------
    scene : Scene
        Groups are those of ``scene.by``.
    detectors : Detector or tuple of Detector
    thresholds : tuple of float, .5 to 1
        Overlaps of ``recall_at_iou``.

    Returns
    -------
    polars.DataFrame
        ``model``; ``metric`` (``average_recall``, ``recall_at_iou``); ``threshold`` (of the
        second, else null); ``attribute`` (null: everyone); ``group`` (display); ``values`` (list);
        ``share`` (of people, 0 to 1); ``value`` (true recall, 0 to 1, higher is better);
        ``difference`` (to everyone's, same unit).

    Raises
    ------
    SpecError, UnknownNameError
        A threshold out of range; effects of what the scene has not; more cells than can be listed.

    Examples
    --------
    Half the people are half as large, and nothing but size matters to the detector: the groups
    differ all the same, and within one size they do not.

    >>> from isolux_worlds import Detector, Effect, Scene, SceneAttribute
    >>> tone = SceneAttribute(name="tone", shares={"a": 0.5, "b": 0.5})
    >>> scene = Scene(clusters=1, attributes=(tone,), by=("tone", "tone*size"),
    ...     size_effects=(Effect({"tone": "b"}, -1.0),))
    >>> detector = Detector(name="m", effects=(Effect({"size": "small"}, -1.5),))
    >>> truth = injected_recall(scene, detector).filter(metric="recall_at_iou")
    >>> truth.filter(attribute="tone")["value"].round(3).to_list()
    [0.748, 0.636]
    >>> truth.filter(values=["b", "small"])["value"].round(3).to_list()
    [0.472]
    """
    invalid_thresholds = [t for t in thresholds if not 0.5 <= t <= 1]
    if invalid_thresholds:
        problem = "no recall is injected at that overlap"
        raise SpecError(problem, expected="0.5 to 1", found=repr(invalid_thresholds[0]))
    rows: list[tuple[object, ...]] = []
    for detector in (detectors,) if isinstance(detectors, Detector) else detectors:
        check_detector_effects_exist(scene, detector)
        average = _build_recall_rows(scene, detector, tuple(map(float, IOU_THRESHOLDS)))
        rows += [(detector.name, "average_recall", None, *row) for row in average]
        for t in thresholds:
            at_iou = _build_recall_rows(scene, detector, (t,))
            rows += [(detector.name, "recall_at_iou", t, *row) for row in at_iou]
    head = {"model": pl.String(), "metric": pl.String(), "threshold": pl.Float64()}
    return pl.DataFrame(rows, schema=head | GROUP_RATES, orient="row")


def injected_recall_record(scene: Scene, detector: Detector) -> list[dict[str, object]]:
    """List the injected effects, as a run's record keeps it for the report.

    One truth per attribute and intersection: the difference in average recall between the two
    groups that lie farthest apart, and 0 where nothing was injected.

    Returns
    -------
    list of dict
        ``metric``, ``label``, ``attribute``, ``kind`` ("difference"), ``group_a`` (the lower),
        ``group_b``, ``value`` (a − b, 0 to −1), ``note``.

    Examples
    --------
    >>> from isolux_worlds import confounded_scene
    >>> record = injected_recall_record(*confounded_scene("nothing"))
    >>> [(r["attribute"], r["value"]) for r in record][:2]
    [('tone', 0.0), ('size', 0.0)]
    """
    truth = injected_recall(scene, detector, ()).drop_nulls("attribute")
    labelled = truth.with_columns(label=pl.lit(None, dtype=pl.String))
    return select_widest_gaps(labelled).to_dicts()


@dataclass(frozen=True, slots=True)
class _SceneCells:
    """Combinations of values, one axis each, the last one narrow bins of size."""

    names: tuple[str, ...]
    code: dict[str, IntArray]
    octaves: FloatArray
    share: FloatArray


def _build_scene_cells(scene: Scene, detector: Detector, entry: str | None) -> _SceneCells:
    """Build the cells of named attributes, crowding, occlusion and size."""
    used_names = set(split_intersection(entry) if entry else ())
    of_scene = (*scene.size_effects, *scene.occlusion_effects)
    effects = (*of_scene, *detector.effects, *detector.overlap_effects)
    used_names |= {n for effect in effects for n in effect.where}
    used_attributes = [a for a in scene.attributes if a.name in used_names]
    edges = _compute_size_bin_edges()
    names = (*(a.name for a in used_attributes), CROWDING[0], OCCLUDED[0], SIZE[0])
    lengths = [len(scene.values[n]) for n in names[:-1]] + [len(edges) + 1]
    hint = "intersect fewer attributes, or name fewer in effects"
    check_number_of_cells(names, lengths, _MOST_CELLS, hint)
    shaped = {
        n: _reshape_along_axis(np.arange(k), i, len(names))
        for i, (n, k) in enumerate(zip(names, lengths, strict=True))
    }
    share = np.ones([1] * len(names))
    for i, attribute in enumerate(used_attributes):
        share = share * _reshape_along_axis(
            np.array(list(attribute.shares.values())), i, len(names)
        )
    share = share * _reshape_along_axis(
        _compute_crowding_shares(scene), len(used_attributes), len(names)
    )
    values = scene.values
    logit = np.log(scene.occluded / (1 - scene.occluded))
    hidden = 1 / (1 + np.exp(-(logit + sum_effects(scene.occlusion_effects, values, shaped))))
    share = share * np.where(shaped[OCCLUDED[0]] == 1, hidden, 1 - hidden)
    mean = np.log2(scene.side_px) + sum_effects(scene.size_effects, values, shaped)
    share = share * _compute_size_bin_shares(mean, scene.side_spread, edges)
    middle = np.concatenate([[edges[0]], (edges[1:] + edges[:-1]) / 2, [edges[-1]]])
    size = np.digitize(2.0**middle, SIZE_EDGES_PX)
    code = shaped | {SIZE[0]: _reshape_along_axis(size, len(names) - 1, len(names))}
    octaves = _reshape_along_axis(middle - np.log2(scene.side_px), len(names) - 1, len(names))
    return _SceneCells(names, code, octaves, np.broadcast_to(share, lengths))


def _reshape_along_axis(
    values: npt.NDArray[_Number], axis: int, n_axes: int
) -> npt.NDArray[_Number]:
    return values.reshape([-1 if i == axis else 1 for i in range(n_axes)])


def _compute_size_bin_edges() -> FloatArray:
    """Borders of the bins in log2 of the side; beyond the ends all have the end's side."""
    borders = np.log2([SIDE_PX[0], *SIZE_EDGES_PX, SIDE_PX[1]])
    segments = [np.linspace(a, b, _BINS + 1)[:-1] for a, b in pairwise(borders)]
    return np.concatenate([*segments, borders[-1:]])


def _compute_size_bin_shares(mean: FloatArray, spread: float, edges: FloatArray) -> FloatArray:
    """Probability of each bin, the two ends' included: along a last axis of ``mean``."""
    from scipy.special import ndtr

    cumulative = ndtr((edges - mean) / spread)
    zeros, ones = np.zeros_like(cumulative[..., :1]), np.ones_like(cumulative[..., :1])
    return np.diff(np.concatenate([zeros, cumulative, ones], axis=-1), axis=-1)


def _compute_crowding_shares(scene: Scene) -> FloatArray:
    """Share of people (not of images) in images of each crowding."""
    low, high = to_range(scene.people)
    number = np.arange(low, high + 1)
    people_by_crowding = np.bincount(find_crowding_level(number), weights=number, minlength=3)
    return np.asarray(people_by_crowding / number.sum())


def _compute_cell_recall(
    scene: Scene, detector: Detector, cells: _SceneCells, overlaps: tuple[float, ...]
) -> FloatArray:
    """Recall of each cell, mean over IoU thresholds."""
    from scipy.special import betaincc

    rate = compute_detection_rate(scene, detector, cells.code, cells.octaves)
    a, b = compute_iou_beta_parameters(scene, detector, cells.code)
    shapes, shape_index = np.unique(np.stack([a.ravel(), b.ravel()]), axis=1, return_inverse=True)
    beyond = [betaincc(shapes[0], shapes[1], (t - 0.5) / 0.5) for t in overlaps]
    reached = np.mean(beyond, axis=0)[shape_index.ravel()].reshape(a.shape)
    return np.broadcast_to(rate * reached, cells.share.shape)


def _build_recall_rows(
    scene: Scene, detector: Detector, overlaps: tuple[float, ...]
) -> list[tuple[object, ...]]:
    cells = _build_scene_cells(scene, detector, None)
    overall_recall = float(
        (cells.share * _compute_cell_recall(scene, detector, cells, overlaps)).sum()
    )
    rows: list[tuple[object, ...]] = [(None, "overall", [], 1.0, overall_recall, 0.0)]
    for entry in scene.groupings:
        names = split_intersection(entry)
        cells = _build_scene_cells(scene, detector, entry)
        recall = _compute_cell_recall(scene, detector, cells, overlaps)
        share, mean = _average_over_cells(
            cells, recall, names, [len(scene.values[n]) for n in names]
        )
        rows += iterate_group_rate_rows(
            entry, [scene.values[n] for n in names], share, mean, overall_recall
        )
    return rows


def _average_over_cells(
    cells: _SceneCells, cell_recall: FloatArray, names: Sequence[str], lengths: list[int]
) -> tuple[FloatArray, FloatArray]:
    """Share and mean value of each combination of these attributes' values."""
    key = np.zeros([1] * len(cells.names), dtype=np.int64)
    for name, length in zip(names, lengths, strict=True):
        key = key * length + cells.code[name]
    flat = np.broadcast_to(key, cells.share.shape).ravel()
    n = int(np.prod(lengths))
    share = np.bincount(flat, weights=cells.share.ravel(), minlength=n).astype(np.float64)
    total = np.bincount(flat, weights=(cells.share * cell_recall).ravel(), minlength=n)
    mean: FloatArray = np.divide(total, share, out=np.full(n, np.nan), where=share > 0)
    return share.reshape(lengths), mean.reshape(lengths)
