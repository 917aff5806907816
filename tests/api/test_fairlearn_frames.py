"""fairlearn's MetricFrame, method by method: its inputs, its numbers, its ValueErrors.

A thin shim gives our frames fairlearn's types, so that each call has fairlearn's own answer beside
it. What differs on purpose is tested as a difference.
"""

from __future__ import annotations

import warnings

import fairlearn.metrics as fm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix

import isolux
from isolux.core.errors import IsoluxError

N = 240
RNG = np.random.default_rng(11)
TRUE = RNG.integers(0, 2, N)
PRED = np.where(RNG.random(N) < 0.75, TRUE, 1 - TRUE)
RACE = RNG.choice(["A", "B", "C"], N)
SEX = RNG.choice(["f", "m"], N)
AGE = RNG.choice(["old", "young"], N)
SITE = RNG.choice(["x", "y"], N)
WEIGHT = RNG.uniform(0.5, 2.0, N)
FEW = {"replicates": 100}


class Shim:
    """Our frames in fairlearn's types: scalars, Series by feature, frames of metrics."""

    def __init__(self, metrics, **given):
        self.alone = not isinstance(metrics, dict)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.frame = isolux.metric_frame(metrics=metrics, **given, **FEW)

    def typed(self, table):
        drop = {"low", "high", "n", "group", "value", "metric", "reason", "p"}
        keys = [name for name in table.columns if name not in drop]
        pandas = table.to_pandas()
        if keys:
            wide = pandas.pivot(index=keys, columns="metric", values="value")
        else:
            wide = pandas.set_index("metric")["value"]
        if not self.alone:
            return wide
        return wide.iloc[0] if not keys else wide.iloc[:, 0]

    @property
    def overall(self):
        return self.typed(self.frame.overall)

    @property
    def by_group(self):
        return self.typed(self.frame.by_group)

    def __getattr__(self, name):
        return lambda **how: self.typed(getattr(self.frame, name)(**how))


def same(mine, peer):
    """Equal numbers under equal labels; fairlearn lists groups that hold no one as NaN."""
    if np.isscalar(peer):
        assert mine == pytest.approx(peer, abs=1e-12, nan_ok=True)
        return
    peer = peer.dropna(how="all")
    assert set(mine.index) == set(peer.index)
    mine = mine.reindex(peer.index)
    if isinstance(peer, pd.DataFrame):
        mine = mine[peer.columns]
    np.testing.assert_allclose(
        np.asarray(mine, dtype=float), np.asarray(peer, dtype=float), atol=1e-12
    )


def accuracy(true, pred, sample_weight=None):
    """scikit-learn's checks cost a hundred times what it counts, and each replicate has them."""
    return np.average(np.asarray(true) == np.asarray(pred), weights=sample_weight)


def squared_error(true, pred, sample_weight=None):
    return np.average((np.asarray(true) - np.asarray(pred)) ** 2, weights=sample_weight)


def share(*, of, among):
    def measured(true, pred):
        true, pred = np.asarray(true), np.asarray(pred)
        return np.mean(of(true, pred)[among(true, pred)])

    return measured


METRICS = {
    "one function": accuracy,
    "several": {
        "acc": accuracy,
        "recall": share(of=lambda t, p: p == 1, among=lambda t, p: t == 1),
        "sel": share(of=lambda t, p: p == 1, among=lambda t, p: t >= 0),
        "fpr": share(of=lambda t, p: p == 1, among=lambda t, p: t == 0),
        "prec": share(of=lambda t, p: t == 1, among=lambda t, p: p == 1),
    },
    "of scikit-learn, in a dict": {"acc": accuracy_score},
    "of fairlearn": fm.mean_prediction,
}
SENSITIVE = {
    "array": RACE,
    "list": list(RACE),
    "named series": pd.Series(RACE, name="race"),
    "series without a name": pd.Series(RACE),
    "index of its own": pd.Series(RACE, name="race", index=np.arange(N)[::-1]),
    "polars series": pl.Series("race", RACE),
    "column": RACE.reshape(-1, 1),
    "row": RACE.reshape(1, -1),
    "frame of one column": pd.DataFrame({"race": RACE}),
    "frame of two": pd.DataFrame({"race": RACE, "sex": SEX}),
    "dict of two": {"race": RACE, "sex": SEX},
    "array of two": np.stack([RACE, SEX], axis=1),
    "numbers": (RACE == "A").astype(int),
    "booleans": RACE == "A",
}
CONTROL = {
    "none": None,
    "one": pd.Series(AGE, name="age"),
    "two": pd.DataFrame({"age": AGE, "site": SITE}),
    "array": AGE,
}


