"""Every class against the rest: the rates that FACET's equalised odds rests on (A.5.2)."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.core.tables import SCORES, check
from isolux.tasks.classification import score
from isolux.tasks.classification.metrics import METRIC_ENTRIES, names_that_need
from tests.tasks._people import answers, people, values

# d carries two classes; e is known to nobody.
TRUTH = people({"a": "nurse", "b": "guard", "c": "guard", "d": ("nurse", "guard"), "e": None})
SAID = answers({"a": "nurse", "b": "nurse", "c": "guard", "d": "guard", "e": "nurse"})


def rates(metric, label, **options):
    scores = score(TRUTH, SAID, target="job", one_vs_rest=True, metrics=[metric], **options)
    return values(scores, metric, label)


def test_true_negative_rates_are_over_those_who_are_not_of_the_class():
    # Not nurses: b, who was taken for one, and c. Not guards: a alone, who was not.
    assert rates("true_negative_rate", "nurse") == {"b": 0.0, "c": 1.0}
    assert rates("true_negative_rate", "guard") == {"a": 1.0}


def test_another_valid_class_is_no_true_positive():
    # d is a nurse and a guard and was taken for a guard: right, yet not given "nurse".
    assert rates("true_positive_rate", "nurse") == {"a": 1.0, "d": 0.0}
    assert rates("true_positive_rate", "guard") == {"b": 0.0, "c": 1.0, "d": 1.0}


RATES = {e.metric.name for e in METRIC_ENTRIES if not e.on_request}.intersection(
    names_that_need("answers", "positive")
)


@pytest.mark.parametrize("metric", sorted(RATES))
@pytest.mark.parametrize("label", ["nurse", "guard"])
def test_a_class_has_the_rates_that_it_has_as_the_positive_one(metric, label):
    alone = score(TRUTH, SAID, target="job", positive=label, metrics=[metric])
    assert rates(metric, label) == values(alone, metric, label)


def test_all_six_are_measured_unless_some_are_named():
    scores = score(TRUTH, SAID, target="job", one_vs_rest=True)
    assert {m.name for m in scores.info.metrics} >= RATES
    assert "f1" not in {m.name for m in scores.info.metrics}
    assert "roc_auc" not in {m.name for m in scores.info.metrics}
    assert check(scores.units, SCORES).equals(scores.units)
    plain = score(TRUTH, SAID, target="job")
    others = ~pl.col("metric").is_in(sorted(RATES))
    assert scores.units.filter(others).equals(plain.units)


def test_an_unseen_face_is_given_no_class_or_left_out():
    # c was not found: as a mistake, nobody took it for a nurse, which is right of it.
    seen = answers({"a": "nurse", "b": "nurse", "c": None})
    few = people({"a": "nurse", "b": "guard", "c": "guard"})
    options = {"target": "job", "one_vs_rest": True, "metrics": ["true_negative_rate"]}
    assert values(score(few, seen, **options), "true_negative_rate", "nurse") == {
        "b": 0.0, "c": 1.0
    }  # fmt: skip
    left = score(few, seen, undetected="leave-out", **options)
    assert values(left, "true_negative_rate", "nurse") == {"b": 0.0, "c": "not detected"}


def test_nobody_gives_no_rows():
    scores = score(people({}), answers({}), target="job", one_vs_rest=True)
    assert check(scores.units, SCORES).is_empty()


def test_one_positive_class_and_every_class_at_once_are_refused():
    with pytest.raises(SpecError, match="one class cannot be the positive one") as caught:
        score(TRUTH, SAID, target="job", positive="nurse", one_vs_rest=True)
    assert caught.value.found == "positive='nurse' and one_vs_rest"


def test_without_it_rates_still_need_a_positive_class():
    with pytest.raises(SpecError, match="'true_negative_rate' cannot be measured"):
        score(TRUTH, SAID, target="job", metrics=["true_negative_rate"])
