"""Boxes, masks and poses that fit people far better after one simple transformation."""

from __future__ import annotations

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.geometry.previews import ShapePreview
from isolux.plausibility._audit_inputs import SHAPE_TASKS, AuditInputs
from isolux.plausibility._moved_shapes import (
    find_best_transformation_with_similarities,
    find_mixed_formats,
)
from isolux.plausibility._renamed_shapes import find_renamed_shapes
from isolux.plausibility._shape_halves import MIN_GAIN

_SHAPES = {"segmentation": "masks", "keypoints": "poses"}
# Predictions of other images overlap people by chance; those of the right ones by more than this.
_MIN_GAIN_OVER_CHANCE, _MIN_IMAGES = 0.05, 10

INFO = PlausibilityInfo(
    title="Shapes that fit after a simple transformation",
    summary="How similar predictions are to people in up to 300 images, as they are and mirrored, "
    "moved, with other joints, formats, labels or images.",
    rule=f"Warns where similarity rises by {MIN_GAIN:g} on average in both halves of the images, "
    "one of which chose the transformation; of some shapes in another format or size from 3 images "
    "and 2 % of people on; and where predictions fit other images as well.",
    tasks=SHAPE_TASKS,
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on the first transformation of each model that explains a poor fit."""
    cautions: list[Caution] = []
    for preview in inputs.scores.previews:
        renamed = find_renamed_shapes(preview, inputs)
        if renamed is None:
            renamed = _describe_moved_shapes(
                preview.only_judged(), _SHAPES.get(inputs.task, "boxes")
            )
        cautions += [] if renamed is None else [Caution(renamed)]
    return cautions


def _describe_moved_shapes(preview: ShapePreview, shapes: str) -> str | None:
    subject = f"The {shapes} of {preview.model!r}"
    verb = "overlap" if preview.people.points is None else "resemble"
    transformation = find_best_transformation_with_similarities(preview)
    if transformation is not None:
        words, before, after = transformation
        return (
            f"{subject} {verb} people by {before.mean():.2f} on average as they are, and by"
            f" {after.mean():.2f} if {words}, in the predictions or in the annotations. Nothing was"
            " changed: mend the file."
        )
    mixed = find_mixed_formats(preview)
    if mixed is not None:
        words, n, n_images = mixed
        return (
            f"In {n:,} of {n_images:,} images some {shapes} of {preview.model!r} fit people only if"
            f" {words}, others as they are. Were files of two formats joined? Nothing was changed."
        )
    return _describe_other_images(preview, verb)


def _describe_other_images(preview: ShapePreview, verb: str) -> str | None:
    """Describe predictions that fit people of other images as well as those of their own."""
    n = len(preview.size_px)
    if n < _MIN_IMAGES or not len(preview.score):
        return None
    own_similarity = preview.best_similarity(preview.predicted).mean()
    # Images far apart in the file show other scenes: their overlap is that of chance.
    distant = max(
        preview.best_similarity(preview.predicted.shift_images(offset, n)).mean()
        for offset in (n // 2, n // 3)
    )
    if own_similarity > distant + _MIN_GAIN_OVER_CHANCE:
        return None
    return (
        f"The predictions of {preview.model!r} {verb} the people of their images no better than"
        f" those of other images ({own_similarity:.2f} and {distant:.2f} on average). Are they of"
        " these images, and in pixels of them at this size?"
    )
