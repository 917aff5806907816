"""Files of words, which come with a task or are a user's; each states its source."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from isolux.core.errors import SpecError, UnknownNameError, refuse_unknown_names
from isolux.io.settings_files import read_mapping


def find_word_file(file_kind: str, name: str, folder: Path, error_source: str) -> Path:
    """Find a shipped file by its name, or a user's by its path."""
    shipped_names = sorted(path.stem for path in folder.glob("*.yaml"))
    if name in shipped_names:
        return folder / f"{name}.yaml"
    # A name without suffix or folder is meant as a shipped file, so the error lists the shipped
    # names.
    if "." not in name and "/" not in name:
        raise UnknownNameError(file_kind, name, shipped_names, where=error_source)
    return Path(name).expanduser()


def read_word_file(
    file_kind: str, path: Path, keys: Collection[str], error_source: str
) -> dict[str, Any]:
    """Read a file, check its keys and its source, and complete its title and language."""
    mapping = dict(read_mapping(path))
    refuse_unknown_names(f"part of a {file_kind}", mapping, keys, where=error_source)
    source = " ".join(str(mapping.get("source") or "").split())
    # Which words count decides the result, so a list without a stated origin is refused.
    if not source:
        raise SpecError(
            f"a {file_kind} must say where it is from",
            expected="source: a sentence",
            found="none",
            where=error_source,
        )
    title = str(mapping.get("title") or path.stem)
    language = str(mapping.get("language") or "language not said")
    return mapping | {"title": title, "language": language, "source": source}
