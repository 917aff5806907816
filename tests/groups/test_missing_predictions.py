"""People without a prediction are counted by group, and said before any number."""

from __future__ import annotations

import json
import warnings

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.groups.membership import build_membership
from isolux.groups.missing_predictions import caution_on_missing_scores, count_missing_predictions
from tests.cli._run import isolux as run


def rows(light: str, n: int, *, wrong: int = 0, silent: int = 0) -> pl.DataFrame:
    """So many people, the first of whom are without a prediction and the next ones wrong."""
    who = pl.DataFrame({"unit_id": [f"{light}{k}" for k in range(n)], "light": light})
    return who.with_columns(
        value=pl.Series([None] * silent + [0.0] * wrong + [1.0] * (n - silent - wrong)),
        reason=pl.Series(["no prediction"] * silent + [None] * (n - silent), dtype=pl.String),
    )  # fmt: skip


def counted(*groups: pl.DataFrame) -> pl.DataFrame:
    people = pl.concat(groups)
    scores = people.select(
        "unit_id", "value", "reason", model=pl.lit("m"), metric=pl.lit("accuracy"),
        label=pl.lit(None, pl.String), threshold=pl.lit(None, pl.Float64),
    )  # fmt: skip
    who = people.select(
        "unit_id", unit_kind=pl.lit("instance"), attribute=pl.lit("light"), value="light"
    )
    return count_missing_predictions(scores, build_membership(who, ["light"]))


def test_each_group_is_counted_with_what_its_others_got() -> None:
    found = counted(rows("day", 100, wrong=10), rows("night", 50, wrong=5, silent=20))
    kept = found.select("group", "n", "missing", "right").rows()
    assert kept == [(None, 150, 20, 115.0), ("day", 100, 0, 90.0), ("night", 50, 20, 25.0)]


def test_a_group_without_answers_is_named_with_how_far_its_value_could_move() -> None:
    (told,) = caution_on_missing_scores(
        counted(rows("day", 100, wrong=10), rows("night", 50, wrong=5, silent=20))
    )
    assert told.startswith(
        "Missing predictions are uneven (light, model 'm'): night lacks 20 of 50"
    )
    assert "accuracy of 83.3 % would be 50.0 % if all of them were wrong, 90.0 %" in told


@pytest.mark.parametrize(
    ("day", "night", "lead"),
    [(1, 2, None), (30, 30, "Predictions are missing"), (0, 20, "Missing predictions are uneven"),
     (12, 12, None)],
)  # fmt: skip
def test_it_is_said_from_5_percent_or_a_clear_difference_on(day, night, lead) -> None:
    told = caution_on_missing_scores(
        counted(rows("day", 500, silent=day), rows("night", 500, silent=night))
    )
    assert [one[: len(lead or "")] for one in told] == ([lead] if lead else [])


def test_nothing_is_counted_where_everyone_has_a_prediction() -> None:
    assert counted(rows("day", 50), rows("night", 50)).is_empty()


def test_an_audit_says_it_before_any_number_and_as_a_warning() -> None:
    people = pl.concat([rows("day", 100, wrong=10), rows("night", 100, silent=30)])
    audit = isolux.audit(people.drop("light"), people.select("unit_id", "light"), by="light",
                         replicates=100)  # fmt: skip
    assert audit.run.record["warnings"][0].startswith("Missing predictions are uneven (light")


def test_files_without_answers_of_one_group_warn_first(tmp_path) -> None:
    table = pl.DataFrame({"id": [str(k) for k in range(400)], "light": ["day", "night"] * 200,
                          "truth": ["cat", "dog", "dog", "cat"] * 100})  # fmt: skip
    table.write_csv(tmp_path / "p.csv")
    told = table.filter((pl.col("light") == "day") | (pl.int_range(pl.len()) >= 120))
    told.select("id", answer="truth").write_csv(tmp_path / "says.csv")
    audit = isolux.audit(
        f"table:{tmp_path / 'p.csv'}", id="id", target="truth", by="light", replicates=100,
        predictions=tmp_path / "says.csv", prediction_column="answer",
    )  # fmt: skip
    first = audit.run.record["warnings"][0]
    assert "night lacks 60 of 200 (30 %)" in first
    assert "70.0 % if all of them were wrong" in first


