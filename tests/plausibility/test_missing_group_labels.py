"""People of unknown group who score unlike the others: the gap between the known is bounded."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.plausibility import AuditInputs, missing_group_labels
from tests.plausibility._inputs import classify
from tests.plausibility._missing import SOUND, draw_world


def build_broken_inputs() -> AuditInputs:
    """A: 45 of 50 right, B: 50 of 50; 10 of unknown race, all wrong."""
    race = ["A"] * 50 + ["B"] * 50 + [None] * 10
    answers = ["dog"] * 5 + ["cat"] * 95 + ["dog"] * 10
    return classify(["cat"] * 110, answers, race)


def test_the_gap_is_bounded() -> None:
    """90 − 100 = −10 points of the known. All unknown in A: 45/60 − 1; in B: 45/50 − 50/60."""
    (caution,) = missing_group_labels.check(build_broken_inputs())
    assert caution.startswith(
        "race: the 10 people of unknown race score unlike the others (accuracy 0.0 % against 95.0 %"
    )
    assert "of A less that of all others is −10.0 points of the known, and −25.0 to +6.7" in caution


def test_the_audit_says_it_before_any_number() -> None:
    race = ["A"] * 50 + ["B"] * 50 + [None] * 10
    table = {"race": race, "truth": ["cat"] * 110,
             "answer": ["dog"] * 5 + ["cat"] * 95 + ["dog"] * 10}  # fmt: skip
    found = isolux.audit(
        pl.DataFrame(table), by="race", target="truth", prediction_column="answer", replicates=100
    )
    warnings = found.run.record["warnings"]
    assert any("missing not at random" in text and "−25.0 to +6.7" in text for text in warnings)


@pytest.mark.parametrize(
    "settings",
    [{"by": "race*sex"}, {"unknown": "drop"}, {"unknown": "both"}],
    ids=" ".join,
)
def test_the_unknown_are_tested_however_they_are_grouped(settings) -> None:
    table = pl.DataFrame(
        {"race": ["A"] * 50 + ["B"] * 50 + [None] * 10, "sex": ["f", "m"] * 55,
         "truth": ["cat"] * 110, "answer": ["dog"] * 5 + ["cat"] * 95 + ["dog"] * 10}
    )  # fmt: skip
    asked = {"by": "race", "target": "truth", "prediction_column": "answer", "replicates": 100}
    warnings = isolux.audit(table, **{**asked, **settings}).run.record["warnings"]
    assert sum("race: the 10 people of unknown race" in text for text in warnings) == 1


def test_values_that_were_left_out_are_not_unknown() -> None:
    """C's answers are all wrong, and no group holds it: its people are known all the same."""
    table = pl.DataFrame(
        {"race": ["A"] * 50 + ["B"] * 50 + ["C"] * 20 + [None] * 20, "truth": ["cat"] * 140,
         "answer": ["dog"] * 2 + ["cat"] * 98 + ["dog"] * 20 + ["cat"] * 20}
    )  # fmt: skip
    found = isolux.audit(
        table, by="race", target="truth", prediction_column="answer", replicates=100,
        group=["race:A=A", "race:B=B"], ungrouped_values="drop",
    )  # fmt: skip
    assert not any("missing not at random" in text for text in found.run.record["warnings"])


@pytest.mark.parametrize("world", SOUND)
def test_labels_missing_at_random_raise_no_alarm(world) -> None:
    """At 1 of 100 audits, 4 or more of 40 have a chance below 1 in 1,000."""
    worlds = (draw_world(seed, missing="race", **SOUND[world]) for seed in range(40))
    assert sum(bool(missing_group_labels.check(inputs)) for inputs in worlds) <= 3


@pytest.mark.parametrize(("n", "lost"), [(1000, 0.55), (1000, 0.3), (400, 1.0)])
def test_wrong_answers_of_one_group_without_label_are_found(n, lost) -> None:
    """No gap is there, and 5.6 points would be reported (n = 1,000, 55 % lost)."""
    halves = (0.5, 0.5, 0.0)
    worlds = (draw_world(seed, n, "race", sizes=halves, lost_if_wrong=lost) for seed in range(30))
    assert sum(bool(missing_group_labels.check(inputs)) for inputs in worlds) >= 29
