"""The report as one HTML file: it works offline, asks the network for nothing, and prints.

``render_report`` turns a ``Summary`` into text, ``write_report`` writes it into the run's folder.
All values pass through autoescaping templates. Should a name ever get through, the page's own
policy still forbids it to do anything: no request, and no script or style but the two that are
hashed.
"""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.core.containers import Run
from isolux.core.formatting import shorten_name
from isolux.core.notes import SMALL_GROUPS_SHOWN
from isolux.core.printable import clean_line
from isolux.core.tables import COMPARABLE_STATUSES
from isolux.io import write_text
from isolux.io.owned_files import refuse_foreign_page
from isolux.report import figures, wording
from isolux.report.document import AttributeSection, Block, GroupRow, LineTable, Summary
from isolux.report.figures.svg import can_draw_figures, find_drawing_obstacle
from isolux.report.gaps import build_strip_table, format_group_gaps, format_pair_gaps
from isolux.report.summary import FINDINGS_LEAD, SECTIONS_LEAD, is_model_comparison, summarise_run
from isolux.report.summary.sentences import explain_independence_assumption, sort_sections_by_rank
from isolux.statements import numbers
from isolux.statements.run_terms import lower_unless_acronym

if TYPE_CHECKING:
    from jinja2 import Environment, FileSystemBytecodeCache
    from jinja2.bccache import Bucket
    from markupsafe import Markup

ROWS_SHOWN = 200
"""Rows printed of one table; all of them are in group_metrics.parquet."""
CLASS_ROWS_SHOWN = 60
"""Rows printed of a table with a row for each class and group."""
LINES_SHOWN = 20
"""Lines whose measures of spread are printed for one attribute; all are in disparities.parquet."""
VERDICTS_SHOWN = 8
"""Attributes with a row in the table of verdicts and a line of their own; others share one."""
NOTES_LEAD = 5
"""Notes in sight; the others are folded."""
PLANTED_LEAD = 5
"""Injected truths in sight; the others are folded."""
STATUSES_PAGE = "https://github.com/isolux/isolux/blob/main/docs/methods/statuses.md"
"""Explains every status."""
_PUBLISHED, _HEAD = b'<meta name="isolux-published"', 4096
"""What a page that was made to be published has within its first bytes."""
TEMPLATES = Path(__file__).parent / "templates"


def render_report(summary: Summary) -> str:
    """Print a summary as one self-contained HTML document.

    Examples
    --------
    >>> from isolux.core.containers import Run
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.core.tables import SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> run = Run({"model": "<b>"}, *(table.empty() for table in tables))
    >>> html = render_report(summarise_run(run))
    >>> "<b>" in html, "&lt;b&gt;" in html
    (False, True)
    """
    figures_by_anchor = {
        section.anchor: _draw_section_figures(section) for section in summary.sections
    }
    return render_run_page(
        "report.html.j2",
        title=summary.title,
        answer=summary.answer,
        summary=summary,
        drawn=figures_by_anchor.__getitem__,
    )


def _draw_section_figures(section: AttributeSection) -> tuple[Any, ...]:
    return (
        figures.draw_intersection_heat_map(section),
        figures.draw_secondary_metric_figures(section),
        figures.draw_share_curve_figures(section),
    )


def render_comparison_report(run: Run) -> str:
    """Print two models' comparison, as ``isolux compare`` made it, as one HTML document."""
    from isolux.report.comparison import summarise_comparison

    compared = summarise_comparison(run)
    figures_by_anchor = {
        s.anchor: figures.draw_model_change_figure(s.title, s.tables[0], compared.models)
        if s.tables
        else None
        for s in compared.sections
    }
    first = [s.anchor for s in sorted(compared.sections, key=lambda s: s.n_changed == 0)]
    return render_run_page(
        "comparison.html.j2",
        title=compared.title,
        answer=compared.answer.first,
        compared=compared,
        summary=compared.base,
        in_sight=first[:SECTIONS_LEAD],
        with_a_line=first[:VERDICTS_SHOWN],
        drawn=figures_by_anchor,
    )


def write_report(run: Run, path: str | Path) -> Path:
    """Write a run's report to ``path``, whole or not at all."""
    if is_model_comparison(run):
        return write_comparison_report(run, path)
    refuse_foreign_page(path)
    return write_text(path, render_report(summarise_run(run)))


def write_comparison_report(run: Run, path: str | Path) -> Path:
    """Write a comparison's report to ``path``, whole or not at all."""
    refuse_foreign_page(path)
    return write_text(path, render_comparison_report(run))


def render_run_page(template: str, *, summary: Summary, **values: Any) -> str:
    """Fill one of this room's templates; style and script are inlined, and hashed in its policy."""
    macros = _create_jinja_environment().get_template("_macros.html.j2").module
    return render_page(template, summary=summary, audited=summary.audited, m=macros, **values)


def find_other_published_pages(path: str | Path) -> tuple[Path, ...]:
    """List other pages of a page's folder that were made to be published, by name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = Path(folder, "a.html")
    ...     _ = made.write_text('<meta name="isolux-published" content="10">')
    ...     [page.name for page in find_other_published_pages(made.with_name("b.html"))]
    ['a.html']
    """
    page = Path(path).absolute()
    pages = []
    for other_page in sorted(page.parent.glob("*.html")):
        with suppress(OSError):
            if other_page.is_file() and not (page.exists() and other_page.samefile(page)):
                with other_page.open("rb") as file:
                    if _PUBLISHED in file.read(_HEAD):
                        pages.append(other_page)
    return tuple(pages)


