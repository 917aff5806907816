"""Scores without answers: ranking, calibration, and answers made at a threshold."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError
from isolux.core.notes import Caution
from isolux.tasks import score
from tests.cli._run import isolux as run
from tests.tasks._people import people, values

TRUTH = people({"a": "yes", "b": "yes", "c": "no", "d": "no"}, target="t")
LOGITS = {"a": 2.5, "b": -1.0, "c": 0.5, "d": -3.0}


def scores_of(given, model="m"):
    return pl.DataFrame(
        {"model": model, "instance_id": list(given), "score": list(given.values())},
        schema_overrides={"score": pl.Float64},
    )


def audit(given=LOGITS, truth=TRUTH, **options):
    return score("classification", truth, scores_of(given), **({"target": "t"} | options))


def evaluate(found, metric):
    info = found.info.metric(metric)
    evidence = found.evidence["classification"]
    return float(info.statistic(evidence, np.ones(evidence.height)))


def measured(found):
    return {m.name for m in found.info.metrics}


def test_a_score_and_a_truth_rank_people_on_any_scale():
    found = audit()
    assert measured(found) == {"roc_auc", "average_precision"}
    assert found.units.is_empty()
    # Positives 2.5, -1; negatives .5, -3: three of four pairs in order.
    assert evaluate(found, "roc_auc") == 0.75
    # Falling: yes, no, yes, no: precision 1 and 2/3.
    assert evaluate(found, "average_precision") == pytest.approx(5 / 6)
    assert "the scores run from -3 to 2.5" in " ".join(found.notes)
    assert "they need a decision threshold" in " ".join(found.notes)
    assert found.evidence["classification"]["correct"].null_count() == 4


def test_probabilities_are_calibrated_against_the_class():
    found = audit({"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.1})
    # .9 three times and true twice: |2 - 2.7|; .1 once and false: |0 - .1|; over four.
    assert evaluate(found, "class_calibration_error") == pytest.approx(0.8 / 4)


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        (0.0, "ac"),  # as given: 2.5 and .5 are 0 or more
        ("2.5", "a"),  # from the threshold on
        ("fpr=0.5", "ac"),  # one of two negatives may pass: the lowest such
        ("fnr=0.5", "a"),  # one of two positives may be missed: the highest such
        ("best-accuracy", "a"),  # 3 right from 2.5 on; also from -1 on, and the highest is taken
    ],
)
def test_a_threshold_makes_answers_of_scores(rule, given):
    found = audit(threshold=rule)
    selected = values(found, "selection_rate", "yes")
    assert {unit for unit, value in selected.items() if value} == set(given) | (
        {"b"} if rule == "fpr=0.5" else set()
    )
    assert "accuracy" in measured(found)
    assert found.task_choices["threshold"]["value"]["m"] <= min(LOGITS[unit] for unit in given)


def test_rates_meet_what_was_asked_for_of_large_data():
    draw = np.random.default_rng(0)
    truth = draw.random(2000) < 0.4
    logits = np.round(draw.normal(np.where(truth, 1.0, -1.0)), 2)  # with ties
    crowd = people({str(i): "yes" if t else "no" for i, t in enumerate(truth)}, target="t")
    for rule, rate, asked in (
        ("fpr=0.05", "false_positive_rate", 0.05),
        ("fnr=0.05", "false_negative_rate", 0.05),
    ):
        found = audit({str(i): x for i, x in enumerate(logits)}, crowd, threshold=rule)
        mean = found.units.filter(metric=rate)["value"].mean()
        assert asked - 0.01 < mean <= asked
    best = audit({str(i): x for i, x in enumerate(logits)}, crowd, threshold="best-accuracy")
    most = max(((logits >= at) == truth).mean() for at in [*logits, 99.0])
    assert best.units.filter(metric="accuracy")["value"].mean() == pytest.approx(most)


def test_a_threshold_set_on_those_who_are_judged_is_said_first():
    told = audit(threshold="best-accuracy").notes
    assert isinstance(told[0], Caution)
    assert "was chosen on the same people that it is judged on" in told[0]
    given = audit(threshold=0.5).notes
    assert not any(isinstance(note, Caution) for note in given)
    assert "(the threshold as given)" in given[0]


@pytest.mark.parametrize(
    ("threshold", "lower_score_means", "told"),
    [
        (50.0, "other", ("No score of 'm' reaches the threshold of 50: scores run from -3 to"
         " 2.5, so no answer is 'yes'.")),
        (-50.0, "other", ("Every score of 'm' reaches the threshold of -50: scores run from -3 to"
         " 2.5, so every answer is 'yes'.")),
        (50.0, "positive", ("Every score of 'm' reaches the threshold of 50: scores run from -3 to"
         " 2.5, so every answer is 'yes'.")),
        (-50.0, "positive", ("No score of 'm' reaches the threshold of -50: scores run from -3 to"
         " 2.5, so no answer is 'yes'.")),
    ],
)  # fmt: skip
def test_a_threshold_that_parts_no_scores_is_said_first(threshold, lower_score_means, told):
    notes = audit(threshold=threshold, lower_score_means=lower_score_means).notes
    said = [note for note in notes if isinstance(note, Caution)]
    assert [note.startswith(told) for note in said] == [True]


@pytest.mark.parametrize("threshold", [2.5, 0.0])
def test_a_threshold_among_the_scores_is_no_caution(threshold):
    assert not [n for n in audit(threshold=threshold).notes if isinstance(n, Caution)]


def test_a_threshold_on_the_scale_of_the_file_is_refused_beside_a_scale(
    monkeypatch, capsys, tmp_path
):
    file = tmp_path / "people.csv"
    ids = [f"p{i}" for i in range(40)]
    frame = {
        "id": ids,
        "g": ["x", "y"] * 20,
        "t": [0, 0, 1, 1] * 10,
        "percent": [5, 20, 60, 90] * 10,
    }
    pl.DataFrame(frame).write_csv(file)
    given = ("audit", f"table:{file}", "--task", "classification", "--by", "g", "--target", "t",
             "--score-column", "percent", "--option", "score_scale=100",
             "--replicates", 100)  # fmt: skip
    done = run(monkeypatch, capsys, *given, "--threshold", 50, "--out", tmp_path / "a")
    assert done.code != 0
    assert "expected: --threshold 0.5, or --threshold 50 without score_scale" in done.plain
    done = run(monkeypatch, capsys, *given, "--threshold", 0.5, "--out", tmp_path / "b")
    assert done.code == 0, done.err
    assert "reaches the threshold" not in done.out


def test_a_split_sets_the_threshold_and_is_not_judged():
    attributes = pl.concat(
        [
            TRUTH.attributes,
            TRUTH.attributes.with_columns(
                attribute=pl.lit("split"), value=pl.Series(["val", "test", "val", "test"])
            ),
        ]
    )
    split = replace(TRUTH, attributes=attributes)
    found = audit(truth=split, threshold="best-accuracy", threshold_on="split=val")
    # Of a (yes, 2.5) and c (no, .5): 2.5. Then b (yes, -1) is missed and d (no, -3) is right.
    assert values(found, "accuracy") == {"b": 0.0, "d": 1.0}
    assert found.task_choices["threshold"] | {"metrics": []} == {
        "rule": "best-accuracy", "rate": None, "chosen_on": "split=val", "n_chosen_on": 2,
        "lower_score_means": "other", "words": "at a score of 2.5", "value": {"m": 2.5},
        "metrics": [],
    }  # fmt: skip
    assert "2 people who are not judged" in found.notes[0]
    with pytest.raises(SpecError, match="nobody has split=train"):
        audit(truth=split, threshold="best-accuracy", threshold_on="split=train")


def halved(n=60, **columns):
    """Make n people, every other of the split val; further columns are attributes."""
    ids = [f"p{i:03d}" for i in range(n)]
    crowd = people({i: "yes" if k % 3 else "no" for k, i in enumerate(ids)}, target="t")
    columns = {"split": [("val", "test")[k % 2] for k in range(n)], **columns}
    more = [
        crowd.attributes.with_columns(attribute=pl.lit(name), value=pl.Series(held))
        for name, held in columns.items()
    ]
    return replace(crowd, attributes=pl.concat([crowd.attributes, *more]))


def warned(found):
    return [note for note in found.notes if isinstance(note, Caution) and "threshold was" in note]


RISING = {f"p{i:03d}": (i * 37 % 61) / 7 for i in range(60)}
ON_VAL = {"threshold": "best-accuracy", "threshold_on": "split=val"}


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        # Two rows a subject, one of each side: all 30 of test.
        ([str(i // 2) for i in range(60)], "30 of 30 people judged share their 'subject' "),
        # Only the first two rows are one subject.
        ([str(max(i, 1)) for i in range(60)], "1 of 30 people judged share their 'subject' "),
        ([str(i) for i in range(60)], None),
        (["unknown"] * 60, None),
    ],
)
def test_subjects_on_both_sides_of_the_split_are_counted_first(subject, told):
    found = audit(RISING, halved(subject=subject), **ON_VAL)
    assert len(warned(found)) == (told is not None)
    if told:
        assert warned(found)[0].startswith(told)
        assert "rates look better than on others" in warned(found)[0]
        assert "30 rows that are not judged" in " ".join(found.notes)


def test_pictures_and_clusters_on_both_sides_of_the_split_are_counted_first():
    crowd = halved()
    for column, name in (("image_id", "a picture"), ("cluster_id", "a cluster")):
        pairs = pl.Series([str(i // 2) for i in range(60)])
        shared = replace(crowd, instances=crowd.instances.with_columns(pairs.alias(column)))
        (note,) = warned(audit(RISING, shared, **ON_VAL))
        assert f"30 of 30 people judged share {name} with a row" in note
        assert "30 on both sides of split=val" in note


def test_the_same_scores_on_both_sides_of_the_split_are_counted_first():
    # Three rows of a kind repeat with period 6, so row k and row k + 3 have one class; 3 is odd.
    twice = {f"p{i:03d}": (i // 6 * 3 + i % 3) / 7 for i in range(60)}
    (note,) = warned(audit(twice, halved(), **ON_VAL))
    assert note.startswith("30 of 30 people judged have the very score of 'm' and the class")
    assert not warned(audit(RISING, halved(), **ON_VAL))
    coarse = {f"p{i:03d}": float(i // 6) for i in range(60)}
    assert not warned(audit(coarse, halved(), **ON_VAL))


@pytest.mark.parametrize(("times", "told"), [(1.0, False), (1.2, False), (0.02, True), (3.0, True)])
def test_scores_of_another_scale_than_those_the_threshold_was_set_by_are_told(times, told):
    """Rows of test have the scores of val times a number; a threshold passes 10 % of val's noes."""
    rng = np.random.default_rng(4)
    given = {
        f"p{i:03d}": (rng.random() + (i % 3 > 0)) * (times if i % 2 else 1.0) for i in range(600)
    }
    found = audit(given, halved(600), threshold="fpr=0.1", threshold_on="split=val", positive="yes")
    said = [n for n in found.notes if "on one scale" in n]
    assert [isinstance(n, Caution) for n in said] == [True] * told
    assert all(" by which the threshold of 'm' was set (split=val) " in n for n in said)


