"""A page without single people: no counts of a handful of them, and none that give one away."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.viewer import DisplayedRun, build_page_contents
from isolux.viewer.name_codes import OVERALL_INDEX
from tests.report._attack import Attack, random_people
from tests.viewer._runs import audited

KEY = ["model", "line", "attribute", "group"]


def contents(frame, by, second=None):
    frames = [frame] if second is None else [frame, second]
    made = [isolux.audit(one, by=by, replicates=100).run for one in frames]
    return build_page_contents([DisplayedRun(run, f"run {i}") for i, run in enumerate(made)])


def groups_of(found, table):
    return set(found.tables[table]["group"])


def counted(found):
    return found.tables["distributions"].with_columns(n=pl.col("counts").list.sum())


def world(**sizes):
    """Draw people of one attribute, of groups of these sizes."""
    place = [name for name, n in sizes.items() for _ in range(n)]
    rows = range(len(place))
    return pl.DataFrame(
        {
            "unit_id": [f"p{i}" for i in rows],
            "place": place,
            "value": [float(i % 3 > 0) for i in rows],
        }
    )


def test_no_spread_of_a_group_whose_value_is_withheld():
    found = build_page_contents([DisplayedRun(audited(), "a")])
    withheld = found.tables["groups"].filter(pl.col("value").is_null())
    assert withheld.height >= 10
    assert found.tables["distributions"].join(withheld, on=KEY, how="semi").is_empty()
    assert counted(found)["n"].min() >= 10
    assert found.manifest["holds"]["fewest"] == 10


def test_a_page_with_single_people_has_every_spread():
    found = build_page_contents([DisplayedRun(audited(), "a")], people=True)
    assert found.tables["distributions"].height == found.tables["groups"].height
    assert found.manifest["holds"]["fewest"] == 0


@pytest.mark.parametrize("alone", [1, 9])
def test_the_others_do_not_give_a_small_group_away(alone):
    found = contents(world(a=300, b=200, c=100, d=alone), ["place"])
    assert groups_of(found, "distributions") == {"overall", "a", "b"}


def test_a_group_that_is_withheld_but_not_small_costs_no_other_its_spread():
    found = contents(world(a=300, b=200, c=100, d=30), ["place"])
    assert groups_of(found, "distributions") == {"overall", "a", "b", "c"}


def test_who_is_in_no_group_is_not_given_away():
    frame = world(a=300, b=200, c=100)
    lost = pl.when(pl.col("unit_id") != "p0").then("place")
    assert groups_of(contents(frame.with_columns(place=lost), ["place"]), "distributions") == {
        "overall", "a", "b",
    }  # fmt: skip


@pytest.mark.parametrize("second", [False, True])
def test_no_spread_of_a_few_can_be_solved_for(second):
    """Whoever adds and subtracts all that is shown, in every way, gets no group of fewer than 10.

    The attack knows each count of a page's spreads, or of who gained and lost, and that they are
    sums over people who are alike in everything (``tests/report/_attack.py``).
    """
    attacked = shown_rows = 0
    for seed in range(4):
        who, names = random_people(seed)
        frame = who.select(
            *(pl.when(pl.col(k) != "?").then(k).alias(k) for k in names),
            unit_id=pl.int_range(pl.len()).cast(pl.String), value=pl.col("right").cast(pl.Float64),
        )  # fmt: skip
        by = [*names, "*".join(names[:2]), *(["*".join(names)] if len(names) > 2 else [])]
        other = frame.with_columns(value=1 - pl.col("value")) if second else None
        found = contents(frame, by, other)
        table = "moves" if second else "distributions"
        shown = cells_of(found, found.tables[table])
        hidden = cells_of(found, found.tables["groups"]).join(
            shown, on=["attribute", "group"], how="anti", nulls_equal=True
        )
        hidden = hidden.filter(pl.col("n_units") < 10).unique(["attribute", "group"])
        assert shown["n_units"].min() >= 10
        attack = Attack(shown.with_columns(value=pl.lit(None)), who, names)
        assert attack.recovered(hidden) == [], seed
        attacked += hidden.height
        shown_rows += shown.filter(pl.col("attribute").is_not_null()).height
    assert attacked > 16
    assert shown_rows > 8


def cells_of(found, table):
    """Name the groups of a table of a page as ``group_metrics`` does, with their counts."""
    names = pl.Series([one["name"] for one in found.manifest["attributes"]])
    groups = found.tables["groups"].select("attribute", "group", "values", "n_units")
    groups = groups.unique(["attribute", "group"])
    if "n_units" not in table.columns:
        table = table.join(groups, on=["attribute", "group"], how="left")
    at = pl.col("attribute")
    name = pl.when(at >= 0).then(pl.lit(names).gather(at.clip(0)))
    return table.select(
        "group", pl.col("values").fill_null([]).list.eval(pl.element().replace("unknown", "?")),
        "n_units", attribute=name,
        metric=pl.lit("accuracy"), label=pl.lit(None, pl.String),
    )  # fmt: skip


def test_photos_of_one_person_are_one_person():
    """Of two units a subject, group c's 18 units are 9 people."""
    who = (pl.int_range(pl.len()) // 2).cast(pl.String)
    frame = world(a=300, b=200, c=18).with_columns(cluster_id=who)
    run = isolux.audit(frame, by=["place"], replicates=100, min_units=1,
                       min_clusters=1).run  # fmt: skip
    shown = groups_of(build_page_contents([DisplayedRun(run, "a")]), "distributions")
    assert shown == {"overall", "a"}


def test_who_gained_is_told_of_groups_of_enough_people_alone():
    frame = world(a=300, b=200, c=100, d=1)
    second = frame.with_columns(value=1 - pl.col("value"))
    found = contents(frame, ["place"], second)
    assert groups_of(found, "moves") == {"overall", "a", "b"}
    everyone = found.tables["moves"].filter(attribute=OVERALL_INDEX)
    assert everyone["up"].sum() + everyone["down"].sum() == 601


def test_who_gained_needs_ten_whom_both_scored():
    frame = world(a=300, b=200, c=100)
    second = frame.filter((pl.col("place") != "c") | (pl.int_range(pl.len()) < 505))
    second = pl.concat([second, world(c=100).with_columns(unit_id="q" + pl.col("unit_id"))])
    found = contents(frame, ["place"], second)
    assert groups_of(found, "distributions") >= {"a", "b", "c"}
    assert groups_of(found, "moves") == {"overall", "a"}


def test_who_gained_counts_the_people_whom_both_models_judged_and_not_their_photos():
    """Group c: 12 people of four photos each in either run, 5 of them (20 photos) in both."""
    who = (pl.int_range(pl.len()) // 4).cast(pl.String)
    frame = world(a=400, b=300, c=76).with_columns(cluster_id=who)
    small = pl.col("place") == "c"
    person = pl.col("cluster_id").cast(pl.Int64) - 175
    settings = {"by": ["place"], "replicates": 100, "min_units": 1, "min_clusters": 1}
    runs = [isolux.audit(frame.filter(~small | kept), **settings).run
            for kept in (person < 12, person >= 7)]  # fmt: skip
    found = build_page_contents([DisplayedRun(run, f"run {i}") for i, run in enumerate(runs)])
    assert groups_of(found, "distributions") == {"overall", "a", "b", "c"}
    assert groups_of(found, "moves") == {"overall", "a"}
