"""The run's numbers as tables of a card: each row has a group, n, an interval and its source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from isolux.cards._document import Block, Bullets, Column, Paragraph, Part, Table
from isolux.cards._source import Source, without_folders
from isolux.report.document import AttributeSection, Estimate, GroupRow, Line, LineTable
from isolux.report.summary.analyses import IN_THE_ANSWER
from isolux.report.summary.answer import reading_order
from isolux.report.wording import SHAPE, STATUS_WORDS
from isolux.statements.numbers import count, interval, p_equals, p_text, value_text, with_unit
from isolux.vocabulary import registry

__all__ = [
    "cell_text",
    "data_text",
    "findings",
    "first_page",
    "group_tables",
    "key_of_line",
    "licence_of_data",
    "limits",
    "lines_shown",
    "metric_table",
    "overall_table",
    "people_table",
    "shown_first",
    "status_text",
]

GROUPS = "group_metrics.parquet"
_WIDE = 4
"""Metrics that stand side by side."""
_ROWS, _CLAIMS = 60, 12
_FIRST = 30
"""Rows of groups on the first page."""
_OWN = ("table", "pairs", "counts", "imagefolder", "huggingface", "fiftyone")
"""Loaders of what a user brings: the licence is the user's to say."""
_SAYS_P = re.compile(r"\sp\s[=<]\s")


def status_text(found: Estimate) -> str:
    """Say whether a value may be read as it stands, and what that rests on."""
    words = f"{SHAPE.get(found.status, '')} {STATUS_WORDS.get(found.status, found.status)}".strip()
    return f"{words}: {without_folders(found.reason)}" if found.reason else words


def key_of_line(line: Line) -> str:
    """Name a line as the run's tables do.

    Examples
    --------
    >>> key_of_line(Line("m", "recall", "cook", 0.5, "", "", "", "fraction", "higher"))
    'metric recall, label cook, threshold 0.5'
    """
    parts = [f"metric {line.metric}"]
    parts += [f"label {line.label}"] if line.label is not None else []
    parts += [f"threshold {line.threshold:g}"] if line.threshold is not None else []
    return ", ".join(parts)


def data_text(source: Source) -> str:
    """Say what was judged: the data, how many, whose judgement the groups are."""
    audited = source.summary.audited
    data = without_folders(audited.dataset) or "Data without a name"
    clusters = f" in {audited.n_clusters:,} clusters ({audited.cluster})" if audited.cluster else ""
    licence = licence_of_data(source)
    return (
        f"{data}: {audited.n_units:,} people or images{clusters}. Group labels: "
        f"{audited.judgement or 'judgement not recorded'}."
        + (f" Licence of the data: {licence}." if licence else "")
    )


def licence_of_data(source: Source) -> str:
    """Return the licence that a data set's loader declares; empty: a user's own table."""
    name = str((source.run.record.get("dataset") or {}).get("name") or "")
    own = name in _OWN or name not in registry.names("datasets")
    return "" if own else source.summary.audited.licence


def overall_table(source: Source) -> Table:
    """Everyone, on every metric."""
    audited = source.summary.audited
    rows = tuple(
        (line.title, with_unit(found.value, line.unit), interval(found.low, found.high, line.unit),
         count(found.n_units), count(found.n_clusters), status_text(found))
        for line, found in source.summary.overall[:_ROWS]
    )  # fmt: skip
    more = len(source.summary.overall) - len(rows)
    return Table(
        "Everyone, on each metric",
        (Column("Metric"), Column("Value", number=True),
         Column(f"{audited.percent} interval", number=True), Column("n", number=True),
         Column("Clusters", number=True), Column("Status")),
        rows,
        f"{GROUPS}: rows without an attribute, one for each metric, class and threshold",
        (f"{more:,} more rows are in {GROUPS}.",) if more > 0 else (),
    )  # fmt: skip


