"""What is wrong with candidate photos of a rehearsal, and who should find it.

Each photo has one fault at the most, so that the funnel of a project can be told beforehand: a
photo leaves where its own fault is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["FAULTS", "Fault", "Finder", "Level"]

Level = Literal["photo", "subject", "copy"]
Finder = Literal["rule", "review", "annotators", "ledger"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of damage."""

    name: str
    level: Level
    finder: Finder
    step: str
    rule: str
    share: float = 0.01
    first: str = ""

    @property
    def leaves_by(self) -> str:
        """The rule by which the funnel counts the photo."""
        return self.first or self.rule


def _of_rule(
    name: str, step: str, rule: str, level: Level = "photo", *, share: float = 0.01, first: str = ""
) -> Fault:
    return Fault(name, level, "rule", step, rule, share, first)


FAULTS: tuple[Fault, ...] = (
    _of_rule("damaged file", "specifications", "readable", first="device_year"),
    _of_rule("PNG named JPEG", "specifications", "format"),
    _of_rule("no Exif", "specifications", "exif", first="device_year"),
    _of_rule("device too old", "specifications", "device_year"),
    _of_rule("too few pixels", "specifications", "megapixels"),
    _of_rule("too long", "specifications", "aspect"),
    _of_rule("editor named", "specifications", "editing"),
    _of_rule("cropped", "specifications", "editing"),
    _of_rule("zoomed", "specifications", "zoom"),
    _of_rule("panorama", "specifications", "camera_modes"),
    _of_rule("portrait mode", "specifications", "camera_modes"),
    _of_rule("three subjects", "specifications", "subjects"),
    _of_rule("minor", "people", "adults", "subject"),
    _of_rule("no age", "people", "adults", "subject"),
    _of_rule("language", "people", "language", "subject"),
    _of_rule("no consent", "consent", "consent", "subject"),
    _of_rule("copyright pending", "consent", "copyright"),
    _of_rule("sent twice", "series", "days_apart", "copy"),
    _of_rule("sent by another", "series", "same_file", "copy"),
    _of_rule("same day", "series", "days_apart"),
    _of_rule("same place", "series", "days_apart"),
    _of_rule("too many", "series", "per_subject", share=0.005),
    Fault("hidden filter", "photo", "review", "review", "hidden filter", 0.02),
    Fault("saved anew", "copy", "review", "review", "saved anew", 0.02),
    Fault("logo", "photo", "review", "suspicious", "logo", 0.02),
    Fault("contradictory place", "subject", "review", "suspicious", "contradictory place", 0.02),
    Fault("bystander", "photo", "review", "privacy", "redacted", 0.03),
    Fault("no one of the classes", "photo", "annotators", "annotation", "no one matches", 0.02),
    Fault("withdrawn", "subject", "ledger", "consent", "consent"),
)
"""All of them. A photo with a bystander stays; the bystander is to be filled in."""
