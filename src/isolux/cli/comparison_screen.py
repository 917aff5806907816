"""What ``isolux compare`` prints of two models: the answer, who changed, the gaps, what else.

About 30 lines: a head line, is the second model better, who lost and who gained, whether each gap
changed, the groups by the metric asked for first with the worst change first, then findings that
the tables do not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isolux.cli import document
from isolux.cli.group_table import draw_interval
from isolux.cli.screen import give_run, say_figures, say_warning
from isolux.cli.streams import screen
from isolux.cli.widths import cut
from isolux.report.comparison import ComparisonSummary, summarise_comparison
from isolux.report.document import Estimate
from isolux.report.figures.svg import short_names
from isolux.statements.numbers import count, p_text, value_text
from isolux.vocabulary.containers import Run
from isolux.vocabulary.printable import plain

if TYPE_CHECKING:
    from rich.console import Console

    from isolux.report.comparison import Change, ChangeTable

_MAX_LINES, _MIN_FINDINGS, _MAX_FINDINGS, _MAX_WARNINGS = 30, 2, 5, 3
_FIRST_ROWS, _OTHER_ROWS = 8, 2
_NAME_WIDTH, _HEAD_WIDTH, _MAX_STRIP_WIDTH = 12, 8, 24
_STRIP_WIDTH = 11
_MARKS = {"no change found": "~", "not judged": "too few"}
_NO_CHANGE = Estimate(0.0, None, None, 0, 0, "ok")
_STYLES = {"lost": "bold red", "gained": "cyan", "lower": "bold", "higher": "bold"}


def show_comparison(run: Run, report: Path | None) -> None:
    """Print a comparison of two models, or hand it to a script."""
    compared = summarise_comparison(run)
    if document.giving():
        _give(run, compared, report)
        return
    warnings = list(run.record.get("warnings") or ())
    for text in warnings[:_MAX_WARNINGS]:
        say_warning(text)
    if len(warnings) > _MAX_WARNINGS:
        say_warning(f"and {len(warnings) - _MAX_WARNINGS:,} more in the report")
    console, answer = screen(), compared.answer
    lines = [_head(compared), *_cautions(compared), answer.first]
    lines += [f"• {text}" for text in answer.further]
    lines += [f"  and {answer.n_more:,} more changed (table)"] if answer.n_more else []
    lines += [f"• {text}" for text in answer.gaps]
    for text in lines:
        console.print(plain(text))
    used = sum(1 + len(text) // console.width for text in lines) + _show_tables(console, compared)
    said = answer.first, *answer.further, *answer.gaps
    _show_findings(console, run, compared, said, _MAX_LINES - used)
    for note in () if report else run.record.get("notes") or ():
        console.print(plain(f"note: {note}"), style="dim")
    if report is not None:
        console.print(f"report: {plain(str(report))}", soft_wrap=True)
        say_figures(f"isolux report {report.parent}")


def _give(run: Run, compared: ComparisonSummary, report: Path | None) -> None:
    """Hand everything to a script: what a screen shows, and the numbers behind it."""
    answer = compared.answer
    more = [f"And {answer.n_more:,} more changed (table)."] if answer.n_more else []
    said = {
        "accounting": " ".join(_cautions(compared)),
        "first": answer.first,
        "further": [*answer.further, *more, *answer.gaps],
        "line": None,
        "attributes": [section.attribute for section in compared.sections],
    }
    give_run(run, said, report)


def _cautions(compared: ComparisonSummary) -> list[str]:
    """List what must be read before the numbers, such as who was not detected."""
    return [f"{caution.headline} {caution.text}" for caution in compared.base.cautions]


def _head(compared: ComparisonSummary) -> str:
    """Name the two models, the people, and everyone's value by either."""
    audited = compared.audited
    people = f"{count(audited.n_units)} people{audited.clustering}"
    parts = [" → ".join(compared.models), people]
    for table in compared.overall[:1]:
        row, unit = table.everyone, table.line.unit
        if row is not None:
            shown = " → ".join(value_text(x, unit) for x in (row.first, row.second))
            parts.append(f"{table.line.phrase} {shown}{' %' if unit == 'fraction' else ''}")
    return " · ".join(parts)


