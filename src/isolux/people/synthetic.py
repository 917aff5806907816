"""Whether people are synthetic: told by what isolux-worlds writes beside or above their data.

An audit of such data reads like one of real people, unless it says so. Nothing of the data's own
format can say it, for the files are exactly those of a real dataset; so a marker is looked for,
in the folder of the data and in those above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

SYNTHETIC_MARKER = "SYNTHETIC.txt"
"""What isolux-worlds writes into each folder of synthetic people."""
_POPULATION_FILES = ("world.yaml", "injected.json")
"""Beside the data of worlds that were written before there was a marker."""
_MAX_LEVELS = 4
"""COCO's annotations lie two folders below the world, BDD100K's four; a home folder is no world."""


def find_synthetic_marker_file(paths: Iterable[str | Path]) -> Path | None:
    """Return the file that says that these people are synthetic; None where there is none."""
    checked_folders: set[Path] = set()
    for path in paths:
        absolute = Path(path).expanduser().absolute()
        for folder in [absolute, *absolute.parents][: _MAX_LEVELS + 1]:
            if folder in checked_folders:
                continue
            checked_folders.add(folder)
            if (folder / SYNTHETIC_MARKER).is_file():
                return folder / SYNTHETIC_MARKER
            if all((folder / name).is_file() for name in _POPULATION_FILES):
                return folder / _POPULATION_FILES[0]
    return None


def format_synthetic_note(marker: Path) -> str:
    """Say in a sentence that people are synthetic, and how that is known."""
    return f"These people are synthetic: {marker.name} beside the data says so."
