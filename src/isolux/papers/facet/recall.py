"""FACET's tables of recall: who was found, by a box or a mask, at which overlap.

From ``group_metrics`` to the paper's layout, in points of a hundred as the paper prints them. A
group that the run has no value of (no people in it, or fewer than its minimum) is null, as the
paper's dash; the run's ``group_metrics`` say why.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from isolux.core.containers import Run
from isolux.papers._layout import pivot_metrics_by_class_and_group
from isolux.papers._protocols import explain_missing_table
from isolux.papers.facet.terms import AGES, GENDERS, HAIR_TYPES, RECALLS, TONES

_POINTS = 100.0
_MIN_PEOPLE = 50


def build_recall_by_skin_tone(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Lay recall by perceived skin tone out as Tables 5 and 14 do."""
    recalls = _select_overall_recall_percent_by_group(
        source, "skin_tone", {tone: tone for tone in TONES}
    )
    return recalls.rename({"group": "mst"})


def build_recall_by_gender_and_age(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Lay recall by perceived gender presentation and perceived age group out as Table 13 does."""
    tables = [
        _select_overall_recall_percent_by_group(source, name, words).select(
            "model", pl.lit(title).alias("attribute"), pl.exclude("model")
        )
        for name, title, words in (
            ("gender_presentation", "perceived gender presentation", GENDERS),
            ("age_presentation", "perceived age group", AGES),
        )
    ]
    return pl.concat(tables).sort("model", maintain_order=True)


def build_recall_by_hair_and_tone(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Lay recall by perceived hair type, lighter and darker skin, out as Table 6 does."""
    recalls = _scale_recalls_to_percent(
        pivot_metrics_by_class_and_group(source, RECALLS, ["hairtype", "skin_tone"])
    ).filter(pl.col("skin_tone").is_in(["lighter", "darker"]))
    wide = _pivot_recalls_by_group(
        recalls, ["model", "hairtype"], "skin_tone", ("lighter", "darker")
    )
    return _select_order_and_rename_groups(wide, "hairtype", HAIR_TYPES).rename(
        {"hairtype": "hair_type"}
    )


def build_box_and_mask_recall_by_gender(*sources: Run | pl.DataFrame) -> pl.DataFrame:
    """Lay recall of boxes and of masks by perceived gender presentation out as Table 7 does."""
    shapes = {"detection": "box", "segmentation": "mask"}
    tables = [s.group_metrics if isinstance(s, Run) else s for s in sources]
    shape_tables = [
        _select_overall_recall_percent_by_group(
            table.filter(task=task), "gender_presentation", GENDERS
        )
        .rename({heading: f"{heading}_{shape}" for heading in RECALLS})
        .rename({"group": "gender_presentation"})
        for task, shape in shapes.items()
        for table in tables
        if (table["task"] == task).any()
    ]
    if not shape_tables:
        return _select_overall_recall_percent_by_group(
            tables[0].head(0), "gender_presentation", GENDERS
        )
    joined_tables = shape_tables[0]
    for shape_table in shape_tables[1:]:
        join_keys = ["model", "gender_presentation"]
        joined_tables = joined_tables.join(
            shape_table, on=join_keys, how="full", coalesce=True, maintain_order="left_right"
        )
    headings = [f"{heading}_{shape}" for heading in RECALLS for shape in shapes.values()]
    return joined_tables.select(
        "model", "gender_presentation", *(h for h in headings if h in joined_tables.columns)
    )


def build_recall_by_class_and_age(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Lay recall by class and perceived age group out as half of Table 15 does."""
    wide = _pivot_recalls_by_group(
        _select_recall_percent_by_class_and_age(source),
        ["model", "person_class"],
        "age_presentation",
        tuple(AGES),
    )
    wide = wide.sort("model", "person_class")
    classes_and_average = [
        wide.with_columns(_last=0),
        average_over_classes(wide).with_columns(_last=1),
    ]
    return pl.concat(classes_and_average).sort("model", "_last", maintain_order=True).drop("_last")


def average_over_classes(recall_by_class: pl.DataFrame) -> pl.DataFrame:
    """Give the row ``avg`` of Table 15: the mean over classes, those without a value left out.

    Examples
    --------
    >>> rows = {"model": "m", "person_class": ["nurse", "judge"], "mAR_older": [40.0, None]}
    >>> average_over_classes(pl.DataFrame(rows)).row(0)
    ('m', 'avg', 40.0)
    """
    value_columns = [
        name for name in recall_by_class.columns if name not in ("model", "person_class")
    ]
    means = recall_by_class.group_by("model", maintain_order=True).agg(pl.col(value_columns).mean())
    return means.select("model", pl.lit("avg").alias("person_class"), *value_columns)


def build_recall_of_largest_age_gaps(
    source: Run | pl.DataFrame, *, n_classes: int = 3
) -> pl.DataFrame:
    """Lay the classes with the largest gaps between perceived age groups out as Table 8 does.

    Only classes with 50 people in each of the three count: with that rule, which the paper states
    for classification alone, Table 15's largest gaps are of the three classes that section 6.3.1
    names.
    """
    recalls = _select_recall_percent_by_class_and_age(source).filter(
        pl.col("age_presentation").is_in(list(AGES))
    )
    key = ["model", "person_class"]
    gaps = (
        recalls.filter(pl.col("n_units") >= _MIN_PEOPLE, pl.col("mAR").is_not_null())
        .group_by(key)
        .agg(n=pl.len(), gap=pl.col("mAR").max() - pl.col("mAR").min())
        .filter(n=len(AGES))
        .sort("model", "gap", "person_class", descending=[False, True, False])
    )
    largest = gaps.group_by("model", maintain_order=True).head(n_classes).with_row_index("_place")
    order = pl.DataFrame({"age_presentation": list(AGES), "_age": range(len(AGES))})
    return (
        recalls.join(largest, on=key)
        .join(order, on="age_presentation")
        .sort("_place", "_age")
        .select(*key, pl.col("age_presentation").alias("age"), *RECALLS)
    )


def explain_missing_age_gaps(run: Run) -> str:
    """Say why Table 8 has no rows: in no class are 50 people in each perceived age group."""
    ages = _select_recall_percent_by_class_and_age(run).filter(
        pl.col("age_presentation").is_in(list(AGES))
    )
    sizes = ages.group_by("model", "person_class").agg(
        smallest=pl.when(pl.len() == len(AGES)).then(pl.col("n_units").min()).otherwise(0)
    )
    largest = sizes.sort("smallest", "person_class", descending=[True, False]).head(1)
    if largest.is_empty() or largest["smallest"].item() >= _MIN_PEOPLE:
        return explain_missing_table(run)
    return (
        f"no class has {_MIN_PEOPLE} people in each of the {len(AGES)} perceived age groups; the"
        f" nearest, {largest['person_class'].item()!r}, has {largest['smallest'].item():,} in its"
        " smallest"
    )


def _select_overall_recall_percent_by_group(
    source: Run | pl.DataFrame, attribute: str, name_by_group: Mapping[str, str]
) -> pl.DataFrame:
    """Give the groups of one attribute, for all classes together: ``model, group, mAR, …``."""
    recalls = _scale_recalls_to_percent(
        pivot_metrics_by_class_and_group(source, RECALLS, [attribute])
    ).filter(pl.col("label").is_null())
    named_groups = _select_order_and_rename_groups(recalls, attribute, name_by_group).rename(
        {attribute: "group"}
    )
    return named_groups.select("model", "group", *RECALLS)


def _select_recall_percent_by_class_and_age(source: Run | pl.DataFrame) -> pl.DataFrame:
    recalls = _scale_recalls_to_percent(
        pivot_metrics_by_class_and_group(source, RECALLS, ["age_presentation"])
    )
    return recalls.drop_nulls("label").rename({"label": "person_class"})


def _scale_recalls_to_percent(recalls: pl.DataFrame) -> pl.DataFrame:
    return recalls.with_columns(pl.col(heading) * _POINTS for heading in RECALLS)


def _select_order_and_rename_groups(
    recalls: pl.DataFrame, column: str, name_by_group: Mapping[str, str]
) -> pl.DataFrame:
    """Select the groups of ``name_by_group`` in its order, with its names; null where missing."""
    names = pl.DataFrame({column: list(name_by_group), "_word": list(name_by_group.values())})
    all_groups = recalls.select("model").unique(maintain_order=True).join(names, how="cross")
    ordered = all_groups.join(recalls, on=["model", column], how="left", maintain_order="left")
    return ordered.with_columns(pl.col("_word").alias(column)).drop("_word")


def _pivot_recalls_by_group(
    recalls: pl.DataFrame, index: list[str], group_column: str, groups: tuple[str, ...]
) -> pl.DataFrame:
    """Put the groups of ``group_column`` side by side under each heading: ``mAR_young``, …."""
    headings = [f"{heading}_{group}" for heading in RECALLS for group in groups]
    pivoted = recalls.select(index).unique(maintain_order=True)
    for group in groups:
        group_recalls = recalls.filter(pl.col(group_column) == group).select(
            *index, *(pl.col(heading).alias(f"{heading}_{group}") for heading in RECALLS)
        )
        pivoted = pivoted.join(group_recalls, on=index, how="left", maintain_order="left")
    return pivoted.select(*index, *headings)
