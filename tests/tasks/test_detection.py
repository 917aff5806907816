"""Who was found, by hand: reasons, thresholds, limits, classes, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from isolux import tasks
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.tasks.detection import score
from tests.tasks._pictures import boxes, pictures, values

TEN = [0.0, 0.0, 10.0, 10.0]
APART = [50.0, 0.0, 10.0, 10.0]


def cut(height, left=0.0):
    """A box that overlaps the one of 10 × 10 at ``left`` by a tenth of its height."""
    return [left, 0.0, 10.0, float(height)]


# a is overlapped by .8 (found at seven of the ten overlaps), b by 1, c is in a picture without
# predictions.
THREE = pictures({"a": ("1", TEN, {}), "b": ("1", APART, {}), "c": ("2", TEN, {})})
FOUND = boxes(("1", cut(8), 0.6), ("1", APART, 0.4))


def test_recalls_by_hand():
    scores = score(THREE, FOUND)
    assert values(scores, "average_recall") == {"a": 0.7, "b": 1.0, "c": 0.0}
    assert values(scores, "recall_at_iou", 0.5) == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert values(score(THREE, FOUND, iou_thresholds=(0.9,)), "recall_at_iou", 0.9) == {
        "a": 0.0,
        "b": 1.0,
        "c": 0.0,
    }


def test_the_task_is_found_by_its_name():
    scores = tasks.score("detection", THREE, FOUND, score_threshold=0.5)
    assert values(scores, "recall_at_score", 0.5) == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert scores.task == "detection"


def test_found_at_a_score_counts_the_threshold_itself_and_reads_one_overlap():
    scores = score(THREE, FOUND, score_threshold=[0.6, 0.61])
    assert values(scores, "recall_at_score", 0.6) == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert values(scores, "recall_at_score", 0.61) == {"a": 0.0, "b": 0.0, "c": 0.0}
    strict = score(THREE, FOUND, score_threshold=0.0, score_iou=0.85)
    assert values(strict, "recall_at_score", 0.0) == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert "Found at a score: at an overlap of 0.85." in strict.notes


def test_a_score_threshold_leaves_the_other_metrics_alone():
    plain, limited = score(THREE, FOUND), score(THREE, FOUND, score_threshold=0.9)
    assert values(plain, "average_recall") == values(limited, "average_recall")


def test_who_is_not_scored_says_why():
    crowd = {"is_crowd": True, "ignore": True, "judged": True}
    people = {
        "crowd": ("1", TEN, crowd),
        "ignored": ("1", APART, {"is_crowd": False, "ignore": True, "judged": True}),
        "bare": ("1", None, {"is_crowd": False, "ignore": False, "judged": True}),
        "unjudged": ("2", TEN, {"is_crowd": False, "ignore": False, "judged": False}),
        "seen": ("3", TEN, {"is_crowd": None, "ignore": None, "judged": None}),
    }
    scores = score(pictures(people), boxes(("3", TEN, 0.5)))
    assert values(scores, "average_recall") == {
        "crowd": "a crowd, not one person",
        "ignored": "marked to be ignored",
        "bare": "no box",
        "unjudged": "takes part in matching only",
        "seen": 1.0,
    }
    assert "1 of 5 is not scored: no box." in scores.notes


def test_those_not_judged_keep_their_detection():
    """One box over two people finds the one it overlaps more, whether or not he is judged."""
    two = {"judged": ("1", cut(8), {"judged": True}), "other": ("1", TEN, {"judged": False})}
    scores = score(pictures(two), boxes(("1", TEN, 0.9)))
    assert values(scores, "average_recall")["judged"] == 0.0


def test_a_box_without_area_is_missed_not_left_out():
    flat = pictures({"flat": ("1", [0.0, 0.0, 0.0, 10.0], {})})
    assert values(score(flat, boxes(("1", [0.0, 0.0, 0.0, 10.0], 0.9))), "average_recall") == {
        "flat": 0.0
    }


def test_a_detection_finds_one_person_unless_best_overlap_is_asked_for():
    both = pictures({"a": ("1", TEN, {}), "b": ("1", cut(9), {})})
    found = boxes(("1", TEN, 0.9))
    assert values(score(both, found), "recall_at_iou", 0.5) == {"a": 1.0, "b": 0.0}
    best = score(both, found, matching="best-overlap")
    assert values(best, "recall_at_iou", 0.5) == {"a": 1.0, "b": 1.0}
    assert "as FHIBE's tool does" in best.notes[0]


def test_only_the_highest_scores_take_part():
    one = score(THREE, FOUND, max_detections=1)
    assert values(one, "average_recall") == {"a": 0.7, "b": 0.0, "c": 0.0}
    assert one.notes[0].startswith("1 detections an image at most")
    firsts = score(THREE, FOUND, top_k=(1, 10))
    assert values(firsts, "average_recall_at_k", 1.0) == {"a": 0.7, "b": 0.0, "c": 0.0}
    assert values(firsts, "average_recall_at_k", 10.0) == values(firsts, "average_recall")


def test_the_convention_of_the_last_pixel():
    # 10 × 10 and 10 × 4: .4; with the last pixel inside 11 × 5 of 11 × 11: .4545.
    low = {"iou_thresholds": (0.45,), "metrics": ["recall_at_iou"]}
    people, found = pictures({"a": ("1", TEN, {})}), boxes(("1", cut(4), 0.9))
    for inclusive in (False, True):
        scores = score(people, found, pixel_inclusive=inclusive, **low)
        assert values(scores, "recall_at_iou", 0.45) == {"a": float(inclusive)}


def test_counting_the_last_pixel_is_adding_one_to_every_side_of_every_box():
    # Files of Scalabel had a setting of their own that widened boxes as they were read.
    low = {"iou_thresholds": (0.45,)}
    people, found = pictures({"a": ("1", TEN, {})}), boxes(("1", cut(4), 0.9))
    sides = [pl.col("box_w") + 1, pl.col("box_h") + 1]
    wider = dataclasses.replace(people, instances=people.instances.with_columns(sides))
    told = score(people, found, pixel_inclusive=True, **low).units
    assert told.equals(score(wider, found.with_columns(sides), **low).units)
    assert not told.equals(score(people, found, **low).units)


def test_labels_that_mean_a_person_are_named():
    found = boxes(("1", TEN, 0.9, "dog"), ("1", APART, 0.8, "person"))
    scores = score(THREE, found, person_label="person")
    assert values(scores, "average_recall") == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert "1 of 2 predictions have other labels and were left out." in scores.notes
    every = score(THREE, found, person_label=["dog", "person"])
    assert values(every, "average_recall") == {"a": 1.0, "b": 1.0, "c": 0.0}
    with pytest.raises(SpecError, match=r"several things.*\n.*\n.*2 labels: 'dog', 'person'"):
        score(THREE, found)
    with pytest.raises(SpecError, match="no prediction is labelled 'cat'"):
        score(THREE, found, person_label="cat")
    with pytest.raises(SpecError, match="leave person_label out"):
        score(THREE, FOUND, person_label="person")


CLASSED = pictures(
    {"man": ("1", TEN, {"classes": ["man"]}), "dog": ("1", APART, {"classes": ["dog"]})}
)
SWAPPED = boxes(("1", TEN, 0.9, "dog"), ("1", APART, 0.8, "dog"), ("1", TEN, 0.7, "tree"))


def test_class_by_class_a_label_finds_its_own():
    scores = score(CLASSED, SWAPPED, by_class=True)
    assert values(scores, "average_recall") == {"man": 0.0, "dog": 1.0}
    rows = scores.units.filter(pl.col("metric") == "average_recall").select("unit_id", "label")
    assert dict(rows.iter_rows()) == {"man": "man", "dog": "dog"}
    assert any(note.startswith("1 predictions are of classes that do not occur") for note in
               scores.notes)  # fmt: skip
    agnostic = score(CLASSED, SWAPPED, person_label=["dog", "tree"])
    assert values(agnostic, "average_recall") == {"man": 1.0, "dog": 1.0}


def test_one_class_of_people_is_judged():
    scores = score(CLASSED, SWAPPED, person_class="man", person_label="dog")
    assert values(scores, "average_recall") == {"man": 1.0}
    with pytest.raises(UnknownNameError, match="there is no class named 'men'"):
        score(CLASSED, SWAPPED, person_class="men", person_label="dog")


def test_class_by_class_everybody_has_one_class():
    two = pictures({"a": ("1", TEN, {"classes": ["man", "cook"]})})
    with pytest.raises(SpecError, match="each person has one class"):
        score(two, SWAPPED, by_class=True)
    with pytest.raises(SpecError, match="no prediction has a class of the dataset"):
        score(CLASSED, boxes(("1", TEN, 0.9, "1")), by_class=True)
    with pytest.raises(SpecError, match="every label is its own class"):
        score(CLASSED, SWAPPED, by_class=True, person_label="dog")


def test_only_people_with_a_mask():
    masks = {"mask_counts": ["012", None], "mask_height": [1, None], "mask_width": [3, None]}
    people = {
        name: ("1", box, {key: column[i] for key, column in masks.items()})
        for i, (name, box) in enumerate([("a", TEN), ("b", APART)])
    }
    scores = score(pictures(people), FOUND, only_with_mask=True)
    assert values(scores, "average_recall") == {"a": 0.7, "b": "no mask"}


def test_several_models_are_judged_apart():
    both = pl.concat([FOUND, boxes(("2", TEN, 0.9), model="n")])
    scores = score(THREE, both, metrics=["average_recall"])
    by_model = scores.units.group_by("model").agg(pl.col("value").sum()).sort("model")
    assert by_model.rows() == [("m", pytest.approx(1.7)), ("n", 1.0)]


def test_predictions_of_other_images_are_counted():
    scores = score(THREE, pl.concat([FOUND, boxes(("9", TEN, 0.9))]))
    assert scores.notes[0] == (
        "The dataset has no truth for 1 of 2 pictures that have predictions ('9'): 1 prediction in"
        " them was left out, neither right nor wrong. Are truth files missing?"
    )
    assert isinstance(scores.notes[0], Caution)
    with pytest.raises(JoinError, match=r"(?s)no prediction is for an image.*'1', '2'.*'9'"):
        score(THREE, boxes(("9", TEN, 0.9)))


def test_no_predictions_miss_everybody():
    scores = score(THREE, FOUND.clear(), model="blind")
    assert values(scores, "average_recall") == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert scores.units["model"].unique().to_list() == ["blind"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iou_thresholds": (0.0,)}, "iou_thresholds cannot be that"),
        ({"score_iou": 1.5}, "score_iou cannot be that"),
        ({"score_threshold": float("nan")}, "score_threshold cannot be that"),
        ({"max_detections": 0}, "max_detections cannot be that"),
        ({"top_k": (0,)}, "top_k cannot be that"),
        ({"metrics": ["recall_at_score"]}, "cannot be measured"),
        ({"metrics": ["average_recall_at_k"]}, "cannot be measured"),
        (
            {"metrics": ["average_precision"], "matching": "best-overlap"},
            "'average_precision' cannot be measured",
        ),
    ],
)
def test_settings_that_cannot_be_used(options, message):
    with pytest.raises(SpecError, match=message):
        score(THREE, FOUND, **options)


def test_boxes_that_are_none():
    with pytest.raises(TableError, match=r"(?s)negative width or height.*row 2"):
        score(THREE, boxes(("1", TEN, 0.9), ("1", [0.0, 0.0, -1.0, 5.0], 0.8)))
    with pytest.raises(TableError, match=r"(?s)a finite number.*row 1, column 'score'"):
        score(THREE, boxes(("1", TEN, np.nan)))
    with pytest.raises(SpecError, match="nobody in the dataset can be found: no box"):
        score(pictures({"a": ("1", None, {})}), FOUND)
    with pytest.raises(UnknownNameError, match="there is no metric named 'recal'"):
        score(THREE, FOUND, metrics=["recal"])
