"""A share without truth that differs by group, or by answer: the gap is bounded."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.plausibility import AuditInputs, missing_truth
from tests.plausibility._inputs import classify
from tests.plausibility._missing import SOUND, draw_world

RACE = ["A"] * 50 + ["B"] * 65
TRUTH = ["cat"] * 100 + [None] * 15
ANSWERS = ["dog"] * 5 + ["cat"] * 110


def build_broken_inputs() -> AuditInputs:
    """A: 45 of 50 right. B: 50 of 50, and 15 without truth."""
    return classify(TRUTH, ANSWERS, RACE)


def test_the_gap_is_bounded() -> None:
    """100 − 90 = +10 points; +10 too if B's 15 were right, 50/65 − 45/50 if they were wrong."""
    (caution,) = missing_truth.check(build_broken_inputs())
    assert caution.startswith(
        "Missing truths are uneven (race, model 'm'): B lacks 15 of 65 (23 %); A lacks 0 of 50"
    )
    assert "is +10.0 points of those with a truth, and −13.1 to +10.0 points" in caution


def test_a_truth_that_goes_with_the_answer() -> None:
    """Of 100 answers "cat" 30 have no truth, of 100 "dog" none; of either race 15."""
    answers, race = ["cat"] * 100 + ["dog"] * 100, ["A", "B"] * 100
    truth = [None] * 30 + ["cat"] * 70 + ["dog"] * 100
    (caution,) = missing_truth.check(classify(truth, answers, race))
    assert "(answers of 'm'): cat lacks 30 of 100 (30 %); dog lacks 0 of 100 (0 %)" in caution
    assert "points whatever is missing" in caution


@pytest.mark.parametrize("metric", ["accuracy", "true_positive_rate"])
def test_the_audit_says_it_once_before_any_number(metric) -> None:
    """Whoever has no truth is in no row of a rate, and is found all the same."""
    found = isolux.audit(
        pl.DataFrame({"race": RACE, "truth": TRUTH, "answer": ANSWERS}), by="race", target="truth",
        prediction_column="answer", positive="cat", metric=[metric], replicates=100,
    )  # fmt: skip
    warnings = found.run.record["warnings"]
    assert sum("truths are uneven" in text for text in warnings) == 1
    assert any("points whatever is missing" in text for text in warnings)
    assert any("say so: --label-map 'CLASS=\"\"'" in text for text in warnings)


def test_empty_cells_that_mean_a_class_are_not_missing(tmp_path) -> None:
    """All 65 of B have a truth then, in one table as in several files."""
    frame = pl.DataFrame({"race": RACE, "truth": TRUTH, "answer": ANSWERS})
    frame[:60].write_parquet(tmp_path / "1.parquet")
    frame[60:].write_parquet(tmp_path / "2.parquet")
    settings = {"by": "race", "target": "truth", "prediction_column": "answer", "replicates": 100}
    settings["label_map"] = ['dog=""']
    tables = []
    for source in (frame, f"table:{tmp_path}/"):
        found = isolux.audit(source, **settings, metric=["accuracy"])
        assert not [text for text in found.run.record["warnings"] if "uneven" in text]
        assert any("truth of 15 of 115 people" in text for text in found.run.record["notes"])
        tables.append(found.group_metrics)
    # A: 45 of 50 say cat. B: 50 of 65; the 15 without a mention were called cats.
    assert dict(tables[0].select("group", "value").rows()) == pytest.approx(
        {"overall": 95 / 115, "A": 45 / 50, "B": 50 / 65}
    )
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("world", SOUND)
def test_truths_missing_at_random_raise_no_alarm(world) -> None:
    """At 1 of 100 audits, 4 or more of 40 have a chance below 1 in 1,000."""
    worlds = (draw_world(seed, missing="truth", **SOUND[world]) for seed in range(40))
    assert sum(bool(missing_truth.check(inputs)) for inputs in worlds) <= 3


@pytest.mark.parametrize(("lost", "least"), [(0.55, 30), (0.3, 28)])
def test_wrong_answers_of_one_group_without_truth_are_found(lost, least) -> None:
    halves = (0.5, 0.5, 0.0)
    worlds = (
        draw_world(seed, 1000, "truth", sizes=halves, lost_if_wrong=lost) for seed in range(30)
    )
    assert sum(bool(missing_truth.check(inputs)) for inputs in worlds) >= least
