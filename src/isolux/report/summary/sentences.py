"""What a report says around its numbers: answers, cautions, planted truths, what it cannot say.

Limits are worded by fairlearn's guide for contributors: an audit measures disparities, it never
certifies their absence, and says whose labels it used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux import derive
from isolux.report._sections import Context
from isolux.report.document import (
    AttributeSection,
    Audited,
    Caution,
    GroupRow,
    PairRow,
    PaperTable,
    PlantedRow,
    Protocol,
    Verdict,
)
from isolux.report.wording import listed
from isolux.statements.choice import Choice
from isolux.statements.lines import metric_of
from isolux.statements.numbers import count, value_text, with_unit
from isolux.statements.text import describe_finding, describe_null
from isolux.vocabulary.containers import Run
from isolux.vocabulary.info import Metric
from isolux.vocabulary.words import brief, class_name

MEASURES = (
    "It measures the disparities it was asked to look at, on these people, with these labels. "
    "Other people, other images and other uses of the model may differ."
)
NOT_FOUND = (
    "“No difference found” means that this much data did not show one. It is not evidence that "
    "there is none; the intervals say which differences cannot be ruled out."
)
WHOLE = (
    "The whole population was drawn, so its values are known and not estimated. They say nothing "
    "about other people, or about this population at another time."
)
NO_CAUSE = (
    "It describes where scores differ. It does not say why, whether the labels, the images, the "
    "model or the sampling is the cause, or what harm follows in use."
)
COARSE = "Group names are the dataset’s. They are coarse, and people within one group differ."
_JUDGED = {
    "perceived": "The groups are as perceived by annotators: how people look to others, which may "
    "differ from how they describe themselves.",
    "self-reported": "The groups are self-reported, from the choices that people were given.",
    "inferred": "The groups were inferred by a model, whose own errors may differ between groups "
    "and can both hide disparities and create apparent ones.",
}
_TITLE = 100  # characters of an attribute's title in a sentence


def limits_of(audited: Audited, sections: Sequence[AttributeSection]) -> tuple[str, ...]:
    """List what the audit cannot say, for this run in particular."""
    asked = listed([brief(s.title, _TITLE) for s in sections])
    looked = (
        "A model may work differently for people along lines that were not recorded."
        if not sections
        else f"It looked at these attributes and no others: {asked}. A model may work differently "
        "for people along lines that were not recorded."
    )
    none = WHOLE if audited.census else NOT_FOUND
    told = [MEASURES, looked, none, NO_CAUSE, _whose_labels(audited, sections), COARSE]
    small = sum(s.verdict.n_groups - s.verdict.n_judged for s in sections)
    if small:
        told.append(
            f"{count(small)} group{'s' if small > 1 else ''} had too little data to judge. These "
            "may be the people for whom the model does worst; their absence here is not good news."
        )
    if audited.cluster is None:
        told.append(f"Rows were taken as independent. {independence_text(audited)}")
    if audited.correction != "none" and sections:
        told.append(
            "P-values are adjusted for everything that this audit compared, and for the "
            "explanations that were requested with it. They do not cover a second audit of the "
            "same people (other attributes, another seed) or a comparison of two models."
        )
    if any(s.verdict.outcome == "differ" for s in sections):
        told.append(
            "The pairs that it names were chosen because they are farthest apart, so their gaps "
            "are probably overstated; another sample would probably show smaller ones."
        )
    told.append("It is a measurement with uncertainty, not a certificate of any kind.")
    return tuple(told)


def _whose_labels(audited: Audited, sections: Sequence[AttributeSection]) -> str:
    """Say who judged the groups; what is computed from boxes and pictures nobody judged."""
    judgement = audited.judgement.strip()
    text = _JUDGED.get(judgement)
    if text is None:
        return (
            f"Who assigned the groups: {judgement or 'not recorded'}. If others judged how people "
            "look, that may differ from how they describe themselves."
        )
    computed = [s.title for s in sections if s.title.replace(" ", "_") in derive.names()]
    if not computed:
        return text
    if len(computed) == len([s for s in sections if not s.is_intersection]):
        return f"Nobody judged the groups: {listed(computed)} was computed from boxes or pictures."
    return f"{text} Not so {listed(computed)}, computed from boxes or pictures."


def independence_text(audited: Audited) -> str:
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


def unknown_text(section: AttributeSection, *, mean: bool, n_unannotated: int = 0) -> str:
    """Say how many people's value is unknown, and how far they could move the first difference."""
    table, line = section.main, section.main.line
    unknown = [row for row in table.rows if row.is_unknown and row.estimate.n_units]
    if not unknown:
        return ""
    n = sum(row.estimate.n_units for row in unknown)
    whose = f"{count(n)} unit{'' if n == 1 else 's'} of unknown {brief(section.title)}"
    if len(unknown) == 1 and unknown[0].estimate.value is not None:
        whose += f" ({line.phrase} {with_unit(unknown[0].estimate.value, line.unit)})"
    if n_unannotated:
        whose += " that were not annotated" if n_unannotated >= n else ""
        whose += f", {count(n_unannotated)} of them not annotated," * (n_unannotated < n)
    told = f"{whose} {'is' if n == 1 else 'are'} in none of the groups compared."
    pair = section.lead
    if pair is None or section.is_intersection or len(unknown) != 1 or not mean:
        return told
    found = bounds(pair, table.rows, unknown[0])
    if found is None:
        return told
    low, high = (value_text(end, line.unit) for end in found)
    return (
        f"{told} However they were divided between {brief(pair.group_a)} and "
        f"{brief(pair.group_b)}, the difference between these two would be between {low} and "
        f"{high} points."
    )


