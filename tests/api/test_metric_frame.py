"""fairlearn's vocabulary with intervals: the same numbers as fairlearn's, and honest ends."""

from __future__ import annotations

import warnings

import fairlearn.metrics as fm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_score, roc_auc_score

import isolux
from isolux.core.errors import SpecError, TableError
from tests.core.inputs._others import Tensor

PEERS = {
    "accuracy": accuracy_score,
    "selection_rate": fm.selection_rate,
    "true_positive_rate": fm.true_positive_rate,
    "false_positive_rate": fm.false_positive_rate,
    "true_negative_rate": fm.true_negative_rate,
    "false_negative_rate": fm.false_negative_rate,
}
NAMES = {name: name for name in PEERS}


@st.composite
def tables(draw):
    """Tables in which every group of every level has both classes, so every rate is defined."""
    groups, levels = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    n = draw(st.integers(0, 60))
    cell = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, groups - 1),
                     st.integers(0, levels - 1))  # fmt: skip
    rows = draw(st.lists(cell, min_size=n, max_size=n))
    rows += [(t, draw(st.integers(0, 1)), g, k)
             for t in (0, 1) for g in range(groups) for k in range(levels)]  # fmt: skip
    return np.array(rows).T, levels


@pytest.mark.filterwarnings("ignore:.*answer.* of 'model'")  # some agree by chance alone
@given(tables())
@settings(max_examples=30)
def test_the_numbers_are_fairlearns(drawn):
    (true, pred, group, level), levels = drawn
    control = {"control_features": pd.Series(level, name="level")} if levels > 1 else {}
    features = {"sensitive_features": pd.Series(group, name="g")}
    ours = isolux.metric_frame(metrics=NAMES, y_true=true, y_pred=pred, replicates=100,
                               min_clusters=1, **features, **control)  # fmt: skip
    peer = fm.MetricFrame(metrics=PEERS, y_true=true, y_pred=pred, **features, **control)

    def same(frame, expected):
        for name in PEERS:
            mine = frame.filter(metric=name)["value"].to_numpy()
            wanted = np.atleast_1d(np.asarray(expected[name], dtype=float))
            np.testing.assert_allclose(mine, wanted, atol=1e-12)

    same(ours.by_group, peer.by_group)
    same(ours.overall, peer.overall)
    same(ours.group_min(), peer.group_min())
    same(ours.group_max(), peer.group_max())
    for method in ("between_groups", "to_overall"):
        same(ours.difference(method), peer.difference(method=method))


@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_ratios_are_fairlearns_where_no_rate_is_zero(method):
    rng = np.random.default_rng(0)
    true, group = rng.integers(0, 2, 600), rng.integers(0, 3, 600)
    pred = np.where(rng.random(600) < 0.6 + 0.1 * group, true, 1 - true)
    ours = isolux.metric_frame(metrics=NAMES, y_true=true, y_pred=pred, sensitive_features=group)
    peer = fm.MetricFrame(metrics=PEERS, y_true=true, y_pred=pred, sensitive_features=group)
    for name in PEERS:
        row = ours.ratio(method).filter(metric=name)
        assert row["value"][0] == pytest.approx(peer.ratio(method=method)[name], abs=1e-12)
        assert row["low"][0] <= row["value"][0] <= row["high"][0]


def test_fairlearns_named_measures_are_extremes_of_rates():
    rng = np.random.default_rng(3)
    true, group = rng.integers(0, 2, 500), rng.integers(0, 4, 500)
    pred = np.where(rng.random(500) < 0.55 + 0.1 * group, true, 1 - true)
    frame = isolux.metric_frame(metrics=NAMES, y_true=true, y_pred=pred, sensitive_features=group)
    gaps = dict(frame.difference().select("metric", "value").iter_rows())
    shares = dict(frame.ratio().select("metric", "value").iter_rows())
    odds = ("true_positive_rate", "false_positive_rate")
    ours = {
        "demographic_parity_difference": gaps["selection_rate"],
        "demographic_parity_ratio": shares["selection_rate"],
        "equal_opportunity_difference": gaps["true_positive_rate"],
        "equal_opportunity_ratio": shares["true_positive_rate"],
        "equalized_odds_difference": max(gaps[rate] for rate in odds),
        "equalized_odds_ratio": min(shares[rate] for rate in odds),
    }
    for name, value in ours.items():
        peer = getattr(fm, name)(true, pred, sensitive_features=group)
        assert value == pytest.approx(peer, abs=1e-12), name


