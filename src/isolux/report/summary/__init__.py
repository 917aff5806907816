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

from isolux.core.containers import Run
from isolux.core.formatting import read_target_term
from isolux.core.spec import find_setting_declaration
from isolux.core.survey_sample import (
    describe_survey_sample,
    is_census,
    is_survey_sample,
    is_weighted,
)
from isolux.report._extra_figures import read_breakdowns_by_attribute, read_curves_by_attribute
from isolux.report._sections import ReportContext, build_attribute_sections, to_estimate
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
from isolux.report.gaps import build_undetected_people_caution
from isolux.report.summary.analyses import IN_THE_ANSWER, build_analysis_sections
from isolux.report.summary.sentences import (
    build_injected_rows,
    build_synthetic_caution,
    describe_unknown_values,
    describe_verdict,
    list_audit_limits,
    read_protocol_section,
    sort_sections_by_rank,
)
from isolux.report.wording import keep_http_url_only
from isolux.statements.answer import MAX_FURTHER, answer_from_choice, drop_findings_in_answer
from isolux.statements.choice import StatementChoice, choose_statements
from isolux.statements.metric_lines import MetricLine, read_metric_lines

__all__ = [
    "FINDINGS_LEAD",
    "SECTIONS_LEAD",
    "ReportContext",
    "summarise_run",
    "summarise_run_record",
]

_OWN_DATA = ("the licence of your ", "stated in the dataset's own")
"""How the licence of data begins that no publication is about."""

FINDINGS_LEAD = 3
"""Findings that are printed in sight; the others are folded."""
SECTIONS_LEAD = 3
"""Attributes whose figure and table are in sight; of each other attribute one line is."""


def summarise_run(run: Run) -> Summary:
    """Arrange a run's tables as the document that a report prints.

    Examples
    --------
    >>> import polars as pl
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.core.tables import SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> empty = Run({"model": "m"}, *(table.empty() for table in tables))
    >>> summarise_run(empty).title
    'Audit of m'
    """
    base, context = summarise_run_record(run)
    choice = choose_statements(run)
    answer = answer_from_choice(run, choice)
    sections = build_attribute_sections(run.group_metrics, run.disparities, context, choice)
    sections = _add_curves_and_breakdowns(
        _set_reading_ranks(sections, answer.attributes), run.record
    )
    bounded = not is_survey_sample(run.record)  # bounds count people, whatever they weigh
    audited = base.audited
    accounts = (run.record.get("accounting") or {}).get("attributes") or {}
    sections = tuple(
        replace(
            s,
            unknown=describe_unknown_values(
                s,
                is_mean=bounded and _is_mean_of_scores(s, run),
                n_unannotated=accounts.get(s.attribute, {}).get("n_unannotated", 0),
            ),
            verdict=replace(s.verdict, text=describe_verdict(s, choice, audited)),
        )
        for s in sections
    )
    sections = _add_drawn_groups(_mark_sections_in_sight(sections), run)
    unsaid = set(drop_findings_in_answer(run.findings, answer)["rank"])
    undetected = build_undetected_people_caution(run, next(iter(context.lines.values()), None))
    return replace(
        base,
        answer=answer.first,
        further=answer.further,
        accounting=answer.accounting,
        findings=tuple(row for row in base.findings if row.rank in unsaid),
        overall=_list_overall_estimates(run.group_metrics, context.lines),
        sections=sections,
        injected_effects=build_injected_rows(run.record, run, context),
        limits=list_audit_limits(audited, sections),
        leading=next(iter(sort_sections_by_rank(sections)), None),
        leading_groups=_list_leading_groups(choice),
        cautions=(*base.cautions, *filter(None, [undetected])),
    )


def _set_reading_ranks(
    sections: tuple[AttributeSection, ...], attributes: Sequence[str]
) -> tuple[AttributeSection, ...]:
    """Set the rank of each section in reading order."""
    rank_by_attribute = {name: i for i, name in enumerate(attributes)}
    return tuple(
        replace(s, reading_rank=rank_by_attribute.get(s.attribute, len(rank_by_attribute)))
        for s in sections
    )


def _list_leading_groups(choice: StatementChoice) -> tuple[str, ...]:
    """List groups of the leading attribute as the answer names them: first the leader's pair."""
    leader = choice.stated[:1]
    pairs = [s for s in (*leader, *choice.rivals) if s.attribute == leader[0].attribute]
    group_names = (
        s.row[column] for s in pairs[: 1 + MAX_FURTHER] for column in ("group", "reference")
    )
    return tuple(dict.fromkeys(name for name in group_names if name is not None))


def _is_mean_of_scores(section: AttributeSection, run: Run) -> bool:
    # What is a mean of people has a score for each of them; any other statistic has evidence.
    return run.scores.filter(metric=section.main.line.metric).height > 0


def is_model_comparison(run: Run) -> bool:
    """Tell whether a run compares two models."""
    return "model_a" in run.disparities.columns