def test_a_threshold_that_no_tied_score_reaches_is_told():
    given = {f"p{i:03d}": float(i % 3 > 0 or i % 4 == 0) for i in range(240)}
    found = audit(given, halved(240), threshold="fpr=0.1", threshold_on="split=val", positive="yes")
    (told,) = [n for n in found.notes if "reaches the threshold" in n]
    assert isinstance(told, Caution)
    assert told.endswith(
        "so no answer is 'yes'. Do scores tie, or does none tell the classes apart?"
    )
    assert "the threshold of 1.0000000000000002: scores run from 0 to 1" in told


def test_people_of_both_parts_of_a_split_are_refused():
    crowd = halved()
    more = crowd.attributes.filter(pl.col("attribute") == "split", pl.col("value") == "val").head(4)
    both = pl.concat([crowd.attributes, more.with_columns(value=pl.lit("test"))])
    with pytest.raises(SpecError, match="4 people have other values of 'split' beside 'val'"):
        audit(RISING, replace(crowd, attributes=both), **ON_VAL)


def test_a_share_is_drawn_by_clusters():
    draw = np.random.default_rng(1)
    ids = [str(i) for i in range(400)]
    crowd = people({i: draw.choice(["yes", "no"]) for i in ids}, target="t")
    household = pl.Series([str(i // 4) for i in range(400)])
    crowd = replace(crowd, instances=crowd.instances.with_columns(cluster_id=household))
    given = {i: float(draw.normal()) for i in ids}
    found = audit(given, crowd, threshold="best-accuracy", threshold_on=0.3)
    left = found.evidence["classification"].group_by("cluster_id").len()
    assert left["len"].unique().to_list() == [4]
    assert 240 < found.evidence["classification"].height < 320
    again = audit(given, crowd, threshold="best-accuracy", threshold_on="0.3", seed=1)
    assert not again.evidence["classification"].equals(found.evidence["classification"])


def test_distances_are_turned_and_thresholds_stay_distances():
    near = {unit: -x for unit, x in LOGITS.items()}
    found = audit(near, lower_score_means="positive", threshold=-1.0)
    assert evaluate(found, "roc_auc") == 0.75
    assert values(found, "selection_rate", "yes") == {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}
    assert "Scores of at most -1 are answers 'yes'" in found.notes[0]


def test_scores_that_fall_with_the_class_are_said_first():
    draw = np.random.default_rng(2)
    truth = draw.random(200) < 0.5
    crowd = people({str(i): "yes" if t else "no" for i, t in enumerate(truth)}, target="t")
    far = {str(i): float(x) for i, x in enumerate(draw.normal(np.where(truth, -1.0, 1.0)))}
    notes = audit(far, crowd).notes
    assert any(isinstance(n, Caution) and "--lower-score-means positive" in n for n in notes)
    assert not any(
        isinstance(n, Caution) for n in audit(far, crowd, lower_score_means="positive").notes
    )
    blind = {str(i): float(x) for i, x in enumerate(draw.normal(size=200))}
    assert any("no better than chance" in n for n in audit(blind, crowd).notes)


def test_other_classes_are_one_class():
    three = people({"a": "x", "b": ["y", "x"], "c": "z", "d": None}, target="t")
    found = audit(truth=three, positive="x", threshold=0.0)
    assert values(found, "accuracy") == {"a": 1.0, "b": 0.0, "c": 0.0, "d": "unknown truth"}
    assert "all others are 'not x'" in " ".join(found.notes)
    with pytest.raises(SpecError, match="nothing says which class the scores are of"):
        audit(truth=three)


def test_people_without_a_score_count_in_nothing():
    crowd = people({str(i): "yes" if i % 2 else "no" for i in range(40)}, target="t")
    given = {str(i): None if i < 20 else float(i) for i in range(40)}
    found = audit(given, crowd, threshold=30.0)
    assert found.units.filter(metric="accuracy")["value"].null_count() == 20
    assert any(isinstance(n, Caution) and "20 of 40 people have no score" in n for n in found.notes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"threshold": "best"}, "the threshold cannot be used"),
        ({"threshold": "fpr=1.5"}, "expected: a number, fpr=SHARE, fnr=SHARE or best-accuracy"),
        ({"threshold": float("nan")}, "the threshold cannot be used"),
        ({"threshold": "fpr=0.1"}, "too few people not of the positive class"),
        ({"threshold_on": 0.3}, "there is none to set"),
        ({"threshold": 1.0, "threshold_on": 0.3}, "is not set on anyone"),
        ({"threshold": "best-accuracy", "threshold_on": "half"}, "ATTRIBUTE=VALUE"),
        ({"top_k": (2,)}, "top_k is about a model's answers"),
        ({"one_vs_rest": True}, "one_vs_rest is about a model's answers"),
        ({"metrics": ("accuracy",)}, "a decision threshold"),
        ({"positive": "maybe"}, "the positive class 'maybe' is true of nobody"),
    ],
)
def test_what_cannot_be_used_is_refused(options, match):
    with pytest.raises(SpecError, match=match):
        audit(**options)