def test_statistics_that_are_not_means():
    rng = np.random.default_rng(1)
    true, group = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    score = np.clip(rng.normal(0.4 + 0.2 * true, 0.2), 0, 1)
    pred = (score > 0.5).astype(int)
    ours = isolux.metric_frame(
        metrics={"balanced": "balanced_accuracy", "auc": "roc_auc", "precision": "precision"},
        y_true=true, y_pred=pred, y_score=score, sensitive_features=group, replicates=200,
    ).by_group  # fmt: skip
    for g in (0, 1):
        here = group == g
        found = dict(ours.filter(sensitive_feature_0=g).select("metric", "value").rows())
        assert found["balanced"] == pytest.approx(
            balanced_accuracy_score(true[here], pred[here]), abs=1e-12
        )
        assert found["auc"] == pytest.approx(roc_auc_score(true[here], score[here]), abs=1e-12)
        assert found["precision"] == pytest.approx(
            precision_score(true[here], pred[here]), abs=1e-12
        )


def test_a_function_of_ones_own_gives_the_same_value_and_an_interval():
    rng = np.random.default_rng(2)
    true, group = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    pred = np.where(rng.random(300) < 0.8, true, 1 - true)
    both = isolux.metric_frame(metrics={"f": accuracy_score, "n": "accuracy"}, y_true=true,
                               y_pred=pred, sensitive_features=group)  # fmt: skip
    f, n = (both.by_group.filter(metric=m) for m in "fn")
    assert f["value"].to_list() == pytest.approx(n["value"].to_list(), abs=1e-12)
    width = [(x["high"] - x["low"]).to_numpy() for x in (f, n)]
    np.testing.assert_allclose(width[0], width[1], rtol=0.35)


def test_subjects_are_resampled_together():
    """Ten equal photos of a subject say no more than one: the interval is that of subjects."""
    rng = np.random.default_rng(3)
    right = np.repeat(rng.random(60) < 0.7, 10)
    true = np.ones(600, dtype=int)
    args = {"metrics": "accuracy", "y_true": true, "y_pred": np.where(right, 1, 0),
            "sensitive_features": np.repeat(np.arange(60) % 2, 10)}  # fmt: skip
    rows = isolux.metric_frame(**args).by_group
    subjects = isolux.metric_frame(**args, cluster=np.repeat(np.arange(60), 10)).by_group
    wider = (subjects["high"] - subjects["low"]) / (rows["high"] - rows["low"])
    assert wider.min() > 2.5  # √10 = 3.16, less what t and logit change


def test_the_interval_of_a_difference_holds_zero_where_nothing_differs():
    rng = np.random.default_rng(4)
    true = np.ones(2000, dtype=int)
    pred = (rng.random(2000) < 0.8).astype(int)
    frame = isolux.metric_frame(metrics="accuracy", y_true=true, y_pred=pred,
                                sensitive_features=rng.integers(0, 5, 2000))  # fmt: skip
    row = frame.difference()
    assert row["value"][0] > 0
    assert row["low"][0] == 0.0


def test_control_features_keep_levels_apart():
    frame = isolux.metric_frame(
        metrics="accuracy", y_true=[1] * 8, y_pred=[1, 1, 1, 0, 1, 0, 0, 0],
        sensitive_features={"g": ["a", "a", "b", "b"] * 2},
        control_features={"light": ["day"] * 4 + ["night"] * 4}, min_clusters=1,
    )  # fmt: skip
    assert frame.overall.select("light", "value", "n").rows() == [
        ("day", 0.75, 4), ("night", 0.25, 4),
    ]  # fmt: skip
    assert frame.difference().select("light", "value").rows() == [("day", 0.5), ("night", 0.5)]
    assert frame.group_min().select("light", "value", "group").rows() == [
        ("day", 0.5, "day × b"), ("night", 0.0, "night × b"),
    ]  # fmt: skip


