"""Who leads: the group that is served worst, of those that are established to differ."""

import polars as pl
import pytest

from isolux.statements.leading import (
    list_other_worse_groups,
    orient_comparisons_worse_first,
    select_leading_comparisons,
)
from tests.statements._runs import block, run_of

RACES = {"Asian": 0.93, "Black": 0.60, "Indian": 0.94, "White": 0.95}
EVERY_PAIR = [
    ("Asian", "White", 0.001), ("Indian", "White", 0.3), ("Asian", "Indian", 0.4),
    ("Black", "Asian", 0.001), ("Black", "Indian", 0.001), ("Black", "White", 0.001),
]  # fmt: skip


def oriented(*blocks, lower=()):
    run = run_of(*blocks)
    return orient_comparisons_worse_first(run.disparities, run.group_metrics, 0.05, lower)


def leaders(*blocks, lower=()):
    return select_leading_comparisons(oriented(*blocks, lower=lower))


def lead(values, *pairs, lower=(), **more):
    return leaders(block(values, *pairs, **more), lower=lower).row(0, named=True)


def sides(row):
    return row["group"], row["reference"]


def rivals(values, *pairs):
    comparisons = oriented(block(values, *pairs))
    leader = select_leading_comparisons(comparisons).row(0, named=True)
    found = list_other_worse_groups(comparisons, leader)
    return leader, found.select("group", "reference", "is_established", "is_order_open").rows()


def test_the_worst_estimate_leads_beside_the_best_served_group():
    row = lead(RACES, *EVERY_PAIR, sizes={"Black": 60})
    assert sides(row) == ("Black", "White")
    assert (row["gap"], row["worst"]) == (pytest.approx(-0.35), pytest.approx(0.60))
    assert (row["group_value"], row["reference_value"]) == (0.60, 0.95)
    assert (row["n_units"], row["n_units_of_reference"]) == (60, 500)
    assert (row["n_established"], row["is_upwards"]) == (2, False)  # Asian and Black are lower


def test_of_an_error_the_highest_value_leads():
    errors = {"Asian": 0.07, "Black": 0.40, "Indian": 0.06, "White": 0.05}
    row = lead(errors, *EVERY_PAIR, lower={"accuracy"})
    assert sides(row) == ("Black", "White")
    assert (row["gap"], row["worst"]) == (pytest.approx(0.35), pytest.approx(-0.40))


@pytest.mark.parametrize("turned", [False, True])
def test_a_row_is_turned_so_that_the_worse_group_is_first(turned):
    pair = ("White", "Black", 0.001) if turned else ("Black", "White", 0.001)
    row = lead(RACES, pair, half=0.04, sizes={"Black": 60})
    assert sides(row) == ("Black", "White")
    assert [round(row[name], 9) for name in ("gap", "low", "high")] == [-0.35, -0.37, -0.33]
    ends = [round(row[f"simultaneous_{end}"], 9) for end in ("low", "high")]
    assert ends == [-0.39, -0.31]
    assert round(row["near_end"], 9) == 0.31
    assert (row["n_units"], row["n_units_of_reference"]) == (60, 500)


def test_the_reference_is_the_best_served_group_that_the_leader_is_established_to_differ_from():
    values = {"Asian": 0.93, "Black": 0.80, "Indian": 0.97, "White": 0.95}
    pairs = [("Black", "White", 0.01), ("Black", "Indian", 0.2), ("Asian", "White", 0.02)]
    assert sides(lead(values, *pairs)) == ("Black", "White")


def test_with_a_reference_the_worst_group_leads_beside_it():
    """Indian is farther above White than Black is below; all pairs are with White."""
    values = {"Black": 0.60, "Indian": 0.95, "White": 0.70}
    row = lead(values, ("Black", "White", 0.001), ("Indian", "White", 0.001))
    assert sides(row) == ("Black", "White")
    # A reference that is served worst leads itself.
    values = {"Black": 0.80, "Indian": 0.95, "White": 0.70}
    row = lead(values, ("Black", "White", 0.001), ("Indian", "White", 0.001))
    assert sides(row) == ("White", "Indian")


