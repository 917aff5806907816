from __future__ import annotations

import datetime as dt
from contextlib import suppress
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, TableError, UnknownNameError
from isolux.core.spec import parse_spec
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets.table import load
from isolux.io import sha256_file
from isolux.people.loading import _list_possible_columns

ROWS = "person,photo,race,age,tone,subject\na,1.jpg,x,31,3;4,s1\nb,2.jpg,,x,5,s1\nc,2.jpg,y,7,,\n"


@pytest.fixture
def people(tmp_path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(ROWS)
    return path


def values(dataset, attribute) -> list[tuple[object, ...]]:
    return dataset.values_of(attribute).select("unit_id", "value", "number").rows()


def written(folder: Path, text: str, name: str = "a.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_every_column_but_id_and_image_is_an_attribute(people):
    dataset = load(people, id="person", image="photo")
    assert dataset.instances.select("instance_id", "image_id").rows() == [
        ("a", "1.jpg"),
        ("b", "2.jpg"),
        ("c", "2.jpg"),
    ]
    assert dataset.images.select("image_id", "uri").rows() == [
        ("1.jpg", "1.jpg"),
        ("2.jpg", "2.jpg"),
    ]
    assert dataset.attributes["attribute"].unique(maintain_order=True).to_list() == [
        "race",
        "age",
        "tone",
        "subject",
    ]
    assert values(dataset, "race") == [("a", "x", None), ("b", None, None), ("c", "y", None)]
    assert dataset.inputs == {str(people): sha256_file(people)}


def test_tables_are_as_declared(people):
    dataset = load(people, id="person")
    for frame, table in (
        (dataset.instances, INSTANCES),
        (dataset.attributes, ATTRIBUTES),
        (dataset.images, IMAGES),
    ):
        assert check(frame, table).equals(frame)
    assert set(dataset.attributes["unit_kind"]) == {"instance"}


def test_separated_cells_are_several_values(people):
    dataset = load(people, id="person", separator=";")
    assert values(dataset, "tone") == [
        ("a", "3", 3.0),
        ("a", "4", 4.0),
        ("b", "5", 5.0),
        ("c", None, None),
    ]
    assert values(load(people, id="person"), "tone")[0] == ("a", "3;4", None)


def test_lists_are_several_values_in_every_typed_format(tmp_path):
    frame = pl.DataFrame(
        {"id": ["a", "b", "c"], "tones": [[3, 4], [], None], "words": [["x"], ["y", ""], ["z"]]}
    )
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ndjson(tmp_path / "a.jsonl")
    frame.write_ipc(tmp_path / "a.feather")
    for name in ("a.parquet", "a.jsonl", "a.feather"):
        dataset = load(tmp_path / name)
        assert values(dataset, "tones") == [
            ("a", "3", 3.0),
            ("a", "4", 4.0),
            ("b", None, None),
            ("c", None, None),
        ], name
        assert values(dataset, "words") == [("a", "x", None), ("b", "y", None), ("c", "z", None)]


def test_columns_choose_the_attributes_and_the_cluster_need_not_be_one(people):
    dataset = cluster_by_requested_column(load(people, id="person", columns=["race"]), "subject")
    assert set(dataset.attributes["attribute"]) == {"race"}
    assert dataset.instances["cluster_id"].to_list() == ["s1", "s1", None]
    assert dataset.notes == ("1 row(s) have no 'subject', and each is a cluster by itself.",)


def test_without_a_cluster_rows_are_clusters(people):
    assert load(people, id="person").instances["cluster_id"].null_count() == 3


def test_a_cluster_may_be_the_image(people):
    dataset = cluster_by_requested_column(load(people, id="person", image="photo"), "image_id")
    assert dataset.instances["cluster_id"].to_list() == ["1.jpg", "2.jpg", "2.jpg"]
    assert cluster_by_requested_column(load(people, id="person"), "photo").instances[
        "cluster_id"
    ].to_list() == [
        "1.jpg",
        "2.jpg",
        "2.jpg",
    ]


def test_columns_named_as_those_of_instances_are_taken_over(tmp_path):
    path = written(tmp_path, "id,image_id,subject_id,cluster_id,classes\n1,i,s,k,c\n2,i,s,,c\n")
    first = load(path).instances
    assert first.select("image_id", "subject_id").rows() == [("i", "s"), ("i", "s")]
    for column, found in (
        ("image_id", ["i", "i"]),
        ("subject_id", ["s", "s"]),
        ("cluster_id", ["k", None]),
        ("classes", ["c", "c"]),
        ("id", ["1", "2"]),
    ):
        assert (
            cluster_by_requested_column(load(path), column).instances["cluster_id"].to_list()
            == found
        ), column


def test_an_unknown_cluster_names_near_columns(people):
    with pytest.raises(UnknownNameError, match=r"(?s)no column named 'subjects'.*'subject'"):
        cluster_by_requested_column(load(people), "subjects")


@pytest.mark.parametrize(
    ("header", "column"),
    [("id,file", "id"), ("file,path", "file"), ("x,filename", "filename"), ("path,id", "id")],
)
def test_the_id_is_the_first_known_column_that_is_unique(tmp_path, header, column):
    dataset = load(written(tmp_path, f"{header}\na,1\nb,2\n"))
    at = header.split(",").index(column)
    assert dataset.instances["instance_id"].to_list() == [["a", "b"], ["1", "2"]][at]
    assert dataset.notes == ()


@pytest.mark.parametrize("cells", ["a\na", "a\n\u2003"])
def test_a_known_column_that_cannot_identify_gives_way_to_the_row_number(tmp_path, cells):
    one, two = cells.split("\n")
    dataset = load(written(tmp_path, f"image_id,race\n{one},x\n{two},y\n"))
    assert dataset.instances["instance_id"].to_list() == ["1", "2"]
    assert "identified by their number" in dataset.notes[0]
    assert "'image_id' may be empty or occur twice" in dataset.notes[0]


def test_a_known_column_of_lists_cannot_identify(tmp_path):
    pl.DataFrame({"id": [["a"], ["b"]], "file": ["x", "y"]}).write_parquet(tmp_path / "a.parquet")
    dataset = load(tmp_path / "a.parquet")
    assert dataset.instances["instance_id"].to_list() == ["x", "y"]


def test_a_table_without_ids_is_numbered(tmp_path):
    dataset = load(written(tmp_path, "race\nx\ny\n"))
    assert dataset.instances["instance_id"].to_list() == ["1", "2"]
    assert "it has no column id, instance_id" in dataset.notes[0]
    assert dataset.images["uri"].null_count() == 2


def test_ids_keep_their_zeros_and_whole_floats_lose_their_point(tmp_path):
    dataset = load(written(tmp_path, "id\n007\n7\n"))
    assert dataset.instances["instance_id"].to_list() == ["007", "7"]
    pl.DataFrame({"id": [7.0, 8.0]}).write_parquet(tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").instances["instance_id"].to_list() == ["7", "8"]


def test_repeated_ids_name_both_rows_and_a_way_out(tmp_path):
    path = written(tmp_path, "key,tone\na,1\nb,2\na,3\na,4\n")
    with pytest.raises(
        TableError,
        match=r"(?s)two rows have the same id.*'a' in rows 1 and 3 \(2 row\(s\) repeat an id\)"
        r".*a\.csv, row 3, column 'key'.*split by a separator",
    ):
        load(path, id="key")


def test_rows_without_an_id_are_named(tmp_path):
    with pytest.raises(TableError, match=r"(?s)1 row\(s\) have no id.*row 2, column 'key'"):
        load(written(tmp_path, "key,x\na,1\n,2\n"), id="key")


def test_numbers_are_found_and_their_text_kept(tmp_path):
    path = written(tmp_path, "id,income,code\n1,1e3,007\n2,unknown,8\n3,-2.50,\n")
    dataset = load(path)
    assert values(dataset, "income") == [
        ("1", "1e3", 1000.0),
        ("2", "unknown", None),
        ("3", "-2.50", -2.5),
    ]
    assert values(dataset, "code")[0] == ("1", "007", 7.0)


def test_a_column_that_must_be_numeric_names_the_cell_that_is_not(people):
    assert load(people, id="person").values_of("age")["number"].null_count() == 3
    with pytest.raises(
        TableError, match=r"(?s)1 cell\(s\) are not numbers.*'x'.*row 2, column 'age'"
    ):
        load(people, id="person", numeric=["age"])
    with pytest.raises(UnknownNameError, match="no column named 'ages'"):
        load(people, numeric=["ages"])
    with pytest.raises(UnknownNameError, match="no column named 'faces'"):
        load(people, columns=["faces"])
    with pytest.raises(UnknownNameError, match="no column named 'pic'"):
        load(people, image="pic")


def test_a_group_is_the_same_from_csv_and_from_pandas(tmp_path):
    # pandas turns whole numbers beside a gap into floats.
    frame = pd.DataFrame({"id": ["a", "b"], "grade": [3, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "b.csv", index=False)
    assert values(load(tmp_path / "a.parquet"), "grade") == [("a", "3", 3.0), ("b", None, None)]
    written(tmp_path, "id,grade\na,3\nb,\n")
    assert values(load(tmp_path / "a.csv"), "grade") == [("a", "3", 3.0), ("b", None, None)]


def test_dates_and_truth_are_values(tmp_path):
    pl.DataFrame({"id": ["a"], "born": [dt.date(2001, 2, 3)], "yes": [True]}).write_parquet(
        tmp_path / "a.parquet"
    )
    dataset = load(tmp_path / "a.parquet")
    assert values(dataset, "born") == [("a", "2001-02-03", None)]
    assert values(dataset, "yes") == [("a", "true", None)]


def test_vectors_structures_and_bytes_are_left_out_and_said(tmp_path):
    pl.DataFrame(
        {
            "id": ["a"],
            "race": ["x"],
            "embedding": [[0.1, 0.2]],
            "box": [{"x": 1}],
            "jpeg": [b"\xff"],
        }
    ).write_parquet(tmp_path / "a.parquet")
    dataset = load(tmp_path / "a.parquet")
    assert set(dataset.attributes["attribute"]) == {"race"}
    assert len(dataset.notes) == 1
    assert "vectors, structures or bytes: 'embedding', 'box', 'jpeg'." in dataset.notes[0]
    with pytest.raises(TableError, match=r"(?s)cannot be read as text.*column 'box'"):
        load(tmp_path / "a.parquet", columns=["box"])


def test_lengths_of_time_are_numbers_of_seconds_and_said(tmp_path):
    pl.DataFrame(
        {"id": ["a", "b"], "wait": [dt.timedelta(minutes=1), dt.timedelta(seconds=1.5)]}
    ).write_ipc(tmp_path / "a.arrow")
    dataset = load(tmp_path / "a.arrow")
    assert dataset.attributes["number"].to_list() == [60.0, 1.5]
    assert dataset.notes == ("Lengths of time are read as seconds: 'wait'.",)


def test_image_paths_stay_inside_the_root(tmp_path):
    path = written(tmp_path, f"id,file\n1,{tmp_path.resolve()}/faces/1.jpg\n2,b.jpg\n")
    assert load(path, root=tmp_path / "faces", image=None).images.height == 2
    assert load(path, root=tmp_path).images["uri"].to_list() == ["faces/1.jpg", "b.jpg"]
    web = written(tmp_path, "id,file\n1,https://example.org/../1.jpg\n", "w.csv")
    assert load(web, root=tmp_path).images["uri"][0].startswith("https://")


@pytest.mark.parametrize("cell", ["../1.jpg", "/etc/passwd", "a/../../b", "C:\\x.jpg", "a\\..\\b"])
def test_image_paths_that_leave_the_root_are_refused(tmp_path, cell):
    path = written(tmp_path, f"id,file\n1,a.jpg\n2,{cell}\n")
    with pytest.raises(TableError, match=r"(?s)leads out of the dataset's folder"):
        load(path, root=tmp_path)
    assert load(path).images["uri"][1] == cell


def test_names_that_look_like_markup_are_only_text(tmp_path):
    dataset = load(written(tmp_path, 'id,<script>\n1,"<b>&\n"\n'))
    assert values(dataset, "<script>") == [("1", "<b>&", None)]


def test_a_file_that_is_none_is_said(tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        load(tmp_path / "none.csv")


PIECES = st.lists(
    st.sampled_from(
        ["id", "file", ",", ",", "\n", "\n", '"', ";", " ", "1", "0.5", "nan", "1e999", "é",
         "../a", "cluster_id", "classes", "subject_id", "image_id", "\r\n", "|", "\u2003"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(
    text=PIECES,
    separator=st.sampled_from([None, ";", "", "|"]),
    cluster=st.sampled_from([None, "id", "classes", "1"]),
    root=st.sampled_from([None, "."]),
)
def test_any_text_gives_a_dataset_or_our_own_error(
    tmp_path_factory, text, separator, cluster, root
):
    path = tmp_path_factory.mktemp("fuzz") / "a.csv"
    path.write_text(text, encoding="utf-8", newline="")
    with suppress(IsoluxError):
        dataset = cluster_by_requested_column(load(path, separator=separator, root=root), cluster)
        assert dataset.instances["instance_id"].is_unique().all()
        assert set(dataset.attributes["unit_id"]) <= set(dataset.instances["instance_id"])


AGES = "id,age\na, 10-19\nb,10-19 \nc,9-Mar\nd,0-2\ne,9-Mar\n"


def test_ranges_that_a_spreadsheet_took_for_dates_are_refused(tmp_path):
    with pytest.raises(TableError, match="turned ranges into dates") as caught:
        load(written(tmp_path, AGES))
    assert "in all 2 cell(s): '9-Mar' for 3-9" in str(caught.value)
    assert "repair_ages=yes" in str(caught.value)


def test_they_are_turned_back_where_asked_for_and_blanks_around_labels_go(tmp_path):
    dataset = load(written(tmp_path, AGES), repair_ages=True)
    assert dataset.values_of("age")["value"].to_list() == ["10-19", "10-19", "3-9", "0-2", "3-9"]
    (note,) = dataset.notes
    assert note.startswith("2 cell(s) of 'age' said '9-Mar', as a spreadsheet writes a date")
    assert note.endswith("were repaired to '3-9'.")


def test_a_column_of_dates_stays_one(tmp_path):
    dataset = load(written(tmp_path, "id,day\na,9-Mar\nb,19-Oct\n"))
    assert dataset.values_of("day")["value"].to_list() == ["9-Mar", "19-Oct"]


def test_whole_numbers_that_pandas_wrote_with_a_decimal_are_whole(tmp_path):
    dataset = load(written(tmp_path, "id,smiles\na,1.0\nb,0.0\nc,\n"))
    assert dataset.values_of("smiles")["value"].to_list() == ["1", "0", None]


def test_of_many_columns_the_first_and_the_named_are_read(tmp_path):
    names = [f"c{k}" for k in range(40)]
    file = tmp_path / "wide.csv"
    file.write_text(
        f"id,{','.join(names)}\n" + "".join(f"{r},{','.join('x' * 40)}\n" for r in "ab")
    )
    found = load(file, required_columns=["c30", "c9"], max_columns=10)
    assert found.attributes["attribute"].unique(maintain_order=True).to_list() == [
        *names[:10],
        "c30",
    ]
    assert found.notes[0] == ("Of 40 columns the first 10 are looked at, and those that are named.")
    assert load(file).attributes["attribute"].n_unique() == 40


def test_an_audit_reads_a_thousand_columns_and_those_that_its_settings_name():
    spec = parse_spec({"data": "table:x", "by": ["a*b"], "target": "truth", "only": ["c>=3"],
                       "bins": ["d=quantile:4"], "weight": "w w"})  # fmt: skip
    assert {"a", "b", "truth", "c", "d", "w w"} <= set(_list_possible_columns(spec))