def bounds(
    pair: PairRow, rows: tuple[GroupRow, ...], unknown: GroupRow
) -> tuple[float, float] | None:
    """Return the least and the largest difference, if the unknown belong to the pair's groups."""
    of = {row.group: row.estimate for row in rows}
    low, high = of.get(pair.group_a), of.get(pair.group_b)
    if low is None or high is None or low.value is None or high.value is None:
        return None
    if low.value > high.value:
        low, high = high, low
    v, n = unknown.estimate.value, unknown.estimate.n_units
    if not all(0.0 <= x <= 1.0 for x in (low.value or 0.0, high.value or 0.0, v or 0.0)):
        return None
    ones = [n * v] if v is not None else [float(k) for k in range(n + 1)]
    sides = (low.value or 0.0, low.n_units), (high.value or 0.0, high.n_units)
    widest = max(_joined(*sides[1], k, k) - _joined(*sides[0], 0.0, n - k) for k in ones)
    closest = min(_joined(*sides[1], 0.0, n - k) - _joined(*sides[0], k, k) for k in ones)
    return closest, widest


def _joined(value: float, n: int, ones: float, more: float) -> float:
    """Return a group's mean after ``more`` people joined it, of whom ``ones`` score 1."""
    return (n * value + ones) / (n + more)


def synthetic(record: Mapping[str, Any]) -> Caution | None:
    """Say that the people are synthetic, where the data or planted truths show it.

    Examples
    --------
    >>> synthetic({"dataset": {"synthetic": True}}).headline
    'These people are synthetic.'
    >>> synthetic({"dataset": {"title": "FACET"}}) is None
    True
    """
    if not (record.get("planted") or (record.get("dataset") or {}).get("synthetic")):
        return None
    return Caution(
        "These people are synthetic.",
        "A program drew them and, where there are pictures, painted them. The numbers show what "
        "an audit finds in such data, and nothing about real people.",
    )


def reading_order(sections: Sequence[AttributeSection]) -> list[AttributeSection]:
    """Put the leading attribute first, then others that differ, as the answer names them."""
    return sorted(sections, key=lambda s: s.place)


def verdict_text(section: AttributeSection, choice: Choice, audited: Audited) -> str:
    """Say of one attribute what is established on the main line, or cannot be ruled out."""
    line, verdict = section.main.line, section.verdict
    leader = choice.leader_of(line, section.attribute)
    if leader is not None:
        return describe_finding(leader, choice.names)
    if verdict.outcome == "no difference found":
        return describe_null(line, [section.attribute], choice.comparisons, choice.names)
    if audited.withheld:
        return "Not told: what was tested is hidden with groups of few people."
    return f"Not judged: {_why_not(verdict)}."


