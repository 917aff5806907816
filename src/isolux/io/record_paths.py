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


def unrooted(value: Any, *, here: str | Path | None = None, home: str | Path | None = None) -> Any:
    """Make every absolute path in a record relative to the working folder, or to ``~``."""
    base = Path(here) if here is not None else Path.cwd()
    own = Path(home) if home is not None else Path.home()
    return _mapped(value, base, own, _user(own))


def _mapped(value: Any, here: Path, home: Path, user: str) -> Any:
    if isinstance(value, str):
        return _text(value, here, home, user)
    if isinstance(value, Path):
        return _text(str(value), here, home, user)
    if isinstance(value, Mapping):
        return {
            _mapped(k, here, home, user): _mapped(v, here, home, user) for k, v in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, here, home, user) for item in value)
    return value


def _text(text: str, here: Path, home: Path, user: str) -> str:
    if "/" not in text:
        return text
    if Path(text).is_absolute() and "\n" not in text:  # a path alone, blanks and all
        return _relative(text, here, home, user)
    name, colon, path = text.partition(":")
    if colon and Path(path).is_absolute() and name.replace("_", "").isalnum():
        return f"{name}:{_relative(path, here, home, user)}"
    for folder, short in ((here, ""), (home, "~/")):
        if len(folder.parts) > 1:
            text = re.sub(rf"(?<![\w.~/-]){re.escape(str(folder))}/", short, text)
    return _ABSOLUTE.sub(lambda found: _relative(found.group(), here, home, user), text)


def _relative(path: str, here: Path, home: Path, user: str) -> str:
    whole = Path(os.path.normpath(path))
    if not Path(*whole.parts[:2]).is_dir():
        return path  # a name that begins with a slash, as Open Images' classes do: /m/01g317
    if whole == here:
        return "."
    if here in whole.parents and len(here.parts) > 1:
        return str(whole.relative_to(here))
    if home in (whole, *whole.parents) and len(home.parts) > 1:
        return str(Path("~") / whole.relative_to(home))
    short = Path(os.path.relpath(whole, here))
    return whole.name if user in short.parts else str(short)


def _user(home: Path) -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        return home.name