def test_lengths_that_differ_are_named():
    with pytest.raises(TableError, match="differ in length") as caught:
        isolux.metric_frame(metrics="accuracy", y_true=[1, 0], y_pred=[1],
                            sensitive_features=[0, 1])  # fmt: skip
    assert "y_true: 2, y_pred: 1" in str(caught.value)


def test_a_metric_per_class_is_refused():
    with pytest.raises(SpecError, match="not one number per group"):
        isolux.metric_frame(metrics="recall", y_true=["x", "y"], y_pred=["x", "y"],
                            sensitive_features=[0, 1])  # fmt: skip


def test_an_unknown_method_is_refused():
    frame = isolux.metric_frame(metrics="accuracy", y_true=[1, 0], y_pred=[1, 0],
                                sensitive_features=[0, 1])  # fmt: skip
    with pytest.raises(SpecError, match="between_groups or to_overall"):
        frame.difference("sideways")


def test_a_missing_answer_beside_whole_numbers_leaves_the_others_right():
    truth = [0, 1] * 50
    given = [float("nan")] * 10 + [float(t) for t in truth[10:]]
    with pytest.warns(UserWarning, match="10 of 100 answers are missing"):
        frame = isolux.metric_frame(
            metrics="accuracy", y_true=truth, y_pred=given, sensitive_features=["a", "b"] * 50
        )
    assert frame.overall["value"].to_list() == [0.9]


def test_answers_of_another_vocabulary_are_refused():
    with pytest.raises(TableError, match="label_map"):
        isolux.metric_frame(
            metrics="accuracy", y_true=["M", "F"] * 50, y_pred=["m", "f"] * 50,
            sensitive_features=["a", "b"] * 50,
        )  # fmt: skip


def test_tensors_and_indices_of_pandas():
    groups = ["day", "night"] * 40
    plain = {"y_true": [0, 1] * 40, "y_pred": [0, 1, 1, 1] * 20}
    tensors = {"y_true": Tensor(plain["y_true"], device="cuda:0"),
             "y_pred": [Tensor(one, grad=True) for one in plain["y_pred"]]}  # fmt: skip
    asked = {"metrics": "accuracy", "sensitive_features": groups, "replicates": 100}
    expected = isolux.metric_frame(**asked, **plain).by_group
    assert isolux.metric_frame(**asked, **tensors).by_group.equals(expected)
    shuffled = {name: pd.Series(one, index=range(9, 89)) for name, one in plain.items()}
    shuffled["y_pred"] = shuffled["y_pred"].iloc[::-1]
    with pytest.raises(ValueError, match="y_true and y_pred hold the same rows in another order"):
        isolux.metric_frame(**asked, **shuffled)
    with pytest.warns(UserWarning, match="y_true holds text and y_pred numbers"):
        text = isolux.metric_frame(**asked, y_true=[str(one) for one in plain["y_true"]],
                            y_pred=plain["y_pred"])  # fmt: skip
    assert text.by_group.equals(expected)


def one_group_without_positives():
    """A: 60 positives, 10 of them missed, 40 negatives; B: 100 negatives, 10 called positive."""
    true = np.array([1] * 60 + [0] * 140)
    pred = true.copy()
    pred[:10], pred[150:160] = 0, 1
    return true, pred, ["A"] * 100 + ["B"] * 100


@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_one_group_with_a_value_has_no_difference(method):
    """Nobody of B is positive: its true positive rate is unknown, not equal to A's 50/60."""
    true, pred, group = one_group_without_positives()
    frame = isolux.metric_frame(metrics="true_positive_rate", y_true=true, y_pred=pred,
                                positive=1, sensitive_features=group)  # fmt: skip
    for extreme in (frame.difference, frame.ratio):
        with pytest.warns(UserWarning, match="true_positive_rate: fewer than two groups .* B left"):
            row = extreme(method=method).row(0, named=True)
        assert (row["value"], row["low"], row["high"]) == (None, None, None)
        assert "B left out (nobody in this group was scored on this metric)" in row["reason"]
    with pytest.warns(UserWarning, match="B left out"):
        assert frame.group_min()["value"][0] == pytest.approx(50 / 60)


def never_answered(true, pred):
    return float("nan") if not (true == 1).any() else float((pred[true == 1] == 1).mean())


