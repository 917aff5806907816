"""The screen of a finished audit: what it answers, the groups as a table, a few findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli import command_output
from isolux.cli.analysis_tables import print_analysis_tables
from isolux.cli.streams import build_rich_console, to_terminal_encoding
from isolux.cli.table_output import add_run_to_json, print_missing_figures_hint, print_paper_tables
from isolux.core.containers import Run
from isolux.core.formatting import pluralise, shorten_name
from isolux.core.printable import clean_line
from isolux.core.survey_sample import describe_survey_sample

if TYPE_CHECKING:
    from rich.text import Text

    from isolux.report.document import AttributeSection, LineTable, Summary
    from isolux.statements.answer import Answer
    from isolux.statements.metric_lines import MetricLine

_MAX_LINES, _MIN_TAIL_LINES = (
    32,
    8,
)  # lines of a screen of 80 columns; at least so many below the tables
_LINE_KEY = ("model", "metric", "label", "threshold")
_MAX_WARNINGS, _MAX_FURTHER = 3, 3  # printed whole
_MAX_OVERALL = 12  # values of everyone, where there are no groups
_MIN_FINDINGS, _MAX_FINDINGS, _MAX_FINDING_LINES = 2, 5, 3
_MAX_ANALYSIS_FINDINGS = 6  # findings of a requested analysis


def print_audit(
    run: Run,
    report: Path | None,
    *,
    requested_analyses: Sequence[str] = (),
    default_out: str | None = None,
    notes: bool | None = None,
) -> None:
    """Print what an audit answers, its groups, the first findings, and the report's path.

    Parameters
    ----------
    run : Run
    report : Path or None
        The page that was written.
    requested_analyses : sequence of str
        Analyses that were asked for just now: their findings are printed, and of the others how
        many there are.
    default_out : str, optional
        The folder that was chosen where none was named.
    notes : bool, optional
        Whether every note is printed, and every warning whole; None: the command has no such flag.
    """
    from isolux.statements.answer import Answer, answer_from_run

    is_comparison = "models" in run.record
    answer = Answer("", "") if is_comparison else answer_from_run(run)
    if command_output.is_json_active():
        _add_audit_to_json(run, answer, report)
        print_analysis_tables(run, requested_analyses or tuple(run.record.get("explained") or ()))
        return
    console = build_rich_console()
    lines = (
        []
        if is_comparison
        else build_answer_lines(
            run, answer, console.width, notes=notes, leading_only=bool(requested_analyses)
        )
    )
    n_lines_left = _MAX_LINES - len(lines)
    lines += _build_finding_lines(run, answer, requested_analyses, console.width, n_lines_left)
    print_lines([*lines, *_build_note_lines(run, console.width, notes=notes)])
    print_analysis_tables(run, requested_analyses)
    print_paper_tables(run)
    if report is not None:
        console.print(f"report: {clean_line(str(report))}", soft_wrap=True)
        print_missing_figures_hint(f"isolux report {report.parent}")
    if default_out is not None:
        text = f"everything is in {default_out}, as no --out DIR was given"
        console.print(clean_line(text), soft_wrap=True)


def build_answer_lines(
    run: Run,
    answer: Answer,
    width: int,
    *,
    notes: bool | None = None,
    leading_only: bool = False,
) -> list[Text]:
    """Build the lines of cautions, the answer and the groups of a finished audit.

    ``leading_only``: the first sentence and the leading attribute alone.
    """
    from rich.text import Text

    from isolux.cli.group_table import GroupTables
    from isolux.report.summary import summarise_run

    summary = summarise_run(run)
    lines = _build_caution_lines(run, summary, width, notes=bool(notes))
    if answer.accounting:
        lines += wrap_text(answer.accounting, width)
    lines += wrap_text(answer.first, width, "bold")
    for sentence in () if leading_only else answer.further:
        lines += wrap_text(sentence, width)
    lines += [Text(""), *wrap_text(_format_headline(run, summary, answer.line), width)]
    tables = _choose_leading_metric_tables(summary, answer)
    if not summary.sections:
        lines += _build_overall_lines(summary, width)
    if tables:
        tables = tables[:1] if leading_only else tables
        max_lines = _MAX_LINES - _MIN_TAIL_LINES - len(lines)
        group_tables = GroupTables(
            tables, summary.audited, run.disparities, width, named_groups=summary.leading_groups
        )
        lines += group_tables.build_lines(max_lines)
    return [*lines, Text("")]


def _build_caution_lines(run: Run, summary: Summary, width: int, *, notes: bool) -> list[Text]:
    """Build the lines that must be read before the numbers.

    Each warning of the run could change who leads, so none is left out: three are whole, of each
    other one the beginning is there. Cautions that only say how to read the numbers are counted.
    """
    warnings = [f"WARNING: {text}" for text in run.record.get("warnings") or ()]
    cautions = [f"{caution.headline} {caution.text}" for caution in summary.cautions]
    cautions += [text for text in (describe_survey_sample(run.record),) if text]
    max_whole = len(warnings) + len(cautions) if notes else _MAX_WARNINGS
    lines = [line for text in warnings[:max_whole] for line in wrap_text(text, width, "bold")]
    for text in warnings[max_whole:]:
        lines += wrap_text(text, width, "bold", max_lines=1)
    n_cautions_shown = max(max_whole - len(warnings), 0)
    for text in cautions[:n_cautions_shown]:
        lines += wrap_text(text, width, max_lines=None if notes else _MAX_FINDING_LINES)
    if n_remaining := len(cautions[n_cautions_shown:]):
        lines += wrap_text(f"{pluralise(n_remaining, 'more caution')} in the report", width, "dim")
    return lines


def _format_headline(run: Run, summary: Summary, key: Mapping[str, Any] | None) -> str:
    """Format what was audited, on whom, and the overall value of the leading metric."""
    from isolux.statements.metric_lines import format_line_value

    audited = summary.audited
    target_text = f" of {audited.target}" if audited.target else ""
    noun = str((run.record.get("accounting") or {}).get("unit") or "units")
    people = f"{audited.n_units:,} {noun}{audited.clustering}"
    segments = [shorten_name(audited.model), f"{audited.task}{target_text}", people]
    for line, e in summary.overall if summary.sections else ():
        if key is None or _matches_line_key(line, key):
            segments.append(format_line_value(line, e.value, e.low, e.high))
            break
    return " · ".join(segments)


def _build_overall_lines(summary: Summary, width: int) -> list[Text]:
    """Build the lines of everyone's metrics, where there are no groups."""
    from isolux.statements.metric_lines import format_line_value

    lines = wrap_text(f"Everyone, with {summary.audited.percent} intervals:", width)
    for line, e in summary.overall[:_MAX_OVERALL]:
        reason_text = "" if e.reason is None else f": {e.reason}"
        text = f"{format_line_value(line, e.value, e.low, e.high)}, n = {e.n_units:,}{reason_text}"
        lines += wrap_text(f"  {text}", width)
    if n_more := len(summary.overall[_MAX_OVERALL:]):
        lines += wrap_text(f"  … and {pluralise(n_more, 'more value')} in the report", width)
    return lines


