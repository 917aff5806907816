"""The funnel: how many photos came in, left, and why; FHIBE prints it in a paragraph.

A photo counts where it left first. What other rules would have left out too is told beside it, so
that a rule's own number can be read without the order in which rules were asked.

Source: Sony AI (2025), Methods, "Quality control and data filtering": 28,703 photos came in, 6,868
left for quality and specifications, 5,855 for forms of consent or copyright, 15,980 remained.
"""

from __future__ import annotations

import polars as pl

from isolux.curation.project.decisions import came_in
from isolux.curation.project.folder import Project
from isolux.curation.project.reading import left_out

__all__ = ["first_reasons", "funnel", "funnel_of"]


def funnel(project: Project) -> pl.DataFrame:
    """Count what came in, what left at which step by which rule, and what remained."""
    return funnel_of(came_in(project)["image_id"], left_out(project))


def funnel_of(came: pl.Series, gone: pl.DataFrame) -> pl.DataFrame:
    """Count the funnel of photos and the reasons why they are left out.

    Examples
    --------
    >>> gone = pl.DataFrame({"image_id": ["a", "b", "a"], "step": ["quality", "quality", "consent"],
    ...                      "rule": ["blurred", "small", "form"], "decision_id": [1, 2, 3]})
    >>> funnel_of(pl.Series(["a", "b", "c"]), gone).rows()
    [('arrival', 'came in', 0, 0, 3), ('quality', 'blurred', 1, 1, 2),
     ('quality', 'small', 1, 1, 1), ('consent', 'form', 0, 1, 1)]
    """
    held = _in_order(came, gone)
    first = held.unique("image_id", keep="first", maintain_order=True)
    keys = ["step", "rule"]
    refused = held.group_by(keys, maintain_order=True).agg(
        refused=pl.col("image_id").n_unique(), at=pl.col("decision_id").min(),
        step_at=pl.col("step_at").first(),
    )  # fmt: skip
    left = first.group_by(keys).agg(left=pl.len())
    told = refused.join(left, on=keys, how="left").sort("step_at", "at")
    table = pl.concat(
        [
            pl.DataFrame({"step": ["arrival"], "rule": ["came in"], "left": [0], "refused": [0]}),
            told.select("step", "rule", pl.col("left").fill_null(0), "refused").cast(
                {"left": pl.Int64, "refused": pl.Int64}
            ),
        ]
    )
    return table.with_columns(remain=came.n_unique() - pl.col("left").cum_sum())


def first_reasons(project: Project) -> pl.DataFrame:
    """Tell of each photo that left at which step and by which rule it did so first."""
    held = _in_order(came_in(project)["image_id"], left_out(project))
    first = held.unique("image_id", keep="first", maintain_order=True)
    return first.select("image_id", "step", "rule")


def _in_order(came: pl.Series, gone: pl.DataFrame) -> pl.DataFrame:
    """Sort reasons as the funnel has them: by their step's first verdict, then by their own."""
    held = gone.filter(pl.col("image_id").is_in(came.implode()))
    step_at = pl.col("decision_id").min().over("step")
    return held.with_columns(step_at=step_at).sort("step_at", "decision_id")
