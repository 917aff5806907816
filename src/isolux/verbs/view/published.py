"""Runs that are published on one page: nothing of a few people in any, nor between any two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import polars as pl

from isolux.verbs.publish import publish
from isolux.viewer import Shown
from isolux.vocabulary.errors import SpecError

__all__ = ["shown_published"]

_ROW = ("model", "metric", "label", "threshold", "attribute", "values")


def shown_published(before: Sequence[Shown], kept: Sequence[Shown], minimum: int) -> list[Shown]:
    """Cut runs for publishing, by whom their values count: those who withdrew since too.

    Parameters
    ----------
    before : sequence of Shown
        The runs with all of their people.
    kept : sequence of Shown
        What the page says of each, once those who withdrew are out.
    minimum : int
        Groups of fewer people are hidden: what is hidden of one run is hidden of all.

    Raises
    ------
    SpecError
        One model was audited twice, and a group has a few people more in one run than in the other:
        their scores would be one value less the other.
    """
    runs = [replace(old.run, record=new.run.record) for old, new in zip(before, kept, strict=True)]
    cut = [publish(run, minimum, beside=runs) for run in runs]
    found = [replace(one, run=run) for one, run in zip(kept, cut, strict=True)]
    for a, b in combinations(found, 2):
        _refuse_twice(a, b, minimum)
    return found


def _refuse_twice(a: Shown, b: Shown, minimum: int) -> None:
    first, second = (one.run.group_metrics.select(*_ROW, "n_units", "value") for one in (a, b))
    met = first.join(second, on=_ROW, nulls_equal=True, suffix="_b")
    more = (pl.col("n_units") - pl.col("n_units_b")).abs()
    if met.filter(more.is_between(1, minimum - 1)).height:
        raise SpecError(
            "these runs audit one model twice, on nearly the same people: the scores of a few of "
            "them would be one run's value minus the other's",
            expected=f"runs whose groups differ by nobody, or by {minimum} people or more",
            found=f"{a.name} and {b.name}",
            hint="publish one of them; where they are of two models, audit each with another "
            "--model-name",
        )