@pytest.mark.parametrize("metric", ["true_positive_rate", never_answered])
def test_a_group_without_a_value_is_named_among_three(metric):
    """C: 20 positives, all found; so the difference is that of A and C, 1 − 50/60."""
    true, pred, group = one_group_without_positives()
    more = np.ones(20, dtype=int)
    frame = isolux.metric_frame(
        metrics=metric, y_true=np.r_[true, more], y_pred=np.r_[pred, more], positive=1,
        sensitive_features=[*group, *["C"] * 20], replicates=100,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="B left out"):
        row = frame.difference().row(0, named=True)
    assert row["value"] == pytest.approx(1 / 6)
    assert row["reason"].startswith("B left out (")


@pytest.mark.parametrize("metric", ["accuracy", lambda t, p: float((t == p).mean())])
def test_one_person_does_not_set_the_difference(metric):
    """A and B: 90 of 100 right. C: one person, wrong. Photos of one subject are one person."""
    true, pred, group = one_group_without_positives()
    name = metric if isinstance(metric, str) else metric.__name__
    for n_photos in (1, 12):
        args = {
            "metrics": metric, "y_true": np.r_[true, np.ones(n_photos, dtype=int)],
            "y_pred": np.r_[pred, np.zeros(n_photos, dtype=int)], "replicates": 100,
            "sensitive_features": group + ["C"] * n_photos,
            "cluster": np.r_[np.arange(200), np.full(n_photos, 200)],
        }  # fmt: skip
        frame = isolux.metric_frame(**args)
        with pytest.warns(UserWarning, match=f"{name}: C left out .fewer than 10 clusters"):
            row = frame.difference().row(0, named=True)
        assert row["value"] == pytest.approx(0.0)
        assert row["reason"] == "C left out (fewer than 10 clusters)"
        everyone = isolux.metric_frame(**args, min_clusters=1).difference().row(0, named=True)
        assert (everyone["value"], everyone["reason"]) == (pytest.approx(0.9), None)


def test_groups_that_all_have_values_need_no_reason():
    """Twenty people in two groups, strongly differing: nothing is left out, nothing is said."""
    frame = isolux.metric_frame(metrics="accuracy", y_true=[1] * 20, y_pred=[1] * 10 + [0, 1] * 5,
                                sensitive_features=["A"] * 10 + ["B"] * 10)  # fmt: skip
    for table in (frame.difference(), frame.ratio(), frame.group_min(), frame.group_max()):
        assert table["reason"].to_list() == [None]


