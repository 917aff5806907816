"""Groups as lines of a terminal: value, interval in numbers and drawn, difference to everyone.

Each attribute has its rows, worst first: the leading one up to eight, every other its two worst.
All rows share one scale and one set of columns, so that any two can be compared at sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolux.cli.streams import as_printed
from isolux.cli.widths import cut, pad, shorten
from isolux.report.document import AttributeSection, Audited, Estimate, GroupRow, LineTable
from isolux.report.gaps import print_gaps
from isolux.statements.lines import Line
from isolux.statements.numbers import column_places, count, p_text, value_text
from isolux.vocabulary.printable import plain
from isolux.vocabulary.tables import Status
from isolux.vocabulary.words import numbered

if TYPE_CHECKING:
    import polars as pl
    from rich.text import Text

_LEADING_ROWS, _OTHER_ROWS, _OTHER_ATTRIBUTES = 8, 2, 2
_NAME_WIDTH, _STRIP_WIDTH, _MAX_STRIP_WIDTH = 16, 11, 30
_NOT_SHOWN, _FEW = "~", "too few"
_STYLES = {"worse": "bold red", "better": "cyan", "lower": "bold", "higher": "bold"}
_HEADS = ("", "", "", "", "n", "vs all", "p", "than all")
_FOOTNOTES = {
    "small": "too few to judge",
    "no value": "has no value",
    "doubt": "the interval may be too narrow",
}


@dataclass(frozen=True, slots=True)
class _Cells:
    """One row before its interval is drawn: texts, the estimate and the footnotes' names."""

    name: str
    value: str
    interval: str
    n: str
    difference: str
    p: str
    mark: str
    notes: tuple[str, ...]
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class _Part:
    """An attribute: title, rows, what is said of the other groups, or why there are no rows."""

    title: str
    rows: tuple[_Cells, ...] = ()
    beside: str = ""
    instead: str = ""


