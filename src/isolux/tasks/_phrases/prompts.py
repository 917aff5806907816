"""What a prompt asked for, and settings of the tasks that judge boxes drawn for one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

import polars as pl

from isolux.tasks._boxes.readings import BoxFormat
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import UNKNOWN_VALUES
from isolux.vocabulary.plugin_options import Shared

_SLOT = "{}"
_SHOWN = 8  # labels in a message: a longer list would hide its sentence


@dataclass(frozen=True, slots=True)
class Labelled:
    """Predictions whose label is a class where it could be read as one, and notes on that."""

    rows: pl.DataFrame
    notes: tuple[str, ...]


def templates_of(prompt: str | Sequence[str]) -> tuple[str, ...]:
    """List the templates of prompts, each with one place for the class.

    Examples
    --------
    >>> templates_of("a person who is a {}")
    ('a person who is a {}',)
    """
    templates = (prompt,) if isinstance(prompt, str) else tuple(prompt)
    for template in templates:
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
) -> Labelled:
    """Put the class in the place of each label that means one; other labels stay as they are.

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
    spelled, exact = _spellings(classes, templates), set(classes)
    meaning: dict[str, str] = {}
    for label in labels:
        named = (prediction_map or {}).get(label, label)
        found = {named} if named in exact else spelled.get(_spelling(named), set())
        if len(found) > 1:
            raise SpecError(
                f"the label {label!r} may mean several classes",
                expected="the exact name of a class, or a prediction_map",
                found=", ".join(map(repr, sorted(found))),
                where="predictions, column 'label'",
            )
        meaning.update((label, name) for name in found)
    if predictions.height and classes and not meaning:
        raise _no_class(labels, classes, templates)
    rows = predictions.with_columns(pl.col("label").replace(meaning))
    return Labelled(rows, _notes(meaning, classes, any_rows=bool(predictions.height)))


def _spelling(text: str) -> str:
    """Reduce a text to its words."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def _spellings(classes: Sequence[str], templates: Sequence[str]) -> dict[str, set[str]]:
    """Give the classes that each spelling of a class or prompt may mean."""
    forms = {_SLOT, *templates}
    for template in templates:
        start, end = template.split(_SLOT)
        # "a {}" and "an {}" alike: a template filled in by hand has "an astronaut".
        forms |= {re.sub(r"(?i)\ban?(?=\s*$)", word, start) + _SLOT + end for word in ("a", "an")}
    found: dict[str, set[str]] = {}
    for form in forms:
        for name in classes:
            found.setdefault(_spelling(form.replace(_SLOT, f" {name} ")), set()).add(name)
    found.pop("", None)
    return found


def _no_class(labels: Sequence[str], classes: Sequence[str], templates: Sequence[str]) -> SpecError:
    asked = [t.replace(_SLOT, classes[0]) for t in templates[:1]]
    hint = "give the template of the prompts as prompt='… {} …', or a prediction_map"
    if labels and all(label.isdigit() for label in labels):
        hint = (
            "COCO results name categories by number: read them with categories=…, or give a "
            "prediction_map from numbers to classes"
        )
    return SpecError(
        "no prediction names a class of the dataset",
        expected=" or ".join(map(repr, [classes[0], *asked])),
        found=", ".join(map(repr, labels[:3])) or "no labels at all",
        where="predictions, column 'label'",
        hint=hint,
    )


def _notes(
    meaning: Mapping[str, str], classes: Sequence[str], *, any_rows: bool
) -> tuple[str, ...]:
    notes = []
    read = {label: name for label, name in meaning.items() if label != name}
    if read:
        label, name = next(iter(read.items()))
        notes.append(f"{len(read):,} labels were read as classes: {label!r} as {name!r}, ….")
    asked = set(meaning.values())
    silent = [name for name in classes if name not in asked]
    if silent and any_rows:
        more = ", …" if len(silent) > _SHOWN else ""
        notes.append(
            f"{len(silent):,} of {len(classes):,} classes are named by no prediction, so that all "
            f"of their people count as missed: {', '.join(silent[:_SHOWN])}{more}."
        )
    return tuple(notes)


class PhraseSettings(TypedDict, total=False):
    """Which classes people are of, how labels name them, and at which overlaps a box finds one."""

    target: Annotated[
        str | None,
        Shared(None, "The attribute with the classes. Default: the instances' ``classes``."),
    ]
    prediction_map: Annotated[
        Mapping[str, str] | None,
        Shared(
            None,
            'The model\'s labels to classes (``{"1": "nurse"}``); goes before names and prompts.',
        ),
    ]
    iou_thresholds: Annotated[
        Sequence[float],
        Shared(
            (0.5, 0.75),
            "Of ``recall_at_iou``, in column ``threshold``: AR@.50 and AR@.75 where not said.",
        ),
    ]
    unknown_values: Annotated[
        Sequence[str],
        Shared(UNKNOWN_VALUES, 'Classes that mean "not known", compared without case.'),
    ]
    box_format: Annotated[
        BoxFormat,
        Shared(
            "xywh",
            "What the four numbers of a predicted box are: left, top, width, height; two"
            " corners; the centre and the sides; ``y`` first; with ``n`` as shares of the"
            " picture's sides.",
        ),
    ]
    model: Annotated[
        str | None,
        Shared(None, "What to call the model if there is not one prediction to say so."),
    ]
