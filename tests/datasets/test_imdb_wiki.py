from __future__ import annotations

import datetime as dt
import io
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.datasets import cluster_by_requested_column
from isolux.datasets.imdb_wiki import INFO, load
from tests.cli._run import isolux

INF, NAN = float("inf"), float("nan")


def matlab_day(year, month, day):
    # What the format's note says: Python's ordinal is MATLAB's serial day less 366.
    return dt.date(year, month, day).toordinal() + 366


def cells(items):
    held = np.empty((1, len(items)), dtype=object)
    held[0, :] = items
    return held


def fields(n=1, **changes):
    """Give n usable photographs, born in the spring of 1950 and taken in 1980."""
    whole = {
        "dob": [matlab_day(1950, 3, 1)] * n,
        "photo_taken": [1980] * n,
        "gender": [1.0] * n,
        "face_score": [3.5] * n,
        "second_face_score": [NAN] * n,
        "full_path": [f"01/nm{i}.jpg" for i in range(n)],
        "name": ["Ada"] * n,
        "face_location": [np.array([[11.0, 21.0, 50.5, 80.0]])] * n,
        "celeb_id": list(range(1, n + 1)),
    } | changes
    lists = ("full_path", "name", "face_location")
    return {
        key: (cells(value) if key in lists else np.array([value]))
        for key, value in whole.items()
        if value is not None
    }


def mat(n=1, key="imdb", **changes):
    stream = io.BytesIO()
    savemat(stream, {key: fields(n, **changes)}, do_compression=True)
    return stream.getvalue()


def written(folder, data, name="imdb.mat"):
    (folder / name).write_bytes(data)
    return folder


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


def numbers(dataset, attribute):
    return dataset.values_of(attribute)["number"].to_list()


def test_a_photograph_is_read(tmp_path):
    dataset = load(written(tmp_path, mat()))
    assert dataset.instances["instance_id"].to_list() == ["01/nm0.jpg"]
    assert dataset.instances["subject_id"].to_list() == ["1"]
    assert values(dataset, "gender") == ["Male"]
    assert numbers(dataset, "age") == [30.0]
    assert values(dataset, "photo_year") == ["1980"]
    assert dataset.notes == ()


def test_corners_count_from_1_and_are_inclusive(tmp_path):
    box = load(written(tmp_path, mat())).instances.select("box_x", "box_y", "box_w", "box_h")
    assert box.row(0) == (10.0, 20.0, 40.5, 60.0)


@pytest.mark.parametrize(
    ("born", "mid_year", "year"),
    [
        ((1950, 1, 1), 30, 30),
        ((1950, 6, 30), 30, 30),
        ((1950, 7, 1), 30, 30),
        ((1950, 7, 2), 29, 30),
        ((1950, 12, 31), 29, 30),
        ((1948, 2, 29), 32, 32),
    ],
)
def test_an_age_is_that_of_the_middle_of_the_year(tmp_path, born, mid_year, year):
    written(tmp_path, mat(dob=[matlab_day(*born)]))
    assert numbers(load(tmp_path), "age") == [mid_year]


def test_genders_are_0_1_and_unknown(tmp_path):
    dataset = load(written(tmp_path, mat(3, gender=[0.0, 1.0, NAN])))
    assert values(dataset, "gender") == ["Female", "Male", None]
    assert dataset.notes == ("1 photograph(s) have no gender.",)
    with pytest.raises(TableError, match=r"(?s)a gender has a code.*2\.0.*row 2, column 'gender'"):
        load(written(tmp_path, mat(2, gender=[0.0, 2.0])))


def test_what_cannot_be_judged_is_left_out_and_counted(tmp_path):
    n = 8
    dob = [matlab_day(1950, 3, 1)] * n
    dob[3], dob[4], dob[5] = 0, -5, matlab_day(1990, 1, 1)
    taken = [1980] * n
    taken[6] = 2051  # 101 years
    data = mat(
        n,
        face_score=[3.5, -INF, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5],
        second_face_score=[NAN, NAN, 2.0, NAN, NAN, NAN, NAN, NAN],
        dob=dob,
        photo_taken=taken,
    )
    dataset = load(written(tmp_path, data))
    assert dataset.instances["instance_id"].to_list() == ["01/nm0.jpg", "01/nm7.jpg"]
    assert dataset.notes == (
        (
            "6 of 8 photographs are left out: 1 as no face was found, 1 as there is a second face,"
            " 4 as the age is unknown or not from 0 to 100 (one may have several reasons)."
        ),
    )


def test_ages_from_0_to_100_are_kept(tmp_path):
    dob = [matlab_day(1980, 7, 1), matlab_day(1880, 1, 1), matlab_day(1879, 7, 1)]
    assert numbers(load(written(tmp_path, mat(3, dob=dob))), "age") == [0.0, 100.0]


def test_a_path_that_occurs_again_is_counted(tmp_path):
    dataset = load(written(tmp_path, mat(2, full_path=["01/a.jpg", "01/a.jpg"])))
    assert dataset.instances.height == 1
    assert "1 as its path occurred before" in dataset.notes[0]


