"""Face parsing: how well a model's masks of skin, eyes, hair, … cover those annotated in each face.

From mask images to one score per face: F1 (Dice's coefficient) of each part, and the mean over
parts, as FHIBE reports it. Its text averages over all categories, its released tool over those that
are annotated in the face, including the background: both are options here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import refuse_unknown_names
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.metrics import FHIBE
from isolux.tasks._scores import read_metrics, restrict_task_info, score_rows
from isolux.tasks.face_parsing.faces import (
    PartAnnotations,
    PartPixelCounts,
    Source,
    add_face_reasons,
    count_pixels,
    find_part_annotations,
    group_files_by_face,
    join_files_to_faces,
)
from isolux.tasks.face_parsing.join_check import check_face_match
from isolux.tasks.face_parsing.part_names import (
    BACKGROUND,
    LABELS,
    PartVocabulary,
    match_part_names,
)

Classes = Literal["all", "present"]
Absent = Literal["leave-out", "right", "wrong"]
# Separate masks of parts may overlap (hair over an ear); a label image has one part a pixel.
Overlaps = Literal["keep", "last"]
_NO_ANNOTATED_PART, _NO_SELECTED_PART = "no annotated part", "none of these parts"
_Flags = npt.NDArray[np.bool_]

PARSING = replace(FHIBE, location="Methods, narrow model evaluation metrics: face segmentation")
DICE = Reference(
    "dice",
    "Dice, L. R. (1945). Measures of the amount of ecologic association between species. Ecology,"
    " 26(3), 297–302.",
    "page 298",
    "https://doi.org/10.2307/1932409",
)
INFO = TaskInfo(
    predictions="outputs",
    title="Face parsing",
    summary="How well a model's masks cover the annotated parts of each face.",
    references=(PARSING, DICE),
    assumptions=(
        "A part that is not drawn is not in the picture, in the annotation and in the prediction.",
        "A face of which a model gave no mask at all scores 0.",
        "F1 of a small part moves more by one pixel of outline than that of a large one.",
    ),
    metrics=(
        Metric(
            name="mean_f1",
            title="Mean F1 of parts",
            definition="Mean over the parts of a face of F1: twice the pixels that the annotation "
            "and the prediction share, over the sum of both; then mean over faces.",
            direction="higher",
            reference=PARSING,
        ),
        Metric(
            name="f1_by_part",
            title="F1",
            definition="Mean over faces of one part's F1: twice the pixels that the annotation and "
            "the prediction share, over the sum of both.",
            direction="higher",
            reference=DICE,
        ),
    ),
    defaults=("mean_f1",),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    classes: Classes = "all",
    absent: Absent = "leave-out",
    background: bool = False,
    overlaps: Overlaps = "keep",
    parts: Sequence[str] = (),
    mapping: Mapping[str, str] | None = None,
    labels: Sequence[str] = LABELS,
    truth: Source | None = None,
    root: str | None = None,
    model: str | None = None,
) -> Scores:
    """Judge for each face how well the part masks of one or several models cover it.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``part_mask_uri`` (a label picture below ``root``),
        ``part_masks`` (run lengths), ``segments`` (polygons; its images then have ``width`` and
        ``height``) or ``part_mask_files`` (a picture below ``root`` for each part, as
        CelebAMask-HQ publishes them).
    predictions : frame
        Table ``PART_MASK_FILES``: ``model, image_id, part, uri``. ``image_id`` is an instance's
        id, or that of an image with one face. The part ``combined`` is a label picture and counts
        before pictures of parts. None of a face: it was missed.
    metrics : sequence of str
        What to measure; default: ``mean_f1``; ``f1_by_part`` when named.
    classes : {"all", "present"}
        Parts included in a face's mean: all (FHIBE's text), so that a part that was drawn but is
        not there counts 0; or those annotated in the face (FHIBE's released tool).
    absent : {"leave-out", "right", "wrong"}
        A part of ``"all"`` neither annotated nor drawn, whose F1 is 0 / 0: left out, 1, or 0.
    background : bool
        Count the area that no part covers as one more part, as the released tool does.
    overlaps : {"keep", "last"}
        A pixel of several parts counts for each of them, or for the last in the order of
        ``labels`` alone, as CelebAMask-HQ's label pictures are made.
    parts : sequence of str
        Only these of the dataset's parts count. Default: all.
    mapping : mapping of str to str, optional
        Maps the model's names of parts to the dataset's; several mapped to one are merged, those
        mapped to ``background`` left out.
    labels : sequence of str
        What the numbers of label pictures mean, from 0. Default: CelebAMask-HQ's 19.
    truth : {"picture", "masks", "polygons", "files"}, optional
        Which annotation counts; default: the first one.
    root : str, optional
        The folder that these paths are relative to; default: the nearest one above the dataset's
        files that contains such a picture.
    model : str, optional
        What to call the model if there is not one prediction to say so.

    Returns
    -------
    Scores
        ``units``: table ``scores``, a row for each model, metric and face, of ``f1_by_part`` for
        each part that counts in the face (its name in ``label``); 0 to 1, higher is better. Null
        with the reason "no annotated part", "none of these parts", "a crowd, not one person",
        "marked to be ignored" or "takes part in matching only".

    Raises
    ------
    SpecError, UnknownNameError
        A setting that cannot be used; parts of the model that the dataset does not have, with both
        lists; no such metric or part.
    JoinError
        No prediction is for a face of the dataset, or one is for an image with several.
    FileError, TableError
        A picture that is missing, damaged, or of another size than its image; run lengths or
        polygons that are none.

    Examples
    --------
    Her hair covers the left column of a picture of 2 × 2 pixels; the model draws one pixel of it
    and one of skin, which is not there: F1 of 2 · 1 / (2 + 1) and 0.

    >>> import tempfile
    >>> import numpy as np
    >>> from PIL import Image
    >>> from isolux.core.info import DatasetInfo
    >>> hair = {"part": "hair", "counts": "022", "height": 2, "width": 2}
    >>> skin = hair | {"part": "skin", "counts": "4"}
    >>> person = Dataset(
    ...     name="one",
    ...     info=DatasetInfo(title="One", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {"instance_id": ["a"], "image_id": ["1"], "part_masks": [[hair, skin]]}
    ...     ),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [f"{folder}/1_hair.png", f"{folder}/1_skin.png"]
    ...     for file, pixels in zip(files, ([[1, 0], [0, 0]], [[0, 1], [0, 0]])):
    ...         Image.fromarray(np.array(pixels, np.uint8)).save(file)
    ...     drawn = pl.DataFrame(
    ...         {"model": "m", "image_id": "1", "part": ["hair", "skin"], "uri": files}
    ...     )
    ...     means = [
    ...         score(person, drawn, classes=over).units["value"].round(3).item()
    ...         for over in ("all", "present")
    ...     ]
    >>> means
    [0.333, 0.667]
    """
    names = set(read_metrics(INFO, metrics) or INFO.defaults)
    rows = add_face_reasons(dataset)
    annotations = find_part_annotations(dataset, rows, truth, root)
    files, notes = join_files_to_faces(predictions, rows)
    models = tuple(files["model"].unique().sort()) or (model or "model",)
    vocabulary = match_part_names(
        annotations.part_names, files["part"].unique().sort().to_list(), labels, mapping or {}
    )
    selected_parts = _select_parts(
        vocabulary, (parts,) if isinstance(parts, str) else parts, background=background
    )
    files_by_model = group_files_by_face(files, models)
    # All models together, so that each annotation is read and painted once.
    counts_by_model = count_pixels(
        annotations, files_by_model, vocabulary, last_wins=overlaps == "last"
    )
    cautions = [
        note
        for name in models
        for note in check_face_match(
            annotations, name, files_by_model[name], vocabulary, selected_parts
        )
    ]
    tables = []
    for name in models:
        f1, is_counted = compute_f1(
            counts_by_model[name], selected_parts, classes=classes, absent=absent
        )
        tables += _model_rows(
            name,
            _find_face_reasons(annotations, counts_by_model[name], is_counted),
            f1,
            is_counted,
            selected_parts,
            names,
        )
    return Scores(
        units=pl.concat(tables),
        info=restrict_task_info(INFO, names),
        notes=(
            *cautions,
            *notes,
            *_build_notes(annotations, counts_by_model, selected_parts, classes, absent),
        ),
    )


def compute_f1(
    pixel_counts: PartPixelCounts,
    selected_parts: Mapping[int, str],
    *,
    classes: Classes,
    absent: Absent,
) -> tuple[FloatArray, _Flags]:
    """Compute F1 of the selected parts of each face, and which of them count: ``[n, c]`` each."""
    part_indices = list(selected_parts)
    truth, predicted, common = (
        pixels[:, part_indices]
        for pixels in (pixel_counts.truth_px, pixel_counts.predicted_px, pixel_counts.common_px)
    )
    area_sum = truth + predicted
    # Dice 1945: twice the common pixels over the sum of both areas.
    f1 = np.divide(2.0 * common, area_sum, out=np.zeros(area_sum.shape), where=area_sum > 0)
    # FHIBE's released tool averages over the parts that are annotated in the face.
    if classes == "present":
        return f1, truth > 0
    if absent == "right":
        # Not for a missed face (without any predicted mask): it scores 0 under every setting.
        f1 = np.where((area_sum == 0) & ~pixel_counts.is_missed[:, None], 1.0, f1)
    # Without pixels on either side F1 is 0 / 0: left out, or counted as the setting says.
    return f1, (area_sum > 0) | np.full(area_sum.shape, absent != "leave-out")


def _select_parts(
    vocabulary: PartVocabulary, part_names: Sequence[str], *, background: bool
) -> dict[int, str]:
    """Select the parts that count: name by index, 0 for the background."""
    refuse_unknown_names(
        "part", part_names if vocabulary.names else (), vocabulary.names, where="parts"
    )
    name_by_index = dict(enumerate((BACKGROUND, *vocabulary.names)))
    return {
        k: name
        for k, name in name_by_index.items()
        # The background covers most of a face image, and its high F1 would hide the other parts.
        if (background if k == 0 else not part_names or name in part_names)
    }


def _find_face_reasons(
    truth: PartAnnotations, pixel_counts: PartPixelCounts, is_counted: _Flags
) -> pl.DataFrame:
    """Find the reason of each face that has no mean F1."""
    is_annotated = pl.Series(pixel_counts.truth_px[:, 1:].any(axis=1), dtype=pl.Boolean)
    has_counted_part = pl.Series(is_counted.any(axis=1), dtype=pl.Boolean)
    reason = pl.coalesce(
        "reason",
        # Without annotations every predicted part would be wrong, whatever the model drew.
        pl.when(~is_annotated).then(pl.lit(_NO_ANNOTATED_PART)),
        pl.when(~has_counted_part).then(pl.lit(_NO_SELECTED_PART)),
    )
    return truth.rows.select("cluster_id", unit_id="instance_id", reason=reason)


def _model_rows(
    model: str,
    faces: pl.DataFrame,
    part_f1: FloatArray,
    is_counted: _Flags,
    selected_parts: Mapping[int, str],
    names: set[str],
) -> list[pl.DataFrame]:
    """Build one model's rows of mean F1, and of F1 by part if requested."""
    n_parts = is_counted.sum(axis=1)
    mean = np.divide(
        (part_f1 * is_counted).sum(axis=1), n_parts, out=np.zeros(len(part_f1)), where=n_parts > 0
    )
    tables = []
    if "mean_f1" in names:
        tables.append(score_rows(faces, "face_parsing", "mean_f1", mean, model=model))
    is_scored = faces["reason"].is_null().to_numpy()
    for c, part_name in enumerate(selected_parts.values() if "f1_by_part" in names else ()):
        is_included: _Flags = np.logical_and(is_counted[:, c], is_scored)
        f1 = part_f1[is_included, c]
        tables.append(
            score_rows(
                faces.filter(is_included),
                "face_parsing",
                "f1_by_part",
                f1,
                model=model,
                label=part_name,
            )
        )
    return tables


def _build_notes(
    truth: PartAnnotations,
    counts_by_model: Mapping[str, PartPixelCounts],
    selected_parts: Mapping[int, str],
    classes: Classes,
    absent: Absent,
) -> list[str]:
    """Describe the mean, the faces that are not scored, and parts that were never predicted."""
    rule = {
        "leave-out": "left out where neither annotated nor drawn",
        "right": "counted 1 where neither annotated nor drawn",
        "wrong": "counted 0 where neither annotated nor drawn",
    }[absent]
    parts_phrase = "the parts annotated in a face" if classes == "present" else f"all parts, {rule}"
    background_phrase = "with" if 0 in selected_parts else "without"
    notes = [f"Mean F1 is over {parts_phrase}; {background_phrase} the background."]
    has_several_models = len(counts_by_model) > 1
    for name, counts in counts_by_model.items():
        prefix = f"{name}: " if has_several_models else ""
        is_annotated = counts.truth_px[:, 1:].any(axis=1)
        n_missed = int((is_annotated & counts.is_missed).sum())
        n_unannotated = int((~is_annotated & truth.rows["reason"].is_null().to_numpy()).sum())
        if n_missed:
            notes.append(
                f"{prefix}{n_missed:,} of {truth.rows.height:,} faces have no mask: they score 0."
            )
        if n_unannotated:
            notes.append(
                f"{prefix}{n_unannotated:,} of {truth.rows.height:,} are not scored:"
                f" {_NO_ANNOTATED_PART}."
            )
        # A part that a model never draws is usually one that it calls by another name.
        is_undrawn = (counts.truth_px.sum(axis=0) > 0) & (counts.predicted_px.sum(axis=0) == 0)
        undrawn_parts = [
            part_name for k, part_name in selected_parts.items() if k and is_undrawn[k]
        ]
        if undrawn_parts and not counts.is_missed.all():
            notes.append(f"{prefix}Parts never drawn: {', '.join(undrawn_parts)}.")
    return notes
