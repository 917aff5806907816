"""``isolux curate review``: a filled sheet comes back: verdicts, and an estimate for everyone."""

from __future__ import annotations

from typing import Literal

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["review"]


def review(
    project: str,
    sheet: str,
    *,
    rule: str,
    unit: Literal["subject", "image", "instance"] = "subject",
    step: str = "suspicious",
    sample: str | None = None,
    kind: str | None = None,
    level: float = 0.95,
    curator: str | None = None,
) -> None:
    """Record the verdicts of a sheet that people filled in; for a sample, also estimate the totals.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        unit_id, verdict (out, in, or empty: not reviewed yet) and reason.
    rule : str
        The question that was reviewed, as named in the funnel, such as found online.
    unit : {"subject", "image", "instance"}
        What the decision is about, if the sheet has no unit_kind; with a subject go their photos.
    step : str
        The part of the funnel.
    sample : str, optional
        The folder of the sample that the sheet belongs to.
    kind : str, optional
        The type of the sample, if it has several.
    level : float
        The confidence level of intervals.
    curator : str, optional
        Who decided; default: the name of your account.
    """
    import polars as pl

    from isolux.cli.screen import show_wide
    from isolux.curation.project import open_project
    from isolux.curation.quality.reviewed import bring_review
    from isolux.curation.quality.sizes import METHOD

    done = bring_review(
        open_project(project, who=curator), sheet, rule=rule, unit=unit, step=step, sample=sample,
        kind=kind, level=level,
    )  # fmt: skip
    for note in done.notes:
        document.warn(note)
    say(
        f"{done.looked_at:,} reviewed, {done.out:,} out; {numbered(done.photos, 'photo')} left;"
        f" {numbered(done.new, 'new verdict')}"
    )
    if done.kinds.height:
        show_wide(
            "How often evidence was right", done.kinds.with_columns(pl.selectors.float().round(3))
        )
    if done.estimate is not None:
        one = done.estimate
        say(
            f"of all {one.population:,}: {100 * one.value:.1f} % [{100 * one.low:.1f},"
            f" {100 * one.high:.1f}] ({METHOD}, {100 * level:g} %; {one.n:,} reviewed)"
        )
