"""Groups as lines of a terminal: value, interval in numbers and drawn, difference to everyone.

Each attribute has its rows, worst first: the leading one up to eight, every other its two worst.
All rows share one scale and one set of columns, so that any two can be compared at sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolux.cli.streams import to_terminal_encoding
from isolux.cli.text_widths import cut_end_to_width, cut_middle_to_width, pad_to_width
from isolux.core.formatting import pluralise
from isolux.core.printable import clean_line
from isolux.core.tables import Status
from isolux.report.document import AttributeSection, AuditSubject, Estimate, GroupRow, LineTable
from isolux.report.gaps import format_gaps_and_intervals
from isolux.statements.metric_lines import MetricLine
from isolux.statements.numbers import (
    choose_column_decimals,
    format_bare_value,
    format_count,
    format_p_value,
)

if TYPE_CHECKING:
    import polars as pl
    from rich.text import Text

_MAX_LEADING_ROWS, _MAX_OTHER_ROWS, _MIN_OTHER_ATTRIBUTES = 8, 2, 2
_MIN_NAME_WIDTH, _MIN_STRIP_WIDTH, _MAX_STRIP_WIDTH = 16, 11, 30
_NOT_SHOWN, _TOO_FEW = "~", "too few"
_STYLES = {"worse": "bold red", "better": "cyan", "lower": "bold", "higher": "bold"}
_HEADINGS = ("", "", "", "", "n", "vs all", "p", "than all")
_FOOTNOTES = {
    "small": "too few to judge",
    "no value": "has no value",
    "doubt": "read with caution",
}


@dataclass(frozen=True, slots=True)
class _Cells:
    """One row before its interval is drawn: texts, the estimate and the footnotes' names."""

    name: str
    value_text: str
    interval: str
    n: str
    difference: str
    p: str
    mark: str
    notes: tuple[str, ...]
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class _AttributeRows:
    """An attribute: title, rows, a suffix about omitted groups, or why there are no rows."""

    title: str
    rows: tuple[_Cells, ...] = ()
    suffix: str = ""
    omitted_because: str = ""