def first_page(source: Source, of_groups: str = "", of_limits: str = "") -> tuple[Part, Part]:
    """Give what is read first: single attributes' groups on a few metrics, and the limits."""
    sections, lines, most = shown_first(source)
    whole = dict(source.summary.overall)
    rows = [("everyone", *(cell_text(whole.get(line), line.unit) for line in lines))]
    left = 0
    for section in sections:
        cells = {(table.line, row.group): row.estimate for block in section.blocks
                 for table in block.tables for row in table.rows}  # fmt: skip
        shown = section.main.rows[:most]
        left += len(section.main.rows) - len(shown)
        name = f"{section.title}: " if len(sections) > 1 else ""
        rows += [(name + row.group, *(cell_text(cells.get((line, row.group)), line.unit)
                                      for line in lines)) for row in shown]  # fmt: skip
    notes = [f"{left:,} more groups are in {GROUPS}."] if left else []
    notes += [f"{one.title}: {count(len(one.main.rows))} groups, in {GROUPS}."
              for one in source.summary.sections if one not in sections]  # fmt: skip
    more = len(whole) - len(lines)
    notes += [f"{more:,} more metrics, classes or thresholds are in {GROUPS}."] if more else []
    table = Table(
        f"Value ({source.summary.audited.percent} interval; n)",
        (Column("Group"), *(Column(line.title, number=True) for line in lines)), tuple(rows),
        f"{GROUPS}: {'; '.join(map(key_of_line, lines))}; attribute "
        f"{', '.join(section.attribute for section in sections) or '(none)'}",
        tuple(notes),
    )  # fmt: skip
    return (Part("Results by group", (table,), of_groups),
            Part("What this audit cannot say", (limits(source),), of_limits))  # fmt: skip


