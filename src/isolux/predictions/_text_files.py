"""Detections as lines of text files: their lines, and what a file begins with.

Shared by Pascal VOC's results (a file for each class) and YOLO's (a file for each picture).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isolux.core.errors import FileError
from isolux.io.frames import refuse_unless_file
from isolux.io.text import check_utf8
from isolux.predictions._file_probe import FileProbe


def is_single_file(root: Path) -> bool:
    """Tell whether the path is a single file; refuse one without a line."""
    if root.is_file() and not _read_text(root).strip():
        raise FileError("the file is empty", expected="one line per detection", where=str(root))
    return root.is_file()


def iterate_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, each with its number from 1."""
    for k, line in enumerate(_read_text(file).splitlines(), start=1):
        if line.strip():
            yield k, line


def read_first_line(probe: FileProbe) -> bytes:
    """Return the first line that is not blank; empty if there is none."""
    return next((line for line in probe.head.splitlines() if line.strip()), b"")


def _read_text(file: Path) -> str:
    refuse_unless_file(file)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FileError("the file cannot be read", found=str(error), where=str(file)) from error
    return check_utf8(content, str(file)).decode("utf-8") if content else ""
