from __future__ import annotations

import copy
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.core.tables import INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.casual_conversations import AGE_EDGES, INFO, load
from tests.cli._run import isolux

V1 = {
    "0208": {
        "files": ["CC_NO/0208/0208_00.MP4", "CC_NO/0208/0208_01.MP4"],
        "dark_files": ["CC_NO/0208/0208_01.MP4"],
        "label": {"age": "20", "gender": "Female", "skin-type": "5"},
    },
    "1140": {
        "files": ["CC_A/1140/1140_00.MP4"],
        "dark_files": ["CC_A/1140/1140_03.MP4"],
        "label": {"age": "N/A", "gender": "N/A", "skin-type": "1"},
    },
}
V2 = [
    {
        "video_name": "0000_portuguese_nonscripted_1.mp4",
        "subject_id": "0000",
        "age": "24",
        "gender": "cis woman",
        "geo_location": {"country": "brazil", "state_region": "bahia"},
        "native_language": "portuguese",
        "monk_skin_tone": {"scale": "scale 5", "confidence": "high"},
        "fitzpatrick_skin_tone": {"type": "type iii", "confidence": "medium"},
        "disability": "none",
    },
    {
        "video_name": "0000_portuguese_scripted_1.mp4",
        "subject_id": "0000",
        "age": "24",
        "gender": "cis woman",
        "monk_skin_tone": {"scale": "scale 10", "confidence": "low"},
        "fitzpatrick_skin_tone": {"type": "type vi", "confidence": "low"},
    },
    {"video_name": "0001_hindi_scripted_1.mp4", "subject_id": "0001", "age": "prefer not to say",
     "gender": None, "geo_location": None, "native_language": None, "monk_skin_tone": None},
]  # fmt: skip
LIST = [
    {"age": "20", "gender": "Female", "img_path": "/elsewhere/me/CC/0208/0208_00/face.png",
     "skin-type": "5", "subject_id": "208"},
    {"age": "71", "gender": "Male", "img_path": "/elsewhere/me/CC/1140/1140_00/face.png",
     "skin-type": "2", "subject_id": "1140"},
]  # fmt: skip


def put(folder, content, name="CasualConversations.json"):
    (folder / name).write_text(json.dumps(content))
    return folder / name


def values(dataset, attribute):
    return dict(dataset.values_of(attribute).select("unit_id", "value").iter_rows())


def spread(dataset, attribute):
    rows = dataset.instance_attributes().filter(attribute=attribute)
    return dict(rows.select("unit_id", "value").iter_rows())


def frames(folder, **numbers):
    """Make empty pictures: no one is to be opened."""
    for video, ns in numbers.items():
        (folder / video).mkdir(parents=True, exist_ok=True)
        for n in ns:
            (folder / video / f"{n:06}.png").touch()
    return folder


def test_version_1_is_a_dictionary_of_people(tmp_path):
    dataset = load(put(tmp_path, V1))
    assert dataset.instances.select("instance_id", "subject_id", "video_id").rows() == [
        ("0208_01", "0208", "0208_01"),
        ("0208_00", "0208", "0208_00"),
        ("1140_03", "1140", "1140_03"),
        ("1140_00", "1140", "1140_00"),
    ]
    assert dict(dataset.images.select("image_id", "uri").rows())["0208_00"] == (
        "CC_NO/0208/0208_00.MP4"
    )


def test_dark_files_may_stand_among_all_files_or_apart(tmp_path):
    dataset = load(put(tmp_path, V1))
    assert values(dataset, "lighting") == {
        "0208_00": "bright", "0208_01": "dark", "1140_00": "bright", "1140_03": "dark",
    }  # fmt: skip


