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
    """One kind of damage: what is damaged, who should find it, and by which rule a photo leaves.

    ``share`` is of photos (of people: divided by the four photos that each is in); ``first`` the
    rule by which the photo leaves first, where that is another one: a file that tells no device has
    no device's year either.
    """

    name: str
    step: str
    rule: str
    level: Level = "photo"
    finder: Finder = "rule"
    share: float = 0.01
    first: str = ""

    @property
    def leaves_by(self) -> str:
        """The rule by which the funnel counts the photo."""
        return self.first or self.rule


FAULTS: tuple[Fault, ...] = (
    Fault("damaged file", "specifications", "readable", first="device_year"),
    Fault("PNG named JPEG", "specifications", "format"),
    Fault("no Exif", "specifications", "exif", first="device_year"),
    Fault("device too old", "specifications", "device_year"),
    Fault("too few pixels", "specifications", "megapixels"),
    Fault("too long", "specifications", "aspect"),
    Fault("editor named", "specifications", "editing"),
    Fault("cropped", "specifications", "editing"),
    Fault("zoomed", "specifications", "zoom"),
    Fault("panorama", "specifications", "camera_modes"),
    Fault("portrait mode", "specifications", "camera_modes"),
    Fault("three subjects", "specifications", "subjects"),
    Fault("minor", "people", "adults", "subject"),
    Fault("no age", "people", "adults", "subject"),
    Fault("language", "people", "language", "subject"),
    Fault("no consent", "consent", "consent", "subject"),
    Fault("copyright pending", "consent", "copyright"),
    Fault("sent twice", "series", "days_apart", "copy"),
    Fault("sent by another", "series", "same_file", "copy"),
    Fault("same day", "series", "days_apart"),
    Fault("same place", "series", "days_apart"),
    Fault("too many", "series", "per_subject", share=0.005),
    Fault("hidden filter", "review", "hidden filter", "photo", "review", 0.02),
    Fault("saved anew", "review", "saved anew", "copy", "review", 0.02),
    Fault("logo", "suspicious", "logo", "photo", "review", 0.02),
    Fault("contradictory place", "suspicious", "contradictory place", "subject", "review", 0.02),
    Fault("bystander", "privacy", "redacted", "photo", "review", 0.03),
    Fault("no one of the classes", "annotation", "no one matches", "photo", "annotators", 0.02),
    Fault("withdrawn", "consent", "consent", "subject", "ledger"),
)
"""All of them. A photo with a bystander stays; the bystander is to be filled in."""
