"""What ``isolux compare`` prints of two models: the answer, who changed, the gaps, what else.

About 30 lines: a head line, is the second model better, who lost and who gained, whether each gap
changed, the groups by the metric asked for first with the worst change first, then findings that
the tables do not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isolux.cli import command_output
from isolux.cli.group_table import draw_interval_bar
from isolux.cli.streams import build_rich_console
from isolux.cli.table_output import (
    add_run_to_json,
    print_missing_figures_hint,
    print_stdout_warning,
)
from isolux.cli.text_widths import cut_middle_to_width
from isolux.core.containers import Run
from isolux.core.printable import clean_line
from isolux.report.comparison import ComparisonSummary, summarise_comparison
from isolux.report.document import Estimate
from isolux.report.figures.svg import shorten_names_distinctly
from isolux.statements.numbers import format_bare_value, format_count, format_p_value

if TYPE_CHECKING:
    from rich.console import Console

    from isolux.report.comparison import Change, ChangeTable

_MAX_LINES, _MIN_FINDINGS, _MAX_FINDINGS, _MAX_WARNINGS = 30, 2, 5, 3
_MAX_FIRST_ROWS, _MAX_OTHER_ROWS = 8, 2
_NAME_WIDTH, _HEAD_WIDTH, _MAX_STRIP_WIDTH = 12, 8, 24
_MIN_STRIP_WIDTH = 11
_MARKS = {"no change found": "~", "not judged": "too few"}
_NO_CHANGE = Estimate(0.0, None, None, 0, 0, "ok")
_STYLES = {"lost": "bold red", "gained": "cyan", "lower": "bold", "higher": "bold"}


def print_comparison(run: Run, report: Path | None) -> None:
    """Print a comparison of two models, or add it to the JSON document."""
    summary = summarise_comparison(run)
    if command_output.is_json_active():
        _add_comparison_to_json(run, summary, report)
        return
    warnings = list(run.record.get("warnings") or ())
    for text in warnings[:_MAX_WARNINGS]:
        print_stdout_warning(text)
    if len(warnings) > _MAX_WARNINGS:
        print_stdout_warning(f"and {len(warnings) - _MAX_WARNINGS:,} more in the report")
    console, answer = build_rich_console(), summary.answer
    lines = [_build_head_line(summary), *_list_comparison_cautions(summary), answer.first]
    lines += [f"• {text}" for text in answer.further]
    lines += [f"  and {answer.n_more:,} more changed (table)"] if answer.n_more else []
    lines += [f"• {text}" for text in answer.gaps]
    for text in lines:
        console.print(clean_line(text))
    n_lines = sum(1 + len(text) // console.width for text in lines) + _print_change_tables(
        console, summary
    )
    sentences = answer.first, *answer.further, *answer.gaps
    _print_further_findings(console, run, summary, sentences, _MAX_LINES - n_lines)
    for note in () if report else run.record.get("notes") or ():
        console.print(clean_line(f"note: {note}"), style="dim")
    if report is not None:
        console.print(f"report: {clean_line(str(report))}", soft_wrap=True)
        print_missing_figures_hint(f"isolux report {report.parent}")


def _add_comparison_to_json(run: Run, summary: ComparisonSummary, report: Path | None) -> None:
    """Add everything to the JSON document: what a screen shows, and all numbers."""
    answer = summary.answer
    remainder = [f"And {answer.n_more:,} more changed (table)."] if answer.n_more else []
    answer_fields = {
        "accounting": " ".join(_list_comparison_cautions(summary)),
        "first": answer.first,
        "further": [*answer.further, *remainder, *answer.gaps],
        "line": None,
        "attributes": [section.attribute for section in summary.sections],
    }
    add_run_to_json(run, answer_fields, report)


def _list_comparison_cautions(summary: ComparisonSummary) -> list[str]:
    """List what must be read before the numbers, such as who was not detected."""
    return [f"{caution.headline} {caution.text}" for caution in summary.base.cautions]


def _build_head_line(summary: ComparisonSummary) -> str:
    """Name the two models, the people, and everyone's value by either."""
    audited = summary.audited
    people = f"{format_count(audited.n_units)} people{audited.clustering}"
    segments = [" → ".join(summary.models), people]
    for table in summary.overall[:1]:
        row, unit = table.overall_change, table.line.unit
        if row is not None:
            values_text = " → ".join(format_bare_value(x, unit) for x in (row.first, row.second))
            segments.append(
                f"{table.line.phrase} {values_text}{' %' if unit == 'fraction' else ''}"
            )
    return " · ".join(segments)