def both(metrics, sensitive=RACE, control=None, true=TRUE, pred=PRED, **more):
    given = {"y_true": true, "y_pred": pred, "sensitive_features": sensitive}
    given |= {"control_features": control} if control is not None else {}
    given |= more
    return Shim(metrics, **given), fm.MetricFrame(metrics=metrics, **given)


@pytest.mark.parametrize("control", CONTROL)
@pytest.mark.parametrize("metrics", METRICS)
def test_every_method_by_metrics_and_control_features(metrics, control):
    mine, peer = both(METRICS[metrics], pd.Series(RACE, name="race"), CONTROL[control])
    same(mine.overall, peer.overall)
    same(mine.by_group, peer.by_group)
    same(mine.group_min(), peer.group_min())
    same(mine.group_max(errors="coerce"), peer.group_max(errors="coerce"))
    for method in ("between_groups", "to_overall"):
        same(mine.difference(method=method), peer.difference(method=method))
        same(mine.ratio(method=method, errors="raise"), peer.ratio(method=method, errors="raise"))


@pytest.mark.parametrize("sensitive", SENSITIVE)
def test_features_as_people_have_them(sensitive):
    given = SENSITIVE[sensitive]
    if isinstance(given, pl.Series):
        mine, _ = both(accuracy, given)
        _, peer = both(accuracy, pd.Series(RACE, name="race"))
    else:
        mine, peer = both(accuracy, given)
    same(mine.by_group, peer.by_group)
    assert list(mine.by_group.index.names) == list(peer.by_group.index.names)
    same(mine.difference(), peer.difference())


SHAPES = {
    "list": list,
    "column": lambda values: values.reshape(-1, 1),
    "row": lambda values: values.reshape(1, -1),
    "frame": lambda values: pd.DataFrame({"v": values}),
    "series": lambda values: pd.Series(values, index=np.arange(N) * 3),
    "polars frame": lambda values: pl.DataFrame({"v": values}),
    "polars series": lambda values: pl.Series("v", values),
}


