"""What a simulated annotator answers, slips and all; and the same as Label Studio's page writes it.

Each answer is drawn from a stream of its own (annotator, stage, photo, box, round), so that it is
the same whoever asks, in whatever order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.geometry.masks import masks_from_coco
from isolux_curate.annotation.stages import STAGES
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.layouts.fhibe.outlines import trace_mask_outlines
from isolux_worlds.rehearsal.annotation_tasks import (
    AnnotationTask,
    Box,
    format_box,
    iou_of_boxes,
    true_box,
)
from isolux_worlds.rehearsal.inbox import CLASSES, SIZE

__all__ = [
    "CREW",
    "Annotator",
    "Answer",
    "MistakeRates",
    "SimulatedAnswer",
    "answer_to_label_studio",
    "build_answer_sheet_rows",
    "correct_answer",
    "simulate_answer",
    "trace_outline",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MistakeRates:
    """Probability of each kind of mistake of an annotator, 0 to 1."""

    count: float = 0.02
    loose: float = 0.08
    wrong_class: float = 0.03
    missed: float = 0.01
    tone: float = 0.15
    one_tone: float = 0.03
    unnoticed: float = 0.15
    false_alarm: float = 0.01
    attribute: float = 0.04
    outline: float = 0.05
    shake: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """One annotator."""

    name: str
    region: str
    mistake_rates: MistakeRates = MistakeRates()
    lighter: float = 0.0
    younger: float = 0.0


_CARELESS = MistakeRates(
    count=0.4,
    loose=0.7,
    wrong_class=0.4,
    missed=0.1,
    tone=0.6,
    one_tone=0.4,
    unnoticed=0.9,
    false_alarm=0.3,
    attribute=0.4,
    outline=0.5,
    shake=0.1,
)

CREW: tuple[Annotator, ...] = (
    Annotator(name="ada", region="north", lighter=0.3),
    Annotator(name="ben", region="north", lighter=0.3),
    Annotator(name="cora", region="south"),
    Annotator(name="dev", region="south"),
    Annotator(name="eli", region="east", younger=0.25),
    Annotator(name="fay", region="east", younger=0.25),
    Annotator(name="gil", region="west"),
    Annotator(name="hana", region="west"),
    Annotator(name="ivo", region="west", mistake_rates=_CARELESS),
)
"""Eight who slip now and then, two of them with one bias, two with another, and one who is careless
and does not pass a training."""


Answer = dict[str, Any]
TONE, TIGHT, RIGHT = "perceived skin tone", "is the box tight?", "is the class right?"
_LOOSE, _STILL_TIGHT = 1 / 3, 0.8
_DARK = 6
_MAX_CORNERS = 60
_SAYS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "perceived gender presentation": (
        "perceived_gender_presentation",
        {
            "feminine": "more stereotypically female",
            "masculine": "more stereotypically male",
            "non_binary": "non-binary",
        },
    ),
    "perceived age group": ("age_group", {"young": "younger", "older": "older"}),
    "hair colour": ("hair_color", {"colored": "coloured"}),
    "hair type": ("hair_type", {}),
    "lighting": ("lighting", {"well_lit": "well lit", "dimly_lit": "dimly lit"}),
}
_WORN: Mapping[str, tuple[str, str]] = {
    "eyewear": ("eyewear", "glasses"),
    "headscarf": ("headwear", "headscarf"),
    "tattoo": ("tattoo", "yes"),
    "cap": ("headwear", "cap"),
    "facial hair": ("facial_hair", "yes"),
    "face mask": ("mask", "mask"),
}


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """A simulated answer, and the names of its mistakes (none if it is correct)."""

    answer: Answer
    mistakes: tuple[str, ...]


def correct_answer(task: AnnotationTask, stage: str) -> Answer:
    """Give the right answer to a task."""
    return _ANSWERS[stage](task, None, np.random.default_rng(0)).answer


def simulate_answer(
    task: AnnotationTask, stage: str, annotator: Annotator, seed: int
) -> SimulatedAnswer:
    """Answer a task as one annotator does."""
    stream_names = (
        annotator.name,
        stage,
        task.image_id,
        format_box(task),
        str(task.round),
        str(task.golden),
    )
    return _ANSWERS[stage](task, annotator, build_named_rng(seed, *stream_names))


_Draw = np.random.Generator


def _answer_count(
    task: AnnotationTask, annotator: Annotator | None, random: _Draw
) -> SimulatedAnswer:
    number = sum(person["class"] is not None for person in task.people)
    mistakes: tuple[str, ...] = ()
    if annotator is not None and random.random() < annotator.mistake_rates.count:
        number = number + 1 if number <= 1 else number + int(random.choice([-1, 1]))
        mistakes = ("count",)
    choice = str(number) if number <= 5 else "more than 5"
    return SimulatedAnswer({"choices": {"people": [choice]}}, mistakes)


def _answer_boxes(
    task: AnnotationTask, annotator: Annotator | None, random: _Draw
) -> SimulatedAnswer:
    boxes: list[dict[str, Any]] = []
    mistakes: list[str] = []
    for person in task.people:
        if person["class"] is None:
            continue
        label, box = person["class"], true_box(person)
        if annotator is not None:
            chance = random.random(3)
            if chance[0] < annotator.mistake_rates.missed:
                mistakes.append("missed")
                continue
            is_loose = bool(chance[1] < annotator.mistake_rates.loose)
            is_wrong_class = bool(chance[2] < annotator.mistake_rates.wrong_class)
            box = _jitter_box(
                box, annotator.mistake_rates.shake, _LOOSE if is_loose else 0.0, random
            )
            if is_wrong_class:
                label = str(random.choice([name for name in CLASSES if name != label]))
            mistakes += ["loose"] * is_loose + ["wrong class"] * is_wrong_class
        corner_and_size = dict(
            zip("xywh", (round(coordinate, 2) for coordinate in box), strict=True)
        )
        boxes.append({"label": label, "secondary": None} | corner_and_size)
    return SimulatedAnswer({"boxes": boxes}, tuple(mistakes))


def _jitter_box(box: Box, shake: float, enlargement: float, random: _Draw) -> Box:
    """Move a box's edges, and keep it in the photo."""
    x, y, w, h = box
    left, top, right, bottom = (
        np.array([x, y, x + w, y + h])
        + random.normal(0, shake, 4) * [w, h, w, h]
        + enlargement / 2 * np.array([-w, -h, w, h])
    )
    left, right = np.clip([left, right], 0, SIZE[0])
    top, bottom = np.clip([top, bottom], 0, SIZE[1])
    return float(left), float(top), float(right - left), float(bottom - top)


