"""Paths in a run's record that name neither the machine's folders nor its user."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ABSOLUTE = re.compile(r"(?<![\w.~/:\\<-])/(?:[^\s/:,;'\"<>|()]+/)*[^\s/:,;'\"<>|()]+")
"""An absolute path in a sentence. Those with blanks are known by the folders they begin with."""


def make_paths_relative(
    record: Any, *, working_dir: str | Path | None = None, home: str | Path | None = None
) -> Any:
    """Make every absolute path in a record relative to the working folder, or to ``~``."""
    base = Path(working_dir) if working_dir is not None else Path.cwd()
    home_dir = Path(home) if home is not None else Path.home()
    return _map_strings(record, base, home_dir, _user_name(home_dir))


def _map_strings(node: Any, working_dir: Path, home: Path, user: str) -> Any:
    if isinstance(node, str):
        return _shorten_paths(node, working_dir, home, user)
    if isinstance(node, Path):
        return _shorten_paths(str(node), working_dir, home, user)
    if isinstance(node, Mapping):
        return {
            _map_strings(k, working_dir, home, user): _map_strings(v, working_dir, home, user)
            for k, v in node.items()
        }
    if isinstance(node, list | tuple):
        return type(node)(_map_strings(child, working_dir, home, user) for child in node)
    return node


def _shorten_paths(text: str, working_dir: Path, home: Path, user: str) -> str:
    if "/" not in text:
        return text
    if Path(text).is_absolute() and "\n" not in text:  # a path alone, blanks and all
        return _make_relative(text, working_dir, home, user)
    name, colon, path = text.partition(":")
    if colon and Path(path).is_absolute() and name.replace("_", "").isalnum():
        return f"{name}:{_make_relative(path, working_dir, home, user)}"
    for folder, short in ((working_dir, ""), (home, "~/")):
        if len(folder.parts) > 1:
            text = re.sub(rf"(?<![\w.~/-]){re.escape(str(folder))}/", short, text)
    return _ABSOLUTE.sub(
        lambda regex_match: _make_relative(regex_match.group(), working_dir, home, user), text
    )


def _make_relative(path: str, working_dir: Path, home: Path, user: str) -> str:
    full_path = Path(os.path.normpath(path))
    if not Path(*full_path.parts[:2]).is_dir():
        return path  # a name that begins with a slash, as Open Images' classes do: /m/01g317
    if full_path == working_dir:
        return "."
    if working_dir in full_path.parents and len(working_dir.parts) > 1:
        return str(full_path.relative_to(working_dir))
    if home in (full_path, *full_path.parents) and len(home.parts) > 1:
        return str(Path("~") / full_path.relative_to(home))
    short = Path(os.path.relpath(full_path, working_dir))
    return full_path.name if user in short.parts else str(short)


def _user_name(home: Path) -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        return home.name
