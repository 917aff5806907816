"""The people of a published dataset: one row a person in a photo, with what was said of them.

Attributes are answers of annotators (``settling.py`` says which), labels of a consensus, and facts
that people gave, where they are named. Answers of single annotators go along in a table of their
own, as FHIBE's and FACET's do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from isolux.curation.annotation import STAGES, read_answers
from isolux.curation.annotation.pictures import upright
from isolux.curation.project import Project, read_consent, read_instances
from isolux.curation.publication.settling import settled_answers
from isolux.curation.publication.splits import together
from isolux.curation.quality.units import facts_of_units
from isolux.io.cells import as_text
from isolux.io.frames import read_table
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError

__all__ = ["FIXED", "Published", "published_people"]

FIXED = (
    "instance_id", "image_id", "subject_id", "cluster_id", "split", "file", "width", "height",
    "class", "box_x", "box_y", "box_w", "box_h",
)  # fmt: skip
_ANSWERS = ("instance_id", "annotator_id", "question", "answer")


@dataclass(frozen=True, slots=True)
class Published:
    """People, answers and outlines, with ids as the project has them.

    Parameters
    ----------
    people : polars.DataFrame
        The columns of ``FIXED`` but ``split``, and a column for each attribute.
    answers : polars.DataFrame
        ``instance_id, annotator_id, question, answer``: what each annotator said.
    outlines : polars.DataFrame
        ``instance_id, image_id, label, points`` (JSON): masks.
    judgement : mapping of str to str
        Of each attribute: perceived (by annotators), self-reported, or consensus.
    marks : tuple of str
        Columns with every mark of a scale.
    tied : mapping of str to int
        Of each scale, people of whom several values had the most marks.
    """

    people: pl.DataFrame
    answers: pl.DataFrame
    outlines: pl.DataFrame
    judgement: Mapping[str, str]
    marks: tuple[str, ...] = ()
    tied: Mapping[str, int] = field(default_factory=dict)


def published_people(
    project: Project,
    photos: pl.DataFrame,
    *,
    facts: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Published:
    """Gather the people in some photos, and what was said of them."""
    people = _people(project, photos)
    said, outlines = _said(project, people["instance_id"])
    settled = settled_answers(said)
    taken = dict.fromkeys(settled.table.columns[1:], "perceived")
    people = people.join(settled.table, on="instance_id", how="left", maintain_order="left")
    for text in labels:
        name, table = _labels(text)
        _refuse_taken(name, taken)
        taken[name] = "consensus"
        people = people.join(table, on="instance_id", how="left", maintain_order="left")
    for name in facts:
        _refuse_taken(name, taken)
        taken[name] = "self-reported"
    told = facts_of_units(project, facts).rename({"unit_id": "instance_id"}).drop("subject_id")
    people = people.join(told, on="instance_id", how="left", maintain_order="left")
    answers = said.select(
        "instance_id", "question", annotator_id="annotator", answer="label"
    ).select(_ANSWERS)
    return Published(people, answers, outlines, taken, settled.marks, settled.tied)


def _refuse_taken(name: str, taken: Mapping[str, str]) -> None:
    if name in taken or name in FIXED:
        raise SpecError("two columns would have one name", expected="a name of its own",
                        found=repr(name))  # fmt: skip


def _people(project: Project, photos: pl.DataFrame) -> pl.DataFrame:
    """Take people that annotators drew where there are some, else those who were named."""
    sides = [
        upright(w or 0, h or 0, o)
        for w, h, o in photos.select(
            "width", "height",
            photos["orientation"] if "orientation" in photos.columns
            else pl.lit(None, dtype=pl.Int64).alias("orientation"),
        ).iter_rows()
    ]  # fmt: skip
    known = photos.select(
        "image_id",
        "file",
        width=pl.Series([w or None for w, _ in sides], dtype=pl.Int64),
        height=pl.Series([h or None for _, h in sides], dtype=pl.Int64),
    )
    held = read_instances(project).join(known, on="image_id", how="inner")
    named_in = held.filter(pl.col("origin") == "submitted")
    held = held.join(together(named_in), on="image_id", how="left", maintain_order="left")
    drawn = held.filter(pl.col("x").is_not_null())
    bare = held.filter(
        pl.col("x").is_null() & ~pl.col("image_id").is_in(drawn["image_id"].implode())
    )
    named = pl.col("primary") if "primary" in held.columns else pl.lit(None, dtype=pl.String)
    rows = pl.concat([drawn, bare]).sort("image_id", "instance_id")
    boxes = {f"box_{side}": pl.col(side) for side in "xywh"}
    found = rows.with_columns(named.alias("class"), **boxes)
    return found.select(c for c in FIXED if c != "split")


def _said(project: Project, units: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read answers of annotators who may be published, and the outlines that they drew."""
    parts = [read_answers(project, name) for name, one in STAGES.items()
             if one.unit_kind == "instance"]  # fmt: skip
    whole = pl.concat(parts).filter(pl.col("instance_id").is_in(units.implode()))
    if (ledger := read_consent(project)) is not None:
        who = whole["annotator"].unique().sort()
        no = who.filter(~ledger.allows("annotator", who, "publication").fill_null(value=True))
        whole = whole.filter(~pl.col("annotator").is_in(no.implode()))
    drawn = pl.col("points").is_not_null()
    outlines = whole.filter(drawn).select("instance_id", "image_id", "label", "points")
    return whole.filter(~drawn).sort("instance_id", "question", "annotator", "label"), outlines


def _labels(text: str) -> tuple[str, pl.DataFrame]:
    name, _, file = text.partition("=")
    if not name or not file:
        raise SpecError("these are not labels", expected="NAME=labels.csv", found=repr(text))
    frame = read_table(Path(file).expanduser())
    for column in ("instance_id", "label"):
        if column not in frame.columns:
            raise UnknownNameError("column", column, frame.columns, where=file)
    table = pl.DataFrame(
        {"instance_id": as_text(frame["instance_id"]), name: as_text(frame["label"])}
    )
    if table["instance_id"].is_duplicated().any():
        raise TableError("a person has two labels", expected="one row each", where=file)
    return name, table
