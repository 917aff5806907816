"""The figures of the page of ``isolux describe``: which one a table gets follows from its columns.

Bars for shares of one dataset; dots with intervals where datasets stand side by side (FairFace,
Figure 1) and for Vendi scores; strips for numbers by group (Figure 5); curves for distances of
pairs (Figure 4); a map of points for embeddings (Figure 3). Hue never stands alone: lines differ by
dash, points by shape as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.core.printable import clean_line
from isolux.report.figures import Figure
from isolux.report.figures.svg import (
    ACCENT,
    GREY,
    INK,
    Spec,
    build_channel,
    draw_chart_svg,
    shorten_names_distinctly,
)
from isolux.statements.numbers import format_count

MOST_BARS = 40
"""Rows of a table above which it gets no figure: it would be unreadable."""

_MOST_LINES = 16
_SHARES = ("% of people", "% of images", "% of known")
_COLOURS = (ACCENT, "#c05a00", "#5b8c2a", "#7a3e9d", "#8a6d00", "#b0305c", GREY, INK)
_DASHES = ([1, 0], [5, 3])
_FORMS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_WIDTH, _ROW, _NAME = 330, 20, 30
_ALONE_COLUMN = "one person in the image"
_VENDI = "Vendi score of these"
_QUANTILES = ("5th", "25th", "median", "75th", "95th")


def draw_table_figures(
    caption: str, table: pl.DataFrame, figure_data: Mapping[str, pl.DataFrame] | None = None
) -> list[Figure]:
    """Draw one table, and what is drawn above it: curves and maps by the figure's title."""
    if figure_data:
        return [
            _draw_embedding_map(title, frame)
            if "x" in frame.columns
            else _draw_distance_curves(caption, title, frame)
            for title, frame in figure_data.items()
            if 0 < frame["group"].n_unique() <= _MOST_LINES
        ]
    if _VENDI in table.columns:
        note = "Scores of {} subjects of each group, with intervals."
        return _draw_range_figures(caption, table, _VENDI, (("from", "to", 2),), note)
    if set(_QUANTILES) <= set(table.columns):
        note = "Mark: median. Thick: the middle half. Thin: the middle 90 %."
        return _draw_range_figures(
            caption, table, "median", (("5th", "95th", 1), ("25th", "75th", 5)), note
        )
    figures = [_draw_share_figure(caption, table), _draw_lone_person_figure(caption, table)]
    return [figure for figure in figures if figure is not None]


def _draw_share_figure(caption: str, table: pl.DataFrame) -> Figure | None:
    share = next((name for name in _SHARES if name in table.columns), None)
    if share is None or not 1 < table[share].count() <= MOST_BARS:
        return None
    if share == "% of known":
        alt = f"{clean_line(caption)}. The table below has the numbers."
        return Figure(
            _draw_dataset_dots_svg(table),
            alt,
            "Points are shares of those known; lines are intervals.",
        )
    if "dataset" in table.columns:
        return None
    count_column_index = table.columns.index("people" if share == "% of people" else "images")
    names = [
        " × ".join("–" if v is None else str(v) for v in row[:count_column_index])
        for row in table.rows()
    ]
    alt = f"{clean_line(caption)}: {share} in bars. The table below has the numbers."
    noun = share.removeprefix("% of ")
    return Figure(
        _draw_bars_svg(names, table[share].to_list(), share), alt, f"Share of all {noun}."
    )


def _draw_lone_person_figure(caption: str, table: pl.DataFrame) -> Figure | None:
    """Draw sizes of boxes once more for images of one person (FACET, Figure 10 b)."""
    if _ALONE_COLUMN not in table.columns or "dataset" in table.columns:
        return None
    total = table[_ALONE_COLUMN].sum()
    if not total or total == table["people"].sum():
        return None
    shares = (100.0 * table[_ALONE_COLUMN] / total).to_list()
    alt = (
        f"{clean_line(caption)}, of images with one person, in bars. The table below has the"
        " numbers."
    )
    svg = _draw_bars_svg(
        table[table.columns[0]].to_list(), shares, "% of people alone in their image"
    )
    return Figure(svg, alt, "Share of those who are alone in their image.")


def _build_name_axis(names: Sequence[str]) -> Spec:
    axis = {"title": None, "domain": False, "ticks": False, "labelPadding": 8, "grid": False}
    return build_channel("name", "nominal", scale={"domain": list(names)}, axis=axis)


