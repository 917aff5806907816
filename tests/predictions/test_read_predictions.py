from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core import registry
from isolux.core.errors import (
    FileError,
    IsoluxError,
    JoinError,
    SpecError,
    TableError,
    UnknownNameError,
)
from isolux.core.tables import LABEL_PREDICTIONS
from isolux.predictions import read_labels, read_predictions
from isolux.predictions._outputs import is_label_format
from tests._shared import shared_data
from tests._sheets import frame_rows, write_ods, write_xlsx


def written(folder: Path, text: str, name: str = "net.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def rows(frame: pl.DataFrame) -> list[tuple[object, ...]]:
    return frame.select("instance_id", "label", "score", "rank").rows()


# ── one answer a row ────────────────────────────────────────────────────────────────────────────


def test_an_answer_a_row(tmp_path):
    path = written(tmp_path, "file,gender,sure\nval/1.jpg,Male,0.93\n007,,\n")
    frame = read_predictions(path, column="gender", score="sure")
    assert frame.schema == LABEL_PREDICTIONS.schema
    assert frame.rows() == [
        ("net", "val/1.jpg", "Male", 0.93, 1, None),
        ("net", "007", None, None, 1, None),
    ]


def test_a_table_of_our_own_names_needs_no_options(tmp_path):
    path = written(tmp_path, "instance_id,label,score,model\na,x,0.5,m\nb,y,1,\n", "net.v2.csv")
    assert read_predictions(path).select("model", "label", "score").rows() == [
        ("m", "x", 0.5),
        ("net.v2", "y", 1.0),
    ]


def test_a_score_is_taken_unasked_only_beside_a_label(tmp_path):
    path = written(tmp_path, "id,prediction,score\na,x,0.5\n")
    assert read_predictions(path)["score"].to_list() == [None]


def test_the_models_name_is_the_given_one_first(tmp_path):
    path = written(tmp_path, "id,label,model\na,x,m\n")
    assert read_predictions(path, model="erm")["model"].to_list() == ["erm"]
    assert read_predictions(path)["model"].to_list() == ["m"]


def test_two_models_in_one_file_may_judge_the_same_people(tmp_path):
    path = written(tmp_path, "id,label,model\na,x,m\na,y,n\n")
    assert read_predictions(path).select("model", "rank").rows() == [("m", 1), ("n", 1)]


def test_scores_are_divided_by_their_scale(tmp_path):
    path = written(tmp_path, "id,label,score\na,x,88.5\nb,y,100\nc,z,0\n")
    assert read_predictions(path, scale=100)["score"].to_list() == [0.885, 1.0, 0.0]


def test_a_rounding_excess_of_single_precision_is_cut_off(tmp_path):
    path = written(tmp_path, "id,label,score\na,x,1.0000001\nb,x,-0.0000001\n")
    assert read_predictions(path)["score"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("0", False), ("0.0", False), ("", False), ("false", False), ("FALSE", False),
        ("no", False), ("None", False), ("nan", False), ("-0.0", False),
        ("N", False), ("f", False), ("missed", False), ("Undetected", False), ("n", False),
        ("true", True), ("yes", True), ("1", True), ("1.0", True), ("Y", True), ("T", True),
        ("found", True), ("DETECTED", True),
    ],
)  # fmt: skip
def test_who_was_detected(tmp_path, cell, found):
    path = written(tmp_path, f"id,label,face\na,x,{cell}\n")
    frame = read_predictions(path, detected="face")
    assert frame.select("label", "detected").rows() == [("x", found)]


@pytest.mark.parametrize("cell", ["0.94", "1.01", "0.2", "[]", "maybe", "2", "-1", "face"])
def test_a_cell_that_does_not_say_who_was_detected_is_refused(tmp_path, cell):
    path = written(tmp_path, f"id,label,face\na,x,1\nb,x,{cell}\n")
    with pytest.raises(
        TableError,
        match=rf"(?s)1 cell\(s\) do not say whether.*1 or 0, yes or no.*'{re.escape(cell)}'"
        r".*row 2, column 'face'.*write 1",
    ):
        read_predictions(path, detected="face")


