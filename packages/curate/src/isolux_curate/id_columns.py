"""Columns that hold ids of people, photos or other units, recognised by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

ALL_ID_KINDS = ("subject", "image", "instance", "file", "task", "annotation")
"""The kinds of ids that a generic column may hold (``unit_id``, ``id``)."""
_ID_KINDS_BY_COLUMN: Mapping[str, tuple[str, ...]] = {
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
    "unit": ALL_ID_KINDS,
    "cluster": ALL_ID_KINDS,
    "id": ALL_ID_KINDS,
    "ids": ALL_ID_KINDS,
    "other": ALL_ID_KINDS,
    "household": ("household",),
}
_GENERIC_COLUMNS = ("unit", "cluster", "id", "ids", "other")
"""Columns with ids of an unknown kind. A column ``name`` may hold any word: it is searched like
text, for ids that can be no other word."""


def parse_id_column_or_none(column_name: str) -> tuple[tuple[str, ...], bool] | None:
    """Parse a column's name into the kinds of ids it holds, and whether it names the kind.

    None: the column holds no ids.

    Examples
    --------
    >>> parse_id_column_or_none("Subject_ID"), parse_id_column_or_none("value")
    ((('subject',), True), None)
    """
    normalised_name = re.sub(r"[^a-z0-9]+", "_", column_name.strip().lower()).strip("_")
    stem = re.sub(r"_ids?$", "", normalised_name)
    id_kinds = _ID_KINDS_BY_COLUMN.get(normalised_name) or _ID_KINDS_BY_COLUMN.get(stem)
    return (
        None
        if id_kinds is None
        else (id_kinds, stem not in _GENERIC_COLUMNS and normalised_name not in _GENERIC_COLUMNS)
    )
