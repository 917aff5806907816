"""A card's files in a folder: none is replaced unasked, and all are written or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isolux.io.atomic import RUN_MARK, write_texts
from isolux.vocabulary.errors import OutputError

__all__ = ["write_files"]


def write_files(folder: Path, texts: Mapping[str, str], *, overwrite: bool) -> list[Path]:
    """Write texts by their file names."""
    if (folder / RUN_MARK).is_file():
        raise OutputError(
            (
                "a card must not be in a run's own folder, because the run's next version would "
                "replace it"
            ),
            expected="another folder, such as `cards`",
            found="a run",
            where=str(folder),
        )
    files = [folder / name for name in texts]
    there = [file.name for file in files if file.exists()]
    if there and not overwrite:
        raise OutputError(
            "there is a card of this kind already",
            expected="another folder, or --overwrite",
            found=", ".join(there),
            where=str(folder),
        )
    if any(one.exists() and not one.is_dir() for one in (folder, *folder.parents)):
        raise OutputError(
            "the folder for the card cannot be made", expected="a folder, or a new path",
            found="a file in its place", where=str(folder),
        )  # fmt: skip
    return write_texts(folder, texts)
