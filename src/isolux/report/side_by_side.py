"""Several models on one page: models as columns, groups as rows, one figure, every change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core import registry
from isolux.core.formatting import shorten_name
from isolux.core.info import Metric
from isolux.core.printable import clean_line
from isolux.io import write_text
from isolux.report.document import Estimate
from isolux.report.figures.heatmap import Cell, draw_heat_map_svg
from isolux.report.figures.svg import (
    ACCENT,
    GREY,
    INK,
    build_channel,
    can_draw_figures,
    draw_chart_svg,
)
from isolux.report.html import render_page
from isolux.statements.numbers import (
    format_bare_value,
    format_gap_size,
    format_interval,
    format_p_value,
)

_WIDTH, _HEIGHT = 520, 260
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def draw_models_by_size_svg(
    model_rows: Sequence[Mapping[str, Any]],
    *,
    size_title: str,
    metric_title: str,
    is_fraction: bool,
) -> str:
    """Draw models as SVG."""
    multiplier = 100.0 if is_fraction else 1.0
    values = [
        {
            k: (
                v * multiplier
                if k in ("value", "low", "high", "least", "most") and v is not None
                else v
            )
            for k, v in row.items()
        }
        for row in model_rows
        if row["size"] is not None and row["value"] is not None
    ]
    sizes = [row["size"] for row in values]
    paradigms = list(dict.fromkeys(row["paradigm"] for row in values))
    exponent_range = [floor(log10(min(sizes))), ceil(log10(max(sizes)))] if sizes else [0, 1]
    marks = {
        "values": [10.0**k for k in range(exponent_range[0], exponent_range[1] + 1)],
        "format": "~s",
    }
    axis_text = {
        "title": f"{size_title} (logarithmic)",
        "labelExpr": "replace(datum.label, 'G', 'B')",
    }
    x = build_channel(
        "size",
        axis={**marks, **axis_text, "grid": False},
        scale={"type": "log", "nice": True, "padding": 30},
    )
    axis = {"title": f"{metric_title}{' (%)' if is_fraction else ''}"}
    y = build_channel("value", axis=axis, scale={"zero": False, "nice": True})
    shape = build_channel(
        "paradigm",
        "nominal",
        scale={"domain": paradigms, "range": list(_SHAPES[: len(paradigms)])},
        legend={
            "title": None,
            "orient": "top",
            "symbolFillColor": ACCENT,
            "symbolStrokeWidth": 0,
            "labelFontSize": 12,
        },
    )
    spec = {
        "data": {"values": values},
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            {
                "mark": {"type": "rule", "color": GREY, "strokeDash": [2, 3], "strokeWidth": 1.5},
                "encoding": {
                    "x": x,
                    "y": build_channel("least", axis=axis),
                    "y2": {"field": "most"},
                },
            },
            {
                "mark": {"type": "rule", "color": INK, "strokeWidth": 2.5},
                "encoding": {"x": x, "y": build_channel("low", axis=axis), "y2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "color": ACCENT,
                    "size": 110,
                    "opacity": 1,
                },
                "encoding": {"x": x, "y": y, "shape": shape},
            },
            {
                "mark": {"type": "text", "dx": 9, "dy": -9, "align": "left", "fontSize": 12},
                "encoding": {"x": x, "y": y, "text": build_channel("name", "nominal")},
            },
        ],
    }
    return draw_chart_svg(spec) if values else ""


_LINE = ["metric", "label", "threshold", "attribute", "group"]
_MAX_TABLE_ROWS, _ROWS, _MAX_NAMED_GAPS = 200, 40, 4
"""Rows of one table on the page; all are in the files beside it."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def pivot_values_by_model(metric_values: pl.DataFrame, models: Sequence[str]) -> pl.DataFrame:
    """Lay values out with models as columns: value and interval in a cell, as text."""
    units = _load_units_by_metric(metric_values)
    cells: dict[tuple[Any, ...], dict[str, str]] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for row in metric_values.iter_rows(named=True):
        key = tuple(row[name] for name in _LINE)
        unit = units.get(row["metric"], "fraction")
        cells.setdefault(key, {})[row["model"]] = _format_value_and_interval(row, unit)
        counts[key] = row["n_units"]
    rows = [
        (*key, counts[key], *(cells_by_model.get(model, "") for model in models))
        for key, cells_by_model in cells.items()
    ]
    column_types = {
        "metric": pl.String,
        "label": pl.String,
        "threshold": pl.Float64,
        "attribute": pl.String,
        "group": pl.String,
        "n": pl.Int64,
        **dict.fromkeys(models, pl.String),
    }
    return pl.DataFrame(rows, schema=column_types, orient="row")