def test_the_order_of_the_first_two_is_open_unless_it_is_established():
    values = {"Asian": 0.93, "Black": 0.60, "Indian": 0.62, "White": 0.95}
    pairs = [("Black", "White", 0.001), ("Indian", "White", 0.001), ("Asian", "White", 0.001)]
    leader, found = rivals(values, *pairs, ("Black", "Indian", 0.7), ("Black", "Asian", 0.001))
    assert sides(leader) == ("Black", "White")
    assert found == [("Indian", "White", True, True), ("Asian", "White", True, False)]
    _, found = rivals(values, *pairs, ("Black", "Indian", 0.04), ("Black", "Asian", 0.001))
    assert found == [("Indian", "White", True, False), ("Asian", "White", True, False)]


def test_a_group_that_looks_worse_is_a_rival_though_nothing_is_established_of_it():
    pairs = [("Asian", "White", 0.001), ("Black", "White", 0.2), ("Black", "Asian", 0.3)]
    leader, found = rivals(RACES, *pairs)
    assert sides(leader) == ("Asian", "White")
    assert found == [("Black", "White", False, True)]
    # Not if it was not tested.
    _, found = rivals(RACES, pairs[0], ("Black", "White", None))
    assert found == []


def test_one_group_that_is_served_better_than_all_others_is_upwards():
    values = {"A": 0.80, "B": 0.81, "C": 0.82, "D": 0.95}
    above = [("A", "D", 0.001), ("B", "D", 0.001), ("C", "D", 0.001)]
    below = [("A", "B", 0.9), ("A", "C", 0.8), ("B", "C", 0.9)]
    row = lead(values, *above, *below)
    assert (sides(row), row["is_upwards"]) == (("A", "D"), True)
    # Another order is established; one group does not differ; there are two groups only.
    assert not lead(values, *above, ("A", "B", 0.9), ("A", "C", 0.01), below[2])["is_upwards"]
    assert not lead(values, *above[:2], ("C", "D", 0.2), *below)["is_upwards"]
    assert not lead({"A": 0.8, "D": 0.95}, ("A", "D", 0.001))["is_upwards"]


def test_with_a_reference_nothing_is_upwards_because_the_others_were_not_compared():
    row = lead(RACES, ("Asian", "White", 0.001), ("Black", "White", 0.001),
               ("Indian", "White", 0.001))  # fmt: skip
    assert (sides(row), row["is_upwards"]) == (("Black", "White"), False)


def test_the_unknown_never_lead_where_a_known_group_differs():
    values = {"Asian": 0.93, "White": 0.95, "unknown": 0.30}
    pairs = [("unknown", "White", 0.001), ("unknown", "Asian", 0.001), ("Asian", "White", 0.01)]
    first, beside = leaders(block(values, *pairs)).iter_rows(named=True)
    assert sides(first) == ("Asian", "White")
    assert (sides(beside), beside["is_known"]) == (("unknown", "White"), False)
    row = lead(values, *pairs[:2])
    assert (sides(row), row["is_known"]) == (("unknown", "White"), False)


def test_beside_a_known_leader_only_the_unknown_themselves_of_single_attributes_stand():
    values = {"Black": 0.60, "unknown": 0.97, "White": 0.95}
    assert leaders(block(values, ("Black", "White", 0.01), ("Black", "unknown", 0.01))).height == 1
    values = {"A × F": 0.6, "A × unknown": 0.2, "B × M": 0.9}
    pairs = [("A × F", "B × M", 0.01), ("A × unknown", "B × M", 0.01)]
    assert leaders(block(values, *pairs, attribute="race*sex"))["group"].to_list() == ["A × F"]