def test_confidences_say_who_was_found_only_beside_cells_that_say_who_was_not(tmp_path):
    path = written(tmp_path, "id,label,face\na,x,0.94\nb,x,1.01\nc,x,0\nd,x,\n")
    assert read_predictions(path, detected="face")["detected"].to_list() == [True] * 2 + [False] * 2
    path = written(tmp_path, "id,label,face\na,x,0.94\nb,x,0.12\nc,x,0\n")
    with pytest.raises(TableError, match=r"(?s)'0.12'.*counts as found"):
        read_predictions(path, detected="face")


def test_detections_as_numbers_truth_or_lists(tmp_path):
    pl.DataFrame(
        {
            "id": ["a", "b", "c"],
            "label": ["x", "y", "z"],
            "conf": [0.0, None, 0.9],
            "found": [True, False, None],
            "boxes": [["1"], [], None],
        }
    ).write_parquet(tmp_path / "net.parquet")
    for column, detected in (
        ("conf", [False, False, True]),
        ("found", [True, False, False]),
        ("boxes", [True, False, False]),
    ):
        frame = read_predictions(tmp_path / "net.parquet", detected=column)
        assert frame["detected"].to_list() == detected, column


# ── several answers ─────────────────────────────────────────────────────────────────────────────


def test_several_rows_are_ranked_by_falling_score_ties_by_their_labels(tmp_path):
    text = "id,label,score\na,z,0.2\nb,w,0.1\na,y,0.5\na,x,0.2\n"
    # a: y (.5) is first; x and z tie at .2, and x is first, wherever its row stands.
    assert rows(read_predictions(written(tmp_path, text))) == [
        ("a", "z", 0.2, 3),
        ("b", "w", 0.1, 1),
        ("a", "y", 0.5, 1),
        ("a", "x", 0.2, 2),
    ]


def test_separated_cells_are_ranked_as_they_stand(tmp_path):
    path = written(tmp_path, "id,label,score\na,x | y,0.4|0.6\nb,z,0.9\nc,,\n")
    assert rows(read_predictions(path, separator="|")) == [
        ("a", "x", 0.4, 1),
        ("a", "y", 0.6, 2),
        ("b", "z", 0.9, 1),
        ("c", None, None, 1),
    ]


@pytest.mark.parametrize("name", ["net.jsonl", "net.parquet", "net.arrow"])
def test_lists_are_ranked_as_they_stand(tmp_path, name):
    frame = pl.DataFrame(
        {"id": ["a", "b", "c"], "label": [["x", "y"], [], None], "score": [[0.4, 0.6], [], None]}
    )
    write = {"net.jsonl": frame.write_ndjson, "net.arrow": frame.write_ipc}
    write.get(name, frame.write_parquet)(tmp_path / name)
    assert rows(read_predictions(tmp_path / name)) == [
        ("a", "x", 0.4, 1),
        ("a", "y", 0.6, 2),
        ("b", None, None, 1),
        ("c", None, None, 1),
    ]


def test_arrays_of_fixed_length_are_lists(tmp_path):
    pl.DataFrame(
        {"id": ["a"], "label": [["x", "y"]], "score": [[0.4, 0.6]]},
        schema_overrides={"label": pl.Array(pl.String, 2), "score": pl.Array(pl.Float32, 2)},
    ).write_parquet(tmp_path / "net.parquet")
    frame = read_predictions(tmp_path / "net.parquet")
    assert frame.select("label", "rank").rows() == [("x", 1), ("y", 2)]
    assert frame["score"].to_list() == pytest.approx([0.4, 0.6], abs=1e-7)


def test_lists_without_scores(tmp_path):
    path = written(tmp_path, "id,label\na,x;y\n")
    assert rows(read_predictions(path, separator=";")) == [("a", "x", None, 1), ("a", "y", None, 2)]


def test_an_unanswered_place_in_a_list_keeps_its_score(tmp_path):
    path = written(tmp_path, "id,label,score\na,;y,0.4;0.6\n")
    assert rows(read_predictions(path, separator=";")) == [("a", None, 0.4, 1), ("a", "y", 0.6, 2)]


def test_a_list_of_one_may_have_a_plain_score(tmp_path):
    pl.DataFrame({"id": ["a"], "label": [["x"]], "score": [0.5]}).write_parquet(
        tmp_path / "net.parquet"
    )
    assert rows(read_predictions(tmp_path / "net.parquet")) == [("a", "x", 0.5, 1)]