class GroupTables:
    """The tables of one metric, attribute by attribute, in columns that all of them share.

    Parameters
    ----------
    tables : sequence of (AttributeSection, LineTable)
        In the order of reading, the leading attribute first.
    audited : AuditSubject
        The level of tests and intervals.
    disparities : polars.DataFrame
        Table ``disparities``: which groups differ from another one.
    width : int
        Columns of the screen.
    named_groups : sequence of str
        Groups of the leading attribute that the answer names: they have a row.
    """

    def __init__(
        self,
        tables: Sequence[tuple[AttributeSection, LineTable]],
        audited: AuditSubject,
        disparities: pl.DataFrame,
        width: int,
        named_groups: Sequence[str] = (),
    ) -> None:
        self._audited, self._width = audited, width
        self._named_groups = tuple(named_groups)
        self._notes: dict[str, str] = {}
        self._line = tables[0][1].line
        self._overall = tables[0][1].overall
        self._worse_in_pairs = _find_groups_worse_in_pairs(disparities, self._line, audited.alpha)
        rows = [row for _, table in tables for row in table.rows]
        self._places = choose_column_decimals([row.estimate.value for row in rows], self._line.unit)
        self._gaps = self._format_gaps(rows)
        self._attribute_rows = [
            self._build_attribute_rows(i, *pair) for i, pair in enumerate(tables)
        ]
        cells = [row for attribute_rows in self._attribute_rows for row in attribute_rows.rows]
        self._scale = _compute_interval_scale([row.estimate for row in cells], self._overall)
        self._widths = self._fit_column_widths(cells)

    def build_lines(self, max_lines: int) -> list[Text]:
        """Return at most so many lines (the leading attribute's are all there), and what explains.

        The leading attribute and the next two that differ are always there; others that do not
        fit are named and counted, as are those by which nothing is shown.
        """
        lines = self._build_attribute_lines(self._attribute_rows[0], is_first=True)
        omitted_titles: list[str] = []
        for i, attribute_rows in enumerate(
            attribute_rows for attribute_rows in self._attribute_rows[1:] if attribute_rows.rows
        ):
            rows = self._build_attribute_lines(attribute_rows)
            if i >= _MIN_OTHER_ATTRIBUTES and len(lines) + len(rows) > max_lines:
                omitted_titles.append(attribute_rows.title)
            else:
                lines += rows
        no_difference = [
            attribute_rows.title
            for attribute_rows in self._attribute_rows[1:]
            if attribute_rows.omitted_because == _NOT_SHOWN
        ]
        too_few = [
            attribute_rows.title
            for attribute_rows in self._attribute_rows[1:]
            if attribute_rows.omitted_because == _TOO_FEW
        ]
        for text, titles, suffix in (
            (
                f"{_NOT_SHOWN} nothing shown by",
                no_difference,
                f" in {clean_line(self._line.phrase)}",
            ),
            ("too few people to compare by", too_few, ""),
            ("… also in the report:", omitted_titles, ""),
        ):
            if titles:
                line = cut_end_to_width(f"{text} {', '.join(titles)}", self._width - len(suffix))
                lines.append(line.append(suffix))
        return [*lines, *self._build_legend_lines()]

    def _build_attribute_rows(
        self, index: int, section: AttributeSection, table: LineTable
    ) -> _AttributeRows:
        """Choose an attribute's rows and say in its title how many groups there are."""
        sorted_rows = _sort_groups_worst_first(table)
        cells = [
            self._build_group_cells(
                row, in_pair=(section.attribute, row.group) in self._worse_in_pairs
            )
            for row in sorted_rows
        ]
        n, title = len(cells), to_terminal_encoding(clean_line(section.title))
        if not index:
            shown_indexes = self._choose_leading_rows([row.group for row in sorted_rows])
            omitted_cells = [cell for i, cell in enumerate(cells) if i not in shown_indexes]
            n_small = sum("small" in row.notes for row in omitted_cells)
            suffix = f"  … {pluralise(len(omitted_cells), 'more group')}" if omitted_cells else ""
            suffix += f", {n_small:,} of them too small to judge" if n_small else ""
            return _AttributeRows(title, tuple(cells[i] for i in shown_indexes), suffix)
        comparable_cells = [
            cell
            for cell, row in zip(cells, sorted_rows, strict=True)
            if row.estimate.is_comparable and not row.is_unknown
        ]
        if len(comparable_cells) < _MAX_OTHER_ROWS:
            return _AttributeRows(title, omitted_because=_TOO_FEW)
        if all(cell.mark == _NOT_SHOWN and not cell.notes for cell in comparable_cells):
            return _AttributeRows(title, omitted_because=_NOT_SHOWN)
        extreme = "lowest" if self._line.direction == "none" else "worst"
        suffix = (
            f" ({pluralise(n, 'group')}, the {_MAX_OTHER_ROWS} {extreme})"
            if n > _MAX_OTHER_ROWS
            else ""
        )
        return _AttributeRows(title, tuple(comparable_cells[:_MAX_OTHER_ROWS]), suffix)

    def _choose_leading_rows(self, groups: Sequence[str]) -> list[int]:
        """Choose the leading attribute's rows: groups named in the answer, then the worst."""
        named_indexes = [groups.index(name) for name in self._named_groups if name in groups]
        return sorted(
            list(dict.fromkeys([*named_indexes, *range(len(groups))]))[:_MAX_LEADING_ROWS]
        )

    def _build_group_cells(self, row: GroupRow, *, in_pair: bool) -> _Cells:
        estimate, line = row.estimate, self._line
        p, gap = row.p_adjusted, row.difference
        is_shown = p is not None and p <= self._audited.alpha and estimate.is_comparable
        notes = _list_footnotes(estimate)
        notes += ["pair"] if row.mark == _NOT_SHOWN and in_pair else []
        is_marked = row.mark not in ("", _NOT_SHOWN)
        is_among_known = is_marked and not (is_shown and _has_consistent_mark(row, line))
        notes += ["known"] if is_among_known else []
        is_shown = is_shown and row.mark != _NOT_SHOWN and not is_among_known
        return _Cells(
            name=to_terminal_encoding(clean_line(row.group)),
            value_text=self._format_value(estimate),
            interval=self._format_interval(estimate),
            n=format_count(estimate.n_units),
            difference="" if gap is None and not estimate.is_comparable else self._gaps[id(row)],
            p=format_p_value(p) if is_shown else "",
            mark=row.mark,
            notes=tuple(notes),
            estimate=estimate,
        )

    def _format_interval(self, estimate: Estimate) -> str:
        if estimate.low is None or estimate.high is None:
            return ""
        low, high = (
            format_bare_value(end, self._line.unit, n_decimals=self._places)
            for end in (estimate.low, estimate.high)
        )
        return f"{low} to {high}" if estimate.low < 0 else f"{low}–{high}"

    def _format_value(self, estimate: Estimate | None) -> str:
        number = estimate.value if estimate else None
        return format_bare_value(number, self._line.unit, n_decimals=self._places)

    def _format_gaps(self, rows: Sequence[GroupRow]) -> dict[int, str]:
        """Format each row's difference to everyone, consistent with the printed values."""
        gaps = [(row.difference, None, None) for row in rows]
        overall_text = self._format_value(self._overall)
        value_pairs = [(self._format_value(row.estimate), overall_text) for row in rows]
        texts = format_gaps_and_intervals(gaps, value_pairs, self._line.unit, self._places)
        return {id(row): text for row, (text, _) in zip(rows, texts, strict=True)}

    def _fit_column_widths(self, cells: Sequence[_Cells]) -> list[int]:
        """Fit column widths; name and drawn interval share the remaining width."""
        from rich.cells import cell_len

        texts = [
            (c.value_text, c.interval, c.n, c.difference, c.p, c.mark + "¹²"[: len(c.notes)])
            for c in cells
        ]
        headings = ("", "", *_HEADINGS[4:])
        needed_widths = [
            max([len(heading), *(cell_len(row[i]) for row in texts)])
            for i, heading in enumerate(headings)
        ]
        remaining_width = self._width - sum(needed_widths) - 2 * len(needed_widths) - 2
        longest_name = max((cell_len(c.name) for c in cells), default=0) + 2
        name = min(longest_name, max(remaining_width - _MIN_STRIP_WIDTH, _MIN_NAME_WIDTH))
        strip_width = max(min(remaining_width - name, _MAX_STRIP_WIDTH), _MIN_STRIP_WIDTH)
        return [name, needed_widths[0], needed_widths[1], strip_width, *needed_widths[2:]]

    def _build_attribute_lines(
        self, attribute_rows: _AttributeRows, *, is_first: bool = False
    ) -> list[Text]:
        from rich.cells import cell_len
        from rich.text import Text

        rows = [*map(self._build_row_line, attribute_rows.rows)]
        if not is_first:
            title = cut_middle_to_width(
                attribute_rows.title, self._width - cell_len(attribute_rows.suffix)
            )
            return [Text.assemble((title, "bold"), attribute_rows.suffix), *rows]
        rows += [Text(attribute_rows.suffix, style="dim")] if attribute_rows.suffix else []
        if cell_len(attribute_rows.title) <= self._widths[0]:
            return [self._build_header_line(attribute_rows.title), *rows]
        head = Text(cut_middle_to_width(attribute_rows.title, self._width), style="bold")
        return [head, self._build_header_line(""), *rows]

    def _build_header_line(self, title: str) -> Text:
        """Write the first table's title with the names of the columns."""
        from rich.text import Text

        name_width, value_width, interval_width, strip_width, *other_widths = self._widths
        unit = "%" if self._line.unit == "fraction" else self._line.unit
        metric = clean_line(self._line.phrase + (f", {unit}" if unit else ""))
        span = value_width + interval_width + strip_width + 4
        cells = [
            pad_to_width(title, name_width),
            pad_to_width(cut_middle_to_width(metric, span), span),
        ]
        cells += [
            pad_to_width(head, width, is_right_aligned=True)
            for head, width in zip(_HEADINGS[4:7], other_widths, strict=False)
        ]
        cells.append(_HEADINGS[7])
        return Text("  ".join(cells), style="bold")

    def _build_row_line(self, row: _Cells) -> Text:
        from rich.text import Text

        name_width, value_width, interval, strip_width, n, difference, p, _ = self._widths
        style = _STYLES.get(row.mark, "")
        strip_text = draw_interval_bar(row.estimate, self._overall, self._scale, strip_width)
        numbers = (
            pad_to_width(row.value_text, value_width, is_right_aligned=True),
            pad_to_width(row.interval, interval, is_right_aligned=True),
            strip_text,
            pad_to_width(row.n, n, is_right_aligned=True),
            pad_to_width(row.difference, difference, is_right_aligned=True),
            pad_to_width(row.p, p, is_right_aligned=True),
        )
        marks = "".join(
            self._assign_footnote_number(note, row.estimate.reason) for note in row.notes
        )
        return Text.assemble(
            pad_to_width("  " + cut_middle_to_width(row.name, name_width - 2), name_width),
            "  ",
            "  ".join(numbers),
            "  ",
            (row.mark, style or "dim"),
            marks,
        )

    def _assign_footnote_number(self, note: str, reason: str | None) -> str:
        self._notes.setdefault(note, reason or "")
        return "¹²³⁴"[list(self._notes).index(note)]

    def _build_legend_lines(self) -> list[Text]:
        adjusted_text = "" if self._audited.adjusted == "unadjusted" else " adjusted"
        level = self._audited.percent
        legend = f"━●━ {level} interval, │ overall, p{adjusted_text or ' unadjusted'}, "
        lines = [f"{legend}{_NOT_SHOWN} no difference to overall shown"]
        notes = enumerate(self._notes.items())
        lines += [f"{'¹²³⁴'[i]} {self._explain_footnote(*note)}" for i, note in notes]
        return [_style_group_line(line, self._width) for line in lines]

    def _explain_footnote(self, note: str, reason: str) -> str:
        if note == "pair":
            better = "higher" if self._line.direction == "none" else "better"
            return f"shown to differ from a {better} group, not from overall"
        if note == "known":
            return "compared with other known groups: overall includes people of unknown value"
        suffix = f": {reason}" if reason else ""
        return f"{_FOOTNOTES[note]}{suffix}"


