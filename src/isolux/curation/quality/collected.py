"""What a project collected of each type, in the form of a table of answers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.curation.annotation import STAGES, read_answers
from isolux.curation.project import Project, read_instances, read_subjects
from isolux.curation.quality.agreement import COLLECTED
from isolux.curation.quality.given import COLUMNS
from isolux.vocabulary.errors import UnknownNameError

__all__ = ["BOXES", "collected_answers"]

BOXES, _MASK = "boxes", "mask: "
_SIDES = ("x", "y", "w", "h")
_SCHEMA = {name: pl.Float64 if name in _SIDES else pl.String for name in COLUMNS}


def collected_answers(project: Project, types: Sequence[str]) -> pl.DataFrame:
    """Gather what was collected of some types."""
    people = read_instances(project)
    subjects = read_subjects(project)
    own = [c for c in subjects.columns if c not in people.columns or c == "subject_id"]
    facts = people.join(subjects.select(own), on="subject_id", how="left", maintain_order="left")
    asked = {q: stage for stage in STAGES.values() for q in stage.choices}
    fixed = ("instance_id", "image_id", "subject_id", "origin", *_SIDES)
    known = [BOXES, *(f"{_MASK}{label}" for label in STAGES["masks"].labels), *asked,
             *(c for c in facts.columns if c not in fixed)]  # fmt: skip
    parts: list[pl.DataFrame] = []
    for name in types:
        if name == BOXES:
            found = people.filter(pl.col("x").is_not_null()).select(
                *_SIDES, unit="instance_id", annotator=pl.lit(COLLECTED)
            )
        elif name.startswith(_MASK) and name in known:
            said = read_answers(project, "masks").filter(label=name.removeprefix(_MASK))
            found = said.select("annotator", "points", unit="instance_id")
        elif name in asked:
            said = read_answers(project, asked[name].name).filter(question=name)
            found = said.select("annotator", unit="instance_id", answer="label")
        elif name in known:
            found = facts.drop_nulls(name).select(
                unit="instance_id", annotator=pl.lit("self-reported"),
                answer=pl.col(name).cast(pl.String),
            )  # fmt: skip
        else:
            raise UnknownNameError("type of answer", name, known, where="the project")
        parts.append(_as_answers(found.with_columns(type=pl.lit(name), vendor=pl.lit(COLLECTED))))
    return pl.concat(parts) if parts else pl.DataFrame(schema=_SCHEMA)


def _as_answers(found: pl.DataFrame) -> pl.DataFrame:
    return found.select(
        pl.col(name).cast(kind) if name in found.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in _SCHEMA.items()
    )
