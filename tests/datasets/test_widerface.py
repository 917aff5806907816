from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pytest
import scipy.io
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
from isolux.core.tables import INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.widerface import INFO, load
from tests._shared import shared_data

TEXT = """0--Parade/a.jpg
2
10 20 30 40 0 0 0 0 0 0
1 2 3 4 2 1 1 1 2 1
0--Parade/empty.jpg
0
0 0 0 0 0 0 0 0 0 0
9--Press/b.jpg
1
5 6 7 8 1 0 0 0 1 0
"""
PEOPLE = """,file,perceived_gender,perceived_age,perceived_skin,face
0,images/0--Parade/a.jpg,Female,Adult,III,1
1,images/9--Press/b.jpg,Not Sure,Senior,Not Sure,0
"""
EVENTS = {
    "0--Parade": {
        "a": [(10, 20, 30, 40, 0, 0, 0, 0, 0, 0), (1, 2, 3, 4, 2, 1, 1, 1, 2, 1)],
        "empty": [],
    },
    "9--Press": {"b": [(5, 6, 7, 8, 1, 0, 0, 0, 1, 0)]},
}
ORDER = ("blur", "expression", "illumination", "invalid", "occlusion", "pose")
BOX = ("box_x", "box_y", "box_w", "box_h")


def cells(values) -> np.ndarray:
    """A MATLAB cell column."""
    made = np.empty((len(values), 1), dtype=object)
    for i, value in enumerate(values):
        made[i, 0] = value
    return made


def mat(chosen: dict[str, list[int]] | None = None, **changes) -> bytes:
    """The ground truth as WIDER FACE's MATLAB files hold it."""
    per_event = [list(images.items()) for images in EVENTS.values()]

    def numbers(pick, width):
        return cells(
            [
                cells([np.array([pick(f) for f in faces]).reshape(-1, width) for _, faces in event])
                for event in per_event
            ]
        )

    made = {
        "event_list": cells(list(EVENTS)),
        "file_list": cells([cells([name for name, _ in event]) for event in per_event]),
        "face_bbx_list": numbers(lambda face: face[:4], 4),
    }
    for i, name in enumerate(ORDER, start=4):
        made[f"{name}_label_list"] = numbers(lambda face, i=i: face[i], 1)
    if chosen is not None:
        made["gt_list"] = cells(
            [
                cells([np.array(chosen.get(n, [])).reshape(-1, 1) for n, _ in event])
                for event in per_event
            ]
        )
    made.update(changes)
    stream = io.BytesIO()
    scipy.io.savemat(stream, {k: v for k, v in made.items() if v is not None})
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "wider_face_val_bbx_gt.txt").write_text(TEXT)
    (tmp_path / "demographics_val.csv").write_text(PEOPLE)
    return tmp_path


@pytest.fixture
def mats(tmp_path):
    (tmp_path / "ground_truth").mkdir()
    (tmp_path / "ground_truth" / "wider_face_val.mat").write_bytes(mat())
    lists = {"easy": {"a": [1]}, "medium": {"a": [1]}, "hard": {"a": [2, 1], "b": [1]}}
    for level, images in lists.items():
        (tmp_path / "ground_truth" / f"wider_{level}_val.mat").write_bytes(mat(images))
    return tmp_path


def by_face(dataset, attribute):
    rows = dataset.values_of(attribute).select("unit_id", "value").rows()
    return {unit.removeprefix("0--").removeprefix("9--"): value for unit, value in rows}


def test_boxes_of_the_text_are_faces(folder):
    dataset = load(folder)
    assert dataset.instances["instance_id"].to_list() == [
        "0--Parade/a.jpg_0",
        "0--Parade/a.jpg_1",
        "9--Press/b.jpg_0",
    ]
    assert dataset.instances.select(BOX).rows()[1] == (1.0, 2.0, 3.0, 4.0)
    assert dataset.instances["face_index"].to_list() == [0, 1, 0]
    assert dataset.instances["cluster_id"].to_list() == dataset.instances["image_id"].to_list()


def test_an_image_without_faces_is_still_an_image(folder):
    assert load(folder).images["uri"].to_list() == [
        "WIDER_val/images/0--Parade/a.jpg",
        "WIDER_val/images/0--Parade/empty.jpg",
        "WIDER_val/images/9--Press/b.jpg",
    ]


def test_the_dummy_line_of_an_image_without_faces_may_be_absent(folder):
    before = load(folder).instances
    path = folder / "wider_face_val_bbx_gt.txt"
    path.write_text(TEXT.replace("0 0 0 0 0 0 0 0 0 0\n9", "9"))
    assert load(folder).instances.equals(before)


def test_codes_become_words(folder):
    dataset = load(folder)
    words = {name: by_face(dataset, name)["Parade/a.jpg_1"] for name in ORDER}
    assert words == {
        "blur": "heavy",
        "expression": "exaggerate",
        "illumination": "extreme",
        "invalid": "true",
        "occlusion": "heavy",
        "pose": "atypical",
    }
    assert by_face(dataset, "blur")["Press/b.jpg_0"] == "normal"


