"""People without a prediction are counted by group, and said before any number."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.groups.membership import membership
from isolux.groups.unanswered import cautions, unanswered


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
    return unanswered(scores, membership(who, ["light"]))


def test_each_group_is_counted_with_what_its_others_got() -> None:
    found = counted(rows("day", 100, wrong=10), rows("night", 50, wrong=5, silent=20))
    kept = found.select("group", "n", "missing", "right").rows()
    assert kept == [(None, 150, 20, 115.0), ("day", 100, 0, 90.0), ("night", 50, 20, 25.0)]


def test_a_group_without_answers_is_named_with_how_far_its_value_could_move() -> None:
    (told,) = cautions(counted(rows("day", 100, wrong=10), rows("night", 50, wrong=5, silent=20)))
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
    told = cautions(counted(rows("day", 500, silent=day), rows("night", 500, silent=night)))
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
    (told,) = cautions(unanswered(both, membership(who, ["light"])))
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
