from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import (
    FileError,
    IsoluxError,
    JoinError,
    SpecError,
    TableError,
    UnknownNameError,
)
from isolux.datasets import cluster_by_requested_column
from isolux.datasets.imagefolder import load
from isolux.io.hashing import sha256_listing
from tests.cli._run import isolux


def folder_of(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def values(dataset, attribute):
    return dict(dataset.values_of(attribute).select("unit_id", "value").iter_rows())


def test_a_folder_is_a_class(tmp_path):
    dataset = load(folder_of(tmp_path, "nurse/b.PNG", "nurse/deep/a.jpg", "guard/a.jpg"))
    expected = {"guard/a.jpg": "guard", "nurse/b.PNG": "nurse", "nurse/deep/a.jpg": "nurse"}
    assert values(dataset, "class") == expected
    assert dict(dataset.instances.select("instance_id", "classes").iter_rows()) == {
        name: [folder] for name, folder in expected.items()
    }
    assert dataset.images["uri"].to_list() == list(expected)
    assert dataset.notes == ()
    assert dataset.inputs == {str(tmp_path): sha256_listing(tmp_path)}


def test_what_is_no_picture_is_counted_and_what_is_hidden_is_none(tmp_path):
    names = ("a/1.jpg", "a/._1.jpg", "__MACOSX/a/2.jpg", "a/notes.txt", "a/Thumbs.db", ".x/3.jpg")
    dataset = load(folder_of(tmp_path, *names))
    assert dataset.instances["instance_id"].to_list() == ["a/1.jpg"]
    assert dataset.notes == ("5 file(s) are not pictures and are passed over.",)


def test_a_picture_in_no_folder_has_no_class_and_is_kept(tmp_path):
    dataset = load(folder_of(tmp_path, "1.jpg", "a/2.jpg"))
    assert values(dataset, "class") == {"1.jpg": None, "a/2.jpg": "a"}
    assert dataset.instances["classes"].to_list() == [None, ["a"]]
    assert dataset.notes == ("1 picture(s) are not in a folder and have no class.",)


def test_folders_without_pictures_are_named(tmp_path):
    (folder_of(tmp_path, "a/1.jpg") / "b").mkdir()
    assert load(tmp_path).notes == ("1 folder(s) hold no picture: 'b'.",)


def test_parts_are_not_taken_for_classes(tmp_path):
    folder_of(tmp_path, "train/a/1.jpg", "Test/a/1.jpg", "Test/b/2.jpg", "Test/3.jpg")
    with pytest.raises(FileError, match=r"(?s)parts of a dataset, not classes.*'Test', 'train'"):
        load(tmp_path)
    one = load(tmp_path, split="Test")
    assert values(one, "class") == {"Test/3.jpg": None, "Test/a/1.jpg": "a", "Test/b/2.jpg": "b"}
    assert set(values(one, "split").values()) == {"Test"}
    assert len(values(load(tmp_path, split="all"), "class")) == 4
    with pytest.raises(UnknownNameError, match="no part named 'val'"):
        load(tmp_path, split="val")


def test_classes_are_not_taken_for_parts(tmp_path):
    folder_of(tmp_path, "train/1.jpg", "bus/2.jpg")  # a train is a vehicle here
    assert set(values(load(tmp_path), "class").values()) == {"train", "bus"}
    with pytest.raises(FileError, match=r"(?s)folders are not parts.*'bus', 'train'"):
        load(tmp_path, split="train")


def test_a_table_beside_the_pictures_gives_attributes(tmp_path):
    folder_of(tmp_path, "a/1.jpg", "a/2.jpg", "b/3.jpg")
    (tmp_path / "metadata.csv").write_text(
        "file_name,tone,subject_id\na/2.jpg,3;4,s\na/1.jpg,5,s\nc/9.jpg,1,t\n"
    )
    dataset = cluster_by_requested_column(load(tmp_path, separator=";"), "subject_id")
    assert dataset.values_of("tone").select("unit_id", "value", "number").rows() == [
        ("a/1.jpg", "5", 5.0),
        ("a/2.jpg", "3", 3.0),
        ("a/2.jpg", "4", 4.0),
        ("b/3.jpg", None, None),
    ]
    assert dataset.instances["subject_id"].to_list() == ["s", "s", None]
    assert dataset.instances["cluster_id"].to_list() == ["s", "s", None]
    assert dataset.notes == (
        "1 row(s) of metadata.csv name no picture and are passed over.",
        "1 picture(s) have no row in metadata.csv: nothing is known of them.",
    )


def test_a_table_of_json_lines_and_what_is_no_attribute_in_it(tmp_path):
    folder_of(tmp_path, "a/1.jpg")
    row = {"file_name": "a/1.jpg", "tone": ["3", "4"], "objects": {"bbox": [1]}, "class": "z"}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(row) + "\n")
    dataset = load(tmp_path)
    assert dataset.values_of("tone")["value"].to_list() == ["3", "4"]
    assert values(dataset, "class") == {"a/1.jpg": "a"}
    assert dataset.notes == ("Not read as attributes from metadata.jsonl: 'class'.",)


