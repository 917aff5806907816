"""Files that a command is to write, refused before any work is done."""

from __future__ import annotations

from pathlib import Path


def check_output_file(
    out: Path, *, endings: tuple[str, ...] = (), source: str = "", overwrite: bool = True
) -> None:
    """Refuse a file that cannot be written, is of another kind, or must not be replaced.

    ``source`` is the path that is to be read.
    """
    from isolux.core.errors import OutputError

    target, source_path = out.expanduser(), Path(source).expanduser()
    if endings and not target.name.lower().endswith(endings):
        raise OutputError(
            "the name does not say which format is to be written",
            expected="a path that ends in " + " or ".join(endings),
            found=repr(str(out)),
        )
    if target.is_dir():
        raise OutputError("this path is a folder", expected="a file's path", where=str(target))
    if source and target.exists() and source_path.exists() and target.samefile(source_path):
        raise OutputError(
            "this is the file that is to be read", where=str(target), hint="choose another path"
        )
    if target.exists() and not overwrite:
        raise OutputError(
            "this file exists already",
            expected="a path where nothing is",
            where=str(target),
            hint="choose another path, or replace it with --overwrite",
        )
    if not target.parent.is_dir():
        raise OutputError(
            "the folder to write to does not exist", where=str(target), hint="make it first"
        )