def _frame_warnings(metric, true, pred, **more):
    features = {"sensitive_features": {"race": RACE}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        isolux.metric_frame(metrics=metric, y_true=true, y_pred=pred, **features, **more)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


RACE = np.array(["A", "B", "C"] * 100)
CLASSES = np.random.default_rng(1).choice(["a", "b", "c"], 300)
TURNED = pl.Series(CLASSES).replace({"a": "b", "b": "c", "c": "a"}).to_numpy()
POOR = np.where(np.random.default_rng(5).random(300) < 0.8, CLASSES, "b")
AGES = np.random.default_rng(2).integers(20, 80, 300)
GUESSES = AGES + np.random.default_rng(3).normal(0, 4, 300)


@pytest.mark.parametrize("metric", ["accuracy", accuracy_score])
def test_the_stage_of_plausibility_is_passed(metric):
    texts = _frame_warnings(metric, CLASSES, TURNED)
    assert texts[0].startswith("The answers of 'model' fit the truth far better under other names")
    texts = _frame_warnings(metric, CLASSES, np.where(RACE == "A", TURNED, CLASSES))
    assert texts[0].startswith("Among the people of race 'A', the answers of 'model' fit")
    assert _frame_warnings(metric, CLASSES, CLASSES)[0].startswith("Every answer of 'model' is exa")
    truth = np.where(np.arange(300) % 4 == 0, "-1", CLASSES)
    (text,) = _frame_warnings(metric, truth, POOR)
    assert text.endswith("Is it a code for a missing value? empty those cells.")


def test_reversed_scores_of_arrays_are_told():
    truth = (CLASSES == "a").astype(int)
    score = np.clip(0.6 - 0.3 * truth + np.random.default_rng(4).normal(0, 0.1, 300), 0, 1)
    texts = _frame_warnings("roc_auc", truth, truth, y_score=score)
    assert any("The scores fall where the answer is '1'" in text for text in texts)


def test_numbers_that_functions_get_are_checked_as_numbers():
    def error(true, pred):
        return np.abs(true - pred).mean()

    guesses = np.where(RACE == "A", 12, 1) * GUESSES
    (text,) = _frame_warnings(error, AGES, guesses)
    assert "race 'A', held against the truth, are about 12 times larger" in text
    (text,) = _frame_warnings(error, AGES, np.where(np.arange(300) < 20, -1, GUESSES))
    assert text.startswith("20 of 300 values of 'model' are -1")


def test_sound_arrays_raise_no_warning():
    for metric in ("accuracy", accuracy_score):
        isolux.metric_frame(metrics=metric, y_true=CLASSES, y_pred=POOR,
                            sensitive_features={"race": RACE})  # fmt: skip
    isolux.metric_frame(metrics=lambda t, p: np.abs(t - p).mean(), y_true=AGES, y_pred=GUESSES,
                        sensitive_features={"race": RACE})  # fmt: skip


# What is shown of a frame.


LIGHT = ["A", "A", "<b>", "<b>"] * 50


def build_small_frame(**more):
    """Count 200 people: in light A all 100 right, in B every second."""
    return isolux.metric_frame(
        metrics={"accuracy": "accuracy", "rate": "selection_rate"}, y_true=[0, 1] * 100,
        y_pred=[0, 1, 0, 0] * 50, sensitive_features={"light": LIGHT}, **more,
    )  # fmt: skip


def test_a_frame_prints_a_row_a_group_and_a_column_a_metric():
    lines = str(build_small_frame()).splitlines()
    assert lines[0] == "Metrics by light, with 95 % intervals"
    assert lines[1].split() == ["light", "n", "accuracy", "rate"]
    assert [line.split()[:3] for line in lines[2:]] == [
        ["all", "200", "0.750"], ["<b>", "100", "0.500"], ["A", "100", "1.000"],
    ]  # fmt: skip
    row = build_small_frame().by_group.row(0, named=True)
    assert f"({row['low']:.3f}–{row['high']:.3f})" in lines[3]


def test_a_long_frame_prints_sixty_rows_and_says_how_many_more():
    groups = [f"g{k}" for k in range(100)] * 12
    pred = [0, 1, 0, 1, 0, 0] * 200
    frame = isolux.metric_frame(metrics="accuracy", y_true=[0, 1] * 600, y_pred=pred,
                                sensitive_features=groups, replicates=100)  # fmt: skip
    lines = str(frame).splitlines()
    assert len(lines) == 63
    assert lines[-1] == "… 41 more in .by_group"  # everyone and 100 groups


def test_a_notebook_shows_the_printed_table_with_every_name_escaped():
    html = build_small_frame()._repr_html_()
    assert html.count("<tr>") == 4
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_the_pandas_frame_is_fairlearns():
    frame = build_small_frame(control_features={"site": ["x", "y"] * 100}, min_clusters=1)
    peer = fm.MetricFrame(
        metrics={"accuracy": accuracy_score, "rate": fm.selection_rate}, y_true=[0, 1] * 100,
        y_pred=[0, 1, 0, 0] * 50, sensitive_features=pd.Series(LIGHT, name="light"),
        control_features=pd.Series(["x", "y"] * 100, name="site"),
    ).by_group  # fmt: skip
    pd.testing.assert_frame_equal(frame.to_pandas(), peer.astype(float))


def test_a_plot_holds_each_groups_value_and_interval():
    frame = build_small_frame()
    chart = frame.plot().to_dict()
    (points,) = chart["datasets"].values() if "datasets" in chart else [chart["data"]["values"]]
    drawn = {(point["metric"], point["group"]): point for point in points}
    for row in frame.by_group.iter_rows(named=True):
        point = drawn[row["metric"], row["light"]]
        assert (point["value"], point["low"]) == (row["value"], row["low"])


def test_warnings_of_a_function_are_counted():
    def noisy_accuracy(true, pred):
        warnings.warn("no answers", RuntimeWarning, stacklevel=2)
        return float(np.mean(true == pred))

    with pytest.warns(RuntimeWarning) as caught:
        isolux.metric_frame(
            metrics=noisy_accuracy, y_true=[0, 1] * 50, y_pred=[0, 1, 0, 0] * 25, replicates=10,
            sensitive_features=["a", "a", "b", "b"] * 25,
        )  # fmt: skip
    texts = [str(w.message) for w in caught if w.category is RuntimeWarning]
    # two groups and everyone, once as they are and in each of ten replicates
    assert texts == ["noisy_accuracy: no answers (33 times)"]


@pytest.mark.parametrize("text", ["0.5", np.str_("0.5"), np.array("0.5"), b"0.5"])
def test_a_function_that_gives_a_number_as_text_is_refused_by_name(text):
    def spell(true, pred):
        return text

    with pytest.raises(SpecError, match="the metric 'spell' gives text"):
        isolux.metric_frame(metrics=spell, y_true=[0, 1] * 50, y_pred=[0, 1, 0, 0] * 25,
                            sensitive_features=["a", "b"] * 50)  # fmt: skip


def _three_groups(n=900):
    draw = np.random.default_rng(0)
    group, truth = draw.choice(["a", "b", "c"], n), draw.integers(0, 2, n)
    is_right = draw.random(n) < np.where(group == "a", 0.75, 0.9)
    return group, truth, np.where(is_right, truth, 1 - truth)


def test_a_pair_and_p_are_those_of_the_audit():
    group, truth, answer = _three_groups()
    frame = isolux.metric_frame(metrics="accuracy", y_true=truth, y_pred=answer,
                                sensitive_features=group)  # fmt: skip
    people = pl.DataFrame({"unit_id": [str(i) for i in range(len(group))], "g": group,
                           "value": (truth == answer).astype(float)})  # fmt: skip
    tests = isolux.audit(people, by="g").disparities
    pairs = tests.filter(kind="difference")
    pair = pairs.filter(group_a="a", group_b="b").row(0, named=True)
    ours = frame.between("a", "b").row(0, named=True)
    for name, theirs in (("value", "value"), ("low", "low"), ("high", "high"), ("p", "p_value")):
        assert ours[name] == pytest.approx(pair[theirs])
    turned = frame.between("b", "a").row(0, named=True)
    assert (turned["value"], turned["low"], turned["high"]) == pytest.approx(
        (-ours["value"], -ours["high"], -ours["low"])
    )
    # Simulated in another order: 2,000 replicates tell .007 to a tenth of itself.
    assert frame.difference()["p"].item() == pytest.approx(pairs["p_adjusted"].min(), rel=0.1)
    to_overall = tests.filter(kind="difference_to_overall")["p_adjusted"].min()
    assert frame.difference("to_overall")["p"].item() == pytest.approx(to_overall, rel=0.1)


def test_a_pair_is_compared_within_each_level_of_control_features():
    group, truth, answer = _three_groups()
    level = np.repeat(["x", "y"], 450)
    inputs = {"y_true": truth, "y_pred": answer, "sensitive_features": group}
    frame = isolux.metric_frame(metrics="accuracy", control_features={"k": level}, **inputs)
    pairs = frame.between("a", "b")
    assert pairs["k"].to_list() == ["x", "y"]
    for k, value in pairs.select("k", "value").iter_rows():
        right = {g: (truth == answer)[(group == g) & (level == k)].mean() for g in "ab"}
        assert value == pytest.approx(right["a"] - right["b"])
    assert frame.difference()["p"].null_count() == 0


def test_a_pair_that_does_not_exist_and_functions_are_refused():
    group, truth, answer = _three_groups()
    inputs = {"y_true": truth, "y_pred": answer, "sensitive_features": group}
    with pytest.raises(ValueError, match="no group named 'z'"):
        isolux.metric_frame(metrics="accuracy", **inputs).between("a", "z")
    frame = isolux.metric_frame(metrics=lambda t, p: float((t == p).mean()), **inputs)
    with pytest.raises(ValueError, match="differences of functions are not tested"):
        frame.between("a", "b")
    assert frame.difference()["p"].to_list() == [None]
