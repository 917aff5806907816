"""Normalised AP of 512 (class × value × value) cells, beside one plain pycocotools pass without.

350,000 truths of 8 classes in 20,000 images, each with one of 8 values of two attributes, and 2 M
boxes; 10 overlaps. Ours is everything from columns of boxes: overlaps, matching, the cells' ranked
detections, and their average precision with N the mean count over the first attribute's values
within the second (ICON²'s AP of a and e). The peer's is ``evaluate`` and ``accumulate`` of one area
range, on annotations that are in memory and indexed: it gives AP by class, and no cells. Before
anything is believed, our plain AP by class is compared with the peer's, and cells with a slow
reference.

The floor: every box is read once and compared with every truth of its image, and 2 M scores are
sorted; both measured here.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.geometry.boxes import BoxColumns, box_pairs_xywh
from isolux.geometry.matching import Detections, Truths, match
from isolux.stats.detection_cells import DetectionIndex, DetectionOutcomes, rank_detection_cells
from isolux.stats.precision_recall import (
    average_precision_by_class_and_iou,
    sum_people_weights_by_class,
)

CLASSES, VALUES = 8, 8
CELLS = CLASSES * VALUES * VALUES
IMAGES, TRUTHS, BOXES = 20_000, 350_000, 2_000_000
OVERLAPS = 10


@dataclass(frozen=True)
class World:
    """Columns; rows by image. ``cell`` of each truth: class, then value, then value."""

    truth: BoxColumns
    truth_image: np.ndarray
    truth_label: np.ndarray
    cell: np.ndarray
    box: BoxColumns
    box_image: np.ndarray
    box_label: np.ndarray
    score: np.ndarray


def world(share: float) -> World:
    rng = np.random.default_rng(3)
    images, m, n = (int(whole * share) for whole in (IMAGES, TRUTHS, BOXES))
    image = np.sort(rng.integers(0, images, m))
    label = rng.integers(0, CLASSES, m)
    size = np.exp(rng.normal(4.0, 0.6, (m, 2)))
    corner = rng.random((m, 2)) * (1280, 720)
    values = rng.integers(0, VALUES, (m, 2))
    cell = (label * VALUES + values[:, 0]) * VALUES + values[:, 1]
    # Three in ten boxes lie near somebody, the nearer the surer; the others anywhere.
    near = rng.choice(m, int(n * 0.3))
    spread = rng.gamma(1.5, 0.05, (len(near), 1))
    moved = corner[near] + rng.normal(0, 1, (len(near), 2)) * spread * size[near]
    scaled = size[near] * np.exp(rng.normal(0, 1, (len(near), 2)) * spread)
    far = n - len(near)
    box = np.vstack(
        [
            np.hstack([moved, scaled]),
            np.hstack([rng.random((far, 2)) * (1280, 720), np.exp(rng.normal(4, 0.6, (far, 2)))]),
        ]
    )
    box_image = np.concatenate([image[near], rng.integers(0, images, far)])
    box_label = np.concatenate([label[near], rng.integers(0, CLASSES, far)])
    score = np.concatenate([rng.beta(4, 2, len(near)) - spread[:, 0], rng.beta(1, 4, far)])
    order = np.argsort(box_image, kind="stable")
    return World(
        BoxColumns(*np.hstack([corner, size]).T.copy()),
        image,
        label,
        cell,
        BoxColumns(*box[order].T.copy()),
        box_image[order],
        box_label[order],
        score[order],
    )


def judged(world: World) -> DetectionOutcomes:
    """Match class by class."""
    found = Detections(world.box_image, world.score, world.box_label)
    truths = Truths(world.truth_image, label=world.truth_label)
    pairs = box_pairs_xywh(found, truths, world.box, world.truth, lowest_iou=0.5)
    matches = match(pairs, found, truths, max_detections=None)
    n, bit = len(found), 1 << np.arange(len(matches.thresholds))
    wrong = np.full(n, bit.sum())
    wrong[matches.candidate] = (matches.candidate_truth < 0) @ bit
    row, overlap = np.nonzero(matches.candidate_truth >= 0)
    who = matches.candidate_truth[row, overlap].astype(np.int64)
    pair, at = np.unique(matches.candidate[row] * len(truths) + who, return_inverse=True)
    right = np.bincount(at, bit[overlap], len(pair)).astype(np.uint16)
    alarm = np.flatnonzero(wrong)
    detection = np.concatenate([pair // len(truths), alarm])
    person = np.concatenate([pair % len(truths), np.full(len(alarm), -1)])
    bits = np.concatenate([right, wrong[alarm].astype(np.uint16)])
    order = np.argsort(detection, kind="stable")
    return DetectionOutcomes(detection[order], person[order], bits[order])


def ours(world: World) -> np.ndarray:
    """Normalised AP ``[512, 10]``."""
    return _table(world, judged(world), world.cell, CELLS, by_image=True, normalised=True)


def _table(
    world: World,
    outcomes: DetectionOutcomes,
    cell: np.ndarray,
    n: int,
    *,
    by_image: bool,
    normalised: bool,
) -> np.ndarray:
    """``by_image`` false: the false alarms of every image, as COCO has them."""
    step = CLASSES if by_image else 0
    places = DetectionIndex(
        world.box_image * step + world.box_label, world.truth_image * step + world.truth_label,
        world.box_image, world.truth_image,
    )  # fmt: skip
    ranking = rank_detection_cells(outcomes, world.score, places, np.arange(len(cell)), cell, n)
    weights = np.ones(int(world.truth_image.max()) + 1)
    weights = np.ones(max(len(weights), int(world.box_image.max()) + 1))
    common = None
    if normalised:
        counts = sum_people_weights_by_class(ranking, weights)[0].reshape(CLASSES, VALUES, VALUES)
        common = np.broadcast_to(counts.mean(axis=1, keepdims=True), counts.shape).reshape(-1)
    return average_precision_by_class_and_iou(ranking, weights, common_count=common)[0]


def theirs(world: World) -> COCOeval:
    """Index both sides; the pass itself is ``evaluate`` and ``accumulate``."""
    with contextlib.redirect_stdout(io.StringIO()):
        sides = []
        for box, image, label, score in (
            (world.truth, world.truth_image, world.truth_label, None),
            (world.box, world.box_image, world.box_label, world.score),
        ):
            side = COCO()
            columns = [getattr(box, c).tolist() for c in ("x", "y", "width", "height")]
            given = [0.0] * len(image) if score is None else score.tolist()
            n = 1 + max(int(world.truth_image.max()), int(world.box_image.max()))
            side.dataset = {
                "images": [{"id": i} for i in range(n)],
                "categories": [{"id": k} for k in range(CLASSES)],
                "annotations": [
                    {"id": at + 1, "image_id": i, "category_id": k, "bbox": [x, y, w, h],
                     "area": w * h, "iscrowd": 0, "score": s}
                    for at, (i, k, x, y, w, h, s) in enumerate(
                        zip(image.tolist(), label.tolist(), *columns, given, strict=True)
                    )
                ],
            }  # fmt: skip
            side.createIndex()
            sides.append(side)
        run = COCOeval(*sides, "bbox")
    run.params.areaRng, run.params.areaRngLbl = [[0, 1e10]], ["all"]
    run.params.maxDets = [10_000]
    return run


def peer_pass(run: COCOeval) -> np.ndarray:
    """AP ``[8, 10]``."""
    with contextlib.redirect_stdout(io.StringIO()):
        run.evaluate()
        run.accumulate()
    return run.eval["precision"][:, :, :, 0, 0].mean(axis=1).T


def slow_cell(world: World, outcomes: DetectionOutcomes, cell: int, overlap: int) -> float:
    """Normalised AP of one cell by its definition."""
    label, inner = cell // VALUES**2, cell % VALUES
    inside = world.cell == cell
    peers = [(label * VALUES + v) * VALUES + inner for v in range(VALUES)]
    common = np.mean([(world.cell == c).sum() for c in peers])
    images = set(world.truth_image[inside].tolist())
    rows = []
    for d, p, at in zip(outcomes.detection, outcomes.person, outcomes.iou_bits, strict=True):
        if not (int(at) >> overlap) & 1 or world.box_label[d] != label:
            continue
        if (p >= 0 and inside[p]) or (p < 0 and world.box_image[d] in images):
            rows.append((-world.score[d], int(d), p >= 0))
    hits = np.array([right for _, _, right in sorted(rows)], dtype=float)
    recall = np.cumsum(hits) / inside.sum()
    precision = recall * common / (recall * common + np.cumsum(1 - hits))
    return float(np.mean([precision[recall >= r].max(initial=0.0) for r in np.linspace(0, 1, 101)]))


def check(world: World, peer: np.ndarray, mine: np.ndarray) -> None:
    outcomes = judged(world)
    plain = _table(
        world, outcomes, world.truth_label, CLASSES, by_image=False, normalised=False
    )  # fmt: skip
    if not np.allclose(plain, peer, atol=1e-12):
        raise SystemExit("AP by class: the two disagree, so their times mean nothing")
    for cell, overlap in ((0, 0), (100, 5), (511, 9)):
        if not np.isclose(mine[cell, overlap], slow_cell(world, outcomes, cell, overlap)):
            raise SystemExit(f"cell {cell}: its definition gives another number")


def floor_s(world: World) -> tuple[float, float]:
    """Seconds of comparing boxes with truths of their images, and of sorting scores."""
    found = Detections(world.box_image, world.score)
    truths = Truths(world.truth_image)
    near_certain = 0.999  # nothing overlaps so much: comparing is all there is
    pairs, _ = cpu_seconds(
        lambda: box_pairs_xywh(found, truths, world.box, world.truth, lowest_iou=near_certain)
    )
    return pairs, cpu_seconds(lambda: np.sort(world.score))[0]


def main() -> None:
    few = quick()
    ours(world(0.002))  # compiled code is read
    shares = [0.01, 0.02, 0.05, 0.1] if few else [0.125, 0.25, 0.5, 1.0]
    for share in shares:
        made = world(share)
        seconds, mine = cpu_seconds(lambda made=made: ours(made))
        print(f"isolux, {len(made.score):>9,} boxes, {CELLS} cells: {seconds:.3f} s")
    pairs_s, sort_s = floor_s(made)
    run = theirs(made)
    peer_s, peer = cpu_seconds(lambda: peer_pass(run))
    print(f"pycocotools, {len(made.score):,} boxes, one pass by class, no cells: {peer_s:.1f} s")
    check(made, peer, mine)
    print(f"floor: comparing {pairs_s:.3f} s, sorting {sort_s:.3f} s; CPU seconds")
    last_line(
        "normalised_ap", seconds, "pycocotools, without cells", peer_s, boxes=len(made.score),
        truths=len(made.cell), cells=CELLS, overlaps=OVERLAPS, floor_s=pairs_s + sort_s,
    )  # fmt: skip


if __name__ == "__main__":
    main()
