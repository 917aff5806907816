"""What a report says around its numbers: answers, cautions, injected truths, what it cannot say.

Limits are worded by fairlearn's guide for contributors: an audit measures disparities, it never
certifies their absence, and says whose labels it used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux import derive
from isolux.core.containers import Run
from isolux.core.formatting import format_class_with_target, shorten_name
from isolux.core.info import Metric
from isolux.report._sections import ReportContext
from isolux.report.document import (
    AttributeSection,
    AuditSubject,
    CautionParagraph,
    GroupRow,
    InjectedRow,
    PairRow,
    PaperTable,
    ProtocolSection,
    Verdict,
)
from isolux.report.wording import join_with_and
from isolux.statements.choice import StatementChoice
from isolux.statements.metric_lines import find_metric_or_neutral
from isolux.statements.numbers import (
    format_bare_value,
    format_count,
    format_with_unit,
)
from isolux.statements.text import describe_no_established_difference, describe_statement_briefly

MEASURES = (
    "It measures the disparities it was asked to look at, on these people, with these labels. "
    "Other people, other images and other uses of the model may differ."
)
NOT_FOUND = (
    "“No difference found” means that this much data did not show one. It is not evidence that "
    "there is none; the intervals say which differences cannot be ruled out."
)
WHOLE_POPULATION = (
    "The whole population was drawn, so its values are known and not estimated. They say nothing "
    "about other people, or about this population at another time."
)
NO_CAUSE = (
    "It describes where scores differ. It does not say why, whether the labels, the images, the "
    "model or the sampling is the cause, or what harm follows in use."
)
COARSE = "Group names are the dataset’s. They are coarse, and people within one group differ."
_JUDGEMENT_SENTENCES = {
    "perceived": "The groups are as perceived by annotators: how people look to others, which may "
    "differ from how they describe themselves.",
    "self-reported": "The groups are self-reported, from the choices that people were given.",
    "inferred": "The groups were inferred by a model, whose own errors may differ between groups "
    "and can both hide disparities and create apparent ones.",
}
_TITLE = 100  # characters of an attribute's title in a sentence


def list_audit_limits(
    audited: AuditSubject, sections: Sequence[AttributeSection]
) -> tuple[str, ...]:
    """List what the audit cannot say, for this run in particular."""
    attribute_list = join_with_and([shorten_name(s.title, _TITLE) for s in sections])
    scope_sentence = (
        "A model may work differently for people along lines that were not recorded."
        if not sections
        else f"It looked at these attributes and no others: {attribute_list}. A model may "
        f"work differently "
        "for people along lines that were not recorded."
    )
    no_difference_sentence = WHOLE_POPULATION if audited.census else NOT_FOUND
    sentences = [
        MEASURES,
        scope_sentence,
        no_difference_sentence,
        NO_CAUSE,
        _describe_label_source(audited, sections),
        COARSE,
    ]
    small = sum(s.verdict.n_groups - s.verdict.n_judged for s in sections)
    if small:
        sentences.append(
            f"{format_count(small)} group{'s' if small > 1 else ''} had too little data to judge."
            " These "
            "may be the people for whom the model does worst; their absence here is not good news."
        )
    if audited.cluster is None:
        sentences.append(
            f"Rows were taken as independent. {explain_independence_assumption(audited)}"
        )
    if audited.correction != "none" and sections:
        sentences.append(
            "P-values are adjusted for everything that this audit compared, and for the "
            "explanations that were requested with it. They do not cover a second audit of the "
            "same people (other attributes, another seed) or a comparison of two models."
        )
    if any(s.verdict.outcome == "differ" for s in sections):
        sentences.append(
            "The pairs that it names were chosen because they are farthest apart, so their gaps "
            "are probably overstated; another sample would probably show smaller ones."
        )
    sentences.append("It is a measurement with uncertainty, not a certificate of any kind.")
    return tuple(sentences)


def _describe_label_source(audited: AuditSubject, sections: Sequence[AttributeSection]) -> str:
    """Say who judged the groups; what is computed from boxes and pictures nobody judged."""
    label_source = audited.label_source.strip()
    text = _JUDGEMENT_SENTENCES.get(label_source)
    if text is None:
        return (
            f"Who assigned the groups: {label_source or 'not recorded'}. If others judged how"
            " people look, that may differ from how they describe themselves."
        )
    computed = [
        s.title
        for s in sections
        if s.title.replace(" ", "_") in derive.map_derived_attributes_to_plugins()
    ]
    if not computed:
        return text
    if len(computed) == len([s for s in sections if not s.is_intersection]):
        return (
            f"Nobody judged the groups: {join_with_and(computed)} was computed from boxes "
            "or pictures."
        )
    return f"{text} Not so {join_with_and(computed)}, computed from boxes or pictures."


def explain_independence_assumption(audited: AuditSubject) -> str:
    """Say why rows were taken as independent, and what would tell which belong together."""
    if audited.task == "counts":
        return (
            "Counts do not identify people: if cases share people or pictures, intervals are too "
            "narrow and p-values too small."
        )
    if audited.task == "face_verification":
        return (
            "Nothing says which pairs share a person; columns subject_a and subject_b, or ids of "
            "pictures, would. If pairs share people, intervals are too narrow and p-values too "
            "small."
        )
    return (
        "No cluster column was named. If several rows show one person or come from one photograph, "
        "name it with --cluster: intervals would then be wider."
    )


def describe_unknown_values(
    section: AttributeSection, *, is_mean: bool, n_unannotated: int = 0
) -> str:
    """Say how many people's value is unknown, and how far they could move the first difference."""
    table, line = section.main, section.main.line
    unknown_rows = [row for row in table.rows if row.is_unknown and row.estimate.n_units]
    if not unknown_rows:
        return ""
    n = sum(row.estimate.n_units for row in unknown_rows)
    unknown_people = (
        f"{format_count(n)} unit{'' if n == 1 else 's'} of unknown {shorten_name(section.title)}"
    )
    if len(unknown_rows) == 1 and unknown_rows[0].estimate.value is not None:
        unknown_people += (
            f" ({line.phrase} {format_with_unit(unknown_rows[0].estimate.value, line.unit)})"
        )
    if n_unannotated:
        unknown_people += " that were not annotated" if n_unannotated >= n else ""
        unknown_people += f", {format_count(n_unannotated)} of them not annotated," * (
            n_unannotated < n
        )
    sentence = f"{unknown_people} {'is' if n == 1 else 'are'} in none of the groups compared."
    pair = section.lead
    if pair is None or section.is_intersection or len(unknown_rows) != 1 or not is_mean:
        return sentence
    difference_bounds = bound_difference_with_unknowns(pair, table.rows, unknown_rows[0])
    if difference_bounds is None:
        return sentence
    low, high = (format_bare_value(end, line.unit) for end in difference_bounds)
    return (
        f"{sentence} However they were divided between {shorten_name(pair.group_a)} and "
        f"{shorten_name(pair.group_b)}, the difference between these two would be between {low} and"
        f" {high} points."
    )


