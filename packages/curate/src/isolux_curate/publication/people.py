"""The people of a published dataset, with what annotators said of them.

One row a person in a photo.

Attributes are answers of annotators (``settling.py`` says which), labels of a consensus, and facts
that people gave, where they are named. Answers of single annotators go along in a table of their
own, as FHIBE's and FACET's do.

Of each question, the answers that more than half of those who answered gave. Of a scale on which
each annotator marks several values (FACET's skin tones) **one** of these, the one with the most
marks, and beside it every mark: a person who stood on two tones would count in the groups of both,
and blur what lies between the groups.

FACET (Gustafson et al. 2023, section 5.2 and appendix B) publishes how often each tone was marked,
holds a distribution for truer than a single value (appendix C), and names no single tone and no
rule for ties. The rule is ours: of values with as many marks the middle one, of two middle ones the
lower (of tones, the lighter).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from isolux.vocabulary.errors import SpecError, TableError
from isolux_curate.annotation.answers import read_answers
from isolux_curate.annotation.stages import STAGES, UNKNOWN
from isolux_curate.annotation.tasks import upright
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import read_consent, read_instances
from isolux_curate.publication.photos import together
from isolux_curate.quality.answers import facts_of_units
from isolux_curate.user_tables import read_text

SEVERAL = ";"
MARKS = "_marks"
"""Ends the name of the column with every mark of a scale."""
_UNIT = ["instance_id", "question"]


@dataclass(frozen=True, slots=True)
class Settled:
    """Answers by person.

    Parameters
    ----------
    table : polars.DataFrame
        ``instance_id``, a column for each question, called as it is with ``_`` for spaces, and of a
        scale a second one whose name ends in ``_marks``. Several values are parted by ``;``; marks
        are repeated as often as they were made, so that ``--votes`` counts them.
    marks : tuple of str
        The columns of marks.
    tied : mapping of str to int
        Of each scale, people of whom several values had the most marks.
    """

    table: pl.DataFrame
    marks: tuple[str, ...]
    tied: dict[str, int]


def settled_answers(said: pl.DataFrame) -> Settled:
    """Bring what annotators said to one row a person.

    Examples
    --------
    >>> marks = {"x": (5, 6), "y": (5, 6), "z": (6, 7)}
    >>> tone = "perceived skin tone"
    >>> rows = [("a", who, tone, str(t)) for who, two in marks.items() for t in two]
    >>> schema = ["instance_id", "annotator", "question", "label"]
    >>> settled_answers(pl.DataFrame(rows, schema=schema, orient="row")).table.row(0)
    ('a', '6', '5;5;6;6;6;7')
    """
    checks = [question for one in STAGES.values() for question in one.requeue]
    said = said.filter(~pl.col("question").is_in(checks))
    if said.is_empty():
        return Settled(pl.DataFrame(schema={"instance_id": pl.String}), (), {})
    scales = {question for one in STAGES.values() for question in one.consecutive}
    names = said["question"].unique(maintain_order=True).to_list()
    most = _most(said)
    on_scale = pl.col("question").is_in(sorted(scales))
    one, tied = _of_scales(most.filter(on_scale))
    parts = [_joined(most.filter(~on_scale)), one]
    table = _by_person(pl.concat(parts), names)
    marks = [name for name in names if name in scales]
    if marks:
        every = _by_person(_joined(_placed(said.filter(on_scale))), marks)
        renamed = every.rename({name: _plain(name) + MARKS for name in marks})
        table = table.join(renamed, on="instance_id", how="full", coalesce=True)
    table = table.rename({name: _plain(name) for name in names})
    order = [c for name in map(_plain, names) for c in (name, name + MARKS) if c in table.columns]
    found = {_plain(name): n for name, n in tied.items()}
    return Settled(
        table.select("instance_id", *order).sort("instance_id"),
        tuple(_plain(name) + MARKS for name in marks),
        found,
    )


def _plain(name: str) -> str:
    return name.strip("?").replace(" ", "_")


def _most(said: pl.DataFrame) -> pl.DataFrame:
    """Keep answers that more than half of those who answered gave: ``votes`` is how many."""
    asked = said.group_by(_UNIT).agg(asked=pl.col("annotator").n_unique())
    votes = said.group_by([*_UNIT, "label"]).agg(votes=pl.col("annotator").n_unique())
    most = votes.join(asked, on=_UNIT).filter(pl.col("votes") * 2 > pl.col("asked"))
    return _placed(most)


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort by the answers' place in their question."""
    order = {
        word: k
        for one in STAGES.values()
        for answers in one.choices.values()
        for k, word in enumerate(answers)
    }
    place = pl.col("label").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    return rows.sort([*_UNIT, place, "label"])


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(_UNIT, maintain_order=True).agg(value=pl.col("label").str.join(SEVERAL))


def _of_scales(most: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Take the value with the most marks, and tell how often several had as many; known wins."""
    known = most.with_columns(known=pl.col("label") != UNKNOWN)
    known = known.filter(pl.col("votes") == pl.col("votes").max().over(_UNIT))
    known = known.filter(pl.col("known") == pl.col("known").max().over(_UNIT))
    each = known.group_by(_UNIT, maintain_order=True).agg("label")
    n = pl.col("label").list.len()
    tied = each.filter(n > 1).group_by("question").len()
    one = each.select(*_UNIT, value=pl.col("label").list.get((n - 1) // 2))
    return one, {question: int(k) for question, k in tied.iter_rows()}


def _by_person(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    wide = rows.pivot("question", index="instance_id", values="value")
    missing = [pl.lit(None, dtype=pl.String).alias(n) for n in names if n not in wide.columns]
    return wide.with_columns(missing).select("instance_id", *names)


FIXED = (
    "instance_id",
    "image_id",
    "subject_id",
    "cluster_id",
    "split",
    "file",
    "width",
    "height",
    "class",
    "box_x",
    "box_y",
    "box_w",
    "box_h",
)
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
    project: Project, photos: pl.DataFrame, *, facts: Sequence[str] = (), labels: Sequence[str] = ()
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
        raise SpecError(
            "two columns would have one name", expected="a name of its own", found=repr(name)
        )


def _people(project: Project, photos: pl.DataFrame) -> pl.DataFrame:
    """Take people that annotators drew where there are some, else those who were named."""
    sides = [
        upright(w or 0, h or 0, o)
        for w, h, o in photos.select(
            "width",
            "height",
            photos["orientation"]
            if "orientation" in photos.columns
            else pl.lit(None, dtype=pl.Int64).alias("orientation"),
        ).iter_rows()
    ]
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
    parts = [
        read_answers(project, name) for name, one in STAGES.items() if one.unit_kind == "instance"
    ]
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
    table = read_text(file, "instance_id", "label").select(
        "instance_id", pl.col("label").alias(name)
    )
    if table["instance_id"].is_duplicated().any():
        raise TableError("a person has two labels", expected="one row each", where=file)
    return name, table
