"""Checks of a dataset before anything is measured with it: one file each, ``INFO`` and ``check``.

From a loaded dataset, and what its picture files hold, to a table of problems. A check reads
tables (``needs="tables"``), looks for files (``"files"``) or reads what was seen when each picture
was opened (``"pixels"``); pictures are opened once, by ``_inspection.py``, for all checks. The
order in which checks run, what sets the exit code and who reads the table stand above, in
``isolux.verbs.check`` and ``isolux check``.

To add a check, write ``checks/<name>.py`` with ``INFO`` (a ``CheckInfo``) and
``check(dataset, *, …) -> problems``, made with ``problems_of`` (and ``together``); one that needs
files takes ``pictures`` as a named argument.
"""

from __future__ import annotations

from isolux.checks._inspection import inspect
from isolux.checks._pictures import Pictures, WithoutPictures, located
from isolux.checks._problems import PROBLEMS, problems_of, together

__all__ = [
    "PROBLEMS",
    "Pictures",
    "WithoutPictures",
    "inspect",
    "located",
    "problems_of",
    "together",
]
