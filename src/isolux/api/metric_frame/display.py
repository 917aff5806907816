"""A metric frame on a screen, in a notebook and as a figure: a row a group, a column a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.core.errors import SpecError
from isolux.core.extras import import_optional
from isolux.core.notebook import build_table_html
from isolux.core.printable import clean_line

if TYPE_CHECKING:
    import altair as alt

_MAX_ROWS = 60


def build_text_table(
    overall: pl.DataFrame, by_group: pl.DataFrame, level: float
) -> tuple[str, list[str], list[list[str]]]:
    """Lay out a heading, column names and rows: everyone first, then each group."""
    metrics = by_group["metric"].unique(maintain_order=True).to_list()
    features = _list_feature_columns(by_group)
    cells_by_key: dict[tuple[Any, ...], dict[str, str]] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for frame in (overall, by_group):
        for row in frame.iter_rows(named=True):
            key = tuple(_format_feature(row, name) for name in features)
            cells_by_key.setdefault(key, {})[row["metric"]] = _format_value_with_interval(row)
            counts[key] = row["n"]
    rows = [
        [*key, f"{counts[key]:,}", *(cells.get(metric, "–") for metric in metrics)]
        for key, cells in cells_by_key.items()
    ]
    heading = f"Metrics by {' × '.join(features)}, with {100 * level:g} % intervals"
    return clean_line(heading), [*features, "n", *metrics], rows


def _list_feature_columns(by_group: pl.DataFrame) -> list[str]:
    return [name for name in by_group.columns if name not in _NUMBER_COLUMNS]


_NUMBER_COLUMNS = ("metric", "value", "low", "high", "n")


def _format_feature(row: Mapping[str, Any], name: str) -> str:
    """Format a feature's value; a row of everyone lacks the sensitive features."""
    return clean_line(str(row[name])) if name in row else "all"


def _format_value_with_interval(row: Mapping[str, Any]) -> str:
    if row["value"] is None:
        return "–"
    interval = "" if row["low"] is None else f" ({row['low']:.3f}–{row['high']:.3f})"
    return f"{row['value']:.3f}{interval}"


def format_frame_text(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table in aligned columns; beyond sixty rows, say how many more there are."""
    shown_rows = [list(columns), *(list(row) for row in rows[:_MAX_ROWS])]
    widths = [max(map(len, cells)) for cells in zip(*shown_rows, strict=True)]
    n_features = list(columns).index("n")
    lines = [
        "  ".join(
            cell.rjust(width) if k == n_features else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in shown_rows
    ]
    n_more = len(rows) - _MAX_ROWS
    return "\n".join(
        [heading, *lines, *([f"… {n_more:,} more in .by_group"] if n_more > 0 else [])]
    )


def format_frame_html(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as HTML, with every text escaped."""
    n_more = len(rows) - _MAX_ROWS
    remainder_html = f"<p>… {n_more:,} more in <code>.by_group</code></p>" if n_more > 0 else ""
    return build_table_html(columns, rows[:_MAX_ROWS], caption=heading) + remainder_html


def build_pandas_table(by_group: pl.DataFrame) -> Any:
    """Build a pandas frame as fairlearn's ``by_group``: groups by metrics, the values alone."""
    if find_spec("pandas") is None:
        raise SpecError(
            "a pandas frame needs pandas, which is not installed", hint="pip install pandas"
        )
    features = _list_feature_columns(by_group)
    wide = by_group.pivot("metric", index=features, values="value")
    # isolux does not declare pandas: it is the user's.
    frame = import_module("pandas").DataFrame({name: wide[name].to_list() for name in wide.columns})
    metrics = [name for name in wide.columns if name not in features]
    return frame.set_index(features)[metrics].astype(float)


def draw_frame(by_group: pl.DataFrame) -> alt.FacetChart:
    """Draw each metric's groups as points with intervals, one panel a metric."""
    charts: Any = import_optional("altair", package="altair", extra="notebook", purpose="a chart")
    features = _list_feature_columns(by_group)
    rows = [
        {
            "group": " × ".join(str(row[name]) for name in features),
            **{name: row[name] for name in _NUMBER_COLUMNS},
        }
        for row in by_group.iter_rows(named=True)
    ]
    chart: alt.FacetChart = charts.Chart.from_dict(
        {
            "data": {"values": rows},
            "facet": {
                "column": {"field": "metric", "type": "nominal", "title": None, "sort": None}
            },
            "spec": {
                "width": 220,
                "encoding": {
                    "y": {
                        "field": "group",
                        "type": "nominal",
                        "sort": None,
                        "title": " × ".join(features),
                    }
                },
                "layer": [
                    {
                        "mark": {"type": "rule", "strokeWidth": 2},
                        "encoding": {
                            "x": {
                                "field": "low",
                                "type": "quantitative",
                                "scale": {"zero": False},
                                "title": None,
                            },
                            "x2": {"field": "high"},
                        },
                    },
                    {
                        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                        "encoding": {
                            "x": {"field": "value", "type": "quantitative"},
                            "tooltip": [{"field": name} for name in ("group", *_NUMBER_COLUMNS)],
                        },
                    },
                ],
            },
            "resolve": {"scale": {"x": "independent"}},
        }
    )
    return chart
