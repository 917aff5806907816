"""Notes for the report: what was excluded, or counted by a rule."""

from __future__ import annotations

import polars as pl

from isolux.core.counts import count_people, count_people_by_label
from isolux.core.notes import Caution
from isolux.tasks.classification.label_matching import list_classes

# A longer list of classes would hide the sentence of its note.
_MAX_LISTED_CLASSES = 10
_POLICY_TEXTS = {
    "mistake": "counted as mistakes",
    "leave-out": "left out",
    "both": "counted as mistakes, and left out of what is measured on detected units",
}

_CAUTION_SHARE = 0.02
"""From this share of people without a predicted label, the note is a caution."""


def describe_missing_answers(
    units: pl.DataFrame, undetected: str, *, counted_as: str = "mistakes"
) -> list[str]:
    """Count people without a label for whom the file does not state whether they were detected."""
    scored = units.filter(pl.col("unjudged").is_null())
    notes: list[str] = []
    for (model,), model_rows in scored.group_by(["model"], maintain_order=True):
        # "silent": neither a label nor a statement about detection, which may also be a truncated
        # file.
        n_missing, n_people = count_people(model_rows.filter("silent")), count_people(model_rows)
        count_text = f"{n_missing:,} of {n_people:,} people have no answer of {str(model)!r}"
        text = (
            f"{count_text} (an empty cell, or a word for unknown). They count as not detected, so"
            f" as {counted_as}. If the file should have an answer for them, correct it;"
            " --undetected leave-out leaves them out; detected_column says who was not detected."
        )
        if n_missing and undetected == "leave-out":
            notes.append(f"{count_text} and are left out.")
        elif n_missing:
            notes.append(Caution(text) if n_missing >= _CAUTION_SHARE * n_people else text)
    return notes


def describe_counts(units: pl.DataFrame, undetected: str, *, has_truth: bool = True) -> list[str]:
    """Count, for each model, the unscored people and the classes that only one side has."""
    notes: list[str] = []
    models = units["model"].unique(maintain_order=True).to_list()
    for model in models:
        prefix = f"{model}: " if len(models) > 1 else ""
        model_rows = units.filter(model=model)
        classes = _describe_unmatched_classes(model_rows) if has_truth else []
        notes += [prefix + note for note in (*_describe_unscored(model_rows, undetected), *classes)]
    return notes


def _describe_unscored(units: pl.DataFrame, undetected: str) -> list[str]:
    """Count units for each reason that changes how they count."""
    unscored_reason, answer, score = pl.col("unjudged"), pl.col("prediction"), pl.col("score")
    is_scored, is_detected = unscored_reason.is_null(), pl.col("detected")
    has_scores = units.filter(is_scored)["score"].is_not_null().any()
    no_score = "; metrics of scores leave them out" if has_scores else ""
    undetected_text = f"were not detected: {_POLICY_TEXTS[undetected]}{no_score}"
    has_no_score = is_scored & score.is_null() & answer.is_not_null() & has_scores
    # Each unit is in at most one of the first four, so that the counts add up.
    conditions = (
        (unscored_reason == "unknown truth", "have no known truth and count in no metric"),
        (unscored_reason == "no prediction", "have no prediction and count in no metric"),
        (is_scored & ~is_detected & ~pl.col("silent"), undetected_text),
        (
            is_scored & is_detected & answer.is_null(),
            "were detected but not answered: counted as mistakes",
        ),
        (has_no_score, "have an answer without a score; metrics of scores leave them out"),
    )
    counts = [(count_people(units.filter(mask)), description) for mask, description in conditions]
    return [
        f"{n:,} of {count_people(units):,} units {description}." for n, description in counts if n
    ]


def _describe_unmatched_classes(units: pl.DataFrame) -> list[str]:
    """List classes that only the truth, or only the predictions have."""
    scored = units.filter(pl.col("unjudged").is_null())
    truth_counts, answer_counts = (
        count_people_by_label(scored, pl.col(column)) for column in ("truth", "prediction")
    )
    counts_by_title = {
        "Answers never seen as truth": answer_counts.join(truth_counts, on="label", how="anti"),
        "Classes never answered": truth_counts.join(answer_counts, on="label", how="anti"),
    }
    return [
        f"{title}: {list_classes(rows, _MAX_LISTED_CLASSES)}."
        for title, rows in counts_by_title.items()
        if rows.height
    ]
