"""ICON²: its protocol as an audit, and its tables from a run.

Sudhakar et al. ask whether a detector's gap between groups is explained by what goes with them: the
size of objects, the time of day. The protocol is an audit of boxes class by class with the analysis
``confounders`` set to the paper's choices; ``tables`` lays its findings out as the paper's tables
do, in points of a hundred.

Income is not an attribute of BDD100K: the paper takes it from each image's place, and parts images
into three groups of equal size, as the protocol does (``--bins income=quantile:3`` parts the
objects instead; ``groups/binning.py`` has other rules). Any other sensitive attribute goes into
``by`` in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core.containers import Run
from isolux.core.info import PluginInfo, Reference
from isolux.papers._protocols import (
    Layout,
    build_nonempty_tables_by_caption,
    find_analysis_table_or_empty,
)

INFO = PluginInfo(
    title="ICON²",
    summary="Average precision of a detector by a sensitive attribute, what else could explain its "
    "dispersion, and what control for that leaves.",
    references=(
        Reference(
            "icon2",
            "Sudhakar, S., Prabhu, V., Russakovsky, O., & Hoffman, J. (2023). ICON²: Reliably "
            "benchmarking predictive inequity in object detection by identifying and controlling "
            "for confounders.",
            "sections 3 and 4, Tables 1 to 3, Figures 2 to 6",
            "https://arxiv.org/abs/2306.04482",
        ),
    ),
    assumptions=(
        "Correlations are found, not causes: nothing is said of attributes that are not annotated.",
        "One explanatory attribute at a time is controlled for.",
        "Images of one video or place are as independent as images of others.",
    ),
)

PROTOCOLS: dict[str, dict[str, object]] = {
    "detection": {
        "task": "detection",
        "by": ("income",),
        "bins": ("income=quantile:3:images",),
        "metric": ("average_precision", "normalised_average_precision"),
        "option": ("by_class=true",),
        "max_detections": 100,
        "ddof": 1,
        "derive": ("box_size",),
        "explain": ("confounders",),
        "analysis_option": (
            "confounders.explanatory=box_size,timeofday,occluded,weather,scene",
            "confounders.false_alarms=class and value",
            "confounders.count=mean of peers",
        ),
    }
}
"""Settings by protocol.

