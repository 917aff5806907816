from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import IsoluxError, TableError, UnknownNameError
from isolux.datasets import cluster_by_requested_column
from isolux.datasets.fairface import AGES, INFO, RACES, load
from tests._shared import shared_data

HEADER = "file,age,gender,race,service_test\n"
GOOD = HEADER + "val/1.jpg,3-9,Male,East Asian,False\nval/2.jpg,more than 70,Female,Indian,True\n"


def written(folder: Path, text: str) -> Path:
    (folder / "labels.csv").write_text(text)
    return folder / "labels.csv"


def column(dataset, attribute) -> list[object]:
    return dataset.values_of(attribute)["value"].to_list()


def test_the_label_file_is_read(tmp_path):
    dataset = load(written(tmp_path, GOOD))
    assert dataset.instances["instance_id"].to_list() == ["val/1.jpg", "val/2.jpg"]
    assert dataset.images["uri"].to_list() == ["val/1.jpg", "val/2.jpg"]
    assert column(dataset, "age") == ["3-9", "more than 70"]
    assert column(dataset, "gender") == ["Male", "Female"]
    assert column(dataset, "race") == ["East Asian", "Indian"]
    assert column(dataset, "service_test") == ["False", "True"]
    assert dataset.notes == ()
    assert dataset.values_of("age")["number"].null_count() == 2


def test_whose_judgement_it_is_and_in_which_words():
    assert dict(INFO.terms)["gender"] == "perceived gender presentation"
    assert INFO.label_source == "perceived"
    assert INFO.licence == "CC BY 4.0"
    assert "Kärkkäinen" in INFO.references[0].citation


def test_every_declared_label_is_taken(tmp_path):
    rows = [f"{i}.jpg,{AGES[i % 9]},Male,{RACES[i % 7]},True" for i in range(63)]
    dataset = load(written(tmp_path, HEADER + "\n".join(rows)))
    assert set(column(dataset, "age")) == set(AGES)
    assert set(column(dataset, "race")) == set(RACES)


def test_both_spellings_of_the_oldest_become_one_and_it_is_said(tmp_path):
    dataset = load(written(tmp_path, GOOD + "3.jpg,70+,Male,White,True\n"))
    assert column(dataset, "age") == ["3-9", "more than 70", "more than 70"]
    assert len(dataset.notes) == 1
    assert "1 cell(s) of 'age' say '70+' and are read as 'more than 70'" in dataset.notes[0]
    assert '--label-map "more than 70=70+"' in dataset.notes[0]


def test_predicted_ages_follow_the_same_spelling(tmp_path):
    # Were only the truth respelt, every right answer of "70+" would count as a mistake.
    text = "file,age,gender,race,predicted_age\n1,70+,Male,White,70+\n2,20-29,Male,White,20-29\n"
    dataset = load(written(tmp_path, text))
    assert column(dataset, "predicted_age") == column(dataset, "age") == ["more than 70", "20-29"]


def test_further_columns_are_kept_as_they_are(tmp_path):
    text = "file,age,gender,race,predicted_gender,score\n1.jpg,0-2,Male,White,neither,0.50\n"
    dataset = load(written(tmp_path, text))
    assert column(dataset, "predicted_gender") == ["neither"]
    assert dataset.values_of("score").select("value", "number").rows() == [("0.50", 0.5)]


def test_the_id_may_be_called_image_id_or_be_named(tmp_path):
    text = "image_id,key,age,gender,race\n007,a,0-2,Male,White\n"
    dataset = load(written(tmp_path, text))
    assert dataset.instances["instance_id"].to_list() == ["007"]
    assert dataset.images["uri"].to_list() == [None]
    assert load(tmp_path / "labels.csv", id="key").instances["instance_id"].to_list() == ["a"]


def test_a_cluster_column_is_honoured(tmp_path):
    text = "file,age,gender,race,flickr\n1,0-2,Male,White,u\n2,3-9,Male,Black,u\n"
    dataset = cluster_by_requested_column(load(written(tmp_path, text)), "flickr")
    assert dataset.instances["cluster_id"].to_list() == ["u", "u"]
    with pytest.raises(UnknownNameError, match="no column named 'subject'"):
        cluster_by_requested_column(load(tmp_path / "labels.csv"), "subject")


def test_spreadsheets_truth_and_parquets_are_the_same(tmp_path):
    upper = load(written(tmp_path, GOOD.replace("True", "TRUE").replace("False", "FALSE")))
    assert column(upper, "service_test") == ["False", "True"]
    frame = pl.read_csv(tmp_path / "labels.csv").with_columns(service_test=pl.Series([False, True]))
    frame.write_parquet(tmp_path / "labels.parquet")
    assert column(load(tmp_path / "labels.parquet"), "service_test") == ["False", "True"]


def test_empty_cells_are_unknown_and_counted(tmp_path):
    dataset = load(written(tmp_path, HEADER + "1.jpg,,Male,,True\n2.jpg,0-2,Male,,True\n"))
    assert column(dataset, "race") == [None, None]
    assert dataset.notes == ("1 face(s) have no age.", "2 face(s) have no race.")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Indian", "Asian", "2, column 'race'.*did you mean"),
        ("Male", "male", "1, column 'gender'.*did you mean 'Male'"),
        ("3-9", "4-9", "1, column 'age'.*did you mean"),
        ("True", "yes", "2, column 'service_test'"),
    ],
)
def test_a_label_that_no_one_declared_is_named_with_its_row(tmp_path, old, new, words):
    path = written(tmp_path, GOOD.replace(old, new))
    found = new.title() if new == "yes" else new
    with pytest.raises(
        TableError,
        match=rf"(?s)1 cell\(s\) hold a label that FairFace does not declare.*expected: one of"
        rf".*found: '{found}'.*labels\.csv, row {words}",
    ):
        load(path)


