"""The lines of an audit: each metric, per class and threshold, with the task's words for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from isolux.statements.words import lowered
from isolux.vocabulary import registry
from isolux.vocabulary.drawn import weighted_title
from isolux.vocabulary.errors import IsoluxError
from isolux.vocabulary.info import SERVED_WORSE, Direction, Metric, TaskInfo
from isolux.vocabulary.words import chosen_words, class_name, target_of

LINE = ("model", "task", "metric", "label", "threshold")
"""The columns that together name a line."""

LineKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was measured: a metric, of one class and at one threshold where it has them.

    ``title`` is for headings, ``phrase`` for the middle of a sentence; ``whose`` are the words in
    both that name the class, ``worse`` those that say which of two groups does worse. ``opposite``
    and ``meaning`` are those of ``declared``: the other kind of error, and what this kind is.
    """

    model: str
    metric: str
    label: str | None
    threshold: float | None
    title: str
    phrase: str
    definition: str
    unit: str
    direction: Direction
    whose: str = ""
    worse: str = SERVED_WORSE
    opposite: str = ""
    meaning: str = ""
    declared: Metric | None = None


def key_of(row: Mapping[str, Any]) -> LineKey:
    """Return the line that a row of group_metrics or disparities belongs to."""
    return tuple(row[name] for name in LINE)


def lines_of(
    group_metrics: pl.DataFrame,
    record: Mapping[str, Any],
    disparities: pl.DataFrame | None = None,
) -> dict[LineKey, Line]:
    """Return every line by its key, in the order of reading: the main metric first."""
    rows = group_metrics.select(LINE).unique(maintain_order=True).to_dicts()
    several = len({row["model"] for row in rows}) > 1
    asked = _asked(record, rows)

    sure = _sureness(disparities)

    def order(row: Mapping[str, Any]) -> tuple[bool, int, bool, float]:
        place = asked.index(row["metric"]) if row["metric"] in asked else len(asked)
        neither = place == 0 and metric_of(row["task"], row["metric"]).direction == "none"
        first = sure.get(key_of(row), 1.0) if neither and row["label"] is not None else 0.0
        return (row["model"] != record.get("model"), place, row["label"] is not None, first)

    target, words = target_of(record), chosen_words(record)
    said = record.get("measures") or {}
    return {
        key_of(row): _line(
            row, target, several=several, words=words.get(row["metric"], ""),
            about=said.get(row["metric"], {}), record=record,
        )
        for row in sorted(rows, key=order)
    }  # fmt: skip


def _sureness(disparities: pl.DataFrame | None) -> dict[LineKey, float]:
    """Give the smallest adjusted p of each line's attributes."""
    if disparities is None or "model" not in disparities.columns:
        return {}
    rows = disparities.filter(kind="any_difference").drop_nulls("p_adjusted")
    found = rows.group_by(LINE).agg(pl.col("p_adjusted").min())
    return {key_of(row): row["p_adjusted"] for row in found.iter_rows(named=True)}


def _asked(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    asked = list((record.get("spec") or {}).get("metric") or record.get("metrics") or ())
    info = _task(rows[0]["task"]) if rows and not asked else None
    return asked or (list(info.defaults) if info else [])


def _line(
    row: Mapping[str, Any],
    target: str,
    *,
    several: bool,
    words: str = "",
    about: Mapping[str, str] | None = None,
    record: Mapping[str, Any] | None = None,
) -> Line:
    metric = metric_of(row["task"], row["metric"])
    # Of a number that could be anything, the user says the unit and which way is better.
    own = {key: value for key, value in (about or {}).items() if key in ("unit", "direction")}
    metric = replace(metric, title=weighted_title(metric.title, record or {}), **own)  # type: ignore[arg-type]
    whose = "" if row["label"] is None else f" of {class_name(row['label'], target)}"
    title = metric.titled(row["threshold"]) + whose
    if row["threshold"] is None:
        title += words
    if several:
        title += f", {row['model']}"
    return Line(
        model=row["model"],
        metric=row["metric"],
        label=row["label"],
        whose=whose,
        threshold=row["threshold"],
        title=title,
        phrase=phrase_of(title),
        definition=metric.definition,
        unit=metric.unit,
        direction=metric.direction,
        worse=info.worse if (info := _task(row["task"])) else SERVED_WORSE,
        declared=metric,
        opposite=metric.opposite,
        meaning=metric.meaning.replace("{label}", class_name(row["label"], target)),
    )


def metric_of(task: str, name: str) -> Metric:
    """Return the task's declaration of a metric, or a neutral one where none is declared."""
    info = _task(task)
    for metric in info.metrics if info else ():
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


def _task(name: str) -> TaskInfo | None:
    # A run of another package's task must still be readable where that package is absent.
    try:
        return registry.task_info(name)
    except IsoluxError:
        return None


def phrase_of(title: str) -> str:
    """Call a metric in the middle of a sentence.

    Examples
    --------
    >>> phrase_of("Accuracy"), phrase_of("AP"), phrase_of("Share found at a score of 0.5")
    ('accuracy', 'AP', 'the share found at a score of 0.5')
    """
    share = title.startswith(("Share ", "Weighted share "))
    return f"the {lowered(title)}" if share else lowered(title)
