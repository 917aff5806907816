"""A balanced draw: as many of each cell, short ones named, subjects whole, a seed repeats it."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.api.sample import draw_balanced_sample
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.spec import Grouping
from isolux.core.tables import ATTRIBUTES
from isolux.datasets import load
from isolux.people.filters import filter_people
from tests._shared import shared_data

INFO = DatasetInfo(title="Made", summary="Made up.", references=())


def made(rows, subjects=None) -> Dataset:
    """People from (id, {attribute: value or list of values})."""
    ids = [row[0] for row in rows]
    columns = {"instance_id": ids, "image_id": ids}
    instances = pl.DataFrame(columns | ({"subject_id": subjects} if subjects else {}))
    values = [
        ("instance", unit, attribute, value)
        for unit, held in rows
        for attribute, found in held.items()
        for value in (found if isinstance(found, list) else [found])
    ]
    names = ("unit_kind", "unit_id", "attribute", "value")
    schema = dict.fromkeys(names, pl.String)
    frame = pl.DataFrame(values, schema=schema, orient="row")
    return Dataset("made", INFO, instances, ATTRIBUTES.conform(frame))


def crowd(n=10):
    """Give n of each of race A, B × gender F, M; but only three of B × F."""
    cells = product("AB", "FM", range(n))
    kept = [(r, g, i) for r, g, i in cells if (r, g) != ("B", "F") or i < 3]
    return [(f"{r}{g}{i}", {"race": r, "gender": g}) for r, g, i in kept]


def test_each_cell_gives_as_many_and_the_short_one_is_named():
    found = draw_balanced_sample(made(crowd()), ["race", "gender"], 5)
    # B × F has three people: all of them are drawn and two are lacking
    assert sorted(found.cells.rows()) == [
        ("A", "F", 10, 5, 0),
        ("A", "M", 10, 5, 0),
        ("B", "F", 3, 3, 2),
        ("B", "M", 10, 5, 0),
    ]
    assert found.people.columns == ["instance_id", "image_id", "race", "gender"]
    for unit, _, race, gender in found.people.rows():
        assert unit.startswith(race + gender)
    assert found.people["instance_id"].n_unique() == 18


def test_a_combination_that_nobody_has_is_a_cell_too():
    rows = [("a", {"x": "1", "y": "p"}), ("b", {"x": "2", "y": "q"})]
    cells = draw_balanced_sample(made(rows), ["x", "y"], 1).cells
    assert sorted(cells.rows()) == [
        ("1", "p", 1, 1, 0), ("1", "q", 0, 0, 1), ("2", "p", 0, 0, 1), ("2", "q", 1, 1, 0)
    ]  # fmt: skip


def test_a_seed_repeats_the_set_in_any_order_of_rows():
    rows = crowd()
    names = ["race", "gender"]
    once = set(draw_balanced_sample(made(rows), names, 5, seed=3).people["instance_id"])
    again = set(draw_balanced_sample(made(rows[::-1]), names, 5, seed=3).people["instance_id"])
    other = set(draw_balanced_sample(made(rows), names, 5, seed=4).people["instance_id"])
    assert once == again
    assert once != other


def test_everybody_of_a_cell_is_drawn_equally_often():
    rows = [(str(i), {"x": "1"}) for i in range(10)]
    counts = dict.fromkeys((str(i) for i in range(10)), 0)
    for seed in range(400):
        for unit in draw_balanced_sample(made(rows), ["x"], 3, seed=seed).people["instance_id"]:
            counts[unit] += 1
    # 400 draws with probability .3: 120 ± 9.2; the seeds are fixed, so this never flickers
    assert all(120 - 4 * 9.2 < n < 120 + 4 * 9.2 for n in counts.values())


def test_unknown_and_several_values_are_in_no_cell_and_counted():
    rows = [
        ("a", {"x": "1"}),
        ("b", {"x": ["1", "2"]}),
        ("c", {"x": "unknown"}),
        ("d", {"x": "2"}),
        ("e", {}),
    ]
    found = draw_balanced_sample(made(rows), ["x"], 9)
    assert set(found.people["instance_id"]) == {"a", "d"}
    assert "2 of 5 people have no known value of x: not drawn." in found.notes
    assert "1 of 5 people have several values of x: not drawn." in found.notes


def test_a_subject_is_drawn_whole_or_not_at_all():
    # two photos each, so three a cell cannot be filled: one place stays empty
    rows = [(str(i), {"x": "1"}) for i in range(20)]
    data = made(rows, [f"s{i // 2}" for i in range(20)])
    found = draw_balanced_sample(data, ["x"], 3)
    assert found.people["subject_id"].value_counts()["count"].to_list() == [2]
    assert found.cells.rows() == [("1", 20, 2, 1)]


def test_a_subject_that_does_not_fit_leaves_its_place_to_others():
    data = made([(unit, {"x": "1"}) for unit in "abc"], ["s", "s", None])
    for seed in range(20):
        assert draw_balanced_sample(data, ["x"], 1, seed=seed).people["instance_id"].to_list() == [
            "c"
        ]


def test_a_subject_with_somebody_in_no_cell_is_not_drawn():
    rows = [("a", {"x": "1"}), ("b", {"x": "unknown"}), ("c", {"x": "1"})]
    data = made(rows, ["s", "s", None])
    found = draw_balanced_sample(data, ["x"], 5)
    assert found.people["instance_id"].to_list() == ["c"]
    assert "1 subject(s) have somebody in no cell as well: not drawn." in found.notes


def test_a_person_named_as_a_subject_is_not_that_subject():
    rows = [("s", {"x": "1"}), ("t", {"x": "unknown"})]
    found = draw_balanced_sample(made(rows, [None, "s"]), ["x"], 1)
    assert found.people["instance_id"].to_list() == ["s"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("123?")), min_size=1, max_size=40
    ),
    st.integers(1, 6),
    st.integers(0, 5),
)
def test_no_cell_is_overfull_and_no_subject_halved(people, per_cell, seed):
    rows = [
        (str(i), {"x": value if value != "?" else "unknown"}) for i, (_, value) in enumerate(people)
    ]
    if all(value == "?" for _, value in people):
        return
    found = draw_balanced_sample(made(rows, [s for s, _ in people]), ["x"], per_cell, seed=seed)
    assert (found.cells["drawn"] <= per_cell).all()
    assert (found.cells["drawn"] + found.cells["short"] == per_cell).all()
    photos = {s: sum(s == other for other, _ in people) for s, _ in people}
    for subject, n in found.people["subject_id"].value_counts().rows():
        assert n == photos[subject]


def test_bins_make_cells_of_numbers():
    rows = [(str(i), {"age": str(i)}) for i in range(40)]
    groupings = {"age": Grouping(attribute="age", bins="edges:20")}
    found = draw_balanced_sample(made(rows), ["age"], 7, groupings=groupings)
    assert found.cells["drawn"].to_list() == [7, 7]


def test_an_attribute_may_be_called_as_a_column():
    rows = [("a", {"drawn": "1", "image_id": "x"}), ("b", {"drawn": "2", "image_id": "x"})]
    found = draw_balanced_sample(made(rows), ["drawn", "image_id"], 1)
    assert found.cells["drawn"].to_list() == [1, 1]
    assert found.people.columns == ["instance_id", "image_id", "drawn (value)", "image_id (value)"]


@pytest.mark.parametrize(
    ("names", "per_cell", "error", "match"),
    [
        ([], 1, SpecError, "does not name what to balance"),
        (["race", "race"], 1, SpecError, "does not name what to balance"),
        (["race"], 0, SpecError, r"(?s)--per-cell is too small.*1 or more.*0"),
        (["rase"], 1, UnknownNameError, r"(?s)no attribute named 'rase'.*'race'"),
    ],
)
def test_bad_settings_are_refused(names, per_cell, error, match):
    with pytest.raises(error, match=match):
        draw_balanced_sample(made(crowd()), names, per_cell)


def test_nobody_to_draw_is_refused():
    rows = [("a", {"x": "1", "y": "unknown"}), ("b", {"x": "unknown", "y": "1"})]
    with pytest.raises(SpecError, match=r"(?s)nobody can be drawn.*x, y.*none among 2 people"):
        draw_balanced_sample(made(rows), ["x", "y"], 1)


def test_too_many_cells_are_refused():
    rows = [(str(i), {"x": f"a{i}", "y": f"b{i}"}) for i in range(400)]
    with pytest.raises(SpecError, match=r"(?s)too many cells.*400 of x × 400 of y.*--bins"):
        draw_balanced_sample(made(rows), ["x", "y"], 1)


def test_fairfaces_test_set_of_7476_comes_out_where_there_are_enough_faces():
    """Section 5: 7 races × 2 perceived genders × 6 ages from 20 up × 89."""
    ages = ["10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"]
    rows = [
        (f"{r}{g}{a}{i}", {"race": str(r), "gender": str(g), "age": a})
        for r, g, a, i in product(range(7), range(2), ages, range(95))
    ]
    data = made(rows)
    data = filter_people(data, ["age>=20"], uses_unscored_people=False)
    found = draw_balanced_sample(data, ["race", "gender", "age"], 89)
    assert found.people.height == 7_476
    assert found.cells["short"].to_list() == [0] * 84
    assert "10-19" not in found.people["age"].to_list()


def test_the_real_validation_set_is_short_of_7476_and_says_where():
    data = load("fairface", shared_data("fairface_val/fairface_label_val.csv"))
    adults = filter_people(data, ["age>=20"], uses_unscored_people=False)
    found = draw_balanced_sample(adults, ["race", "gender", "age"], 89)
    table = pl.read_csv(shared_data("fairface_val/fairface_label_val.csv"))
    young = ["0-2", "3-9", "10-19"]
    cells = table.filter(~pl.col("age").is_in(young)).group_by("race", "gender", "age").len()
    assert found.cells.height == cells.height == 84
    assert found.people.height == cells["len"].clip(upper_bound=89).sum()
    assert found.cells.filter(pl.col("short") > 0).height == (cells["len"] < 89).sum()


@pytest.mark.parametrize("many", [10**12 + 1, 10**20])
def test_more_people_than_there_are_cannot_be_asked_for(many):
    with pytest.raises(SpecError, match=r"at most 1,000,000,000,000\s+found: 1000000"):
        draw_balanced_sample(made(crowd()), ["race"], many)
