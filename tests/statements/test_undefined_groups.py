"""A group of which a measure has no value is named, unless groups fix what is measured."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.containers import Run
from isolux.statements.answer import answer_from_run

SENTENCE = "B (race) has no true positive rate of label = yes: nobody in this group was scored"


def audited(truth: dict[str, tuple[int, int]], **settings: object) -> Run:
    """Audit groups of so many positives and negatives; every tenth answer is wrong."""
    rows = [
        (group, label, label if i % 10 else other)
        for group, (n_yes, n_no) in truth.items()
        for label, other, n in (("yes", "no", n_yes), ("no", "yes", n_no))
        for i in range(n)
    ]
    table = pl.DataFrame(rows, schema=["race", "label", "answer"], orient="row")
    asked: dict[str, object] = {
        "by": "race", "target": "label", "prediction_column": "answer", "positive": "yes",
        "metric": ["true_positive_rate", "false_positive_rate"], "replicates": 100, **settings,
    }  # fmt: skip
    return isolux.audit(table, **asked).run


def sentences(run: Run) -> str:
    answer = answer_from_run(run)
    return " ".join([answer.first, *answer.further])


@pytest.mark.parametrize("others", [{}, {"C": (150, 150), "D": (150, 150)}])
def test_a_group_without_positives_is_named(others) -> None:
    run = audited({"A": (154, 146), "B": (0, 300), **others})
    assert SENTENCE in sentences(run)
    claims = run.findings.filter(group_a="B", status="undefined")["claim"].to_list()
    assert len(claims) == 1
    assert claims[0].startswith(SENTENCE)


def test_a_group_that_lacks_a_class_has_no_balanced_accuracy() -> None:
    text = sentences(audited({"A": (154, 146), "B": (0, 300)}, metric=["balanced_accuracy"]))
    assert "B (race) has no balanced accuracy" in text


def test_several_are_counted_and_a_group_that_is_only_small_is_not_among_them() -> None:
    truth = {"A": (150, 150), "B": (150, 150), "S": (5, 100)}
    text = sentences(audited({**truth, **dict.fromkeys("CDEFG", (0, 100))}))
    assert "C (race), D (race), E (race) and 2 more groups have no true positive rate" in text
    assert "S" not in text.partition("have no true")[0].partition("C (race)")[2]


@pytest.mark.parametrize(
    "truth",
    [{"A": (150, 150), "B": (20, 280)}, {"women": (200, 0), "men": (0, 200)}],
    ids=["everyone has a value", "groups are the classes"],
)
def test_nothing_is_said_where_all_have_a_value_or_groups_fix_the_class(truth) -> None:
    assert "has no" not in sentences(audited(truth))
