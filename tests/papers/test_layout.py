"""Metrics of groups side by side: what all papers' tables are laid out from."""

import polars as pl

from isolux.core.tables import GROUP_METRICS
from isolux.papers._layout import pivot_metrics_by_class_and_group

MEASURES = {"mAR": ("average_recall", None), "AR50": ("recall_at_iou", 0.5)}


def table(rows):
    """Rows of group_metrics: metric, threshold, label, attribute, values, n_units, value."""
    names = ("metric", "threshold", "label", "attribute", "values", "n_units", "value")
    schema = {name: GROUP_METRICS.schema[name] for name in names}
    made = pl.DataFrame(rows, schema=schema, orient="row")
    return GROUP_METRICS.conform(made.with_columns(model=pl.lit("m")))


BOTH = table(
    [
        ("average_recall", None, None, "tone", ["1"], 60, 0.7),
        ("recall_at_iou", 0.5, None, "tone", ["1"], 60, 0.9),
        ("recall_at_iou", 0.75, None, "tone", ["1"], 60, 0.8),
        ("average_recall", None, "nurse", "tone", ["1"], 9, 0.2),
        ("average_recall", None, None, None, [], 60, 0.1),
        ("average_recall", None, None, "hair*tone", ["coily", "1"], 3, 0.3),
        ("recall_at_iou", 0.5, None, "hair*tone", ["coily", "2"], 4, None),
    ]
)


def test_thresholds_and_classes_are_kept_apart():
    found = pivot_metrics_by_class_and_group(BOTH, MEASURES, ["tone"])
    assert found.columns == ["model", "label", "tone", "n_units", "mAR", "AR50"]
    assert found.rows() == [("m", None, "1", 60, 0.7, 0.9), ("m", "nurse", "1", 9, 0.2, None)]


def test_parts_of_an_intersection_come_in_any_order():
    expected = [("1", "coily", 3, 0.3, None), ("2", "coily", 4, None, None)]
    found = pivot_metrics_by_class_and_group(BOTH, MEASURES, ["tone", "hair"])
    assert found.drop("model", "label").rows() == expected
    assert (
        pivot_metrics_by_class_and_group(BOTH, MEASURES, ["hair", "tone"])
        .select(found.columns)
        .equals(found)
    )


def test_a_metric_that_was_not_measured_is_null():
    found = pivot_metrics_by_class_and_group(
        BOTH, {"AR90": ("recall_at_iou", 0.9), **MEASURES}, ["tone"]
    )
    assert found["AR90"].to_list() == [None, None]
    assert found["mAR"].to_list() == [0.7, 0.2]


def test_an_attribute_that_is_not_there_gives_no_rows_of_the_same_columns():
    found = pivot_metrics_by_class_and_group(BOTH, MEASURES, ["age"])
    assert found.is_empty()
    assert found.columns == ["model", "label", "age", "n_units", "mAR", "AR50"]