def test_what_people_said_is_of_people_and_reaches_their_videos(tmp_path):
    dataset = load(put(tmp_path, V1))
    assert set(dataset.values_of("gender")["unit_kind"]) == {"subject"}
    assert values(dataset, "gender") == {"0208": "Female", "1140": "N/A"}
    assert values(dataset, "age") == {"0208": "20", "1140": None}
    assert values(dataset, "age_group") == {"0208": "18-29", "1140": None}
    assert values(dataset, "skin_type") == {"0208": "5", "1140": "1"}
    assert dataset.values_of("age")["number"].to_list() == [20.0, None]
    assert spread(dataset, "age")["0208_01"] == "20"
    assert dataset.notes == ("1 people did not tell their age.",)


@pytest.mark.parametrize(
    ("age", "group"),
    [("17", "under 18"), ("18", "18-29"), ("30", "30-44"), ("45", "45-69"), ("69", "45-69"),
     ("70", "70 and over"), (85, "70 and over")],
)  # fmt: skip
def test_ages_are_parted_as_fairness_indicators_parts_them(tmp_path, age, group):
    changed = copy.deepcopy(V1)
    changed["0208"]["label"]["age"] = age
    assert values(load(put(tmp_path, changed)), "age_group")["0208"] == group
    assert AGE_EDGES == (18, 30, 45, 70)


def test_version_2_is_a_list_of_videos(tmp_path):
    dataset = load(put(tmp_path, V2, "CasualConversationsV2.json"))
    first, second, third = dataset.instances["instance_id"].to_list()
    assert first == "0000_portuguese_nonscripted_1"
    assert dataset.instances["subject_id"].to_list() == ["0000", "0000", "0001"]
    assert values(dataset, "skin_tone") == {first: "5", second: "10", third: None}
    assert values(dataset, "skin_tone_confidence") == {first: "high", second: "low", third: None}
    assert values(dataset, "skin_type") == {first: "3", second: "6", third: None}
    assert values(dataset, "skin_type_confidence")[first] == "medium"
    assert values(dataset, "gender") == {first: "cis woman", second: "cis woman", third: None}
    assert values(dataset, "age") == {first: "24", second: "24", third: None}
    assert values(dataset, "country") == {first: "brazil", second: None, third: None}
    assert values(dataset, "state_region")[first] == "bahia"
    assert values(dataset, "native_language")[first] == "portuguese"


@pytest.mark.parametrize(
    ("said", "type_"),
    [("type i", "1"), ("type ii", "2"), ("Type III", "3"), ("type iv", "4"), ("type v", "5"),
     ("vi", "6"), (4, "4"), ("N/A", None), ("", None)],
)  # fmt: skip
def test_both_spellings_of_a_skin_type(tmp_path, said, type_):
    video = {**V2[0], "fitzpatrick_skin_tone": {"type": said}}
    dataset = load(put(tmp_path, [video], "CasualConversationsV2.json"))
    assert dataset.values_of("skin_type")["value"].to_list() == [type_]


@pytest.mark.parametrize("tone", range(1, 11))
def test_all_tones_of_monks_scale(tmp_path, tone):
    video = {**V2[0], "monk_skin_tone": {"scale": f"scale {tone}", "confidence": "low"}}
    dataset = load(put(tmp_path, [video], "CasualConversationsV2.json"))
    assert dataset.values_of("skin_tone")["value"].to_list() == [str(tone)]


def test_the_list_of_pictures_goes_by_the_last_three_parts(tmp_path):
    dataset = load(put(tmp_path, LIST, "cc.json"))
    assert dataset.instances["instance_id"].to_list() == [
        "0208/0208_00/face.png", "1140/1140_00/face.png",
    ]  # fmt: skip
    assert dataset.instances["subject_id"].to_list() == ["0208", "1140"], "zeros were dropped"
    assert spread(dataset, "age_group") == {
        "0208/0208_00/face.png": "18-29", "1140/1140_00/face.png": "70 and over",
    }  # fmt: skip