def render_page(template: str, **values: Any) -> str:
    """Fill a template that is no audit's report, with the same style, script and policy."""
    from markupsafe import Markup

    style, script = (_read_template_file(name) for name in ("report.css", "report.js"))
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_format_csp_hash(style)}; script-src {_format_csp_hash(script)}"
    )
    return (
        _create_jinja_environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            policy=Markup(policy),  # noqa: S704 - made of our own words and hashes
        )
    )


@cache
def _read_template_file(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _format_csp_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _create_bytecode_cache() -> FileSystemBytecodeCache | None:
    """Keep compiled templates in the user's folder of temporary files, where that is possible."""
    from jinja2 import FileSystemBytecodeCache

    from isolux import __version__

    class TemplateCache(FileSystemBytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            try:
                super().load_bytecode(bucket)
            except Exception:  # noqa: BLE001 - a damaged file fails in many ways
                bucket.reset()

        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    try:
        return TemplateCache(pattern=f"isolux-{__version__}-%s.cache")
    except (OSError, RuntimeError):  # nowhere to keep them, or somebody else's folder
        return None


@cache
def _create_jinja_environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        bytecode_cache=_create_bytecode_cache(),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean_if_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Templates call filters by these keys, so a function may be renamed without them.
    environment.filters |= {
        "brief": shorten_name,
        "cell_text": numbers.format_paper_cell,
        "column_places": numbers.choose_column_decimals,
        "count": numbers.format_count,
        "decimals": numbers.choose_paper_column_decimals,
        "group_gaps": format_group_gaps,
        "independence": explain_independence_assumption,
        "lines_shown": choose_printed_lines,
        "listed": wording.join_with_and,
        "lowered": lower_unless_acronym,
        "p_equals": numbers.format_p_value_equation,
        "p_text": numbers.format_p_value,
        "pair_gaps": format_pair_gaps,
        "points": numbers.format_gap_size,
        "rows_shown": choose_printed_rows,
        "share": numbers.format_whole_percent,
        "stratum_title": wording.format_stratum_title,
        "strips": build_strip_table,
        "svg": _to_svg_markup,
        "unbroken": wording.insert_nonbreaking_spaces,
        "value_text": numbers.format_bare_value,
        "verdicts_shown": choose_printed_verdicts,
        "with_unit": numbers.format_with_unit,
    }
    environment.tests["p_column"] = lambda name: "p" in str(name).replace("_", " ").split()
    environment.tests["search_p"] = lambda claim: " p = " in claim or " p < " in claim
    environment.globals |= {
        "FINDINGS_LEAD": FINDINGS_LEAD,
        "NOTES_LEAD": NOTES_LEAD,
        "PLANTED_LEAD": PLANTED_LEAD,
        "SHAPE": wording.SHAPE,
        "COMPARABLE_STATUSES": COMPARABLE_STATUSES,
        "SMALL_GROUPS_SHOWN": SMALL_GROUPS_SHOWN,
        "STATUSES_PAGE": STATUSES_PAGE,
        "drawable": can_draw_figures,
        "find_drawing_obstacle": find_drawing_obstacle,
        "interval": numbers.format_interval,
        "spread_interval": numbers.format_dispersion_interval,
    }
    return environment


def _clean_if_text(cell: Any) -> Any:
    # Exactly str: markup (a macro's output, a figure) is a subclass, and is ours.
    return wording.insert_nonbreaking_spaces(clean_line(cell)) if type(cell) is str else cell


@dataclass(frozen=True, slots=True)
class PrintedRows:
    """The rows of one table that are printed, how many there are, and how many have no people."""

    rows: list[tuple[LineTable, GroupRow]]
    total: int
    empty: int = 0


def choose_printed_rows(block: Block) -> PrintedRows:
    """Choose the rows of a long table: those furthest from everyone, in the table's own order."""
    all_rows = [(table, row) for table in block.tables for row in table.rows]
    has_several_tables = len(block.tables) > 1
    rows = [pair for pair in all_rows if pair[1].estimate.n_units or not has_several_tables]
    max_rows = CLASS_ROWS_SHOWN if has_several_tables else ROWS_SHOWN

    def sort_key(i: int) -> tuple[bool, float, int]:
        row = rows[i][1]
        return (not row.estimate.is_comparable, -abs(row.difference or 0.0), -row.estimate.n_units)

    kept_indices = sorted(sorted(range(len(rows)), key=sort_key)[:max_rows])
    return PrintedRows([rows[i] for i in kept_indices], len(rows), len(all_rows) - len(rows))


def choose_printed_lines(section: AttributeSection) -> list[LineTable]:
    """Choose the lines of a table of spreads: the main one, then those that differ most surely."""
    main_table, *other_tables = (table for block in section.blocks for table in block.tables)

    def sort_key(table: LineTable) -> tuple[float, float]:
        p, tau = table.spread.p_adjusted, table.spread.tau
        return (2.0 if p is None else p, -(tau or 0.0))

    kept_ids = {id(table) for table in sorted(other_tables, key=sort_key)[: LINES_SHOWN - 1]}
    return [main_table, *(table for table in other_tables if id(table) in kept_ids)]


def choose_printed_verdicts(summary: Summary) -> list[AttributeSection]:
    """Choose the attributes of a long table of verdicts: those to be read first, as asked for."""
    chosen_anchors = {s.anchor for s in sort_sections_by_rank(summary.sections)[:VERDICTS_SHOWN]}
    return [section for section in summary.sections if section.anchor in chosen_anchors]


def _to_svg_markup(figure: figures.Figure) -> Markup:
    from markupsafe import Markup

    return Markup(figure.svg)  # noqa: S704 - vega escapes texts; a test feeds it hostile ones
