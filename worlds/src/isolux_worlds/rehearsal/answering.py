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
from isolux_worlds._draw import stream
from isolux_worlds.layouts.fhibe.outlines import outlines
from isolux_worlds.rehearsal.inbox import CLASSES, SIZE
from isolux_worlds.rehearsal.sight import Asked, Box, box_of, box_text, iou

__all__ = [
    "CREW",
    "Annotator",
    "Answer",
    "Given",
    "Slips",
    "answer_rows",
    "answered",
    "label_studio",
    "outline_of",
    "truth_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slips:
    """How often an annotator is wrong: chances from 0 to 1."""

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
    slips: Slips = Slips()
    lighter: float = 0.0
    younger: float = 0.0


_CARELESS = Slips(
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
    Annotator(name="ivo", region="west", slips=_CARELESS),
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
class Given:
    """An answer, and what is wrong with it: names of slips, none if it is as it should be."""

    answer: Answer
    slips: tuple[str, ...]


def truth_of(asked: Asked, stage: str) -> Answer:
    """Give the right answer to a task."""
    return _ANSWERS[stage](asked, None, np.random.default_rng(0)).answer


def answered(asked: Asked, stage: str, who: Annotator, seed: int) -> Given:
    """Answer a task as one annotator does."""
    named = (who.name, stage, asked.image_id, box_text(asked), str(asked.round), str(asked.golden))
    return _ANSWERS[stage](asked, who, stream(seed, *named))


_Draw = np.random.Generator


def _count(asked: Asked, who: Annotator | None, random: _Draw) -> Given:
    number = sum(person["class"] is not None for person in asked.people)
    slips: tuple[str, ...] = ()
    if who is not None and random.random() < who.slips.count:
        number = number + 1 if number <= 1 else number + int(random.choice([-1, 1]))
        slips = ("count",)
    said = str(number) if number <= 5 else "more than 5"
    return Given({"choices": {"people": [said]}}, slips)


def _boxes(asked: Asked, who: Annotator | None, random: _Draw) -> Given:
    boxes: list[dict[str, Any]] = []
    slips: list[str] = []
    for person in asked.people:
        if person["class"] is None:
            continue
        label, box = person["class"], box_of(person)
        if who is not None:
            chance = random.random(3)
            if chance[0] < who.slips.missed:
                slips.append("missed")
                continue
            loose = bool(chance[1] < who.slips.loose)
            other = bool(chance[2] < who.slips.wrong_class)
            box = _drawn(box, who.slips.shake, _LOOSE if loose else 0.0, random)
            if other:
                label = str(random.choice([one for one in CLASSES if one != label]))
            slips += ["loose"] * loose + ["wrong class"] * other
        sides = dict(zip("xywh", (round(side, 2) for side in box), strict=True))
        boxes.append({"label": label, "secondary": None} | sides)
    return Given({"boxes": boxes}, tuple(slips))


def _drawn(box: Box, shake: float, grown: float, random: _Draw) -> Box:
    """Move a box's edges, and keep it in the photo."""
    x, y, w, h = box
    left, top, right, bottom = (
        np.array([x, y, x + w, y + h])
        + random.normal(0, shake, 4) * [w, h, w, h]
        + grown / 2 * np.array([-w, -h, w, h])
    )
    left, right = np.clip([left, right], 0, SIZE[0])
    top, bottom = np.clip([top, bottom], 0, SIZE[1])
    return float(left), float(top), float(right - left), float(bottom - top)


def _skin_tone(asked: Asked, who: Annotator | None, random: _Draw) -> Given:
    person = asked.person
    if person is None:  # a box around no one
        said = {TONE: ["cannot be determined"], TIGHT: ["no"], RIGHT: ["no"]}
        return Given({"choices": said}, ())
    tone, slips = int(person["skin_tone"]), []
    loose = asked.box is not None and iou(asked.box, box_of(person)) < _STILL_TIGHT
    wrong = asked.primary != person["class"]
    second = tone  # who must know marks it alone; an answer of two holds it or does not
    if who is not None:
        chance = random.random(6)
        if tone >= _DARK and chance[0] < who.lighter:
            tone, slips = tone - 1, ["lighter"]
        elif chance[1] < who.slips.tone:
            tone, slips = int(np.clip(tone + random.choice([-1, 1]), 1, 10)), ["tone"]
        second = tone + (1 if tone == 1 or (tone < 10 and random.random() < 0.5) else -1)
        if chance[2] < who.slips.one_tone:
            second, slips = tone, [*slips, "one tone"]
        hidden = chance[3:5] < who.slips.unnoticed
        slips += ["loose unnoticed"] * bool(loose and hidden[0])
        slips += ["class unnoticed"] * bool(wrong and hidden[1])
        loose, wrong = loose and not hidden[0], wrong and not hidden[1]
        if not loose and chance[5] < who.slips.false_alarm:
            loose, slips = True, [*slips, "false alarm"]
    tones = [str(one) for one in sorted({tone, second})]
    said = {TONE: tones, TIGHT: ["no" if loose else "yes"], RIGHT: ["no" if wrong else "yes"]}
    return Given({"choices": said}, tuple(slips))


def _attributes(asked: Asked, who: Annotator | None, random: _Draw) -> Given:
    person = asked.person
    said: dict[str, list[str]] = {}
    slips: list[str] = []
    for question, answers in STAGES["attributes"].choices.items():
        right = _true(question, person)
        if who is not None:
            chance = random.random(2)
            older = question == "perceived age group" and right == ["older"]
            if chance[0] < who.slips.attribute:
                others = [one for one in answers if one not in right]
                right, slips = [str(random.choice(others))], [*slips, question]
            elif older and chance[1] < who.younger:
                right, slips = ["middle"], [*slips, "younger"]
        said[question] = right
    return Given({"choices": said}, tuple(slips))


def _true(question: str, person: Mapping[str, Any] | None) -> list[str]:
    if person is None:
        return {
            "lighting": ["well lit"],
            "visibility": ["minimal"],
            "additional items": ["none"],
        }.get(question, ["cannot be determined"])
    if question == "visibility":
        return ["face"] if person["view"] == "face" else ["torso", "face"]
    if question == "additional items":
        worn = [name for name, (column, value) in _WORN.items() if person[column] == value]
        return worn or ["none"]
    column, spelt = _SAYS[question]
    return [spelt.get(person[column], person[column])]


def _masks(asked: Asked, who: Annotator | None, random: _Draw) -> Given:
    if asked.person is None or asked.person["mask_counts"] is None:
        return Given({"polygons": []}, ())
    points = outline_of(asked.person["mask_counts"], SIZE)
    slips: tuple[str, ...] = ()
    if who is not None and random.random() < who.slips.outline:
        middle = points.mean(axis=0)
        points, slips = middle + (points - middle) * 0.85, ("outline",)
    told = [[round(float(x), 2), round(float(y), 2)] for x, y in points]
    return Given({"polygons": [{"label": "person", "points": told}]}, slips)


def outline_of(counts: str, size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Trace a mask: ``[corners, 2]`` x, y in pixels, at most 60 corners."""
    width, height = size
    told = {"size": [height, width], "counts": counts}
    masks = masks_from_coco([told], np.array([height]), np.array([width]))
    polygon = max(outlines(masks, 0), key=_area)
    step = max(1, -(-len(polygon) // _MAX_CORNERS))
    return np.asarray(polygon[::step], dtype=np.float64)


def _area(polygon: npt.NDArray[np.int32]) -> float:
    x, y = polygon[:, 0].astype(np.float64), polygon[:, 1].astype(np.float64)
    return float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2


_ANSWERS: dict[str, Callable[[Asked, Annotator | None, _Draw], Given]] = {
    "count": _count,
    "boxes": _boxes,
    "skin_tone": _skin_tone,
    "attributes": _attributes,
    "masks": _masks,
}


def answer_rows(head: Answer, answer: Answer) -> list[Answer]:
    """Write an answer as rows of a sheet: one for each choice, and for each box."""
    rows = [
        head | {"question": question, "answer": choice}
        for question, choices in answer.get("choices", {}).items()
        for choice in choices
    ]
    return rows + [head | box for box in answer.get("boxes", ())]


def label_studio(answer: Answer, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Write an answer as the ``result`` of an annotation: in per cent of the picture."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"c{k}",
            "type": "choices",
            "from_name": question,
            "to_name": "image",
            "value": {"choices": list(said)},
        }
        for k, (question, said) in enumerate(answer.get("choices", {}).items())
    ]
    across, down = 100 / size[0], 100 / size[1]
    head = {
        "to_name": "image",
        "original_width": size[0],
        "original_height": size[1],
        "image_rotation": 0,
    }
    for k, box in enumerate(answer.get("boxes", ())):
        value = {
            "x": box["x"] * across,
            "y": box["y"] * down,
            "width": box["w"] * across,
            "height": box["h"] * down,
            "rotation": 0,
            "rectanglelabels": [box["label"]],
        }
        told = {"id": f"b{k}", "type": "rectanglelabels", "from_name": "primary", "value": value}
        rows.append(head | told)
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
