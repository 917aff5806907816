"""The folder of a dataset's pictures: from a path in its table to the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isolux.core.errors import FileError
from isolux.io.paths import resolve_inside


class ImageFolder:
    """The root of the pictures, and the folders right below it, as FACET's lie in three."""

    def __init__(self, base: str | Path) -> None:
        self.base = Path(base)
        self._subfolders: list[Path] | None = None

    def find_file(self, path: str) -> Path:
        """Find an image below the root, or below one of its direct subfolders."""
        direct_path = resolve_inside(self.base, path)
        if direct_path.is_file():
            return direct_path
        for folder in self._list_subfolders():
            nested_path = resolve_inside(self.base, folder / path)
            if nested_path.is_file():
                return nested_path
        raise FileError("no such picture", where=path)

    def _list_subfolders(self) -> Iterator[Path]:
        if self._subfolders is None:
            self._subfolders = sorted(p for p in self.base.iterdir() if p.is_dir())
        return iter(self._subfolders)
