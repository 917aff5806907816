"""An estimator's answers are those that it gives, of the rows and classes that they are about."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError, TableError

N = 240
DRAWN = np.random.default_rng(7)
ROWS = DRAWN.normal(size=(N, 2))
Z = ROWS[:, 0] + 0.5 * DRAWN.normal(size=N)
Y = np.where(Z > 0, "yes", "no")
TONE = DRAWN.choice(["dark", "light"], N)
FEW = {"replicates": 200}


class Threshold:
    """An estimator by hand: the second class where the first column is above 0."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, classes=None, table=None):
        self.classes_ = self.classes_ if classes is None else classes
        self.table = table

    def predict(self, X):  # noqa: N803
        return np.asarray(self.classes_)[(np.asarray(X)[:, 0] > 0).astype(int)]

    def predict_proba(self, X):  # noqa: N803
        if self.table is not None:
            return self.table
        second = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
        return np.stack([1 - second, second], axis=1)


class Silent(Threshold):
    """The same without probabilities: what it decides by is on a scale of its own."""

    predict_proba = property()

    def decision_function(self, X):  # noqa: N803
        return 9 * np.asarray(X)[:, 0]


def _values(found, metric):
    return dict(found.group_metrics.filter(metric=metric).select("group", "value").rows())


def test_the_audit_is_that_of_its_answers_and_probabilities():
    found = isolux.audit_estimator(Threshold(), ROWS, Y, {"tone": TONE}, **FEW)
    right = (ROWS[:, 0] > 0) == (Y == "yes")
    expected = {g: right[g == TONE].mean() for g in ("dark", "light")}
    assert _values(found, "accuracy") == pytest.approx({"overall": right.mean(), **expected})
    second = 1 / (1 + np.exp(-ROWS[:, 0]))
    by_hand = isolux.audit(
        {"tone": TONE, "truth": Y, "answer": np.where(ROWS[:, 0] > 0, "yes", "no"), "p": second},
        by="tone", target="truth", prediction_column="answer", score_column="p", positive="yes",
        score_of="positive", **FEW,
    )  # fmt: skip
    assert found.group_metrics.drop("model").equals(by_hand.group_metrics.drop("model"))
    assert found.group_metrics["model"].unique().to_list() == ["Threshold"]


@pytest.mark.parametrize("scores", ["auto", "none"])
def test_scikit_learns_own_pipeline(scores):
    linear = pytest.importorskip("sklearn.linear_model")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), linear.LogisticRegression()).fit(ROWS[:80], Y[:80])
    frame = pd.DataFrame(ROWS[80:])
    table = isolux.estimator_predictions(
        model, frame, Y[80:], pd.DataFrame({"tone": TONE[80:]}), scores=scores
    )
    assert table["answer"].to_list() == model.predict(frame).tolist()
    if scores == "auto":
        at = list(model.classes_).index("yes")
        np.testing.assert_array_equal(table["score"], model.predict_proba(frame)[:, at])
    else:
        assert "score" not in table.columns
    found = isolux.audit_estimator(model, frame, Y[80:], {"tone": TONE[80:]}, scores=scores, **FEW)
    assert found.group_metrics["model"][0] == "LogisticRegression"
    assert ("roc_auc" in found.group_metrics["metric"]) == (scores == "auto")


def test_columns_are_found_by_classes_not_by_place():
    second = 1 / (1 + np.exp(-ROWS[:, 0]))
    turned = Threshold(table=np.stack([second, 1 - second], axis=1))
    turned.classes_ = np.array(["yes", "no"])
    turned.predict = lambda rows: np.where(np.asarray(rows)[:, 0] > 0, "yes", "no")
    table = isolux.estimator_predictions(turned, ROWS, Y, {"tone": TONE}, positive="yes")
    np.testing.assert_array_equal(table["score"], second)
    turned.classes_ = np.array(["no", "yes"])  # as if its columns were in the other order
    with pytest.raises(TableError, match=r"contradict one another(.|\n)*240 of 240 answers"):
        isolux.estimator_predictions(turned, ROWS, Y, {"tone": TONE})