def _why_not(verdict: Verdict) -> str:
    if verdict.spread.reason:
        return verdict.spread.reason
    if verdict.n_judged < 2:
        judged, n = count(verdict.n_judged), count(verdict.n_groups)
        return f"{judged} of {n} groups are large enough to judge"
    return "no test was made"


def protocol_of(record: Mapping[str, Any]) -> Protocol | None:
    """Take the protocol out of a run's record; None where the audit followed none."""
    said = record.get("protocol")
    if not isinstance(said, Mapping):
        return None
    return Protocol(
        name=str(said.get("name") or ""),
        title=str(said.get("title") or ""),
        tables=tables_of(said.get("tables")),
        absent=tuple((str(k), str(v)) for k, v in dict(said.get("absent") or {}).items()),
        disagreements=tuple(str(text) for text in said.get("disagreements") or ()),
    )


def tables_of(said: object) -> tuple[PaperTable, ...]:
    """Take tables as a record has them: ``columns`` and ``rows`` by caption."""
    return tuple(
        PaperTable(
            caption=str(caption),
            columns=tuple(str(c) for c in table.get("columns") or ()),
            rows=tuple(tuple(row) for row in table.get("rows") or ()),
        )
        for caption, table in (said.items() if isinstance(said, Mapping) else ())
    )


def planted_of(record: Mapping[str, Any], run: Run, context: Context) -> tuple[PlantedRow, ...]:
    """Look up every planted truth in the run's tables."""
    return tuple(_row(dict(truth), run, context) for truth in record.get("planted") or ())


def _row(truth: Mapping[str, Any], run: Run, context: Context) -> PlantedRow:
    found = _find(truth, run)
    value = truth.get("value")
    kind = str(truth.get("kind") or "value")
    task = str(run.record.get("task") or "")
    metric = metric_of(task, str(truth.get("metric") or ""))
    low, high = (found or {}).get("low"), (found or {}).get("high")
    return PlantedRow(
        what=str(truth.get("what") or _described(truth, kind, metric, context)),
        unit="" if kind in {"ratio", "ratio_min_max", "log_ratio", "epsilon"} else metric.unit,
        signed=kind != "value",
        planted=value,
        found=(found or {}).get("value"),
        low=low,
        high=high,
        covered=None
        if value is None or low is None or high is None
        else bool(low <= value <= high),
        note=str(truth.get("note") or ("" if found else "this audit did not measure it")),
    )


def _described(truth: Mapping[str, Any], kind: str, of: Metric, context: Context) -> str:
    title = of.titled(truth.get("threshold"))
    metric = title if title[1:2].isupper() else title[:1].lower() + title[1:]
    if truth.get("label"):
        metric += f" of {class_name(truth['label'], context.target)}"
    attribute = truth.get("attribute")
    whose = f"{context.title(str(attribute))}: " if attribute else ""
    groups = [str(truth[n]) for n in ("group", "group_a", "group_b") if truth.get(n) is not None]
    what = "" if kind == "value" else kind.replace("_", " ") + " in "
    return f"{whose}{what}{metric}" + (f", {listed(groups)}" if groups else "")


def _find(truth: Mapping[str, Any], run: Run) -> Mapping[str, Any] | None:
    kind = str(truth.get("kind") or "value")
    group = truth.get("group_a", truth.get("group"))
    if kind == "value":
        wanted = {"group": group} if group is not None else {}
        return _only(run.group_metrics, truth, wanted)
    wanted = {"kind": kind} | ({"group_a": group} if group is not None else {})
    other = truth.get("group_b")
    found = _only(run.disparities, truth, wanted | ({"group_b": other} if other else {}))
    if found or other is None or kind != "difference":
        return found
    # The table turns pairs so that the worse group comes first; the truth need not.
    turned = _only(run.disparities, truth, {"kind": kind, "group_a": other, "group_b": group})
    return turned and {
        name: None if turned[key] is None else -turned[key]
        for name, key in (("value", "value"), ("low", "high"), ("high", "low"))
    }


def _only(
    frame: pl.DataFrame, truth: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    columns = {name: truth.get(name) for name in ("metric", "label", "attribute")} | dict(wanted)
    if truth.get("threshold") is not None:
        columns["threshold"] = truth["threshold"]
    found = frame.filter(*(pl.col(name).eq_missing(pl.lit(v)) for name, v in columns.items()))
    return found.row(0, named=True) if found.height else None
