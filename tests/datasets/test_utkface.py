from __future__ import annotations

import hashlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, TableError, UnknownNameError
from isolux.datasets import cluster_by_requested_column
from isolux.datasets.utkface import AGE_EDGES, GENDERS, INFO, RACES, load
from isolux.io.hashing import sha256_listing
from tests.cli._run import isolux

GOOD = "26_1_0_20170117180555824.jpg.chip.jpg"
# Shapes of faulty names: a field missing (the date stands where race should), a code that is none.
NO_RACE = "61_1_20170109142408075.jpg.chip.jpg"
NO_GENDER = "39__1_20170116174525125.jpg"
NO_SUCH_GENDER = "61_3_2_20170109150557335.jpg"
NO_SUCH_RACE = "44_1_5_20170116235150272.jpg"
TOO_OLD = "117_1_0_20170116235150272.jpg"
FAULTY = (NO_RACE, NO_GENDER, NO_SUCH_GENDER, NO_SUCH_RACE, TOO_OLD)
# Shapes of odd names that say everything all the same.
ODD = ("55_0_0_20170116232725357jpg.chip.jpg", "24_0_1_20170116220224657 .jpg", "1_1_4_2017.pg")


def folder_of(tmp_path, *names):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def values(dataset, attribute):
    return dict(dataset.values_of(attribute).select("unit_id", "value").iter_rows())


def test_a_name_says_age_gender_and_race(tmp_path):
    dataset = load(folder_of(tmp_path, GOOD, "part1/0_0_4_20161219140525307.jpg"))
    younger = "part1/0_0_4_20161219140525307.jpg"
    assert values(dataset, "age") == {GOOD: "26", younger: "0"}
    assert values(dataset, "gender") == {GOOD: "Female", younger: "Male"}
    assert values(dataset, "race") == {GOOD: "White", younger: "Others"}
    assert values(dataset, "age_group") == {GOOD: "13-29", younger: "under 13"}
    assert dataset.values_of("age")["number"].to_list() == [26.0, 0.0]
    assert dataset.images["uri"].to_list() == [GOOD, younger]
    assert dataset.notes == ()


@pytest.mark.parametrize(("code", "word"), GENDERS.items())
def test_codes_of_gender(tmp_path, code, word):
    dataset = load(folder_of(tmp_path, f"30_{code}_0_1.jpg"))
    assert dataset.values_of("gender")["value"].item() == word
    assert GENDERS == {"0": "Male", "1": "Female"}


@pytest.mark.parametrize(("code", "word"), RACES.items())
def test_codes_of_race(tmp_path, code, word):
    dataset = load(folder_of(tmp_path, f"30_0_{code}_1.jpg"))
    assert dataset.values_of("race")["value"].item() == word
    assert list(RACES.values()) == ["White", "Black", "Asian", "Indian", "Others"]


@pytest.mark.parametrize(
    ("age", "group"),
    [(12, "under 13"), (13, "13-29"), (29, "13-29"), (30, "30-44"), (45, "45 and over"),
     (116, "45 and over")],
)  # fmt: skip
def test_ages_are_parted_as_fairness_indicators_parts_them(tmp_path, age, group):
    dataset = load(folder_of(tmp_path, f"{age}_0_0_1.jpg"))
    assert dataset.values_of("age_group")["value"].item() == group
    assert AGE_EDGES == (13, 30, 45)


@pytest.mark.parametrize("name", FAULTY)
def test_a_name_that_lacks_a_field_is_listed(tmp_path, name):
    dataset = load(folder_of(tmp_path, GOOD, name))
    assert dataset.instances["instance_id"].to_list() == [GOOD]
    assert dataset.notes == (
        "1 picture(s) are left out, as their names do not say age, gender and race: " + name + ".",
    )


@pytest.mark.parametrize("name", ODD)
def test_an_odd_date_or_suffix_is_no_fault(tmp_path, name):
    dataset = load(folder_of(tmp_path, name))
    assert dataset.instances["instance_id"].to_list() == [name]


def test_many_faulty_names_are_counted(tmp_path):
    names = [f"{i}_1_2017.jpg" for i in range(10, 35)]
    [note] = load(folder_of(tmp_path, GOOD, *names)).notes
    assert note.startswith("25 picture(s) are left out")
    assert note.endswith("29_1_2017.jpg and 5 more.")


def test_what_is_no_picture_is_passed_over_and_said(tmp_path):
    dataset = load(folder_of(tmp_path, GOOD, "Thumbs.db", "part1/.DS_Store"))
    assert dataset.notes == ("2 file(s) are not pictures and are passed over.",)


def test_photos_that_are_there_twice_are_said(tmp_path):
    photo = "26_1_0_20170117180555824.jpg"
    dataset = load(folder_of(tmp_path, f"wild/{photo}", f"aligned/{photo}.chip.jpg"))
    assert dataset.notes == (
        (
            "2 files are of 1 photos: some are here twice, as taken and aligned or in two folders,"
            " and are counted twice."
        ),
    )