def test_two_scores_of_one_person_are_refused():
    both = pl.concat([scores_of(LOGITS), scores_of({"a": 1.0})])
    with pytest.raises(TableError, match="a person has several scores"):
        score("classification", TRUTH, both, target="t")


def write(path, n=600):
    draw = np.random.default_rng(3)
    truth = draw.random(n) < 0.4
    logits = draw.normal(np.where(truth, 1.5, -1.5))
    frame = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "race": draw.choice(["A", "B"], n),
            "label": truth.astype(int),
            "logit": logits,
            "percent": 100 / (1 + np.exp(-logits)),
            "split": draw.choice(["val", "test"], n),
        }
    )
    frame.write_csv(path / "people.csv")
    frame.select("id", "logit").write_csv(path / "net.csv")
    return frame


def test_by_the_command_line_a_score_column_is_enough(monkeypatch, capsys, tmp_path):
    write(tmp_path)
    given = ("audit", f"table:{tmp_path / 'people.csv'}", "--target", "label", "--by", "race",
             "--replicates", 100, "--out", tmp_path / "run", "--overwrite")  # fmt: skip
    done = run(monkeypatch, capsys, *given, "--score-column", "logit")
    assert done.code == 0, done.err
    assert "area under the ROC curve" in done.out
    done = run(monkeypatch, capsys, *given, "--score-column", "logit", "--threshold", "fpr=0.05")
    assert done.out.startswith("WARNING: Scores of at least")
    record = json.loads((tmp_path / "run" / "audit.json").read_text(encoding="utf-8"))
    assert record["chosen"]["threshold"]["rule"] == "fpr"
    at = record["chosen"]["threshold"]["words"]
    assert f"rate of label = 1 {at}" in done.out
    done = run(monkeypatch, capsys, *given, "--score-column", "percent", "--notes")
    assert "say --option score_scale=100" in done.out
    done = run(
        monkeypatch, capsys, *given, "--score-column", "percent", "--option", "score_scale=100"
    )
    assert "alibration error of the positive class" in done.out
    done = run(monkeypatch, capsys, *given, "--prediction-column", "label", "--threshold", 0.5)
    assert done.code == 2
    assert "leave out --prediction-column" in done.plain