def test_of_several_classes_the_score_is_that_of_the_answer():
    linear = pytest.importorskip("sklearn.linear_model")
    of_three = np.array(["a", "b", "c"])[np.digitize(Z, [-0.5, 0.5])]
    model = linear.LogisticRegression().fit(ROWS, of_three)
    table = isolux.estimator_predictions(model, ROWS, of_three, {"tone": TONE})
    np.testing.assert_allclose(table["score"], model.predict_proba(ROWS).max(axis=1))
    one = isolux.estimator_predictions(model, ROWS, of_three, {"tone": TONE}, positive="b")
    np.testing.assert_array_equal(one["score"], model.predict_proba(ROWS)[:, 1])
    found = isolux.audit_estimator(model, ROWS, of_three, {"tone": TONE}, **FEW)
    assert "calibration_error" in found.group_metrics["metric"]


def test_answers_beside_other_probabilities_are_told():
    second = 0.6 + 0.3 * (ROWS[:, 0] > 0)  # everybody is likelier a "yes", some more than others
    sure = Threshold(table=np.stack([1 - second, second], axis=1))
    found = isolux.audit_estimator(sure, ROWS, Y, {"tone": TONE}, **FEW)
    n = int((ROWS[:, 0] <= 0).sum())
    assert f"{n} of {N} answers are not the class" in found.run.record["warnings"][0]


def test_a_decision_is_never_a_probability():
    found = isolux.audit_estimator(Silent(), ROWS, Y, {"tone": TONE}, **FEW)
    assert "decision_function is not a probability" in " ".join(found.run.record["notes"])
    assert not {"roc_auc", "calibration_error"} & set(found.group_metrics["metric"])
    decided = isolux.audit_estimator(Silent(), ROWS, Y, {"tone": TONE}, scores="decision", **FEW)
    assert "class_calibration_error" not in decided.group_metrics["metric"]
    assert _values(decided, "accuracy") == _values(found, "accuracy")
    turned = isolux.audit_estimator(
        Silent(), ROWS, Y, {"tone": TONE}, scores="decision", positive="no", **FEW
    )
    assert _values(turned, "roc_auc")["dark"] == pytest.approx(_values(decided, "roc_auc")["dark"])
    rates = _values(turned, "true_positive_rate"), _values(decided, "true_negative_rate")
    assert rates[0] == pytest.approx(rates[1])


def test_a_regressor():
    class Number:
        _estimator_type = "regressor"

        def predict(self, X):  # noqa: N803
            return np.asarray(X)[:, :1]

    found = isolux.audit_estimator(Number(), ROWS, Z, {"tone": TONE}, unit="years", **FEW)
    far = np.abs(ROWS[:, 0] - Z)[TONE == "dark"].mean()
    assert _values(found, "mean_absolute_error")["dark"] == pytest.approx(far)
    with pytest.raises(SpecError, match="a number has no classes"):
        isolux.audit_estimator(Number(), ROWS, Z, {"tone": TONE}, scores="probability")


