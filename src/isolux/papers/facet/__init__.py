"""FACET: its protocols as audits, and its tables from a run.

Gustafson et al. ask for whom a person's class is recognised (classification), who is found, by a
box or a mask (detection, segmentation), who is found as what they are (open vocabulary), and on
whom the box of a phrase lies (visual grounding). A protocol is an audit's settings: who is judged,
by which groups, at which overlaps. ``tables`` lays a run's ``group_metrics`` out as the paper's
tables do, in points of a hundred; a disparity is the difference of two of their cells (equation 1).

The paper gives no intervals: a run's ``group_metrics`` and ``disparities`` do. Where the paper
disagrees with itself, ``DISAGREEMENTS`` says so and what is done.
"""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.containers import Run
from isolux.core.info import PluginInfo
from isolux.papers._layout import format_merge_settings, pivot_metrics_by_class_and_group
from isolux.papers._protocols import Layout, build_nonempty_tables_by_caption, explain_missing_table
from isolux.papers.facet.disagreements import DISAGREEMENTS
from isolux.papers.facet.recall import (
    build_box_and_mask_recall_by_gender,
    build_recall_by_class_and_age,
    build_recall_by_gender_and_age,
    build_recall_by_hair_and_tone,
    build_recall_by_skin_tone,
    build_recall_of_largest_age_gaps,
    explain_missing_age_gaps,
)
from isolux.papers.facet.terms import AGES, DARKER, LIGHTER

__all__ = ["DISAGREEMENTS"]

# FACET's tables of classification: whose class was recognised, and for whom worse.

_PERCENT = 100.0
_GENDER, _AGE = "gender_presentation", "age_presentation"
_GENDER_PAIR = ("masc", "fem")


def masc_minus_fem_by_class(source: Run | pl.DataFrame, metric: str = "recall") -> pl.DataFrame:
    """Take one group from the other, class by class (equation 1)."""
    values_by_class = _pivot_percent_by_class_and_group(source, metric, _GENDER, _GENDER_PAIR)
    compared = values_by_class.drop_nulls(_GENDER_PAIR)
    return compared.with_columns(difference=pl.col("masc") - pl.col("fem"))


def build_largest_differences_table(
    source: Run | pl.DataFrame, *, n_rows: int = 10
) -> pl.DataFrame:
    """Lay the largest differences in recall out as Table 4 does, both directions side by side."""
    differences = masc_minus_fem_by_class(source)
    halves = []
    for sign, name in ((1.0, "m_f"), (-1.0, "f_m")):
        difference_column = name.replace("_", "_minus_")
        half = differences.select(
            "model",
            pl.col("person_class").alias(f"person_class_{name}"),
            (pl.col("difference") * sign).alias(difference_column),
        ).filter(pl.col(difference_column) > 0)
        half = half.sort(
            "model", difference_column, f"person_class_{name}", descending=[False, True, False]
        )
        place_in_model = pl.int_range(pl.len()).over("model").alias("_place")
        halves.append(half.with_columns(place_in_model).filter(pl.col("_place") < n_rows))
    both_directions = halves[0].join(halves[1], on=["model", "_place"], how="full", coalesce=True)
    return both_directions.sort("model", "_place").select(
        "model", "person_class_m_f", "m_minus_f", "person_class_f_m", "f_minus_m"
    )


