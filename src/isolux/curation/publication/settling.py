"""What annotators said of a person, as a published row has it.

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

from dataclasses import dataclass

import polars as pl

from isolux.curation.annotation import STAGES
from isolux.curation.annotation.stages import UNKNOWN

__all__ = ["MARKS", "SEVERAL", "Settled", "settled_answers"]

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
        tuple(_plain(name) + MARKS for name in marks), found,
    )  # fmt: skip


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
    order = {word: k for one in STAGES.values() for answers in one.choices.values()
             for k, word in enumerate(answers)}  # fmt: skip
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