def test_clusters_features_and_missing_truths():
    truth = pd.Series(Y, dtype=object)
    truth[5] = None
    features = pl.DataFrame({"tone": TONE, "sex": ["f", "m"] * (N // 2)})
    found = isolux.audit_estimator(
        Threshold(), ROWS, truth, features, cluster=np.arange(N) // 2, **FEW
    )
    assert found.spec.groups.by == ("tone", "sex")
    assert found.run.record["clusters"]["column"] == "cluster"
    assert found.group_metrics.filter(metric="accuracy", group="overall")["n_units"][0] == N - 1
    named = isolux.audit_estimator(Threshold(), ROWS, Y, features, by="tone*sex", **FEW)
    assert named.spec.groups.by == ("tone*sex",)


def test_true_and_1_are_one_class():
    table = isolux.estimator_predictions(
        Threshold(np.array([0, 1])), ROWS, Y == "yes", {"tone": TONE}
    )
    assert set(table["truth"]) == set(table["answer"]) == {"0", "1"}


def test_classes_that_it_was_not_fitted_on_are_told():
    truth = Y.copy().astype("<U5")
    truth[:9] = "maybe"
    found = isolux.audit_estimator(Threshold(), ROWS, truth, {"tone": TONE}, **FEW)
    assert "9 of 240 people are of classes that the estimator was not fitted on ('maybe')" in (
        " ".join(found.run.record["warnings"])
    )


def _answering(answer):
    model = Threshold()
    model.predict = lambda _: answer
    return model


@pytest.mark.parametrize(
    ("model", "given", "error", "match"),
    [
        (Threshold(), {"y": Y[1:]}, TableError, r"differ in length(.|\n)*X: 240, y: 239"),
        (Threshold(), {"X": ROWS[:0], "y": Y[:0], "sensitive_features": {"tone": []}}, TableError,
         "nobody to judge"),
        (Threshold(), {"y": (Y == "yes").astype(int)}, SpecError,
         r"y holds numbers, and the estimator was fitted on text(.|\n)*'no', 'yes'"),
        (Threshold(np.array([0, 1])), {"y": np.where(Y == "yes", "1", "0")}, SpecError,
         "y holds text, and the estimator was fitted on numbers"),
        (Threshold(), {"y": np.where(Y == "yes", "ja", "nein")}, SpecError,
         r"fitted on other classes(.|\n)*y: '(ja|nein)'"),
        (Threshold(), {"y": np.eye(2)[(Y == "yes").astype(int)]}, TableError, "argmax"),
        (_answering(Y[1:]), {}, TableError, r"another number of answers(.|\n)*found: 239"),
        (_answering(np.full(N, "other")), {}, TableError, r"none of its classes(.|\n)*'other'"),
        (Threshold(table=np.zeros((N, 3))), {}, TableError, r"one number per class(.|\n)*240, 2"),
        (Threshold(table=9 * ROWS), {}, TableError, r"no probabilities(.|\n)*softmax"),
        (Threshold(table=np.full((N, 2), np.nan)), {}, TableError, "no probabilities"),
        (Silent(), {"scores": "probability"}, SpecError, "gives no probabilities"),
        (Threshold(), {"scores": "decision"}, SpecError, "no decision_function"),
        (Threshold(), {"scores": "logits"}, SpecError, r"no such scores(.|\n)*decision"),
        (Threshold(), {"positive": "Yes"}, SpecError, r"one of the estimator's(.|\n)*'no', 'yes'"),
        (Threshold(), {"target": "y"}, SpecError, "an estimator answers itself"),
        (Threshold(), {"sensitive_features": {"truth": TONE}}, SpecError, "a name that the table"),
        (Threshold(), {"task": "ranking"}, SpecError, "classification or regression"),
        (object(), {}, SpecError, r"not an estimator that predicts(.|\n)*predict\(X\)"),
        (type("Raw", (), {"predict": lambda _self, _x: Y})(), {}, SpecError,
         "classes or numbers"),
        (Threshold(), {"y": pd.Series(Y, index=np.arange(N) + 5),
                       "sensitive_features": pd.DataFrame({"tone": TONE},
                                                          index=np.arange(N)[::-1] + 5)},
         TableError, "y and sensitive_features hold the same rows in another order"),
    ],
)  # fmt: skip
def test_what_could_mislead_is_refused(model, given, error, match):
    asked = {"X": ROWS, "y": Y, "sensitive_features": {"tone": TONE}, **FEW, **given}
    with pytest.raises(error, match=match):
        isolux.audit_estimator(model, asked.pop("X"), asked.pop("y"),
                               asked.pop("sensitive_features"), **asked)  # fmt: skip


def test_an_estimator_that_is_not_fitted_is_named():
    linear = pytest.importorskip("sklearn.linear_model")
    with pytest.raises(SpecError, match=r"LogisticRegression without classes_ \(is it fitted\?\)"):
        isolux.audit_estimator(linear.LogisticRegression(), ROWS, Y, {"tone": TONE})
