"""Age estimation: errors, Challenge-T and the stated mix by group, by hand."""

from __future__ import annotations

import polars as pl

import isolux
from tests.cards._cards import tables_of


def people():
    """Give 20 people of each sex, race and year of 16 to 23; who is of b is taken for 3 older.

    Of race a an estimate is 1 year off to either side in turn: MAE 1, bias 0. Of b it is 3 years
    too old, and 10 too old for those of 17: they alone pass at 25.
    """
    return pl.DataFrame([
        {"id": f"{race}{sex}{age}-{k}", "age": age, "sex": sex, "race": race,
         "estimate": age + ((1 if k % 2 else -1) if race == "a" else 10 if age == 17 else 3)}
        for race in "ab" for sex in "FM" for age in range(16, 24) for k in range(20)
    ])  # fmt: skip


def made(tmp_path, **settings):
    people().write_csv(tmp_path / "ages.csv")
    run = isolux.audit(
        f"table:{tmp_path / 'ages.csv'}", id="id", task="age_estimation", score_column="estimate",
        by="race", replicates=100, **settings,
    )  # fmt: skip
    return isolux.card(run, kind="age-estimation")


def cells(card):
    found = {}
    for table in tables_of(card):
        if table.caption.startswith("Value (95"):
            for row in table.rows:
                titles = [c.title for c in table.columns]
                found.setdefault(row[0], {}).update(zip(titles[1:], row[1:], strict=True))
    return found


def test_errors_and_challenge_by_hand(tmp_path):
    """Of b: (7 × 3 + 10) / 8 = 3.88 years; of the underage (16, 17) half pass: 50 %."""
    rows = cells(made(tmp_path))
    assert rows["a"]["Mean absolute error"].startswith("1.00 years")
    assert rows["b"]["Mean absolute error"].startswith("3.88 years")
    assert rows["a"]["Bias"].startswith("0.0 years")
    passed = "Underage people who pass a challenge age of 25"
    assert rows["b"][passed].startswith("50.0 % (")
    assert "n = 80" in rows["b"][passed]
    assert rows["a"][passed].startswith("0.0 %")
    assert rows["overall"][passed].startswith("25.0 %")


def test_the_mix_is_a_mean_of_cells_of_sex_and_age(tmp_path):
    """At ages 18 to 23 alike everyone of b is 3 years off, of a 1."""
    card = made(tmp_path, age_mix=["18-23"], sex="sex")
    (title,) = [name for name in cells(card)["a"] if "age mix" in name]
    assert cells(card)["a"][title].startswith("1.00 years")
    assert cells(card)["b"][title].startswith("3.00 years")
    assert "ages (18-23) and over the values of sex" in card.markdown()


def test_what_was_not_measured_is_said(tmp_path):
    assert "audit again with --age-mix 18-30 --sex ATTRIBUTE" in made(tmp_path).markdown()
