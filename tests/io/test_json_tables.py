"""Tables in JSON, written as the tools that make them do."""

from __future__ import annotations

import gzip
import json

import pytest

from isolux.core.errors import FileError, TableError
from isolux.io.frames import read_table
from isolux.predictions import detect_output_format, read_predictions

ROWS = [{"id": "007", "label": "x", "n": 1}, {"id": "8", "label": None, "n": 2.5}]
TABLE = [("007", "x", 1.0), ("8", None, 2.5)]


def written(folder, document, name="net.json"):
    path = folder / name
    path.write_text(json.dumps(document, indent=1))
    return path


@pytest.mark.parametrize(
    "document",
    [
        ROWS,  # pandas: to_json(orient="records")
        {"n_rows": [ROWS[0]["n"], ROWS[1]["n"]], "id": ["007", "8"], "label": ["x", None]},
        {"007": {"label": "x", "n": 1}, "8": {"label": None, "n": 2.5}},  # orient="index"
        {name: {"0": ROWS[0][name], "1": ROWS[1][name]} for name in ROWS[0]},  # orient="columns"
        {"columns": list(ROWS[0]), "index": [0, 1], "data": [list(r.values()) for r in ROWS]},
        {"model_version": "v2", "results": ROWS},
    ],
)
def test_every_layout_is_the_same_table(tmp_path, document):
    frame = read_table(written(tmp_path, document))
    number = "n_rows" if "n_rows" in frame.columns else "n"
    assert frame.select("id", "label", number).rows() == TABLE


def test_it_may_be_gzipped(tmp_path):
    path = tmp_path / "net.json.gz"
    path.write_bytes(gzip.compress(json.dumps(ROWS).encode()))
    assert read_table(path).rows() == TABLE


def test_objects_become_columns_and_lists_stay(tmp_path):
    rows = [
        {"id": 1, "face": {"age": {"low": 20}, "tags": ["a", "b"]}, "face.age": 3},
        {"id": 2, "face": None},
    ]
    frame = read_table(written(tmp_path, [{"id": 1, "face": rows[0]["face"]}, rows[1]]))
    assert frame.to_dict(as_series=False) == {
        "id": [1, 2],
        "face.age.low": [20, None],
        "face.tags": [["a", "b"], None],
    }
    # A column of that name is there already: the object is left as it is.
    assert read_table(written(tmp_path, rows)).columns == ["id", "face", "face.age"]


def visogender():
    """As VisoGender's run_cliplike.py and run_captioning.py write it: an object by id."""
    shared = {"sector": "education", "occ": "teacher", "experiment": "CLIP", "model_name": "clip"}
    numbers = {
        "OO_1": {"his": 0.33691, "her": 0.3269, "their": 0.33618},
        "OO_2": {"his": 0.32763, "her": 0.3396, "their": 0.33276},
    }
    return {key: {**shared, "logits_list_obj": value} for key, value in numbers.items()}


def test_an_object_of_answers_is_ranked_by_its_numbers(tmp_path):
    answers = read_predictions(written(tmp_path, visogender()), column="logits_list_obj")
    assert answers.select("instance_id", "label", "score", "rank").rows() == [
        ("OO_1", "his", 0.33691, 1),
        ("OO_1", "their", 0.33618, 2),
        ("OO_1", "her", 0.3269, 3),
        ("OO_2", "her", 0.3396, 1),
        ("OO_2", "their", 0.33276, 2),
        ("OO_2", "his", 0.32763, 3),
    ]


def test_logits_rank_and_are_no_confidences(tmp_path):
    """BLIP's are 7.4 and the like; an answer without a number was not given."""
    document = {"OP_1": {"logits": {"his": 4.5, "her": 7.4, "their": None}}}
    answers = read_predictions(written(tmp_path, document), column="logits")
    assert answers.select("label", "score", "rank").rows() == [("her", None, 1), ("his", None, 2)]


def test_per_cent_become_confidences_by_their_scale(tmp_path):
    """DeepFace.analyze gives per cent; 86.2 of 100 is 0.862."""
    rows = [{"img_path": "f0.jpg", "gender": {"Man": 13.8, "Woman": 86.2}}]
    path = written(tmp_path, rows)
    answers = read_predictions(path, id="img_path", column="gender", scale=100)
    assert answers["label"].to_list() == ["Woman", "Man"]
    assert answers["score"].to_list() == pytest.approx([0.862, 0.138])


def azure(age, gender):
    rectangle = {"top": 128, "left": 459, "width": 224, "height": 224}
    return {
        "faceId": "c5c24a82-6845-4031-9d5d-978df9175426",
        "faceRectangle": rectangle,
        "faceAttributes": {
            "age": age,
            "gender": gender,
            "hair": {"bald": 0.1, "hairColor": [{"color": "brown", "confidence": 1.0}]},
        },
    }


def test_azure_face(tmp_path):
    """Azure's Detect answers with a list of faces; nobody was found in b.jpg."""
    document = {"a.jpg": [azure(71.0, "male")], "b.jpg": []}
    path = written(tmp_path, document)
    assert detect_output_format(path) == "json"
    answers = read_predictions(path, column="faceAttributes.gender")
    assert answers.select("instance_id", "label").rows() == [("a.jpg", "male"), ("b.jpg", None)]
    assert read_table(path)["faceAttributes.age"].to_list() == [71.0, None]