# ── ids ─────────────────────────────────────────────────────────────────────────────────────────


def test_ids_may_be_shortened(tmp_path):
    path = written(tmp_path, "file,label\nfairface/val/1.jpg,x\n")
    for id_from, found in (("column", "fairface/val/1.jpg"), ("basename", "1.jpg"), ("stem", "1")):
        assert read_predictions(path, id_from=id_from)["instance_id"].to_list() == [found]


def test_ids_that_become_one_are_refused(tmp_path):
    path = written(tmp_path, "file,label\ntrain/1.jpg,x\nval/1.jpg,y\n")
    with pytest.raises(
        JoinError,
        match=r"(?s)different ids have the same basename.*'train/1.jpg' and 'val/1.jpg' both become"
        r" '1.jpg'",
    ):
        read_predictions(path, id_from="basename")


# ── what is refused, and in which words ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("nan", r"1 score\(s\) are not finite numbers.*found: nan"),
        ("inf", r"1 score\(s\) are not finite numbers.*found: inf"),
        ("-inf", r"1 score\(s\) are not finite numbers.*found: -inf"),
        ("high", r"1 cell\(s\) are not numbers.*found: 'high'"),
        ("1.01", r"1 of 2 scores are outside 0 to 1.*found: 1.01.*correct row 2"),
        ("88.5", r"1 of 2 scores are outside 0 to 1.*found: 88.5.*--option score_scale=100"),
        ("-3.2", r"1 of 2 scores are outside 0 to 1.*found: -3.2.*logits and distances"),
        ("712", r"1 of 2 scores are outside 0 to 1.*found: 712.*logits and distances"),
    ],
)
def test_a_score_that_is_no_confidence_names_its_row(tmp_path, cell, words):
    path = written(tmp_path, f"id,label,score\na,x,0.5\nb,y,{cell}\n")
    with pytest.raises(TableError, match=f"(?s){words}") as caught:
        read_predictions(path)
    assert "net.csv, row 2, column 'score'" in str(caught.value)


# Logits of CLIP for three pronouns of two people, as its model gives them: 100 times a cosine.
_LOGITS = {("a", "he"): 25.8, ("a", "she"): 24.1, ("a", "they"): 22.9,
           ("b", "he"): 23.0, ("b", "she"): 26.4, ("b", "they"): 23.1}  # fmt: skip


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (0.0, "logits such as CLIP's.*softmax over each person's answers.*only if these are perc"),
        (-30.0, r"look like log-probabilities: give exp\(score\), or keep each person's best"),
        (-25.0, "logits and distances are not confidences.*softmax over each person's answers"),
    ],
)
def test_logits_of_several_answers_are_no_percents(tmp_path, shift, words):
    rows = [f"{who},{label},{number + shift}" for (who, label), number in _LOGITS.items()]
    path = written(tmp_path, "\n".join(["id,label,score", *rows, ""]))
    with pytest.raises(TableError, match=f"(?s)outside 0 to 1.*{words}"):
        read_predictions(path)
    # What the advice says is read, and each person's best answer comes first.
    logits = pl.read_csv(path)
    softmax = pl.col("score").exp() / pl.col("score").exp().sum().over("id")
    logits.with_columns(softmax).write_csv(path)
    best = read_predictions(path).filter(rank=1)
    assert best.select("instance_id", "label").sort("instance_id").rows() == [
        ("a", "he"), ("b", "she"),
    ]  # fmt: skip


def test_scores_beyond_their_scale_say_so(tmp_path):
    path = written(tmp_path, "id,label,score\na,x,101\n")
    with pytest.raises(TableError, match=r"(?s)outside 0 to 1.*0 to 1 after division by 100"):
        read_predictions(path, scale=100)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_must_be_a_number_above_zero(tmp_path, scale):
    path = written(tmp_path, "id,label,score\na,x,0.5\n")
    with pytest.raises(SpecError, match="the scale of the scores cannot be used"):
        read_predictions(path, scale=scale)


