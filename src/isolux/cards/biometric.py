"""The tables of a biometric test: failures and errors by group, and how far the errors lie apart.

Failures to enrol and to acquire and both errors at the operational threshold are laid out as the
public scope of ISO/IEC 19795-10 describes them, differentials as NIST sums them up, with the errors
of everyone in each row: a summary alone is best where a model fails everyone alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from isolux.cards._document import Block, Card, Column, Paragraph, Part, Table
from isolux.cards._facts import Facts
from isolux.cards._measured import data_text, findings, first_page
from isolux.cards._source import Source, card_of
from isolux.disparity.biometrics import (
    RATES,
    differentials,
    false_positive_matrix,
    gallery_by_group,
    impostor_matrix,
    performance,
)
from isolux.statements.numbers import count, interval, with_unit
from isolux.vocabulary.drawn import is_drawn
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import Ask, CardInfo, Reference

__all__ = ["INFO", "card"]

_ASKS = {
    "system": Ask("system", "the biometric system: provider, name and version"),
    "test_type": Ask("test_type", "the kind of test (technology, scenario, operational), by whom"),
    "capture": Ask("capture", "how and where samples were captured"),
    "population": Ask("population", "who the test subjects are, and whom they represent"),
    "demographic_determination": Ask("demographic_determination", "how the groups were determined "
                                     "(self-reported, from documents, by observers)"),
    "threshold_reason": Ask("threshold_reason", "why this is the operational threshold"),
    "responsible_persons": Ask("responsible_persons", "who answers for this, and signed when"),
}  # fmt: skip

INFO = CardInfo(
    title="Biometric performance by group",
    summary="Failures, both errors and their differentials by group, for biometric testers.",
    references=(
        Reference(
            "biometric-differentials",
            "ISO/IEC 19795-10:2024. Information technology: Biometric performance testing and "
            "reporting. Part 10: Quantifying biometric system performance variation across "
            "demographic groups.",
            "its scope: failure to enrol, failure to acquire, recognition errors",
            "https://www.iso.org/standard/81223.html",
        ),
        Reference(
            "frte-demographics",
            "National Institute of Standards and Technology. Face Recognition Technology "
            "Evaluation: demographic effects in face recognition.",
            "the largest rate over the geometric mean, and over the smallest; Gini",
            "https://pages.nist.gov/frvt/html/frvt_demographics.html",
        ),
    ),
    asks=tuple(_ASKS.values()),
    tasks=tuple(RATES),
    statement=(
        "The text of ISO/IEC 19795-10 is not public: these tables follow its public scope and are "
        "not a statement of conformity. A summary of differences means nothing without the errors "
        "beside it: a system that fails everyone fails all groups equally."
    ),
)
_WORDS = {
    "fte": "Failure to enrol (FTE)", "fta": "Failure to acquire (FTA)",
    "failure": "Failed comparisons", "fmr": "False match rate (FMR)",
    "fnmr": "False non-match rate (FNMR)", "gfar": "Generalised false accept rate",
    "gfrr": "Generalised false reject rate", "fpir": "False positive identification rate (FPIR)",
    "fnir": "False negative identification rate (FNIR)",
}  # fmt: skip
_SHORT = {metric: _WORDS[short] for rates in RATES.values() for short, metric in rates.items()}
_READ = (
    "1 in both ratios and 0 in Gini mean that nothing differs. These are descriptions without an "
    "interval: the tests are among the findings."
)
_SIDES = ("group_a", "group_b")
_MOST = 8
"""Attributes with more groups have no table between two groups."""


def card(source: Source, facts: Facts) -> Card:
    """Fill the tables.

    Parameters
    ----------
    source : Source
        A finished run of ``face_verification`` or ``identification``.
    facts : Facts
        What the user says.

    Returns
    -------
    Card

    Raises
    ------
    SpecError
        A run of another task.

    Examples
    --------
    >>> INFO.tasks
    ('face_verification', 'identification')
    """

    def said(*keys: str) -> tuple[Any, ...]:
        return tuple(facts.said(_ASKS[key]) for key in keys)

    is_of = str(source.run.record.get("task")) in RATES
    tables = tuple(_performance(source)) if is_of else ()
    parts = [
        *first_page(source),
        Part("The system and the test", said("system", "test_type", "capture")),
        Part("The people", (Paragraph(data_text(source)),
                            *said("population", "demographic_determination"))),
        Part("Failures and errors by group", (*tables, *said("threshold_reason")),
             "After the public scope of ISO/IEC 19795-10"),
        Part("How far apart the groups' errors are",
             tuple(_differentials(source)) if is_of else (), "After NIST's demographic summary"),
        Part("Between groups", _between_or_why_not(source) if is_of else ()),
        Part("What was found", tuple(findings(source))),
        Part("Who answers for this", said("responsible_persons")),
    ]  # fmt: skip
    return card_of(INFO, "biometric", source, facts, parts)


def _between_or_why_not(source: Source) -> tuple[Block, ...]:
    if is_drawn(source.run.record):
        return (Paragraph(
            "Not measured: tables between two groups count every comparison once, and the people "
            "in this run represent a population through weights or strata."
        ),)  # fmt: skip
    return tuple(_between(source))


def _rate(row: Mapping[str, Any], name: str, *, n: bool = True) -> str:
    """Write a rate with its interval and n; what has no value is a dash."""
    value = row[name]
    size = f"n = {count(row[f'{name}_n'])}" if n and row.get(f"{name}_n") is not None else ""
    ends = ""
    if value is not None and row.get(f"{name}_low") is not None:
        ends = interval(row[f"{name}_low"], row[f"{name}_high"])
    told = "; ".join(filter(None, (ends, size)))
    return with_unit(value) + (f" ({told})" if told else "")


def _performance(source: Source) -> Iterator[Block]:
    table = performance(source.run)
    rates = [short for short in _WORDS if short in table.columns]
    blank = [short for short in rates if table[short].null_count() == table.height]
    for short in blank:
        metric = RATES[str(source.run.record.get("task"))][short]
        yield Paragraph(f"{_WORDS[short]}: not measured (no metric {metric} in this run).")
    shown = [short for short in rates if short not in blank]
    everyone = table.filter(pl.col("attribute").is_null())
    named = [RATES[str(source.run.record.get("task"))][short] for short in shown]
    for attribute in table["attribute"].drop_nulls().unique(maintain_order=True).to_list() or [""]:
        part = pl.concat([everyone, table.filter(pl.col("attribute") == attribute)])
        title = attribute.replace("_", " ").replace("*", " × ")
        yield Table(
            f"Failures and errors by {title}" if attribute else "Failures and errors",
            (Column("Group"), Column("Threshold", number=True),
             *(Column(_WORDS[short], number=True) for short in shown), Column("Note")),
            tuple(_row(row, shown) for row in part.iter_rows(named=True)),
            f"group_metrics.parquet: metrics {', '.join(named)}, attribute {attribute or '(none)'}"
            f"; {source.summary.audited.percent} intervals in brackets",
        )  # fmt: skip


def _row(row: Mapping[str, Any], shown: list[str]) -> tuple[str, ...]:
    at = "–" if row["threshold"] is None else f"{row['threshold']:.6g}"
    said = [part for part in (row["said"] or "").split("; ") if not part.endswith("not measured")]
    for short, words in _WORDS.items():
        said = [part.replace(f"{short} ", f"{words}: ", 1) if part.startswith(f"{short} ") else part
                for part in said]  # fmt: skip
    return (row["group"], at, *(_rate(row, short) for short in shown), "; ".join(said) or "–")


def _differentials(source: Source) -> Iterator[Block]:
    try:
        table = differentials(source.run)
    except SpecError as error:
        yield Paragraph(f"Not computed: {error.problem}.")
        return
    if table.is_empty():
        yield Paragraph("No attribute was audited, so there are no differences.")
        return
    yield Table(
        "Differentials, with the errors of everyone beside them",
        (Column("Attribute"), Column("Error"), Column("This error of everyone", number=True),
         Column("The other error of everyone"), Column("Groups", number=True),
         Column("Lowest"), Column("Highest"), Column("Max / geometric mean", number=True),
         Column("Max / min", number=True), Column("Gini, n/(n − 1)", number=True),
         Column("Note")),
        tuple(_apart(row) for row in table.iter_rows(named=True)),
        "group_metrics.parquet: the two error rates of each row, by group; computed by "
        "isolux.disparity.biometrics.differentials",
        (_READ,),
    )  # fmt: skip


def _apart(row: Mapping[str, Any]) -> tuple[str, ...]:
    def number(name: str, places: int) -> str:
        return "–" if row[name] is None else f"{row[name]:.{places}f}"

    def whose(name: str) -> str:
        group = row[f"{name}_group"]
        return "–" if group is None else f"{group}: {with_unit(row[name])}"

    return (
        str(row["attribute"]), _SHORT.get(row["rate"], row["rate"]),
        _rate(row, "everyone", n=False),
        f"{_SHORT.get(row['other_rate'], row['other_rate'])}: {with_unit(row['other_everyone'])}",
        count(row["groups"]), whose("lowest"), whose("highest"),
        number("max_over_geometric_mean", 2), number("max_over_min", 2), number("gini", 3),
        row["said"] or "–",
    )  # fmt: skip


def _between(source: Source) -> Iterator[Block]:
    run = source.run
    if source.summary.audited.publish_min:
        yield Paragraph("Not shown: tables between groups rest on people whom a published run "
                        "does not hold.")  # fmt: skip
        return
    if run.record.get("task") == "face_verification":
        if "pairs" not in run.evidence:
            yield Paragraph("Not measured: the run does not keep its pairs (--keep-pairs).")
            return
        found = impostor_matrix(run, most_groups=_MOST)
        yield from _matrices(found, "false_match_rate", "pairs", "False match rate between people",
                             "evidence/pairs.parquet: impostor pairs of one group on each side",
                             _SIDES)  # fmt: skip
        return
    gallery = gallery_by_group(run)
    yield _plain(gallery, "Who is enrolled", "evidence/gallery.parquet")
    taken = false_positive_matrix(run, most_groups=_MOST)
    yield from _matrices(taken, "value", "searches", "Searches for people who are not enrolled, by "
                         "whom they return", "evidence/candidates.parquet and gallery.parquet",
                         ("group", "gallery_group"))  # fmt: skip


def _matrices(
    table: pl.DataFrame, value: str, n: str, caption: str, source: str, sides: tuple[str, str]
) -> Iterator[Block]:
    """Lay rates between groups out as one matrix an attribute."""
    first, second = sides
    note = (
        "Each cell: pairs of two people, one of the group of the row and one of the column."
        if sides == _SIDES else
        "Rows: the group of the people searched for; columns: that of the enrolled people."
    )  # fmt: skip
    for (attribute,), part in table.group_by(["attribute"], maintain_order=True):
        names = list(dict.fromkeys([*part[first], *part[second]]))
        cells = {}
        for row in part.iter_rows(named=True):
            ends = interval(row["low"], row["high"]) if row["low"] is not None else ""
            few = row["reason"] if row["low"] is None else ""
            told = "; ".join(filter(None, (ends, f"n = {count(row[n])}", few)))
            text = f"{with_unit(row[value])} ({told})"
            cells[row[first], row[second]] = text
            if sides == _SIDES:
                cells[row[second], row[first]] = text
        rows = tuple((one, *(cells.get((one, two), "–") for two in names)) for one in names)
        yield Table(
            f"{caption}, by {str(attribute).replace('_', ' ').replace('*', ' × ')}",
            (Column("Group"), *(Column(name, number=True) for name in names)), rows,
            f"{source}, attribute {attribute}", (note,),
        )  # fmt: skip
    if table.is_empty():
        yield Paragraph(f"Not shown: no attribute has 2 to {_MOST} groups.")


def _plain(table: pl.DataFrame, caption: str, source: str) -> Block:
    if table.is_empty():
        return Paragraph(f"{caption}: nothing to show.")
    shares = {"share"}
    columns = tuple(
        Column(name.replace("_", " "), number=table.schema[name].is_numeric())
        for name in table.columns
    )
    rows = tuple(
        tuple(
            with_unit(cell) if name in shares else count(cell) if isinstance(cell, int)
            else "everyone" if cell is None and name == "attribute" else str(cell or "–")
            for name, cell in zip(table.columns, row, strict=True)
        )
        for row in table.rows()
    )  # fmt: skip
    return Table(caption, columns, rows, source)