def test_two_faces_of_a_picture_are_not_one_answer(tmp_path):
    path = written(tmp_path, {"a.jpg": [azure(71.0, "male"), azure(20.0, "female")]})
    with pytest.raises(TableError, match="a person has several answers"):
        read_predictions(path, column="faceAttributes.gender")


def face_plus_plus(image, faces):
    return {
        "request_id": "1470472868,dacf2ff1",
        "image_id": image,
        "time_used": 472,
        "faces": [
            {
                "face_token": f"t{age}",
                "face_rectangle": {"width": 140, "top": 89, "left": 104, "height": 141},
                "attributes": {"gender": {"value": gender}, "age": {"value": age}},
            }
            for gender, age in faces
        ],
        "face_num": len(faces),
    }


@pytest.mark.parametrize("wrap", [list, lambda answers: {a["image_id"]: a for a in answers}])
def test_face_plus_plus(tmp_path, wrap):
    """Face++'s Detect answers with an object of a picture; the faces of each are rows."""
    answers = [face_plus_plus("a.jpg", [("Male", 21)]), face_plus_plus("b.jpg", [])]
    path = written(tmp_path, wrap(answers))
    labels = read_predictions(path, id="image_id", column="faces.attributes.gender.value")
    assert labels.select("instance_id", "label").rows() == [("a.jpg", "Male"), ("b.jpg", None)]
    single = written(tmp_path, answers[0])
    assert read_table(single)["faces.attributes.age.value"].to_list() == [21]


def label_studio_task(task_id, *annotations):
    return {
        "id": task_id,
        "data": {"image": f"/data/upload/{task_id}.jpg", "tone": "dark"},
        "annotations": [
            {
                "id": 10 * task_id + k,
                "completed_by": {"id": k, "email": "a@x"} if k else k,
                "was_cancelled": was_cancelled,
                "result": result,
            }
            for k, (result, was_cancelled) in enumerate(annotations)
        ],
        "predictions": [],
    }


def choice(*choices, name="emotion", **region):
    value = {**region, "choices": list(choices)}
    return {"from_name": name, "to_name": "image", "type": "choices", "value": value}


def test_label_studio(tmp_path):
    """A row an annotation, but for those that were skipped; what belongs to a box is not its."""
    tasks = [
        label_studio_task(1, ([choice("sad")], False), ([choice("happy")], False)),
        label_studio_task(2, ([choice("sad")], True)),
        label_studio_task(3, ([choice("sad"), choice("hat", name="worn", x=1, y=2)], False)),
    ]
    frame = read_table(written(tmp_path, tasks))
    assert frame.select("id", "image", "tone", "annotator", "emotion").rows() == [
        (1, "/data/upload/1.jpg", "dark", 0, "sad"),
        (1, "/data/upload/1.jpg", "dark", 1, "happy"),
        (2, "/data/upload/2.jpg", "dark", None, None),
        (3, "/data/upload/3.jpg", "dark", 0, "sad"),
    ]
    assert "worn" not in frame.columns


def test_boxes_of_label_studio_are_no_table(tmp_path):
    box = {"x": 10, "y": 20, "width": 50, "height": 40, "rectanglelabels": ["face"]}
    mark = {"from_name": "box", "to_name": "image", "type": "rectanglelabels", "value": box}
    with pytest.raises(FileError, match=r"(?s)Label Studio are shapes.*Export, COCO.*coco:FILE"):
        read_table(written(tmp_path, [label_studio_task(1, ([mark], False))]))


@pytest.mark.parametrize("is_minimal", [False, True])
def test_label_studio_with_several_choices(tmp_path, is_minimal):
    """JSON-MIN writes a single choice as text, and several as {"choices": […]}."""
    several = {"choices": ["hat", "scarf"]}
    rows = [{"id": 1, "worn": several}, {"id": 2, "worn": "hat"}]
    if not is_minimal:
        worn = [choice("hat", "scarf", name="worn")], [choice("hat", name="worn")]
        rows = [label_studio_task(k + 1, (result, False)) for k, result in enumerate(worn)]
    assert read_table(written(tmp_path, rows))["worn"].to_list() == [["hat", "scarf"], ["hat"]]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"images": [], "annotations": [], "categories": []}, r"(?s)file of COCO.*coco:FILE"),
        ({"shapes": [], "imagePath": "a.jpg"}, r"(?s)file of labelme.*labelme2coco"),
        ({"info": {}, "categories": {}, "items": []}, r"(?s)file of Datumaro.*-f coco"),
        ({"samples": []}, r"(?s)file of FiftyOne.*fiftyone:FOLDER"),
        ({"a": 1}, r"(?s)this JSON is no table.*an object with 'a'"),
        ({"columns": ["a", "b"], "data": [[1, 2], [3]]}, r"(?s)this JSON is no table"),
        ({}, "(?s)this JSON is no table.*nothing in it"),
        (7, "(?s)this JSON is no table.*a single int"),
        ([{"id": 1}, [2]], r"(?s)an item of the list is not an object.*row 2"),
        ([], "the table has no rows"),
        ([{"id": [1]}, {"id": "x"}], r"(?s)lists in some lines and text in others"),
    ],
)
def test_what_is_no_table_is_refused_with_what_to_do(tmp_path, document, message):
    with pytest.raises(FileError, match=message):
        read_table(written(tmp_path, document))
