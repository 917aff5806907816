"""A stage as Label Studio's labelling configuration."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from isolux.curation.annotation.stages import Stage

__all__ = ["BRUSH", "PRIMARY", "SECONDARY", "labelling"]

PRIMARY, SECONDARY, BRUSH = "primary", "secondary", "brush"


def labelling(stage: Stage, classes: Sequence[str]) -> str:
    """Write the configuration of a stage.

    Examples
    --------
    >>> from isolux.curation.annotation.stages import STAGES
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
        view, "Choices", name=name, toName="image", choice="multiple" if several else "single",
        required=str(required).lower(),
    )  # fmt: skip
    if of_region:
        asked.set("perRegion", "true")
    for answer in answers:
        ET.SubElement(asked, "Choice", value=answer)