def _show_tables(console: Console, compared: ComparisonSummary) -> int:
    """Print the first attribute's groups, of every other the two worst; return the lines."""
    from rich.text import Text

    sections = sorted((s for s in compared.sections if s.tables), key=lambda s: not s.n_changed)
    shown = [
        (section.title, section.tables[0], section.tables[0].rows[:most])
        for section, most in zip(
            sections, [_FIRST_ROWS, *[_OTHER_ROWS] * len(sections)], strict=False
        )
        if section.n_changed or section is sections[0]
    ]
    rows = [(row, table) for _, table, some in shown for row in some]
    if not rows:
        return 0
    heads = ["", *short_names(compared.models, _HEAD_WIDTH), "change", "", "n", "p", ""]
    cells = [_cells(row, table) for row, table in rows]
    widths = _share_width([heads, *cells], console.width)
    ends = [x for row, _ in rows for x in (row.low, row.high, row.difference) if x is not None]
    scale = (min([0.0, *ends]), max([0.0, *ends]))
    console.print(Text(_join(heads, widths), style="bold"), no_wrap=True)
    place = 0
    for title, table, some in shown:
        left = len(table.rows) - len(some)
        more = f" ({left:,} more groups in the report)" if left else ""
        console.print(Text(plain(title) + more, style="bold"), no_wrap=True, overflow="ellipsis")
        for row in some:
            change = Estimate(row.difference, row.low, row.high, 0, 0, row.status)
            cells[place][4] = draw_interval(change, _NO_CHANGE, scale, widths[4])
            mark = cells[place].pop()
            line = Text(_join(cells[place], widths) + "  ")
            console.print(line.append(mark, style=_STYLES.get(row.way, "dim")), no_wrap=True)
            place += 1
    same = [section.title for section in sections[1:] if not section.n_changed]
    if same:
        text = Text(plain(f"~ no change shown by {', '.join(same)}"))
        console.print(text, no_wrap=True, overflow="ellipsis")
    level = compared.audited.percent
    legend = f"━●━ change with {level} interval, │ no change, ~ none shown; worst first"
    console.print(Text(legend, style="dim"), no_wrap=True, overflow="ellipsis")
    return len(rows) + len(shown) + 2 + bool(same)


def _cells(row: Change, table: ChangeTable) -> list[str]:
    """Lay out a group's row; its interval is drawn when the widths are known."""
    unit = table.line.unit
    values = [value_text(x, unit) for x in (row.first, row.second)]
    change = value_text(row.difference, unit, sign=True, places=table.places)
    p = p_text(row.p_adjusted) if row.way not in _MARKS else ""
    mark = _MARKS.get(row.way, row.way)
    return [f"  {plain(row.group)}", *values, change, "", count(row.n_units), p, mark]


def _share_width(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Give each column what it needs; the name and the drawn interval share what is left."""
    from rich.cells import cell_len

    needs = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    room = width - sum(needs[1:]) - 2 * (len(needs) - 1)
    name = min(needs[0], max(room - _STRIP_WIDTH, _NAME_WIDTH))
    needs[0], needs[4] = name, min(max(room - name, _STRIP_WIDTH), _MAX_STRIP_WIDTH)
    return needs


def _join(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Put a row's cells into columns: the name to the left, numbers to the right."""
    from rich.cells import cell_len, set_cell_size

    parts = [set_cell_size(cut(cells[0], widths[0]), widths[0])]
    for cell, width in zip(cells[1:], widths[1:], strict=False):
        parts.append(" " * max(width - cell_len(cell), 0) + cell)
    return "  ".join(parts)


def _show_findings(
    console: Console, run: Run, compared: ComparisonSummary, answer: Sequence[str], room: int
) -> None:
    """Print findings that answer and tables do not show, and how many more the report has."""
    main = compared.overall[0].line if compared.overall else None
    rest, left = [], 0
    for row in run.findings.sort("rank", maintain_order=True).iter_rows(named=True):
        if row["claim"] in answer:
            continue
        of_main = main is not None and (row["metric"], row["label"]) == (main.metric, main.label)
        rest += [] if of_main and row["attribute"] is not None else [row["claim"]]
        left += 1
    shown = rest[: min(max(room // 2, _MIN_FINDINGS), _MAX_FINDINGS)]
    for claim in shown:
        console.print(f"• {plain(claim)}")
    if left := left - len(shown):
        console.print(f"… and {left:,} more finding{'s' if left > 1 else ''} in the report.")