def test_a_table_elsewhere_that_names_less_than_the_path(tmp_path):
    folder_of(tmp_path / "pictures", "a/1.jpg", "b/2.jpg")
    (tmp_path / "people.csv").write_text("key,tone\n2,9\n1,1\n")
    given = {"table": tmp_path / "people.csv", "id": "key"}
    dataset = load(tmp_path / "pictures", **given, id_from="stem")
    assert values(dataset, "tone") == {"a/1.jpg": "1", "b/2.jpg": "9"}
    with pytest.raises(JoinError, match=r"(?s)names none of the pictures.*'a/1.jpg'.*'2'.*stem"):
        load(tmp_path / "pictures", **given)
    folder_of(tmp_path / "pictures", "b/1.jpg")
    with pytest.raises(JoinError, match=r"(?s)several folders have the same name.*'1'"):
        load(tmp_path / "pictures", **given, id_from="stem")


def test_a_table_that_names_a_picture_twice_or_none_at_all_is_refused(tmp_path):
    folder_of(tmp_path, "a/1.jpg")
    (tmp_path / "metadata.csv").write_text("file_name,tone\na/1.jpg,1\na/1.jpg,2\n")
    with pytest.raises(TableError, match=r"(?s)names a picture twice.*row 2, column 'file_name'"):
        load(tmp_path)
    (tmp_path / "metadata.csv").write_text("name,tone\na/1.jpg,1\n")
    with pytest.raises(UnknownNameError, match="no column named 'file_name'"):
        load(tmp_path)


def test_a_list_of_paths_will_do(tmp_path):
    (tmp_path / "list.txt").write_text("./a/1.jpg\n\nb/2.jpg\n")
    assert values(load(tmp_path / "list.txt"), "class") == {"a/1.jpg": "a", "b/2.jpg": "b"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a/1.jpg\n../a/1.jpg\n", "leads out of the dataset's folder.*row 2"),
        ("/a/1.jpg\n", "leads out of the dataset's folder.*row 1"),
        ("a/1.jpg\nb/1.jpg\na/1.jpg\n", "listed twice.*'a/1.jpg'.*row 3"),
    ],
)
def test_odd_lists_are_refused(tmp_path, text, words):
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(tmp_path / "list.txt")


def test_no_picture_is_opened_and_no_link_to_a_folder_followed(tmp_path):
    folder_of(tmp_path, "out/9.jpg", "in/a/1.jpg")
    (tmp_path / "in" / "a" / "1.jpg").write_bytes(b"no picture at all")
    (tmp_path / "in" / "a" / "link").symlink_to(tmp_path / "out", target_is_directory=True)
    assert load(tmp_path / "in").instances["instance_id"].to_list() == ["a/1.jpg"]


def test_nothing_to_load_is_said(tmp_path):
    with pytest.raises(FileError, match=r"(?s)no picture here.*found: no file"):
        load(tmp_path)
    with pytest.raises(FileError, match=r"(?s)no picture here.*'a.txt'"):
        load(folder_of(tmp_path, "a.txt"))
    with pytest.raises(FileError, match=r"(?s)no such file.*absent"):
        load(tmp_path / "absent")
    with pytest.raises(SpecError, match=r"(?s)id_from cannot be set.*stem.*'name'"):
        load(tmp_path, id_from="name")


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    names = [f"{'nurse' if i % 2 else 'guard'}/{i}.jpg" for i in range(240)]
    root = folder_of(tmp_path / "people", *names)
    tones = "".join(f"{name},{'AB'[i // 2 % 2]}\n" for i, name in enumerate(names))
    (root / "metadata.csv").write_text(f"file_name,tone\n{tones}")
    # Right of everybody of tone A, of every second one of tone B.
    said = ["guard" if i // 2 % 2 else name.partition("/")[0] for i, name in enumerate(names)]
    rows = "".join(f"{name},{one}\n" for name, one in zip(names, said, strict=True))
    (tmp_path / "net.csv").write_text(f"file,label\n{rows}")
    ran = isolux(
        monkeypatch, capsys, "audit", f"imagefolder:{root}", "--target", "class", "--by", "tone",
        "--predictions", tmp_path / "net.csv", "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "50.0 points lower" in " ".join(ran.out.split())


@given(text=st.text(st.sampled_from("ab/.\\ \njpg\0é~:"), max_size=50))
def test_any_list_gives_pictures_or_our_own_error(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("fuzz") / "list.txt"
    file.write_bytes(text.encode())
    with suppress(IsoluxError):
        dataset = load(file)
        assert dataset.instances.height == len(dataset.values_of("class")) > 0
        assert not dataset.images["uri"].str.contains(r"(^|/)\.\.(/|$)|^/").any()
