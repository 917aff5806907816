"""What a notebook shows of a dataset, a run and its findings: HTML, warnings before all else.

Every text is escaped: a group's name or a file's may hold anything. No person is shown, by id or by
row. Colours are the notebook's own, so that dark pages stay dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.core.notes import split_cautions_from_notes
from isolux.core.survey_sample import describe_survey_sample

if TYPE_CHECKING:
    from isolux.core.containers import Dataset, Run

_MAX_CLAIMS, _MAX_GROUP_ROWS, _MAX_ATTRIBUTES, _MAX_VALUES, _MAX_NOTES, _MIN_UNITS_PER_VALUE = (
    8,
    12,
    20,
    4,
    5,
    10,
)
_WARNING = "border-left:4px solid currentColor;padding:.2em .6em;margin:.3em 0;font-weight:bold"
_CELL = "text-align:left;padding:.15em .8em .15em 0"


class FindingsFrame(pl.DataFrame):
    """The table ``findings``, which a notebook shows as sentences, the run's warnings first.

    A polars frame in all else; what a method of it gives is a plain one.

    Parameters
    ----------
    findings : polars.DataFrame
        Table ``findings``.
    record : mapping
        The run's record, with its ``warnings``.
    """

    _first: tuple[str, ...] | None = None

    def __init__(self, findings: pl.DataFrame, record: Mapping[str, Any]) -> None:
        super().__init__(findings)
        self._first = tuple(str(text) for text in record.get("warnings") or ())

    def _repr_html_(self, *, _from_series: bool = False) -> str:
        # A part of it, as head() makes one, has no warnings: a table of data, as any frame's.
        if self._first is None:
            return super()._repr_html_(_from_series=_from_series)
        return build_findings_html(self, self._first)


def build_findings_html(findings: pl.DataFrame, warnings: Sequence[str] = ()) -> str:
    """Show claims in the order in which to read them.

    Examples
    --------
    >>> import polars as pl
    >>> shown = build_findings_html(
    ...     pl.DataFrame({"rank": [1], "claim": ["a < b"]}),
    ...     ["Look & see."],
    ... )
    >>> "WARNING: Look &amp; see." in shown, "a &lt; b" in shown
    (True, True)
    """
    return _wrap_in_html_block(
        *_build_warning_paragraphs(warnings), _build_claim_list(findings, findings.height)
    )


def build_run_html(run: Run, figure: str = "") -> str:
    """Show what was audited, its warnings, groups by the first metric, and the first findings.

    ``figure`` is markup, such as an ``<svg>`` whose texts are escaped.
    """
    record = run.record
    spec, clusters = record.get("spec") or {}, record.get("clusters") or {}
    dataset_title = (record.get("dataset") or {}).get("title")
    subtitle_parts = [f" on {dataset_title}"] if dataset_title else []
    subtitle_parts += [f": {record.get('task')}"] if record.get("task") else []
    subtitle_parts += [f", {clusters['n_units']:,} units"] if clusters.get("n_units") else []
    subtitle_parts += [f", by {', '.join(spec['by'])}"] if spec.get("by") else []
    head = _build_html_paragraph(
        f"<strong>{_escape_html_text(record.get('model') or 'Run')}</strong>"
        f"{_escape_html_text(''.join(subtitle_parts))}"
    )
    sample_lines = [
        _build_html_paragraph(_escape_html_text(text))
        for text in (describe_survey_sample(record),)
        if text
    ]
    return _wrap_in_html_block(
        *_build_warning_paragraphs(record.get("warnings") or ()),
        head,
        *sample_lines,
        *_build_first_metric_table(run.group_metrics),
        figure,
        _build_claim_list(run.findings, _MAX_CLAIMS),
        _build_notes_html(record.get("notes") or ()),
        _build_html_paragraph(
            "<code>.group_metrics</code>, <code>.disparities</code> and <code>.findings</code>"
            " hold every number."
        ),
    )


def build_dataset_html(dataset: Dataset) -> str:
    """Show what a dataset is, whose judgement its labels are, and how its attributes are spread."""
    cautions, notes = split_cautions_from_notes(dataset.notes)
    dataset_info, people = dataset.info, dataset.instances
    times = 0 if dataset.multiplicity is None else int(dataset.multiplicity["times"].sum())
    counts = f"{times or people.height:,} people or objects"
    if dataset.images.height:
        counts += f" in {dataset.images.height:,} images"
    if "subject_id" in people.columns and people["subject_id"].is_not_null().any():
        counts += f", {people['subject_id'].n_unique():,} subjects"
    label_line = f"Labels: {dataset_info.label_source}. Licence: {dataset_info.licence}."
    return _wrap_in_html_block(
        *_build_warning_paragraphs(cautions),
        _build_html_paragraph(
            f"<strong>{_escape_html_text(dataset_info.title)}</strong> "
            f"({_escape_html_text(dataset.name)}): {counts}"
        ),
        _build_html_paragraph(_escape_html_text(label_line)),
        *_build_attribute_count_table(dataset.attributes, is_count_table=bool(times)),
        _build_notes_html(notes),
    )


def _build_attribute_count_table(attributes: pl.DataFrame, *, is_count_table: bool) -> list[str]:
    """Count values that many units share; an id, which is one person's own, is not shown."""
    rows = []
    names = attributes["attribute"].unique(maintain_order=True).to_list()
    for name in names[:_MAX_ATTRIBUTES]:
        attribute_rows = attributes.filter(attribute=name)
        values = attribute_rows["value"].drop_nulls().value_counts(sort=True, name="n")
        shared = values.filter(pl.col("n") >= _MIN_UNITS_PER_VALUE).sort(
            "n", "value", descending=[True, False]
        )
        first = [
            str(text) if is_count_table else f"{text} ({n:,})"
            for text, n in shared.head(_MAX_VALUES).iter_rows()
        ]
        n_more = values.height - len(first)
        first += (
            [f"{n_more:,} others" if first else f"{n_more:,} different values"] if n_more else []
        )
        rows.append([name, f"{attribute_rows['unit_id'].n_unique():,}", ", ".join(first)])
    if len(names) > _MAX_ATTRIBUTES:
        rows.append([f"… {len(names) - _MAX_ATTRIBUTES:,} more", "", ""])
    return [build_table_html(["attribute", "known of", "values"], rows)] if rows else []


