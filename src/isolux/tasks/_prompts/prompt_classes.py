"""From labels and prompts to classes, and settings of the tasks with prompted boxes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

import polars as pl

from isolux.core.errors import SpecError
from isolux.core.formatting import join_first
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.plugin_options import SharedOption
from isolux.tasks._boxes.box_formats import BoxFormat

# The notation in which FACET states its prompts (appendix A.5.6).
_SLOT = "{}"
# A longer list of labels would hide the sentence of its message.
_MAX_LISTED_LABELS = 8


@dataclass(frozen=True, slots=True)
class LabelledPredictions:
    """Predictions whose label is a class where it matches one, and notes."""

    rows: pl.DataFrame
    notes: tuple[str, ...]


def read_templates(prompt: str | Sequence[str]) -> tuple[str, ...]:
    """Read the templates of prompts, each with one slot for the class.

    Examples
    --------
    >>> read_templates("a person who is a {}")
    ('a person who is a {}',)
    """
    templates = (prompt,) if isinstance(prompt, str) else tuple(prompt)
    for template in templates:
        # Without a slot every class would have the same prompt, and so every label would be
        # ambiguous.
        if template.count(_SLOT) != 1:
            raise SpecError(
                "a prompt has one place for the class",
                expected="such as 'a person who is a {}'",
                found=repr(template),
                where="prompt",
            )
    return templates


def labels_to_classes(
    predictions: pl.DataFrame,
    classes: Sequence[str],
    *,
    templates: Sequence[str],
    prediction_map: Mapping[str, str] | None,
) -> LabelledPredictions:
    """Replace each label that names a class by that class; other labels stay.

    Examples
    --------
    >>> frame = pl.DataFrame({"label": ["nurse", "A person who is an astronaut.", "dog"]})
    >>> read = labels_to_classes(
    ...     frame,
    ...     ["astronaut", "nurse"],
    ...     templates=["a person who is a {}"],
    ...     prediction_map=None,
    ... )
    >>> read.rows["label"].to_list()
    ['nurse', 'astronaut', 'dog']
    """
    labels = predictions["label"].drop_nulls().unique().sort().to_list()
    classes_by_spelling, exact = _classes_by_spelling(classes, templates), set(classes)
    class_by_label: dict[str, str] = {}
    for label in labels:
        mapped_label = (prediction_map or {}).get(label, label)
        matching_classes = (
            # An exact name wins: two classes may differ only in spelling that is normalised away.
            {mapped_label}
            if mapped_label in exact
            else classes_by_spelling.get(_normalise_spelling(mapped_label), set())
        )
        # Such as classes that differ only in case or punctuation: guessing would move people
        # between them.
        if len(matching_classes) > 1:
            raise SpecError(
                f"the label {label!r} may mean several classes",
                expected="the exact name of a class, or a prediction_map",
                found=", ".join(map(repr, sorted(matching_classes))),
                where="predictions, column 'label'",
            )
        class_by_label.update((label, name) for name in matching_classes)
    # Everyone would count as missed in every class: a recall of 0 without any difference.
    if predictions.height and classes and not class_by_label:
        raise _build_no_class_error(labels, classes, templates)
    rows = predictions.with_columns(pl.col("label").replace(class_by_label))
    return LabelledPredictions(
        rows, _build_notes(class_by_label, classes, any_rows=bool(predictions.height))
    )


def _normalise_spelling(text: str) -> str:
    """Reduce a text to its words in lower case."""
    # Some detectors, such as Grounding DINO, return prompts in lower case and without punctuation.
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def _classes_by_spelling(classes: Sequence[str], templates: Sequence[str]) -> dict[str, set[str]]:
    """Map each spelling of a class or prompt to the classes that it may mean."""
    forms = {_SLOT, *templates}
    for template in templates:
        start, end = template.split(_SLOT)
        # Both "a {}" and "an {}": a template that was filled in by hand has "an astronaut".
        forms |= {re.sub(r"(?i)\ban?(?=\s*$)", word, start) + _SLOT + end for word in ("a", "an")}
    classes_by_spelling: dict[str, set[str]] = {}
    for form in forms:
        for name in classes:
            classes_by_spelling.setdefault(
                _normalise_spelling(form.replace(_SLOT, f" {name} ")), set()
            ).add(name)
    # A class of punctuation alone would otherwise match every empty label.
    classes_by_spelling.pop("", None)
    return classes_by_spelling


def _build_no_class_error(
    labels: Sequence[str], classes: Sequence[str], templates: Sequence[str]
) -> SpecError:
    """Build the error of labels that name no class of the dataset."""
    example_prompts = [t.replace(_SLOT, classes[0]) for t in templates[:1]]
    hint = "give the template of the prompts as prompt='… {} …', or a prediction_map"
    if labels and all(label.isdigit() for label in labels):
        hint = (
            "COCO results name categories by number: read them with categories=…, or give a "
            "prediction_map from numbers to classes"
        )
    return SpecError(
        "no prediction names a class of the dataset",
        expected=" or ".join(map(repr, [classes[0], *example_prompts])),
        found=", ".join(map(repr, labels[:3])) or "no labels at all",
        where="predictions, column 'label'",
        hint=hint,
    )


def _build_notes(
    class_by_label: Mapping[str, str], classes: Sequence[str], *, any_rows: bool
) -> tuple[str, ...]:
    """Describe labels that were read as classes, and classes that no prediction names."""
    notes = []
    renamed_labels = {label: name for label, name in class_by_label.items() if label != name}
    if renamed_labels:
        label, name = next(iter(renamed_labels.items()))
        notes.append(
            f"{len(renamed_labels):,} labels were read as classes: {label!r} as {name!r}, …."
        )
    named_classes = set(class_by_label.values())
    unnamed_classes = [name for name in classes if name not in named_classes]
    if unnamed_classes and any_rows:
        notes.append(
            f"{len(unnamed_classes):,} of {len(classes):,} classes are named by no prediction, so"
            " that all of their people count as missed:"
            f" {join_first(unnamed_classes, _MAX_LISTED_LABELS)}."
        )
    return tuple(notes)


class PhraseSettings(TypedDict, total=False):
    """The attribute with the classes, how labels name them, and the IoU thresholds."""

    target: Annotated[
        str | None,
        SharedOption(None, "The attribute with the classes. Default: the instances' ``classes``."),
    ]
    prediction_map: Annotated[
        Mapping[str, str] | None,
        SharedOption(
            None,
            "The model's labels to classes, in text ``CLASS=LABEL,LABEL`` or a file; goes before"
            " names and prompts.",
        ),
    ]
    iou_thresholds: Annotated[
        Sequence[float],
        SharedOption(
            (0.5, 0.75),
            "Of ``recall_at_iou``, in column ``threshold``: AR@.50 and AR@.75 where not said.",
        ),
    ]
    unknown_values: Annotated[
        Sequence[str],
        SharedOption(UNKNOWN_VALUES, 'Classes that mean "not known", compared without case.'),
    ]
    box_format: Annotated[
        BoxFormat,
        SharedOption(
            "xywh",
            "What the four numbers of a predicted box are: left, top, width, height; two corners;"
            " the centre and the sides; ``y`` first; with ``n`` as shares of the picture's sides.",
        ),
    ]
    model: Annotated[
        str | None,
        SharedOption(None, "What to call the model if there is not one prediction to say so."),
    ]
