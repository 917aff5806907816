"""From a run's tables to one typed document: every number and sentence of the report, no markup.

Sits between ``audit`` and ``report.html``. Nothing is measured here: values, intervals and
p-values are read from the tables and arranged; the only arithmetic is choosing extremes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import polars as pl

from isolux.report._extra_figures import read_breakdowns, read_curves
from isolux.report._sections import Context, build_sections, to_estimate
from isolux.report.document import (
    AttributeSection,
    AuditSubject,
    DrawnGroups,
    Estimate,
    FindingRow,
    GroupRow,
    InputFile,
    PairRow,
    ReferenceRow,
    SettingRow,
    Summary,
)
from isolux.report.gaps import caution_on_undetected_people
from isolux.report.summary.analyses import IN_THE_ANSWER, build_analyses
from isolux.report.summary.sentences import (
    describe_unknown,
    injected_of,
    list_limits,
    read_protocol,
    reading_order,
    synthetic,
    verdict_text,
)
from isolux.report.wording import safe_url
from isolux.statements.answer import MAX_FURTHER, drop_stated_findings, write_answer
from isolux.statements.choice import Choice, choose_statements
from isolux.statements.metric_lines import Line, read_lines
from isolux.vocabulary.containers import Run
from isolux.vocabulary.formatting import find_target_term
from isolux.vocabulary.spec import get_declaration
from isolux.vocabulary.survey_sample import (
    describe_sample,
    is_census,
    is_survey_sample,
    is_weighted,
)

__all__ = ["FINDINGS_LEAD", "SECTIONS_LEAD", "Context", "summarise", "summarise_record"]

_OWN_DATA = ("the licence of your ", "stated in the dataset's own")
"""How the licence of data begins that no publication is about."""

FINDINGS_LEAD = 3
"""Findings that are printed in sight; the others are folded."""
SECTIONS_LEAD = 3
"""Attributes whose figure and table are in sight; of each other attribute one line is."""


def summarise(run: Run) -> Summary:
    """Arrange a run's tables as the document that a report prints.

    Examples
    --------
    >>> import polars as pl
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.vocabulary.tables import SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> empty = Run({"model": "m"}, *(table.empty() for table in tables))
    >>> summarise(empty).title
    'Audit of m'
    """
    base, context = summarise_record(run)
    choice = choose_statements(run)
    answer = write_answer(run, choice)
    sections = build_sections(run.group_metrics, run.disparities, context, choice)
    sections = _with_views(_rank_sections(sections, answer.attributes), run.record)
    bounded = not is_survey_sample(run.record)  # bounds count people, whatever they weigh
    audited = base.audited
    accounts = (run.record.get("accounting") or {}).get("attributes") or {}
    sections = tuple(
        replace(
            s,
            unknown=describe_unknown(
                s,
                mean=bounded and _is_mean(s, run),
                n_unannotated=accounts.get(s.attribute, {}).get("n_unannotated", 0),
            ),
            verdict=replace(s.verdict, text=verdict_text(s, choice, audited)),
        )
        for s in sections
    )
    sections = _add_drawn_groups(_open_sections(sections), run)
    unsaid = set(drop_stated_findings(run.findings, answer)["rank"])
    undetected = caution_on_undetected_people(run, next(iter(context.lines.values()), None))
    return replace(
        base,
        answer=answer.first,
        further=answer.further,
        accounting=answer.accounting,
        findings=tuple(row for row in base.findings if row.rank in unsaid),
        overall=_overall(run.group_metrics, context.lines),
        sections=sections,
        injected_effects=injected_of(run.record, run, context),
        limits=list_limits(audited, sections),
        leading=next(iter(reading_order(sections)), None),
        leading_groups=_leading_groups(choice),
        cautions=(*base.cautions, *filter(None, [undetected])),
    )


def _rank_sections(
    sections: tuple[AttributeSection, ...], attributes: Sequence[str]
) -> tuple[AttributeSection, ...]:
    """Set the rank of each section in reading order."""
    rank_by_attribute = {name: i for i, name in enumerate(attributes)}
    return tuple(
        replace(s, reading_rank=rank_by_attribute.get(s.attribute, len(rank_by_attribute)))
        for s in sections
    )


def _leading_groups(choice: Choice) -> tuple[str, ...]:
    """List groups of the leading attribute as the answer names them: first the leader's pair."""
    leader = choice.stated[:1]
    pairs = [s for s in (*leader, *choice.rivals) if s.attribute == leader[0].attribute]
    group_names = (
        s.row[column] for s in pairs[: 1 + MAX_FURTHER] for column in ("group", "reference")
    )
    return tuple(dict.fromkeys(name for name in group_names if name is not None))


def _is_mean(section: AttributeSection, run: Run) -> bool:
    # What is a mean of people has a score for each of them; any other statistic has evidence.
    return run.scores.filter(metric=section.main.line.metric).height > 0


def is_comparison(run: Run) -> bool:
    """Tell whether a run compares two models."""
    return "model_a" in run.disparities.columns


