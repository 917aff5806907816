"""The project's tables as frames; facts, which are JSON there, are columns here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import sqlalchemy as sa

from isolux.curation.project.database import reading
from isolux.curation.project.decisions import standing
from isolux.curation.project.folder import Project
from isolux.curation.project.tables import META, images, instances, subjects
from isolux.vocabulary.errors import UnknownNameError

__all__ = ["left_out", "read_images", "read_instances", "read_subjects", "read_table"]

FACTS: dict[str, Any] = {
    "exif": pl.Boolean, "megapixels": pl.Float64, "exif_width": pl.Int64, "exif_height": pl.Int64,
    "digital_zoom": pl.Float64, "custom_rendered": pl.Int64, "pages": pl.Int64,
    "age": pl.Float64, "age_of_majority": pl.Float64, "device_year": pl.Int64,
    "language_right": pl.Int64, "orientation": pl.Int64,
}  # fmt: skip
"""Facts that are numbers; all others are text."""
_TYPES: tuple[tuple[type[Any], Any], ...] = (
    (sa.Boolean, pl.Boolean), (sa.Integer, pl.Int64), (sa.Float, pl.Float64), (sa.JSON, pl.Object),
)  # fmt: skip


def read_table(project: Project, name: str) -> pl.DataFrame:
    """Read one of the project's tables as it is; JSON is text.

    Raises
    ------
    UnknownNameError
        No such table.
    """
    import json

    if name not in META.tables:
        raise UnknownNameError("table", name, META.tables)
    table = META.tables[name]
    order = [*table.primary_key.columns]
    with reading(project.engine) as connection:
        rows = connection.execute(sa.select(table).order_by(*order)).all()
    columns = list(table.columns)
    cells = {
        c.name: [
            json.dumps(row[k]) if isinstance(c.type, sa.JSON) and row[k] is not None else row[k]
            for row in rows
        ]
        for k, c in enumerate(columns)
    }
    return pl.DataFrame(cells, schema={c.name: _type(c.type) for c in columns})


def _type(kind: Any) -> Any:
    found = next((to for of, to in _TYPES if isinstance(kind, of)), pl.String)
    return pl.String if found is pl.Object else found


def read_images(project: Project, *, everything: bool = False) -> pl.DataFrame:
    """Read the photos that stand.

    Parameters
    ----------
    project : Project
    everything : bool
        Those that were left out, too.

    Returns
    -------
    polars.DataFrame
        ``image_id, file, sha256, width, height`` and a column for each fact, by ``image_id``.
    """
    frame = _with_facts(project, images)
    return (
        frame if everything else frame.filter(~pl.col("image_id").is_in(_gone(project, "image_id")))
    )


def read_instances(project: Project, *, everything: bool = False) -> pl.DataFrame:
    """Read the people in the photos that stand.

    Returns
    -------
    polars.DataFrame
        ``instance_id, image_id, subject_id, x, y, w, h`` (pixels; null: no box), ``origin``, and a
        column for each fact.
    """
    frame = _with_facts(project, instances)
    if everything:
        return frame
    gone = left_out(project)
    own = gone.filter(unit_kind="instance")["unit_id"]
    return frame.filter(
        ~pl.col("image_id").is_in(_gone(project, "image_id")),
        ~pl.col("instance_id").is_in(own.implode()),
    )


def read_subjects(project: Project) -> pl.DataFrame:
    """Read the subjects: ``subject_id`` and a column for each fact."""
    return _with_facts(project, subjects)


def left_out(project: Project) -> pl.DataFrame:
    """List why each photo is left out; a subject who is, takes their photos along.

    Returns
    -------
    polars.DataFrame
        ``image_id`` (null of an instance alone), and the columns of ``standing``, oldest first.
    """
    out = standing(project)
    people = _with_facts(project, instances).select("image_id", "subject_id", "instance_id")
    of_images = out.filter(unit_kind="image").with_columns(image_id=pl.col("unit_id"))
    of_subjects = out.filter(unit_kind="subject").join(
        people.select("image_id", unit_id="subject_id").unique(), on="unit_id", how="left"
    )
    rest = out.filter(~pl.col("unit_kind").is_in(["image", "subject"])).with_columns(
        image_id=pl.lit(None, dtype=pl.String)
    )
    return pl.concat([of_images, of_subjects, rest], how="diagonal").sort("decision_id")


def _gone(project: Project, column: str) -> pl.Expr:
    return pl.lit(left_out(project)[column].drop_nulls().unique().implode())


def _with_facts(project: Project, table: sa.Table) -> pl.DataFrame:
    with reading(project.engine) as connection:
        rows = connection.execute(sa.select(table).order_by(*table.primary_key.columns)).all()
    columns = [c for c in table.columns if c.name != "facts"]
    at = {c.name: k for k, c in enumerate(table.columns)}
    frame = pl.DataFrame(
        {c.name: [row[at[c.name]] for row in rows] for c in columns},
        schema={c.name: _type(c.type) for c in columns},
    )
    return frame.hstack(_columns([row[at["facts"]] for row in rows]))


def _columns(facts: Sequence[Mapping[str, Any]]) -> list[pl.Series]:
    names = dict.fromkeys(name for one in facts for name in one)
    return [
        pl.Series(name, [one.get(name) for one in facts], dtype=FACTS.get(name, pl.String))
        for name in names
    ]