def test_scores_may_stand_in_a_file_of_their_own(monkeypatch, capsys, tmp_path):
    write(tmp_path)
    done = run(
        monkeypatch, capsys, "audit", f"table:{tmp_path / 'people.csv'}", "--target", "label",
        "--by", "race", "--predictions", tmp_path / "net.csv", "--score-column", "logit",
        "--replicates", 100, "--threshold", 0, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "run" / "audit.json").read_text(encoding="utf-8"))
    assert record["model"] == "net"
    assert record["chosen"]["threshold"]["value"] == {"net": 0.0}
    assert {"roc_auc", "accuracy"} <= set(record["metrics"])


def test_two_models_that_only_rank_are_compared(monkeypatch, capsys, tmp_path):
    frame = write(tmp_path)
    noisy = frame["logit"] + np.random.default_rng(4).normal(0, 3, frame.height)
    frame.with_columns(noisy=noisy).write_csv(tmp_path / "people.csv")
    for column in ("logit", "noisy"):
        done = run(
            monkeypatch, capsys, "audit", f"table:{tmp_path / 'people.csv'}", "--target", "label",
            "--by", "race", "--score-column", column, "--replicates", 100,
            "--out", tmp_path / column,
        )  # fmt: skip
        assert done.code == 0, done.err
    done = run(
        monkeypatch, capsys, "compare", tmp_path / "logit", tmp_path / "noisy",
        "--out", tmp_path / "change",
    )  # fmt: skip
    assert done.code == 0, done.err
    changes = pl.read_parquet(tmp_path / "change" / "disparities.parquet")
    everyone = changes.filter(kind="model_difference", metric="roc_auc", group_a="overall")
    areas = [
        pl.read_parquet(tmp_path / c / "group_metrics.parquet").filter(
            metric="roc_auc", group="overall"
        )["value"][0]
        for c in ("noisy", "logit")
    ]
    assert everyone["value"][0] == pytest.approx(areas[0] - areas[1])