def summarise_record(run: Run, changed: Mapping[str, Any] | None = None) -> tuple[Summary, Context]:
    """Arrange what a run says of itself: settings, inputs, findings, and the words for lines."""
    record = {**run.record, **(changed or {})}
    spec = dict(record.get("spec") or {})
    audited = _audited(record, spec)
    context = Context(
        lines=read_lines(run.group_metrics, record, run.disparities),
        terms=_terms(record),
        alpha=audited.alpha,
        target=find_target_term(record),
        referenced=frozenset(str(r).partition("=")[0] for r in spec.get("reference") or ()),
    )
    findings = _findings(run.findings)
    summary = Summary(
        title=_title(audited),
        answer="",
        audited=audited,
        overall=(),
        findings=tuple(row for row in findings if row.analysis in IN_THE_ANSWER),
        sections=(),
        injected_effects=(),
        protocol=read_protocol(record),
        analyses=build_analyses(record, findings),
        settings=_settings(spec),
        inputs=tuple(InputFile(p, h) for p, h in sorted(dict(record.get("inputs") or {}).items())),
        versions=tuple(sorted(dict(record.get("versions") or {}).items())),
        families=tuple(dict(record.get("families") or {}).items()),
        notes=tuple(record.get("notes") or ()),
        warnings=tuple(record.get("warnings") or ()),
        references=_references(record.get("references") or ()),
        limits=list_limits(audited, ()),
        cautions=tuple(filter(None, [synthetic(record)])),
    )
    return summary, context


def _with_views(
    sections: Sequence[AttributeSection], record: Mapping[str, Any]
) -> tuple[AttributeSection, ...]:
    """Add a detector's curves and its people's sizes to each attribute."""
    if not sections:
        return ()
    model = sections[0].main.line.model
    curves, breakdowns = read_curves(record, model), read_breakdowns(record, model)
    return tuple(
        replace(s, curves=curves.get(s.attribute, ()), breakdowns=breakdowns.get(s.attribute, ()))
        for s in sections
    )


def _open_sections(sections: tuple[AttributeSection, ...]) -> tuple[AttributeSection, ...]:
    """Leave open what is to be read first, so that a report is some eight screens long."""
    ordered = reading_order(sections)
    differing = [s for s in ordered if s.verdict.outcome == "differ" or s.verdict.also]
    first = {section.anchor for section in differing[:SECTIONS_LEAD] or ordered[:1]}
    return tuple(replace(s, in_sight=s.anchor in first) for s in sections)


def _add_drawn_groups(
    sections: tuple[AttributeSection, ...], run: Run
) -> tuple[AttributeSection, ...]:
    """Choose the groups that are drawn, of the leading attribute the worst-served one first."""
    first = next((section.anchor for section in reading_order(sections)), None)
    return tuple(
        replace(s, drawn_groups=choose_drawn_groups(run, s, is_leading=s.anchor == first))
        for s in sections
    )


def _title(audited: AuditSubject) -> str:
    return f"Audit of {audited.model}" + (f" on {audited.dataset}" if audited.dataset else "")


def _terms(record: Mapping[str, Any]) -> dict[str, str]:
    # JSON keeps the pairs of DatasetInfo.terms as lists.
    return dict((record.get("dataset") or {}).get("terms") or ())


def _audited(record: Mapping[str, Any], spec: Mapping[str, Any]) -> AuditSubject:
    dataset = record.get("dataset") or {}
    clusters = record.get("clusters") or {}

    def setting(name: str) -> Any:
        return spec.get(name, get_declaration(name).default)

    return AuditSubject(
        model=str(record.get("model") or "an unnamed model"),
        dataset=_data_name(dataset, str(spec.get("data") or "")),
        task=str(record.get("task") or ""),
        target=_terms(record).get(str(spec.get("target")), spec.get("target")),
        label_source=str(dataset.get("label_source") or ""),
        licence=str(dataset.get("licence") or ""),
        citation=_format_citation(dataset),
        n_units=int(clusters.get("n_units") or 0),
        n_clusters=int(clusters.get("n_clusters") or 0),
        cluster=clusters.get("column"),
        created=str(record.get("created") or ""),
        version=str(record.get("isolux") or ""),
        level=float(setting("level")),
        seed=record.get("seed"),
        correction=str(setting("correction")),
        min_units=setting("min_units"),
        min_clusters=setting("min_clusters"),
        ddof=int(setting("ddof")),
        log_base=float(setting("log_base")),
        margin=setting("margin"),
        publish_min=int(record.get("publish_min") or 0),
        withheld=bool(record.get("withheld")),
        sampling_sentence=describe_sample(record),
        census=is_census(record),
        n_effective=record["sample"].get("n_effective") if is_weighted(record) else None,
    )


def _data_name(dataset: Mapping[str, Any], data_setting: str) -> str:
    # A user's own table has no title; its file has a name.
    if dataset.get("name") in ("table", "pairs", "counts") and ":" in data_setting:
        return PurePath(data_setting.partition(":")[2]).name
    return str(dataset.get("title") or dataset.get("name") or "")