def _format_value_and_interval(value_row: Mapping[str, Any], unit: str) -> str:
    if value_row["value"] is None:
        return str(value_row["status"])
    text = format_bare_value(value_row["value"], unit)
    if value_row["low"] is None:
        return text
    return f"{text} [{format_interval(value_row['low'], value_row['high'], unit)}]"


def _load_metrics_by_name(metric_values: pl.DataFrame) -> dict[str, Metric]:
    tasks = metric_values["task"].unique().to_list()
    task_infos = [registry.task_info(task) for task in tasks if task in registry.names("tasks")]
    return {m.name: m for task_info in task_infos for m in task_info.metrics}


def _load_units_by_metric(metric_values: pl.DataFrame) -> dict[str, str]:
    return {name: m.unit for name, m in _load_metrics_by_name(metric_values).items()}


def format_latex_table(table: pl.DataFrame, caption: str) -> str:
    r"""Write a table as LaTeX (booktabs); every character that LaTeX reads as a command is escaped.

    Examples
    --------
    >>> print(format_latex_table(pl.DataFrame({"a_b": ["50 % & more"]}), "A table."))
    \begin{table}
    \caption{A table.}
    \begin{tabular}{l}
    \toprule
    a\_b \\
    \midrule
    50 \% \& more \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    nonempty_table = table.select([c for c in table.columns if not table[c].is_null().all()])
    lines = [
        r"\begin{table}",
        rf"\caption{{{_to_latex_text(caption)}}}",
        rf"\begin{{tabular}}{{{'l' * nonempty_table.width}}}",
        r"\toprule",
        " & ".join(map(_to_latex_text, nonempty_table.columns)) + r" \\",
        r"\midrule",
    ]
    lines += [
        " & ".join(_to_latex_text(cell) for cell in row) + r" \\"
        for row in nonempty_table.iter_rows()
    ]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _to_latex_text(cell: object) -> str:
    text = "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)
    shortened_text = shorten_name(
        clean_line(" ".join(text.split()))
    )  # a name of 500 letters would leave the page
    return "".join(_LATEX.get(letter, letter) for letter in shortened_text)


def write_side_by_side_page(
    tables: Mapping[str, pl.DataFrame], record: Mapping[str, Any], path: Path
) -> Path:
    """Write the page: warnings, what changed, the figure, one table, ranks of classes."""
    models = list(record["models"])
    values, changes = tables["values"], tables["changes"]
    pivoted_values = pivot_values_by_model(values, models)
    page = render_page(
        "side_by_side.html.j2",
        title=" and ".join([", ".join(models[:-1]), models[-1]]) + " side by side"
        if len(models) > 1
        else f"{models[0]}: the mean of {record['models'][models[0]]} runs",
        models=[(name, runs) for name, runs in record["models"].items()],
        units=record["units"],
        level=f"{100 * record['level']:g} %",
        warnings=list(record["warnings"]),
        notes=list(record["notes"]),
        steps=describe_gap_changes(changes, values),
        figure=_draw_first_metric_heat_map(values, models),
        trained=_build_training_table(tables.get("models"), values),
        by_size=_draw_size_figure(tables.get("models"), values),
        drawn=_format_line_title(values.row(0, named=True), _load_metrics_by_name(values))
        if values.height
        else "",
        values=_to_template_table(pivoted_values),
        changes=_to_template_table(_format_changes_as_text(changes, values)),
        gaps=_to_template_table(format_gaps_as_text(tables["gaps"], values)),
        ranks=_to_template_table(tables["ranks"].with_columns(pl.selectors.float().round(3))),
        most=_MAX_TABLE_ROWS,
    )
    return write_text(path, page)


def _build_training_table(
    model_table: pl.DataFrame | None, metric_values: pl.DataFrame
) -> dict[str, Any] | None:
    """Print models and their training; values in the metric's own unit."""
    if model_table is None:
        return None
    unit = _load_units_by_metric(metric_values).get(model_table["metric"][0], "fraction")
    shares = [c for c in model_table.columns if c in ("value", "low", "high") or ": " in c]
    cells = {
        name: [
            None if number is None else format_bare_value(number, unit)
            for number in model_table[name]
        ]
        for name in shares
    }
    sizes = {
        name: [None if number is None else f"{number:,.0f}" for number in model_table[name]]
        for name in ("images", "parameters")
    }
    return _to_template_table(
        model_table.with_columns(
            pl.Series(k, v, dtype=pl.String) for k, v in (cells | sizes).items()
        )
    )


