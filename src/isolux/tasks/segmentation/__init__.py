"""Segmentation: whether each person or object in a picture was found by a mask, and how exactly.

As detection, with overlaps of masks in the place of boxes. People without a mask are not scored;
what a model draws over them finds no one (FACET, section 6.3 and Table 7). FHIBE annotates parts
and no whole people: their union is the mask, when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Unpack

from isolux.tasks._boxes.matching import settings_of
from isolux.tasks._boxes.scoring import score_shapes
from isolux.tasks._boxes.settings import BoxSettings
from isolux.tasks._boxes.shapes import info_of_shapes
from isolux.tasks._boxes.table import NO_MASK
from isolux.tasks._parts import whole_people
from isolux.tasks.segmentation.masks import empty_masks, mask_pairs_in
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.tables import MASK_PREDICTIONS, to_polars

Whole = Literal["mask", "parts"]

INFO = info_of_shapes(
    "Segmentation",
    "Whether a model's masks find each person or object, at ten overlaps.",
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    person_class: str | Sequence[str] | None = None,
    by_class: bool | None = None,
    whole_from: Whole = "mask",
    parts: Sequence[str] = (),
    **box: Unpack[BoxSettings],
) -> Scores:
    """Judge for each person whether the masks of one or several models found them.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``mask_counts``, ``mask_height``, ``mask_width`` (COCO's
        compressed run lengths) or ``mask_polygons`` (COCO's polygons as JSON text; its images then
        have ``width`` and ``height``). Crowds, those to ``ignore`` and those not ``judged`` are
        treated as in detection.
    predictions : frame
        Table ``MASK_PREDICTIONS``: ``model, image_id, label, score, mask_counts, mask_height,
        mask_width``. An image without any: everyone there was missed.
    metrics, person_class, by_class
        As in detection.
    whole_from : {"mask", "parts"}
        A person's own mask, or the union of their parts: of ``part_masks`` (run lengths), or of
        ``segments``, polygons of images with ``width`` and ``height``, as FHIBE has them.
    parts : sequence of str
        Of ``"parts"``: only these are united. Default: all, bags and clothes among them (FHIBE).
    **box
        The settings of ``BoxSettings``, as in detection; overlaps are those of masks.

    Returns
    -------
    Scores
        As in detection. Null with the reason "no mask" too. A mask without pixels is never
        found, as in COCO: a note counts them.

    Raises
    ------
    SpecError, UnknownNameError, JoinError
        As in detection; no one has parts; parts named for people's own masks.
    TableError
        Run lengths that are none, or a mask of another size than that of its image.

    Examples
    --------
    In a picture of 2 × 2 pixels she covers the left column, and the prediction one pixel of it.

    >>> import polars as pl
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> size = {"mask_height": [2], "mask_width": [2]}
    >>> people = Dataset(
    ...     name="one",
    ...     info=DatasetInfo(title="One", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {"instance_id": ["a"], "image_id": ["1"], "mask_counts": ["022"], **size}
    ...     ),
    ... )
    >>> masks = pl.DataFrame(
    ...     {
    ...         "model": ["m"],
    ...         "image_id": ["1"],
    ...         "label": ["person"],
    ...         "score": [0.9],
    ...         "mask_counts": ["013"],
    ...         **size,
    ...     }
    ... )
    >>> score(people, masks).units.select("metric", "threshold", "value").rows()
    [('average_recall', None, 0.1), ('recall_at_iou', 0.5, 1.0), ('recall_at_iou', 0.75, 0.0)]
    """
    settings = settings_of(**box)
    people = _whole(dataset, whole_from, (parts,) if isinstance(parts, str) else parts)
    drawn = to_polars(predictions).drop("file_row", strict=False).with_row_index("file_row")
    scores = score_shapes(
        ("segmentation", INFO, MASK_PREDICTIONS),
        people,
        drawn,
        settings,
        mask_pairs_in(people, settings),
        metrics=metrics,
        person_class=person_class,
        by_class=by_class,
        lacking=NO_MASK,
    )
    return replace(scores, notes=(*scores.notes, *_notes(people, whole_from, parts)))


def _whole(dataset: Dataset, whole_from: str, parts: Sequence[str]) -> Dataset:
    if whole_from == "parts":
        return whole_people(dataset, parts)
    if whole_from != "mask":
        raise SpecError("whole_from cannot be that", expected="mask or parts", found=whole_from)
    if parts:
        raise SpecError(
            "parts are named, but people's own masks count",
            expected="whole_from='parts', or no parts",
            found=f"parts {', '.join(parts)}",
        )
    return dataset


def _notes(people: Dataset, whole_from: str, parts: Sequence[str]) -> list[str]:
    notes = []
    if whole_from == "parts":
        named = ", ".join([parts] if isinstance(parts, str) else parts) or "all"
        notes.append(f"A person's mask is the union of their parts: {named}.")
    empty = empty_masks(people)
    if empty:
        notes.append(f"Masks without a pixel, which cannot be found: {empty:,}.")
    return notes