``detection``: Tables 1 to 3 and Figures 2 to 6. Another dataset names its own attributes by
``by`` and ``confounders.explanatory``.
"""

_ROW_KEYS = ("model", "class", "attribute")
_PERCENT = 100.0


def tables(name: str, run: Run) -> dict[str, pl.DataFrame]:
    """Lay a run of one protocol out as the paper's tables.

    Parameters
    ----------
    name : str
        The protocol, as for ``protocol``.
    run : Run
        On which the analysis ``confounders`` ran; without it there are no tables.

    Returns
    -------
    dict of str to polars.DataFrame
        Caption to table. Numbers are points of a hundred; null: no value.

    Raises
    ------
    UnknownNameError
        No such protocol.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.core.tables import SCORES
    >>> parts = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> tables("detection", Run({}, *(part.empty() for part in parts)))
    {}
    """
    layouts: dict[str, Layout] = {
        "Table 1: average precision by group, and its standard deviation, points": (
            build_ap_by_class_and_group
        ),
        "Tables 2 and 3: explanatory attributes by σ(ProxyAP), and the dispersion after control, "
        "points": build_explanatory_attribute_ranking,
        "Figures 2 and 3: average precision at each value, points, and its share of each group, "
        "percent": build_ap_by_explanatory_value,
        "Figures 4 and 5: average precision of groups within each value, points": (
            build_controlled_ap_by_group
        ),
        "Figure 6: instances of each class and group": build_instance_counts_by_class_and_group,
    }
    return build_nonempty_tables_by_caption("icon2", PROTOCOLS, layouts, name, run)


def build_ap_by_class_and_group(run: Run) -> pl.DataFrame:
    """Lay average precision out as Table 1: a row a class, a column a group.

    Returns
    -------
    polars.DataFrame
        ``model`` (with several), ``class`` (null: all classes), ``attribute``, ``everyone`` (the
        overall average precision, not normalised, where the run has it; of all classes the mean of
        those that the groups' values are means of), a column a group (points), ``dispersion`` (of
        the groups; points).
    """
    rows = _find_confounder_table_or_empty(run, "Values by group")
    if rows.is_empty():
        return rows
    values, index = _pivot_by_group_with_key(rows, _ROW_KEYS, "value")
    dispersion = rows.unique(index, keep="first", maintain_order=True).select(*index, "dispersion")
    with_dispersion = values.join(dispersion, on=index, nulls_equal=True, maintain_order="left")
    overall = _average_overall_ap_over_classes(run, values, index)
    if overall.height:
        with_dispersion = with_dispersion.join(
            overall, on=index, how="left", nulls_equal=True, maintain_order="left"
        )
        other_columns = [c for c in with_dispersion.columns if c not in (*index, "overall")]
        with_dispersion = with_dispersion.select(*index, "overall", *other_columns)
    return _round_to_percent(
        with_dispersion, [c for c in with_dispersion.columns if c not in index]
    )


def _average_overall_ap_over_classes(
    run: Run, values: pl.DataFrame, index: Sequence[str]
) -> pl.DataFrame:
    """Give everyone's plain average precision for the rows of Table 1: ``index``, ``overall``.

    The row of all classes is the mean of the classes that the groups' values are means of: those
    with people in every group that has a value there.
    """
    overall = run.group_metrics.filter(
        pl.col("attribute").is_null(), metric="average_precision"
    ).select("model", pl.col("label").alias("class"), overall="value")
    keys = [c for c in index if c in ("model", "class")]
    if "model" not in keys:
        overall = overall.unique("class", keep="first", maintain_order=True)
    if "class" not in index:
        rows = values.select(index)
        overall_rows = (
            rows.join(overall, on="model") if keys else rows.join(overall.head(1), how="cross")
        )
        return overall_rows.select(*index, "overall")
    by_class = values.select(index).join(overall, on=keys).select(*index, "overall")
    counts = _find_confounder_table_or_empty(run, "People by class and group")
    if counts.is_empty():
        return by_class
    row_keys = [c for c in index if c != "class"]
    groups = [c for c in values.columns if c not in index]
    averaged_groups = values.filter(pl.col("class").is_null()).unpivot(groups, index=row_keys)
    averaged_groups = averaged_groups.drop_nulls("value").rename({"variable": "group"})
    shared_classes = counts.join(averaged_groups, on=[*row_keys, "group"], how="semi")
    shared_classes = (
        shared_classes.group_by([*row_keys, "class"]).agg(pl.col("n").min()).filter(pl.col("n") > 0)
    )
    means = by_class.join(shared_classes, on=[*row_keys, "class"], how="semi")
    means = means.group_by(row_keys).agg(pl.col("overall").mean())
    all_classes = means.with_columns(pl.lit(None, pl.String).alias("class"))
    return pl.concat([by_class, all_classes.select(by_class.columns)])


def build_ap_by_explanatory_value(run: Run) -> pl.DataFrame:
    """Lay average precision at explanatory values out as Figures 2 and 3: a row a value.

    Returns
    -------
    polars.DataFrame
        ``model`` (with several), ``class``, ``attribute``, ``explanatory``, ``at``, ``AP`` (of
        everyone at that value; points), and a column a group: the share of it at that value, in
        percent.
    """
    rows = _find_confounder_table_or_empty(run, "Values and shares").rename(
        {"overall value": "AP"}, strict=False
    )
    shares, index = _pivot_by_group_with_key(
        rows, (*_ROW_KEYS, "explanatory", "at", "AP"), "share of the group"
    )
    return _round_to_percent(shares, [c for c in shares.columns if c not in index or c == "AP"])


def build_explanatory_attribute_ranking(run: Run) -> pl.DataFrame:
    """Lay the ranking and the control out as Tables 2 and 3: a row a class and attribute.

    Returns
    -------
    polars.DataFrame
        ``model`` (with several), ``class``, ``attribute``, ``rank``, ``explanatory``,
        ``values`` (at how many of its values groups could be compared: ``1 of 3``),
        ``σ(ProxyAP)``, ``μ(σ(AP))`` (after control), ``Δ``, all in points.
    """
    rows = _find_confounder_table_or_empty(run, "Explanatory attributes by the dispersion")
    if rows.is_empty():
        return rows
    names = (*_ROW_KEYS, "rank", "explanatory", "values_compared")
    index = [c for c in names if c in rows.columns]
    if "values_compared" in index:
        rows = rows.rename({"values_compared": "values"})
        index[-1] = "values"
    paper_names = {
        "proxy_dispersion": "σ(ProxyAP)",
        "controlled_dispersion": "μ(σ(AP))",
        "reduction": "Δ",
    }
    return _round_to_percent(
        rows.select(*index, *paper_names).rename(paper_names), list(paper_names.values())
    )


def build_controlled_ap_by_group(run: Run) -> pl.DataFrame:
    """Lay controlled average precision out as Figures 4 and 5: a row a value, a column a group."""
    rows = _find_confounder_table_or_empty(run, "Groups within each value")
    values, index = _pivot_by_group_with_key(rows, (*_ROW_KEYS, "explanatory", "at"), "value")
    return _round_to_percent(values, [c for c in values.columns if c not in index])


def build_instance_counts_by_class_and_group(run: Run) -> pl.DataFrame:
    """Lay the counts of instances out as Figure 6: a row a class, a column a group."""
    rows = _find_confounder_table_or_empty(run, "People by class and group")
    return _pivot_by_group_with_key(rows, ("class", "attribute"), "n")[0]


def _find_confounder_table_or_empty(run: Run, caption: str) -> pl.DataFrame:
    table = find_analysis_table_or_empty(run, "confounders", caption)
    # Of nothing but nulls where there are no classes.
    return table.with_columns(pl.col("^label$").cast(pl.String)).rename(
        {"label": "class"}, strict=False
    )


def _pivot_by_group_with_key(
    rows: pl.DataFrame, key_columns: Sequence[str], value_column: str
) -> tuple[pl.DataFrame, list[str]]:
    """Lay rows out, a column a group; also return the columns that name a row."""
    index = [name for name in key_columns if name in rows.columns]
    if rows.is_empty():
        return rows, index
    table = rows.pivot(
        on="group",
        index=index,
        values=value_column,
        aggregate_function="first",
        maintain_order=True,
    )
    return table, index


def _round_to_percent(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    return frame.with_columns(pl.col(columns).cast(pl.Float64) * _PERCENT)


# Where ICON²'s text, equations and tables disagree, and what is done here.

_DISPERSION = (
    "Equation 5 is the population variance (σ², divided by the number of groups); the tables "
    "print standard deviations with one degree of freedom less than groups (Table 1: car 2.38, "
    "where equation 5 gives 3.78 and its root 1.94). Here it is what is printed; "
    "confounders.dispersion and confounders.ddof give the other."
)
_REDUCTION = (
    "The text calls Δ a reduction in variance by about 50 % (car, truck) and 10 % (pedestrian). "
    "It is a difference of standard deviations, and of these 50 %, 47 % and 7 %; of variances it "
    "would be 75 %, 71 % and 14 %."
)
_ROUNDING = (
    "Four of the fifteen printed Δ are .01 off σ − μ as printed (car scene and weather, truck size "
    "and scene): they were taken before rounding. In Table 3 the traffic light's ranking is not in "
    "falling order (.060 stands above .068)."
)
_ALL = (
    "The row of all classes is not the mean of the eight printed classes but for the low-income "
    "group (36.2, 37.2 and 35.5 where 36.5, 37.3 and 35.4 printed for everyone, middle and high "
    "income); here it is that mean."
)
_FALSE_ALARMS = (
    "Normalised precision puts one N in the place of each group's count, while the false alarms of"
    " a group's own images still grow with the group: where a model serves all alike, the smaller"
    " group comes out better. In each of the five classes of which Figure 6's caption says that low"
    " and middle income have very few instances, high income has the lowest AP of Table 1. How much"
    " of that is due to this reading cannot be seen from the paper. The analysis confounders uses"
    " all false alarms and one N by default; this protocol tells it."
)
_READING = (
    "Precisions are 'interpolated and averaged across recall values', which does not say at which; "
    "the overall AP is in line with COCO's, so 101 points and ten overlaps are used here, and the "
    "area under the same curve is given with it."
)
_MINIMUM = (
    "Which counts are too low for 'reliable AP values' is not said; no minimum is known from the "
    "paper, and the audit's own holds here."
)

DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "detection": (_DISPERSION, _REDUCTION, _ROUNDING, _ALL, _FALSE_ALARMS, _READING, _MINIMUM)
}
"""Per protocol, in the order of the paper."""
