"""The project's tables as frames; facts, which are JSON there, are columns here.

``left_out`` is the one place that says which photos may not be used now: every step reads photos
and people through it. It asks the ledger of consent each time, so that a revocation counts at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import sqlalchemy as sa

from isolux.curation.project.bystanders import BYSTANDER, assign_subjects, list_crowded_photos
from isolux.curation.project.consent import list_revoked_photos, read_consent
from isolux.curation.project.database import reading
from isolux.curation.project.decisions import standing
from isolux.curation.project.folder import Project
from isolux.curation.project.tables import META, images, instances, subjects
from isolux.vocabulary.errors import UnknownNameError

__all__ = [
    "find_revoked_photos",
    "left_out",
    "read_bystanders",
    "read_images",
    "read_instances",
    "read_subjects",
    "read_table",
]  # fmt: skip

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
    """Read one of the project's tables as it is; JSON is text."""
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
    """Read the photos that stand."""
    frame = _with_facts(project, images)
    if everything:
        return frame
    gone = left_out(project)["image_id"].drop_nulls().unique()
    return frame.filter(~pl.col("image_id").is_in(gone.implode()))


def read_instances(project: Project, *, everything: bool = False) -> pl.DataFrame:
    """Read the people in the photos that stand."""
    frame = assign_subjects(_with_facts(project, instances), standing(project))
    if everything:
        return frame
    gone = left_out(project)
    own = gone.filter(unit_kind="instance")["unit_id"]
    return frame.filter(
        ~pl.col("image_id").is_in(gone["image_id"].drop_nulls().unique().implode()),
        ~pl.col("instance_id").is_in(own.implode()),
    )


def read_bystanders(project: Project) -> pl.DataFrame:
    """Read the boxes of which someone said that they show bystanders."""
    out = standing(project).filter(rule=BYSTANDER, unit_kind="instance")["unit_id"]
    people = _with_facts(project, instances).filter(pl.col("instance_id").is_in(out.implode()))
    return people.drop_nulls("x").select("image_id", "x", "y", "w", "h")


def read_subjects(project: Project) -> pl.DataFrame:
    """Read the subjects: ``subject_id`` and a column for each fact."""
    return _with_facts(project, subjects)


def left_out(project: Project) -> pl.DataFrame:
    """List why each photo is left out; a subject who is, takes their photos along."""
    out = standing(project)
    people = _with_facts(project, instances)
    of_images = out.filter(unit_kind="image").with_columns(image_id=pl.col("unit_id"))
    of_subjects = out.filter(unit_kind="subject").join(
        people.select("image_id", unit_id="subject_id").unique(), on="unit_id", how="left"
    )
    rest = out.filter(~pl.col("unit_kind").is_in(["image", "subject"])).with_columns(
        image_id=pl.lit(None, dtype=pl.String)
    )
    recorded = pl.concat([of_images, of_subjects, rest], how="diagonal").sort("decision_id")
    ledger = read_consent(project)
    if ledger is None:
        return recorded
    current = pl.concat(
        [list_revoked_photos(ledger, people), list_crowded_photos(ledger, people, out)]
    ).join(recorded, on=["image_id", "step", "rule"], how="anti", maintain_order="left")
    latest = int(recorded.select(pl.col("decision_id").max().fill_null(0)).item())
    current = current.with_columns(
        unit_kind=pl.lit("image"), unit_id=pl.col("image_id"), decision_id=pl.lit(latest + 1)
    )
    return pl.concat([recorded, current.cast({"decision_id": pl.Int64})], how="diagonal")


def find_revoked_photos(project: Project) -> frozenset[str]:
    """List the photos of people who took back their consent to evaluation."""
    ledger = read_consent(project)
    if ledger is None or all(row.act == "grant" for row in ledger.rows):
        return frozenset()
    return frozenset(list_revoked_photos(ledger, _with_facts(project, instances))["image_id"])


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