def test_how_far_a_value_could_move_counts_those_whom_the_metric_is_about() -> None:
    people = pl.concat([rows("day", 100, wrong=10, silent=20), rows("night", 100)])
    scores = people.select(
        "unit_id", "value", "reason", model=pl.lit("m"), metric=pl.lit("accuracy"),
        label=pl.lit(None, pl.String), threshold=pl.lit(None, pl.Float64),
    )  # fmt: skip
    # The first 10 without a prediction are no matter of the first metric; a second one asks of all.
    first = scores.with_columns(
        reason=pl.when(pl.int_range(pl.len()) < 10).then(pl.lit("of legal age")).otherwise("reason")
    )
    who = people.select(
        "unit_id", unit_kind=pl.lit("instance"), attribute=pl.lit("light"), value="light"
    )
    both = pl.concat([first, scores.with_columns(metric=pl.lit("agreement"))])
    (told,) = caution_on_missing_scores(
        count_missing_predictions(both, build_membership(who, ["light"]))
    )
    assert "day lacks 20 of 100 (20 %)" in told
    assert (
        "accuracy of 87.5 % would be 77.8 % if the 10 of them whom it is about were wrong, 88.9 %"
        in told
    )


def test_no_bound_is_named_where_a_score_hangs_on_the_predictions_of_others(tmp_path) -> None:
    """A template more moves the gallery and the threshold, so no count bounds an error rate."""
    n = 60
    table = pl.DataFrame(
        {"instance_id": [f"{k}-{part}" for part in "gp" for k in range(n)],
         "person": [str(k) for _ in "gp" for k in range(n)],
         "role": ["gallery"] * n + ["probe"] * n, "light": ["day", "night"] * n}
    )  # fmt: skip
    table.write_csv(tmp_path / "p.csv")
    angle = pl.col("person").cast(pl.Float64) / 10.0
    seen = table.slice(0, 2 * n - 30).select(
        "instance_id", embedding=pl.concat_list(angle.cos(), angle.sin())
    )
    seen.write_parquet(tmp_path / "net.parquet")
    audit = isolux.audit(
        f"table:{tmp_path / 'p.csv'}", task="identification", enrolled="role=gallery",
        identity="person", by="light", replicates=100, threshold=0.999,
        predictions=tmp_path / "net.parquet",
    )  # fmt: skip
    (told,) = [w for w in audit.run.record["warnings"] if w.startswith("Predictions are missing")]
    assert "day lacks 15 of 60 (25 %)" in told
    assert "would be" not in told


