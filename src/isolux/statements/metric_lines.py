"""The lines of an audit: each metric, per class and threshold, with the task's words for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from isolux.core import registry
from isolux.core.errors import IsoluxError
from isolux.core.formatting import (
    describe_task_choices_by_metric,
    format_class_with_target,
    read_target_term,
)
from isolux.core.info import SERVED_WORSE, Direction, Metric, TaskInfo
from isolux.core.survey_sample import add_weighted_to_title
from isolux.statements.numbers import (
    NO_VALUE,
    SMALL_RATE,
    format_fixed,
    format_interval,
    format_with_unit,
)
from isolux.statements.run_terms import lower_unless_acronym

LINE_COLUMNS = ("model", "task", "metric", "label", "threshold")
"""The columns that together name a line."""

MetricLineKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One thing that was measured: a metric, of one class and threshold where it has them."""

    model: str
    metric: str
    label: str | None
    threshold: float | None
    title: str
    phrase: str
    definition: str
    unit: str
    direction: Direction
    class_suffix: str = ""
    worse_sentence: str = SERVED_WORSE
    opposite: str = ""
    meaning: str = ""
    declaration: Metric | None = None


def format_line_value(
    line: MetricLine, value: float | None, low: float | None, high: float | None
) -> str:
    """Write a line's value with its interval, where there is one."""
    value_text = format_with_unit(value, line.unit)
    interval_text = format_interval(low, high, line.unit, shared_with=value)
    interval_text = "" if interval_text == NO_VALUE else f" ({interval_text.replace(' to ', '–')})"
    return f"{line.phrase} {value_text}{interval_text}"


def to_line_key(row: Mapping[str, Any]) -> MetricLineKey:
    """Return the line that a row of group_metrics or disparities belongs to."""
    return tuple(row[name] for name in LINE_COLUMNS)


def read_metric_lines(
    group_metrics: pl.DataFrame,
    run_record: Mapping[str, Any],
    disparities: pl.DataFrame | None = None,
) -> dict[MetricLineKey, MetricLine]:
    """Return every line by its key, in the order of reading: the main metric first."""
    rows = group_metrics.select(LINE_COLUMNS).unique(maintain_order=True).to_dicts()
    has_several_models = len({row["model"] for row in rows}) > 1
    requested_metrics = _list_requested_or_default_metrics(run_record, rows)

    p_by_line = _find_min_p_by_line(disparities)

    def sort_key(row: Mapping[str, Any]) -> tuple[bool, int, bool, float]:
        rank = (
            requested_metrics.index(row["metric"])
            if row["metric"] in requested_metrics
            else len(requested_metrics)
        )
        is_undirected = (
            rank == 0 and find_metric_or_neutral(row["task"], row["metric"]).direction == "none"
        )
        first = (
            p_by_line.get(to_line_key(row), 1.0)
            if is_undirected and row["label"] is not None
            else 0.0
        )
        return (row["model"] != run_record.get("model"), rank, row["label"] is not None, first)

    target, words = read_target_term(run_record), describe_task_choices_by_metric(run_record)
    declared_measures = run_record.get("measures") or {}
    return {
        to_line_key(row): _build_metric_line(
            row,
            target,
            has_several_models=has_several_models,
            words=words.get(row["metric"], ""),
            declared_measure=declared_measures.get(row["metric"], {}),
            record=run_record,
        )
        for row in sorted(rows, key=sort_key)
    }


def _find_min_p_by_line(disparities: pl.DataFrame | None) -> dict[MetricLineKey, float]:
    """Find the smallest adjusted p-value over the attributes of each line."""
    if disparities is None or "model" not in disparities.columns:
        return {}
    rows = disparities.filter(kind="omnibus_test").drop_nulls("p_adjusted")
    p_values = rows.group_by(LINE_COLUMNS).agg(pl.col("p_adjusted").min())
    return {to_line_key(row): row["p_adjusted"] for row in p_values.iter_rows(named=True)}