def _draw_size_figure(model_table: pl.DataFrame | None, metric_values: pl.DataFrame) -> str | None:
    """Draw models by how many pictures they were trained on, else by their parameters."""
    from markupsafe import Markup

    if model_table is None or not can_draw_figures():
        return None
    size = next((k for k in ("images", "parameters") if model_table[k].is_not_null().any()), None)
    if size is None:
        return None
    metric = _load_metrics_by_name(metric_values).get(model_table["metric"][0])
    lowest = [c for c in model_table.columns if c.startswith("lowest: ")]
    highest = [c for c in model_table.columns if c.startswith("highest: ")]
    rows = model_table.with_columns(
        name="model",
        size=size,
        paradigm=pl.col("paradigm").fill_null("not said"),
        least=pl.min_horizontal(lowest) if lowest else pl.col("low"),
        most=pl.max_horizontal(highest) if highest else pl.col("high"),
    ).select("name", "size", "paradigm", "value", "low", "high", "least", "most")
    drawing = draw_models_by_size_svg(
        rows.to_dicts(),
        size_title="training images" if size == "images" else size,
        metric_title=metric.title if metric else model_table["metric"][0],
        is_fraction=(metric.unit if metric else "fraction") == "fraction",
    )
    return Markup(drawing) if drawing else None  # noqa: S704 - our own drawing, names escaped by it


def _to_template_table(table: pl.DataFrame) -> dict[str, Any]:
    nonempty_table = table.select([c for c in table.columns if not table[c].is_null().all()])
    rows = [
        ["" if x is None else f"{x:g}" if isinstance(x, float) else str(x) for x in row]
        for row in nonempty_table.head(_MAX_TABLE_ROWS).iter_rows()
    ]
    return {
        "columns": nonempty_table.columns,
        "rows": rows,
        "more": max(table.height - _MAX_TABLE_ROWS, 0),
    }


