"""``isolux curate hashes``: photos against a list of known illegal material."""

from __future__ import annotations

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["hashes"]

_TOLD = 20


def hashes(
    project: str,
    *,
    list: str | None = None,  # noqa: A002  (the flag is called --list)
    decided: str | None = None,
    bits: int = 8,
    hasher: str | None = None,
    curator: str | None = None,
) -> None:
    """Compare photos with your hashes of known illegal material; matches are reported by id.

    A match is neither shown nor copied, and nothing leaves the project until each match is decided.
    To keep such material out from the start, use curate add --hash-list.

    Parameters
    ----------
    project : str
        The project's folder.
    list : str, optional
        A table with md5, sha1, sha256 or phash, or one hash per line.
    decided : str, optional
        A table image_id, verdict (out: it is such material; in: it is not) and reason.
    bits : int
        How many of 64 bits of a perceptual hash may differ.
    hasher : str, optional
        python:MODULE:FUNCTION, which turns a file's bytes into hexadecimal digits, for lists of
        such hashes.
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.project import open_project
    from isolux.curation.quality.known import read_hash_list
    from isolux.curation.quality.matching import decide_matches, match_photos
    from isolux.vocabulary.errors import SpecError

    if (list is None) == (decided is None):
        raise SpecError("what is to be done is not said, or twice",
                        expected="--list FILE, or --decided FILE")  # fmt: skip
    opened = open_project(project, who=curator)
    if decided is not None:
        say(f"{numbered(decide_matches(opened, decided), 'match', 'matches')} decided")
        return
    found = match_photos(opened, read_hash_list(str(list), bits=bits, hasher=hasher))
    if found.undecided:
        warn_of_matches(found.undecided)
    say(
        f"{numbered(found.looked_at, 'photo')} looked at;"
        f" {numbered(len(found.new), 'new match', 'new matches')},"
        f" {len(found.undecided):,} undecided"
    )


def warn_of_matches(ids: tuple[str, ...]) -> None:
    """Name matches, and what they stop."""
    told = ", ".join(ids[:_TOLD]) + (f" and {len(ids) - _TOLD:,} more" if len(ids) > _TOLD else "")
    document.warn(
        f"photos match a list of known illegal material: {told}. Do not open or copy them."
        " Nothing leaves the project until each is decided: isolux curate hashes --decided SHEET"
    )