def test_matlab_files_hold_the_same(folder, mats):
    text = load(folder / "wider_face_val_bbx_gt.txt")
    made = load(mats / "ground_truth" / "wider_face_val.mat")
    levels = ["easy", "medium", "hard", "judged"]
    assert made.instances.drop(levels).equals(text.instances.drop(levels))
    assert made.images.equals(text.images)
    assert by_face(made, "occlusion") == by_face(text, "occlusion")


def test_the_lists_count_from_one(mats):
    dataset = load(mats)
    rows = dataset.instances.select("easy", "medium", "hard").rows()
    assert rows == [(True, True, True), (False, False, True), (False, False, True)]
    difficulty = dataset.values_of("difficulty").select("unit_id", "value").rows()
    assert ("0--Parade/a.jpg_0", "easy") in difficulty
    assert len(difficulty) == 5


def test_without_lists_difficulty_is_unknown(folder):
    assert load(folder).instances["easy"].to_list() == [None] * 3


def test_demographics_meet_faces_by_their_place_from_zero(folder):
    dataset = load(folder)
    assert by_face(dataset, "perceived_gender") == {
        "Parade/a.jpg_1": "Female",
        "Press/b.jpg_0": "Not Sure",
    }
    assert by_face(dataset, "perceived_skin")["Parade/a.jpg_1"] == "III"
    assert dict(INFO.terms)["perceived_gender"] == "perceived gender presentation"


def test_faces_without_demographics_take_part_but_are_not_judged(folder):
    dataset = load(folder)
    assert dataset.instances["judged"].to_list() == [False, True, True]
    assert dataset.notes == (
        "2 of 3 faces have demographics and are judged; the others take part in matching.",
    )
    assert load(folder, judge="all").instances["judged"].all()
    (folder / "demographics_val.csv").unlink()
    assert load(folder).instances["judged"].all()


def test_those_who_were_not_sure_may_be_left_out(folder):
    dataset = load(folder, not_sure="leave out")
    assert dataset.instances["judged"].to_list() == [False, True, False]
    assert dataset.notes[1].startswith("1 faces are not judged")


def test_clusters_may_be_events(folder):
    found = cluster_by_requested_column(load(folder), "event").instances["cluster_id"].to_list()
    assert found == ["0--Parade", "0--Parade", "9--Press"]
    assert (
        cluster_by_requested_column(load(folder), "face").instances["cluster_id"].null_count() == 3
    )


def test_further_columns_are_documented(mats):
    dataset = load(mats)
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    known = {c.name: c.dtype for c in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


def test_every_file_is_named_with_its_hash(mats):
    assert len(load(mats).inputs) == 4


def test_negative_sizes_are_said_and_taken_as_none(folder):
    path = folder / "wider_face_val_bbx_gt.txt"
    path.write_text(TEXT.replace("1 2 3 4 2", "1 2 -2 4 2"))
    dataset = load(folder)
    assert dataset.instances["box_w"].to_list() == [30.0, 0.0, 7.0]
    assert dataset.notes[0] == "1 box(es) of a negative size are taken as having no area."


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1 2 3 4 2", "1 2 3 2", "cannot be read.*ten whole numbers.*row 4"),
        ("1 2 3 4 2", "1 2 x 4 2", "cannot be read.*'1 2 x 4 2.*row 4"),
        ("1 2 3 4 2", "1 2 3 4 3", "a face's blur has a code.*3 for face 1 of '0--Parade/a.jpg'"),
        ("a.jpg\n2", "a.jpg\n3", "an image's name was expected.*found: '0'.*row 6"),
        ("a.jpg\n2", "a.jpg\n1", "an image's name was expected.*row 4"),
        ("a.jpg\n2", "a.jpg\ntwo", "no usable number of boxes.*'two'.*row 2"),
        ("b.jpg\n1", "b.jpg\n5", "no usable number.*the file is cut off.*row 9"),
        ("9--Press/b", "0--Parade/a", "listed twice.*'0--Parade/a.jpg'"),
    ],
)
def test_damaged_text_is_named_with_its_line(folder, old, new, words):
    (folder / "wider_face_val_bbx_gt.txt").write_text(TEXT.replace(old, new, 1))
    with pytest.raises((FileError, TableError), match=f"(?s){words}"):
        load(folder)


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("Female", "female", TableError, "'female'.*row 1, column 'perceived_gender'"),
        (",III,", ",VII,", TableError, "'VII'.*row 1, column 'perceived_skin'"),
        (",III,1", ",III,2", TableError, "1 face.s. with demographics are not.*face 2.*row 1"),
        (",III,1", ",III,x", TableError, "not a whole number.*'x'.*row 1, column 'face'"),
        ("9--Press", "8--Press", TableError, "'images/8--Press/b.jpg'.*row 2"),
        ("9--Press/b.jpg,Not Sure,Senior,Not Sure,0", "0--Parade/a.jpg,Male,Adult,I,1",
         TableError, "listed twice.*row 2"),
        ("perceived_age", "age", UnknownNameError, "no column named 'perceived_age'"),
    ],
)  # fmt: skip
def test_wrong_demographics_are_named_with_their_row(folder, old, new, error, words):
    (folder / "demographics_val.csv").write_text(PEOPLE.replace(old, new))
    with pytest.raises(error, match=f"(?s){words}"):
        load(folder)


