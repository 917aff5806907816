"""What was left out or counted by a rule, in sentences for the report."""

from __future__ import annotations

import polars as pl

from isolux.tasks.classification.vocabulary import list_classes
from isolux.vocabulary.counts import how_often, people_in
from isolux.vocabulary.notes import Caution

_SHOWN = 10  # classes in a note: a longer list would hide its sentence
_POLICY = {
    "mistake": "counted as mistakes",
    "leave-out": "left out",
    "both": "counted as mistakes, and left out of what is measured on detected units",
}

_MANY = 0.02
"""Share of people without an answer from which a caution says so."""


def silent_people(
    units: pl.DataFrame, undetected: str, *, counted_as: str = "mistakes"
) -> list[str]:
    """Say of how many people a model says nothing, not even whether it detected them."""
    known = units.filter(pl.col("unjudged").is_null())
    notes: list[str] = []
    for (model,), mine in known.group_by(["model"], maintain_order=True):
        n, every = people_in(mine.filter("silent")), people_in(mine)
        said = f"{n:,} of {every:,} people have no answer of {str(model)!r}"
        told = (
            f"{said} (an empty cell, or a word for unknown). They count as not detected, so as"
            f" {counted_as}. If the file should have an answer for them, correct it; --undetected"
            " leave-out leaves them out; detected_column says who was not detected."
        )
        if n and undetected == "leave-out":
            notes.append(f"{said} and are left out.")
        elif n:
            notes.append(Caution(told) if n >= _MANY * every else told)
    return notes


def tallies(units: pl.DataFrame, undetected: str, *, has_truth: bool = True) -> list[str]:
    """Count, for each model, who was not judged, and which classes were never seen or given."""
    notes: list[str] = []
    models = units["model"].unique(maintain_order=True).to_list()
    for model in models:
        of = f"{model}: " if len(models) > 1 else ""
        mine = units.filter(pl.col("model") == model)
        classes = _classes(mine) if has_truth else []
        notes += [of + note for note in (*_unjudged(mine, undetected), *classes)]
    return notes


def _unjudged(units: pl.DataFrame, undetected: str) -> list[str]:
    unjudged, answer, score = pl.col("unjudged"), pl.col("prediction"), pl.col("score")
    judged, detected = unjudged.is_null(), pl.col("detected")
    scored = units.filter(judged)["score"].is_not_null().any()
    no_score = "; metrics of scores leave them out" if scored else ""
    lost = f"were not detected: {_POLICY[undetected]}{no_score}"
    unsure = judged & score.is_null() & answer.is_not_null() & scored
    rows = (
        (unjudged == "unknown truth", "have no known truth and count in no metric"),
        (unjudged == "no prediction", "have no prediction and count in no metric"),
        (judged & ~detected & ~pl.col("silent"), lost),
        (
            judged & detected & answer.is_null(),
            "were detected but not answered: counted as mistakes",
        ),
        (unsure, "have an answer without a score; metrics of scores leave them out"),
    )
    counts = [(people_in(units.filter(which)), what) for which, what in rows]
    return [f"{n:,} of {people_in(units):,} units {what}." for n, what in counts if n]


def _classes(units: pl.DataFrame) -> list[str]:
    known = units.filter(pl.col("unjudged").is_null())
    true, given = (how_often(known, pl.col(side)) for side in ("truth", "prediction"))
    sides = {
        "Answers never seen as truth": given.join(true, on="label", how="anti"),
        "Classes never answered": true.join(given, on="label", how="anti"),
    }
    return [f"{what}: {list_classes(rows, _SHOWN)}." for what, rows in sides.items() if rows.height]