def test_a_group_against_everyone_speaks_where_no_pair_does():
    values = {"A": 0.80, "B": 0.90, "C": 0.91}
    everyone = [("A", "overall", 0.01), ("C", "overall", 0.02)]
    row = lead(values, ("A", "B", 0.2), *everyone)
    assert (sides(row), row["is_pair"], row["is_better"]) == (("A", None), False, False)
    assert row["reference_value"] == pytest.approx(0.87)
    assert sides(lead(values, ("A", "B", 0.01), *everyone)) == ("A", "B")
    row = lead(values, everyone[1])  # only a group that is served better than everyone
    assert (sides(row), row["is_better"]) == (("C", None), True)


@pytest.mark.parametrize(
    ("part_gap", "half", "is_covered"),
    [
        (0.13, 0.01, False),
        (0.40, 0.01, True),
        # Its own interval, half as wide, keeps beyond the part's gap; the simultaneous does not.
        (0.13, 0.30, True),
    ],
)
def test_an_intersection_is_covered_unless_its_simultaneous_interval_exceeds_its_parts(
    part_gap, half, is_covered
):
    part = block({"A": 0.9 - part_gap, "B": 0.9}, ("A", "B", 0.001))
    both = block({"A × F": 0.50, "B × M": 0.90}, ("A × F", "B × M", 0.001), half=half,
                 attribute="race*sex")  # fmt: skip
    rows = leaders(part, both)
    covered = dict(rows.select("attribute", "is_covered").iter_rows())
    assert covered == {"race": False, "race*sex": is_covered}


def test_a_part_of_which_nothing_is_established_covers_by_its_observed_gap():
    part = block({"A": 0.60, "B": 0.9}, ("A", "B", 0.3))
    both = block({"A × F": 0.65, "B × M": 0.90}, ("A × F", "B × M", 0.01), attribute="race*sex")
    assert leaders(part, both)["is_covered"].to_list() == [True]


def test_among_intersections_the_interval_that_keeps_farthest_from_0_leads():
    values = {"A × F": 0.40, "A × M": 0.60, "B × M": 0.90}
    rows = block(values, ("A × F", "B × M", 0.01), ("A × M", "B × M", 0.001), attribute="race*sex")
    for row in rows:  # A × F: 50 points, 2 to 98; A × M: 30 points, 29 to 31
        if row.get("group_a") == "A × F":
            row |= {"simultaneous_low": -0.98, "simultaneous_high": -0.02}
    assert leaders(rows)["group"].to_list() == ["A × M"]
    alone = [row | {"attribute": "cell"} for row in rows]  # groups of one attribute: the worst
    assert leaders(alone)["group"].to_list() == ["A × F"]


def test_in_a_class_too_the_interval_that_keeps_farthest_from_0_leads():
    rows = block({"A": 0.4, "B": 0.6, "C": 0.9}, ("A", "C", 0.01), ("B", "C", 0.001),
                 metric="recall", label="cook")  # fmt: skip
    for row in rows:
        if row.get("group_a") == "A":
            row |= {"simultaneous_low": -0.98, "simultaneous_high": -0.02}
    assert leaders(rows)["group"].to_list() == ["B"]


def test_nothing_leads_where_nothing_is_established():
    assert leaders(block(RACES, ("Black", "White", 0.2), ("Asian", "White", None))).is_empty()


def test_the_order_of_rows_and_the_names_of_groups_change_nothing():
    rows = block(RACES, *EVERY_PAIR)
    first = leaders(rows)
    assert leaders(rows[::-1]).equals(first)
    names = {"Asian": "×", "Black": "<b>", "Indian": "zz", "White": "a b"}
    swap = lambda row: {k: names.get(v, v) if isinstance(v, str) else v for k, v in row.items()}  # noqa: E731
    renamed = leaders([swap(row) for row in rows])
    assert renamed["gap"].equals(first["gap"])
    assert renamed["group"].to_list() == ["<b>"]


def test_the_tables_are_left_as_they_are():
    run = run_of(block(RACES, *EVERY_PAIR))
    before: pl.DataFrame = run.disparities.clone()
    select_leading_comparisons(
        orient_comparisons_worse_first(run.disparities, run.group_metrics, 0.05, ())
    )
    assert run.disparities.equals(before)