def draw_interval_bar(
    estimate: Estimate, overall: Estimate | None, scale: tuple[float, float], width: int
) -> str:
    """Draw an interval on a scale, with the value of everyone.

    Examples
    --------
    >>> estimate = Estimate(0.4, 0.2, 0.6, 50, 50, "ok")
    >>> draw_interval_bar(estimate, Estimate(0.8, None, None, 99, 99, "ok"), (0.0, 1.0), 11)
    '··━━●━━·│··'
    """
    low, high = scale

    def to_column(number: float) -> int:
        share = (number - low) / (high - low) if high > low else 0.5
        return min(max(round(share * (width - 1)), 0), width - 1)

    if estimate.value is None:
        return " " * width
    cells = ["·"] * width
    if estimate.low is not None and estimate.high is not None and estimate.is_comparable:
        for i in range(to_column(estimate.low), to_column(estimate.high) + 1):
            cells[i] = "━"
    if overall is not None and overall.value is not None:
        overall_index = to_column(overall.value)
        cells[overall_index] = "┿" if cells[overall_index] == "━" else "│"
    cells[to_column(estimate.value)] = "●"
    return "".join(cells)


def _style_group_line(line: str, width: int) -> Text:
    text = cut_end_to_width(clean_line(line), width)
    text.stylize("dim")
    return text


