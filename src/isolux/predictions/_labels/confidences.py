"""Scores that must be confidences from 0 to 1, and whether a person was detected at all."""

from __future__ import annotations

from typing import NoReturn

import polars as pl

from isolux.core.errors import TableError, format_location
from isolux.core.formatting import join_first
from isolux.core.table_rows import count_people_in_mask
from isolux.io.cell_parsing import as_text, first_true_row
from isolux.io.yes_no import NO, YES

_SCORE_TOLERANCE = 1e-6  # what a softmax in single precision may exceed 1 by
_DETECTED_WORDS = (*YES, "found", "detected")
_MISSED_WORDS = (*NO, "missed", "undetected", "none", "nan", "null")
_MAX_LISTED = 3
_MAX_PERCENT = 100
_MAX_LOGIT = 50  # 100 times a cosine of CLIP is 10 to 40; of percents some answer is surer
_WITHOUT_SCORES = "keep each person's best answer and leave the column of scores out"
_CERTAIN_RANGE = (0.5, 1.05)  # DeepFace writes 1.01, and 0 where it found no face


def to_confidences(
    numbers: pl.Series, rows: pl.Series, scale: float, source: str, column: str
) -> pl.Series:
    """Divide by ``scale`` and require 0 to 1; null stays null."""
    infinite = ~numbers.is_finite().fill_null(value=True)
    if infinite.any():
        row = first_true_row(infinite)
        raise TableError(
            f"{infinite.sum():,} score(s) are not finite numbers",
            expected="0 to 1, or nothing where the model gave no score",
            found=str(numbers[row]),
            where=format_location(source, int(rows[row]) + 1, column),
        )
    scaled = numbers / scale
    outside = ((scaled < -_SCORE_TOLERANCE) | (scaled > 1 + _SCORE_TOLERANCE)).fill_null(
        value=False
    )
    if outside.any():
        row = first_true_row(outside)
        row_number = int(rows[row]) + 1
        n_scores = len(numbers) - numbers.null_count()
        raise TableError(
            f"{outside.sum():,} of {n_scores:,} scores are outside 0 to 1",
            expected="0 to 1" + (f" after division by {scale:g}" if scale != 1 else ""),
            found=f"{numbers[row]!r}",
            where=format_location(source, row_number, column),
            hint=_scale_hint(numbers, scale, row_number),
        )
    return scaled.clip(0.0, 1.0)


def _scale_hint(numbers: pl.Series, scale: float, row: int) -> str:
    low, high = numbers.min(), numbers.max()
    assert isinstance(low, float)  # noqa: S101  (a score lies outside, so there is one)
    assert isinstance(high, float)  # noqa: S101
    if low < 0 and high <= 0:
        return f"these look like log-probabilities: give exp(score), or {_WITHOUT_SCORES}"
    if low < 0 or high > _MAX_PERCENT:
        return (
            "logits and distances are not confidences: bring them to 0–1 first (logits: a softmax"
            f" over each person's answers), or {_WITHOUT_SCORES}"
        )
    if scale == 1 and low > 1 and high <= _MAX_LOGIT:
        return (
            "logits such as CLIP's (100 times a cosine) are not confidences: give a softmax over"
            f" each person's answers, or {_WITHOUT_SCORES}; only if these are percents, say"
            " --option score_scale=100"
        )
    if scale == 1 and high > 2:
        return "if scores run from 0 to 100, say --option score_scale=100"
    return f"correct row {row}, or choose another column"


def read_is_detected(cells: pl.Series, source: str) -> pl.Series:
    """Read a column that says yes or no, in one of a few words; an empty cell says no."""
    text = as_text(cells)
    if isinstance(text.dtype, pl.List):
        has_answers = text.list.drop_nulls().list.len().fill_null(0) > 0
        return has_answers.alias("detected")
    folded = text.str.strip_chars().str.to_lowercase()
    numbers = folded.cast(pl.Float64, strict=False)
    absent = folded.is_null() | folded.is_in(_MISSED_WORDS) | (numbers == 0).fill_null(value=False)
    present = folded.is_in(_DETECTED_WORDS).fill_null(value=False) | (numbers == 1).fill_null(
        value=False
    )
    if absent.any():
        present |= numbers.is_between(*_CERTAIN_RANGE).fill_null(value=False)
    is_undecided = ~(absent | present)
    if is_undecided.any():
        _refuse_undecided(text, numbers, is_undecided, source)
    return present.alias("detected")


def _refuse_undecided(
    text: pl.Series, numbers: pl.Series, is_undecided: pl.Series, source: str
) -> NoReturn:
    row = first_true_row(is_undecided)
    cell_texts = text.filter(is_undecided).unique(maintain_order=True)
    hint = "write 1 where the person was found and 0 where not, or name another column"
    if numbers.filter(is_undecided).is_not_null().any():
        hint = (
            "a confidence or a count does not say from where on a person counts as found: write 1"
            " from there on and 0 below"
        )
    raise TableError(
        f"{count_people_in_mask(is_undecided, source):,} cell(s) do not say whether a person was"
        " detected",
        expected="1 or 0, yes or no, true or false, found or missed, detected or undetected; "
        "empty if nobody was found",
        found=join_first(map(repr, cell_texts), _MAX_LISTED),
        where=format_location(source, row + 1, text.name),
        hint=hint,
    )