def _list_requested_or_default_metrics(
    run_record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    metrics = list((run_record.get("spec") or {}).get("metric") or run_record.get("metrics") or ())
    task_info = _load_task_info_if_registered(rows[0]["task"]) if rows and not metrics else None
    return metrics or (list(task_info.defaults) if task_info else [])


def _build_metric_line(
    row: Mapping[str, Any],
    target: str,
    *,
    has_several_models: bool,
    words: str = "",
    declared_measure: Mapping[str, str] | None = None,
    record: Mapping[str, Any] | None = None,
) -> MetricLine:
    metric = find_metric_or_neutral(row["task"], row["metric"])
    # Of a number that could be anything, the user says the unit and which way is better.
    overrides = {
        key: entry
        for key, entry in (declared_measure or {}).items()
        if key in ("unit", "direction")
    }
    metric = replace(metric, title=add_weighted_to_title(metric.title, record or {}), **overrides)  # type: ignore[arg-type]
    class_suffix = (
        "" if row["label"] is None else f" of {format_class_with_target(row['label'], target)}"
    )
    title = metric.format_title(row["threshold"]) + class_suffix
    if row["threshold"] is None:
        title += words
    if has_several_models:
        title += f", {row['model']}"
    return MetricLine(
        model=row["model"],
        metric=row["metric"],
        label=row["label"],
        class_suffix=class_suffix,
        threshold=row["threshold"],
        title=title,
        phrase=format_title_inline(title),
        definition=metric.definition,
        unit=metric.unit,
        direction=metric.direction,
        worse_sentence=task_info.worse_phrase
        if (task_info := _load_task_info_if_registered(row["task"]))
        else SERVED_WORSE,
        declaration=metric,
        opposite=metric.opposite,
        meaning=metric.meaning.replace("{label}", format_class_with_target(row["label"], target)),
    )


def find_metric_or_neutral(task: str, name: str) -> Metric:
    """Return the task's declaration of a metric, or a neutral one where none is declared."""
    task_info = _load_task_info_if_registered(task)
    for metric in task_info.metrics if task_info else ():
        if metric.name == name:
            return metric
    title = name.replace("_", " ").strip()
    return Metric(
        name=name,
        title=title[:1].upper() + title[1:],
        definition="",
        direction="none",
        low=None,
        high=None,
        unit="",
    )


def _load_task_info_if_registered(name: str) -> TaskInfo | None:
    # A run of another package's task must still be readable where that package is absent.
    try:
        return registry.task_info(name)
    except IsoluxError:
        return None


def format_title_inline(title: str) -> str:
    """Call a metric in the middle of a sentence.

    Examples
    --------
    >>> (
    ...     format_title_inline("Accuracy"),
    ...     format_title_inline("AP"),
    ...     format_title_inline("Share found at a score of 0.5"),
    ... )
    ('accuracy', 'AP', 'the share found at a score of 0.5')
    """
    share = title.startswith(("Share ", "Weighted share "))
    return f"the {lower_unless_acronym(title)}" if share else lower_unless_acronym(title)


_POPULATION_BASES = (100, 1_000, 10_000, 1_000_000)
"""Of how many people a sentence speaks."""
_MULTIPLE_WORDS = {
    2: "twice",
    3: "three times",
    4: "four times",
    5: "five times",
    6: "six times",
    7: "seven times",
    8: "eight times",
    9: "nine times",
    10: "ten times",
}


def describe_rates_as_counts(metric: Metric, label: str, rates: tuple[float, float]) -> str:
    """Say two rates in people: of so many of each group, how many the model is right about.

    Examples
    --------
    >>> metric = Metric(name="accuracy", title="Accuracy", definition="", direction="higher",
    ...                 in_people="Of {people} the model is right for {n}")
    >>> (
    ...     describe_rates_as_counts(metric, "", (0.63, 0.97)),
    ...     describe_rates_as_counts(metric, "", (0.0002, 0.0018)),
    ... )
    ('it is right for 63 of 100 against 97', 'it is right for 2 of 10,000 against 18')
    """
    template = metric.in_people
    if not template or ("{label}" in template and not label):
        return ""
    base = _choose_people_base(*rates)
    first, second = (f"{round(base * x):,}" for x in rates)
    short = template.removeprefix("Of {people} the model ")
    counts = f"{first} against {second}"
    if short != template:
        template, counts = f"it {short}", f"{first} of {base:,} against {second}"
    slots = {"people": f"{base:,}", "n": counts, "label": label}
    text = template.replace("the model", "it", 1).replace("Of ", "of ", 1)
    return re.sub(r"\{(\w+)\}", lambda slot: slots.get(slot[1], slot[0]), text)


def _choose_people_base(rate_a: float, rate_b: float) -> int:
    """Choose of how many people to speak: of so many that both counts and the gap are seen."""
    is_small = max(rate_a, rate_b) < SMALL_RATE
    for base in _POPULATION_BASES[2 if is_small else 0 :]:
        a, b = base * rate_a, base * rate_b
        is_seen = all(x >= 0.5 or x == 0 for x in (a, b))
        if is_seen and (round(a) != round(b) or rate_a == rate_b):
            return base
    return _POPULATION_BASES[-1]


def describe_error_rate_ratio(
    metric: Metric, rates: tuple[float, float], bounds: tuple[float | None, float | None]
) -> str:
    """Say how many times as often an error is made: strangers are accepted nine times as often.

    Examples
    --------
    >>> metric = Metric(name="false_match_rate", title="", definition="", direction="lower",
    ...                 in_times="strangers are accepted {times} as often")
    >>> describe_error_rate_ratio(metric, (0.0018, 0.0002), (0.001, 0.002))
    'strangers are accepted nine times as often'
    """
    low, high = bounds
    is_shown = low is not None and high is not None and not low <= 0 <= high
    if not metric.in_times or not is_shown or min(rates) <= 0:
        return ""
    return metric.in_times.replace("{times}", _format_times_as_often(max(rates) / min(rates)))


def _format_times_as_often(ratio: float) -> str:
    if ratio > 10.5:
        return f"{ratio:,.0f} times"
    near = round(ratio)
    is_whole = near in _MULTIPLE_WORDS and abs(ratio - near) <= 0.05 * near
    return _MULTIPLE_WORDS[near] if is_whole else f"{format_fixed(ratio)} times"