def _format_citation(dataset: Mapping[str, Any]) -> str:
    """Return how the data are cited: of the user's own data only their format has a reference."""
    if str(dataset.get("licence") or "").startswith(_OWN_DATA):
        return ""
    citation = dataset.get("citation")
    if isinstance(citation, Sequence) and not isinstance(citation, str):
        return " ".join(str(line) for line in citation)
    return str(citation or "")


def _overall(
    group_metrics: pl.DataFrame, lines: Mapping[tuple[Any, ...], Line]
) -> tuple[tuple[Line, Estimate], ...]:
    overall_rows = group_metrics.filter(pl.col("attribute").is_null())
    rows_by_line = {
        (row["model"], row["task"], row["metric"], row["label"], row["threshold"]): row
        for row in overall_rows.iter_rows(named=True)
    }
    measured_lines = [entry for entry in lines.items() if entry[0] in rows_by_line]
    # The main metric leads even where it is one class's; then metrics of all before those of one.
    other_lines = sorted(measured_lines[1:], key=lambda entry: entry[1].label is not None)
    return tuple(
        (line, to_estimate(rows_by_line[key])) for key, line in [*measured_lines[:1], *other_lines]
    )


def _findings(findings: pl.DataFrame) -> tuple[FindingRow, ...]:
    names = ("rank", "claim", "p_adjusted", "status", "analysis", "reference", "attribute")
    rows = findings.sort("rank", maintain_order=True).select(names)
    return tuple(FindingRow(**row) for row in rows.iter_rows(named=True))


def _settings(spec: Mapping[str, Any]) -> tuple[SettingRow, ...]:
    task = str(spec.get("task") or "")
    return tuple(
        SettingRow(
            name=name,
            value=_format_setting(setting_value),
            meaning=get_declaration(name, task).description,
            changed=_format_setting(setting_value)
            != _format_setting(get_declaration(name, task).default),
        )
        for name, setting_value in spec.items()
    )


def _format_setting(setting_value: object) -> str:
    if setting_value is None:
        return "none"
    if isinstance(setting_value, bool):
        return "yes" if setting_value else "no"
    if isinstance(setting_value, Mapping):
        return "; ".join(f"{k}: {_format_setting(v)}" for k, v in setting_value.items()) or "none"
    if isinstance(setting_value, Sequence) and not isinstance(setting_value, str):
        return ", ".join(_format_setting(element) for element in setting_value) or "none"
    if isinstance(setting_value, float):
        return f"{setting_value:g}"
    return str(setting_value) or "(empty)"


def _references(references: Sequence[Mapping[str, Any]]) -> tuple[ReferenceRow, ...]:
    return tuple(
        ReferenceRow(
            key=str(row.get("key") or ""),
            citation=str(row.get("citation") or ""),
            location=str(row.get("place") or ""),
            url=safe_url(str(row.get("url") or "")),
        )
        for row in references
    )


# The groups of an attribute that are drawn with their intervals, and the pairs among them.

_WORST, _BEST = 12, 3
"""Groups drawn of an attribute that has more than both together: so many fit on a screen."""


def choose_drawn_groups(run: Run, section: AttributeSection, *, is_leading: bool) -> DrawnGroups:
    """Choose the groups that are drawn: of the leading attribute the worst-served one first."""
    rows: Sequence[GroupRow] = section.main.rows
    if is_leading or len(rows) > _WORST + _BEST:
        rows = _worst_first(section)
    chosen_rows = rows[: _WORST + _BEST]
    comparable_rows = [row for row in rows if row.estimate.is_comparable]
    if len(comparable_rows) > len(chosen_rows):
        chosen_rows = [*comparable_rows[:_WORST], *comparable_rows[-_BEST:]]
    return DrawnGroups(
        rows=tuple(chosen_rows),
        pairs=_read_pairs(run, section, chosen_rows) if section.in_sight else (),
        n_more=len(rows) - len(chosen_rows),
    )


def _worst_first(section: AttributeSection) -> Sequence[GroupRow]:
    sign = -1.0 if section.main.line.direction == "lower" else 1.0

    def order(row: GroupRow) -> tuple[bool, bool, float, int]:
        estimate = row.estimate
        return (
            not estimate.is_comparable,
            row.is_unknown,
            sign * (estimate.value or 0.0),
            -estimate.n_units,
        )

    return sorted(section.main.rows, key=order)


def _read_pairs(
    run: Run, section: AttributeSection, rows: Sequence[GroupRow]
) -> tuple[PairRow, ...]:
    """Read the differences between any two of these groups on the main metric."""
    line, names = section.main.line, [row.group for row in rows]
    of_line = (
        pl.col(name).eq_missing(pl.lit(getattr(line, name)))
        for name in ("model", "metric", "label", "threshold")
    )
    pair_rows = run.disparities.filter(
        *of_line,
        pl.col("group_a").is_in(names),
        pl.col("group_b").is_in(names),
        kind="difference",
        attribute=section.attribute,
    )
    fields = [name for name in PairRow.__slots__ if name != "ratio"]
    return tuple(
        PairRow(**row, ratio=None) for row in pair_rows.select(fields).iter_rows(named=True)
    )
