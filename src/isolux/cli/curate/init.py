"""``isolux curate init``: a project's folder, database and journal."""

from __future__ import annotations

from isolux.cli.streams import say

__all__ = ["init"]


def init(
    project: str,
    *,
    name: str | None = None,
    database: str = "sqlite",
    curator: str | None = None,
) -> None:
    """Create a project, or upgrade an older project's tables to this version.

    Parameters
    ----------
    project : str
        A new folder, or a project's.
    name : str, optional
        The project's name; default: the folder's name.
    database : str
        sqlite, or postgresql+pg8000://user@host:port/name (password in PGPASSWORD).
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.project import create, read_journal

    made_now = create(project, name=name, database=database, who=curator)
    journal = read_journal(made_now)
    say(f"project {made_now.name}: {made_now.folder}")
    say(f"journal: {journal.height:,} row{'s' * (journal.height != 1)}, head {journal['hash'][-1]}")
