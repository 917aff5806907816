"""Who was found as what they are: by hand, and as pycocotools says with classes as categories."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux import tasks
from isolux.api.audit import run_audit
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.spec import parse_spec
from isolux.tasks.open_vocabulary import score
from tests.geometry._coco import Case
from tests.geometry.test_against_pycocotools import box_cases
from tests.tasks._classed import (
    by_group,
    each_class,
    first_of_each,
    found_by_coco,
    judged,
    with_classes,
)
from tests.tasks._pictures import boxes, of_case, pictures, values

TEN = [0.0, 0.0, 10.0, 10.0]
APART = [50.0, 0.0, 10.0, 10.0]
FAR = [90.0, 0.0, 10.0, 10.0]


def cut(height, left=0.0):
    """A box that overlaps the one of 10 × 10 at ``left`` by a tenth of its height."""
    return [left, 0.0, 10.0, float(height)]


def of(*classes):
    return {"classes": list(classes)}


# ann and bo are nurses side by side, ann a student too; cy is a guard in another picture.
PEOPLE = pictures(
    {
        "ann": ("1", TEN, of("nurse", "student")),
        "bo": ("1", APART, of("nurse")),
        "cy": ("2", TEN, of("guard")),
    },
    groups={"ann": "X", "bo": "Y", "cy": "X"},
)
# One box on ann has two labels: exact as a nurse's, .8 (seven overlaps of ten) as a student's. bo
# has a box labelled guard, which is no nurse's; cy one of .6 (three overlaps) labelled guard.
FOUND = boxes(
    ("1", TEN, 0.9, "a person who is a nurse"),
    ("1", cut(8), 0.3, "student"),
    ("1", APART, 0.8, "guard"),
    ("2", cut(6), 0.7, "guard"),
)


def test_each_person_is_judged_once_for_each_class():
    scores = score(PEOPLE, FOUND)
    assert judged(scores, "average_recall") == {
        ("ann", "nurse"): 1.0,
        ("ann", "student"): 0.7,
        ("bo", "nurse"): 0.0,
        ("cy", "guard"): 0.3,
    }
    assert judged(scores, "recall_at_iou", 0.75) == {
        ("ann", "nurse"): 1.0,
        ("ann", "student"): 1.0,
        ("bo", "nurse"): 0.0,
        ("cy", "guard"): 0.0,
    }
    assert "1 of 3 people have several classes and are judged for each." in scores.notes


def test_a_person_is_the_mean_of_their_classes():
    scores = score(PEOPLE, FOUND, metrics=["person_average_recall", "person_recall_at_iou"])
    assert values(scores, "person_average_recall") == {"ann": 0.85, "bo": 0.0, "cy": 0.3}
    strict = score(PEOPLE, FOUND, metrics=["person_recall_at_iou"], iou_thresholds=[0.9])
    assert values(strict, "person_recall_at_iou", 0.9) == {"ann": 0.5, "bo": 0.0, "cy": 0.0}


def test_groups_by_class_and_the_average_row():
    """X: nurse 1 (ann), student .7 (ann), guard .3 (cy). Y: nurse 0 (bo) and no other class.

    Everyone: nurse (1 + 0) / 2, student .7, guard .3: mean .5. X: mean 2 / 3, at .50 1, at .75
    (1 + 1 + 0) / 3. Two people are in X, though three rows of theirs are judged.
    """
    scores = score(PEOPLE, FOUND)
    assert by_group(PEOPLE, scores, "average_recall", "nurse") == {
        "overall": (0.5, 2), "X": (1.0, 1), "Y": (0.0, 1),
    }  # fmt: skip
    assert by_group(PEOPLE, scores, "average_recall", "guard") == {
        "overall": (0.3, 1), "X": (0.3, 1), "Y": (None, 0),
    }  # fmt: skip
    mean = by_group(PEOPLE, scores, "class_mean_recall")
    assert mean["overall"] == (pytest.approx(0.5), 3)
    assert mean["X"] == (pytest.approx(2 / 3), 2)
    assert mean["Y"] == (0.0, 1)
    assert by_group(PEOPLE, scores, "class_mean_recall_50")["X"] == (1.0, 2)
    assert by_group(PEOPLE, scores, "class_mean_recall_75")["X"] == (pytest.approx(2 / 3), 2)


def test_the_average_row_at_one_overlap_reads_that_overlap():
    """A box of .7 finds her at .50 to .70 and not at .75, one of .75 at .75 and not at .80."""
    nurse = pictures({"a": ("1", TEN, of("nurse"))}, groups={"a": "X"})
    for height, expected in ((7, (0.5, 1.0, 0.0)), (7.5, (0.6, 1.0, 1.0)), (4, (0.0, 0.0, 0.0))):
        scores = score(nurse, boxes(("1", cut(height), 0.9, "nurse")))
        names = ("class_mean_recall", "class_mean_recall_50", "class_mean_recall_75")
        found = [by_group(nurse, scores, name)["X"][0] for name in names]
        assert found == pytest.approx(list(expected))


def test_two_of_a_class_are_found_by_two_boxes():
    both = pictures({"a": ("1", TEN, of("nurse")), "b": ("1", cut(9), of("nurse"))})
    found = boxes(("1", TEN, 0.9, "nurse"), ("1", TEN, 0.8, "student"))
    assert judged(score(both, found), "recall_at_iou", 0.5) == {
        ("a", "nurse"): 1.0, ("b", "nurse"): 0.0,
    }  # fmt: skip
    again = score(both, found, matching="best-overlap")
    assert judged(again, "recall_at_iou", 0.5) == {("a", "nurse"): 1.0, ("b", "nurse"): 1.0}
    assert "each person having the best overlap" in again.notes[0]


def test_the_first_hundred_of_an_image_are_of_all_labels_together():
    """99 surer boxes of a class, then hers: the hundredth, unless one more goes before it."""
    one = pictures({"a": ("1", TEN, of("nurse")), "b": ("2", TEN, of("guard"))})
    rows = [("1", FAR, 0.9 - i / 1000, "guard") for i in range(99)]
    hers, unknown = ("1", TEN, 0.2, "nurse"), ("1", FAR, 0.5, "dog")
    assert judged(score(one, boxes(*rows, hers)), "average_recall")["a", "nurse"] == 1.0
    full = boxes(*rows, unknown, hers)
    late = score(one, full)
    assert judged(late, "average_recall")["a", "nurse"] == 0.0
    assert late.notes[0] == (
        "The 100 highest-scoring predictions an image, of all labels together, take part; class by"
        " class, matched one to one by falling score, as COCO does."
    )
    assert late.notes[1] == "1 predictions beyond them were left out."
    for options in ({"max_detections": None}, {"limit_per": "class"}):
        assert judged(score(one, full, **options), "average_recall")["a", "nurse"] == 1.0
    two = boxes(("1", APART, 0.9, "nurse"), hers)
    each = score(one, two, limit_per="class", max_detections=1)
    assert judged(each, "average_recall")["a", "nurse"] == 0.0
    assert "of each class, take part" in each.notes[0]
    assert score(one, two, max_detections=None).notes[0].startswith("All predictions take part;")


def test_models_have_their_own_hundred():
    one = pictures({"a": ("1", TEN, of("nurse"))})
    both = pl.concat(
        [
            boxes(("1", TEN, 0.2, "nurse"), model="m"),
            boxes(("1", FAR, 0.9, "nurse"), ("1", TEN, 0.1, "nurse"), model="n"),
            boxes(("1", TEN, 0.9, "tree"), model="o"),
        ]
    )
    scores = score(one, both, max_detections=1, metrics="average_recall")
    assert scores.units.select("model", "value").rows() == [("m", 1.0), ("n", 0.0), ("o", 0.0)]


SPELLED = pictures({"a": ("1", TEN, of("astronaut")), "t": ("2", TEN, of("tennis_player"))})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("astronaut", "tennis_player"),
        ("Astronaut", "tennis player"),
        ("a person who is a astronaut", "a person who is a tennis_player"),
        ("A person who is an astronaut.", "a person who is a tennis player"),
    ],
)
def test_a_label_is_a_class_or_its_prompt_in_any_spelling(first, second):
    scores = score(SPELLED, boxes(("1", TEN, 0.9, first), ("2", TEN, 0.9, second)))
    assert values(scores, "person_average_recall") == {"a": 1.0, "t": 1.0}
    read = any("labels were read as classes: " in note for note in scores.notes)
    assert read == (first != "astronaut")


def test_prompts_are_a_setting():
    found = boxes(("1", TEN, 0.9, "a photo of an astronaut, smiling"), ("2", TEN, 0.9, "tennis!"))
    scores = score(SPELLED, found, prompt=["a photo of a {}, smiling"])
    assert values(scores, "person_average_recall") == {"a": 1.0, "t": 0.0}
    left = "1 predictions are of classes that do not occur in this dataset; they were left out."
    assert left in scores.notes
    assert any(
        note.startswith("1 of 2 classes are named by no prediction, so that all of their people")
        and note.endswith("tennis_player.")
        for note in scores.notes
    )


def test_labels_may_be_mapped():
    found = boxes(("1", TEN, 0.9, "17"), ("2", TEN, 0.9, "4"))
    scores = score(SPELLED, found, prediction_map={"17": "astronaut", "4": "Tennis player"})
    assert values(scores, "person_average_recall") == {"a": 1.0, "t": 1.0}
    with pytest.raises(SpecError, match=r"(?s)no prediction names a class.*by number.*categories"):
        score(SPELLED, found)


def test_labels_that_cannot_be_read():
    with pytest.raises(SpecError, match=r"(?s)'astronaut' or 'a person who is a astronaut'.*'dog'"):
        score(SPELLED, boxes(("1", TEN, 0.9, "dog")))
    with pytest.raises(SpecError, match=r"(?s)no labels at all.*template of the prompts"):
        score(SPELLED, boxes(("1", TEN, 0.9)))
    alike = pictures({"a": ("1", TEN, of("disk jockey")), "b": ("2", TEN, of("Disk_Jockey"))})
    exact = boxes(("1", TEN, 0.9, "disk jockey"), ("2", TEN, 0.9, "Disk_Jockey"))
    assert values(score(alike, exact), "person_average_recall") == {"a": 1.0, "b": 1.0}
    with pytest.raises(SpecError, match=r"(?s)'disk-jockey' may mean several.*'Disk_Jockey', 'dis"):
        score(alike, boxes(("1", TEN, 0.9, "disk-jockey")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "a person"}, r"(?s)one place for the class.*'a person'"),
        ({"prompt": ["{} or {}"]}, "one place for the class"),
        ({"max_detections": 0}, "max_detections cannot be that"),
    ],
)
def test_settings_that_cannot_be_used(options, message):
    with pytest.raises(SpecError, match=message):
        score(PEOPLE, FOUND, **options)


def test_what_cannot_be_read():
    with pytest.raises(UnknownNameError, match="there is no metric named 'recall'"):
        score(PEOPLE, FOUND, metrics=["recall"])
    with pytest.raises(UnknownNameError, match="there is no attribute named 'job'"):
        score(PEOPLE, FOUND, target="job")
    with pytest.raises(SpecError, match="nothing says what the true class is"):
        score(pictures({"a": ("1", TEN, {})}), FOUND)
    with pytest.raises(JoinError, match="no prediction is for an image"):
        score(PEOPLE, boxes(("9", TEN, 0.9, "nurse")))
    with pytest.raises(TableError, match="negative width or height"):
        score(PEOPLE, boxes(("1", [0.0, 0.0, -1.0, 5.0], 0.8, "nurse")))
    with pytest.raises(SpecError, match="has no option 'score_threshold'"):
        tasks.score("open_vocabulary", PEOPLE, FOUND, score_threshold=0.5)


def test_classes_may_be_an_attribute():
    scores = score(PEOPLE, boxes(("1", TEN, 0.9, "x"), ("2", TEN, 0.9, "X")), target="group")
    assert judged(scores, "average_recall") == {
        ("ann", "X"): 1.0, ("bo", "Y"): 0.0, ("cy", "X"): 1.0,
    }  # fmt: skip


def test_evidence_does_not_go_by_the_order_of_a_persons_classes():
    for classes in (("nurse", "student"), ("student", "nurse")):
        one = pictures({"a": ("1", TEN, of(*classes))})
        evidence = score(one, boxes(("1", TEN, 0.9, "student"))).evidence["class_recalls"]
        row = evidence.select("label", "average_recall").row(0)
        assert row == (["nurse", "student"], [0.0, 1.0])


def test_who_is_not_scored_says_why():
    people = {
        "crowd": ("1", TEN, of("nurse") | {"is_crowd": True}),
        "bare": ("1", None, of("nurse") | {"is_crowd": False}),
        "whoever": ("1", APART, {"classes": None, "is_crowd": False}),
        "unknown": ("1", FAR, of("n/a") | {"is_crowd": False}),
        "seen": ("2", TEN, of("nurse") | {"is_crowd": False}),
    }
    scores = score(pictures(people), boxes(("2", TEN, 0.5, "nurse")))
    assert values(scores, "person_average_recall") == {
        "crowd": "a crowd, not one person",
        "bare": "no box",
        "whoever": "no class",
        "unknown": "no class",
        "seen": 1.0,
    }
    assert judged(scores, "average_recall") == {
        ("crowd", "nurse"): "a crowd, not one person",
        ("bare", "nurse"): "no box",
        ("seen", "nurse"): 1.0,
    }
    assert "2 of 5 are not scored: no class." in scores.notes
    assert scores.evidence["class_recalls"]["unit_id"].to_list() == ["seen"]


def test_no_predictions_miss_everybody():
    scores = score(PEOPLE, FOUND.clear(), model="blind")
    assert set(judged(scores, "average_recall").values()) == {0.0}
    assert by_group(PEOPLE, scores, "class_mean_recall")["X"] == (0.0, 2)
    assert not any("named by no prediction" in note for note in scores.notes)


def facet_in(folder):
    """Two young nurses of whom one is found, an older computer user who is found badly."""
    box = '"{""x"": 0, ""y"": 0, ""width"": 10, ""height"": 10}"'
    rows = ["1,a.jpg,nurse,None,1,0", "2,b.jpg,nurse,,1,0", "3,c.jpg,computer_user,nurse,0,1"]
    columns = "person_id,filename,class1,class2,age_presentation_young,age_presentation_older"
    lines = [f"{columns},bounding_box", *(f"{row},{box}" for row in rows)]
    (folder / "annotations.csv").write_text("\n".join(lines) + "\n")
    found = [("a.jpg", 1, 10, 0.9), ("c.jpg", 2, 6, 0.8)]
    results = [
        {"image_id": image, "category_id": number, "bbox": [0, 0, 10, height], "score": sure}
        for image, number, height, sure in found
    ]
    (folder / "detic.json").write_text(json.dumps(results))
    (folder / "prompts.json").write_text('{"1": "nurse", "2": "computer_user"}')
    prompts = {1: "a person who is a nurse", 2: "a person who is a computer user"}
    table = [f"{i},{prompts[n]},0,0,10,{height},{sure}" for i, n, height, sure in found]
    head = "image_id,label,box_x,box_y,box_w,box_h,score"
    (folder / "detic.csv").write_text("\n".join([head, *table]) + "\n")


@pytest.mark.parametrize(
    "given",
    [{"predictions": "detic.json", "prediction_map": "prompts.json"}, {"predictions": "detic.csv"}],
)
def test_an_audit_of_facet_from_files(tmp_path, given):
    """Young: nurses 1 and 0. Older: .3 as a computer user, 0 as a nurse; over classes .15."""
    facet_in(tmp_path)
    files = {name: str(tmp_path / file) for name, file in given.items()}
    spec = {"data": f"facet:{tmp_path}", "task": "open_vocabulary", "by": "age_presentation",
            "min_units": 1, "min_clusters": 1, "replicates": 100}  # fmt: skip
    table = run_audit(parse_spec(spec | files)).group_metrics
    cells = table.filter(pl.col("metric").is_in(["average_recall", "class_mean_recall"]))
    rows = cells.select("label", "group", "value").drop_nulls("value").rows()
    assert {(label, group): round(value, 9) for label, group, value in rows} == {
        ("nurse", "overall"): round(1 / 3, 9),
        ("nurse", "young"): 0.5,
        ("nurse", "older"): 0.0,
        ("computer_user", "overall"): 0.3,
        ("computer_user", "older"): 0.3,
        (None, "overall"): round((1 / 3 + 0.3) / 2, 9),
        (None, "young"): 0.5,
        (None, "older"): 0.15,
    }


def test_only_the_papers_that_were_used_are_cited():
    scores = score(PEOPLE, FOUND, metrics=["recall_at_iou"])
    assert [r.location for r in scores.info.references] == [
        "section 6.3.1, appendix A.5.6, Table 15a"
    ]
    assert scores.evidence == {}


@settings(max_examples=80, deadline=None)
@given(box_cases(repeats=False), st.data())
def test_each_class_is_a_category_of_pycocotools(case, data):
    """People with one class or two, and the first so many boxes of an image, as COCO's tool says.

    The mean over classes is its AR, which is the mean over categories with somebody to be found.
    """
    labels = st.integers(0, case.n_labels - 1) | st.none()
    second = [data.draw(labels) for _ in case.truths]
    limit = data.draw(st.sampled_from([1, 2, 3, 100]))
    expanded, whose = each_class(case, second)
    names = {name for _, name in whose}
    if not names & {f"c{row['label']}" for row in case.detections}:
        case.detections.clear()
    dataset, found = of_case(case)
    dataset = with_classes(dataset, whose)
    prompts = found.with_columns(label=pl.format("A person who is a {}.", "label"))
    first = Case(
        case.n_images, case.n_labels, expanded.truths,
        first_of_each(case.detections, limit, "image"),
    )  # fmt: skip
    expected, run = found_by_coco(first, whose, 100)
    if case.detections and not {f"c{r['label']}" for r in first.detections} & names:
        with pytest.raises(SpecError, match="no prediction names a class"):
            score(dataset, prompts, max_detections=limit)
        return
    scores = score(dataset, prompts, max_detections=limit)
    got = {key: v for key, v in judged(scores, "average_recall").items() if isinstance(v, float)}
    assert got == pytest.approx(expected)
    if expected:
        recalls = run.eval["recall"][:, :, 0, 0]  # overlaps × categories; -1: nobody to be found
        mean = by_group(dataset, scores, "class_mean_recall")["overall"][0]
        assert mean == pytest.approx(recalls[:, recalls[0] > -1].mean())
        per_class = {
            f"c{k}": recalls[:, k].mean() for k in range(case.n_labels) if recalls[0, k] > -1
        }
        assert {
            name: by_group(dataset, scores, "average_recall", name)["overall"][0]
            for name in per_class
        } == pytest.approx(per_class)
