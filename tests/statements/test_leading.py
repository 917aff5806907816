"""Who leads: the group that is served worst, of those that are shown to differ."""

import polars as pl
import pytest

from isolux.statements.leading import find_leading_comparisons, flag_known_groups

MEASURE = {"model": "m", "task": "t", "metric": "accuracy", "label": None, "threshold": None}


def values(attribute="race", /, **of):
    rows = [MEASURE | {"attribute": attribute, "group": name, "value": value,
                       "values": name.split(" × ")} for name, value in of.items()]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"label": pl.String, "threshold": pl.Float64})


def pairs(groups, *of, reference=None):
    """Make rows of two groups and their adjusted p: value a − b, within 1 point either way."""
    value = {(row["attribute"], row["group"]): row["value"] for row in groups.to_dicts()}
    attribute = groups["attribute"][0]
    rows = []
    for a, b, p in of:
        gap = value[attribute, a] - value[attribute, b]
        rows.append(
            MEASURE | {"attribute": attribute, "group_a": a, "group_b": b, "value": gap,
                       "low": gap - 0.01, "high": gap + 0.01, "p_adjusted": p,
                       "differs": p <= 0.05, "pair": True}
        )  # fmt: skip
    found = pl.DataFrame(rows, schema_overrides={"label": pl.String, "threshold": pl.Float64})
    return flag_known_groups(found, groups)


def lead(groups, *of, lower=()):
    return find_leading_comparisons(pairs(groups, *of), groups, lower).row(0, named=True)


RACES = values(Asian=0.93, Black=0.60, Indian=0.94, White=0.95)
EVERY_PAIR = [
    ("Asian", "White", 0.001), ("Indian", "White", 0.3), ("Asian", "Indian", 0.4),
    ("Black", "Asian", 0.001), ("Black", "Indian", 0.001), ("Black", "White", 0.001),
]  # fmt: skip


def test_the_worst_estimate_leads_beside_the_best_served_group():
    row = lead(RACES, *EVERY_PAIR)
    assert (row["group_a"], row["group_b"], round(row["value"], 9)) == ("Black", "White", -0.35)
    assert row["worst"] == pytest.approx(0.60)
    assert row["second_group"] is None  # Asian is next, and shown to be better than Black


def test_of_an_error_the_highest_value_leads():
    errors = values(Asian=0.07, Black=0.40, Indian=0.06, White=0.05)
    row = lead(errors, *EVERY_PAIR, lower={"accuracy"})
    assert (row["group_a"], row["group_b"]) == ("Black", "White")
    assert row["worst"] == pytest.approx(-0.40)


def test_both_are_named_where_the_order_of_the_first_two_is_not_established():
    groups = values(Asian=0.93, Black=0.60, Indian=0.62, White=0.95)
    of = [("Black", "White", 0.001), ("Indian", "White", 0.001), ("Black", "Indian", 0.7)]
    row = lead(groups, *of)
    assert (row["group_a"], row["second_group"], row["second_reference"]) == (
        "Black", "Indian", "White",
    )  # fmt: skip
    assert row["second_differs"] is True
    # −.33, and its interval turns with it.
    assert [round(row[f"second_{name}"], 9) for name in ("value", "low", "high")] == [
        -0.33, -0.34, -0.32,
    ]  # fmt: skip
    ordered = [*of[:2], ("Black", "Indian", 0.04)]
    assert lead(groups, *ordered)["second_group"] is None


def test_a_group_that_looks_worse_is_named_though_its_difference_is_not_established():
    of = [("Asian", "White", 0.001), ("Black", "White", 0.2), ("Black", "Asian", 0.3)]
    row = lead(RACES, *of)
    assert (row["group_a"], row["second_group"], row["second_differs"]) == ("Asian", "Black", False)
    assert row["second_reference"] == "White"


def test_a_group_that_was_not_tested_is_not_named_second():
    of = pairs(RACES, ("Asian", "White", 0.001), ("Black", "White", 0.2))
    of = of.with_columns(p_adjusted=pl.when(pl.col("group_a") == "Asian").then("p_adjusted"))
    assert find_leading_comparisons(of, RACES, ()).row(0, named=True)["second_group"] is None