class GroupTables:
    """The tables of one metric, attribute by attribute, in columns that all of them share.

    Parameters
    ----------
    tables : sequence of (AttributeSection, LineTable)
        In the order of reading, the leading attribute first.
    audited : Audited
        The level of tests and intervals.
    disparities : polars.DataFrame
        Table ``disparities``: which groups differ from another one.
    width : int
        Columns of the screen.
    named : sequence of str
        Groups of the leading attribute that the answer names: they have a row.
    """

    def __init__(
        self,
        tables: Sequence[tuple[AttributeSection, LineTable]],
        audited: Audited,
        disparities: pl.DataFrame,
        width: int,
        named: Sequence[str] = (),
    ) -> None:
        self._audited, self._width = audited, width
        self._named = tuple(named)
        self._notes: dict[str, str] = {}
        self._line = tables[0][1].line
        self._overall = tables[0][1].overall
        self._worse_in_pairs = _find_worse_in_pairs(disparities, self._line, audited.alpha)
        rows = [row for _, table in tables for row in table.rows]
        self._places = column_places([row.estimate.value for row in rows], self._line.unit)
        self._gaps = self._format_gaps(rows)
        self._parts = [self._build_part(i, *pair) for i, pair in enumerate(tables)]
        cells = [row for part in self._parts for row in part.rows]
        self._scale = _find_scale([row.estimate for row in cells], self._overall)
        self._widths = self._share_width(cells)

    def build_lines(self, most: int) -> list[Text]:
        """Return at most so many lines (the leading attribute's are all there), and what explains.

        The leading attribute and the next two that differ are always there; others that do not
        fit are named and counted, as are those by which nothing is shown.
        """
        lines = self._build_rows(self._parts[0], is_first=True)
        left: list[str] = []
        for i, part in enumerate(part for part in self._parts[1:] if part.rows):
            rows = self._build_rows(part)
            if i >= _OTHER_ATTRIBUTES and len(lines) + len(rows) > most:
                left.append(part.title)
            else:
                lines += rows
        same = [part.title for part in self._parts[1:] if part.instead == _NOT_SHOWN]
        small = [part.title for part in self._parts[1:] if part.instead == _FEW]
        for text, titles, end in (
            (f"{_NOT_SHOWN} nothing shown by", same, f" in {plain(self._line.phrase)}"),
            ("too few people to compare by", small, ""),
            ("… also in the report:", left, ""),
        ):
            if titles:
                line = shorten(f"{text} {', '.join(titles)}", self._width - len(end))
                lines.append(line.append(end))
        return [*lines, *self._build_legend()]

    def _build_part(self, index: int, section: AttributeSection, table: LineTable) -> _Part:
        """Choose an attribute's rows and say in its title how many groups there are."""
        ordered = _sort_worst_first(table)
        cells = [
            self._build_cells(row, in_pair=(section.attribute, row.group) in self._worse_in_pairs)
            for row in ordered
        ]
        n, title = len(cells), as_printed(plain(section.title))
        if not index:
            chosen = self._choose_leading([row.group for row in ordered])
            left = [cell for i, cell in enumerate(cells) if i not in chosen]
            small = sum("small" in row.notes for row in left)
            beside = f"  … {numbered(len(left), 'more group')}" if left else ""
            beside += f", {small:,} of them too small to judge" if small else ""
            return _Part(title, tuple(cells[i] for i in chosen), beside)
        judged = [
            cell
            for cell, row in zip(cells, ordered, strict=True)
            if row.estimate.judged and not row.is_unknown
        ]
        if len(judged) < _OTHER_ROWS:
            return _Part(title, instead=_FEW)
        if all(cell.mark == _NOT_SHOWN and not cell.notes for cell in judged):
            return _Part(title, instead=_NOT_SHOWN)
        extreme = "lowest" if self._line.direction == "none" else "worst"
        beside = (
            f" ({numbered(n, 'group')}, the {_OTHER_ROWS} {extreme})" if n > _OTHER_ROWS else ""
        )
        return _Part(title, tuple(judged[:_OTHER_ROWS]), beside)

    def _choose_leading(self, groups: Sequence[str]) -> list[int]:
        """Choose the rows of the leading attribute: those that the answer names, then the worst."""
        named = [groups.index(name) for name in self._named if name in groups]
        return sorted(list(dict.fromkeys([*named, *range(len(groups))]))[:_LEADING_ROWS])

    def _build_cells(self, row: GroupRow, *, in_pair: bool) -> _Cells:
        estimate, line = row.estimate, self._line
        p, gap = row.p_adjusted, row.difference
        is_shown = p is not None and p <= self._audited.alpha and estimate.judged
        notes = _find_notes(estimate)
        notes += ["pair"] if row.mark == _NOT_SHOWN and in_pair else []
        is_marked = row.mark not in ("", _NOT_SHOWN)
        is_among_known = is_marked and not (is_shown and _agrees(row, line))
        notes += ["known"] if is_among_known else []
        is_shown = is_shown and row.mark != _NOT_SHOWN and not is_among_known
        return _Cells(
            name=as_printed(plain(row.group)),
            value=self._format_value(estimate),
            interval=self._format_interval(estimate),
            n=count(estimate.n_units),
            difference="" if gap is None and not estimate.judged else self._gaps[id(row)],
            p=p_text(p) if is_shown else "",
            mark=row.mark,
            notes=tuple(notes),
            estimate=estimate,
        )

    def _format_interval(self, estimate: Estimate) -> str:
        if estimate.low is None or estimate.high is None:
            return ""
        low, high = (
            value_text(end, self._line.unit, places=self._places)
            for end in (estimate.low, estimate.high)
        )
        return f"{low} to {high}" if estimate.low < 0 else f"{low}–{high}"

    def _format_value(self, estimate: Estimate | None) -> str:
        value = estimate.value if estimate else None
        return value_text(value, self._line.unit, places=self._places)

    def _format_gaps(self, rows: Sequence[GroupRow]) -> dict[int, str]:
        """Print each row's difference to everyone so that it is that of the printed values."""
        gaps = [(row.difference, None, None) for row in rows]
        everyone = self._format_value(self._overall)
        sides = [(self._format_value(row.estimate), everyone) for row in rows]
        texts = print_gaps(gaps, sides, self._line.unit, self._places)
        return {id(row): text for row, (text, _) in zip(rows, texts, strict=True)}

    def _share_width(self, cells: Sequence[_Cells]) -> list[int]:
        """Give each column what it needs; name and drawn interval share what is left."""
        from rich.cells import cell_len

        texts = [
            (c.value, c.interval, c.n, c.difference, c.p, c.mark + "¹²"[: len(c.notes)])
            for c in cells
        ]
        heads = ("", "", *_HEADS[4:])
        needs = [
            max([len(head), *(cell_len(row[i]) for row in texts)]) for i, head in enumerate(heads)
        ]
        room = self._width - sum(needs) - 2 * len(needs) - 2
        longest = max((cell_len(c.name) for c in cells), default=0) + 2
        name = min(longest, max(room - _STRIP_WIDTH, _NAME_WIDTH))
        strip = max(min(room - name, _MAX_STRIP_WIDTH), _STRIP_WIDTH)
        return [name, needs[0], needs[1], strip, *needs[2:]]

    def _build_rows(self, part: _Part, *, is_first: bool = False) -> list[Text]:
        from rich.cells import cell_len
        from rich.text import Text

        rows = [*map(self._build_row, part.rows)]
        if not is_first:
            title = cut(part.title, self._width - cell_len(part.beside))
            return [Text.assemble((title, "bold"), part.beside), *rows]
        rows += [Text(part.beside, style="dim")] if part.beside else []
        if cell_len(part.title) <= self._widths[0]:
            return [self._build_head(part.title), *rows]
        head = Text(cut(part.title, self._width), style="bold")
        return [head, self._build_head(""), *rows]

    def _build_head(self, title: str) -> Text:
        """Write the first table's title with the names of the columns."""
        from rich.text import Text

        name, value, interval, strip, *others = self._widths
        unit = "%" if self._line.unit == "fraction" else self._line.unit
        metric = plain(self._line.phrase + (f", {unit}" if unit else ""))
        span = value + interval + strip + 4
        cells = [pad(title, name), pad(cut(metric, span), span)]
        cells += [pad(head, width, right=True) for head, width in zip(_HEADS[4:7], others)]  # noqa: B905
        cells.append(_HEADS[7])
        return Text("  ".join(cells), style="bold")

    def _build_row(self, row: _Cells) -> Text:
        from rich.text import Text

        name, value, interval, strip, n, difference, p, _ = self._widths
        style = _STYLES.get(row.mark, "")
        drawn = draw_interval(row.estimate, self._overall, self._scale, strip)
        numbers = (
            pad(row.value, value, right=True),
            pad(row.interval, interval, right=True),
            drawn,
            pad(row.n, n, right=True),
            pad(row.difference, difference, right=True),
            pad(row.p, p, right=True),
        )
        marks = "".join(self._number_note(note, row.estimate.reason) for note in row.notes)
        return Text.assemble(
            pad("  " + cut(row.name, name - 2), name),
            "  ",
            "  ".join(numbers),
            "  ",
            (row.mark, style or "dim"),
            marks,
        )

    def _number_note(self, note: str, reason: str | None) -> str:
        self._notes.setdefault(note, reason or "")
        return "¹²³⁴"[list(self._notes).index(note)]

    def _build_legend(self) -> list[Text]:
        adjusted = "" if self._audited.adjusted == "unadjusted" else " adjusted"
        level = self._audited.percent
        legend = f"━●━ {level} interval, │ everyone, p{adjusted or ' unadjusted'}, "
        lines = [f"{legend}{_NOT_SHOWN} no difference to everyone shown"]
        notes = enumerate(self._notes.items())
        lines += [f"{'¹²³⁴'[i]} {self._explain(*note)}" for i, note in notes]
        return [_text(line, self._width) for line in lines]

    def _explain(self, note: str, reason: str) -> str:
        if note == "pair":
            better = "higher" if self._line.direction == "none" else "better"
            return f"shown to differ from a {better} group, not from everyone"
        if note == "known":
            return "compared with other known groups: everyone includes people of unknown value"
        more = f": {reason}" if reason else ""
        return f"{_FOOTNOTES[note]}{more}"


