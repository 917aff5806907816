"""Age estimation: errors in years, a stated mix of ages, and who passes a challenge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import JoinError, SpecError
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES
from isolux.tasks import score
from isolux.tasks.age_estimation.age_composition import read_age_composition, standardised_error
from tests.cli._run import isolux as run
from tests.tasks._people import people, values

FPR, FNR = "challenge_false_positive_rate", "challenge_false_negative_rate"
MIXED = "standardised_absolute_error"
# Who is how old, and is taken for how old.
AGES = people(
    {"a": "12", "b": "16.5", "c": "17", "d": "18", "e": "24", "f": "40", "g": "unknown"},
    target="age",
)
SAID = {"a": 15.0, "b": 26.0, "c": 25.0, "d": 24.9, "e": 30.0, "g": 50.0}


def given(numbers, model="m"):
    return pl.DataFrame(
        {"model": model, "instance_id": list(numbers), "value": list(numbers.values())},
        schema_overrides={"value": pl.Float64},
    )


def test_errors_and_the_cumulative_score_by_hand():
    found = score("age_estimation", AGES, given(SAID), within=(3, 8))
    missing = {"f": "no prediction", "g": "unknown truth"}
    errors = {"a": 3.0, "b": 9.5, "c": 8.0, "d": 6.9, "e": 6.0}
    of_error = values(found, "mean_absolute_error")
    assert {k: of_error[k] for k in missing} == missing
    assert {k: of_error[k] for k in errors} == pytest.approx(errors)
    bias = values(found, "bias")
    assert {k: bias[k] for k in errors} == pytest.approx(errors)  # all were taken for older
    held = found.units.filter(metric="share_within").drop_nulls("value")
    shares = held.group_by("threshold").agg(pl.col("value").mean()).sort("threshold").rows()
    assert shares == [(3.0, 0.2), (8.0, 0.8)]  # a; a, c, d, e


def test_a_challenge_by_hand():
    found = score("age_estimation", AGES, given(SAID))
    # Under 18: a (taken for 15), b (26), c (25, exactly the challenge age): b and c pass.
    assert values(found, FPR) == {
        "a": 0.0, "b": 1.0, "c": 1.0, "d": "of legal age", "e": "of legal age",
        "f": "no prediction", "g": "unknown truth",
    }  # fmt: skip
    # Of legal age: d (24.9) is asked, e (30) passes.
    assert {k: v for k, v in values(found, FNR).items() if not isinstance(v, str)} == {
        "d": 1.0, "e": 0.0,
    }  # fmt: skip
    assert found.units.filter(metric=FPR)["threshold"].unique().to_list() == [25.0]
    assert any("3 people are under the legal age of 18 (2 by less than" in n for n in found.notes)


def test_other_challenge_ages_and_the_youngest_who_count():
    found = score(
        "age_estimation", AGES, given(SAID), challenge_age=(18, 26), youngest=16, metrics=[FPR]
    )
    held = found.units.drop_nulls("value").select("threshold", "unit_id", "value").rows()
    assert held == [(18.0, "b", 1.0), (18.0, "c", 1.0), (26.0, "b", 1.0), (26.0, "c", 0.0)]
    assert values(found.__class__(found.units.filter(threshold=18.0), found.info), FPR)["a"] == (
        "younger than those who count"
    )


def mixed(found):
    info = found.info.metric(MIXED)
    evidence = found.evidence["errors"]
    return float(info.statistic(evidence, np.ones(evidence.height)))


def test_the_error_at_a_stated_mix_by_hand():
    # 0 to 17, weight 1: errors 3, 9.5, 8 (mean 41/6). 18 to 39, weight 3: 6.9, 6 (mean 6.45).
    # f is 40 and outside the mix.
    found = score("age_estimation", AGES, given(SAID), age_mix=("0-17=1", "18-39=3"))
    assert mixed(found) == pytest.approx((41 / 6 + 3 * 6.45) / 4)
    assert found.info.metric(MIXED).unit == "years"


def test_nists_mean_over_sexes_and_years_does_not_depend_on_how_many_of_each_there_are():
    rng = np.random.default_rng(0)
    n = 4000
    age, sex = rng.integers(16, 33, n), np.where(rng.random(n) < 0.8, "F", "M")
    said = age + rng.normal(0, np.where(sex == "F", 2.0, 4.0) + (age - 16) / 10, n)
    ids = [f"p{i}" for i in range(n)]
    rows = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "sex", "value": sex.tolist()}
    )
    truth = people(dict(zip(ids, map(str, age), strict=True)), target="age")
    truth = replace(
        truth,
        attributes=pl.concat([ATTRIBUTES.conform(truth.attributes), ATTRIBUTES.conform(rows)]),
    )
    found = score(
        "age_estimation", truth, given(dict(zip(ids, said, strict=True))), age_mix=("18-30",),
        sex="sex",
    )  # fmt: skip
    # NIST: the mean of 26 mean absolute errors, two sexes and 13 ages.
    cells = [
        np.abs(said - age)[(age == y) & (sex == s)].mean() for y in range(18, 31) for s in "FM"
    ]
    assert mixed(found) == pytest.approx(np.mean(cells))
    # A person who weighs 3 counts as three people.
    evidence = found.evidence["errors"]
    twice = rng.integers(0, 3, n).astype(float)
    weighed = [
        np.average(np.abs(said - age)[at], weights=twice[at])
        for y in range(18, 31) for s in "FM" for at in [(age == y) & (sex == s)]
    ]  # fmt: skip
    assert float(standardised_error()(evidence, twice)) == pytest.approx(np.mean(weighed))


def test_a_group_without_one_of_the_ages_has_no_such_value():
    evidence = pl.DataFrame({"cell": [0, 1], "cell_weight": [0.5, 0.5], "absolute_error": [1.0, 2]})
    assert np.isnan(float(standardised_error()(evidence, np.array([1.0, 0.0]))))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"within": (-1,)}, "distances in years"),
        ({"challenge_age": (17,)}, "not below the legal age"),
        ({"youngest": 18}, "youngest is an age below"),
        ({"age_mix": ("18-30", "20-40")}, "ages overlap"),
        ({"age_mix": ("30-18",)}, "run backwards"),
        ({"age_mix": ("old",)}, "LOW-HIGH or LOW-HIGH=WEIGHT"),
        ({"age_mix": ("0-17=1", "18-40")}, "one for each, or for none"),
        ({"age_mix": ("18-30",)}, "nobody of 19 years"),
        ({"age_mix": ("18-30=.",)}, "LOW-HIGH or LOW-HIGH=WEIGHT"),
        ({"age_mix": ("18-30=1.2.3",)}, "LOW-HIGH or LOW-HIGH=WEIGHT"),
        ({"sex": "sex"}, "no ages beside sex"),
        ({"metrics": [MIXED]}, "no age mix is stated: --age-mix 18-30"),
        ({"metrics": [FPR], "legal_age": 10, "challenge_age": (10,)}, "under the legal age of 10"),
    ],
)
def test_what_cannot_be_used_is_refused(options, match):
    with pytest.raises(SpecError) as caught:
        score("age_estimation", AGES, given(SAID), **options)
    assert match in str(caught.value)


def test_a_metric_that_no_one_can_have_is_left_out():
    old = people({"a": "30", "b": "40"}, target="age")
    found = score("age_estimation", old, given({"a": 31, "b": 20}))
    assert FPR not in found.units["metric"].to_list()
    assert values(found, FNR) == {"a": 0.0, "b": 1.0}


def test_ages_that_are_no_ages_are_said_first():
    months = people({str(i): str(200 + i) for i in range(40)}, target="age")
    notes = score("age_estimation", months, given({str(i): 200.5 + i for i in range(40)})).notes
    assert isinstance(notes[0], Caution)
    assert "are they ages in years?" in notes[0]


def test_estimates_of_the_next_row_are_refused():
    rng = np.random.default_rng(0)
    age = rng.integers(1, 90, 200)
    ids = [f"p{i:03}" for i in range(200)]
    truth = people(dict(zip(ids, map(str, age), strict=True)), target="age")
    moved = dict(zip(ids[1:], (age + rng.normal(0, 4, 200))[:-1], strict=True))
    with pytest.raises(JoinError, match="belong to other rows"):
        score("age_estimation", truth, given(moved))


def with_sex(kinds):
    """People of 18 to 20, whose errors are 1 year for women and 3 for men."""
    ages = {f"p{k}": str(18 + k % 3) for k in range(len(kinds))}
    rows = pl.DataFrame(
        [("instance", unit, "sex", kind) for unit, kind in zip(ages, kinds, strict=True)],
        schema=["unit_kind", "unit_id", "attribute", "value"], orient="row",
    )  # fmt: skip
    truth = people(ages, target="age")
    both = pl.concat([ATTRIBUTES.conform(truth.attributes), ATTRIBUTES.conform(rows)])
    off = [1.0 if kind.lower().startswith("f") else 3.0 for kind in kinds]
    said = {unit: float(age) + e for (unit, age), e in zip(ages.items(), off, strict=True)}
    return score(
        "age_estimation", replace(truth, attributes=both), given(said), age_mix=("18-20=1",),
        sex="sex",
    )  # fmt: skip


def test_an_unknown_sex_is_no_third_of_the_mix():
    """Women are 1 year off and men 3: (1 + 3) / 2; of the two of unknown sex nothing is taken."""
    found = with_sex(["f", "m"] * 60 + ["Unknown", " not sure"])
    assert mixed(found) == pytest.approx(2.0)
    told = "2 of 122 people of the mix's ages have no known 'sex'"
    (note,) = [n for n in found.notes if n.startswith(told)]
    assert not isinstance(note, Caution)
    many = with_sex(["f", "m"] * 60 + ["unknown"] * 30).notes
    assert any(isinstance(n, Caution) and n.startswith("30 of 150 people") for n in many)


def test_two_spellings_of_a_sex_are_cautioned_about():
    (told,) = [n for n in with_sex(["f", "m", "F"] * 40).notes if isinstance(n, Caution)]
    assert told.startswith("Values of 'sex' differ in their spelling alone ('F' and 'f')")


def test_a_group_without_one_of_the_cells_is_told_why(tmp_path, monkeypatch, capsys):
    rows = {"id": [f"p{k}" for k in range(200)], "age": [18 + k % 2 for k in range(200)]}
    table = pl.DataFrame(rows).with_columns(
        place=pl.when(pl.int_range(200) < 100).then(pl.lit("north")).otherwise(pl.lit("south"))
    ).filter((pl.col("place") == "north") | (pl.col("age") == 18))  # fmt: skip
    table.write_csv(tmp_path / "p.csv")
    table.select("id", estimate=pl.col("age") + 1.5).write_csv(tmp_path / "e.csv")
    ran = run(monkeypatch, capsys, "audit", f"table:{tmp_path / 'p.csv'}", "--id", "id", "--task",
              "age_estimation", "--predictions", tmp_path / "e.csv", "--score-column", "estimate",
              "--by", "place", "--age-mix", "18-19", "--out", tmp_path / "run", "--replicates",
              "100", "--metric", MIXED)  # fmt: skip
    assert ran.code == 0, ran.err
    assert "has no value: it has nobody in one of the mix's cells" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("text", "low", "weight"),
    [
        (["18-20"], [18, 19, 20], [1 / 3] * 3),
        (["13-17,18-24"], [13, 18], [0.5, 0.5]),
        (["18=1", "19-21=3"], [18, 19], [0.25, 0.75]),
    ],
)
def test_a_mix_is_read(text, low, weight):
    mix = read_age_composition(text, None)
    assert mix.low.tolist() == low
    assert mix.weight.tolist() == pytest.approx(weight)


def test_a_table_of_ages_goes_from_file_to_report(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(2)
    n = 1200
    age, tone = rng.integers(13, 40, n), np.where(rng.random(n) < 0.5, "dark", "light")
    older = np.where(tone == "dark", 4.0, 0.0)  # taken for four years older
    pl.DataFrame(
        {"id": np.arange(n), "age": age, "tone": tone, "sex": rng.choice(["F", "M"], n),
         "estimate": age + older + rng.normal(0, 4, n)}
    ).write_csv(tmp_path / "people.csv")  # fmt: skip
    done = run(
        monkeypatch, capsys, "audit", f"table:{tmp_path / 'people.csv'}", "--task",
        "age_estimation", "--score-column", "estimate", "--by", "tone", "--age-mix", "18-30",
        "--sex", "sex", "--replicates", 200, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0
    found = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    bias = dict(found.filter(metric="bias").select("group", "value").rows())
    assert bias["dark"] - bias["light"] == pytest.approx(4.0, abs=0.7)
    assert set(found["metric"]) == {
        "mean_absolute_error", "bias", "share_within", MIXED, FPR, FNR,
    }  # fmt: skip
    assert found.filter(metric=MIXED)["value"].null_count() == 0
    assert "who do not pass a challenge age of 25" in " ".join(done.out.split())