def test_a_list_of_names_will_do(tmp_path):
    file = tmp_path / "test.txt"
    file.write_text(f"./{GOOD}\n\n{NO_RACE}\r\nval/3_0_1_2.jpg\n")
    dataset = load(file)
    assert dataset.instances["instance_id"].to_list() == [GOOD, "val/3_0_1_2.jpg"]
    assert NO_RACE in dataset.notes[0]
    assert dataset.inputs == {str(file): hashlib.sha256(file.read_bytes()).hexdigest()}


def test_a_folder_is_named_with_the_hash_of_its_listing(tmp_path):
    folder_of(tmp_path, GOOD)
    assert load(tmp_path).inputs == {str(tmp_path): sha256_listing(tmp_path)}


def test_faces_are_clusters_unless_said(tmp_path):
    folder_of(tmp_path, GOOD, "3_0_1_2.jpg")
    assert load(tmp_path).instances["cluster_id"].null_count() == 2
    assert cluster_by_requested_column(load(tmp_path), "race").instances[
        "cluster_id"
    ].to_list() == [
        "White",
        "Black",
    ]
    with pytest.raises(UnknownNameError, match="no cluster named 'subject'"):
        cluster_by_requested_column(load(tmp_path), "subject")


def test_it_says_whose_judgement_it_is():
    assert INFO.label_source == "inferred"
    assert dict(INFO.terms)["gender"] == "apparent gender presentation"
    assert "research" in INFO.licence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1_0_0_1.jpg\n../1_0_0_1.jpg\n", r"leads out.*'\.\./1_0_0_1.jpg'.*row 2"),
        ("/elsewhere/1_0_0_1.jpg\n", "leads out of the dataset's folder.*row 1"),
        ("C:\\1_0_0_1.jpg\n", "leads out of the dataset's folder.*row 1"),
        ("1_0_0_1.jpg\n2_0_0_1.jpg\n1_0_0_1.jpg\n", "listed twice.*'1_0_0_1.jpg'.*row 3"),
    ],
)
def test_odd_lists_are_refused(tmp_path, text, words):
    (tmp_path / "names.txt").write_text(text)
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(tmp_path / "names.txt")


def test_a_folder_without_such_pictures_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"(?s)no file is named as UTKFace.*found: no file"):
        load(tmp_path)
    with pytest.raises(FileError, match=r"(?s)no file is named as UTKFace.*'a.jpg'"):
        load(folder_of(tmp_path, "a.jpg"))
    (tmp_path / "names.txt").write_bytes(b"\xef\xbb\xbf")  # what some editors begin a file with
    with pytest.raises(FileError, match=r"(?s)no file is named as UTKFace.*found: no file"):
        load(tmp_path / "names.txt")
    with pytest.raises(FileError, match=r"(?s)no such file.*absent"):
        load(tmp_path / "absent")


def test_links_out_of_the_folder_stay_closed(tmp_path):
    folder_of(tmp_path, "out/9_0_0_1.jpg", f"in/{GOOD}")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out", target_is_directory=True)
    assert load(tmp_path / "in").instances["instance_id"].to_list() == [GOOD]


def test_a_name_that_is_no_text_is_named(tmp_path):
    folder_of(tmp_path, GOOD)
    try:
        (tmp_path / "1_0_0_\udce9.jpg").touch()
    except (OSError, UnicodeError):
        pytest.skip("this file system takes UTF-8 names only: the refusal was NOT checked")
    with pytest.raises(FileError, match="name of a file is not UTF-8 text"):
        load(tmp_path)


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    names = [f"{20 + i % 60}_{i % 2}_{i % 3}_{i:017}.jpg" for i in range(240)]
    faces = folder_of(tmp_path / "utk", *names, NO_RACE)
    # Wrong of every second person whose code is 1, right of the others.
    said = ["Female" if (i % 2 == 1) != (i % 6 == 1) else "Male" for i in range(240)]
    rows = [f"{name},{word}" for name, word in zip(names, said, strict=True)]
    (tmp_path / "net.csv").write_text("\n".join(["file,label", *rows]) + "\n")
    ran = isolux(
        monkeypatch, capsys, "audit", f"utkface:{faces}", "--target", "gender", "--by", "race",
        "--predictions", tmp_path / "net.csv", "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "works worse for Black people" in " ".join(ran.out.split())
    assert NO_RACE in (tmp_path / "run" / "audit.json").read_text()


@given(
    name=st.text(st.characters(codec="utf-8", exclude_characters="\0/\\"), min_size=1, max_size=40)
    | st.from_regex(r"\A\d{1,4}_\d?_\d?_[0-9]{0,17}(\.jpg)?\Z")
)
def test_any_name_is_a_face_a_note_or_our_own_error(tmp_path_factory, name):
    file = tmp_path_factory.mktemp("fuzz") / "names.txt"
    file.write_bytes(f"{GOOD}\n{name}\n".encode())
    with suppress(IsoluxError):
        dataset = load(file)
        assert dataset.instances.height == len(dataset.values_of("age"))
        assert dataset.values_of("age")["number"].is_between(0, 116).all()