def test_a_person_is_a_cluster(tmp_path):
    path = put(tmp_path, V1)
    clusters = load(path).instances["cluster_id"].to_list()
    assert clusters == ["0208", "0208", "1140", "1140"]
    assert cluster_by_requested_column(load(path), "video").instances["cluster_id"].n_unique() == 4
    assert cluster_by_requested_column(load(path), "row").instances["cluster_id"].null_count() == 4
    with pytest.raises(UnknownNameError, match=r"(?s)no cluster named 'clip'.*subject"):
        cluster_by_requested_column(load(path), "clip")


def test_the_folder_and_what_else_lies_in_it(tmp_path):
    put(tmp_path, V1)
    put(tmp_path, {"0208": V1["0208"]}, "CasualConversations_mini.json")
    put(tmp_path, [], "CasualConversationsV2_activity.json")
    assert load(tmp_path).instances.height == 4
    (tmp_path / "CasualConversations.json").unlink()
    put(tmp_path, V2, "CasualConversationsV2.json")
    assert load(tmp_path).instances.height == 3


# The middle of parts of 7 frames: ⌊(i + ½) · 7 / n⌋: 3; 1, 3, 5; of 5 parts 0, 2, 3, 4, 6.
@pytest.mark.parametrize(
    ("n", "taken"), [(1, [30]), (3, [10, 30, 50]), (5, [0, 20, 30, 40, 60]), (10, range(0, 70, 10))]
)
def test_frames_are_taken_evenly(tmp_path, n, taken):
    pictures = frames(tmp_path / "frames", **{"0208_00": range(0, 70, 10)})
    dataset = load(put(tmp_path, V1), pictures=pictures, frames=n)
    rows = dataset.instances.filter(video_id="0208_00")
    assert rows["frame_index"].to_list() == list(taken)
    assert rows["instance_id"].to_list() == [f"0208_00#{k}" for k in taken]
    assert set(rows["cluster_id"]) == {"0208"}


def test_the_middle_frame_is_the_middle_of_those_with_a_face(tmp_path):
    # Of a video of 101 frames a face was found in these alone.
    crops = frames(tmp_path / "crops", **{"0208_00": [0, 1, 2, 3, 100]})
    dataset = load(put(tmp_path, V1), pictures=crops)
    uris = dict(dataset.images.select("image_id", "uri").iter_rows())
    assert uris["0208_00#2"] == "0208_00/000002.png"


def test_videos_without_a_picture_stay_and_are_said(tmp_path):
    crops = frames(tmp_path / "crops", **{"0208_00": [4], "9999_00": [1]})
    dataset = load(put(tmp_path, V1), pictures=crops)
    assert dataset.instances["instance_id"].to_list() == [
        "0208_01", "0208_00#4", "1140_03", "1140_00",
    ]  # fmt: skip
    assert dataset.images["uri"].to_list() == [None, "0208_00/000004.png", None, None]
    assert dataset.notes[:2] == (
        "3 video(s) have no picture and are kept as they are: 0208_01, 1140_03, 1140_00.",
        "1 picture(s) are of no video that the file lists.",
    )
    assert spread(dataset, "skin_type")["0208_00#4"] == "5"
    assert values(dataset, "lighting")["0208_00#4"] == "bright"


def test_frames_are_called_as_version_2_publishes_them(tmp_path):
    part = tmp_path / "frames" / "ccv2-frames-part-1" / "0000"
    part.mkdir(parents=True)
    for n in (0, 30, 60):
        (part / f"0000_portuguese_nonscripted_1_raw_frame{n:08}.jpg").touch()
    (part / "0000_portuguese_scripted_1_frame7.png").touch()
    (part / "readme.txt").touch()
    path = put(tmp_path, V2, "CasualConversationsV2.json")
    dataset = load(path, pictures=tmp_path / "frames", frames=3)
    assert dataset.instances["instance_id"].to_list() == [
        "0000_portuguese_nonscripted_1#0", "0000_portuguese_nonscripted_1#30",
        "0000_portuguese_nonscripted_1#60", "0000_portuguese_scripted_1#7",
        "0001_hindi_scripted_1",
    ]  # fmt: skip
    assert len(dataset.inputs) == 2


