"""Errors that go opposite ways by class are said in one sentence, and only where both are shown."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.containers import Run
from isolux.statements.answer import describe_opposite_class_gaps

# By age and truth, so many right of so many: the old women and the boys are served worst.
OPPOSITE = {
    ("old", "woman"): (62, 200), ("old", "man"): (190, 200), ("child", "woman"): (180, 200),
    ("child", "man"): (106, 200), ("adult", "woman"): (180, 200), ("adult", "man"): (188, 200),
}  # fmt: skip


def audited(cells: dict[tuple[str, str], tuple[int, int]], **settings: object) -> Run:
    rows = [
        (age, truth, "woman man".replace(truth, "").strip() if i >= right else truth)
        for (age, truth), (right, n) in cells.items()
        for i in range(n)
    ]
    table = pl.DataFrame(rows, schema=["age", "truth", "answer"], orient="row")
    asked = {"by": "age", "target": "truth", "prediction_column": "answer", "replicates": 200}
    return isolux.audit(table, **asked | settings).run


def test_old_women_are_called_men_and_boys_girls() -> None:
    run = audited(OPPOSITE)
    told = describe_opposite_class_gaps(run)
    first, second = told.split(";")[:2]  # the pair's order is that of the wider gap's class
    for part in ("opposite ways", "child", "are called woman", "5.0 %)"):
        assert part in first
    for part in ("old", "labelled woman are called man", "10.0 %)"):
        assert part in second
    assert len(told.split()) <= 45


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({("child", "man"): (190, 200)}, "the boys are served as well as the old men"),
        ({("child", "woman"): (62, 200)}, "the girls are served as badly as the old women"),
        ({("child", "man"): (183, 200)}, "3.5 points below old men may be chance"),
    ],
)
def test_one_direction_or_one_that_is_not_established_is_no_opposite(changes, why) -> None:
    cells = OPPOSITE | changes | {("adult", "man"): (190, 200)}
    told = describe_opposite_class_gaps(audited(cells))
    assert told == "", why


def test_people_who_were_not_detected_were_not_called_anything() -> None:
    run = audited(OPPOSITE)
    models = {
        name: {**m, "n_undetected": 3} for name, m in run.record["accounting"]["models"].items()
    }
    record = {**run.record, "accounting": {**run.record["accounting"], "models": models}}
    other = Run(record, run.scores, run.attributes, run.group_metrics, run.disparities,
                run.findings, run.evidence)  # fmt: skip
    told = describe_opposite_class_gaps(other)
    assert "are missed" in told
    assert "called" not in told


def test_other_metrics_have_no_classes() -> None:
    assert describe_opposite_class_gaps(audited(OPPOSITE, metric=["accuracy"])) == ""
