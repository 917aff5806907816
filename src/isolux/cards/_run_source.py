"""A finished run with its summary, and how a card writes what stands in one.

The summary is the report's own document, so a card and the report never disagree about a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from isolux.core.containers import Run
from isolux.report.document import AttributeSection, Estimate, GroupRow, LineTable, Summary
from isolux.report.summary import summarise_run
from isolux.report.wording import SHAPE
from isolux.statements.metric_lines import MetricLine
from isolux.statements.numbers import format_count, format_interval, format_with_unit

_FOLDER_PATTERN = re.compile(
    r"(?<![\w:/.~\\])(?:~|[A-Za-z]:(?=[\\/]))?(?:[\\/][^\s\\/:;,'\"<>|]+){2,}"
)
_MAX_AT_RISK = 10
"""Groups of one attribute that are named without being asked for, the worst first."""


def strip_absolute_folders(text: str) -> str:
    """Shorten absolute paths to their last part: a card reveals nothing of a machine.

    Examples
    --------
    >>> strip_absolute_folders("read /data/people/a.csv, n/a, https://a.org/b/c")
    'read a.csv, n/a, https://a.org/b/c'
    """
    return _FOLDER_PATTERN.sub(lambda path: re.split(r"[\\/]", path.group())[-1], text)


@dataclass(frozen=True, slots=True)
class RunSource:
    """A run, its summary, the name of its folder, and the SHA-256 of its record; empty: none."""

    run: Run
    summary: Summary
    name: str = ""
    sha256: str = ""


def build_run_source(run: Run, name: str = "", sha256: str = "") -> RunSource:
    """Summarise a run for its cards."""
    return RunSource(run, summarise_run(run), PurePath(name).name, sha256)


def find_significantly_worse_groups(section: AttributeSection, alpha: float) -> list[GroupRow]:
    """Choose the groups that are significantly worse than everyone, or else the worst one."""
    table = section.main
    sign = {"higher": -1.0, "lower": 1.0}.get(table.line.direction)

    def compute_harm(row: GroupRow) -> float:
        difference = row.difference or 0.0
        return abs(difference) if sign is None else sign * difference

    comparable_rows = [
        row for row in table.rows if row.estimate.is_comparable and not row.is_unknown
    ]
    significant = [
        row for row in comparable_rows if row.p_adjusted is not None and row.p_adjusted <= alpha
    ]
    worse_rows = sorted(
        (row for row in significant if compute_harm(row) > 0), key=compute_harm, reverse=True
    )
    worst = section.verdict.worst
    return worse_rows[:_MAX_AT_RISK] or ([worst] if worst is not None and sign is not None else [])


def list_line_tables(section: AttributeSection) -> list[LineTable]:
    """List the tables of all metrics of an attribute."""
    return [table for block in section.blocks for table in block.tables]


def choose_overall_tables(section: AttributeSection) -> list[LineTable]:
    """Choose the metrics of everyone; where all are of single classes, the main one."""
    tables = list_line_tables(section)
    return [table for table in tables if table.line.label is None] or tables[:1]


def format_status_and_reason(estimate: Estimate) -> str:
    """Say whether a value may be read as it stands, and what that rests on."""
    status = estimate.status
    words = f"{SHAPE.get(status, '')} {status}".strip()
    return f"{words}: {strip_absolute_folders(estimate.reason)}" if estimate.reason else words


def format_metric_line_key(line: MetricLine) -> str:
    """Format metric, class and threshold of a line as in the run's tables.

    Examples
    --------
    >>> line = MetricLine("m", "recall", "cook", 0.5, "", "", "", "fraction", "higher")
    >>> format_metric_line_key(line)
    'metric recall, label cook, threshold 0.5'
    """
    label = "" if line.label is None else f", label {line.label}"
    threshold = "" if line.threshold is None else f", threshold {line.threshold:g}"
    return f"metric {line.metric}{label}{threshold}"


def format_value_interval_n(estimate: Estimate | None, unit: str) -> str:
    """Format a value with its interval and n."""
    if estimate is None:
        return "–"
    interval_text = (
        format_interval(estimate.low, estimate.high, unit) if estimate.low is not None else ""
    )
    text = "; ".join(filter(None, (interval_text, f"n = {format_count(estimate.n_units)}")))
    if estimate.value is None:
        return f"{estimate.status} ({text})"
    return f"{format_with_unit(estimate.value, unit)} ({text})"