@pytest.mark.parametrize("name", ["age", "gender", "race"])
def test_a_missing_column_is_named(tmp_path, name):
    with pytest.raises(UnknownNameError, match=f"there is no column named '{name}'"):
        load(written(tmp_path, GOOD.replace(name, "x", 1)))


def test_a_table_without_ids_is_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="there is no column named 'file'"):
        load(written(tmp_path, "age,gender,race\n0-2,Male,White\n"))


def test_repeated_files_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"(?s)'val/1.jpg' in rows 1 and 3"):
        load(written(tmp_path, GOOD + "val/1.jpg,0-2,Male,White,True\n"))


DAMAGED = HEADER + (
    "1.jpg,20-29,Male,White,True\n2.jpg,9-Mar,Male,White,True\n"
    "3.jpg,19-Oct,Male,White,True\n4.jpg,9-Mar,Male,White,True\n"
)


def test_ages_that_a_spreadsheet_damaged_are_refused_with_the_likely_cause(tmp_path):
    with pytest.raises(
        TableError,
        match=r"(?s)a spreadsheet seems to have turned ages into dates.*'9-Mar'; in all 3 cell\(s\)"
        r": '9-Mar' for 3-9, '19-Oct' for 10-19.*row 2, column 'age'.*repair_ages=yes",
    ):
        load(written(tmp_path, DAMAGED))


def test_damaged_ages_are_repaired_on_request_and_counted(tmp_path):
    dataset = load(written(tmp_path, DAMAGED), repair_ages=True)
    assert column(dataset, "age") == ["20-29", "3-9", "10-19", "3-9"]
    assert len(dataset.notes) == 2
    assert "2 cell(s) of 'age' said '9-Mar'" in dataset.notes[0]
    assert "repaired to '3-9'" in dataset.notes[0]
    assert "1 cell(s) of 'age' said '19-Oct'" in dataset.notes[1]


@pytest.mark.parametrize("cell", ["2019-10-01", "43739", "Oct-19", "3-Sep", "45360"])
def test_other_spellings_of_the_damage_are_recognised(tmp_path, cell):
    text = DAMAGED.replace("9-Mar", cell)
    with pytest.raises(TableError, match="a spreadsheet seems to have turned ages into dates"):
        load(written(tmp_path, text))
    assert set(column(load(tmp_path / "labels.csv", repair_ages=True), "age")) <= set(AGES)


def test_predicted_ages_are_repaired_with_the_true_ones(tmp_path):
    text = (
        "file,age,gender,race,predicted_age\n1,20-29,Male,White,9-Mar\n2,20-29,Male,White,20-29\n"
    )
    with pytest.raises(TableError, match=r"(?s)turned ages into dates.*column 'predicted_age'"):
        load(written(tmp_path, text))
    dataset = load(tmp_path / "labels.csv", repair_ages=True)
    assert column(dataset, "predicted_age") == ["3-9", "20-29"]


def test_a_date_that_was_no_age_is_refused_even_with_repair(tmp_path):
    text = DAMAGED.replace("19-Oct", "2-Jan")
    with pytest.raises(TableError, match=r"(?s)does not declare.*'2-Jan'"):
        load(written(tmp_path, text), repair_ages=True)


@given(st.text('-/.019MarOct+ ,\n"', max_size=40))
def test_any_ages_give_a_dataset_or_our_own_error(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("fuzz") / "a.csv"
    path.write_text(HEADER + text, newline="")
    for repair in (False, True):
        with suppress(IsoluxError):
            assert set(column(load(path, repair_ages=repair), "age")) <= {*AGES, None}


# ── real files ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("fairface_label_val", "fairface/val/1.jpg"),
        ("fairface_label_val_expanded", "fairface/val/1.jpg"),
        ("fairface_label_val_expanded_fair", "val/1.jpg"),
    ],
)
def test_the_real_validation_labels(name, first):
    path = shared_data(f"fairface_val/{name}.csv")
    dataset = load(path)
    assert dataset.instances.height == dataset.images.height == 10_954
    assert dataset.instances["instance_id"][0] == first
    assert dataset.notes == ()  # none of the three is damaged
    assert dataset.inputs == {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    ages = dict(dataset.values_of("age")["value"].value_counts().iter_rows())
    # Counted in the file with cut, sort and uniq.
    assert ages == dict(zip(AGES, [199, 1356, 1181, 3300, 2330, 1353, 796, 321, 118], strict=True))


def test_the_real_faces_that_services_judged():
    dataset = load(shared_data("fairface_services/labels_3k.csv"))
    assert dataset.instances.height == 2_998
    assert dataset.instances["instance_id"][0] == "1"


def test_a_services_own_races_are_not_fairfaces():
    with pytest.raises(TableError, match=r"(?s)900 cell\(s\) hold a label.*found: 'Asian'"):
        load(shared_data("fairface_services/deepface_3k.csv"))