def _draw_bars_svg(
    bar_labels: Sequence[str], shares: Sequence[float | None], axis_title: str
) -> str:
    short_labels = shorten_names_distinctly(bar_labels, _NAME)
    rows = [
        {"name": name, "share": share, "text": f"{share:.1f}"}
        for name, share in zip(short_labels, shares, strict=True)
        if share is not None
    ]
    x = build_channel("share", scale={"domainMin": 0}, axis={"title": axis_title, "tickCount": 5})
    bar = {"mark": {"type": "bar", "color": ACCENT, "height": {"band": 0.7}}}
    text = {"mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 12, "color": INK}}
    y = _build_name_axis(short_labels)
    return draw_chart_svg(
        {
            "data": {"values": rows},
            "layer": [
                {**bar, "encoding": {"x": x, "y": y}},
                {**text, "encoding": {"x": x, "y": y, "text": build_channel("text", "nominal")}},
            ],
            "width": _WIDTH,
            "height": _ROW * len(short_labels),
        },
        scale=1.2,
    )


def _build_top_legend(names: Sequence[str], **options: Any) -> Spec:
    """Lay a legend out above the figure, in as many columns as fit its width."""
    longest = max(len(name) for name in names)
    columns = max(1, int((_WIDTH + 50) // (6 * longest + 30)))
    base_options = {"title": None, "orient": "top", "labelLimit": 300, "labelFontSize": 12}
    return {**base_options, "columns": columns, "symbolOpacity": 1, **options}


def _build_colour_channel(column: str, categories: Sequence[str], **options: Any) -> Spec:
    colours = [_COLOURS[index % len(_COLOURS)] for index in range(len(categories))]
    scale = {"domain": list(categories), "range": colours}
    return build_channel(
        column, "nominal", scale=scale, legend=_build_top_legend(categories, **options)
    )


def _draw_dataset_dots_svg(table: pl.DataFrame) -> str:
    """Draw each group's share in each dataset, one under the other, with its interval."""
    groups = table["group"].unique(maintain_order=True).to_list()
    names = table["dataset"].unique(maintain_order=True).to_list()
    short = dict(zip(groups, shorten_names_distinctly(groups, _NAME), strict=True))
    short_datasets = dict(zip(names, shorten_names_distinctly(names, _NAME), strict=True))
    rows = [
        {"name": short[g], "dataset": short_datasets[d], "share": share, "low": low, "high": high}
        for g, d, share, low, high in table.select(
            "group", "dataset", "% of known", "from", "to"
        ).iter_rows()
        if share is not None
    ]
    y = _build_name_axis(list(short.values()))
    offset = build_channel("dataset", "nominal", scale={"domain": list(short_datasets.values())})
    x = build_channel("share", scale={"domainMin": 0}, axis={"title": "% of known", "tickCount": 5})
    position_encoding = {
        "y": y,
        "yOffset": offset,
        "color": _build_colour_channel("dataset", list(short_datasets.values())),
    }
    rule = {"x": build_channel("low"), "x2": {"field": "high"}, **position_encoding}
    dot = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    return draw_chart_svg(
        {
            "data": {"values": rows},
            "layer": [
                {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": rule},
                {"mark": dot, "encoding": {"x": x, **position_encoding}},
            ],
            "width": _WIDTH,
            "height": max(_ROW, 13 * len(names) + 6) * len(groups),
        },
        scale=1.2,
    )


def _draw_range_figures(
    caption: str,
    table: pl.DataFrame,
    centre_column: str,
    range_columns: Sequence[tuple[str, str, int]],
    caption_template: str,
) -> list[Figure]:
    """Draw a value of each group on lines that lie around it: a figure an attribute."""
    rows_with_value = table.filter(pl.col(centre_column).is_not_null())
    if rows_with_value.is_empty():
        return []
    has_several_datasets = "dataset" in table.columns and table["dataset"].n_unique() > 1
    figures = []
    for (attribute,), rows in rows_with_value.group_by("attribute", maintain_order=True):
        labels = rows["group"].to_list()
        if has_several_datasets:
            labels = [
                f"{g}, {d}" if g != d else g for g, d in zip(labels, rows["dataset"], strict=True)
            ]
        if len(labels) > MOST_BARS or labels == [attribute]:  # everyone alone is no figure
            continue
        low, high = rows[range_columns[0][0]].min(), rows[range_columns[0][1]].max()
        x: Spec = {"scale": {"domain": [low, high], "zero": False, "nice": True}}
        names = shorten_names_distinctly(labels, _NAME)
        cells = [{"name": n, **r} for n, r in zip(names, rows.to_dicts(), strict=True)]
        spec = _build_range_chart(cells, names, centre_column, range_columns, x)
        alt = f"{clean_line(caption)} by {attribute}. The table below has the numbers."
        n_subjects = rows["subjects drawn"][0] if centre_column == _VENDI else None
        caption_note = (
            caption_template.format(format_count(n_subjects)) if n_subjects else caption_template
        )
        figures.append(
            Figure(
                draw_chart_svg(spec, scale=1.2), alt, f"By {clean_line(attribute)}. {caption_note}"
            )
        )
    return figures


def _build_range_chart(
    group_rows: list[dict[str, Any]],
    names: Sequence[str],
    centre_column: str,
    range_columns: Sequence[tuple[str, str, int]],
    x_options: Spec,
) -> Spec:
    y = _build_name_axis(names)
    read = dict.fromkeys(
        [centre_column, *(key for low, high, _ in range_columns for key in (low, high))]
    )
    keys = {key: f"c{index}" for index, key in enumerate(read)}
    values = [{"name": c["name"]} | {keys[k]: c[k] for k in keys} for c in group_rows]
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": width, "color": ACCENT},
            "encoding": {
                "x": build_channel(
                    keys[low],
                    axis={"title": centre_column.removesuffix(" of these"), "tickCount": 5},
                    **x_options,
                ),
                "x2": {"field": keys[high]},
                "y": y,
            },
        }
        for low, high, width in range_columns
    ]
    mark = {"type": "point", "filled": True, "size": 70, "color": INK, "opacity": 1}
    layers.append(
        {"mark": mark, "encoding": {"x": build_channel(keys[centre_column], **x_options), "y": y}}
    )
    return {
        "data": {"values": values},
        "layer": layers,
        "width": _WIDTH,
        "height": _ROW * len(names),
    }


def _draw_distance_curves(caption: str, title: str, distance_shares: pl.DataFrame) -> Figure:
    """Draw the share of pairs that lie nearer than each distance, a line a group."""
    groups = distance_shares["group"].unique(maintain_order=True).to_list()
    names = shorten_names_distinctly(groups, _NAME)
    short_by_group = dict(zip(groups, names, strict=True))
    rows = [
        {"name": short_by_group[g], "distance": d, "share": 100.0 * s}
        for g, d, s in distance_shares.select("group", "distance", "share").iter_rows()
    ]
    metric = caption.rpartition(": ")[2]
    dashes = [_DASHES[index // len(_COLOURS) % 2] for index in range(len(names))]
    dash = build_channel(
        "name",
        "nominal",
        scale={"domain": names, "range": dashes},
        legend=_build_top_legend(names, symbolType="stroke"),
    )
    ticks = {"title": f"distance ({metric})", "tickCount": 5}
    x = build_channel("distance", scale={"zero": False, "nice": True}, axis=ticks)
    y = build_channel(
        "share", scale={"domain": [0, 100]}, axis={"title": "% of pairs", "tickCount": 5}
    )
    order = build_channel("share", sort="ascending")
    spec = {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {
            "x": x,
            "y": y,
            "order": order,
            "strokeDash": dash,
            "color": _build_colour_channel("name", names, symbolType="stroke"),
        },
        "width": _WIDTH,
        "height": 200,
    }
    half = distance_shares.filter((pl.col("share") - 0.5).abs() < 1e-9).sort("distance")
    medians_text = ", ".join(
        f"{g} {d:.3g}" for g, d in half.select("group", "distance").iter_rows()
    )
    return Figure(
        draw_chart_svg(spec, scale=1.2),
        f"{clean_line(caption)}, {clean_line(title)}: half of the pairs are nearer than "
        f"{clean_line(medians_text)}.",
        f"By {clean_line(title)}: pairs that are nearer than each distance, in percent. A curve to "
        "the left has people who look more alike to the model."
        if title != "overall"
        else "Everyone: pairs that are nearer than each distance, in percent.",
    )


def _draw_embedding_map(title: str, embedding_points: pl.DataFrame) -> Figure:
    """Draw a point for each person, where t-SNE laid it, by group."""
    groups = embedding_points["group"].unique().to_list()
    sizes = dict(embedding_points["group"].value_counts().rows())
    groups.sort(key=lambda g: (-sizes[g], g))
    names = shorten_names_distinctly(groups, _NAME)
    short_by_group = dict(zip(groups, names, strict=True))
    rows = [
        {"name": short_by_group[g], "x": round(x, 2), "y": round(y, 2)}
        for g, x, y in embedding_points.select("group", "x", "y").iter_rows()
    ]
    forms = [_FORMS[index % len(_FORMS)] for index in range(len(names))]
    shape = build_channel(
        "name",
        "nominal",
        scale={"domain": names, "range": forms},
        legend=_build_top_legend(names, symbolSize=60),
    )
    bare: Spec = {"axis": None, "scale": {"zero": False, "nice": False, "padding": 6}}
    spec = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 14, "opacity": 0.75},
        "encoding": {
            "x": build_channel("x", **bare),
            "y": build_channel("y", **bare),
            "shape": shape,
            "color": _build_colour_channel("name", names, symbolSize=60),
        },
        "width": _WIDTH + 60,
        "height": _WIDTH,
    }
    count_text = format_count(len(rows))
    return Figure(
        draw_chart_svg(spec, scale=1.2),
        f"Map of {count_text} embeddings by {clean_line(title)}. The table below says how often "
        f"the nearest "
        "neighbour is of the same group.",
        f"{count_text} embeddings by {clean_line(title)}. Near means alike; distances between "
        f"clouds, and "
        "their sizes, mean nothing.",
    )
