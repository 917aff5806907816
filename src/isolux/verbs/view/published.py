"""Runs that are published on one page: nothing of a few people in any, nor between any two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import polars as pl

from isolux.verbs.compare.joining import judged_units
from isolux.verbs.publish import publish
from isolux.viewer import Shown
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError

_ROW = ("metric", "label", "threshold", "attribute", "values")


def shown_published(before: Sequence[Shown], kept: Sequence[Shown], minimum: int) -> list[Shown]:
    """Cut runs for publishing, by whom their values count: those who withdrew since too."""
    runs = [replace(old.run, record=new.run.record) for old, new in zip(before, kept, strict=True)]
    cut = [publish(run, minimum, beside=runs) for run in runs]
    found = [replace(one, run=run) for one, run in zip(kept, cut, strict=True)]
    for (a, one), (b, two) in combinations(zip(found, before, strict=True), 2):
        _refuse_near(a, b, minimum, in_both=_in_both(one.run, two.run))
    return found


def _in_both(one: Run, two: Run) -> bool:
    """Tell whether anybody was judged in both runs."""
    ids = judged_units(one)
    return bool(ids.is_in(judged_units(two).implode()).any())


def _refuse_near(a: Shown, b: Shown, minimum: int, *, in_both: bool) -> None:
    """Refuse totals of two runs that are a few people apart."""
    one, two = (run.run.group_metrics.select("model", *_ROW, "n_units", "value") for run in (a, b))
    met = one.join(two, on=_ROW, nulls_equal=True, suffix="_b")
    apart = (pl.col("n_units") - pl.col("n_units_b")).abs()
    near = met.filter(apart.is_between(1, minimum - 1))
    if near.filter(pl.col("model") == pl.col("model_b")).height:
        what = (
            "these runs audit one model twice, on nearly the same people: the scores of a few of "
            "them would be one run's value minus the other's"
        )
        hint = "publish one of them; where they are of two models, audit each with another "
        hint += "--model-name"
    elif near.height and in_both:
        what = (
            "these runs count nearly the same people: the number of a few of them would be one "
            "run's count minus the other's"
        )
        hint = "publish what `isolux compare` makes of the two: it counts those judged in both"
    else:
        return
    raise SpecError(
        what,
        expected=f"runs whose groups differ by nobody, or by {minimum} people or more",
        found=f"{a.name} and {b.name}",
        hint=hint,
    )