def test_where_the_best_group_is_too_small_to_be_told_apart_the_next_best_is_the_reference():
    groups = values(Asian=0.93, Black=0.80, Indian=0.97, White=0.95)
    of = [("Black", "White", 0.01), ("Black", "Indian", 0.2), ("Asian", "White", 0.02)]
    row = lead(groups, *of)
    assert (row["group_a"], row["group_b"]) == ("Black", "White")


def test_with_a_reference_the_worst_group_leads_even_if_a_better_one_is_farther_from_it():
    groups = values(Black=0.60, Indian=0.95, White=0.70)
    row = lead(groups, ("Black", "White", 0.001), ("Indian", "White", 0.001))
    assert (row["group_a"], row["group_b"]) == ("Black", "White")
    assert row["second_group"] is None  # the reference is shown to be better than Black


def test_the_unknown_never_lead_where_a_known_group_differs():
    groups = values(Asian=0.93, White=0.95, unknown=0.30)
    of = [("unknown", "White", 0.001), ("unknown", "Asian", 0.001), ("Asian", "White", 0.01)]
    row = lead(groups, *of)
    assert (row["group_a"], row["second_group"]) == ("Asian", None)
    assert lead(groups, *of[:2])["group_a"] == "unknown"


@pytest.mark.parametrize(("part_gap", "covered"), [(0.13, False), (0.40, True)])
def test_an_intersection_is_covered_unless_its_interval_keeps_beyond_its_parts(part_gap, covered):
    part = values(A=0.9 - part_gap, B=0.9)
    both = values("race*sex", **{"A × F": 0.50, "B × M": 0.90})  # a gap of 40 points, 39 to 41
    rows = pl.concat(
        [pairs(part, ("A", "B", 0.001)), pairs(both, ("A × F", "B × M", 0.001))]
    )  # fmt: skip
    of = find_leading_comparisons(rows, pl.concat([part, both]), ())
    assert of.filter(attribute="race*sex")["covered"].to_list() == [covered]
    assert of.filter(attribute="race")["covered"].to_list() == [False]


def test_nothing_leads_where_nothing_differs():
    of = pairs(RACES, ("Black", "White", 0.2))
    assert find_leading_comparisons(of, RACES, ()).height == 0


def test_a_reference_that_is_served_worst_leads_and_what_looks_worse_is_named():
    groups = values(Ref=0.65, White=0.95, Worse=0.58)
    rows = pairs(groups, ("White", "Ref", 0.001), ("Worse", "Ref", 0.6))
    rows = rows.with_columns(n_units_a=pl.Series([1500, 55]), n_units_b=200)
    row = find_leading_comparisons(rows, groups, ()).row(0, named=True)
    # The table has White less Ref, .30 (.29 to .31), of 1,500 and 200 people: turned round.
    assert (row["group_a"], row["group_b"]) == ("Ref", "White")
    assert [round(row[name], 9) for name in ("value", "low", "high")] == [-0.30, -0.31, -0.29]
    assert (row["n_units_a"], row["n_units_b"]) == (200, 1500)
    assert (row["second_group"], row["second_reference"], row["second_differs"]) == (
        "Worse", "Ref", False,
    )  # fmt: skip


def test_all_groups_whose_order_to_the_worst_is_not_established_are_counted():
    groups = values(Asian=0.93, Black=0.60, Indian=0.62, Other=0.64, White=0.95)
    of = [("Black", "White", 0.001), ("Indian", "White", 0.001), ("Other", "White", 0.001),
          ("Asian", "White", 0.001), ("Black", "Indian", 0.7), ("Black", "Other", 0.4),
          ("Black", "Asian", 0.001)]  # fmt: skip
    row = lead(groups, *of)
    assert (row["second_group"], row["n_others"]) == ("Indian", 1)  # and Other; Asian is better
    # Of Indian it is shown that they are better off: Other comes next, and alone.
    row = lead(groups, *[o if o[:2] != ("Black", "Indian") else (*o[:2], 0.01) for o in of])
    assert (row["second_group"], row["n_others"]) == ("Other", 0)
