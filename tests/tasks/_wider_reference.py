"""WIDER FACE's evaluation written again, step by step as the released code has it, and slow."""

from __future__ import annotations

import numpy as np

STEPS = 1000


def overlaps(found, faces):
    """Overlap of boxes x, y, w, h whose right and lower edges are pixels of theirs: [n, m]."""
    a, b = np.asarray(found, float).copy(), np.asarray(faces, float).copy()
    a[:, 2:] += a[:, :2]
    b[:, 2:] += b[:, :2]
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    side = np.maximum(np.minimum(a[:, None, 2:], b[None, :, 2:]) - low + 1, 0)
    common = side.prod(axis=2)
    area = (a[:, 2:] - a[:, :2] + 1).prod(axis=1)
    other = (b[:, 2:] - b[:, :2] + 1).prod(axis=1)
    return common / (area[:, None] + other[None] - common)


def image_curve(boxes, scores, faces, wanted):
    """How many proposals and found faces an image has at each threshold: [STEPS, 2]."""
    curve = np.zeros((STEPS, 2))
    of_face = np.zeros(len(faces))
    proposal = np.ones(len(boxes))
    recall = np.zeros(len(boxes))
    for h, row in enumerate(overlaps(boxes, faces)):
        best = row.argmax()
        if row[best] >= 0.5:
            if not wanted[best]:
                of_face[best], proposal[h] = -1, -1
            elif of_face[best] == 0:
                of_face[best] = 1
        recall[h] = (of_face == 1).sum()
    for t in range(STEPS):
        at = np.flatnonzero(scores >= 1 - (t + 1) / STEPS)
        if len(at):
            curve[t] = (proposal[: at[-1] + 1] == 1).sum(), recall[at[-1]]
    return curve


def average_precision(images):
    """Average precision of ``[(boxes, scores, faces, wanted)]``, scores falling within each."""
    every = np.concatenate([scores for _, scores, _, _ in images])
    low, high = every.min(), every.max()
    curve, count = np.zeros((STEPS, 2)), 0
    for boxes, scores, faces, wanted in images:
        count += int(np.sum(wanted)) if len(faces) else 0
        if len(faces) and len(boxes):
            curve += image_curve(boxes, (scores - low) / (high - low), faces, wanted)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.concatenate([[0], curve[:, 1] / curve[:, 0], [0]])
    reached = np.concatenate([[0], curve[:, 1] / count, [1]])
    for i in range(len(precision) - 1, 0, -1):
        precision[i - 1] = np.maximum(precision[i - 1], precision[i])
    at = np.flatnonzero(reached[1:] != reached[:-1])
    return float(np.sum((reached[at + 1] - reached[at]) * precision[at + 1]))