def _build_first_metric_table(table: pl.DataFrame) -> list[str]:
    """Show the first metric of everyone and of the groups of the first attribute."""
    if not table.height:
        return []
    line = ("model", "task", "metric", "label", "threshold")
    first = table.row(0, named=True)
    metric_rows = table.filter(*(pl.col(name).eq_missing(first[name]) for name in line))
    by = metric_rows["attribute"].drop_nulls().unique(maintain_order=True).head(1).to_list()
    displayed_rows = metric_rows.filter(
        pl.col("attribute").is_null() | pl.col("attribute").is_in(by)
    )
    rows = [
        [
            row["group"],
            f"{row['n_units']:,}",
            _format_number_or_dash(row["value"]),
            ""
            if row["low"] is None
            else f"{_format_number_or_dash(row['low'])} to {_format_number_or_dash(row['high'])}",
            row["reason"] or ("" if row["status"] == "ok" else str(row["status"])),
        ]
        for row in displayed_rows.head(_MAX_GROUP_ROWS).iter_rows(named=True)
    ]
    metric_title = str(first["metric"]) + (
        f" of {first['label']}" if first["label"] is not None else ""
    )
    title = _build_html_paragraph(
        _escape_html_text(f"{metric_title} by {by[0]}" if by else metric_title)
    )
    n_hidden = displayed_rows.height - len(rows)
    remainder = (
        [_build_html_paragraph(f"… {n_hidden:,} more groups in <code>.group_metrics</code>")]
        if n_hidden
        else []
    )
    return [title, build_table_html(["group", "n", "value", "interval", ""], rows), *remainder]


def _format_number_or_dash(number: float | None) -> str:
    return "–" if number is None else f"{number:.4g}"


def _build_claim_list(findings: pl.DataFrame, max_claims: int) -> str:
    claims = findings.sort("rank")["claim"].to_list() if findings.height else []
    if not claims:
        return _build_html_paragraph("No finding.")
    items = "".join(f"<li>{_escape_html_text(claim)}</li>" for claim in claims[:max_claims])
    n_hidden = len(claims) - max_claims
    remainder = (
        _build_html_paragraph(f"… {n_hidden:,} more in <code>.findings</code>")
        if n_hidden > 0
        else ""
    )
    return f'<ol style="text-align:left">{items}</ol>{remainder}'


def _build_warning_paragraphs(warnings: Iterable[str]) -> list[str]:
    return [
        f'<p role="alert" style="{_WARNING}">WARNING: {_escape_html_text(text)}</p>'
        for text in warnings
    ]


def _build_notes_html(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{_escape_html_text(note)}</li>" for note in notes[:_MAX_NOTES])
    n_hidden = len(notes) - _MAX_NOTES
    remainder = f"<li>… {n_hidden:,} more</li>" if n_hidden > 0 else ""
    return f"<details><summary>{len(notes):,} notes</summary><ul>{items}{remainder}</ul></details>"


def build_table_html(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = ""
) -> str:
    """Format a table as HTML, with every text escaped."""
    head = "".join(
        f'<th scope="col" style="{_CELL}">{_escape_html_text(name)}</th>' for name in columns
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL}">{_escape_html_text(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{_escape_html_text(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _build_html_paragraph(html: str) -> str:
    return f'<p style="margin:.3em 0">{html}</p>'


def _escape_html_text(text: object) -> str:
    return escape(str(text))


def _wrap_in_html_block(*fragments: str) -> str:
    return f'<div style="text-align:left;max-width:60em">{"".join(fragments)}</div>'
