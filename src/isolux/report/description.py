"""The page of ``isolux describe``: what datasets hold, as one HTML file with simple figures.

From named tables (``isolux.description`` makes them) to a page in the report's own dress: it works
offline and asks the network for nothing. Which figure a table gets follows from its columns: bars
for shares of one dataset, dots with intervals where datasets stand side by side (FairFace,
Figure 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.containers import Run, printed
from isolux.info import DatasetInfo
from isolux.io import write_text
from isolux.report._labels import short_names
from isolux.report._svg import ACCENT, GREY, INK, Spec, field, to_svg
from isolux.report.figures import Figure
from isolux.report.html import page
from isolux.report.summary import summarise
from isolux.report.wording import count, listed, plain
from isolux.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES

__all__ = ["render_description", "write_description"]

MOST_BARS = 40
"""A table with more rows gets no figure: nobody would read it."""
_SHARES = ("% of people", "% of images", "% of known")
_COLOURS = (ACCENT, "#c05a00", "#5b8c2a", "#7a3e9d", "#8a6d00", "#b0305c", GREY, INK)
_WIDTH, _ROW, _NAME = 330, 20, 30


@dataclass(frozen=True, slots=True)
class _Part:
    """One table as the page prints it, its anchor, and its figure if it has one."""

    anchor: str
    table: Mapping[str, Any]
    figure: Figure | None


def write_description(
    path: str | Path,
    tables: Mapping[str, pl.DataFrame],
    datasets: Mapping[str, DatasetInfo],
    notes: Sequence[str] = (),
) -> Path:
    """Write the page to ``path``, whole or not at all.

    Raises
    ------
    OutputError
        When the file cannot be written.
    """
    return write_text(path, render_description(tables, datasets, notes))


def render_description(
    tables: Mapping[str, pl.DataFrame],
    datasets: Mapping[str, DatasetInfo],
    notes: Sequence[str] = (),
) -> str:
    """Print tables as one self-contained HTML document.

    Parameters
    ----------
    tables : mapping of str to polars.DataFrame
        By caption. The first column names rows; shares are per cent, in columns ``% of people``,
        ``% of images``, or ``% of known`` with its interval's ends ``from`` and ``to``.
    datasets : mapping of str to DatasetInfo
        The names that the tables use, with citation, licence and whose judgement the labels are.
    notes : sequence of str

    Examples
    --------
    >>> info = DatasetInfo(title="Two", summary="Two people.", references=())
    >>> table = pl.DataFrame({"tone": ["<b>"], "people": [2], "% of people": [100.0]})
    >>> html = render_description({"By tone": table}, {"two": info})
    >>> "<b>" in html, "&lt;b&gt;" in html
    (False, True)
    """
    kinds = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    scores, attributes, metrics, disparities, findings = (table.empty() for table in kinds)
    nothing = Run({}, scores, attributes, metrics, disparities, findings)
    parts = [
        _Part(f"table-{at}", {"caption": caption, **drawn}, _figure(caption, tables[caption]))
        for at, (caption, drawn) in enumerate(printed(tables).items(), start=1)
    ]
    return page(
        "description.html.j2",
        title=f"What {listed(list(datasets))} {'holds' if len(datasets) == 1 else 'hold'}",
        answer=_answer(tables, list(datasets)),
        summary=summarise(nothing),
        parts=parts,
        datasets=datasets,
        notes=list(notes),
        version=_version(),
    )


def _version() -> str:
    from importlib.metadata import version

    return version("isolux")


def _answer(tables: Mapping[str, pl.DataFrame], names: Sequence[str]) -> str:
    """Say how many there are: the one sentence for those who read no further."""
    sizes = next((t for t in tables.values() if "images with people" in t.columns), None)
    if sizes is None:
        return ""
    said = []
    for at, row in enumerate(sizes.iter_rows(named=True)):
        whom = f"{row.get('dataset', names[at])}: " if len(names) > 1 else ""
        subjects = f" ({count(row['subjects'])} subjects)" if row["subjects"] else ""
        people = f"{count(row['people'])} {'person' if row['people'] == 1 else 'people'}"
        images = f"{count(row['images with people'])} image"
        plural = "" if row["images with people"] == 1 else "s"
        said.append(f"{whom}{people}{subjects} in {images}{plural}.")
    return " ".join(said)


def _figure(caption: str, table: pl.DataFrame) -> Figure | None:
    share = next((name for name in _SHARES if name in table.columns), None)
    if share is None or not 0 < table[share].count() <= MOST_BARS:
        return None
    if share == "% of known":
        alt = f"{plain(caption)}. The table below has the numbers."
        return Figure(_dots(table), alt, "Points are shares of those known; lines are intervals.")
    if "dataset" in table.columns:
        return None
    at = table.columns.index("people" if share == "% of people" else "images")
    names = [" × ".join("–" if v is None else str(v) for v in row[:at]) for row in table.rows()]
    alt = f"{plain(caption)}: {share} in bars. The table below has the numbers."
    return Figure(
        _bars(names, table[share].to_list(), share), alt, f"{share[0].upper()}{share[1:]}."
    )


def _axis(names: Sequence[str]) -> Spec:
    axis = {"title": None, "domain": False, "ticks": False, "labelPadding": 8, "grid": False}
    return field("name", "nominal", scale={"domain": list(names)}, axis=axis)


def _bars(names: Sequence[str], shares: Sequence[float | None], title: str) -> str:
    shown = short_names(names, _NAME)
    rows = [
        {"name": name, "share": share, "text": f"{share:.1f}"}
        for name, share in zip(shown, shares, strict=True)
        if share is not None
    ]
    x = field("share", scale={"domainMin": 0}, axis={"title": title, "tickCount": 5})
    bar = {"mark": {"type": "bar", "color": ACCENT, "height": {"band": 0.7}}}
    text = {"mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 12, "color": INK}}
    y = _axis(shown)
    return to_svg(
        {
            "data": {"values": rows},
            "layer": [
                {**bar, "encoding": {"x": x, "y": y}},
                {**text, "encoding": {"x": x, "y": y, "text": field("text", "nominal")}},
            ],
            "width": _WIDTH,
            "height": _ROW * len(shown),
        },
        enlarged=1.2,
    )


def _dots(table: pl.DataFrame) -> str:
    """Draw each group's share in each dataset, one under the other, with its interval."""
    groups = table["group"].unique(maintain_order=True).to_list()
    names = table["dataset"].unique(maintain_order=True).to_list()
    short = dict(zip(groups, short_names(groups, _NAME), strict=True))
    of = dict(zip(names, short_names(names, _NAME), strict=True))
    rows = [
        {"name": short[g], "dataset": of[d], "share": share, "low": low, "high": high}
        for g, d, share, low, high in table.select(
            "group", "dataset", "% of known", "from", "to"
        ).iter_rows()
        if share is not None
    ]
    y = _axis(list(short.values()))
    offset = field("dataset", "nominal", scale={"domain": list(of.values())})
    colours = [_COLOURS[at % len(_COLOURS)] for at in range(len(names))]
    colour = field(
        "dataset",
        "nominal",
        scale={"domain": list(of.values()), "range": colours},
        legend={"title": None, "orient": "top", "labelLimit": 300, "labelFontSize": 12},
    )
    x = field("share", scale={"domainMin": 0}, axis={"title": "% of known", "tickCount": 5})
    place = {"y": y, "yOffset": offset, "color": colour}
    rule = {"x": field("low"), "x2": {"field": "high"}, **place}
    dot = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    return to_svg(
        {
            "data": {"values": rows},
            "layer": [
                {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": rule},
                {"mark": dot, "encoding": {"x": x, **place}},
            ],
            "width": _WIDTH,
            "height": max(_ROW, 13 * len(names) + 6) * len(groups),
        },
        enlarged=1.2,
    )
