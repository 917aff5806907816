"""A crowded picture: checks of formats, scales and moves compare some of its people."""

from __future__ import annotations

import numpy as np

from isolux.geometry import previews
from isolux.plausibility import geometry_transforms, reversed_scores
from isolux.tasks._boxes import preview
from tests.plausibility._shapes import detect

_MAX_PAIRS = 300_000  # of people and predictions, in one comparison
_MAX_COMPARISONS = 400


def test_pairs_that_checks_compare_are_capped(monkeypatch) -> None:
    """1,500 people and 2,000 boxes: all pairs, 3 million, are compared by the matcher alone."""
    compared = []
    build, find = preview.build_pair_finder_xywh, previews.box_pairs_xywh

    def build_and_count(detections, truths, *args, **options):
        find_pairs = build(detections, truths, *args, **options)

        def find_and_count(columns):
            compared.append(len(detections.image) * len(truths.image))
            return find_pairs(columns)

        return find_and_count

    def find_and_count_all(detections, truths, *args, **options):
        compared.append(len(detections.image) * len(truths.image))
        return find(detections, truths, *args, **options)

    monkeypatch.setattr(preview, "build_pair_finder_xywh", build_and_count)
    monkeypatch.setattr(previews, "box_pairs_xywh", find_and_count_all)
    rng = np.random.default_rng(0)
    sides = rng.uniform(4, 12, (2000, 2))
    boxes = np.hstack([rng.uniform(0, 1, (2000, 2)) * ((640, 480) - sides), sides])
    predicted = boxes + rng.normal(0, 0.5, boxes.shape)
    scores = rng.uniform(0.3, 1, 2000)
    inputs = detect(
        [("a.jpg", box) for box in boxes[:1500]],
        [("a.jpg", box) for box in predicted],
        rng.choice(["A", "B"], 1500).tolist(),
        scores=scores.tolist(),
    )
    assert geometry_transforms.check(inputs) == []
    assert reversed_scores.check(inputs) == []
    assert compared
    assert max(compared) <= _MAX_PAIRS
    assert len(compared) <= _MAX_COMPARISONS