def test_celebrities_are_the_clusters_where_they_are_known(tmp_path):
    written(tmp_path, mat(3, celeb_id=[7, 7, 9]))
    assert load(tmp_path).instances["cluster_id"].to_list() == ["7", "7", "9"]
    assert (
        cluster_by_requested_column(load(tmp_path), "image").instances["cluster_id"].null_count()
        == 3
    )
    with pytest.raises(UnknownNameError, match="no cluster named 'name'"):
        cluster_by_requested_column(load(tmp_path), "name")
    written(tmp_path, mat(2, "wiki", celeb_id=None), "wiki.mat")
    wiki = load(tmp_path, source="wiki").instances
    assert wiki["cluster_id"].null_count() == wiki["subject_id"].null_count() == 2
    assert load(tmp_path / "wiki.mat").instances.equals(wiki)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"source": "lfw"}, "source cannot be set"),
    ],
)
def test_settings_that_there_are_not_are_refused(tmp_path, settings, words):
    with pytest.raises(SpecError, match=rf"(?s){words}"):
        load(tmp_path, **settings)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dob": [1.0, 2.0]}, "dob does not go with full_path.*3 numbers"),
        ({"photo_taken": None}, "has no photo_taken"),
        ({"full_path": ["a.jpg", "../b.jpg", "c.jpg"]}, "leads out.*row 2, column 'full_path'"),
        ({"full_path": ["a.jpg", np.eye(2), "c.jpg"]}, "cell of full_path is not text.*row 2"),
        ({"full_path": ["a.jpg", "b.jpg", ""]}, "a photograph has no path.*row 3"),
        ({"face_location": [np.eye(2)] * 3}, "no four corners.*row 1, column 'face_location'"),
        ({"face_location": [np.array([[9.0, 9, 1, 1]])] * 3}, "negative width.*row 1"),
        ({"gender": [{"a": 1}, 1, 1]}, "gender does not go with"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, changes, words):
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(written(tmp_path, mat(3, **changes)))


def test_files_that_are_something_else_are_refused(tmp_path):
    with pytest.raises(FileError, match="not a MATLAB file, or it is damaged"):
        load(written(tmp_path, b"dob,age\n" * 30))
    with pytest.raises(TableError, match="the MATLAB file has no imdb"):
        load(written(tmp_path, mat(key="faces")))
    stream = io.BytesIO()
    savemat(stream, {"imdb": np.eye(3)})
    with pytest.raises(TableError, match="imdb is not a structure of fields"):
        load(written(tmp_path, stream.getvalue()))
    with pytest.raises(FileError, match=r"(?s)version 7.3.*save\(name, '-v7'\)"):
        load(written(tmp_path, b"\x89HDF\r\n\x1a\n" + bytes(99)))
    with pytest.raises(FileError, match=r"(?s)no photograph is left.*no face was found"):
        load(written(tmp_path, mat(face_score=[-INF])))


def test_an_object_among_the_fields_is_refused(tmp_path, monkeypatch):
    # scipy cannot write a MATLAB object, so it is made to read one: its class is what is refused.
    import scipy.io
    from scipy.io.matlab import MatlabObject

    whole = np.empty((1, 1), dtype=[("full_path", object)])
    whole[0, 0] = (np.zeros((1, 1), dtype=[("a", object)]).view(MatlabObject),)
    monkeypatch.setattr(scipy.io, "loadmat", lambda *_, **__: {"imdb": whole})
    with pytest.raises(TableError, match=r"(?s)holds an object.*MatlabObject.*'full_path'"):
        load(written(tmp_path, mat()))


def test_whose_judgement_it_is():
    assert INFO.label_source == "inferred"
    assert "research" in INFO.licence


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    n = 240
    old = [matlab_day(1920 if i // 2 % 2 else 1960, 3, 1) for i in range(n)]
    written(tmp_path, mat(n, dob=old, gender=[float(i % 2) for i in range(n)]))
    # Right of the young, wrong of every second one who was 60: those who are called Female.
    said = ["Male" if i % 2 or i // 2 % 2 else "Female" for i in range(n)]
    rows = [f"01/nm{i}.jpg,{one}\n" for i, one in enumerate(said)]
    (tmp_path / "net.csv").write_text("file,label\n" + "".join(rows))
    ran = isolux(
        monkeypatch, capsys, "audit", f"imdb_wiki:{tmp_path}", "--target", "gender", "--by", "age",
        "--predictions", tmp_path / "net.csv", "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "50.0 points lower" in " ".join(ran.out.split())


@given(
    dob=st.floats(),
    taken=st.floats(),
    score=st.floats(),
    second=st.floats(),
    place=st.integers(0, 2_000),
    byte=st.integers(-1, 255),
)
def test_any_numbers_and_damage_give_a_dataset_or_our_own_error(
    tmp_path_factory, dob, taken, score, second, place, byte
):
    data = bytearray(mat(dob=[dob], photo_taken=[taken], face_score=[score],
                         second_face_score=[second]))  # fmt: skip
    if byte >= 0:
        data[place % len(data)] = byte
    folder = tmp_path_factory.mktemp("fuzz")
    with suppress(IsoluxError):
        dataset = load(written(folder, bytes(data)))
        assert dataset.values_of("age")["number"].drop_nulls().is_between(0, 100).all()