def _format_changes_as_text(changes: pl.DataFrame, metric_values: pl.DataFrame) -> pl.DataFrame:
    """Print changes as text, largest first of those that are shown."""
    units, metrics = _load_units_by_metric(metric_values), _load_metrics_by_name(metric_values)
    order = pl.col("word").is_in(["not shown", "not judged"])
    ranked = changes.sort(
        order, "kind", pl.col("value").abs(), descending=[False, True, True], nulls_last=True
    )
    rows = []
    for row in ranked.iter_rows(named=True):
        unit = units.get(row["metric"], "fraction")
        rows.append(
            (
                f"{row['model_a']} to {row['model_b']}",
                _format_line_title(row, metrics),
                row["attribute"] or "overall",
                row["group_a"] + (f" against {row['group_b']}" if row["group_b"] else ""),
                format_bare_value(row["value"], unit, with_sign=True),
                format_interval(row["low"], row["high"], unit),
                "" if row["p_adjusted"] is None else format_p_value(row["p_adjusted"]),
                row["word"],
            )
        )
    names = ["models", "metric", "attribute", "group", "change", "interval", "adjusted p", "shown"]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def format_gaps_as_text(gaps: pl.DataFrame, metric_values: pl.DataFrame) -> pl.DataFrame:
    """Print the gaps of models of several runs as text, in the order of the table."""
    units, metrics = _load_units_by_metric(metric_values), _load_metrics_by_name(metric_values)
    rows = []
    for row in gaps.iter_rows(named=True):
        unit = units.get(row["metric"], "fraction")
        rows.append(
            (
                f"{row['model']} ({row['runs']} runs)",
                _format_line_title(row, metrics),
                row["attribute"],
                f"{row['group_a']} against {row['group_b']}",
                format_bare_value(row["value"], unit, with_sign=True),
                format_interval(row["low"], row["high"], unit),
                format_bare_value(row["seed_sd"], unit),
                format_p_value(row["p_adjusted"]),
            )
        )
    names = [
        "model",
        "metric",
        "attribute",
        "groups",
        "gap",
        "interval",
        "SD of runs",
        "adjusted p",
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _format_line_title(line_row: Mapping[str, Any], metric_by_name: Mapping[str, Metric]) -> str:
    """Call a line by its metric's title, threshold and class."""
    label = "" if line_row["label"] is None else f" of {line_row['label']}"
    metric = metric_by_name.get(line_row["metric"])
    if metric is not None:
        return f"{metric.format_title(line_row['threshold'])}{label}"
    threshold_text = "" if line_row["threshold"] is None else f" at {line_row['threshold']:g}"
    return f"{line_row['metric']}{threshold_text}{label}"


def describe_gap_changes(changes: pl.DataFrame, metric_values: pl.DataFrame) -> list[str]:
    """Say from each model to the next which gaps grew and which shrank, in sentences."""
    units, metrics = _load_units_by_metric(metric_values), _load_metrics_by_name(metric_values)
    sentences = []
    gaps = changes.filter(pl.col("kind") == "gap_change", pl.col("next"))
    for (a, b), rows in gaps.group_by(["model_a", "model_b"], maintain_order=True):
        clauses = []
        for word in ("grew", "shrank"):
            word_rows = rows.filter(word=word).sort(pl.col("value").abs(), descending=True)
            gap_texts = [
                f"{_format_line_title(row, metrics)} of {row['group_a']} "
                f"against {row['group_b']} (by "
                f"{format_gap_size(row['value'], units.get(row['metric'], 'fraction'))})"
                for row in word_rows.head(_MAX_NAMED_GAPS).iter_rows(named=True)
            ]
            gap_texts += (
                [f"{word_rows.height - _MAX_NAMED_GAPS} more"]
                if word_rows.height > _MAX_NAMED_GAPS
                else []
            )
            details = f": {'; '.join(gap_texts)}" if gap_texts else ""
            clauses.append(f"{word_rows.height or 'none'} {word}{details}")
        open_ = rows.height - int(rows["word"].is_in(["grew", "shrank"]).sum())
        sentence = (
            f"From {a} to {b}, of {rows.height} gap{'s' * (rows.height != 1)} {', '.join(clauses)}"
        )
        sentences.append(f"{sentence}; {open_} not shown to differ.")
    return sentences


def _draw_first_metric_heat_map(metric_values: pl.DataFrame, models: Sequence[str]) -> str | None:
    """Draw the first metric: groups as rows, models as columns, darker is worse."""
    from markupsafe import Markup

    if not can_draw_figures() or not metric_values.height:
        return None
    first = metric_values.row(0, named=True)
    rows = metric_values.filter(
        pl.col("metric") == first["metric"],
        pl.col("label").eq_missing(first["label"]),
        pl.col("threshold").eq_missing(first["threshold"]),
    )
    has_several_attributes = rows["attribute"].drop_nulls().n_unique() > 1
    cells, names = [], []
    for row in rows.iter_rows(named=True):
        attribute_prefix = (
            f"{row['attribute']}: " if has_several_attributes and row["attribute"] else ""
        )
        name = f"{attribute_prefix}{row['group']}"
        names.append(name)
        estimate = Estimate(
            row["value"],
            row["low"],
            row["high"],
            row["n_units"],
            row["n_clusters"],
            row["status"],
            row["reason"],
        )
        cells.append(Cell(name, row["model"], estimate))
    metric = _load_metrics_by_name(metric_values).get(first["metric"])
    return Markup(  # noqa: S704 - our own drawing; names are escaped where it is made
        draw_heat_map_svg(
            cells,
            list(dict.fromkeys(names))[:_ROWS],
            list(models),
            unit=metric.unit if metric else "fraction",
            direction=metric.direction if metric else "none",
        )
    )
