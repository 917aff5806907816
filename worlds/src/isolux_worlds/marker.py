"""The file that says that people are synthetic, written into every folder of theirs.

An audit looks for it (``isolux.people.synthetic``), so that its report never reads as one of real
people, also where the data were copied away from the world that they belong to.
"""

from __future__ import annotations

from pathlib import Path

from isolux.people.synthetic import SYNTHETIC_MARKER

__all__ = ["write_folder_marker"]

_TEXT = (
    "The people in this folder are synthetic: {made} drew them, and none of them exists.\n"
    "Audits by isolux find this file and say so. Keep it with the data when you copy them.\n"
)


def write_folder_marker(folder: Path, command: str) -> None:
    """Write the marker into a folder; ``command`` is the command that drew the people."""
    (folder / SYNTHETIC_MARKER).write_text(_TEXT.format(made=command), encoding="utf-8")