def _list_footnotes(estimate: Estimate) -> list[str]:
    """Name the footnote of an estimate that may not be read as it stands."""
    if estimate.is_comparable:
        return [] if estimate.status == Status.OK else ["doubt"]
    small_statuses = (Status.INSUFFICIENT_UNITS, Status.INSUFFICIENT_CLUSTERS)
    return ["small" if estimate.status in small_statuses else "no value"]


def _has_consistent_mark(row: GroupRow, line: MetricLine) -> bool:
    """Return whether a group's mark agrees with its difference to everyone."""
    is_low = (row.difference or 0.0) < 0
    return (row.mark in ("worse", "lower")) == (is_low != (line.direction == "lower"))


def _sort_groups_worst_first(table: LineTable) -> list[GroupRow]:
    """Sort groups: comparable known ones first, worst first; then unknown, then small ones."""
    sign = -1.0 if table.line.direction == "lower" else 1.0
    return sorted(
        table.rows,
        key=lambda row: (
            not row.estimate.is_comparable,
            row.is_unknown,
            row.estimate.value is None,
            sign * (row.estimate.value or 0.0),
            row.group,
        ),
    )


def _find_groups_worse_in_pairs(
    disparities: pl.DataFrame, line: MetricLine, alpha: float
) -> set[tuple[str, str]]:
    """Name attributes and groups that are shown to be worse (or lower) than another group."""
    import polars as pl

    is_a = pl.col("value") > 0 if line.direction == "lower" else pl.col("value") < 0
    keys = ("model", "metric", "label", "threshold")
    pairs = disparities.filter(
        pl.col("kind") == "difference",
        pl.col("p_adjusted") <= alpha,
        *(pl.col(name).eq_missing(getattr(line, name)) for name in keys),
    )
    worse_group = pl.when(is_a).then("group_a").otherwise("group_b")
    return set(pairs.select("attribute", worse_group).rows())


def _compute_interval_scale(
    estimates: Iterable[Estimate], overall: Estimate | None
) -> tuple[float, float]:
    """Return the range of the scale that all comparable intervals fit in."""
    comparable_estimates = [e for e in (*estimates, *filter(None, [overall])) if e.is_comparable]
    values = [x for e in comparable_estimates for x in (e.low, e.value, e.high) if x is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)