def bad_boxes(shape):
    return cells([cells([np.zeros(shape), np.zeros((0, 4))]), cells([np.zeros((1, 4))])])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"blur_label_list": None}, "has no blur_label_list"),
        ({"blur_label_list": np.zeros((2, 1))}, "blur_label_list is not a cell array"),
        ({"face_bbx_list": bad_boxes((2, 3))}, r"not a matrix of 4 column.*\(2, 3\).*row 1"),
        ({"face_bbx_list": bad_boxes((1, 4))}, "another number of blur labels.*expected: 1"),
        ({"face_bbx_list": cells([cells([np.zeros((2, 4))])])}, "does not go with file_list"),
        ({"event_list": cells(["0--Parade"])}, "events and files do not go together"),
        ({"event_list": cells([np.ones((2, 2)), "b"])}, "a name is not text"),
        ({"face_bbx_list": bad_boxes((2, 4)) * np.nan}, "no usable numbers"),
    ],
)
def test_odd_matlab_files_are_refused(tmp_path, changes, words):
    (tmp_path / "wider_face_val.mat").write_bytes(mat(**changes))
    with pytest.raises(TableError, match=f"(?s){words}"):
        load(tmp_path)


def test_a_list_of_faces_that_are_not_there_is_refused(mats):
    (mats / "ground_truth" / "wider_easy_val.mat").write_bytes(mat({"a": [3]}))
    with pytest.raises(JoinError, match=r"(?s)list easy names 1 face.*face 2 of '0--Parade/a.jpg'"):
        load(mats)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
def test_a_matlab_file_cut_off_is_refused(tmp_path, cut):
    whole = mat()
    (tmp_path / "wider_face_val.mat").write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(FileError, match="not a MATLAB file, or it is damaged"):
        load(tmp_path)


def test_a_folder_without_ground_truth_says_what_was_looked_for(tmp_path):
    with pytest.raises(FileError, match=r"(?s)holds no WIDER FACE.*wider_face_train\.mat"):
        load(tmp_path, split="train")
    with pytest.raises(FileError, match="no such file"):
        load(tmp_path / "absent")


def test_unknown_settings_are_refused(folder):
    with pytest.raises(SpecError, match=r"(?s)judge cannot be set.*annotated or all.*'some'"):
        load(folder, judge="some")
    with pytest.raises(SpecError, match=r"(?s)not_sure cannot be set.*keep or leave out"):
        load(folder, not_sure="drop")


@given(
    at=st.integers(0, len(TEXT)),
    cut=st.integers(0, 9),
    put=st.sampled_from(["", "\n", "0", "-1", "9" * 30, "x", "1 ", "é", "a/b\n", "\0"]),
)
def test_any_text_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "wider_face_val_bbx_gt.txt"
    path.write_text(TEXT[:at] + put + TEXT[at + cut :], newline="")
    with suppress(IsoluxError):
        assert load(folder).instances["instance_id"].is_unique().all()


WHOLE = mat()


@given(at=st.integers(0, len(WHOLE) - 1), put=st.binary(max_size=8))
def test_any_matlab_bytes_give_a_dataset_or_our_own_error(tmp_path_factory, at, put):
    folder = tmp_path_factory.mktemp("fuzz")
    damaged = WHOLE[:at] + put + WHOLE[at + len(put) :]
    (folder / "wider_face_val.mat").write_bytes(damaged)
    with suppress(IsoluxError):
        assert load(folder).instances["instance_id"].is_unique().all()


# ── real files ──────────────────────────────────────────────────────────────────────────────────


def test_the_real_faces():
    dataset = load(shared_data("widerface"))
    faces = dataset.instances
    assert (faces.height, dataset.images.height) == (39_708, 3_226)
    assert faces["judged"].sum() == 12_190
    assert faces.filter("judged")["image_id"].n_unique() == 3_049
    assert faces.select("easy", "medium", "hard").sum().row(0) == (7_211, 13_319, 31_958)
    genders = dict(dataset.values_of("perceived_gender")["value"].value_counts().iter_rows())
    assert genders == {"Male": 6_596, "Female": 3_384, "Not Sure": 2_210}
    skins = dict(dataset.values_of("perceived_skin")["value"].value_counts().iter_rows())
    assert [skins[s] for s in ("I", "II", "III", "IV", "V", "VI", "Not Sure")] == [
        5_540, 1_770, 893, 540, 501, 581, 2_365,
    ]  # fmt: skip


def test_without_the_unsure_fhibes_8519_faces_in_2856_files_are_left():
    faces = load(shared_data("widerface"), not_sure="leave out").instances.filter("judged")
    assert (faces.height, faces["image_id"].n_unique()) == (8_519, 2_856)
