"""FACET's five stages, as data: what is asked of whom about what, and when an answer counts.

Source: Gustafson et al. (2023), section 5.2 (the stages), 4.1 and 4.2 (the attributes), appendix
A.3 (training and requeueing), C.1 (instructions: at least two skin tones, consecutive).

A stage as Label Studio's labelling configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree as ET

UNKNOWN = "cannot be determined"
_CLASS = "is the class right?"
_TIGHT = "is the box tight?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage.

    Parameters
    ----------
    name, title, instruction : str
        The instruction is shown to annotators.
    unit_kind : {"image", "instance"}
        What a task is about: a photo, or a person in it.
    wanted : int
        Annotators asked about each unit.
    choices : mapping of str to tuple of str
        Questions and the answers to choose from; ``several`` names those that take more than one.
    several : tuple of str
    draws : {"boxes", "polygons"} or None
        What is drawn, of the project's classes or of ``labels``.
    labels : tuple of str
    consecutive : tuple of str
        Questions whose answers must be neighbours, at least ``least_consecutive`` of them.
    requeue : mapping of str to str
        A question, and the answer that sends the photo back to the stage ``requeue_to``.
    most_people : int or None
        Photos with more people are left out.
    threshold : float
        Recall (of choices) or mean IoU (of boxes) on the golden set, from which on one passes.
    checked : bool
        Whether someone must look at a rater's boxes before they graduate.
    """

    name: str
    title: str
    instruction: str
    unit_kind: Literal["image", "instance"]
    wanted: int = 1
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    several: tuple[str, ...] = ()
    draws: Literal["boxes", "polygons"] | None = None
    labels: tuple[str, ...] = ()
    consecutive: tuple[str, ...] = ()
    least_consecutive: int = 2
    requeue: Mapping[str, str] = field(default_factory=dict)
    requeue_to: str | None = None
    most_people: int | None = None
    threshold: float = 0.85
    checked: bool = False


_TONES = tuple(str(tone) for tone in range(1, 11))

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            name="count",
            title="1. How many people match",
            instruction="Say how many people in the photo match the categories that are listed.",
            unit_kind="image",
            choices={"people": ("0", "1", "2", "3", "4", "5", "more than 5")},
            most_people=5,
        ),
        Stage(
            name="boxes",
            title="2. Boxes and classes",
            instruction=(
                "Draw a box tightly around each person who matches one of the categories, without"
                " what they hold, and mark the category; where a second one fits too, mark it as"
                " secondary."
            ),
            unit_kind="image",
            draws="boxes",
            checked=True,
        ),
        Stage(
            name="skin_tone",
            title="3. Perceived skin tone",
            instruction=(
                "Mark the skin tones of the person in the box as they appear: at least two, next to"
                " one another on the Monk scale. Where it is hard to tell, mark those that it"
                f" appears to be and '{UNKNOWN}'."
            ),
            unit_kind="instance",
            wanted=3,
            choices={
                "perceived skin tone": (*_TONES, UNKNOWN),
                _TIGHT: ("yes", "no"),
                _CLASS: ("yes", "no"),
            },
            several=("perceived skin tone",),
            consecutive=("perceived skin tone",),
            requeue={_TIGHT: "no", _CLASS: "no"},
            requeue_to="boxes",
        ),
        Stage(
            name="attributes",
            title="4. Other attributes as they appear",
            instruction=(
                "Mark each attribute of the person in the box as it appears in the photo; if it "
                f"cannot be told, '{UNKNOWN}'. Lighting is the light on the person: between two, "
                "mark both."
            ),
            unit_kind="instance",
            choices={
                "perceived gender presentation": (
                    "more stereotypically female",
                    "more stereotypically male",
                    "non-binary",
                    UNKNOWN,
                ),
                "perceived age group": ("younger", "middle", "older", UNKNOWN),
                "hair colour": ("black", "red", "blonde", "brown", "coloured", "grey", UNKNOWN),
                "hair type": ("wavy", "curly", "coily", "straight", "bald", "dreadlocks", UNKNOWN),
                "additional items": (
                    "eyewear",
                    "headscarf",
                    "tattoo",
                    "cap",
                    "facial hair",
                    "face mask",
                    "none",
                ),
                "lighting": ("overexposed", "underexposed", "well lit", "dimly lit"),
                "visibility": ("minimal", "torso", "face"),
            },
            several=("hair colour", "hair type", "additional items", "lighting", "visibility"),
        ),
        Stage(
            name="masks",
            title="5. Masks",
            instruction=(
                "Outline or paint the whole body, the hair and each item of clothing of the person "
                "in the box, and of nobody else."
            ),
            unit_kind="instance",
            draws="polygons",
            labels=("person", "clothing", "hair"),
        ),
    )
}
"""The stages in their order."""


PRIMARY, SECONDARY, BRUSH = "primary", "secondary", "brush"


def labelling(stage: Stage, classes: Sequence[str]) -> str:
    """Write the configuration of a stage.

    Examples
    --------
    >>> from isolux_curate.annotation.stages import STAGES
    >>> text = labelling(STAGES["boxes"], ["nurse", "guitarist"])
    >>> text.count("<Label "), "perRegion" in text
    (2, True)
    """
    view = ET.Element("View")
    ET.SubElement(view, "Header", value="$about")
    ET.SubElement(view, "Image", name="image", value="$image", zoom="true", zoomControl="true")
    if stage.draws == "boxes":
        _labels(view, "RectangleLabels", classes)
        _choices(view, SECONDARY, classes, several=False, required=False, of_region=True)
    elif stage.draws == "polygons":
        _labels(view, "PolygonLabels", stage.labels)
        _labels(view, "BrushLabels", stage.labels, name=BRUSH)
    for question, answers in stage.choices.items():
        ET.SubElement(view, "Header", value=question)
        _choices(view, question, answers, several=question in stage.several)
    return ET.tostring(view, encoding="unicode")


def _labels(view: ET.Element, tag: str, labels: Sequence[str], *, name: str = PRIMARY) -> None:
    drawn = ET.SubElement(view, tag, name=name, toName="image")
    for label in labels:
        ET.SubElement(drawn, "Label", value=label)


def _choices(
    view: ET.Element,
    name: str,
    answers: Sequence[str],
    *,
    several: bool,
    required: bool = True,
    of_region: bool = False,
) -> None:
    asked = ET.SubElement(
        view,
        "Choices",
        name=name,
        toName="image",
        choice="multiple" if several else "single",
        required=str(required).lower(),
    )
    if of_region:
        asked.set("perRegion", "true")
    for answer in answers:
        ET.SubElement(asked, "Choice", value=answer)
