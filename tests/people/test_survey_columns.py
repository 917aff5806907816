"""The columns of --weight and --strata: what they must hold, and what is said if they do not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import IsoluxError, TableError, UnknownNameError
from isolux.core.spec import People, Sample
from isolux.people.loading import load_people

PEOPLE = "id,w,s,house\na,2,north,1\nb,1.5,north,2\nc,0,south,3\nd,3,south,4\n"


def _loaded(folder: Path, text: str = PEOPLE, **people: object) -> Dataset:
    file = folder / "people.csv"
    file.write_text(text, encoding="utf-8")
    names = ("weight", "strata", "population_size")
    named = {name: people.pop(name) for name in names if name in people}
    said = People(data=f"table:{file}", id="id", **people)
    return load_people(said, sample=Sample(**named))


def test_weights_and_strata_are_those_of_the_file(tmp_path):
    found = _loaded(tmp_path, weight="w", strata="s", cluster="house").survey_sample
    assert found.rows() == [
        ("a", 2.0, "north", 2), ("b", 1.5, "north", 2), ("c", 0.0, "south", 2),
        ("d", 3.0, "south", 2),
    ]  # fmt: skip


def test_without_a_column_nothing_is_attached(tmp_path):
    assert _loaded(tmp_path).survey_sample is None


def test_a_stratum_has_the_clusters_that_were_drawn_from_it_whoever_is_asked_about(tmp_path):
    found = _loaded(tmp_path, strata="s", cluster="house", only=("house=1,3",))
    assert found.instances.height == 2
    assert found.survey_sample["stratum_clusters"].to_list() == [2, 2, 2, 2]


def test_weights_may_stand_in_a_second_table(tmp_path):
    (tmp_path / "more.csv").write_text("id,mass\na,1\nb,2\nc,3\nd,4\n", encoding="utf-8")
    found = _loaded(tmp_path, weight="mass", attributes=str(tmp_path / "more.csv"))
    assert found.survey_sample["weight"].to_list() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("-1", "1 weight is negative"),
        ("", "1 of 4 people have no weight that can be used"),
        ("nan", "1 of 4 people have no weight that can be used"),
        ("inf", "1 of 4 people have no weight that can be used"),
        ("many", "1 of 4 people have no weight that can be used.*found: 'many' for 'b'"),
    ],
)
def test_weights_that_cannot_be_used_are_named(tmp_path, cell, said):
    with pytest.raises(TableError, match=f"(?s){said}"):
        _loaded(tmp_path, PEOPLE.replace("1.5", cell), weight="w")


def test_weights_of_0_alone_are_refused(tmp_path):
    text = "id,w\na,0\nb,0\n"
    with pytest.raises(TableError, match="every weight is 0"):
        _loaded(tmp_path, text, weight="w")


def test_an_unknown_column_is_named_with_the_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match=r"(?s)no column named 'hous'.*did you mean 'house'"):
        _loaded(tmp_path, strata="hous")


def test_a_missing_stratum_is_refused(tmp_path):
    with pytest.raises(TableError, match="1 of 4 people have no stratum"):
        _loaded(tmp_path, PEOPLE.replace("3,south", "3,"), strata="s")


def test_a_stratum_of_one_cluster_is_refused_by_name(tmp_path):
    with pytest.raises(TableError, match=r"(?s)2 of 4 strata have a single cluster.*'w', 'x'"):
        _loaded(tmp_path, "id,s\na,w\nb,x\nc,y\nd,y\ne,z\nf,z\n", strata="s")


def test_a_cluster_in_two_strata_is_refused(tmp_path):
    text = PEOPLE.replace("south,3", "south,2")
    with pytest.raises(TableError, match=r"(?s)1 cluster lies in several strata.*'2' in north"):
        _loaded(tmp_path, text, strata="s", cluster="house")


def test_several_values_of_one_person_are_refused(tmp_path):
    text = PEOPLE.replace("b,1.5", "b,1.5;2")
    with pytest.raises(TableError, match="'w' has several values for one person"):
        _loaded(tmp_path, text, weight="w", separator=";")


def test_rows_are_clusters_where_none_are_named(tmp_path):
    found = _loaded(tmp_path, strata="s").survey_sample
    assert found["stratum_clusters"].to_list() == [2, 2, 2, 2]


def test_people_who_withdrew_are_named_in_no_error(tmp_path):
    (tmp_path / "gone.txt").write_text("b\n", encoding="utf-8")
    with pytest.raises(IsoluxError) as error:
        _loaded(
            tmp_path, PEOPLE.replace("1.5", "-4").replace("d,3", "d,-2"), weight="w",
            withdrawn=str(tmp_path / "gone.txt"),
        )  # fmt: skip
    assert "'b'" not in str(error.value)
    assert "'d'" in str(error.value)


def test_the_table_has_a_row_a_person(tmp_path):
    found = _loaded(tmp_path, weight="w").survey_sample
    assert found.schema == {
        "instance_id": pl.String, "weight": pl.Float64, "stratum": pl.String,
        "stratum_clusters": pl.Int64,
    }  # fmt: skip


def test_a_population_s_size_is_a_number_or_a_column(tmp_path):
    found = _loaded(tmp_path, strata="s", population_size="4").survey_sample
    assert found["stratum_size"].to_list() == [4.0] * 4
    text = "id,s,n\na,x,5\nb,x,5\nc,y,9\nd,y,9\n"
    found = _loaded(tmp_path, text, strata="s", population_size="n").survey_sample
    assert found["stratum_size"].to_list() == [5.0, 5.0, 9.0, 9.0]


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("1", "fewer clusters than were drawn"),
        ("n", r"a stratum has several sizes(.|\n)*5 and 6 in .x."),
        ("word", "4 of 4 people have no size"),
        ("none", "no column named 'none'"),
    ],
)
def test_sizes_that_cannot_be_are_named(tmp_path, size, said):
    text = "id,s,n,word\na,x,5,q\nb,x,6,q\nc,y,9,q\nd,y,9,q\n"
    with pytest.raises(IsoluxError, match=said):
        _loaded(tmp_path, text, strata="s", population_size=size)
