"""Files of words that ship with a task or are a user's: where they are, and where they are from."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from isolux.io.settings_files import read_mapping
from isolux.vocabulary.errors import SpecError, UnknownNameError


def find_words(kind: str, name: str, folder: Path, where: str) -> Path:
    """Find one of a folder's own files by its name, or a user's by its path."""
    own = sorted(path.stem for path in folder.glob("*.yaml"))
    if name in own:
        return folder / f"{name}.yaml"
    if "." not in name and "/" not in name:
        raise UnknownNameError(kind, name, own, where=where)
    return Path(name).expanduser()


def read_words(kind: str, path: Path, keys: Collection[str], where: str) -> dict[str, Any]:
    """Read a file whose keys are known and which says where it is from, with title and language."""
    found = dict(read_mapping(path))
    for key in found:
        if key not in keys:
            raise UnknownNameError(f"part of a {kind}", key, keys, where=where)
    source = " ".join(str(found.get("source") or "").split())
    if not source:
        raise SpecError(
            f"a {kind} must say where it is from",
            expected="source: a sentence",
            found="none",
            where=where,
        )
    title = str(found.get("title") or path.stem)
    language = str(found.get("language") or "language not said")
    return found | {"title": title, "language": language, "source": source}
