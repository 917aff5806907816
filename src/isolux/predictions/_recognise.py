"""Find the format of a model's output: each says its suffixes, and recognises its own.

A format's ``INFO`` (a ``FormatInfo``) names its suffixes, and whether it may be a folder or the
columns of a table. Those that the name allows are then asked: ``misfit(seen)`` gives None for one
of their own, and says why not otherwise, so that a file which none of them knows is refused with
what was tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from isolux.io.frames import FORMATS
from isolux.predictions._detections import kind_of_columns
from isolux.predictions._pair_tables import holds_pairs
from isolux.predictions._seen import Seen, look, table_format
from isolux.vocabulary import registry
from isolux.vocabulary.errors import FileError
from isolux.vocabulary.info import FormatInfo


def output_format(path: str | Path) -> str:
    """Tell the format of a model's output by its name, and by what it holds."""
    path = Path(path).expanduser()
    if not path.exists() and (form := table_format(path)) is not None:
        return form  # its reader says what is there instead
    seen = look(path)
    if seen.kind == "table":
        return in_table(seen) or cast("str", table_format(path))
    asked = _by_name(seen)
    if not asked:
        raise FileError(
            "this name tells no format of predictions",
            expected="; ".join(_said_suffixes()),
            found=repr(path.suffix or path.name),
            where=str(path),
            hint="name its format with --format (format=…)",
        )
    return _only(_tried(asked, seen), seen, "no format of predictions fits")


def in_table(seen: Seen) -> str | None:
    """Name the format whose columns a table has; None: labels, boxes or pairs, or unknown."""
    if kind_of_columns(seen.columns) is not None or holds_pairs(seen.columns):
        return None
    tried = _tried({n: p for n, p in _formats().items() if _info(p).columns}, seen)
    if all(why is not None for why in tried.values()):
        return None
    return _only(tried, seen, "")


def _info(plugin: ModuleType) -> FormatInfo:
    return cast("FormatInfo", plugin.INFO)


def _formats() -> dict[str, ModuleType]:
    """Load the formats that recognise their own; a table's is told by its suffix alone."""
    names = [name for name in registry.names("predictions") if name not in FORMATS]
    return {name: registry.load("predictions", name) for name in names}


def _by_name(seen: Seen) -> dict[str, ModuleType]:
    formats = _formats()
    if seen.kind in ("folder", "archive"):
        return {name: plugin for name, plugin in formats.items() if _info(plugin).folders}
    name = seen.path.name.lower()
    return {n: p for n, p in formats.items() if name.endswith(_info(p).suffixes)}


def _tried(formats: Mapping[str, ModuleType], seen: Seen) -> dict[str, str | None]:
    return {name: plugin.misfit(seen) for name, plugin in formats.items()}


def _only(tried: Mapping[str, str | None], seen: Seen, problem: str) -> str:
    """Return the one format that fits."""
    fits = [name for name, why in tried.items() if why is None]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise FileError(
            "several formats of predictions fit",
            expected="one",
            found=", ".join(fits),
            where=str(seen.path),
            hint=f"say which with --format (format={fits[0]!r})",
        )
    shown = seen.lines(1)
    raise FileError(
        f"{problem} what is in this {'file' if seen.kind == 'file' else seen.kind}",
        expected="a file that one of the formats knows by its first lines",
        found=(f"it begins with {shown[0]!r}; " if shown else "")
        + "; ".join(f"not {name}: {why}" for name, why in tried.items()),
        where=str(seen.path),
        hint=("name a file instead of its folder; " if seen.kind == "folder" else "")
        + "`isolux list formats` shows what each holds; name one with --format (format=…)",
    )


def _said_suffixes() -> list[str]:
    known = {name: _info(plugin).suffixes for name, plugin in _formats().items()} | FORMATS
    said = [f"{', '.join(known[name])} ({name})" for name in sorted(known) if known[name]]
    folders = [name for name, plugin in _formats().items() if _info(plugin).folders]
    return [*said, f"a folder or tar archive ({', '.join(folders)})"]