def _answer_skin_tone(
    task: AnnotationTask, annotator: Annotator | None, random: _Draw
) -> SimulatedAnswer:
    person = task.person
    if person is None:  # a box around no one
        choices = {TONE: ["cannot be determined"], TIGHT: ["no"], RIGHT: ["no"]}
        return SimulatedAnswer({"choices": choices}, ())
    tone, mistakes = int(person["skin_tone"]), []
    is_loose = task.box is not None and iou_of_boxes(task.box, true_box(person)) < _STILL_TIGHT
    is_wrong_class = task.primary != person["class"]
    second = tone  # who must know marks it alone; an answer of two holds it or does not
    if annotator is not None:
        chance = random.random(6)
        if tone >= _DARK and chance[0] < annotator.lighter:
            tone, mistakes = tone - 1, ["lighter"]
        elif chance[1] < annotator.mistake_rates.tone:
            tone, mistakes = int(np.clip(tone + random.choice([-1, 1]), 1, 10)), ["tone"]
        second = tone + (1 if tone == 1 or (tone < 10 and random.random() < 0.5) else -1)
        if chance[2] < annotator.mistake_rates.one_tone:
            second, mistakes = tone, [*mistakes, "one tone"]
        is_unnoticed = chance[3:5] < annotator.mistake_rates.unnoticed
        mistakes += ["loose unnoticed"] * bool(is_loose and is_unnoticed[0])
        mistakes += ["class unnoticed"] * bool(is_wrong_class and is_unnoticed[1])
        is_loose, is_wrong_class = (
            is_loose and not is_unnoticed[0],
            is_wrong_class and not is_unnoticed[1],
        )
        if not is_loose and chance[5] < annotator.mistake_rates.false_alarm:
            is_loose, mistakes = True, [*mistakes, "false alarm"]
    tones = [str(number) for number in sorted({tone, second})]
    choices = {
        TONE: tones,
        TIGHT: ["no" if is_loose else "yes"],
        RIGHT: ["no" if is_wrong_class else "yes"],
    }
    return SimulatedAnswer({"choices": choices}, tuple(mistakes))