def shown_first(source: Source) -> tuple[list[AttributeSection], list[Line], int]:
    """Choose attributes in reading order, metrics of everyone, and how many groups of each."""
    sections = reading_order(source.summary.sections)
    single = [one for one in sections if not one.is_intersection] or sections[:1]
    every = [line for line, _ in source.summary.overall]
    of_class = Counter(line.metric for line in every if line.label is not None)
    lines = [line for line in every if line.label is None or of_class[line.metric] == 1] or every
    return single, lines[:_WIDE], max(2, _FIRST // max(len(single), 1))


def cell_text(found: Estimate | None, unit: str) -> str:
    """Write a value with its interval and n."""
    if found is None:
        return "–"
    ends = interval(found.low, found.high, unit) if found.low is not None else ""
    told = "; ".join(filter(None, (ends, f"n = {count(found.n_units)}")))
    if found.value is None:
        return f"{STATUS_WORDS.get(found.status, found.status)} ({told})"
    return f"{with_unit(found.value, unit)} ({told})"


def metric_table(source: Source) -> Table:
    """Say what was measured, and how each metric is defined."""
    lines = {line.metric: line for line, _ in reversed(source.summary.overall)}
    better = {"higher": "more is better", "lower": "less is better", "none": "alike is better"}
    said = source.run.record.get("measures") or {}
    rows = tuple(
        (said.get(line.metric, {}).get("title") or line.title.removesuffix(line.whose),
         line.definition or "–", "share" if line.unit == "fraction" else line.unit or "–",
         better[line.direction])
        for line in reversed(lines.values())
    )  # fmt: skip
    columns = (Column("Metric"), Column("Definition"), Column("Unit"), Column("Direction"))
    return Table("Metrics", columns, rows, "audit.json: metrics and measures")


def group_tables(source: Source) -> Iterator[Block]:
    """Each attribute's groups, on the metrics of everyone; classes are counted."""
    for section in source.summary.sections:
        tables = [table for block in section.blocks for table in block.tables]
        shown = lines_shown(section)
        for table in shown:
            yield _group_table(section, table, source)
        if section.unknown:
            yield Paragraph(without_folders(section.unknown))
        left = len(tables) - len(shown)
        if left:
            yield Paragraph(
                f"{left:,} more table{'' if left == 1 else 's'} of {section.title}, of single "
                f"classes: in {GROUPS}, rows with a label."
            )


def lines_shown(section: AttributeSection) -> list[LineTable]:
    """Choose the metrics of everyone; where all are of single classes, the main one."""
    tables = [table for block in section.blocks for table in block.tables]
    return [one for one in tables if one.line.label is None] or tables[:1]


def _group_table(section: AttributeSection, table: LineTable, source: Source) -> Table:
    audited, line = source.summary.audited, table.line
    rows, left = _shown(table)
    points = "points" if line.unit == "fraction" else line.unit or "units"
    notes = [f"{left:,} more groups, nearer to everyone, are in {GROUPS}."] if left else []
    if table.overall is not None:
        notes.insert(0, f"Everyone: {with_unit(table.overall.value, line.unit)} of "
                        f"{count(table.overall.n_units)}.")  # fmt: skip
    return Table(
        f"{line.title}, by {section.title}",
        (Column("Group"), Column(f"Value{' (%)' if line.unit == 'fraction' else ''}", number=True),
         Column(f"{audited.percent} interval", number=True), Column("n", number=True),
         Column("Clusters", number=True), Column(f"Minus everyone ({points})", number=True),
         Column(f"{audited.adjusted.capitalize()} p", number=True), Column("Status")),
        tuple(_group_row(row, line) for row in rows),
        f"{GROUPS}: {key_of_line(line)}, attribute {section.attribute}; differences: "
        "disparities.parquet, kind difference_to_overall",
        tuple(notes),
    )  # fmt: skip


def _group_row(row: GroupRow, line: Line) -> tuple[str, ...]:
    found = row.estimate
    apart = value_text(row.difference, line.unit, sign=True)
    if row.difference_low is not None:
        ends = interval(row.difference_low, row.difference_high, line.unit)
        apart = f"{apart} ({ends})"
    return (
        row.group, value_text(found.value, line.unit), interval(found.low, found.high, line.unit),
        count(found.n_units), count(found.n_clusters), apart, p_text(row.p_adjusted),
        status_text(found),
    )  # fmt: skip


def _shown(table: LineTable) -> tuple[list[GroupRow], int]:
    """Choose a long table's rows: those furthest from everyone, in their own order."""
    rows = list(table.rows)
    far = sorted(range(len(rows)), key=lambda i: -abs(rows[i].difference or 0.0))[:_ROWS]
    return [rows[i] for i in sorted(far)], len(rows) - len(far)


def people_table(source: Source) -> Iterator[Block]:
    """How many people of each group were judged, and which share of all judged they are."""
    for section in source.summary.sections:
        tables = [table for block in section.blocks for table in block.tables]
        main = max(tables, key=lambda table: table.overall.n_units if table.overall else 0)
        total = main.overall.n_units if main.overall else 0
        rows = tuple(
            (row.group, count(row.estimate.n_units), count(row.estimate.n_clusters),
             f"{100 * row.estimate.n_units / total:.1f} %" if total else "–")
            for row in main.rows[:_ROWS]
        )  # fmt: skip
        left = len(main.rows) - len(rows)
        together = sum(row.estimate.n_units for row in main.rows)
        notes = [f"{left:,} more groups are in {GROUPS}."] if left else []
        if together > total:
            notes.append("Some people are in several groups, so the shares add up to more than "
                         "100 %.")  # fmt: skip
        if together < total and not source.summary.audited.publish_min:
            notes.append(f"{total - together:,} of {total:,} judged are in none of these groups: "
                         "their value is not known, or their group is not shown.")  # fmt: skip
        yield Table(
            f"People judged, by {section.title}",
            (Column("Group"), Column("n", number=True), Column("Clusters", number=True),
             Column("Share of all judged", number=True)),
            rows,
            f"{GROUPS}: {key_of_line(main.line)}, attribute {section.attribute}, n_units and "
            "n_clusters",
            tuple(notes),
        )  # fmt: skip


def findings(source: Source, most: int = _CLAIMS) -> Sequence[Block]:
    """Give the run's claims, each with its place in findings.parquet."""
    audited = source.summary.audited
    of_audit = pl.col("analysis").is_in(IN_THE_ANSWER)
    rows = source.run.findings.filter(of_audit).sort("rank").to_dicts()
    if not rows:
        return (Paragraph("The run holds no finding: findings.parquet is empty. That is not "
                          "evidence that groups do not differ."),)  # fmt: skip
    told = []
    for row in rows[:most]:
        claim, p = without_folders(row["claim"]), row["p_adjusted"]
        says_p = p is None or _SAYS_P.search(claim)
        tested = "" if says_p else f"{audited.adjusted} {p_equals(p)}; "
        told.append(f"{claim} ({tested}findings.parquet, rank {row['rank']})")
    if len(rows) > most:
        told.append(f"{len(rows) - most:,} more findings are in findings.parquet.")
    return (Bullets(tuple(told)),)


def limits(source: Source) -> Bullets:
    """Say what this audit cannot say, as its report does."""
    return Bullets(tuple(without_folders(text) for text in source.summary.limits))
