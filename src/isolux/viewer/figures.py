"""The report's figures of a run, for the page: the papers' forms, by the report's own functions.

Values by group with intervals and everyone's band, intersections and classes by groups as heat maps
(FACET's tables of recall by skin tone and class), and the share of people found at each overlap
(FACET's and COCO's recall over IoU).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from isolux.report import figures as drawings
from isolux.report.comparison import is_comparison, summarise_comparison
from isolux.report.document import AttributeSection
from isolux.report.figures import Figure
from isolux.report.figures.svg import drawable
from isolux.report.summary import summarise
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import DrawingError

ATTRIBUTES_DRAWN = 24
"""Attributes of one run that are drawn; the table of groups has every one."""
GROUPS_DRAWN = 60
"""An attribute of more groups is not drawn: nobody reads so many rows in a picture."""

_SCHEMA = dict.fromkeys(("attribute", "title", "svg", "alt", "caption"), pl.String)
_NOT_INSTALLED = "the package that draws them is not installed: pip install 'isolux[figures]'"


def figures_of(runs: Sequence[Run], *, curves: bool) -> tuple[pl.DataFrame, str]:
    """Draw runs as their reports do."""
    empty = pl.DataFrame(schema={"run": pl.Int32, **_SCHEMA})
    if not drawable():
        return empty, _NOT_INSTALLED
    found: list[tuple[object, ...]] = []
    left: list[str] = []
    try:
        for place, run in enumerate(runs):
            for title, attribute, figure in _drawn(run, left, curves=curves):
                said = (figure.svg, figure.alt, figure.caption)
                found.append((place, attribute, title, *said))
    except DrawingError as error:
        return empty, str(error).splitlines()[0]
    told = f"too many to draw: {', '.join(dict.fromkeys(left))}" if left else ""
    return pl.DataFrame(found, schema=empty.schema, orient="row"), told


def _drawn(run: Run, left: list[str], *, curves: bool) -> Iterator[tuple[str, str, Figure]]:
    if is_comparison(run):
        compared = summarise_comparison(run)
        for change in compared.sections:
            if not change.tables:
                continue
            if len(change.tables[0].rows) > GROUPS_DRAWN:
                left.append(change.title)
            elif figure := drawings.change_figure_of(
                change.title, change.tables[0], compared.models
            ):
                yield change.title, change.attribute, figure
        return
    sections = summarise(run).sections
    for at, section in enumerate(sections):
        if at >= ATTRIBUTES_DRAWN or len(section.main.rows) > GROUPS_DRAWN:
            left.append(section.title)
            continue
        for figure in _of(section, curves=curves):
            yield section.title, section.attribute, figure


def _of(section: AttributeSection, *, curves: bool) -> list[Figure]:
    main = drawings.figure_of(section)
    more = drawings.more_figures_of(section)
    along = drawings.curves_figures_of(section) if curves else ()
    return [*([main] if main else []), *more, *along]
