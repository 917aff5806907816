"""``isolux curate raters``: who was trained, who graduated, and how many of each region."""

from __future__ import annotations

from collections.abc import Sequence

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["raters"]


def raters(
    project: str,
    *,
    stage: str | None = None,
    graduate: Sequence[str] = (),
    sheet: str | None = None,
    curator: str | None = None,
) -> None:
    """Print who passed the training for a stage, and how many from each region graduated.

    Parameters
    ----------
    project : str
        The project's folder.
    stage : str, optional
        The stage whose golden answers are scored; default: only regions.
    graduate : sequence of str
        Raters whose boxes were checked by hand, and who may now annotate.
    sheet : str, optional
        A table annotator_id, region, and what else they disclosed.
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation import annotation
    from isolux.curation.project import open_project
    from isolux.vocabulary.errors import SpecError

    opened = open_project(project, who=curator)
    if graduate and stage is None:
        raise SpecError("who graduates from which stage is not said", expected="--stage")
    if sheet is not None:
        say(f"{numbered(annotation.know_raters(opened, sheet), 'rater')} noted")
    if stage is not None:
        examined = annotation.examine(opened, stage)
        if graduate:
            annotation.graduate(opened, stage, graduate)
            examined = annotation.examine(opened, stage)
        show_wide(f"Golden tasks of the stage {stage}", examined)
    show_wide("Who graduated, by region (95 % interval)", annotation.raters(opened))
