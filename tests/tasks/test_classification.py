"""Metrics, one by one, on tables small enough to check by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, INSTANCES, SCORES, check
from isolux.stats.statistic import RankStatistic, SumStatistic
from isolux.tasks.classification import INFO, score
from isolux.tasks.classification.label_matching import match_labels
from tests.tasks._people import answers, people, values

# FACET, Figure 11: dancers by perceived gender presentation, with what the model said.
DANCERS = people(dict.fromkeys(["1", "8", "11", "13", "4", "6", "7"], "Dancer"))
SAID = answers(
    {
        "1": "Dancer",
        "8": "Dancer",
        "11": "Guitarist",
        "13": "Dancer",
        "4": "Dancer",
        "6": "Guitarist",
        "7": "Dancer",
    }
)


@pytest.mark.parametrize(
    ("presentation", "recall"),
    [(["1", "8", "11", "13"], 0.75), (["4", "6"], 0.5), (["7"], 1.0)],
    ids=["more femaleness", "more maleness", "non-binary"],
)
def test_recall_of_dancers_as_facet_draws_it(presentation, recall):
    found = values(score(DANCERS, SAID, target="job"), "recall", "Dancer")
    assert np.mean([found[unit] for unit in presentation]) == recall


def test_accuracy_and_recall_by_class():
    scores = score(
        people({"a": "x", "b": "x", "c": "y"}),
        answers({"a": "x", "b": "y", "c": "y"}),
        target="job",
    )
    assert values(scores, "accuracy") == {"a": 1.0, "b": 0.0, "c": 1.0}
    assert values(scores, "recall", "x") == {"a": 1.0, "b": 0.0}
    assert values(scores, "recall", "y") == {"c": 1.0}
    assert check(scores.units, SCORES).equals(scores.units)


def test_either_of_two_valid_classes_is_right_and_counts_for_both():
    # b is nurse and doctor: taken for a doctor it is right, and recalled as either.
    scores = score(
        people({"a": "nurse", "b": ("nurse", "doctor"), "c": ("nurse", "doctor")}),
        answers({"a": "doctor", "b": "doctor", "c": "painter"}),
        target="job",
    )
    assert values(scores, "accuracy") == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert values(scores, "recall", "nurse") == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert values(scores, "recall", "doctor") == {"b": 1.0, "c": 0.0}


def test_a_class_named_twice_is_one_class():
    scores = score(people({"a": ("x", "x")}), answers({"a": "x"}), target="job")
    assert values(scores, "recall", "x") == {"a": 1.0}
    assert check(scores.units, SCORES).height == 2


def test_truth_from_the_classes_that_instances_carry():
    instances = pl.DataFrame(
        {
            "instance_id": ["a", "b"],
            "image_id": ["i", "i"],
            "cluster_id": ["s1", None],
            "classes": [["x", "y"], None],
        }
    )
    scores = score(replace(people({}), instances=instances), answers({"a": "y", "b": "y"}))
    assert values(scores, "accuracy") == {"a": 1.0, "b": "unknown truth"}
    assert scores.units["cluster_id"].to_list()[:2] == ["s1", None]
    assert scores.evidence["classification"]["cluster_id"].to_list() == ["s1", None]
    assert set(scores.units["unit_kind"]) == {"instance"}


@pytest.mark.parametrize(("kind", "column"), [("image", "image_id"), ("subject", "subject_id")])
def test_truth_of_an_image_or_a_subject_is_that_of_its_instances(kind, column):
    instances = pl.DataFrame(
        {"instance_id": ["a", "b", "c"], "image_id": ["i1", "i2", "i3"]}
    ).with_columns(pl.Series(column, ["u", "u", "v"]))
    attributes = pl.DataFrame(
        {"unit_kind": kind, "unit_id": ["u", "v"], "attribute": "job", "value": ["x", "y"]}
    )
    dataset = replace(
        people({}),
        instances=INSTANCES.conform(instances),
        attributes=ATTRIBUTES.conform(attributes),
    )
    scores = score(dataset, answers({"a": "x", "b": "y", "c": "y"}), target="job")
    assert values(scores, "accuracy") == {"a": 1.0, "b": 0.0, "c": 1.0}


@pytest.mark.parametrize("word", ["", " Unknown ", "NOT SURE", None])
def test_unknown_truth_is_null_with_its_reason(word):
    scores = score(
        people({"a": word, "b": "x"}), answers({"a": "x", "b": "x"}), target="job", positive="x"
    )
    for metric, label in (("accuracy", None), ("selection_rate", "x"), ("precision", "x")):
        assert values(scores, metric, label) == {"a": "unknown truth", "b": 1.0}
    # In which class it would be is not known either, so it is in none.
    for metric in ("recall", "true_positive_rate", "false_negative_rate"):
        assert set(values(scores, metric, "x")) == {"b"}
    assert "1 of 2 units have no known truth and count in no metric." in scores.notes
    assert scores.evidence["classification"]["correct"].to_list() == [None, True]
    assert scores.evidence["classification"]["is_positive"].to_list() == [None, True]


def test_an_unknown_word_beside_a_known_class_is_left_out():
    truth = people({"a": ("unknown", "x"), "b": "y"})
    scores = score(truth, answers({"a": "unknown", "b": "y"}), target="job")
    assert values(scores, "accuracy") == {"a": 0.0, "b": 1.0}
    assert values(scores, "recall", "x") == {"a": 0.0}


def test_other_words_may_mean_unknown():
    truth, given = people({"a": "unknown", "b": "?"}), answers({"a": "unknown", "b": "?"})
    scores = score(truth, given, target="job", unknown_values=("?",))
    assert values(scores, "accuracy") == {"a": 1.0, "b": "unknown truth"}


def test_a_person_without_prediction_is_null_with_its_reason():
    scores = score(people({"a": "x", "b": "x"}), answers({"a": "x"}), target="job", positive="x")
    for metric, label in (("accuracy", None), ("recall", "x"), ("true_positive_rate", "x")):
        assert values(scores, metric, label) == {"a": 1.0, "b": "no prediction"}
    assert set(values(scores, "precision", "x")) == {"a"}
    assert "1 of 2 units have no prediction and count in no metric." in scores.notes


def test_no_predictions_at_all_leave_everyone_unjudged():
    scores = score(people({"a": "x"}), answers({}), target="job", model="silent")
    assert values(scores, "accuracy") == {"a": "no prediction"}
    assert set(scores.units["model"]) == {"silent"}
    assert score(people({"a": "x"}), answers({}), target="job").units["model"][0] == "model"


def test_no_people_give_empty_tables():
    scores = score(people({}), answers({}), target="job", positive="x", top_k=(2,))
    assert check(scores.units, SCORES).is_empty()
    assert scores.evidence["classification"].is_empty()


def test_the_six_rates_of_a_positive_class():
    # Truth + + - -, answers + - + -: each rate's population in the order of the units.
    scores = score(
        people({"tp": "yes", "fn": "yes", "fp": "no", "tn": "no"}),
        answers({"tp": "yes", "fn": "no", "fp": "yes", "tn": "no"}),
        target="job",
        positive="yes",
    )
    assert values(scores, "true_positive_rate", "yes") == {"tp": 1.0, "fn": 0.0}
    assert values(scores, "false_negative_rate", "yes") == {"tp": 0.0, "fn": 1.0}
    assert values(scores, "false_positive_rate", "yes") == {"fp": 1.0, "tn": 0.0}
    assert values(scores, "true_negative_rate", "yes") == {"fp": 0.0, "tn": 1.0}
    assert values(scores, "precision", "yes") == {"tp": 1.0, "fp": 0.0}
    expected = {"tp": 1.0, "fn": 0.0, "fp": 1.0, "tn": 0.0}
    assert values(scores, "selection_rate", "yes") == expected


def test_a_selection_rate_needs_no_truth_and_says_nothing_of_one():
    """Of a, b and c with the answers yes, no and none given: 1, 0 and 0; d has no row at all."""
    crowd = people({"a": [], "b": [], "c": [], "d": []})
    given = answers({"a": ["yes"], "b": ["no"], "c": [None]})
    found = score(crowd, given, positive="yes", metrics=["selection_rate"])
    assert values(found, "selection_rate", "yes") == {
        "a": 1.0, "b": 0.0, "c": 0.0, "d": "no prediction"}  # fmt: skip
    assert not any(word in note for note in found.notes for word in ("truth", "true", "mistake"))
    assert [metric.name for metric in found.info.metrics] == ["selection_rate"]
    left = score(crowd, given, positive="yes", metrics=["selection_rate"], undetected="leave-out")
    assert values(left, "selection_rate", "yes")["c"] == "not detected"


@pytest.mark.parametrize(("lower", "selected"), [("other", "ab"), ("positive", "bc")])
def test_scores_at_a_threshold_have_a_selection_rate_without_a_truth(lower, selected):
    """Scores of .9, .7 and .2 at .7, which itself is in; d has none and is in no rate."""
    crowd = people({"a": [], "b": [], "c": [], "d": []})
    given = pl.DataFrame(
        {"model": "m", "instance_id": ["a", "b", "c", "d"], "score": [0.9, 0.7, 0.2, None]}
    )
    options = {"positive": "yes", "metrics": ["selection_rate"], "lower_score_means": lower}
    found = score(crowd, given, threshold=0.7, **options)
    expected = {name: float(name in selected) for name in "abc"} | {"d": "no prediction"}
    assert values(found, "selection_rate", "yes") == expected
    relation = "at most" if lower == "positive" else "at least"
    assert f"Scores of {relation} 0.7 are answers 'yes'" in found.notes[0]
    assert found.task_choices["threshold"]["value"] == {"m": 0.7}
    for rule in (None, "fpr=0.1"):
        with pytest.raises(SpecError, match=r"cannot be measured(.|\n)*--threshold NUMBER"):
            score(crowd, given, threshold=rule, **options)
    with pytest.raises(SpecError, match=r"no score reaches the threshold(.|\n)*0\.2 to 0\.9"):
        score(crowd, given, threshold=-1.0 if lower == "positive" else 2.0, **options)


@pytest.mark.parametrize("scored", [False, True])
def test_a_selection_rate_needs_nobody_of_whom_the_class_is_true(scored):
    crowd = people({"a": "no", "b": "no", "c": "no"}, target="t")
    given, options = answers({"a": "yes", "b": "no", "c": "yes"}), {}
    if scored:
        given, options = (
            pl.DataFrame({"model": "m", "instance_id": ["a", "b", "c"], "score": [0.9, 0.1, 0.8]}),
            {"threshold": 0.5},
        )
    found = score(crowd, given, target="t", positive="yes", metrics=["selection_rate"], **options)
    assert values(found, "selection_rate", "yes") == {"a": 1.0, "b": 0.0, "c": 1.0}
    with pytest.raises(SpecError, match="the positive class 'yes' is true of nobody"):
        score(crowd, given, target="t", positive="yes", metrics=["precision"], **options)
    if not scored:
        with pytest.raises(SpecError, match="nobody was given the positive class 'Yes'"):
            score(crowd, given, target="t", positive="Yes", metrics=["selection_rate"])


def test_a_threshold_beside_answers_is_refused_without_a_truth_too():
    with pytest.raises(SpecError, match="threshold makes answers of scores"):
        score(people({"a": []}), answers({"a": ["yes"]}), positive="yes",
              metrics=["selection_rate"], threshold=0.5)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [({"positive": "y"}, "nobody was given the positive class 'y'(.|\n)*no, yes"),
     ({}, "selection_rate' cannot be measured(.|\n)*positive"),
     ({"positive": "yes", "metrics": ["selection_rate", "accuracy"]}, "--target NAME")],
)  # fmt: skip
def test_a_selection_rate_without_a_class_or_beside_a_metric_of_truth_is_refused(options, words):
    given = answers({"a": ["yes"], "b": ["no"]})
    with pytest.raises(SpecError, match=words):
        score(people({"a": [], "b": []}), given, **({"metrics": ["selection_rate"]} | options))


def test_the_positive_class_must_be_the_answer_itself():
    # Another valid class makes the answer right, but it does not give the positive class.
    scores = score(
        people({"a": ("nurse", "doctor")}), answers({"a": "doctor"}), target="job", positive="nurse"
    )
    assert values(scores, "accuracy") == {"a": 1.0}
    assert values(scores, "true_positive_rate", "nurse") == {"a": 0.0}
    assert values(scores, "false_positive_rate", "nurse") == {}


def test_top_k_counts_distinct_answers():
    scores = score(
        people({"a": "z", "b": ("y", "q"), "c": "w"}),
        answers({"a": ("x", "x", "z"), "b": ("x", "y", "z"), "c": ("x", "y", "z")}),
        target="job",
        metrics=("top_k_accuracy",),
        top_k=(3, 1, 2, 2),
    )
    found = {
        k: dict(part.select("unit_id", "value").iter_rows())
        for (k,), part in scores.units.group_by("threshold")
    }
    assert found == {
        1.0: {"a": 0.0, "b": 0.0, "c": 0.0},
        2.0: {"a": 1.0, "b": 1.0, "c": 0.0},  # a's second distinct answer is its third row
        3.0: {"a": 1.0, "b": 1.0, "c": 0.0},
    }


def test_top_1_is_accuracy_and_comes_beside_the_metrics_asked_for():
    truth = people({"a": "x", "b": "y", "c": None})
    given = answers({"a": "x", "b": "x", "c": "x"})
    scores = score(truth, given, target="job", metrics="accuracy", top_k=[1])
    assert values(scores, "top_k_accuracy") == values(scores, "accuracy")
    assert [m.name for m in scores.info.metrics] == ["accuracy", "top_k_accuracy"]


def test_ranks_decide_which_answer_is_first_whatever_the_row_order():
    given = answers({"a": ("x", "y"), "b": ("y", "x")}).reverse()
    scores = score(people({"a": "x", "b": "x"}), given, target="job")
    assert values(scores, "accuracy") == {"a": 1.0, "b": 0.0}


def test_answers_that_share_the_highest_score_are_counted():
    # a: x and y tie for the first place. b: they tie for the second. c: one answer.
    given = answers({"a": ("x", "y"), "b": ("z", "x", "y"), "c": "x"},
                    {"a": (0.5, 0.5), "b": (0.9, 0.1, 0.1), "c": 1.0})  # fmt: skip
    scores = score(people({"a": "x", "b": "x", "c": "y"}), given, target="job")
    (note,) = [n for n in scores.notes if "one highest score" in n]
    assert isinstance(note, Caution)
    assert note.startswith("1 of 3 units have several labels of one highest score.")


def test_balanced_accuracy_is_the_mean_recall_of_the_classes_that_occur():
    # x: 3 of 4; y: 1 of 2 -> .625, where accuracy is 4/6. z is an answer, never a truth.
    scores = score(
        people({"a": "x", "b": "x", "c": "x", "d": "x", "e": "y", "f": "y", "g": None}),
        answers({"a": "x", "b": "x", "c": "x", "d": "z", "e": "y", "f": "x", "g": "x"}),
        target="job",
    )
    statistic, evidence = _statistic(scores, "balanced_accuracy")
    assert statistic(evidence, np.ones(7)) == 0.625
    only_x = np.array([1, 1, 1, 1, 0, 0, 0.0])
    nobody = np.array([0, 0, 0, 0, 0, 0, 1.0])
    heavy_d = np.array([1, 1, 1, 3, 1, 1, 1.0])  # x: 3 of 6
    got = statistic(evidence, np.column_stack([only_x, nobody, heavy_d]))
    np.testing.assert_array_equal(got, [0.75, np.nan, 0.5])


def test_balanced_accuracy_counts_two_valid_classes_in_both():
    # nurse: a right, b right -> 1; doctor: b right, c wrong -> .5.
    scores = score(
        people({"a": "nurse", "b": ("nurse", "doctor"), "c": "doctor"}),
        answers({"a": "nurse", "b": "doctor", "c": "nurse"}),
        target="job",
    )
    statistic, evidence = _statistic(scores, "balanced_accuracy")
    assert statistic(evidence, np.ones(3)) == 0.75


def _statistic(scores, metric):
    info = scores.info.metric(metric)
    assert isinstance(info.statistic, SumStatistic | RankStatistic)
    return info.statistic, scores.evidence[info.evidence]


def test_several_models_are_judged_each_against_everyone():
    given = pl.concat(
        [answers({"a": "x", "b": "x"}, model="two"), answers({"b": "y"}, model="one")]
    )
    scores = score(people({"a": "x", "b": "y"}), given, target="job", metrics=("accuracy",))
    rows = scores.units.select("model", "unit_id", "value", "reason").rows()
    assert rows == [
        ("one", "a", None, "no prediction"),
        ("one", "b", 1.0, None),
        ("two", "a", 1.0, None),
        ("two", "b", 0.0, None),
    ]
    assert "one: 1 of 2 units have no prediction and count in no metric." in scores.notes


def test_classes_that_only_one_side_knows_are_noted():
    scores = score(
        people({"a": "x", "b": "y", "c": "y", "d": "z"}),
        answers({"a": "q", "b": "q", "c": "p", "d": "z"}),
        target="job",
    )
    assert "Answers never seen as truth: q (2), p (1)." in scores.notes
    assert "Classes never answered: y (2), x (1)." in scores.notes


def test_a_long_list_of_classes_is_cut():
    truth = people({str(i): "x" for i in range(16)})
    said = {str(i): f"c{i:02}" if i < 13 else "x" for i in range(16)}
    scores = score(truth, answers(said), target="job")
    told = next(n for n in scores.notes if n.startswith("Answers never seen"))
    assert told.startswith("Answers never seen as truth: c00 (1), c01 (1)")
    assert told.endswith("c09 (1) and 3 more.")


def test_predictions_for_strangers_are_noted():
    scores = score(people({"a": "x"}), answers({"a": "x", "z": "x"}), target="job")
    assert values(scores, "accuracy") == {"a": 1.0}
    expected = "1 predictions are for units that the dataset has not; they were left out."
    assert expected in scores.notes


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, ()),
        (
            {"positive": "x"},
            (
                "true_positive_rate",
                "false_positive_rate",
                "true_negative_rate",
                "false_negative_rate",
                "precision",
                "selection_rate",
            ),
        ),
        ({"top_k": (1,)}, ("top_k_accuracy",)),
    ],
)
def test_what_is_measured_by_default(options, more):
    given = answers({"a": "x", "b": "x"})
    scores = score(people({"a": "x", "b": "y"}), given, target="job", **options)
    assert {m.name for m in scores.info.metrics} == {*INFO.defaults, *more}
    cited = {r for m in scores.info.metrics if (r := m.reference)}
    assert set(scores.info.references) == cited


def test_a_statistic_alone_has_evidence_and_no_rows():
    given = answers({"a": "x"})
    scores = score(people({"a": "x"}), given, target="job", metrics=("balanced_accuracy",))
    assert check(scores.units, SCORES).is_empty()
    assert [m.name for m in scores.info.metrics] == ["balanced_accuracy"]
    assert scores.evidence["classification"]["correct"].to_list() == [True]


def test_scores_do_not_depend_on_other_metrics_asked_for():
    truth, given = people({"a": "x", "b": "y"}), answers({"a": "x", "b": "x"})
    every = score(truth, given, target="job", positive="x")
    for metric in ("accuracy", "recall", "precision"):
        alone = score(truth, given, target="job", positive="x", metrics=(metric,))
        assert alone.units.equals(every.units.filter(pl.col("metric") == metric))


def test_a_pandas_frame_is_taken_as_well():
    pd = pytest.importorskip("pandas")
    given = pd.DataFrame(
        {"model": "m", "instance_id": ["a"], "label": ["x"], "score": [0.5], "rank": [1]}
    )
    assert values(score(people({"a": "x"}), given, target="job"), "accuracy") == {"a": 1.0}


def test_a_merge_reaches_every_spelling_of_zero_as_of_one():
    matching = match_labels(["0.0", "1.0"], ["0", "1"], {"0": "no", "1": "yes"}, [])
    assert matching.merge == {"0.0": "no", "0": "no", "1.0": "yes", "1": "yes"}
