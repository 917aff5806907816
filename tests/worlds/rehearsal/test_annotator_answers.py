"""Annotators slip as often as is injected, about whom it is injected, and are otherwise right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isolux_curate.annotation.answer_format import describe_answer_fault, parse_label_studio_answer
from isolux_curate.annotation.stages import STAGES
from isolux_worlds.rehearsal import CLASSES, CREW, Annotator, MistakeRates
from isolux_worlds.rehearsal.annotation_tasks import AnnotationTask, iou_of_boxes
from isolux_worlds.rehearsal.annotator_answers import (
    answer_to_label_studio,
    correct_answer,
    simulate_answer,
    trace_outline,
)

_NEVER = MistakeRates(
    count=0, loose=0, wrong_class=0, missed=0, tone=0, one_tone=0, unnoticed=0, false_alarm=0,
    attribute=0, outline=0, shake=0,
)  # fmt: skip
PERFECT = Annotator(name="perfect", region="north", mistake_rates=_NEVER)
_N = 3000


def _person(**other: Any) -> dict[str, Any]:
    return {
        "person_id": 1, "class": "nurse", "skin_tone": "8", "box_x": 100.0, "box_y": 60.0,
        "box_w": 60.0, "box_h": 120.0, "perceived_gender_presentation": "feminine",
        "age_group": "older", "hair_color": "grey", "hair_type": "wavy", "lighting": "well_lit",
        "eyewear": "glasses", "headwear": "none", "tattoo": "no", "facial_hair": "no",
        "mask": "none", "view": "full", "mask_counts": None,
    } | other  # fmt: skip


def _asked(k: int = 0, **other: Any) -> AnnotationTask:
    held: dict[str, Any] = {
        "task_id": f"t{k}", "image_id": f"p{k}", "unit_id": f"u{k}", "round": 1, "golden": False,
        "wanted": 1, "people": (_person(),),
    }  # fmt: skip
    return AnnotationTask(**held | other)


def _shown(k: int = 0, **other: Any) -> AnnotationTask:
    box = (100.0, 60.0, 60.0, 120.0)
    held = {"person": _person(), "box": box, "primary": "nurse"}
    return _asked(k, **held | other)


@pytest.mark.parametrize("stage", ["count", "boxes", "skin_tone", "attributes"])
def test_who_never_slips_is_right_and_within_the_rules(stage: str) -> None:
    asked = _asked() if stage in ("count", "boxes") else _shown()
    given = simulate_answer(asked, stage, PERFECT, seed=0)
    assert given.mistakes == ()
    assert describe_answer_fault(STAGES[stage], given.answer, (320, 240), CLASSES) is None
    if stage != "skin_tone":
        assert given.answer == correct_answer(asked, stage)
    else:
        tones = given.answer["choices"]["perceived skin tone"]
        assert len(tones) == 2
        assert set(correct_answer(asked, stage)["choices"]["perceived skin tone"]) < set(tones)


@pytest.mark.parametrize(
    ("stage", "slip", "rate"),
    [
        ("count", "count", 0.2), ("boxes", "loose", 0.1), ("boxes", "wrong_class", 0.3),
        ("boxes", "missed", 0.05), ("skin_tone", "tone", 0.25), ("skin_tone", "one_tone", 0.1),
        ("skin_tone", "false_alarm", 0.1),
    ],
)  # fmt: skip
def test_slips_are_as_frequent_as_injected(stage: str, slip: str, rate: float) -> None:
    """5 standard errors of a share of 3,000."""
    who = replace(PERFECT, mistake_rates=replace(_NEVER, **{slip: rate}))
    shown = _asked if stage in ("count", "boxes") else _shown
    given = [simulate_answer(shown(k), stage, who, seed=1).mistakes for k in range(_N)]
    found = np.mean([slip.replace("_", " ") in one for one in given])
    assert abs(found - rate) < 5 * np.sqrt(rate * (1 - rate) / _N)


@pytest.mark.parametrize(("tone", "rate"), [("8", 0.3), ("3", 0.0)])
def test_a_bias_is_about_those_alone_whom_it_is_injected_for(tone: str, rate: float) -> None:
    who = replace(PERFECT, lighter=0.3)
    given = [
        simulate_answer(_shown(k, person=_person(skin_tone=tone)), "skin_tone", who, seed=1)
        for k in range(_N)
    ]
    found = np.mean([one.mistakes == ("lighter",) for one in given])
    assert abs(found - rate) <= 5 * np.sqrt(rate * (1 - rate) / _N)


def test_a_loose_box_and_a_wrong_class_are_seen() -> None:
    loose = _shown(box=(80.0, 40.0, 100.0, 160.0))
    said = simulate_answer(loose, "skin_tone", PERFECT, seed=0).answer["choices"]
    assert (said["is the box tight?"], said["is the class right?"]) == (["no"], ["yes"])
    other = simulate_answer(_shown(primary="waiter"), "skin_tone", PERFECT, seed=0).answer[
        "choices"
    ]
    assert (other["is the box tight?"], other["is the class right?"]) == (["yes"], ["no"])


def test_a_slip_of_a_box_is_one_that_a_rater_sees() -> None:
    """A third wider and higher: 1 / (4/3)² = .5625 of it is the person's box."""
    who = replace(PERFECT, mistake_rates=replace(_NEVER, loose=1.0))
    drawn = simulate_answer(_asked(), "boxes", who, seed=0).answer["boxes"][0]
    found = iou_of_boxes(
        (drawn["x"], drawn["y"], drawn["w"], drawn["h"]), (100.0, 60.0, 60.0, 120.0)
    )
    assert found == pytest.approx(9 / 16, abs=1e-3)


def test_the_same_is_answered_whatever_was_asked_before() -> None:
    one = [simulate_answer(_shown(k), "attributes", CREW[0], seed=5) for k in range(20)]
    other = [simulate_answer(_shown(k), "attributes", CREW[0], seed=5) for k in reversed(range(20))]
    assert one == other[::-1]


def test_an_answer_goes_to_label_studio_and_comes_back_as_it_was() -> None:
    answer = {
        "choices": {"people": ["2"]},
        "boxes": [{"label": "nurse", "x": 10.0, "y": 20.0, "w": 64.0, "h": 48.0}],
        "polygons": [{"label": "person", "points": [[1.0, 2.0], [30.0, 2.0], [30.0, 40.0]]}],
    }
    assert parse_label_studio_answer(answer_to_label_studio(answer, (320, 240)), 320, 240) == answer


def test_an_outline_holds_its_mask() -> None:
    """A rectangle of 3 × 4 pixels at (2, 1) in a picture of 8 × 6, in columns: 13 empty, 4 …"""
    from isolux.geometry.masks import masks_from_counts, masks_to_coco

    counts = [13, 4, 2, 4, 2, 4, 19]
    mask = masks_from_counts([counts], np.array([6]), np.array([8]))
    text = masks_to_coco(mask)[0]["counts"].decode()
    corners = trace_outline(text, (8, 6))
    assert corners.min(axis=0).tolist() == [2.0, 1.0]
    assert corners.max(axis=0).tolist() == [5.0, 5.0]