def bound_difference_with_unknowns(
    pair: PairRow, group_rows: tuple[GroupRow, ...], unknown_row: GroupRow
) -> tuple[float, float] | None:
    """Return the least and the largest difference, if the unknown belong to the pair's groups."""
    estimates = {row.group: row.estimate for row in group_rows}
    low, high = estimates.get(pair.group_a), estimates.get(pair.group_b)
    if low is None or high is None or low.value is None or high.value is None:
        return None
    if low.value > high.value:
        low, high = high, low
    v, n = unknown_row.estimate.value, unknown_row.estimate.n_units
    if not all(0.0 <= x <= 1.0 for x in (low.value or 0.0, high.value or 0.0, v or 0.0)):
        return None
    possible_sums = [n * v] if v is not None else [float(k) for k in range(n + 1)]
    group_sums = (low.value or 0.0, low.n_units), (high.value or 0.0, high.n_units)
    widest = max(
        _compute_pooled_mean(*group_sums[1], k, k)
        - _compute_pooled_mean(*group_sums[0], 0.0, n - k)
        for k in possible_sums
    )
    closest = min(
        _compute_pooled_mean(*group_sums[1], 0.0, n - k)
        - _compute_pooled_mean(*group_sums[0], k, k)
        for k in possible_sums
    )
    return closest, widest


