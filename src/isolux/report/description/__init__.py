"""The page of ``isolux describe``: what datasets hold, as one HTML file with simple figures.

From named tables (``isolux.api.describe`` makes them) to a page in the report's own dress: it
works offline and asks the network for nothing. ``figures`` draws.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.containers import Run, tables_to_json
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.io import write_text
from isolux.io.owned_files import refuse_foreign_page
from isolux.report.description.figures import draw_table_figures
from isolux.report.figures import Figure
from isolux.report.html import render_run_page
from isolux.report.summary import summarise_run
from isolux.report.wording import join_with_and
from isolux.statements.numbers import format_count


@dataclass(frozen=True, slots=True)
class _DescriptionTable:
    """One table as the page prints it, its anchor, its figures, and whether it is folded."""

    anchor: str
    table: Mapping[str, Any]
    figures: Sequence[Figure]
    folded: bool = False

    @property
    def estimated_height_px(self) -> float:
        """Estimate its height on a screen, in pixels: figures stand two a row unless broad."""
        heights = [float(m[1]) for f in self.figures if (m := _HEIGHT.search(f.svg))]
        figures_px = sum(heights) / (2.0 if len(heights) > 1 else 1.0)
        return _HEAD + _ROW * len(self.table["rows"]) + figures_px + _CAPTION * bool(heights)


_HEIGHT = re.compile(r"""<svg[^>]*?\bheight=["']([0-9.]+)""")
_HEAD, _ROW, _CAPTION = 120.0, 29.0, 60.0
_OPEN = 3600.0
"""Pixels of tables left open; with contents, a line for each of the others and the end, a page is
then some eight screens of 900 long."""
_LINES = 30
"""Folded tables with a line each; further ones are folded together."""


def _fold_tables_beyond_page_limit(tables: Sequence[_DescriptionTable]) -> list[_DescriptionTable]:
    """Leave open the first tables that fit, but those that are long by themselves."""
    used_px, is_full, folded_tables = 0.0, False, []
    for table in tables:
        is_long = table.estimated_height_px > _OPEN / 3 and used_px > 0
        is_full = is_full or (not is_long and used_px + table.estimated_height_px > _OPEN)
        is_folded = is_long or is_full
        used_px += 0.0 if is_folded else table.estimated_height_px
        folded_tables.append(replace(table, folded=is_folded))
    return folded_tables


def write_description_page(
    path: str | Path,
    tables: Mapping[str, pl.DataFrame],
    datasets: Mapping[str, DatasetInfo],
    notes: Sequence[str] = (),
    figure_data: Mapping[str, Mapping[str, pl.DataFrame]] | None = None,
) -> Path:
    """Write the page to ``path``, whole or not at all."""
    refuse_foreign_page(path)
    return write_text(path, render_description_page(tables, datasets, notes, figure_data))


def render_description_page(
    tables: Mapping[str, pl.DataFrame],
    datasets: Mapping[str, DatasetInfo],
    notes: Sequence[str] = (),
    figure_data: Mapping[str, Mapping[str, pl.DataFrame]] | None = None,
) -> str:
    """Print tables as one self-contained HTML document.

    Examples
    --------
    >>> info = DatasetInfo(title="Two", summary="Two people.", references=())
    >>> table = pl.DataFrame({"tone": ["<b>"], "people": [2], "% of people": [100.0]})
    >>> html = render_description_page({"By tone": table}, {"two": info})
    >>> "<b>" in html, "&lt;b&gt;" in html
    (False, True)
    """
    table_types = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    scores, attributes, metrics, disparities, findings = (table.empty() for table in table_types)
    empty_run = Run({}, scores, attributes, metrics, disparities, findings)
    page_tables = [
        _DescriptionTable(
            f"table-{number}",
            {"caption": caption, **table},
            draw_table_figures(caption, tables[caption], (figure_data or {}).get(caption)),
        )
        for number, (caption, table) in enumerate(tables_to_json(tables).items(), start=1)
    ]
    folded_tables = _fold_tables_beyond_page_limit(page_tables)
    return render_run_page(
        "description.html.j2",
        title=f"What {join_with_and(list(datasets))} {'holds' if len(datasets) == 1 else 'hold'}",
        answer=describe_sizes_and_least_represented(tables, list(datasets)),
        summary=summarise_run(empty_run),
        open_parts=[page_table for page_table in folded_tables if not page_table.folded],
        lines=[page_table for page_table in folded_tables if page_table.folded][:_LINES],
        others=[page_table for page_table in folded_tables if page_table.folded][_LINES:],
        datasets=datasets,
        notes=list(notes),
        diverse=bool(figure_data),
        places=any("caption_" in caption for caption in tables),
        version=_read_isolux_version(),
    )


def _read_isolux_version() -> str:
    from importlib.metadata import version

    return version("isolux")


def describe_sizes_and_least_represented(
    tables: Mapping[str, pl.DataFrame], dataset_names: Sequence[str]
) -> str:
    """Say how many there are, and who is least represented."""
    size_table = next((t for t in tables.values() if "images with people" in t.columns), None)
    if size_table is None:
        return ""
    sentences = []
    for dataset_index, row in enumerate(size_table.iter_rows(named=True)):
        dataset_prefix = (
            f"{row.get('dataset', dataset_names[dataset_index])}: "
            if len(dataset_names) > 1
            else ""
        )
        subjects = f" ({format_count(row['subjects'])} subjects)" if row["subjects"] else ""
        people = f"{format_count(row['people'])} {'person' if row['people'] == 1 else 'people'}"
        images = f"{format_count(row['images with people'])} image"
        plural = "" if row["images with people"] == 1 else "s"
        sentences.append(f"{dataset_prefix}{people}{subjects} in {images}{plural}.")
    return " ".join([*sentences, *_describe_least_represented_group(tables)])


def _describe_least_represented_group(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Name the group that falls farthest below what is due to it, of all attributes."""
    balance_table = next((t for t in tables.values() if "least ÷ due" in t.columns), None)
    if balance_table is None:
        return
    rows = balance_table.drop_nulls(["least ÷ due", "least represented"]).sort("least ÷ due")
    for row in rows.head(1).iter_rows(named=True):
        dataset_note = f" of {row['dataset']}" if "dataset" in row else ""
        by, share = row["attribute"].replace("*", " × "), row["least ÷ due"]
        due = "an equal share" if row["against"] == "uniform" else f"the share of {row['against']}"
        yield (
            f"Least represented{dataset_note} by {by}: {row['least represented']}, "
            f"{share:.2f} of {due}."
        )
