"""FACET's five stages of annotation: questions, units, number of annotators, valid answers.

Source: Gustafson et al. (2023), section 5.2 (the stages), 4.1 and 4.2 (the attributes), appendix
A.3 (training and requeueing), C.1 (instructions: at least two skin tones, consecutive).

A stage can be formatted as Label Studio's labelling configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree as ET

UNKNOWN = "cannot be determined"
_CLASS_QUESTION = "is the class right?"
_BOX_QUESTION = "is the box tight?"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationStage:
    """One stage.

    Parameters
    ----------
    name, title, instruction : str
        The instruction is shown to annotators.
    unit_kind : {"image", "instance"}
        What a task is about: a photo, or a person in it.
    n_annotators : int
        The number of annotators who answer about each unit.
    choices : mapping of str to tuple of str
        Questions and the answers to choose from, one each but for multiple-choice questions.
    multiple_choice : tuple of str
    shape_type : {"boxes", "polygons"} or None
        The shapes to draw, labelled with the project's classes or with ``labels``.
    labels : tuple of str
    consecutive : tuple of str
        Questions that take a minimum number of neighbouring answers.
    requeue_answers : mapping of str to str
        A question, and the answer that sends the photo back to an earlier stage.
    max_people : int or None
        Photos with more people are excluded.
    threshold : float
        Recall (of choices) or mean IoU (of boxes) on the golden set that passes the training.
    needs_manual_check : bool
        Whether someone must look at a rater's boxes before they graduate.
    """

    name: str
    title: str
    instruction: str
    unit_kind: Literal["image", "instance"]
    n_annotators: int = 1
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    multiple_choice: tuple[str, ...] = ()
    shape_type: Literal["boxes", "polygons"] | None = None
    labels: tuple[str, ...] = ()
    consecutive: tuple[str, ...] = ()
    min_consecutive: int = 2
    requeue_answers: Mapping[str, str] = field(default_factory=dict)
    requeue_to: str | None = None
    max_people: int | None = None
    threshold: float = 0.85
    needs_manual_check: bool = False


_TONES = tuple(str(tone) for tone in range(1, 11))

STAGES: dict[str, AnnotationStage] = {
    stage.name: stage
    for stage in (
        AnnotationStage(
            name="count",
            title="1. How many people match",
            instruction="Say how many people in the photo match the categories that are listed.",
            unit_kind="image",
            choices={"people": ("0", "1", "2", "3", "4", "5", "more than 5")},
            max_people=5,
        ),
        AnnotationStage(
            name="boxes",
            title="2. Boxes and classes",
            instruction=(
                "Draw a box tightly around each person who matches one of the categories, without"
                " what they hold, and mark the category; where a second one fits too, mark it as"
                " secondary."
            ),
            unit_kind="image",
            shape_type="boxes",
            needs_manual_check=True,
        ),
        AnnotationStage(
            name="skin_tone",
            title="3. Perceived skin tone",
            instruction=(
                "Mark the skin tones of the person in the box as they appear: at least two, next to"
                " one another on the Monk scale. Where it is hard to tell, mark those that it"
                f" appears to be and '{UNKNOWN}'."
            ),
            unit_kind="instance",
            n_annotators=3,
            choices={
                "perceived skin tone": (*_TONES, UNKNOWN),
                _BOX_QUESTION: ("yes", "no"),
                _CLASS_QUESTION: ("yes", "no"),
            },
            multiple_choice=("perceived skin tone",),
            consecutive=("perceived skin tone",),
            requeue_answers={_BOX_QUESTION: "no", _CLASS_QUESTION: "no"},
            requeue_to="boxes",
        ),
        AnnotationStage(
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
            multiple_choice=(
                "hair colour",
                "hair type",
                "additional items",
                "lighting",
                "visibility",
            ),
        ),
        AnnotationStage(
            name="masks",
            title="5. Masks",
            instruction=(
                "Outline or paint the whole body, the hair and each item of clothing of the person "
                "in the box, and of nobody else."
            ),
            unit_kind="instance",
            shape_type="polygons",
            labels=("person", "clothing", "hair"),
        ),
    )
}
"""The stages in their order."""


PRIMARY, SECONDARY, BRUSH = "primary", "secondary", "brush"


def format_label_studio_config(stage: AnnotationStage, classes: Sequence[str]) -> str:
    """Format a stage as Label Studio's labelling configuration (XML).

    Examples
    --------
    >>> from isolux_curate.annotation.stages import STAGES
    >>> text = format_label_studio_config(STAGES["boxes"], ["nurse", "guitarist"])
    >>> text.count("<Label "), "perRegion" in text
    (2, True)
    """
    view = ET.Element("View")
    ET.SubElement(view, "Header", value="$about")
    ET.SubElement(view, "Image", name="image", value="$image", zoom="true", zoomControl="true")
    if stage.shape_type == "boxes":
        _add_labels_element(view, "RectangleLabels", classes)
        _add_choices_element(
            view, SECONDARY, classes, is_multiple=False, is_required=False, is_per_region=True
        )
    elif stage.shape_type == "polygons":
        _add_labels_element(view, "PolygonLabels", stage.labels)
        _add_labels_element(view, "BrushLabels", stage.labels, control_name=BRUSH)
    for question, answers in stage.choices.items():
        ET.SubElement(view, "Header", value=question)
        _add_choices_element(view, question, answers, is_multiple=question in stage.multiple_choice)
    return ET.tostring(view, encoding="unicode")


def _add_labels_element(
    view: ET.Element, tag: str, labels: Sequence[str], *, control_name: str = PRIMARY
) -> None:
    element = ET.SubElement(view, tag, name=control_name, toName="image")
    for label in labels:
        ET.SubElement(element, "Label", value=label)


def _add_choices_element(
    view: ET.Element,
    control_name: str,
    answers: Sequence[str],
    *,
    is_multiple: bool,
    is_required: bool = True,
    is_per_region: bool = False,
) -> None:
    element = ET.SubElement(
        view,
        "Choices",
        name=control_name,
        toName="image",
        choice="multiple" if is_multiple else "single",
        required=str(is_required).lower(),
    )
    if is_per_region:
        element.set("perRegion", "true")
    for answer in answers:
        ET.SubElement(element, "Choice", value=answer)