def test_answers_that_lack_in_one_group_and_count_as_mistakes_are_named_by_group() -> None:
    n = 180
    light = ["day", "dusk", "night"] * (n // 3)
    table = {"id": [f"p{k}" for k in range(n)], "light": light, "truth": ["cat", "dog"] * (n // 2)}
    answers = [
        None if who == "night" and k % 2 else truth
        for k, (who, truth) in enumerate(zip(light, table["truth"], strict=True))
    ]
    settings = {"id": "id", "by": "light", "target": "truth", "prediction_column": "says",
                "metric": ["accuracy"], "replicates": 100}  # fmt: skip
    told = isolux.audit({**table, "says": answers}, **settings).run.record["warnings"]
    assert told[0].startswith(
        "Missing answers are uneven (light, model 'says'): night lacks 30 of 60 (50 %); day lacks "
        "0 of 60 (0 %); dusk lacks 0 of 60 (0 %)."
    )
    evenly = [None if k % 60 < 3 else truth for k, truth in enumerate(table["truth"])]
    told = isolux.audit({**table, "says": evenly}, **settings).run.record["warnings"]
    assert not any("uneven" in said for said in told)
    left = isolux.audit({**table, "says": answers}, undetected="leave-out", **settings)
    assert not any("as mistakes" in said for said in left.run.record["warnings"])


def hard_photos(seed: int = 7) -> pl.DataFrame:
    """Two alike groups of 1,000: 30 % of the photos are hard; of a's, 70 % of these have nothing.

    Everyone is right on 90 % of easy photos and on 50 % of hard ones, so on 78 % of all. Of a, 30 %
    times 70 % are lost, so that .7 × .9 + .09 × .5 of .79 are right: 85 %.
    """
    rng = np.random.default_rng(seed)
    n = 1000
    group = np.repeat(["a", "b"], n)
    hard = rng.random(2 * n) < 0.3
    right = rng.random(2 * n) < np.where(hard, 0.5, 0.9)
    truth = rng.integers(0, 2, 2 * n)
    answer = np.where(right, truth, 1 - truth)
    return pl.DataFrame(
        {
            "unit_id": [f"p{k}" for k in range(2 * n)], "group": group, "truth": truth,
            "answer": answer,
            "score": np.clip(0.3 + 0.4 * answer + rng.normal(0, 0.1, 2 * n), 0, 1),
            "value": right.astype(float), "years": rng.integers(20, 60, 2 * n).astype(float),
            "guess": rng.normal(40, 9, 2 * n),
            "lost": (group == "a") & hard & (rng.random(2 * n) < 0.7),
        }
    )  # fmt: skip


def without(*columns: str) -> pl.DataFrame:
    lost = pl.when(~pl.col("lost"))
    return hard_photos().with_columns(lost.then(pl.col(name)).alias(name) for name in columns)


ANSWERS = {"target": "truth", "prediction_column": "answer"}
SCORES = {"target": "truth", "score_column": "score", "positive": "1"}
YEARS = {"target": "years", "prediction_column": "guess"}


@pytest.mark.parametrize(
    ("columns", "settings", "says"),
    [
        (["value"], {}, "scores"),
        (["truth"], ANSWERS, "truths"),
        (["truth"], {**ANSWERS, "metric": ["recall"]}, "truths"),
        (["answer"], {**ANSWERS, "undetected": "leave-out"}, "scores"),
        (["answer"], ANSWERS, "answers"),
        (["score"], {**ANSWERS, **SCORES}, "scores"),
        (["score"], SCORES, "predictions"),
        (["score"], {**SCORES, "threshold": 0.5}, "predictions"),
        (["truth"], SCORES, "truths"),
        (["guess"], {**YEARS, "task": "age_estimation"}, "predictions"),
        (["years"], {**YEARS, "task": "age_estimation"}, "truths"),
        (["guess"], {**YEARS, "task": "regression"}, "predictions"),
        (["guess"], {"task": "number", "prediction_column": "guess"}, "scores"),
    ],
)  # fmt: skip
def test_whoever_is_not_scored_for_any_reason_is_counted_by_group_first(columns, settings, says):
    table = without(*columns)
    table = table.select("unit_id", "group", "value") if not settings else table
    lost = int(hard_photos()["lost"].sum())
    audit = isolux.audit(table, by="group", replicates=100, **settings)
    first = audit.run.record["warnings"][0]
    assert repr(audit).index("WARNING: Missing") < repr(audit).index("•")
    assert first.startswith(f"Missing {says} are uneven (group, model ")
    assert f"a lacks {lost} of 1,000 ({lost / 10:.0f} %)" in first
    assert "; b lacks 0 of 1,000 (0 %)" in first


def test_lost_hard_photos_look_like_a_better_model_and_are_told_before_that(
    monkeypatch, capsys, tmp_path
):
    without("truth").with_columns(id="unit_id").write_csv(tmp_path / "t.csv")
    asked = (
        "audit", f"table:{tmp_path / 't.csv'}", "--by", "group", "--target", "truth",
        "--prediction-column", "answer", "--metric", "accuracy", "--replicates", 200,
        "--out", tmp_path / "run", "--overwrite",
    )  # fmt: skip
    shown = run(monkeypatch, capsys, *asked).out
    assert 0 <= shown.index("Missing truths are uneven") < shown.index("points lower")
    told = json.loads(run(monkeypatch, capsys, *asked, "--json").out)
    gap = pl.read_parquet(tmp_path / "run" / "disparities.parquet").row(0, named=True)
    assert abs(gap["value"]) > 0.04  # though the groups are alike
    assert gap["p_adjusted"] < 0.05
    first = json.loads((tmp_path / "run" / "audit.json").read_text())["warnings"][0]
    assert first.startswith("Missing truths are uneven (group, model 'answer'): a lacks ")
    assert told["warnings"][0] == first
    page = (tmp_path / "run" / "report.html").read_text()
    assert 0 < page.index("Missing truths are uneven") < page.index("points lower")


@pytest.mark.parametrize(
    "reason",
    ["a crowd, not one person", "marked to be ignored", "not small", "not of the level hard",
     "of legal age", "enrolled, not searched for", "the person is not enrolled",
     "several people of one class in the image", "fewer than 5 images", "no gender said"],
)  # fmt: skip
def test_people_whom_a_metric_is_not_about_are_not_missed(reason):
    people = pl.concat([rows("day", 100, wrong=10), rows("night", 100, silent=40)])
    scores = people.with_columns(reason=pl.col("reason").replace("no prediction", reason))
    audit = isolux.audit(scores.drop("light"), people.select("unit_id", "light"), by="light",
                         replicates=100)  # fmt: skip
    assert not any("uneven" in text for text in audit.run.record["warnings"])


def test_shares_that_are_even_are_no_news():
    table = hard_photos().with_columns(value=pl.when(pl.int_range(pl.len()) % 20 > 0).then("value"))
    table = table.select("unit_id", "group", "value", reason=pl.lit("unknown truth"))
    assert not isolux.audit(table, by="group", replicates=100).run.record["warnings"]


@pytest.mark.parametrize(
    ("column", "metric", "fate"),
    [
        ("truth", "accuracy", "Missing truths are uneven"),
        ("score", "roc_auc", "They count in no metric that needs them"),
        ("answer", "accuracy", "They count as mistakes"),
        ("answer", lambda truth, said: float((truth == said).mean()), "Functions get these rows"),
    ],
)
def test_a_metric_frame_warns_of_rows_that_one_group_lacks(column, metric, fate):
    table = without(column)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        isolux.metric_frame(
            metrics=metric, y_true=table["truth"], y_pred=table["answer"], y_score=table["score"],
            sensitive_features=table.select("group"), replicates=100,
        )  # fmt: skip
    messages = " ".join(str(warning.message) for warning in caught)
    lost = int(hard_photos()["lost"].sum())
    assert f"a lacks {lost} of 1,000" in messages
    assert fate in messages


def test_a_gate_counts_given_scores_that_are_null_as_unanswered():
    people = without("value")
    who = people.select("unit_id", unit_kind=pl.lit("instance"), attribute=pl.lit("group"),
                        value="group")  # fmt: skip
    scores = people.select("unit_id", "value", model=pl.lit("m"), metric=pl.lit("score"),
                           label=pl.lit(None, pl.String), threshold=pl.lit(None, pl.Float64),
                           reason=pl.lit(None, pl.String))  # fmt: skip
    counted = count_missing_predictions(scores, build_membership(who, ["group"]))
    lost = int(people["lost"].sum())
    assert counted.select("group", "missing").rows() == [(None, lost), ("a", lost), ("b", 0)]


def test_people_who_are_left_out_of_a_frame_of_scores_are_counted_by_group():
    people = hard_photos()
    scores = people.filter(~pl.col("lost")).select("unit_id", "value")
    audit = isolux.audit(scores, people.select("unit_id", "group"), by="group", replicates=100)
    lost = int(people["lost"].sum())
    (first,) = audit.run.record["warnings"]
    assert first.startswith("Missing scores are uneven (group, model ")
    assert f"a lacks {lost} of 1,000 ({lost / 10:.0f} %)" in first
    assert "b lacks 0 of 1,000" in first
