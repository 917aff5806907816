"""Codes and words for missing values that are read as values: -1, 999, ``None``, ``n/a``.

An age of -1 is four decades of error, a similarity of -1 a failed match, an income of -1 the
poorest of all. The rule is that of ``isolux.core.placeholders``; ratings, which the task
``agreement`` reads, and groups that are words are asked by it where they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.core.placeholders import (
    CODES,
    find_placeholder_numbers,
    is_blank_word,
    is_failure_word,
)
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.statistic import FloatArray

_MIN_CLASS_SHARE = 0.02
# A class of fewer people may never be answered by a model that knows it.
_MIN_CLASS_PEOPLE = 5

INFO = PlausibilityInfo(
    title="Codes for missing values",
    summary="Numbers and words that files use for a missing value, among truths, answers, scores, "
    "ages and the numbers that bins are made of.",
    rule="Warns of a number such as -1 or 999 that is farther from all others than these are from "
    "each other, or five times as common as any number near it; of -1 where all others are 0 or "
    "more; of 0 among scores, and predictions of numbers that are never 0, where it stands out "
    "likewise; of a true class such as -1 or None that no answer names.",
)


@dataclass(frozen=True, slots=True)
class _CheckedNumbers:
    """Numbers that an audit reads, and what to call them; attributes have ``unknown_values``."""

    subject: str
    values: FloatArray
    is_attribute: bool = True
    counts: FloatArray | None = None
    may_be_zero: bool = True


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on numbers and true classes that are most likely codes for a missing value."""
    readings = (*_read_truths(inputs), *_read_answers(inputs), *_read_groups(inputs))
    cautions = [
        Caution(
            f"{placeholder.describe(numbers.subject)} If that is a code for a missing value: "
            + (
                _advise_unknown_value(inputs, f"{placeholder.code:.0f}")
                if numbers.is_attribute
                else "empty those cells."
            )
        )
        for numbers in readings
        for placeholder in find_placeholder_numbers(
            numbers.values, numbers.counts, may_be_zero=numbers.may_be_zero
        )
    ]
    return [*cautions, *_check_true_classes(inputs), *_check_judgements(inputs)]


def _advise_unknown_value(inputs: AuditInputs, code: str) -> str:
    """Name the flags that leave a code out: those set replace the words in use, so all of them."""
    if "unknown_values" not in inputs.options:  # arrays in memory, which no flag is about
        return "empty those cells."
    values = inputs.dataset.attributes["value"].unique().drop_nulls()
    present_words = set(values.str.strip_chars().str.to_lowercase())
    words = [
        word
        for word in inputs.options.get("unknown_values", ())
        if word and word.strip().lower() in present_words
    ]
    flags = " ".join(f"--option unknown_values={_quote(word)}" for word in (*words, code))
    return f"{flags} leaves it out."


def _quote(word: str) -> str:
    return f'"{word}"' if " " in word else word


def _to_numpy(numbers: pl.Series) -> FloatArray:
    return numbers.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def _read_truths(inputs: AuditInputs) -> Iterator[_CheckedNumbers]:
    """Read true numbers, and the attribute that numbers are correlated with."""
    evidence = inputs.scores.evidence
    for name, column, option in (("errors", "truth", "target"), ("numbers", "along", "along")):
        if name in evidence:
            people = evidence[name].unique("unit_id", maintain_order=True)
            title = repr(inputs.options.get(option) or "age")
            subject = f"the true {title}" if column == "truth" else title
            yield _CheckedNumbers(subject, _to_numpy(people[column]))


def _read_answers(inputs: AuditInputs) -> Iterator[_CheckedNumbers]:
    """Read each model's numbers or scores, as its file has them."""
    predictions = inputs.predictions
    column = "score"
    if predictions is None:
        predictions = inputs.scores.evidence.get("errors", inputs.scores.evidence.get("numbers"))
        column = "prediction"
    if predictions is None or "model" not in predictions.columns:
        return
    column = next((c for c in ("value", column) if c in predictions.columns), "")
    if not column or "label" in predictions.columns or not predictions.schema[column].is_numeric():
        return
    keys = [name for name in ("model", "metric") if name in predictions.columns]
    for (model, *_), rows in predictions.group_by(keys, maintain_order=True):
        yield _CheckedNumbers(
            repr(model),
            _to_numpy(rows[column]),
            is_attribute=False,
            may_be_zero=_may_be_zero(inputs),
        )


