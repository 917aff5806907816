"""One metric of each group of one attribute, as a chart for a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.api._tables_from_memory import RunHolder, run_of
from isolux.core.containers import Run
from isolux.core.extras import import_optional

if TYPE_CHECKING:
    import altair as alt


def plot(
    run: Run | RunHolder | str | Path,
    metric: str | None = None,
    attribute: str | None = None,
    *,
    label: str | None = None,
    threshold: float | None = None,
) -> alt.LayerChart:
    """Draw a metric of each group with its interval, as a chart for a notebook.

    The groups, their order, values and intervals are those of the report. A group that cannot be
    judged keeps its row, with the reason; a run's warnings stand under the title.

    Parameters
    ----------
    run : Audit, Run or path
        An audit, or the directory of one.
    metric : str, optional
        A metric's name, as in ``group_metrics``; default: the audit's first one.
    attribute : str, optional
        An attribute or intersection, as in ``by``; default: the first one.
    label : str, optional
        The class, of a metric that each class has.
    threshold : float, optional
        The threshold, of a metric that has several; default: the first in the report.

    Returns
    -------
    altair.LayerChart
        Data stand in the chart. ``.save("chart.html")``, ``.properties(width=400)`` and everything
        else that altair does with one.

    Raises
    ------
    UnknownNameError
        The run has no such metric or attribute.
    SpecError
        It has no such class or threshold, or several of them; or altair is not installed
        (``pip install 'isolux[notebook]'``).

    Examples
    --------
    >>> import isolux
    >>> import polars as pl
    >>> people = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...     "light": ["day", "night"] * 200, "value": [1.0, 1.0, 1.0, 0.0] * 100})
    >>> found = isolux.audit(people, by="light", replicates=200)
    >>> chart = isolux.plot(found, "score", "light")
    >>> chart.to_dict()["title"]["text"]
    'Score by light'
    """
    from isolux.report.figures.heatmap import build_metric_dot_chart

    charts: Any = import_optional("altair", package="altair", extra="notebook", purpose="a chart")
    spec = build_metric_dot_chart(run_of(run), metric, attribute, label=label, threshold=threshold)
    chart: alt.LayerChart = charts.Chart.from_dict(spec)
    return chart


def build_run_cell(run: Run) -> str:
    """Build what a notebook shows of an audit: warnings, a table, a figure, then findings."""
    from isolux.core.notebook import build_run_html
    from isolux.report.figures.heatmap import build_metric_dot_chart
    from isolux.report.figures.svg import draw_chart_svg

    if run.group_metrics["attribute"].null_count() == run.group_metrics.height:
        return build_run_html(run)  # everyone alone: there are no groups to draw
    return build_run_html(run, draw_chart_svg(build_metric_dot_chart(run)))