def _print_change_tables(console: Console, summary: ComparisonSummary) -> int:
    """Print the first attribute's groups, of every other the two worst; return the lines."""
    from rich.text import Text

    sections = sorted((s for s in summary.sections if s.tables), key=lambda s: not s.n_changed)
    section_tables = [
        (section.title, section.tables[0], section.tables[0].rows[:max_rows])
        for section, max_rows in zip(
            sections, [_MAX_FIRST_ROWS, *[_MAX_OTHER_ROWS] * len(sections)], strict=False
        )
        if section.n_changed or section is sections[0]
    ]
    rows = [(row, table) for _, table, table_rows in section_tables for row in table_rows]
    if not rows:
        return 0
    headings = [
        "",
        *shorten_names_distinctly(summary.models, _HEAD_WIDTH),
        "change",
        "",
        "n",
        "p",
        "",
    ]
    cells = [_build_change_cells(row, table) for row, table in rows]
    widths = _fit_column_widths([headings, *cells], console.width)
    values = [x for row, _ in rows for x in (row.low, row.high, row.difference) if x is not None]
    scale = (min([0.0, *values]), max([0.0, *values]))
    console.print(Text(_align_cells(headings, widths), style="bold"), no_wrap=True)
    row_index = 0
    for title, table, table_rows in section_tables:
        n_remaining = len(table.rows) - len(table_rows)
        remainder = f" ({n_remaining:,} more groups in the report)" if n_remaining else ""
        console.print(
            Text(clean_line(title) + remainder, style="bold"), no_wrap=True, overflow="ellipsis"
        )
        for row in table_rows:
            change = Estimate(row.difference, row.low, row.high, 0, 0, row.status)
            cells[row_index][4] = draw_interval_bar(change, _NO_CHANGE, scale, widths[4])
            mark = cells[row_index].pop()
            line = Text(_align_cells(cells[row_index], widths) + "  ")
            console.print(line.append(mark, style=_STYLES.get(row.way, "dim")), no_wrap=True)
            row_index += 1
    unchanged_titles = [section.title for section in sections[1:] if not section.n_changed]
    if unchanged_titles:
        text = Text(clean_line(f"~ no change shown by {', '.join(unchanged_titles)}"))
        console.print(text, no_wrap=True, overflow="ellipsis")
    level = summary.audited.percent
    legend = f"━●━ change with {level} interval, │ no change, ~ none shown; worst first"
    console.print(Text(legend, style="dim"), no_wrap=True, overflow="ellipsis")
    return len(rows) + len(section_tables) + 2 + bool(unchanged_titles)


def _build_change_cells(change: Change, table: ChangeTable) -> list[str]:
    """Build the cells of a group's row; its interval is drawn when the widths are known."""
    unit = table.line.unit
    values = [format_bare_value(x, unit) for x in (change.first, change.second)]
    difference_text = format_bare_value(
        change.difference, unit, with_sign=True, n_decimals=table.n_decimals
    )
    p = format_p_value(change.p_adjusted) if change.way not in _MARKS else ""
    mark = _MARKS.get(change.way, change.way)
    return [
        f"  {clean_line(change.group)}",
        *values,
        difference_text,
        "",
        format_count(change.n_units),
        p,
        mark,
    ]


def _fit_column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Fit column widths; the name and the drawn interval share the remaining width."""
    from rich.cells import cell_len

    needed_widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    remaining_width = width - sum(needed_widths[1:]) - 2 * (len(needed_widths) - 1)
    name = min(needed_widths[0], max(remaining_width - _MIN_STRIP_WIDTH, _NAME_WIDTH))
    needed_widths[0], needed_widths[4] = (
        name,
        min(max(remaining_width - name, _MIN_STRIP_WIDTH), _MAX_STRIP_WIDTH),
    )
    return needed_widths


def _align_cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Put a row's cells into columns: the name to the left, numbers to the right."""
    from rich.cells import cell_len, set_cell_size

    aligned = [set_cell_size(cut_middle_to_width(cells[0], widths[0]), widths[0])]
    for cell, width in zip(cells[1:], widths[1:], strict=False):
        aligned.append(" " * max(width - cell_len(cell), 0) + cell)
    return "  ".join(aligned)


def _print_further_findings(
    console: Console, run: Run, summary: ComparisonSummary, answer: Sequence[str], n_lines_left: int
) -> None:
    """Print findings that answer and tables do not show, and how many more the report has."""
    main = summary.overall[0].line if summary.overall else None
    other_claims, n_remaining = [], 0
    for row in run.findings.sort("rank", maintain_order=True).iter_rows(named=True):
        if row["claim"] in answer:
            continue
        is_of_main_metric = main is not None and (row["metric"], row["label"]) == (
            main.metric,
            main.label,
        )
        other_claims += [] if is_of_main_metric and row["attribute"] is not None else [row["claim"]]
        n_remaining += 1
    claims = other_claims[: min(max(n_lines_left // 2, _MIN_FINDINGS), _MAX_FINDINGS)]
    for claim in claims:
        console.print(f"• {clean_line(claim)}")
    if n_remaining := n_remaining - len(claims):
        console.print(
            f"… and {n_remaining:,} more finding{'s' if n_remaining > 1 else ''} in the report."
        )
