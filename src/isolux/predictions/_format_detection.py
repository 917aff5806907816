"""Find the format of a model's output: each says its suffixes, and recognises its own.

A format's ``INFO`` (a ``FormatInfo``) names its suffixes, and whether it may be a folder or the
columns of a table. Those that the name allows are then asked: ``mismatch(probe)`` gives None for
one of their own, and says why not otherwise, so that a file which none of them knows is refused
with what was tried.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from isolux.core import registry
from isolux.core.errors import FileError
from isolux.core.info import FormatInfo
from isolux.io.frames import FORMATS
from isolux.predictions._detections import detect_kind
from isolux.predictions._file_probe import FileProbe, probe_path, table_format
from isolux.predictions._pair_tables import has_pair_columns


def detect_output_format(path: str | Path) -> str:
    """Tell the format of a model's output by its name, and by what it holds."""
    path = Path(path).expanduser()
    if not path.exists() and (table_form := table_format(path)) is not None:
        return table_form  # its reader says what is there instead
    probe = probe_path(path)
    if probe.kind == "table":
        return detect_foreign_table_format(probe) or cast("str", table_format(path))
    candidates = _list_formats_by_suffix(probe)
    if not candidates:
        raise FileError(
            "this name tells no format of predictions",
            expected="; ".join(_list_suffixes()),
            found=repr(path.suffix or path.name),
            where=str(path),
            hint="name its format with --format (format=…)",
        )
    mismatches = _collect_mismatches(candidates, probe)
    if None not in mismatches.values() and _may_be_json_table(probe):
        return "json"
    return _choose_matching_format(mismatches, probe, "no format of predictions fits")


def _may_be_json_table(probe: FileProbe) -> bool:
    """Tell whether JSON begins as a list of objects, or as an object that holds some."""
    has_objects = re.match(rb"\s*(\[\s*\{|\{.*[\[{])", probe.head, re.DOTALL) is not None
    return has_objects and probe.path.name.lower().endswith(FORMATS["json"])


def detect_foreign_table_format(probe: FileProbe) -> str | None:
    """Name the format whose columns a table has; None: labels, boxes or pairs, or unknown."""
    if detect_kind(probe.columns) is not None or has_pair_columns(probe.columns):
        return None
    mismatches = _collect_mismatches(
        {n: p for n, p in _load_formats().items() if _format_info(p).columns}, probe
    )
    if all(reason is not None for reason in mismatches.values()):
        return None
    return _choose_matching_format(mismatches, probe, "")


def _format_info(plugin: ModuleType) -> FormatInfo:
    return cast("FormatInfo", plugin.INFO)


def _load_formats() -> dict[str, ModuleType]:
    """Load the formats that recognise their own; a table's is told by its suffix alone."""
    names = [name for name in registry.names("predictions") if name not in FORMATS]
    return {name: registry.load("predictions", name) for name in names}


def _list_formats_by_suffix(probe: FileProbe) -> dict[str, ModuleType]:
    formats = _load_formats()
    if probe.kind in ("folder", "archive"):
        return {name: plugin for name, plugin in formats.items() if _format_info(plugin).folders}
    name = probe.path.name.lower()
    return {n: p for n, p in formats.items() if name.endswith(_format_info(p).suffixes)}


def _collect_mismatches(
    formats: Mapping[str, ModuleType], probe: FileProbe
) -> dict[str, str | None]:
    return {name: plugin.mismatch(probe) for name, plugin in formats.items()}


def _choose_matching_format(
    mismatches: Mapping[str, str | None], probe: FileProbe, problem: str
) -> str:
    """Return the one format that fits."""
    matching = [name for name, reason in mismatches.items() if reason is None]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise FileError(
            "several formats of predictions fit",
            expected="one",
            found=", ".join(matching),
            where=str(probe.path),
            hint=f"say which with --format (format={matching[0]!r})",
        )
    first_lines = probe.first_lines(1)
    raise FileError(
        f"{problem} what is in this {'file' if probe.kind == 'file' else probe.kind}",
        expected="a file that one of the formats knows by its first lines",
        found=(f"it begins with {first_lines[0]!r}; " if first_lines else "")
        + "; ".join(f"not {name}: {reason}" for name, reason in mismatches.items()),
        where=str(probe.path),
        hint=("name a file instead of its folder; " if probe.kind == "folder" else "")
        + "`isolux list formats` shows what each holds; name one with --format (format=…)",
    )


def _list_suffixes() -> list[str]:
    suffixes = {
        name: _format_info(plugin).suffixes for name, plugin in _load_formats().items()
    } | FORMATS
    phrases = [
        f"{', '.join(suffixes[name])} ({name})" for name in sorted(suffixes) if suffixes[name]
    ]
    folders = [name for name, plugin in _load_formats().items() if _format_info(plugin).folders]
    return [*phrases, f"a folder or tar archive ({', '.join(folders)})"]
