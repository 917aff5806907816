"""Counts alone: what marks them, and the refusal of all that asks of people one by one."""

from __future__ import annotations

from collections.abc import Container

from isolux.vocabulary.errors import SpecError

__all__ = ["COUNTS", "refuse_counts"]

COUNTS = "counts"
"""The dataset, the task, and the evidence that says how many cases a unit stands for."""


def refuse_counts(names: Container[str], what: str, instead: str) -> None:
    """Refuse a table of counts, or a run of one, where people are asked of one by one.

    Parameters
    ----------
    names : container of str
        The name of a dataset, or the evidence of a run.
    what, instead : str
        What was asked for, and what can be had.

    Raises
    ------
    SpecError

    Examples
    --------
    >>> refuse_counts(["classification"], "compare", "two audits of people")
    """
    if COUNTS in names:
        raise SpecError(
            f"{what} asks of people one by one, and a table of counts holds none",
            expected=instead,
            found="counts alone",
        )
