"""The same numbers as scikit-learn and fairlearn, to 1e-12, on tables that hypothesis makes."""

from __future__ import annotations

import warnings

import fairlearn.metrics as fl
import numpy as np
import polars as pl
import sklearn.metrics as skm
from hypothesis import assume, given
from hypothesis import strategies as st

from isolux.stats.statistic import MEAN
from isolux.tasks.classification import score
from tests.tasks._people import answers, people

CLOSE = {"atol": 1e-12, "rtol": 0}
CLASSES = st.sampled_from(["a", "b", "c"])
ROWS = st.lists(
    st.tuples(CLASSES, CLASSES, st.integers(1, 3)),  # truth, answer, weight
    min_size=1,
    max_size=40,
)
TWO = st.sampled_from(["a", "b"])
SCORED = st.lists(
    st.tuples(TWO, st.integers(0, 8).map(lambda k: k / 8), st.integers(1, 3)),
    min_size=1,
    max_size=40,
)


def judged(rows, **options):
    # Answers none of which is true of anyone are refused: tests of the vocabulary show it.
    assume({row[0] for row in rows} & {row[1] for row in rows})
    truth = people({str(i): row[0] for i, row in enumerate(rows)})
    given = answers({str(i): row[1] for i, row in enumerate(rows)})
    return score(truth, given, target="job", **options)


def mean(scores, weights, metric, label=None):
    wanted = (pl.col("metric") == metric) & pl.col("label").eq_missing(label)
    units = scores.units.filter(wanted)
    return float(MEAN(units, weights[units["unit_id"].cast(pl.Int64).to_numpy()]))


def arrays(rows):
    truth, answer, weight = (np.array(column) for column in zip(*rows, strict=True))
    return truth, answer, weight.astype(np.float64)


@given(ROWS)
def test_accuracy_and_recall_by_class(rows):
    truth, answer, weight = arrays(rows)
    scores = judged(rows)
    expected = skm.accuracy_score(truth, answer, sample_weight=weight)
    np.testing.assert_allclose(mean(scores, weight, "accuracy"), expected, **CLOSE)
    occurring = sorted(set(truth.tolist()))
    expected = skm.recall_score(truth, answer, labels=occurring, average=None, sample_weight=weight)
    got = [mean(scores, weight, "recall", label) for label in occurring]
    np.testing.assert_allclose(got, expected, **CLOSE)


@given(ROWS)
def test_balanced_accuracy(rows):
    truth, answer, weight = arrays(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of answers that are never true
        expected = skm.balanced_accuracy_score(truth, answer, sample_weight=weight)
    scores = judged(rows)
    info = scores.info.metric("balanced_accuracy")
    got = info.statistic(scores.evidence[info.evidence], weight)
    np.testing.assert_allclose(got, expected, **CLOSE)


@given(ROWS)
def test_rates_of_the_positive_class(rows):
    rows = [("a", "a", 1), ("b", "a", 1), *rows]  # every rate has someone in it
    truth, answer, weight = arrays(rows)
    scores = judged(rows, positive="a")
    yes, given_yes = (truth == "a").astype(int), (answer == "a").astype(int)
    settings = {"sample_weight": weight, "pos_label": 1}
    expected = {
        "true_positive_rate": fl.true_positive_rate(yes, given_yes, **settings),
        "false_positive_rate": fl.false_positive_rate(yes, given_yes, **settings),
        "true_negative_rate": fl.true_negative_rate(yes, given_yes, **settings),
        "false_negative_rate": fl.false_negative_rate(yes, given_yes, **settings),
        "selection_rate": fl.selection_rate(yes, given_yes, **settings),
        "precision": skm.precision_score(yes, given_yes, sample_weight=weight),
    }
    got = {metric: mean(scores, weight, metric, "a") for metric in expected}
    for metric, value in expected.items():
        np.testing.assert_allclose(got[metric], value, **CLOSE, err_msg=metric)
    assert abs(got["true_positive_rate"] + got["false_negative_rate"] - 1) < 1e-12
    assert abs(got["false_positive_rate"] + got["true_negative_rate"] - 1) < 1e-12


@given(SCORED, st.sampled_from([0.25, 0.5, 0.8]))
def test_area_under_the_curve_from_predictions(rows, threshold):
    truth, scored, weight = arrays([("a", 0.75, 1), *rows])
    truth_of = people({str(i): t for i, t in enumerate(truth)})
    said = {str(i): "a" if s > threshold else "b" for i, s in enumerate(scored)}
    assume(set(truth.tolist()) & set(said.values()))
    given_scores = answers(said, {str(i): float(s) for i, s in enumerate(scored)})
    found = score(truth_of, given_scores, target="job", positive="a")
    info = found.info.metric("roc_auc")
    got = info.statistic(found.evidence[info.evidence], weight)
    if (truth == "a").all():
        assert np.isnan(got)
        return
    expected = skm.roc_auc_score(truth == "a", scored, sample_weight=weight)
    np.testing.assert_allclose(got, expected, **CLOSE)


@given(ROWS)
def test_a_unit_that_weighs_two_counts_as_two_units(rows):
    _, _, weight = arrays(rows)
    scores = judged(rows)
    repeated = [row for row in rows for _ in range(row[2])]
    again, ones = judged(repeated), np.ones(len(repeated))
    cases = [("accuracy", None)] + [("recall", label) for label in {row[0] for row in rows}]
    for metric, label in cases:
        got = mean(scores, weight, metric, label)
        np.testing.assert_allclose(got, mean(again, ones, metric, label), **CLOSE)
    statistic = scores.info.metric("balanced_accuracy").statistic
    got = statistic(scores.evidence["classification"], weight)
    np.testing.assert_allclose(got, statistic(again.evidence["classification"], ones), **CLOSE)


RANKED = st.lists(
    st.tuples(CLASSES, st.permutations(["a", "b", "c", "d"])), min_size=1, max_size=20
)


@given(RANKED, st.integers(1, 3))
def test_top_k_agrees_with_scikit_learn(rows, k):
    truth = people({str(i): t for i, (t, _) in enumerate(rows)})
    order = answers({str(i): list(ranked) for i, (_, ranked) in enumerate(rows)})
    found = score(truth, order, target="job", top_k=(k,), metrics=("top_k_accuracy",))
    classes = ["a", "b", "c", "d"]
    points = np.array([[-ranked.index(c) for c in classes] for _, ranked in rows], dtype=float)
    expected = skm.top_k_accuracy_score([t for t, _ in rows], points, k=k, labels=classes)
    np.testing.assert_allclose(found.units["value"].mean(), expected, **CLOSE)
