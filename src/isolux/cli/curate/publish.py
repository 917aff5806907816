"""``isolux curate publish``: a project becomes a dataset for others."""

from __future__ import annotations

from typing import Any

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["publish"]

VERB = "isolux.verbs.release:publish_dataset"


def publish(project: str, *, curator: str | None = None, **settings: Any) -> None:
    """Publish photos that passed and have consent for it: photos, tables, terms and documents.

    Read it with isolux audit curated:DIR. Publishing again gives the same bytes.

    Parameters
    ----------
    project : str
        The project's folder.
    curator : str, optional
        Who publishes; default: the name of your account.
    """
    from isolux.curation.project import open_project
    from isolux.verbs.release import publish_dataset
    from isolux.vocabulary.notes import by_severity

    done = publish_dataset(open_project(project, who=curator), **settings)
    cautions, notes = by_severity(done.notes)
    for caution in cautions:
        document.warn(caution)
    one = done.release
    say(
        f"{numbered(one.photos, 'photo')}, {numbered(one.people, 'person', 'people')} in photos,"
        f" {numbered(one.subjects, 'subject')}."
        f" {one.terms}"
    )
    for note in notes:
        document.note(note)
    document.wrote("dataset", done.folder)
    say(f"next: isolux audit curated:{done.folder} --by ATTRIBUTE …")
