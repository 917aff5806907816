"""Names and types of facts: of a photo's file, of its device, and of people.

A photo's file states its size, format and Exif. A sheet of photos states facts of a person in a
photo, and of the device where Exif is silent; a sheet of subjects states facts of people. A
column of a sheet that is called like a fact of files or like a column of the project's tables
(FHIBE's attribute *height*, for one) is a fact of the person: ``person_height`` in a sheet of
photos, ``subject_height`` in a sheet of subjects.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import sqlalchemy as sa

from isolux_curate.project.tables import images, instances, subjects

_STATED_NUMBERS: dict[str, Any] = {
    "age": pl.Float64,
    "age_of_majority": pl.Float64,
    "language_right": pl.Int64,
}
_DEVICE_FACTS: dict[str, Any] = {
    **dict.fromkeys(("make", "model", "software", "processing", "taken", "changed"), pl.String),
    "panorama": pl.String,
    "digital_zoom": pl.Float64,
    "custom_rendered": pl.Int64,
    "device_year": pl.Int64,
}
_FILE_FACTS: dict[str, Any] = {
    **dict.fromkeys(("format", "trouble"), pl.String),
    "exif": pl.Boolean,
    "megapixels": pl.Float64,
    **dict.fromkeys(("exif_width", "exif_height", "orientation"), pl.Int64),
}
_FILE_NAMES = frozenset([*_FILE_FACTS, *images.columns.keys(), *instances.columns.keys()])
_OTHER_NAMES_AND_DTYPES: dict[str, tuple[str, frozenset[str], dict[str, Any]]] = {
    images.name: ("", frozenset(), _FILE_FACTS | _DEVICE_FACTS),
    instances.name: ("person_", _FILE_NAMES, _STATED_NUMBERS | _DEVICE_FACTS),
    subjects.name: ("subject_", _FILE_NAMES | set(_DEVICE_FACTS), _STATED_NUMBERS),
}
"""Of each table with facts: the prefix of facts with names of others, those names, and dtypes."""


def name_fact_column(table: sa.Table, fact_name: str) -> str:
    """Name the column of a fact: as it is called, or prefixed where the name is another fact's.

    Examples
    --------
    >>> name_fact_column(subjects, "height"), name_fact_column(images, "orientation")
    ('subject_height', 'orientation')
    """
    prefix, other_names, _ = _OTHER_NAMES_AND_DTYPES[table.name]
    return f"{prefix}{fact_name}" if fact_name in other_names else fact_name


def find_fact_dtype(table: sa.Table, fact_name: str) -> Any:
    """Find the dtype of a fact: text, but for the numbers that rules read.

    Examples
    --------
    >>> find_fact_dtype(subjects, "age"), find_fact_dtype(subjects, "orientation")
    (Float64, String)
    """
    _, other_names, dtypes = _OTHER_NAMES_AND_DTYPES[table.name]
    return pl.String if fact_name in other_names else dtypes.get(fact_name, pl.String)