def summarise_run_record(
    run: Run, overrides: Mapping[str, Any] | None = None
) -> tuple[Summary, ReportContext]:
    """Arrange what a run says of itself: settings, inputs, findings, and the words for lines."""
    record = {**run.record, **(overrides or {})}
    spec = dict(record.get("spec") or {})
    audited = _build_audit_subject(record, spec)
    context = ReportContext(
        lines=read_metric_lines(run.group_metrics, record, run.disparities),
        terms=_read_attribute_terms(record),
        alpha=audited.alpha,
        target=read_target_term(record),
        referenced=frozenset(str(r).partition("=")[0] for r in spec.get("reference") or ()),
    )
    findings = _build_finding_rows(run.findings)
    summary = Summary(
        title=_format_report_title(audited),
        answer="",
        audited=audited,
        overall=(),
        findings=tuple(row for row in findings if row.analysis in IN_THE_ANSWER),
        sections=(),
        injected_effects=(),
        protocol=read_protocol_section(record),
        analyses=build_analysis_sections(record, findings),
        settings=_build_setting_rows(spec),
        inputs=tuple(InputFile(p, h) for p, h in sorted(dict(record.get("inputs") or {}).items())),
        versions=tuple(sorted(dict(record.get("versions") or {}).items())),
        families=tuple(dict(record.get("families") or {}).items()),
        notes=tuple(record.get("notes") or ()),
        warnings=tuple(record.get("warnings") or ()),
        references=_build_reference_rows(record.get("references") or ()),
        limits=list_audit_limits(audited, ()),
        cautions=tuple(filter(None, [build_synthetic_caution(record)])),
    )
    return summary, context


def _add_curves_and_breakdowns(
    sections: Sequence[AttributeSection], run_record: Mapping[str, Any]
) -> tuple[AttributeSection, ...]:
    """Add a detector's curves and its people's sizes to each attribute."""
    if not sections:
        return ()
    model = sections[0].main.line.model
    curves, breakdowns = (
        read_curves_by_attribute(run_record, model),
        read_breakdowns_by_attribute(run_record, model),
    )
    return tuple(
        replace(s, curves=curves.get(s.attribute, ()), breakdowns=breakdowns.get(s.attribute, ()))
        for s in sections
    )


def _mark_sections_in_sight(sections: tuple[AttributeSection, ...]) -> tuple[AttributeSection, ...]:
    """Leave open what is to be read first, so that a report is some eight screens long."""
    ordered = sort_sections_by_rank(sections)
    differing = [s for s in ordered if s.verdict.outcome == "differ" or s.verdict.also]
    first = {section.anchor for section in differing[:SECTIONS_LEAD] or ordered[:1]}
    return tuple(replace(s, in_sight=s.anchor in first) for s in sections)


def _add_drawn_groups(
    sections: tuple[AttributeSection, ...], run: Run
) -> tuple[AttributeSection, ...]:
    """Choose the groups that are drawn, of the leading attribute the worst-served one first."""
    first = next((section.anchor for section in sort_sections_by_rank(sections)), None)
    return tuple(
        replace(s, drawn_groups=choose_drawn_groups(run, s, is_leading=s.anchor == first))
        for s in sections
    )


def _format_report_title(audited: AuditSubject) -> str:
    return f"Audit of {audited.model}" + (f" on {audited.dataset}" if audited.dataset else "")


def _read_attribute_terms(run_record: Mapping[str, Any]) -> dict[str, str]:
    # JSON keeps the pairs of DatasetInfo.terms as lists.
    return dict((run_record.get("dataset") or {}).get("terms") or ())


def _build_audit_subject(
    run_record: Mapping[str, Any], recorded_spec: Mapping[str, Any]
) -> AuditSubject:
    dataset = run_record.get("dataset") or {}
    clusters = run_record.get("clusters") or {}

    def read_setting(name: str) -> Any:
        return recorded_spec.get(name, find_setting_declaration(name).default)

    return AuditSubject(
        model=str(run_record.get("model") or "an unnamed model"),
        dataset=_choose_dataset_name(dataset, str(recorded_spec.get("data") or "")),
        task=str(run_record.get("task") or ""),
        target=_read_attribute_terms(run_record).get(
            str(recorded_spec.get("target")), recorded_spec.get("target")
        ),
        label_source=str(dataset.get("label_source") or ""),
        licence=str(dataset.get("licence") or ""),
        citation=_format_dataset_citation(dataset),
        n_units=int(clusters.get("n_units") or 0),
        n_clusters=int(clusters.get("n_clusters") or 0),
        cluster=clusters.get("column"),
        created=str(run_record.get("created") or ""),
        version=str(run_record.get("isolux") or ""),
        level=float(read_setting("level")),
        seed=run_record.get("seed"),
        correction=str(read_setting("correction")),
        min_units=read_setting("min_units"),
        min_clusters=read_setting("min_clusters"),
        ddof=int(read_setting("ddof")),
        log_base=float(read_setting("log_base")),
        margin=read_setting("margin"),
        publish_min=int(run_record.get("publish_min") or 0),
        withheld=bool(run_record.get("withheld")),
        sampling_sentence=describe_survey_sample(run_record),
        census=is_census(run_record),
        n_effective=run_record["sample"].get("n_effective") if is_weighted(run_record) else None,
    )