def _compute_pooled_mean(mean: float, n: int, added_sum: float, n_added: float) -> float:
    """Return a group's mean after ``n_added`` people joined it, of whom ``added_sum`` score 1."""
    return (n * mean + added_sum) / (n + n_added)


def build_synthetic_caution(run_record: Mapping[str, Any]) -> CautionParagraph | None:
    """Say that the people are synthetic, where the data or injected truths show it.

    Examples
    --------
    >>> build_synthetic_caution({"dataset": {"synthetic": True}}).headline
    'These people are synthetic.'
    >>> build_synthetic_caution({"dataset": {"title": "FACET"}}) is None
    True
    """
    if not (run_record.get("injected") or (run_record.get("dataset") or {}).get("synthetic")):
        return None
    return CautionParagraph(
        "These people are synthetic.",
        "A program drew them and, where there are pictures, painted them. The numbers show what "
        "an audit finds in such data, and nothing about real people.",
    )


def sort_sections_by_rank(sections: Sequence[AttributeSection]) -> list[AttributeSection]:
    """Put the leading attribute first, then others that differ, as the answer names them."""
    return sorted(sections, key=lambda s: s.reading_rank)


def describe_verdict(
    section: AttributeSection, choice: StatementChoice, audited: AuditSubject
) -> str:
    """Say of one attribute what is established on the main line, or cannot be ruled out."""
    line, verdict = section.main.line, section.verdict
    leader = choice.find_leader(line, section.attribute)
    if leader is not None:
        return describe_statement_briefly(leader, choice.names)
    if verdict.outcome == "no difference found":
        return describe_no_established_difference(
            line, [section.attribute], choice.comparisons, choice.names
        )
    if audited.withheld:
        return "Not told: what was tested is hidden with groups of few people."
    return f"Not judged: {_explain_missing_verdict(verdict)}."


def _explain_missing_verdict(verdict: Verdict) -> str:
    if verdict.spread.reason:
        return verdict.spread.reason
    if verdict.n_judged < 2:
        comparable_count, n = format_count(verdict.n_judged), format_count(verdict.n_groups)
        return f"{comparable_count} of {n} groups are large enough to judge"
    return "no test was made"


def read_protocol_section(run_record: Mapping[str, Any]) -> ProtocolSection | None:
    """Take the protocol out of a run's record; None where the audit followed none."""
    protocol_record = run_record.get("protocol")
    if not isinstance(protocol_record, Mapping):
        return None
    return ProtocolSection(
        name=str(protocol_record.get("name") or ""),
        title=str(protocol_record.get("title") or ""),
        tables=read_paper_tables(protocol_record.get("tables")),
        absent=tuple(
            (str(k), str(v)) for k, v in dict(protocol_record.get("absent") or {}).items()
        ),
        disagreements=tuple(str(text) for text in protocol_record.get("disagreements") or ()),
    )


def read_paper_tables(recorded_tables: object) -> tuple[PaperTable, ...]:
    """Take tables as a record has them: ``columns`` and ``rows`` by caption."""
    return tuple(
        PaperTable(
            caption=str(caption),
            columns=tuple(str(c) for c in table.get("columns") or ()),
            rows=tuple(tuple(row) for row in table.get("rows") or ()),
        )
        for caption, table in (
            recorded_tables.items() if isinstance(recorded_tables, Mapping) else ()
        )
    )


