"""One box a phrase: who is judged under each reading of the paper, by hand and by pycocotools."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.errors import SpecError, UnknownNameError
from isolux.tasks.grounding import score
from tests.geometry._coco import Case
from tests.geometry.test_against_pycocotools import box_cases
from tests.tasks._classed import by_group, each_class, found_by_coco, judged, with_classes
from tests.tasks._pictures import boxes, of_case, pictures, values

TEN = [0.0, 0.0, 10.0, 10.0]
APART = [50.0, 0.0, 10.0, 10.0]
FAR = [90.0, 0.0, 10.0, 10.0]


def of(*classes):
    return {"classes": list(classes)}


# Image 1: two nurses and a guard. Image 2: a nurse and a guard. Image 3: a nurse who is a student.
PEOPLE = pictures(
    {
        "n1": ("1", TEN, of("nurse")),
        "n2": ("1", APART, of("nurse")),
        "g1": ("1", FAR, of("guard")),
        "n3": ("2", TEN, of("nurse")),
        "g2": ("2", APART, of("guard")),
        "ns": ("3", TEN, of("nurse", "student")),
    },
    groups={"n1": "X", "n2": "X", "g1": "X", "n3": "X", "g2": "Y", "ns": "Y"},
)
# The guard of image 1 is found at .6 (three overlaps); in image 2 the nurse's phrase gets a box on
# the guard; in image 3 both phrases find her, the student's at .8 (seven overlaps).
FOUND = boxes(
    ("1", TEN, 1.0, "nurse"),
    ("1", [90.0, 0.0, 10.0, 6.0], 1.0, "guard"),
    ("2", APART, 1.0, ' which region does the text " nurse " describe?'),
    ("2", APART, 1.0, "Which region does the text guard describe?"),
    ("3", TEN, 1.0, "nurse"),
    ("3", [0.0, 0.0, 10.0, 8.0], 1.0, "student"),
)
EVERY, OWN, ALONE = (
    f"several people {of}in the image" for of in ("of one class ", "of the class ", "")
)


def test_images_in_which_no_class_has_several():
    scores = score(PEOPLE, FOUND)
    assert judged(scores, "average_recall") == {
        ("n1", "nurse"): EVERY,
        ("n2", "nurse"): EVERY,
        ("g1", "guard"): EVERY,
        ("n3", "nurse"): 0.0,
        ("g2", "guard"): 1.0,
        ("ns", "nurse"): 1.0,
        ("ns", "student"): 0.7,
    }
    assert values(scores, "person_average_recall")["ns"] == 0.85
    assert scores.notes[0] == (
        f"1 of 3 images with people are left out ({EVERY}), and 3 people with them."
    )


def test_the_only_one_of_a_class():
    scores = score(PEOPLE, FOUND, images="one-of-class")
    found = judged(scores, "average_recall")
    assert found["n1", "nurse"] == found["n2", "nurse"] == OWN
    assert found["g1", "guard"] == 0.3
    assert scores.notes[0] == (
        f"1 of 3 images with people are left out, for that class ({OWN}), and 2 people with them."
    )


def test_who_is_alone_in_an_image():
    scores = score(PEOPLE, FOUND, images="one-person")
    assert judged(scores, "average_recall") == {
        **dict.fromkeys([("n1", "nurse"), ("n2", "nurse"), ("g1", "guard")], ALONE),
        **dict.fromkeys([("n3", "nurse"), ("g2", "guard")], ALONE),
        ("ns", "nurse"): 1.0,
        ("ns", "student"): 0.7,
    }
    assert scores.notes[0] == (
        f"2 of 3 images with people are left out ({ALONE}), and 5 people with them."
    )


def test_somebody_may_be_judged_for_one_of_two_classes():
    two = pictures({"a": ("1", TEN, of("nurse", "student")), "b": ("1", APART, of("nurse"))})
    scores = score(two, boxes(("1", TEN, 1.0, "student")), images="one-of-class")
    assert judged(scores, "average_recall") == {
        ("a", "nurse"): OWN, ("a", "student"): 1.0, ("b", "nurse"): OWN,
    }  # fmt: skip
    assert values(scores, "person_average_recall") == {"a": 1.0, "b": OWN}
    assert scores.evidence["class_recalls"].select("unit_id", "label").rows() == [
        ("a", ["student"])
    ]


def test_whoever_stands_there_counts_scored_or_not():
    """A crowd of nurses beside her, or somebody without a class: she is not alone."""
    plain = {"is_crowd": False}
    people = pictures(
        {
            "a": ("1", TEN, of("nurse") | plain),
            "many": ("1", FAR, of("nurse") | {"is_crowd": True}),
            "b": ("2", TEN, of("nurse") | plain),
            "whoever": ("2", APART, {"classes": None} | plain),
        }
    )
    found = boxes(("1", TEN, 1.0, "nurse"), ("2", TEN, 1.0, "nurse"))
    assert values(score(people, found), "person_average_recall") == {
        "a": EVERY, "many": "a crowd, not one person", "b": 1.0, "whoever": "no class",
    }  # fmt: skip
    alone = values(score(people, found, images="one-person"), "person_average_recall")
    assert (alone["a"], alone["b"]) == (ALONE, ALONE)


def test_people_without_a_class_are_of_no_class_together():
    nobodys = {name: ("1", APART, {"classes": None}) for name in ("b", "c")}
    people = pictures({"a": ("1", TEN, of("nurse"))} | nobodys)
    for images in ("one-of-every-class", "one-of-class"):
        scores = score(people, boxes(("1", TEN, 1.0, "nurse")), images=images)
        assert values(scores, "person_average_recall") == {
            "a": 1.0, "b": "no class", "c": "no class",
        }  # fmt: skip
        assert scores.notes[0].startswith("0 of 1 images")


def test_groups_of_the_paper():
    """Of those judged, X is n3 (nurse 0), Y is g2 (guard 1) and ns (nurse 1, student .7)."""
    scores = score(PEOPLE, FOUND)
    assert by_group(PEOPLE, scores, "average_recall", "nurse") == {
        "overall": (0.5, 2), "X": (0.0, 1), "Y": (1.0, 1),
    }  # fmt: skip
    mean = by_group(PEOPLE, scores, "class_mean_recall")
    assert mean["X"] == (0.0, 1)
    assert mean["Y"] == (pytest.approx(2.7 / 3), 2)
    assert mean["overall"] == (pytest.approx((0.5 + 1.0 + 0.7) / 3), 3)


def test_of_several_boxes_the_surest_counts_and_of_equals_the_first():
    one = pictures({"a": ("1", TEN, of("nurse"))})
    prompt = "which region does the text nurse describe?"
    rows = [("1", APART, 0.4, "nurse"), ("1", TEN, 0.6, prompt), ("1", FAR, 0.6, "nurse")]
    scores = score(one, boxes(*rows))
    assert values(scores, "person_average_recall") == {"a": 1.0}
    left = "2 boxes are not the highest-scoring one of their class in their image, and were left"
    assert any(note.startswith(left) for note in scores.notes)
    turned = score(one, boxes(*reversed(rows)))
    assert values(turned, "person_average_recall") == {"a": 0.0}


def test_boxes_of_phrases_that_are_not_judged_are_not_counted():
    people = {"a": TEN, "b": APART, "c": FAR}
    classes = {"a": "nurse", "b": "nurse", "c": "guard"}
    two = pictures({name: ("1", box, of(classes[name])) for name, box in people.items()})
    rows = [("1", TEN, 0.1 + k / 1000, "nurse") for k in range(9)]
    scores = score(two, boxes(*rows, ("1", FAR, 0.5, "guard")), images="one-of-class")
    assert values(scores, "person_average_recall") == {"a": OWN, "b": OWN, "c": 1.0}
    assert not any("highest-scoring" in note for note in scores.notes)


def test_boxes_without_a_score_are_taken_as_they_stand():
    one = pictures({"a": ("1", TEN, of("nurse"))})
    rows = boxes(("1", TEN, 1.0, "nurse"), ("1", FAR, 1.0, "nurse")).drop("score")
    assert values(score(one, rows), "person_average_recall") == {"a": 1.0}
    with pytest.raises(UnknownNameError, match="there is no column named 'box_w'"):
        score(one, rows.drop("box_w"))


def test_phrases_without_a_box_count_as_missed_and_are_counted():
    both = pl.concat([FOUND.filter(image_id="3"), FOUND.with_columns(model=pl.lit("whole"))])
    scores = score(PEOPLE, both)
    assert "2 of 4 phrases got no box of m: they count as missed." in scores.notes
    assert not any("no box of whole" in note for note in scores.notes)
    rows = scores.units.filter(model="m", metric="average_recall", unit_id="n3")
    assert rows["value"].to_list() == [0.0]


def test_what_cannot_be_used():
    with pytest.raises(SpecError, match=r"(?s)names a class.*the text guard describe"):
        score(PEOPLE, boxes(("1", TEN, 1.0, "a person who is a nurse")))


@settings(max_examples=150, deadline=None)
@given(box_cases(repeats=False), st.data())
def test_the_first_box_of_a_category_is_pycocotools_with_one_detection(case, data):
    """Who is judged is counted here anew; who is found is COCO's tool at one detection."""
    labels = st.integers(0, case.n_labels - 1) | st.none()
    images = data.draw(st.sampled_from(["one-of-every-class", "one-of-class", "one-person"]))
    expanded, whose = each_class(case, [data.draw(labels) for _ in case.truths])
    if not {name for _, name in whose} & {f"c{row['label']}" for row in case.detections}:
        case.detections.clear()
    dataset, found = of_case(case)
    scores = score(with_classes(dataset, whose), found, images=images)
    of_image = Counter(row["image"] for row in case.truths)
    of_class = Counter((row["image"], row["label"]) for row in expanded.truths)
    crowded = {image for (image, _), n in of_class.items() if n > 1}
    left = {
        "one-person": lambda row: of_image[row["image"]] > 1,
        "one-of-class": lambda row: of_class[row["image"], row["label"]] > 1,
        "one-of-every-class": lambda row: row["image"] in crowded,
    }[images]
    whole = Case(case.n_images, case.n_labels, expanded.truths, case.detections)
    values_of, _ = found_by_coco(whole, whose, 1)
    expected = {
        key: values_of[key]
        for key, row in zip(whose, expanded.truths, strict=True)
        if key in values_of and not left(row)
    }
    got = {key: v for key, v in judged(scores, "average_recall").items() if isinstance(v, float)}
    assert got == pytest.approx(expected)
