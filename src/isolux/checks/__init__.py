"""Checks of a dataset before anything is measured with it: one file each, ``INFO`` and ``check``.

From a loaded dataset, and what its picture files hold, to a table of problems. A check reads
tables (``needs="tables"``), looks for files (``"files"``) or reads what was seen when each picture
was opened (``"pixels"``); pictures are opened once, by ``_inspection.py``, for all checks. The
order in which checks run, what sets the exit code and who reads the table stand above, in
``isolux.api.check`` and ``isolux check``.

To add a check, write ``checks/<name>.py`` with ``INFO`` (a ``CheckInfo``) and
``check(dataset, *, …) -> problems``, made with ``make_problems`` (and ``together``); one that needs
files takes ``pictures`` as a named argument.
"""

from __future__ import annotations

from isolux.checks._image_files import ImageFiles, NoImages, locate_images
from isolux.checks._inspection import inspect_images
from isolux.checks._problems import PROBLEMS, concatenate_problems, make_problems

__all__ = [
    "PROBLEMS",
    "ImageFiles",
    "NoImages",
    "concatenate_problems",
    "inspect_images",
    "locate_images",
    "make_problems",
]