def test_a_frame_that_is_there_twice_is_refused(tmp_path):
    pictures = frames(tmp_path / "frames", **{"0208_00": [3], "copy/0208_00": [3]})
    with pytest.raises(TableError, match=r"(?s)a frame is there twice.*0208_00/000003\.png"):
        load(put(tmp_path, V1), pictures=pictures)


def test_folders_without_frames_are_refused(tmp_path):
    path = put(tmp_path, V1)
    with pytest.raises(FileError, match=r"(?s)no such folder of frames.*absent"):
        load(path, pictures=tmp_path / "absent")
    with pytest.raises(FileError, match=r"(?s)no frame of these videos.*_frame00000012.*no pict"):
        load(path, pictures=tmp_path)
    with pytest.raises(SpecError, match=r"(?s)several frames.*no pictures.*frames=3"):
        load(path, frames=3)
    with pytest.raises(SpecError, match=r"(?s)frames cannot be set.*1 or more.*0"):
        load(path, frames=0)
    with pytest.raises(SpecError, match="this list names pictures, not videos"):
        load(put(tmp_path, LIST, "cc.json"), pictures=tmp_path, frames=2)
    of_pictures = load(put(tmp_path, LIST, "cc.json"), pictures=tmp_path)  # their folder alone
    assert of_pictures.instances.height == 2


def test_one_name_in_two_folders_is_told_apart_by_its_path(tmp_path):
    people = {
        s: {"files": [f"{s}/video.mp4"], "label": {"age": "20", "gender": "Male"}}
        for s in ("0001", "0002")
    }
    ids = load(put(tmp_path, people)).instances["instance_id"].to_list()
    assert ids == ["0001/video.mp4", "0002/video.mp4"]


