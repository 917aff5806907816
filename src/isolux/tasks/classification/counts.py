"""What was left out or counted by a rule, in sentences for the report."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.notes import Caution

__all__ = ["silent_people", "tallies"]

_SHOWN = 10  # classes in a note: a longer list would hide its sentence
_POLICY = {
    "mistake": "counted as mistakes",
    "leave-out": "left out",
    "both": "counted as mistakes, and left out of what is measured on detected units",
}

_MANY = 0.02
"""Share of people without an answer from which a caution says so."""


def silent_people(units: pl.DataFrame, undetected: str) -> list[str]:
    """Say of how many people a model says nothing, not even whether it detected them.

    An empty cell may be a face that was not found or a lookup that failed, so what it counts as
    is told first: in a caution from 2 % of the people upward, unless they are left out by choice.

    Parameters
    ----------
    units : polars.DataFrame
        ``model, silent, unjudged``.
    undetected : {"mistake", "leave-out", "both"}
    """
    known = units.filter(pl.col("unjudged").is_null())
    notes: list[str] = []
    for (model,), mine in known.group_by(["model"], maintain_order=True):
        n = int(mine["silent"].sum())
        if not n:
            continue
        said = f"{n:,} of {mine.height:,} people have no answer of {str(model)!r}"
        if undetected == "leave-out":
            notes.append(f"{said} and are left out.")
            continue
        told = (
            f"{said} (an empty cell, or a word for unknown). They count as not detected, so as"
            " mistakes. If the file should have an answer for them, correct it; --undetected"
            " leave-out leaves them out; --detected-column says who was not detected."
        )
        notes.append(Caution(told) if n >= _MANY * mine.height else told)
    return notes


def tallies(units: pl.DataFrame, undetected: str) -> list[str]:
    """Count, for each model, who was not judged, and which classes were never seen or given."""
    notes: list[str] = []
    models = units["model"].unique(maintain_order=True).to_list()
    for model in models:
        of = f"{model}: " if len(models) > 1 else ""
        mine = units.filter(pl.col("model") == model)
        notes += [of + note for note in (*_unjudged(mine, undetected), *_classes(mine))]
    return notes


def _unjudged(units: pl.DataFrame, undetected: str) -> list[str]:
    unjudged = units["unjudged"]
    known = units.filter(unjudged.is_null())
    scored = known["score"].is_not_null().any()
    no_score = "; metrics of scores leave them out" if scored else ""
    counts = (
        ((unjudged == "unknown truth").sum(), "have no known truth and count in no metric"),
        ((unjudged == "no prediction").sum(), "have no prediction and count in no metric"),
        (
            (~known["detected"] & ~known["silent"]).sum(),
            f"were not detected: {_POLICY[undetected]}{no_score}",
        ),
        (
            (known["detected"] & known["prediction"].is_null()).sum(),
            "were detected but not answered: counted as mistakes",
        ),
        (
            (known["score"].is_null() & known["prediction"].is_not_null()).sum() * scored,
            "have an answer without a score; metrics of scores leave them out",
        ),
    )
    return [f"{n:,} of {units.height:,} units {what}." for n, what in counts if n]


def _classes(units: pl.DataFrame) -> list[str]:
    known = units.filter(pl.col("unjudged").is_null())
    true = known.select(pl.col("truth").explode()).drop_nulls().to_series().value_counts()
    given = known["prediction"].drop_nulls().value_counts()
    given = given.rename({"prediction": "label", "count": "n"})
    true = true.rename({"truth": "label", "count": "n"})
    answers = given.join(true, on="label", how="anti")
    never = true.join(given, on="label", how="anti")
    return [
        f"{what}: {_listed(classes)}."
        for what, classes in (
            ("Answers never seen as truth", answers),
            ("Classes never answered", never),
        )
        if classes.height
    ]


def _listed(classes: pl.DataFrame) -> str:
    top = classes.sort("n", "label", descending=[True, False]).head(_SHOWN)
    shown = [f"{label} ({n:,})" for label, n in top.iter_rows()]
    more = classes.height - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
