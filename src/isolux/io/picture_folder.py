"""The folder of a dataset's pictures: from a path in its table to the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isolux.io.paths import inside
from isolux.vocabulary.errors import FileError


class PictureFolder:
    """The root of the pictures, and the folders right below it, as FACET's lie in three."""

    def __init__(self, base: str | Path) -> None:
        self.base = Path(base)
        self._below: list[Path] | None = None

    def file(self, path: str) -> Path:
        """Find a picture."""
        whole = inside(self.base, path)
        if whole.is_file():
            return whole
        for folder in self._folders():
            other = inside(self.base, folder / path)
            if other.is_file():
                return other
        raise FileError("no such picture", where=path)

    def _folders(self) -> Iterator[Path]:
        if self._below is None:
            self._below = sorted(p for p in self.base.iterdir() if p.is_dir())
        return iter(self._below)