def _choose_leading_metric_tables(
    summary: Summary, answer: Answer
) -> list[tuple[AttributeSection, LineTable]]:
    """Return each attribute's table of the leading metric, in reading order."""
    sections = {section.attribute: section for section in summary.sections}
    ordered_sections = [sections[name] for name in answer.attributes if name in sections]
    ordered_sections += [s for s in summary.sections if s.attribute not in answer.attributes]
    return [
        (section, table)
        for section in ordered_sections
        for block in section.blocks
        for table in block.tables
        if answer.line is not None and _matches_line_key(table.line, answer.line)
    ]


def _matches_line_key(line: MetricLine, key: Mapping[str, Any]) -> bool:
    return all(getattr(line, name) == key[name] for name in _LINE_KEY)


def _build_finding_lines(
    run: Run, answer: Answer, requested_analyses: Sequence[str], width: int, n_lines_left: int
) -> list[Text]:
    """Build the lines of findings that the tables do not show, and how many more there are."""
    from isolux.statements.answer import drop_findings_in_answer

    requested_names = tuple(
        requested_analyses or (run.record.get("spec") or {}).get("explain") or ()
    )
    findings = run.findings.sort("rank", maintain_order=True)
    is_requested = findings["analysis"].is_in(requested_names)
    other_findings = drop_findings_in_answer(findings.filter(~is_requested), answer)
    paragraphs = [
        wrap_text(f"• {claim}", width, max_lines=_MAX_FINDING_LINES)
        for claim in other_findings["claim"].head(0 if requested_analyses else _MAX_FINDINGS)
    ]
    while (
        len(paragraphs) > _MIN_FINDINGS
        and sum(map(len, paragraphs)) > n_lines_left - _MIN_TAIL_LINES
    ):
        paragraphs.pop()
    n_shown = len(paragraphs)
    for name in dict.fromkeys(requested_names):
        claims = findings.filter(analysis=name)["claim"].head(_MAX_ANALYSIS_FINDINGS)
        paragraphs += [wrap_text(f"• {claim}", width) for claim in claims]
        n_shown += len(claims)
    n_remaining = other_findings.height + int(is_requested.sum()) - n_shown
    if n_remaining:
        paragraphs.append(
            wrap_text(f"… and {pluralise(n_remaining, 'more finding')} in the report.", width)
        )
    if not findings.height and run.group_metrics["attribute"].is_not_null().any():
        paragraphs.append(wrap_text(_explain_no_findings(run), width))
    return [line for paragraph in paragraphs for line in paragraph]