def test_further_columns_are_documented(tmp_path):
    dataset = load(put(tmp_path, V1))
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    known = {c.name: c.dtype for c in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


def test_it_says_whose_judgement_it_is():
    assert INFO.training_allowed is False
    assert INFO.label_source == "self-reported"
    terms = dict(INFO.terms)
    assert terms["gender"] == "self-reported gender"
    assert terms["skin_type"].startswith("annotated")


def relabelled(subject="0208", **label):
    changed = copy.deepcopy(V1)
    changed[subject]["label"].update({k.replace("_", "-"): v for k, v in label.items()})
    return changed


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (relabelled(age="old"), "not numbers.*'old'.*row 1, column 'age'"),
        (relabelled("1140", age="-4"), "not a number of years.*0 to 120.*'-4'.*row 2"),
        (relabelled("1140", age="nan"), None),
        (relabelled(skin_type="7"), "no Fitzpatrick type.*'7'.*row 1"),
        (relabelled(skin_type="type x"), "no Fitzpatrick type.*'type x'.*row 1"),
        (relabelled(gender=3), "got `int`.*gender"),
        ({"1": {"files": ["../a.mp4"]}}, r"leads out of the dataset's folder.*'../a.mp4'.*row 1"),
        ({"1": {"files": ["/a.mp4"]}}, "leads out of the dataset's folder"),
        ({"1": {"files": "a.mp4"}}, "got `str`"),
        ({"1": []}, "got `array`"),
        ([{"video_name": "a.mp4"}], "missing required field `subject_id`.*row 1"),
        ([V2[0], {"name": "a"}], "neither a video nor a picture.*row 2"),
        ([V2[0], V2[0]], "a video occurs twice.*row 2"),
        ([{**V2[0], "subject_id": ""}], "a video has no subject.*row 1"),
        ([{**V2[0], "monk_skin_tone": {"scale": "scale 11"}}], "Monk's scale.*'scale 11'.*row 1"),
        ([{**V2[0], "monk_skin_tone": "scale 5"}], "got `str`.*row 1, column 'monk_skin_tone'"),
        ([LIST[0], LIST[0]], "a video occurs twice.*row 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, content, words):
    path = put(tmp_path, content)
    if words is None:
        assert values(load(path), "age")["1140"] is None
        return
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(path)


def test_a_subject_that_occurs_twice_is_refused(tmp_path):
    # JSON readers keep the last of two equal names without a word.
    text = json.dumps(V1)
    (tmp_path / "a.json").write_text(text.replace('"1140": {', '"0208": {'))
    with pytest.raises(TableError, match=r"(?s)a subject occurs twice.*'0208'"):
        load(tmp_path / "a.json")


def test_files_that_are_no_json(tmp_path):
    path = put(tmp_path, V1)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(FileError, match=r"(?s)cut off.*byte 50"):
        load(path)
    path.write_text("[" * 10_000)
    with pytest.raises(IsoluxError):
        load(path)
    path.unlink()
    with pytest.raises(FileError, match="holds no Casual Conversations annotations"):
        load(tmp_path)


def test_nobody_is_no_error(tmp_path):
    assert load(put(tmp_path, [])).instances.height == 0
    assert load(put(tmp_path, {})).instances.height == 0


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    people, said = {}, ["id,label"]
    for i in range(120):
        gender = ("Female", "Male")[i // 2 % 2]
        people[f"{i:04}"] = {
            "files": [f"CC/{i:04}/{i:04}_00.MP4", f"CC/{i:04}/{i:04}_01.MP4"],
            "label": {"age": str(18 + i % 50), "gender": gender, "skin-type": str(1 + i % 2)},
        }
        # Both videos of every second person of type 2 are answered wrongly.
        wrong = i % 4 == 1
        answer = {"Female": "Male", "Male": "Female"}[gender] if wrong else gender
        said += [f"{i:04}_{v:02}#20,{answer}" for v in range(2)]
    videos = [f"{i:04}_{v:02}" for i in range(120) for v in range(2)]
    pictures = frames(tmp_path / "frames", **dict.fromkeys(videos, (10, 20, 30)))
    path = put(tmp_path, people)
    (tmp_path / "net.csv").write_text("\n".join(said) + "\n")
    ran = isolux(
        monkeypatch, capsys, "audit", f"casual_conversations:{path}", "--target", "gender",
        "--by", "skin_type", "--predictions", tmp_path / "net.csv", "--metric", "accuracy",
        "--replicates", 100, "--data-option", f"pictures={pictures}", "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    told = " ".join(ran.out.split())
    assert "50.0 points lower" in told
    assert "in 120 clusters (subject)" in told


WHOLE = [json.dumps(content) for content in (V1, V2, LIST)]


@given(
    text=st.sampled_from(WHOLE),
    at=st.floats(0, 1),
    cut=st.integers(0, 9),
    put_in=st.sampled_from(["", "null", "-1", "1e308", '"', "[]", "{}", "é", "0", "[", "N/A"]),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, text, at, cut, put_in):
    path = tmp_path_factory.mktemp("fuzz") / "a.json"
    where = int(at * len(text))
    path.write_text(text[:where] + put_in + text[where + cut :])
    with suppress(IsoluxError):
        dataset = load(path)
        assert dataset.instances["instance_id"].is_unique().all()
        assert dataset.values_of("age")["number"].drop_nulls().is_between(0, 120).all()


@given(
    names=st.lists(
        st.from_regex(r"\A(0208_0[01](_raw)?_?frame_?)?[0-9٠]{1,20}\.(jpg|png)\Z"), max_size=6
    ),
    n=st.integers(1, 12),
)
def test_any_frames_give_a_dataset_or_our_own_error(tmp_path_factory, names, n):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "frames" / "0208_00").mkdir(parents=True)
    for name in names:
        (folder / "frames" / "0208_00" / name).touch()
    with suppress(IsoluxError):
        rows = load(put(folder, V1), pictures=folder / "frames", frames=n).instances
        assert rows["instance_id"].is_unique().all()
        assert set(rows["video_id"]) == {"0208_00", "0208_01", "1140_00", "1140_03"}