@pytest.mark.parametrize("metric", [accuracy, "accuracy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_truth_and_answers_of_one_column(shape, metric):
    given = SHAPES[shape]
    mine = Shim(metric, y_true=given(TRUE), y_pred=given(PRED), sensitive_features=RACE)
    peer = fm.MetricFrame(metrics=accuracy, y_true=TRUE, y_pred=PRED, sensitive_features=RACE)
    same(mine.by_group, peer.by_group)
    same(mine.overall, peer.overall)


def test_answers_of_several_numbers_a_row():
    def brier(true, probabilities):
        return float(np.mean((probabilities[:, 1] - true) ** 2))

    chance = RNG.random(N)
    mine, peer = both({"brier": brier}, pred=np.stack([1 - chance, chance], axis=1))
    same(mine.by_group, peer.by_group)
    mine, peer = both({"brier": brier}, pred=[(1 - c, c) for c in chance])
    same(mine.overall, peer.overall)


@pytest.mark.parametrize("control", CONTROL)
def test_sample_params_of_several_functions(control):
    metrics = {"acc": accuracy, "plain": accuracy, "mse": squared_error}
    params = {"acc": {"sample_weight": WEIGHT}, "mse": {"sample_weight": list(WEIGHT)}}
    mine, peer = both(metrics, RACE, CONTROL[control], sample_params=params)
    same(mine.by_group, peer.by_group)
    same(mine.overall, peer.overall)
    same(mine.ratio(), peer.ratio())
    assert not np.allclose(mine.by_group["acc"], mine.by_group["plain"])


@pytest.mark.parametrize("weight", [WEIGHT, list(WEIGHT), pd.Series(WEIGHT), None])
def test_sample_params_of_one_function(weight):
    mine, peer = both(accuracy, sample_params={"sample_weight": weight})
    same(mine.by_group, peer.by_group)
    same(mine.difference(), peer.difference())


def test_a_sample_parameter_of_one_column():  # fairlearn takes none
    mine = Shim(accuracy, **OK, sample_params={"sample_weight": WEIGHT.reshape(-1, 1)})
    _, peer = both(accuracy, sample_params={"sample_weight": WEIGHT})
    same(mine.by_group, peer.by_group)


def test_any_argument_may_be_a_sample_parameter():
    def shifted(true, pred, by, *, scale):
        return float(np.mean(true * by - pred * scale))

    params = {"by": WEIGHT, "scale": 1 - WEIGHT}
    mine, peer = both(shifted, sample_params=params)
    same(mine.by_group, peer.by_group)


SAID = r"differ in length|dimensions|same name|sample_params"
OK = {"y_true": TRUE, "y_pred": PRED, "sensitive_features": RACE}
REFUSED = {
    "lengths of truth": {"y_true": TRUE[:-1]},
    "lengths of answers": {"y_pred": PRED[:-1]},
    "lengths of features": {"sensitive_features": RACE[:-1]},
    "lengths of control features": {"control_features": AGE[:-1]},
    "features of three dimensions": {"sensitive_features": np.zeros((N, 2, 2), dtype=int)},
    "a name twice": {
        "sensitive_features": pd.Series(RACE, name="race"),
        "control_features": pd.Series(AGE, name="race"),
    },
    "parameters that are no mapping": {"sample_params": WEIGHT},
    "parameters of one function that are none": {
        "metrics": {"acc": accuracy_score}, "sample_params": {"acc": WEIGHT},
    },
    "parameters of an unknown metric": {
        "metrics": {"acc": accuracy_score}, "sample_params": {"other": {"sample_weight": WEIGHT}},
    },
    "parameters of another length": {"sample_params": {"sample_weight": WEIGHT[:-1]}},
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_fairlearn_refuses_is_a_value_error_here_too(case):
    given = {"metrics": accuracy_score} | OK | REFUSED[case]
    with pytest.raises((ValueError, AssertionError, IndexError)):
        fm.MetricFrame(**given)
    with pytest.raises(ValueError, match=SAID) as caught:
        isolux.metric_frame(**given, **FEW)
    assert isinstance(caught.value, IsoluxError)


def test_methods_refuse_what_fairlearns_do():
    mine, peer = both(accuracy_score)
    for frame in (mine.frame, peer):
        for name in ("difference", "ratio"):
            with pytest.raises(ValueError, match=r"WRONG|between_groups"):
                getattr(frame, name)(method="WRONG")
        for name in ("difference", "ratio", "group_min", "group_max"):
            with pytest.raises(ValueError, match=r"raise"):
                getattr(frame, name)(errors="WRONG")


def test_missing_features_are_a_group_here_and_refused_there():
    race = np.where(np.arange(N) % 5 == 0, None, RACE)
    with pytest.raises(ValueError, match="missing"):
        fm.MetricFrame(metrics=accuracy_score, **(OK | {"sensitive_features": race}))
    mine = isolux.metric_frame(metrics=accuracy_score, **(OK | {"sensitive_features": race}), **FEW)
    groups = mine.by_group["sensitive_feature_0"].to_list()
    assert groups == ["A", "B", "C", None]
    unknown = accuracy_score(TRUE[race == None], PRED[race == None])  # noqa: E711
    assert mine.by_group["value"][3] == pytest.approx(unknown)


def test_groups_without_anyone_are_not_listed_here():
    sex = np.where(RACE == "A", "f", SEX)
    mine, peer = both(accuracy_score, pd.DataFrame({"race": RACE, "sex": sex}))
    assert peer.by_group.isna().sum() == 1
    assert len(mine.by_group) == len(peer.by_group) - 1
    same(mine.by_group, peer.by_group)


def test_metrics_that_are_no_number_are_refused_here():
    with pytest.raises(ValueError, match="does not give one number"):
        isolux.metric_frame(metrics=confusion_matrix, **OK, **FEW)
    assert fm.MetricFrame(metrics=confusion_matrix, **OK).overall.shape == (2, 2)


def test_three_classes_and_words():
    true, pred = RNG.choice(list("xyz"), N), RNG.choice(list("xyz"), N)
    mine, peer = both({"acc": accuracy_score}, true=true, pred=pred)
    same(mine.by_group, peer.by_group)
    named = Shim("accuracy", y_true=true, y_pred=pred, sensitive_features=RACE)
    same(named.by_group, peer.by_group["acc"])