def test_bad_scores_in_lists_name_the_files_row(tmp_path):
    frame = pl.DataFrame(
        {"id": ["a", "b"], "label": [["x", "y"]] * 2, "score": [[0.1, 0.2], [0.3, float("nan")]]}
    )
    frame.write_parquet(tmp_path / "net.parquet")
    with pytest.raises(TableError, match=r"(?s)not finite numbers.*row 2, column 'score'"):
        read_predictions(tmp_path / "net.parquet")


@pytest.mark.parametrize("option", ["id", "column", "score", "detected"])
def test_a_missing_column_names_near_ones(tmp_path, option):
    path = written(tmp_path, "id,label,score\na,x,0.5\n")
    with pytest.raises(
        UnknownNameError, match=r"(?s)no column named 'labels'.*did you mean 'label'"
    ):
        read_predictions(path, **{option: "labels"})


def test_an_unknown_answer_column_must_be_named(tmp_path):
    path = written(tmp_path, "id,gender\na,x\n")
    with pytest.raises(
        SpecError, match=r"(?s)no column is known to hold.*'id', 'gender'.*--prediction-column"
    ):
        read_predictions(path)


def test_an_unknown_id_column_must_be_named(tmp_path):
    path = written(tmp_path, "who,label\na,x\n")
    with pytest.raises(SpecError, match=r"(?s)no column says whom.*--prediction-id"):
        read_predictions(path)


def test_several_answers_without_scores_cannot_be_ranked(tmp_path):
    path = written(tmp_path, "id,label\na,x\nb,y\na,z\n")
    with pytest.raises(
        TableError,
        match=r"(?s)several answers and nothing says which comes first.*'a' in rows 1 and 3"
        r".*--score-column",
    ):
        read_predictions(path)


def test_several_answers_need_a_score_each(tmp_path):
    path = written(tmp_path, "id,label,score\na,x,0.5\nb,y,\na,z,\n")
    with pytest.raises(TableError, match=r"(?s)'a' in rows 1 and 3, without a 'score'"):
        read_predictions(path)


def test_several_rows_of_lists_are_refused(tmp_path):
    path = written(tmp_path, "id,label\na,x;y\na,z\n")
    with pytest.raises(
        TableError, match=r"(?s)several rows, and several answers in a row.*'a'.*row 2"
    ):
        read_predictions(path, separator=";")


def test_lists_of_unequal_length_name_the_row(tmp_path):
    path = written(tmp_path, "id,label,score\na,x;y,0.4;0.6\nb,x;y;z,0.1;0.2\n")
    with pytest.raises(
        TableError,
        match=r"(?s)1 row\(s\) have more or fewer scores than answers.*3 answer\(s\) and 2 score"
        r"\(s\).*row 2, column 'score'",
    ):
        read_predictions(path, separator=";")


def test_rows_without_an_id_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"(?s)1 row\(s\) have no id.*row 2"):
        read_predictions(written(tmp_path, "id,label\na,x\n,y\n"))


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        read_predictions(tmp_path / "net.csv")
    with pytest.raises(FileError, match="there is no such file"):
        read_labels(tmp_path / "net.json")
    with pytest.raises(UnknownNameError, match="no prediction format named 'docx'"):
        read_predictions(tmp_path / "net.docx", format="docx")


# ── formats ─────────────────────────────────────────────────────────────────────────────────────


def test_every_format_gives_the_same_table(tmp_path):
    frame = pl.DataFrame({"id": ["a", "b"], "label": ["x", None], "score": [0.25, 1.0]})
    frame.write_csv(tmp_path / "net.csv")
    frame.write_csv(tmp_path / "net.tsv", separator="\t")
    frame.write_parquet(tmp_path / "net.parquet")
    frame.write_json(tmp_path / "net.json")
    frame.write_ndjson(tmp_path / "net.jsonl")
    frame.write_ipc(tmp_path / "net.arrow")
    pytest.importorskip("python_calamine")
    write_xlsx(tmp_path / "net.xlsx", {"S": frame_rows(frame)})
    write_ods(tmp_path / "net.ods", {"S": frame_rows(frame)})
    found = [read_predictions(path) for path in sorted(tmp_path.iterdir())]
    labels = [
        n for n in registry.names("predictions") if is_label_format(registry.load("predictions", n))
    ]
    assert len(found) == len(labels) == 8
    for one in found:
        assert one.rows() == [("net", "a", "x", 0.25, 1, None), ("net", "b", None, 1.0, 1, None)]