def _choose_dataset_name(dataset_record: Mapping[str, Any], data_setting: str) -> str:
    # A user's own table has no title; its file has a name.
    if dataset_record.get("name") in ("table", "pairs", "counts") and ":" in data_setting:
        return PurePath(data_setting.partition(":")[2]).name
    return str(dataset_record.get("title") or dataset_record.get("name") or "")


def _format_dataset_citation(dataset_record: Mapping[str, Any]) -> str:
    """Return how the data are cited: of the user's own data only their format has a reference."""
    if str(dataset_record.get("licence") or "").startswith(_OWN_DATA):
        return ""
    citation = dataset_record.get("citation")
    if isinstance(citation, Sequence) and not isinstance(citation, str):
        return " ".join(str(line) for line in citation)
    return str(citation or "")


def _list_overall_estimates(
    group_metrics: pl.DataFrame, lines: Mapping[tuple[Any, ...], MetricLine]
) -> tuple[tuple[MetricLine, Estimate], ...]:
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


def _build_finding_rows(findings: pl.DataFrame) -> tuple[FindingRow, ...]:
    columns = ("rank", "claim", "p_adjusted", "status", "analysis", "reference", "attribute")
    rows = findings.sort("rank", maintain_order=True).select(columns)
    return tuple(FindingRow(**row) for row in rows.iter_rows(named=True))


def _build_setting_rows(recorded_spec: Mapping[str, Any]) -> tuple[SettingRow, ...]:
    task = str(recorded_spec.get("task") or "")
    return tuple(
        SettingRow(
            name=name,
            value=_format_setting_value(setting_value),
            meaning=find_setting_declaration(name, task).description,
            changed=_format_setting_value(setting_value)
            != _format_setting_value(find_setting_declaration(name, task).default),
        )
        for name, setting_value in recorded_spec.items()
    )


def _format_setting_value(setting_value: object) -> str:
    if setting_value is None:
        return "none"
    if isinstance(setting_value, bool):
        return "yes" if setting_value else "no"
    if isinstance(setting_value, Mapping):
        return (
            "; ".join(f"{k}: {_format_setting_value(v)}" for k, v in setting_value.items())
            or "none"
        )
    if isinstance(setting_value, Sequence) and not isinstance(setting_value, str):
        return ", ".join(_format_setting_value(element) for element in setting_value) or "none"
    if isinstance(setting_value, float):
        return f"{setting_value:g}"
    return str(setting_value) or "(empty)"


def _build_reference_rows(references: Sequence[Mapping[str, Any]]) -> tuple[ReferenceRow, ...]:
    return tuple(
        ReferenceRow(
            key=str(row.get("key") or ""),
            citation=str(row.get("citation") or ""),
            location=str(row.get("place") or ""),
            url=keep_http_url_only(str(row.get("url") or "")),
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
        rows = _sort_groups_worst_first(section)
    chosen_rows = rows[: _WORST + _BEST]
    comparable_rows = [row for row in rows if row.estimate.is_comparable]
    if len(comparable_rows) > len(chosen_rows):
        chosen_rows = [*comparable_rows[:_WORST], *comparable_rows[-_BEST:]]
    return DrawnGroups(
        rows=tuple(chosen_rows),
        pairs=_read_pairs_among_groups(run, section, chosen_rows) if section.in_sight else (),
        n_more=len(rows) - len(chosen_rows),
    )


def _sort_groups_worst_first(section: AttributeSection) -> Sequence[GroupRow]:
    sign = -1.0 if section.main.line.direction == "lower" else 1.0

    def sort_key(row: GroupRow) -> tuple[bool, bool, float, int]:
        estimate = row.estimate
        return (
            not estimate.is_comparable,
            row.is_unknown,
            sign * (estimate.value or 0.0),
            -estimate.n_units,
        )

    return sorted(section.main.rows, key=sort_key)


def _read_pairs_among_groups(
    run: Run, section: AttributeSection, group_rows: Sequence[GroupRow]
) -> tuple[PairRow, ...]:
    """Read the differences between any two of these groups on the main metric."""
    line, names = section.main.line, [row.group for row in group_rows]
    line_filters = (
        pl.col(name).eq_missing(pl.lit(getattr(line, name)))
        for name in ("model", "metric", "label", "threshold")
    )
    pair_rows = run.disparities.filter(
        *line_filters,
        pl.col("group_a").is_in(names),
        pl.col("group_b").is_in(names),
        kind="difference",
        attribute=section.attribute,
    )
    fields = [name for name in PairRow.__slots__ if name != "ratio"]
    return tuple(
        PairRow(**row, ratio=None) for row in pair_rows.select(fields).iter_rows(named=True)
    )
