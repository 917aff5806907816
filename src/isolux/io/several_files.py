"""Several files of one result (a page and its text): all of them are written, or none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from isolux.io.disk_errors import in_plain_words
from isolux.io.stages import Stage, sibling, sweep

__all__ = ["write_texts"]


def write_texts(folder: str | Path, texts: Mapping[str, str]) -> list[Path]:
    """Write UTF-8 texts into a folder, all or none; files of these names are replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     made = write_texts(Path(there) / "cards", {"a.md": "text", "a.html": "page"})
    ...     [path.name for path in made], made[1].read_text()
    (['a.md', 'a.html'], 'page')
    """
    whole = Path(folder).expanduser()
    targets = [whole / name for name in texts]
    new = [one for one in (whole, *whole.parents) if not one.exists()]
    stages: list[Stage] = []
    aside: list[Path] = []
    try:
        with in_plain_words(targets[0]):
            whole.mkdir(parents=True, exist_ok=True)
            for target, text in zip(targets, texts.values(), strict=True):
                sweep(target)
                stages.append(Stage(target, folder=False))
                _dump(stages[-1].path, text)
            # Only renames from here on: they take no room on the disk.
            for stage in stages:
                aside.append(sibling(stage.target, "old"))
                if stage.target.exists():
                    stage.target.rename(aside[-1])
                stage.path.replace(stage.target)
    except BaseException:
        _undo(stages, aside, new)
        raise
    for stage, old in zip(stages, aside, strict=True):
        old.unlink(missing_ok=True)
        stage.release()
    return targets


def _undo(stages: list[Stage], aside: list[Path], new: list[Path]) -> None:
    for stage, old in zip(stages, aside, strict=False):
        if old.exists():
            old.replace(stage.target)
        elif not stage.path.exists():  # it stands in its place, where nothing was before
            stage.target.unlink(missing_ok=True)
    for stage in stages:
        stage.discard()
    for folder in new:
        with suppress(OSError):  # something else was put there meanwhile
            folder.rmdir()


def _dump(path: Path, text: str) -> None:
    with path.open("wb") as stream:
        stream.write(text.encode())
        stream.flush()
        os.fsync(stream.fileno())
