"""``isolux curate decide``: what people decided about photos or subjects, with their reasons."""

from __future__ import annotations

from typing import Literal

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["decide"]


def decide(
    project: str,
    sheet: str,
    *,
    step: str,
    rule: str,
    unit: Literal["image", "subject", "instance"] = "image",
    curator: str | None = None,
) -> None:
    """Record what people decided: a table of ids, each with out or in and a reason.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        A table with the columns image_id (or subject_id, instance_id), verdict and reason.
    step : str
        The part of the funnel it belongs to, such as review.
    rule : str
        The rule that was applied, such as offensive content.
    unit : {"image", "subject", "instance"}
        What the decision is about; if a subject is left out, so are their photos.
    curator : str, optional
        Who decided; default: the name of your account.
    """
    from isolux.curation.project import open_project
    from isolux.curation.project.decided import decide_by_sheet

    new = decide_by_sheet(
        open_project(project, who=curator), sheet, step=step, rule=rule, unit_kind=unit
    )
    say(numbered(new, "new verdict"))