def build_injected_rows(
    run_record: Mapping[str, Any], run: Run, context: ReportContext
) -> tuple[InjectedRow, ...]:
    """Look up every injected truth in the run's tables."""
    return tuple(
        _build_injected_row(dict(truth), run, context) for truth in run_record.get("injected") or ()
    )


def _build_injected_row(
    injected_effect: Mapping[str, Any], run: Run, context: ReportContext
) -> InjectedRow:
    estimate_row = _find_estimate_row(injected_effect, run)
    true_value = injected_effect.get("value")
    disparity_kind = str(injected_effect.get("kind") or "value")
    task = str(run.record.get("task") or "")
    metric = find_metric_or_neutral(task, str(injected_effect.get("metric") or ""))
    low, high = (estimate_row or {}).get("low"), (estimate_row or {}).get("high")
    return InjectedRow(
        description=str(
            injected_effect.get("what")
            or _describe_injected_effect(injected_effect, disparity_kind, metric, context)
        ),
        unit=""
        if disparity_kind in {"ratio", "ratio_min_max", "log_ratio", "epsilon"}
        else metric.unit,
        signed=disparity_kind != "value",
        true_value=true_value,
        estimate=(estimate_row or {}).get("value"),
        low=low,
        high=high,
        covered=None
        if true_value is None or low is None or high is None
        else bool(low <= true_value <= high),
        note=str(
            injected_effect.get("note") or ("" if estimate_row else "this audit did not measure it")
        ),
    )


def _describe_injected_effect(
    injected_effect: Mapping[str, Any],
    disparity_kind: str,
    metric_info: Metric,
    context: ReportContext,
) -> str:
    title = metric_info.format_title(injected_effect.get("threshold"))
    metric = title if title[1:2].isupper() else title[:1].lower() + title[1:]
    if injected_effect.get("label"):
        metric += f" of {format_class_with_target(injected_effect['label'], context.target)}"
    attribute = injected_effect.get("attribute")
    attribute_prefix = f"{context.format_attribute_title(str(attribute))}: " if attribute else ""
    groups = [
        str(injected_effect[n])
        for n in ("group", "group_a", "group_b")
        if injected_effect.get(n) is not None
    ]
    kind_text = "" if disparity_kind == "value" else disparity_kind.replace("_", " ") + " in "
    return f"{attribute_prefix}{kind_text}{metric}" + (
        f", {join_with_and(groups)}" if groups else ""
    )


def _find_estimate_row(injected_effect: Mapping[str, Any], run: Run) -> Mapping[str, Any] | None:
    disparity_kind = str(injected_effect.get("kind") or "value")
    group = injected_effect.get("group_a", injected_effect.get("group"))
    if disparity_kind == "value":
        filters = {"group": group} if group is not None else {}
        return _find_first_matching_row(run.group_metrics, injected_effect, filters)
    filters = {"kind": disparity_kind} | ({"group_a": group} if group is not None else {})
    other_group = injected_effect.get("group_b")
    row = _find_first_matching_row(
        run.disparities,
        injected_effect,
        filters | ({"group_b": other_group} if other_group else {}),
    )
    if row or other_group is None or disparity_kind != "difference":
        return row
    # The table turns pairs so that the worse group comes first; the truth need not.
    swapped_row = _find_first_matching_row(
        run.disparities,
        injected_effect,
        {"kind": disparity_kind, "group_a": other_group, "group_b": group},
    )
    return swapped_row and {
        name: None if swapped_row[key] is None else -swapped_row[key]
        for name, key in (("value", "value"), ("low", "high"), ("high", "low"))
    }


def _find_first_matching_row(
    table: pl.DataFrame, injected_effect: Mapping[str, Any], filters: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    columns = {name: injected_effect.get(name) for name in ("metric", "label", "attribute")} | dict(
        filters
    )
    if injected_effect.get("threshold") is not None:
        columns["threshold"] = injected_effect["threshold"]
    rows = table.filter(*(pl.col(name).eq_missing(pl.lit(v)) for name, v in columns.items()))
    return rows.row(0, named=True) if rows.height else None