def _explain_no_findings(run: Run) -> str:
    """Explain that nothing could be compared, with the most frequent reason."""
    rows = run.group_metrics.drop_nulls("attribute")
    counts = rows["reason"].drop_nulls().value_counts(name="n")
    text = "No finding: nothing could be compared."
    if counts.is_empty():
        return text
    reason, n = counts.sort("n", "reason", descending=[True, False]).row(0)
    return f"{text} Of {n:,} of {rows.height:,} numbers of groups: {reason}."


def _add_audit_to_json(run: Run, answer: Answer, report: Path | None) -> None:
    """Add everything to the JSON document: what a screen shows, and all numbers."""
    add_run_to_json(run, asdict(answer) if answer.first else None, report)
    print_paper_tables(run)


def _build_note_lines(run: Run, width: int, *, notes: bool | None) -> list[Text]:
    """Build the line with the number of notes, or all notes."""
    texts = [f"note: {text}" for text in run.record.get("notes") or ()]
    if texts and not notes:
        location = "in the report" if notes is None else "--notes prints them"
        texts = [f"{pluralise(len(texts), 'note')}: {location}"]
    return [line for text in texts for line in wrap_text(text, width, "dim")]


def wrap_text(
    text: str, width: int, style: str = "", *, max_lines: int | None = None
) -> list[Text]:
    """Break a text into lines of a screen; of more than ``max_lines`` lines the end is cut off."""
    from rich.text import Text

    full_text = Text(to_terminal_encoding(clean_line(text)), style=style)
    ellipsis = to_terminal_encoding(" …")
    lines = list(full_text.wrap(build_rich_console(), width))
    if is_long := max_lines is not None and len(lines) > max_lines:
        lines = list(full_text.wrap(build_rich_console(), width - len(ellipsis)))[:max_lines]
    for line in lines:
        line.rstrip()
    if is_long:
        lines[-1].append(ellipsis)
    return lines


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines that are as wide as the screen at most."""
    console = build_rich_console()
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
