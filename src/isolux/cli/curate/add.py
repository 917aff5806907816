"""``isolux curate add``: photos and subjects come into a project."""

from __future__ import annotations

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["add"]


def add(
    project: str,
    sheet: str,
    *,
    photos: str | None = None,
    subjects: str | None = None,
    hash_list: str | None = None,
    curator: str | None = None,
) -> None:
    """Add photos to a project; they are copied and their Exif is read, but nothing is judged yet.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        A table with a row for each subject in each photo: file, subject_id, and their statements.
    photos : str, optional
        The folder that contains the files; default: the sheet's.
    subjects : str, optional
        A table with a row for each subject: subject_id, age, country, and anything else known.
    hash_list : str, optional
        Your list of hashes of known illegal material: matches are not copied, and are reported by
        id.
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.intake import add as bring
    from isolux.curation.project import open_project
    from isolux.curation.quality.known import read_hash_list

    known = None if hash_list is None else read_hash_list(hash_list)
    done = bring(
        open_project(project, who=curator), sheet, photos=photos, subjects=subjects, hashes=known
    )
    if done.matches:
        from isolux.cli.curate.hashes import warn_of_matches

        warn_of_matches(done.matches)
    if done.revoked:
        document.warn(
            f"{numbered(done.revoked, 'photo')} left out: people in them took their consent back."
            f" `isolux curate grant {project}/consent.jsonl --who ID --scope evaluation --again`"
            " records that someone consented again."
        )
    say(
        f"{numbered(done.new, 'photo')} came in; {done.known:,} there already;"
        f" {done.changed:,} with new facts"
    )
    say(f"next: isolux curate intake {project}")
