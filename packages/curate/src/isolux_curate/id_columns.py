"""Which columns hold ids of whom, or of what: by their names, in every table."""

from __future__ import annotations

import re
from collections.abc import Mapping

ANY = ("subject", "image", "instance", "file", "task", "annotation")
"""Of columns that hold ids of whatever kind (``unit_id``, ``id``)."""
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "subject": ("subject",),
    "person": ("subject",),
    "participant": ("subject",),
    "identity": ("subject",),
    "image": ("image", "file"),
    "photo": ("image", "file"),
    "picture": ("image", "file"),
    "instance": ("instance",),
    "file": ("file", "image"),
    "filename": ("file", "image"),
    "file_name": ("file", "image"),
    "path": ("file", "image"),
    "filepath": ("file", "image"),
    "uri": ("file", "image"),
    "url": ("file", "image"),
    "annotator": ("annotator",),
    "rater": ("annotator",),
    "worker": ("annotator",),
    "copyright_holder": ("copyright",),
    "task": ("task",),
    "isolux_task": ("task",),
    "annotation": ("annotation",),
    "unit": ANY,
    "cluster": ANY,
    "id": ANY,
    "ids": ANY,
    "other": ANY,
    "household": ("household",),
}
_VAGUE = ("unit", "cluster", "id", "ids", "other")
"""They hold ids of some kind. A column ``name`` may hold any word: only names that can be no other
word are looked for in it, as in every text."""


def kinds_of_column(name: str) -> tuple[tuple[str, ...], bool] | None:
    """Tell ids of which kinds a column holds, and whether it says which; None: no ids.

    Examples
    --------
    >>> kinds_of_column("Subject_ID"), kinds_of_column("value")
    ((('subject',), True), None)
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
    short = re.sub(r"_ids?$", "", plain)
    found = _COLUMNS.get(plain) or _COLUMNS.get(short)
    return None if found is None else (found, short not in _VAGUE and plain not in _VAGUE)