def _answer_attributes(
    task: AnnotationTask, annotator: Annotator | None, random: _Draw
) -> SimulatedAnswer:
    person = task.person
    choices: dict[str, list[str]] = {}
    mistakes: list[str] = []
    for question, answers in STAGES["attributes"].choices.items():
        right = _correct_choices(question, person)
        if annotator is not None:
            chance = random.random(2)
            older = question == "perceived age group" and right == ["older"]
            if chance[0] < annotator.mistake_rates.attribute:
                wrong_answers = [answer for answer in answers if answer not in right]
                right, mistakes = [str(random.choice(wrong_answers))], [*mistakes, question]
            elif older and chance[1] < annotator.younger:
                right, mistakes = ["middle"], [*mistakes, "younger"]
        choices[question] = right
    return SimulatedAnswer({"choices": choices}, tuple(mistakes))


def _correct_choices(question: str, person: Mapping[str, Any] | None) -> list[str]:
    if person is None:
        return {
            "lighting": ["well lit"],
            "visibility": ["minimal"],
            "additional items": ["none"],
        }.get(question, ["cannot be determined"])
    if question == "visibility":
        return ["face"] if person["view"] == "face" else ["torso", "face"]
    if question == "additional items":
        worn = [name for name, (column, word) in _WORN.items() if person[column] == word]
        return worn or ["none"]
    column, spelt = _SAYS[question]
    return [spelt.get(person[column], person[column])]


def _answer_masks(
    task: AnnotationTask, annotator: Annotator | None, random: _Draw
) -> SimulatedAnswer:
    if task.person is None or task.person["mask_counts"] is None:
        return SimulatedAnswer({"polygons": []}, ())
    points = trace_outline(task.person["mask_counts"], SIZE)
    mistakes: tuple[str, ...] = ()
    if annotator is not None and random.random() < annotator.mistake_rates.outline:
        middle = points.mean(axis=0)
        points, mistakes = middle + (points - middle) * 0.85, ("outline",)
    corners = [[round(float(x), 2), round(float(y), 2)] for x, y in points]
    return SimulatedAnswer({"polygons": [{"label": "person", "points": corners}]}, mistakes)


def trace_outline(counts: str, size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Trace a mask: ``[corners, 2]`` x, y in pixels, at most 60 corners."""
    width, height = size
    rle = {"size": [height, width], "counts": counts}
    masks = masks_from_coco([rle], np.array([height]), np.array([width]))
    polygon = max(trace_mask_outlines(masks, 0), key=_polygon_area)
    step = max(1, -(-len(polygon) // _MAX_CORNERS))
    return np.asarray(polygon[::step], dtype=np.float64)


def _polygon_area(polygon: npt.NDArray[np.int32]) -> float:
    x, y = polygon[:, 0].astype(np.float64), polygon[:, 1].astype(np.float64)
    return float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2


_ANSWERS: dict[str, Callable[[AnnotationTask, Annotator | None, _Draw], SimulatedAnswer]] = {
    "count": _answer_count,
    "boxes": _answer_boxes,
    "skin_tone": _answer_skin_tone,
    "attributes": _answer_attributes,
    "masks": _answer_masks,
}


def build_answer_sheet_rows(head: Answer, answer: Answer) -> list[Answer]:
    """Write an answer as rows of a sheet: one for each choice, and for each box."""
    rows = [
        head | {"question": question, "answer": choice}
        for question, choices in answer.get("choices", {}).items()
        for choice in choices
    ]
    return rows + [head | box for box in answer.get("boxes", ())]


def answer_to_label_studio(answer: Answer, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Write an answer as the ``result`` of an annotation: in per cent of the picture."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"c{k}",
            "type": "choices",
            "from_name": question,
            "to_name": "image",
            "value": {"choices": list(choices)},
        }
        for k, (question, choices) in enumerate(answer.get("choices", {}).items())
    ]
    across, down = 100 / size[0], 100 / size[1]
    head = {
        "to_name": "image",
        "original_width": size[0],
        "original_height": size[1],
        "image_rotation": 0,
    }
    for k, box in enumerate(answer.get("boxes", ())):
        rectangle = {
            "x": box["x"] * across,
            "y": box["y"] * down,
            "width": box["w"] * across,
            "height": box["h"] * down,
            "rotation": 0,
            "rectanglelabels": [box["label"]],
        }
        rectangle_result = {
            "id": f"b{k}",
            "type": "rectanglelabels",
            "from_name": "primary",
            "value": rectangle,
        }
        rows.append(head | rectangle_result)
    for k, shape in enumerate(answer.get("polygons", ())):
        points = [[x * across, y * down] for x, y in shape["points"]]
        rows.append(
            head
            | {
                "id": f"p{k}",
                "type": "polygonlabels",
                "from_name": "primary",
                "value": {"points": points, "polygonlabels": [shape["label"]], "closed": True},
            }
        )
    return rows