@pytest.mark.parametrize(
    "name", ["csv", "tsv", "parquet", "json", "jsonlines", "arrow", "xlsx", "ods"]
)
def test_every_format_cites_its_definition(name):
    info = registry.load_info("predictions", name)
    assert info.references[0].citation
    assert info.summary.endswith(".")


def test_a_format_may_be_named(tmp_path):
    path = written(tmp_path, json.dumps({"id": "a", "label": "x"}), "net.json")
    assert rows(read_predictions(path, format="jsonlines")) == [("a", "x", None, 1)]


# ── laws ────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 3)),
        min_size=1,
        max_size=8,
    )
)
def test_ranks_agree_with_a_stable_sort(tmp_path_factory, answers):
    # The independent implementation: Python's sort, by falling score and then by label.
    path = tmp_path_factory.mktemp("law") / "net.csv"
    path.write_text("id,label,score\n" + "".join(f"{i},{x},{s / 4}\n" for i, x, s in answers))
    expected = {}
    for person in "ab":
        theirs = [n for n, (i, _, _) in enumerate(answers) if i == person]
        best_first = sorted(theirs, key=lambda n: (-answers[n][2], answers[n][1]))
        expected |= {n: rank for rank, n in enumerate(best_first, start=1)}
    ranks = read_predictions(path)["rank"].to_list()
    assert ranks == [expected[n] for n in range(len(answers))]


PIECES = st.lists(
    st.sampled_from(
        ["id", "label", "score", "model", "face", ",", ",", ",", "\n", "\n", '"', ";", " ", "1",
         "0.5", "nan", "1e999", "-", "a/b", "\\", "é", "\r\n", "0", "\u2003"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(
    text=st.one_of(PIECES, PIECES.map("id,label,score,face\n".__add__)),
    separator=st.sampled_from([None, ";", ""]),
    id_from=st.sampled_from(["column", "basename", "stem", "other"]),
    detected=st.sampled_from([None, "face"]),
)
def test_any_text_gives_predictions_or_our_own_error(
    tmp_path_factory, text, separator, id_from, detected
):
    path = tmp_path_factory.mktemp("fuzz") / "net.csv"
    path.write_text(text, encoding="utf-8", newline="")
    with suppress(IsoluxError):
        frame = read_predictions(path, separator=separator, id_from=id_from, detected=detected)
        assert frame["score"].drop_nulls().is_between(0, 1).all()
        assert (frame.group_by("model", "instance_id").agg(pl.col("rank").min())["rank"] == 1).all()


@given(
    st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from(["a", "b", 1, None])},
            optional={
                "label": st.none() | st.text(max_size=2) | st.lists(st.sampled_from("xy")),
                "score": st.none() | st.floats() | st.lists(st.floats(0, 2) | st.text(max_size=1)),
            },
        ),
        min_size=1,
        max_size=4,
    )
)
def test_json_of_any_shape_gives_predictions_or_our_own_error(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("fuzz") / "net.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in records))
    with suppress(IsoluxError):
        assert read_predictions(path, score="score")["rank"].min() == 1


# ── real files ──────────────────────────────────────────────────────────────────────────────────


def test_the_real_answers_of_deepface():
    path = shared_data("fairface_services/deepface_3k.csv")
    frame = read_predictions(
        path, column="gender", score="gender_confidence", scale=100, detected="face_confidence"
    )
    assert frame.height == 3_000
    assert frame["model"].unique().to_list() == ["DeepFace"]
    # Rows with a face_confidence of 0.0, counted in the file with awk.
    assert int((~frame["detected"]).sum()) == 1_036
    assert frame["score"].is_between(0.5, 1.0).all()


def test_the_real_answers_of_deepface_run_to_a_hundred():
    path = shared_data("fairface_services/deepface_3k.csv")
    with pytest.raises(
        TableError, match=r"(?s)3,000 of 3,000 scores are.*--option score_scale=100"
    ):
        read_predictions(path, column="gender", score="gender_confidence")
    with pytest.raises(
        TableError, match=r"(?s)1 of 3,000 scores (is|are).*found: 1\.01.*correct row"
    ):
        read_predictions(path, column="gender", score="face_confidence")
