"""``isolux clean``: remove what commands left that were killed before they could clean up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from isolux.cli.streams import say

if TYPE_CHECKING:
    from isolux.io.stages import Left

__all__ = ["clean", "made"]


def clean(folders: list[str] | None = None, *, dry_run: bool = False) -> None:
    """Remove the hidden unfinished results (.NAME.new-…) of commands that were killed.

    If the replacement for an old run was never finished, the old run is restored. Files that a
    running process is still writing are left alone. Each later command on the same path does this
    for that path automatically.

    Parameters
    ----------
    folders : list of str
        Folders to search, including subfolders; default: the current one.
    dry_run : bool
        List what would be removed, and remove nothing.
    """
    from isolux.io.stages import left_below

    found = 0
    for folder in map(Path, folders or ["."]):
        _refuse_no_folder(folder)
        for left in left_below(folder.expanduser(), dry=dry_run):
            found += 1
            say(_said(left, dry=dry_run))
    if not found:
        say("nothing was left behind")


def made() -> Callable[..., None]:
    """Make the command."""
    from isolux.cli._flags import generated

    return generated(clean)


def _said(left: Left, *, dry: bool) -> str:
    if left.live:
        return f"in use, stays: {left}"
    if left.restored:
        return f"{'would be put back' if dry else 'put back'} as {left.target}: {left}"
    return f"{'would be removed' if dry else 'removed'}: {left}"


def _refuse_no_folder(folder: Path) -> None:
    from isolux.vocabulary.errors import FileError

    if not folder.expanduser().is_dir():
        raise FileError(
            "there is no such folder to clean",
            expected="a folder that results were written to",
            found="a file" if folder.expanduser().exists() else "nothing",
            where=str(folder),
        )
