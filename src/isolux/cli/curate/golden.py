"""``isolux curate golden``: tasks whose right answers are known, for training."""

from __future__ import annotations

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["golden"]


def golden(project: str, sheet: str, *, stage: str, curator: str | None = None) -> None:
    """Create golden tasks: from then on, a stage counts only answers from raters who graduated.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        A table of right answers: unit, question, answer; or unit, label, x, y, w, h.
    stage : str
        count, boxes, skin_tone or attributes.
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.annotation import golden as made_of
    from isolux.curation.project import open_project

    new = made_of(open_project(project, who=curator), stage, sheet)
    say(numbered(new, "new golden task"))
    say(f"next: isolux curate push {project} --stage {stage} --training --server URL")
