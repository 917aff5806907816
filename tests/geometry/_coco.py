"""Run pycocotools on arrays, and compute its summary from our matches, for comparison."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, field

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from isolux.geometry.boxes import pairs_iou_xywh
from isolux.geometry.matching import (
    AREA_RANGES_PX,
    IOU_THRESHOLDS,
    Detections,
    Truths,
    match,
    outside_range,
    ranks_in_image,
)


def every_iou(detections, truths, *, crowd=None, pixel_inclusive=False):
    """Overlap of every box with every box, ``[n, m]``, row by row of ``pairs_iou_xywh``."""
    n, m = len(detections), len(truths)
    crowds = None if crowd is None else np.tile(crowd, n)
    pairs = np.repeat(detections, m, axis=0), np.tile(truths, (n, 1))
    found = pairs_iou_xywh(*pairs, crowd=crowds, pixel_inclusive=pixel_inclusive)
    return found.reshape(n, m)


def detection_truth(found):
    """The row of the person whom each detection is matched to, or -1: ``[n, T]``."""
    dense = np.full((found.n_detections, len(found.thresholds)), -1)
    dense[found.candidate] = found.candidate_truth
    return dense


def detection_ignored(found, outside=None):
    """Which detections are neither right nor wrong: ``[n, T]``.

    Those matched to an ignored person; and, where ``outside [n]`` is true (an area outside the
    range looked at), those that matched no one.
    """
    dense = np.zeros((found.n_detections, len(found.thresholds)), bool)
    if outside is not None:
        dense |= outside[:, None]
        dense[found.candidate] &= found.candidate_truth < 0
    is_matched = found.candidate_truth >= 0
    if len(found.truth_ignored):
        dense[found.candidate] |= is_matched & found.truth_ignored[found.candidate_truth]
    return dense


class _Evaluation(COCOeval):
    """COCOeval that honours a flag of our own, where COCO's overwrites ``ignore`` by crowds."""

    def _prepare(self):
        super()._prepare()
        for people in self._gts.values():
            for person in people:
                person["ignore"] = person["ignore"] or person.get("left_out", 0)


@dataclass
class Case:
    """One set of images: plain rows, from which both sides are fed."""

    n_images: int
    n_labels: int
    truths: list[dict]  # image, label, crowd, left_out, area, and what is overlapped
    detections: list[dict]  # image, label, score, area, and what is overlapped
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)  # height, width; else 400 × 400

    def detection_table(self, *, by_label=True):
        return Detections(
            column(self.detections, "image", int),
            column(self.detections, "score", float),
            column(self.detections, "label", int) if by_label else None,
        )

    def truth_table(self, *, by_label=True, also_ignored=None):
        ignore = column(self.truths, "left_out", bool)
        return Truths(
            column(self.truths, "image", int),
            ignore if also_ignored is None else ignore | also_ignored,
            column(self.truths, "crowd", bool),
            column(self.truths, "label", int) if by_label else None,
        )


def column(rows, name, dtype):
    return np.array([row[name] for row in rows], dtype=dtype)


def matrix(rows, name, columns=4):
    return np.array([row[name] for row in rows], dtype=float).reshape(-1, columns)


def evaluated(case, kind="bbox", *, use_cats=True, limits=None):
    """Run COCOeval to its end, silently."""
    names = {"bbox": "bbox", "segm": "segmentation", "keypoints": "keypoints"}
    with contextlib.redirect_stdout(io.StringIO()):
        sides = []
        for rows in (case.truths, case.detections):
            side = COCO()
            side.dataset = {
                "images": [
                    dict(
                        zip(("height", "width"), case.sizes.get(i, (400, 400)), strict=True),
                        id=i + 1,
                    )
                    for i in range(case.n_images)
                ],
                "categories": [{"id": k + 1} for k in range(case.n_labels)],
                "annotations": [
                    {
                        **row,
                        "id": at + 1,
                        "image_id": row["image"] + 1,
                        "category_id": row["label"] + 1,
                        "iscrowd": int(row.get("crowd", 0)),
                        names[kind]: row[names[kind]],
                    }
                    for at, row in enumerate(rows)
                ],
            }
            side.createIndex()
            sides.append(side)
        run = _Evaluation(*sides, kind)
        run.params.useCats = int(use_cats)
        run.params.maxDets = limits or run.params.maxDets
        run.evaluate()
        run.accumulate()
        with contextlib.suppress(IndexError):  # the summary is written for three limits
            run.summarize()
    return run


