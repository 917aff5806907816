"""Counts alone: what marks them, and the refusal of all that asks of people one by one.

People who are alike in all that an audit reads may be one row that says how many they are, in a
column ``times``: so an audit of shards holds them. What counts people counts them by
``count_people``.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError

COUNTS = "counts"
"""The dataset, the task, and the evidence that says how many cases a unit stands for."""
TIMES = "times"
"""The column that says how many people a row stands for; a table without it: each for one."""
_MAX_CLUSTERED_CASES = 5_000_000
"""Cases with clusters that are held one by one: some 200 bytes each, and more per attribute."""


def add_multiplicity(
    units: pl.DataFrame, multiplicity_by_instance: pl.DataFrame | None, unit_column: str
) -> pl.DataFrame:
    """Add the column ``times``, how many people each unit stands for; None: add nothing.

    Examples
    --------
    >>> add_multiplicity(pl.DataFrame({"unit_id": ["b"]}),
    ...     pl.DataFrame({"instance_id": ["a", "b"], "times": [3, 4]}), "unit_id").rows()
    [('b', 4)]
    """
    if multiplicity_by_instance is None:
        return units
    renamed = multiplicity_by_instance.rename({"instance_id": unit_column})
    return units.join(renamed, on=unit_column, how="left", maintain_order="left")


def add_multiplicity_evidence(
    scores: Scores, multiplicity_by_instance: pl.DataFrame | None
) -> Scores:
    """Put beside scores how many people each unit stands for: the evidence ``counts``."""
    if multiplicity_by_instance is None:
        return scores
    tables = [scores.units, *scores.evidence.values()]
    units = pl.concat([t.select("model", "unit_id", "cluster_id") for t in tables]).unique(
        maintain_order=True
    )
    counts = add_multiplicity(units, multiplicity_by_instance, "unit_id")
    return replace(scores, evidence={**scores.evidence, COUNTS: counts})


def repeat_counted_cases(dataset: Dataset) -> Dataset:
    """Give each case of a table of counts an instance of its own, in the cluster of its row.

    Cases that are clusters by themselves are counted; those of a cluster are drawn together.
    """
    counts = dataset.bundled_predictions
    if counts is None or TIMES not in counts.columns:
        return dataset
    n_cases = count_people(counts)
    if n_cases > _MAX_CLUSTERED_CASES:
        raise SpecError(
            "a table of counts is too large for clusters",
            expected=f"at most {_MAX_CLUSTERED_CASES:,} cases, each of which is held in memory",
            found=f"{n_cases:,}",
            hint="audit the people themselves as table:FILE, in shards if need be",
        )
    cases = counts.select(row_id="instance_id", case=pl.int_ranges(1, pl.col(TIMES) + 1)).explode(
        "case"
    )
    cases = cases.select("row_id", instance_id=pl.format("{}, case {}", "row_id", "case"))
    instances, attributes, predictions = (
        cases.join(
            table.rename({column: "row_id"}), on="row_id", maintain_order="left_right"
        ).rename({"instance_id": column})
        for table, column in (
            (dataset.instances, "instance_id"),
            (dataset.attributes, "unit_id"),
            (counts.with_columns(pl.lit(1, dtype=pl.Int64).alias(TIMES)), "instance_id"),
        )
    )
    instances = instances.with_columns(image_id="instance_id")
    return replace(
        dataset,
        instances=instances.select(dataset.instances.columns),
        attributes=attributes.select(dataset.attributes.columns),
        images=instances.select("image_id"),
        bundled_predictions=predictions.select(counts.columns),
    )


def count_people(table: pl.DataFrame) -> int:
    """Count the people that rows stand for.

    Examples
    --------
    >>> count_people(pl.DataFrame({"a": [1, 2]})), count_people(pl.DataFrame({"times": [3, 4]}))
    (2, 7)
    """
    return int(table[TIMES].sum()) if TIMES in table.columns else table.height


def count_people_at_rows(row_indices: pl.Series, multiplicity: pl.Series | None) -> int:
    """Count the people that some units stand for.

    Examples
    --------
    >>> (
    ...     count_people_at_rows(pl.Series([0, 2]), None),
    ...     count_people_at_rows(pl.Series([0, 2]), pl.Series([5, 1, 7])),
    ... )
    (2, 12)
    """
    return len(row_indices) if multiplicity is None else int(multiplicity.gather(row_indices).sum())


def count_people_by_label(table: pl.DataFrame, label_expr: pl.Expr) -> pl.DataFrame:
    """Count the people of each value: ``label, count``, in no particular order.

    Examples
    --------
    >>> count_people_by_label(pl.DataFrame({"a": ["x", None], "times": [3, 4]}), pl.col("a")).rows()
    [('x', 3)]
    """
    if TIMES not in table.columns:
        labels = table.select(label=label_expr).to_series()
        labels = labels.explode() if labels.dtype == pl.List else labels
        return labels.drop_nulls().value_counts()
    label_counts = table.select(TIMES, label=label_expr)
    label_counts = (
        label_counts.explode("label") if label_counts.schema["label"] == pl.List else label_counts
    )
    return label_counts.drop_nulls("label").group_by("label").agg(count=pl.col(TIMES).sum())


def refuse_count_tables(evidence_names: Container[str], command: str, expected: str) -> None:
    """Refuse a table of counts, or a run of one, where people are asked of one by one.

    Examples
    --------
    >>> refuse_count_tables(["classification"], "compare", "two audits of people")
    """
    if COUNTS in evidence_names:
        raise SpecError(
            f"{command} asks of people one by one, and a table of counts holds none",
            expected=expected,
            found="counts alone",
        )


def refuse_ambiguous_count_rows(
    dataset: Dataset, by: Sequence[str], clusters: Sequence[str] = ()
) -> None:
    """Refuse a table of counts with several rows of a group that differ in what nothing names."""
    if dataset.bundled_predictions is None or TIMES not in dataset.bundled_predictions.columns:
        return
    wide = dataset.attributes.pivot("attribute", index="unit_id", values="value")
    other_columns = [name for name in wide.columns if name not in (*by, *clusters, "unit_id")]
    rows = dataset.bundled_predictions.join(
        wide.join(dataset.instances, left_on="unit_id", right_on="instance_id", how="semi"),
        left_on="instance_id",
        right_on="unit_id",
    )
    # In a group of one attribute its people are added up over all the others.
    keys = [[name] for name in by if name in wide.columns] or [[]]
    values = pl.concat(
        rows.group_by("model", "label", *key)
        .agg(pl.col(other_columns).n_unique())
        .select(other_columns)
        for key in keys
    )
    varying = [name for name in other_columns if (values[name] > 1).any()]
    if not varying:
        return
    first = varying[0]
    of_model = f"a model: --model-column {first}; " if rows["model"].n_unique() == 1 else ""
    example_values = ", ".join(map(repr, rows[first].unique(maintain_order=True).head(3)))
    raise SpecError(
        "several rows are of one group, and nothing says what tells them apart",
        expected="each further column named for what it is",
        found=f"{', '.join(map(repr, varying))}, such as {first} = {example_values}",
        hint=f"{of_model}a group too: --by {first}; what was sampled, such as a video: --cluster"
        f" {first}; anything else: one value at a time, as in --only '{first}={rows[first][0]}'",
    )