def _may_be_zero(inputs: AuditInputs) -> bool:
    """Return whether an answer of exactly 0 is one like any other."""
    errors = inputs.scores.evidence.get("errors")
    if errors is not None:
        return bool(errors.select((pl.col("truth") <= 0).any()).item())
    is_distance = inputs.options.get("lower_score_means") in ("same", "positive")
    return inputs.task not in _SCORED_TASKS or is_distance


_SCORED_TASKS = (
    "classification",
    "face_verification",
    "identification",
    "reconstruction",
    "super_resolution",
    "text_to_image_retrieval",
)
"""Tasks whose numbers are hardly ever exactly 0, unless a program failed."""


def _read_groups(inputs: AuditInputs) -> Iterator[_CheckedNumbers]:
    """Read the numbers that bins are made of, and groups that are numbers themselves."""
    binned = {
        text.partition("=")[0].strip()
        for text in inputs.options.get("bins", ())
        if "=top:" not in text
    }
    rows = inputs.dataset.instance_attributes() if binned else inputs.dataset.attributes
    words = [word.strip().lower() for word in inputs.options.get("unknown_values", ())]
    unknown_numbers = pl.Series(words, dtype=pl.String).cast(pl.Float64, strict=False).drop_nulls()
    for name in sorted(binned):
        text = pl.col("value").str.strip_chars()
        number = pl.coalesce("number", text.cast(pl.Float64, strict=False))
        numbers = rows.filter(attribute=name).select(number).to_series()
        numbers = numbers.filter(~numbers.is_in(unknown_numbers.implode()).fill_null(value=False))
        yield _CheckedNumbers(repr(name), _to_numpy(numbers))
    for intersection in inputs.membership.intersections:
        if intersection.handle in binned or any(len(values) > 1 for values in intersection.cells):
            continue
        names = pl.Series([values[0] for values in intersection.cells], dtype=pl.String)
        sizes = np.bincount(intersection.cell, minlength=len(names)).astype(float)
        yield _CheckedNumbers(
            f"the groups of {intersection.handle!r}", _to_numpy(names), counts=sizes
        )


def _check_true_classes(inputs: AuditInputs) -> list[Caution]:
    """Caution on true classes that are codes or words for a missing value, and never answered."""
    evidence = inputs.scores.evidence.get("classification")
    if evidence is None or evidence["prediction"].null_count() == evidence.height:
        return []
    people = evidence.unique("unit_id", maintain_order=True)
    counts = people["truth"].explode().drop_nulls().value_counts(sort=True)
    counts = counts.filter(~pl.col("truth").is_in(evidence["prediction"].unique().implode()))
    n_people = int((people["truth"].list.len() > 0).sum())
    minimum = max(_MIN_CLASS_PEOPLE, _MIN_CLASS_SHARE * n_people)
    return [
        Caution(
            f"{n:,} of {n_people:,} people have the true class {label!r}, which no answer names. Is"
            " it a code for a missing value? " + _advise_unknown_value(inputs, label)
        )
        for label, n in counts.iter_rows()
        if n >= minimum and (is_blank_word(label) or is_failure_word(label) or _is_code(label))
    ]


def _check_judgements(inputs: AuditInputs) -> list[Caution]:
    """Caution where "no face" counts as a kind of person in a generated image."""
    images = inputs.scores.evidence.get("pictures")
    if inputs.task != "generated_images" or images is None:
        return []
    counts = images["said"].drop_nulls().value_counts(sort=True)
    return [
        Caution(
            f"{label!r} counts as a kind of person ({n:,} of {images.height:,} images). If it means"
            f" that nobody was judged: {_advise_unknown_value(inputs, label)}"
        )
        for label, n in counts.iter_rows()
        if is_blank_word(label) or is_failure_word(label)
    ]


def _is_code(label: str) -> bool:
    try:
        return float(label) in CODES
    except ValueError:
        return False