def assert_same_matches(case, run, pairs, *, by_label=True):
    """Our matches are those of every entry of ``evalImgs``: pairs, ignored ones, kept ones."""
    p = run.params
    detections = case.detection_table(by_label=by_label)
    rank = ranks_in_image(detections)
    areas = [column(rows, "area", float) for rows in (case.truths, case.detections)]
    for a, (low, high) in enumerate(p.areaRng):
        outside_truth, outside = (outside_range(area, low, high) for area in areas)
        truths = case.truth_table(by_label=by_label, also_ignored=outside_truth)
        found = match(pairs, detections, truths, max_detections=p.maxDets[-1])
        by_detection, ignored = detection_truth(found), detection_ignored(found, outside)
        n_cats = len(p.catIds) if by_label else 1
        for k in range(n_cats):
            for i in range(len(p.imgIds)):
                entry = run.evalImgs[(k * len(p.areaRng) + a) * len(p.imgIds) + i]
                if entry is None:
                    continue
                d = np.array(entry["dtIds"], dtype=int) - 1
                t = np.array(entry["gtIds"], dtype=int) - 1
                here = detections.image == i
                if by_label:
                    here &= detections.label == k
                assert set(np.flatnonzero(here & (rank < p.maxDets[-1]))) == set(d)
                assert np.array_equal(rank[d], np.arange(len(d)))
                assert np.array_equal(by_detection[d] + 1, entry["dtMatches"].T)
                assert np.array_equal(found.truth_detection[t] + 1, entry["gtMatches"].T)
                assert np.array_equal(ignored[d], entry["dtIgnore"].T)
                assert np.array_equal(found.truth_ignored[t], np.array(entry["gtIgnore"], bool))


def summary(case, pairs, kind="bbox"):
    """COCO's summary (12 numbers, 10 for keypoints), from our matches alone."""
    limits = [20] if kind == "keypoints" else [1, 10, 100]
    names = (
        ["all", "medium", "large"] if kind == "keypoints" else ["all", "small", "medium", "large"]
    )
    tables = {}
    for name in names:
        for limit in limits:
            tables[name, limit] = _precision_recall(case, pairs, AREA_RANGES_PX[name], limit)
    last = limits[-1]
    first = tables["all", last]
    at_50, at_75 = (list(IOU_THRESHOLDS).index(t) for t in (0.5, 0.75))
    precisions = [first[0], first[0][at_50], first[0][at_75]]
    precisions += [tables[name, last][0] for name in names[1:]]
    if kind == "keypoints":
        recalls = [first[1], first[1][at_50], first[1][at_75]]
    else:
        recalls = [tables["all", limit][1] for limit in limits]
    recalls += [tables[name, last][1] for name in names[1:]]
    return np.array([-1 if np.isnan(v).all() else np.nanmean(v) for v in precisions + recalls])


def _precision_recall(case, pairs, area_range, limit):
    """Precision ``[T, 101, K]`` and recall ``[T, K]``; NaN for a class without people."""
    detections = case.detection_table()
    outside_truth, outside = (
        outside_range(column(rows, "area", float), *area_range)
        for rows in (case.truths, case.detections)
    )
    truths = case.truth_table(also_ignored=outside_truth)
    found = match(pairs, detections, truths, max_detections=100)  # truncated below, by rank
    matched, ignored = detection_truth(found) >= 0, detection_ignored(found, outside)
    rank = ranks_in_image(detections)
    precision = np.full((len(IOU_THRESHOLDS), 101, case.n_labels), np.nan)
    recall = np.full((len(IOU_THRESHOLDS), case.n_labels), np.nan)
    for k in range(case.n_labels):
        people = int((~found.truth_ignored & (truths.label == k)).sum())
        if people == 0:
            continue
        rows = np.flatnonzero((detections.label == k) & (rank < limit))
        rows = rows[np.lexsort((rank[rows], detections.image[rows], -detections.score[rows]))]
        right = np.cumsum(matched[rows] & ~ignored[rows], axis=0)
        wrong = np.cumsum(~matched[rows] & ~ignored[rows], axis=0)
        for t in range(len(IOU_THRESHOLDS)):
            reached = right[:, t] / people
            recall[t, k] = reached[-1] if len(rows) else 0
            share = right[:, t] / (right[:, t] + wrong[:, t] + np.spacing(1))
            share = np.append(np.maximum.accumulate(share[::-1])[::-1], 0)
            precision[t, :, k] = share[np.searchsorted(reached, np.linspace(0, 1, 101))]
    return precision, recall
