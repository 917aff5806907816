"""What a notebook shows of a dataset, a run and its findings: HTML, warnings before all else.

Every text is escaped: a group's name or a file's may hold anything. No person is shown, by id or by
row. Colours are the notebook's own, so that dark pages stay dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.vocabulary.drawn import words_of
from isolux.vocabulary.notes import by_severity

if TYPE_CHECKING:
    from isolux.vocabulary.containers import Dataset, Run

_CLAIMS, _ROWS, _ATTRIBUTES, _VALUES, _NOTES, _SHARED = 8, 12, 20, 4, 5, 10
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
        return findings_html(self, self._first)


def findings_html(findings: pl.DataFrame, warnings: Sequence[str] = ()) -> str:
    """Show claims in the order in which to read them.

    Examples
    --------
    >>> import polars as pl
    >>> shown = findings_html(pl.DataFrame({"rank": [1], "claim": ["a < b"]}), ["Look & see."])
    >>> "WARNING: Look &amp; see." in shown, "a &lt; b" in shown
    (True, True)
    """
    return _whole(*_warned(warnings), _claims(findings, findings.height))


def run_html(run: Run) -> str:
    """Show what was audited, its warnings, the first findings, and groups by the first metric."""
    record = run.record
    spec, clusters = record.get("spec") or {}, record.get("clusters") or {}
    about = (record.get("dataset") or {}).get("title")
    of = [f" on {about}"] if about else []
    of += [f": {record.get('task')}"] if record.get("task") else []
    of += [f", {clusters['n_units']:,} units"] if clusters.get("n_units") else []
    of += [f", by {', '.join(spec['by'])}"] if spec.get("by") else []
    head = _line(f"<strong>{_text(record.get('model') or 'Run')}</strong>{_text(''.join(of))}")
    drawn = [_line(_text(text)) for text in (words_of(record),) if text]
    return _whole(
        *_warned(record.get("warnings") or ()),
        head,
        *drawn,
        _claims(run.findings, _CLAIMS),
        *_groups(run.group_metrics),
        _notes(record.get("notes") or ()),
        _line(
            "<code>.group_metrics</code>, <code>.disparities</code> and <code>.findings</code>"
            " hold every number."
        ),
    )


def dataset_html(dataset: Dataset) -> str:
    """Show what a dataset is, whose judgement its labels are, and how its attributes are spread."""
    cautions, notes = by_severity(dataset.notes)
    info, people = dataset.info, dataset.instances
    times = 0 if dataset.times is None else int(dataset.times["times"].sum())
    counts = f"{times or people.height:,} people or objects"
    if dataset.images.height:
        counts += f" in {dataset.images.height:,} images"
    if "subject_id" in people.columns and people["subject_id"].is_not_null().any():
        counts += f", {people['subject_id'].n_unique():,} subjects"
    said = f"Labels: {info.judgement}. Licence: {info.licence}."
    return _whole(
        *_warned(cautions),
        _line(f"<strong>{_text(info.title)}</strong> ({_text(dataset.name)}): {counts}"),
        _line(_text(said)),
        *_attributes(dataset.attributes, counted=bool(times)),
        _notes(notes),
    )


def _attributes(attributes: pl.DataFrame, *, counted: bool) -> list[str]:
    """Count values that many units share; an id, which is one person's own, is not shown."""
    rows = []
    names = attributes["attribute"].unique(maintain_order=True).to_list()
    for name in names[:_ATTRIBUTES]:
        own = attributes.filter(attribute=name)
        values = own["value"].drop_nulls().value_counts(sort=True, name="n")
        shared = values.filter(pl.col("n") >= _SHARED).sort("n", "value", descending=[True, False])
        first = [
            str(value) if counted else f"{value} ({n:,})"
            for value, n in shared.head(_VALUES).iter_rows()
        ]
        more = values.height - len(first)
        first += [f"{more:,} others" if first else f"{more:,} different values"] if more else []
        rows.append([name, f"{own['unit_id'].n_unique():,}", ", ".join(first)])
    if len(names) > _ATTRIBUTES:
        rows.append([f"… {len(names) - _ATTRIBUTES:,} more", "", ""])
    return [_table(["attribute", "known of", "values"], rows)] if rows else []


def _groups(table: pl.DataFrame) -> list[str]:
    """Show the first metric of everyone and of the groups of the first attribute."""
    if not table.height:
        return []
    line = ("model", "task", "metric", "label", "threshold")
    first = table.row(0, named=True)
    own = table.filter(*(pl.col(name).eq_missing(first[name]) for name in line))
    by = own["attribute"].drop_nulls().unique(maintain_order=True).head(1).to_list()
    shown = own.filter(pl.col("attribute").is_null() | pl.col("attribute").is_in(by))
    rows = [
        [
            row["group"],
            f"{row['n_units']:,}",
            _number(row["value"]),
            "" if row["low"] is None else f"{_number(row['low'])} to {_number(row['high'])}",
            row["reason"] or ("" if row["status"] == "ok" else str(row["status"])),
        ]
        for row in shown.head(_ROWS).iter_rows(named=True)
    ]
    named = str(first["metric"]) + (f" of {first['label']}" if first["label"] is not None else "")
    title = _line(_text(f"{named} by {by[0]}" if by else named))
    left = shown.height - len(rows)
    rest = [_line(f"… {left:,} more groups in <code>.group_metrics</code>")] if left else []
    return [title, _table(["group", "n", "value", "interval", ""], rows), *rest]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _claims(findings: pl.DataFrame, most: int) -> str:
    told = findings.sort("rank")["claim"].to_list() if findings.height else []
    if not told:
        return _line("No finding.")
    items = "".join(f"<li>{_text(claim)}</li>" for claim in told[:most])
    left = len(told) - most
    more = _line(f"… {left:,} more in <code>.findings</code>") if left > 0 else ""
    return f'<ol style="text-align:left">{items}</ol>{more}'


def _warned(warnings: Iterable[str]) -> list[str]:
    return [f'<p role="alert" style="{_WARNING}">WARNING: {_text(text)}</p>' for text in warnings]


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{_text(note)}</li>" for note in notes[:_NOTES])
    left = len(notes) - _NOTES
    more = f"<li>… {left:,} more</li>" if left > 0 else ""
    return f"<details><summary>{len(notes):,} notes</summary><ul>{items}{more}</ul></details>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{_text(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_text(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _line(html: str) -> str:
    return f'<p style="margin:.3em 0">{html}</p>'


def _text(text: object) -> str:
    return escape(str(text))


def _whole(*parts: str) -> str:
    return f'<div style="text-align:left;max-width:60em">{"".join(parts)}</div>'
