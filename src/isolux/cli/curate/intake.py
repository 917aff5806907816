"""``isolux curate intake``: ask the rules which photos can be taken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["intake"]


def intake(
    project: str,
    *,
    only: Sequence[str] = (),
    devices: str | None = None,
    letters: Path | None = None,
    curator: str | None = None,
) -> None:
    """Apply the intake rules to decide which photos to accept; see `isolux list rules`.

    The limits are FHIBE's; project.yaml changes them: `rules: {megapixels: {least: 6}}`. Run again,
    it updates only the decisions that have changed.

    Parameters
    ----------
    project : str
        The project's folder.
    only : sequence of str
        Rules to apply; default: all.
    devices : str, optional
        A table make, model, year: when devices were released, by their Exif names.
    letters : Path, optional
        A CSV to write: what to tell each subject about each photo.
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation.intake import judge
    from isolux.curation.intake import letters as written
    from isolux.curation.project import open_project
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text

    opened = open_project(project, who=curator)
    done = judge(opened, only=only, devices=devices)
    for note in done.notes:
        document.warn(note)
    show_wide("Rules of intake", done.rules)
    if letters is not None:
        told = written(opened)
        write_text(letters, csv_text(told))
        say(f"letters: {letters}, {numbered(told.height, 'row')}")
    say(f"next: isolux curate status {project}")