def rank_classes_by_age_gap(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Rank classes by the gap in recall between perceived age groups, as Tables 11 and 12 do."""
    wide = _pivot_percent_by_class_and_group(source, "recall", _AGE, tuple(AGES))
    compared = wide.filter(pl.sum_horizontal(pl.col(list(AGES)).is_not_null()) >= 2)
    gap = pl.max_horizontal(list(AGES)) - pl.min_horizontal(list(AGES))
    ranked = compared.with_columns(gap=gap).sort(
        "model", "gap", "person_class", descending=[False, True, False]
    )
    return ranked.with_columns(rank=pl.int_range(1, pl.len() + 1).over("model"))


def build_largest_age_gaps_table(source: Run | pl.DataFrame, *, n_rows: int = 5) -> pl.DataFrame:
    """Lay the classes with the largest gaps of each model out as Tables 11 and 12 do."""
    ranked = rank_classes_by_age_gap(source)
    models = ranked["model"].unique(maintain_order=True).to_list()
    top = ranked.filter(pl.col("rank") <= n_rows).select(
        pl.format("Top for {}", "model").alias("section"), "person_class"
    )
    for model in models:
        model_gaps = ranked.filter(model=model).select(
            "person_class", *(pl.col(n).alias(f"{model}_{n}") for n in ("rank", *AGES))
        )
        top = top.join(model_gaps, on="person_class", how="left", maintain_order="left")
    return top


def largest_true_negative_rate_differences(
    source: Run | pl.DataFrame, *, n_rows: int = 10
) -> pl.DataFrame:
    """List the largest differences in the true negative rate, as appendix A.5.2 quotes two."""
    differences = masc_minus_fem_by_class(source, "true_negative_rate")
    ordered = differences.with_columns(_size=pl.col("difference").abs()).sort(
        "model", "_size", "person_class", descending=[False, True, False]
    )
    return ordered.group_by("model", maintain_order=True).head(n_rows).drop("_size")


def _pivot_percent_by_class_and_group(
    source: Run | pl.DataFrame, metric: str, attribute: str, groups: tuple[str, ...]
) -> pl.DataFrame:
    """Give every class its values in some groups: ``model, person_class, <group>, …``."""
    values = pivot_metrics_by_class_and_group(
        source, {"value": (metric, None)}, [attribute]
    ).drop_nulls("label")
    key = ["model", "person_class"]
    named_values = values.select(
        "model", pl.col("label").alias("person_class"), attribute, pl.col("value") * _PERCENT
    )
    wide = named_values.select(key).unique(maintain_order=True)
    for group in groups:
        group_values = named_values.filter(pl.col(attribute) == group).select(
            *key, pl.col("value").alias(group)
        )
        wide = wide.join(group_values, on=key, how="left", maintain_order="left")
    return wide


INFO = PluginInfo(
    title="FACET",
    summary="Recall of people's classes, boxes and masks by perceived gender presentation, age "
    "group and skin tone, and the differences between groups.",
    references=(
        citations.FACET.with_location(
            "sections 6.1 to 6.3, equation 1, appendix A.5, Tables 4 to 8 and 11 to 15"
        ),
    ),
    assumptions=(
        (
            "Groups are what annotators perceived, not what people say of themselves; skin tone "
            "is not a proxy for race or ethnicity."
        ),
        "People who match none of the 52 classes are not annotated, and so not judged.",
        "Recall does not see false alarms: they belong to no group.",
        "People in one image are not independent of one another; images are.",
    ),
)

# Table 5 has every tone, Table 6 unites three: a tone stays a group of its own as well.
# The price: hair types are crossed with single tones too, and all of it is one family of tests.
_TONE_GROUPS = format_merge_settings(
    {tone: (tone,) for tone in (*LIGHTER, *DARKER)} | {"lighter": LIGHTER, "darker": DARKER},
    "skin_tone",
)
_EVERY_GROUP: dict[str, object] = {"min_units": 1, "min_clusters": 1}
_COMMON: dict[str, object] = {
    "votes": "any+unknown",
    "unknown": "keep",
    "unmatched_values": "note",  # a part of FACET may lack a tone
}
_RECALL_METRICS = {
    "metric": ("average_recall", "recall_at_iou"),
    "option": ("iou_thresholds=0.5,0.75",),
}
_MASK_PROTOCOL = {"by": ("gender_presentation",), **_EVERY_GROUP}
_BY_CLASS: dict[str, object] = {
    "by": ("age_presentation",),
    "metric": (
        "average_recall",
        "recall_at_iou",
        "class_mean_recall",
        "class_mean_recall_50",
        "class_mean_recall_75",
    ),
    **_EVERY_GROUP,
}

PROTOCOLS: dict[str, dict[str, object]] = {
    "classification": _COMMON
    | {
        "task": "classification",
        "only": ("people_in_image=1",),
        "by": ("gender_presentation", "age_presentation"),
        "metric": ("recall", "true_negative_rate"),
        "option": ("one_vs_rest=true",),
        "min_units": 50,
    },
    "detection": _COMMON
    | _RECALL_METRICS
    | {
        "task": "detection",
        "by": ("skin_tone", "gender_presentation", "age_presentation", "hairtype*skin_tone"),
        "group": _TONE_GROUPS,
        "ungrouped_values": "keep",
        "max_detections": None,
        "min_units": 50,
    },
    "segmentation": _COMMON
    | _RECALL_METRICS
    | _MASK_PROTOCOL
    | {"task": "segmentation", "max_detections": None},
    "segmentation_boxes": _COMMON
    | _RECALL_METRICS
    | _MASK_PROTOCOL
    | {
        "task": "detection",
        "max_detections": None,
        "option": ("iou_thresholds=0.5,0.75", "only_with_mask=true"),
    },
    "open_vocabulary": _COMMON
    | _BY_CLASS
    | {
        "task": "open_vocabulary",
        "max_detections": 100,
        "option": ("iou_thresholds=0.5,0.75", "limit_per=image"),
    },
    "grounding": _COMMON
    | _BY_CLASS
    | {"task": "grounding", "option": ("iou_thresholds=0.5,0.75", "images=one-of-every-class")},
}
"""Settings by protocol.

``classification``: Tables 4, 11 and 12, and the true negative rates of appendix A.5.2.
``detection``: Tables 5, 6, 13 and 14; name the detector's people by ``person_label``.
``segmentation`` and ``segmentation_boxes``: the masks and the boxes of Table 7.
``open_vocabulary``: Table 15a and Table 8's columns of Detic. ``grounding``: Table 15b and Table
8's columns of OFA.
"""

COMPANION_PROTOCOLS = {"segmentation": "segmentation_boxes"}
"""Table 7 lays masks and boxes of the same people side by side: one command makes both halves."""

_DETECTION_TABLES: dict[str, Layout] = {
    "Table 5 (and 14): recall by perceived skin tone (Monk scale), percent": (
        build_recall_by_skin_tone
    ),
    "Table 6: recall by perceived hair type, lighter and darker skin, percent": (
        build_recall_by_hair_and_tone
    ),
    "Table 13: recall by perceived gender presentation and age group, percent": (
        build_recall_by_gender_and_age
    ),
}
_MASK_TABLES: dict[str, Layout] = {
    "Table 7: recall of boxes and masks by perceived gender presentation, people with a person "
    "mask, percent": build_box_and_mask_recall_by_gender
}


def _map_captions_to_class_tables(table_15_half: str, task_name: str) -> dict[str, Layout]:
    return {
        f"Table 8, {task_name}: the classes with the largest gaps between perceived age groups, "
        "percent": build_recall_of_largest_age_gaps,
        f"Table 15{table_15_half}: recall by class and perceived age group, percent": (
            build_recall_by_class_and_age
        ),
    }


_TABLES: dict[str, dict[str, Layout]] = {
    "classification": {
        "Table 4: the largest differences in recall between perceived gender presentations, "
        "points": build_largest_differences_table,
        "Table 11 (and 12): recall of the classes with the largest gaps between perceived age "
        "groups, percent": build_largest_age_gaps_table,
        "Appendix A.5.2: the largest differences in true negative rate between perceived gender "
        "presentations, points": largest_true_negative_rate_differences,
    },
    "detection": _DETECTION_TABLES,
    "segmentation": _MASK_TABLES,
    "segmentation_boxes": _MASK_TABLES,
    "open_vocabulary": _map_captions_to_class_tables("a", "detection"),
    "grounding": _map_captions_to_class_tables("b", "visual grounding"),
}


def tables(name: str, run: Run) -> dict[str, pl.DataFrame]:
    """Lay a run of one protocol out as the paper's tables.

    Parameters
    ----------
    name : str
        The protocol, as for ``protocol``.
    run : Run
        In memory or read back from a directory.

    Returns
    -------
    dict of str to polars.DataFrame
        Caption to table, in the paper's order. ``model`` comes first in nearly all; numbers are
        points of a hundred. Null: no value, as where a group has too few people; ``group_metrics``
        say which. A table that the run does not have the groups or metrics for is not there.

    Raises
    ------
    UnknownNameError
        No such protocol.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.core.tables import SCORES
    >>> cells = GROUP_METRICS.conform(pl.DataFrame({
    ...     "model": "m", "task": "detection", "metric": "average_recall",
    ...     "attribute": "skin_tone", "values": [["1"], ["10"]], "value": [0.755, 0.726]}))
    >>> others = (t.empty() for t in (DISPARITIES, FINDINGS))
    >>> found = tables("detection", Run({}, SCORES.empty(), ATTRIBUTES.empty(), cells, *others))
    >>> [(caption[:7], table["mAR"].drop_nulls().to_list()) for caption, table in found.items()]
    [('Table 5', [75.5, 72.6])]
    """
    return build_nonempty_tables_by_caption("facet", PROTOCOLS, _TABLES.get(name, {}), name, run)


def absent(name: str, run: Run) -> dict[str, str]:
    """Say of each table of a protocol that the run has no rows for why it is not printed.

    Parameters
    ----------
    name : str
        The protocol.
    run : Run

    Returns
    -------
    dict of str to str
        Caption to the reason.

    Raises
    ------
    UnknownNameError
        No such protocol.
    """
    printed = tables(name, run)
    return {
        caption: explain_missing_age_gaps(run)
        if layout is build_recall_of_largest_age_gaps
        else explain_missing_table(run)
        for caption, layout in _TABLES[name].items()
        if caption not in printed
    }