def draw_interval(
    estimate: Estimate, overall: Estimate | None, scale: tuple[float, float], width: int
) -> str:
    """Draw an interval on a scale, with the value of everyone.

    Examples
    --------
    >>> estimate = Estimate(0.4, 0.2, 0.6, 50, 50, "ok")
    >>> draw_interval(estimate, Estimate(0.8, None, None, 99, 99, "ok"), (0.0, 1.0), 11)
    '··━━●━━·│··'
    """
    low, high = scale

    def position(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return min(max(round(share * (width - 1)), 0), width - 1)

    if estimate.value is None:
        return " " * width
    cells = ["·"] * width
    if estimate.low is not None and estimate.high is not None and estimate.judged:
        for i in range(position(estimate.low), position(estimate.high) + 1):
            cells[i] = "━"
    if overall is not None and overall.value is not None:
        at = position(overall.value)
        cells[at] = "┿" if cells[at] == "━" else "│"
    cells[position(estimate.value)] = "●"
    return "".join(cells)


def _text(line: str, width: int) -> Text:
    text = shorten(plain(line), width)
    text.stylize("dim")
    return text


def _find_notes(estimate: Estimate) -> list[str]:
    """Name the footnote of an estimate that may not be read as it stands."""
    if estimate.judged:
        return [] if estimate.status == Status.OK else ["doubt"]
    small = (Status.INSUFFICIENT_UNITS, Status.INSUFFICIENT_CLUSTERS)
    return ["small" if estimate.status in small else "no value"]


def _agrees(row: GroupRow, line: Line) -> bool:
    """Tell whether a group's mark says the same as its difference to everyone."""
    is_low = (row.difference or 0.0) < 0
    return (row.mark in ("worse", "lower")) == (is_low != (line.direction == "lower"))


def _sort_worst_first(table: LineTable) -> list[GroupRow]:
    """Put judged known groups first, the worst before all; then the unknown, then small ones."""
    sign = -1.0 if table.line.direction == "lower" else 1.0
    return sorted(
        table.rows,
        key=lambda row: (
            not row.estimate.judged,
            row.is_unknown,
            row.estimate.value is None,
            sign * (row.estimate.value or 0.0),
            row.group,
        ),
    )


def _find_worse_in_pairs(
    disparities: pl.DataFrame, line: Line, alpha: float
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
    worse = pl.when(is_a).then("group_a").otherwise("group_b")
    return set(pairs.select("attribute", worse).rows())


def _find_scale(estimates: Iterable[Estimate], overall: Estimate | None) -> tuple[float, float]:
    """Return the ends of the scale that all judged intervals fit in."""
    judged = [e for e in (*estimates, *filter(None, [overall])) if e.judged]
    ends = [x for e in judged for x in (e.low, e.value, e.high) if x is not None]
    return (min(ends), max(ends)) if ends else (0.0, 1.0)
