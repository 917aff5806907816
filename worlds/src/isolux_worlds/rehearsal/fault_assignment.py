"""Which photos and people of a rehearsal get which fault; each photo has one at the most.

A fault of a person is one of all their photos. Photos that a fault leans on (the one that a copy
was made of, the one that was taken on the same day) stay whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

import numpy as np

from isolux.core.errors import SpecError

__all__ = ["FAULTS", "Fault", "SubmittedPhoto", "assign_faults", "count_copies", "count_faults"]

Level = Literal["photo", "subject", "copy"]
Finder = Literal["rule", "review", "annotators", "ledger"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of damage: what is damaged, who should find it, and by which rule a photo leaves.

    ``share`` is of photos (of people: divided by the four photos that each is in).
    """

    name: str
    step: str
    rule: str
    level: Level = "photo"
    finder: Finder = "rule"
    share: float = 0.01


FAULTS: tuple[Fault, ...] = (
    Fault("damaged file", "specifications", "readable"),
    Fault("PNG named JPEG", "specifications", "format"),
    Fault("no Exif", "specifications", "exif"),
    Fault("device too old", "specifications", "device_year"),
    Fault("too few pixels", "specifications", "megapixels"),
    Fault("too long", "specifications", "aspect"),
    Fault("editor named", "specifications", "editing"),
    Fault("cropped", "specifications", "editing"),
    Fault("zoomed", "specifications", "digital_zoom"),
    Fault("panorama", "specifications", "camera_modes"),
    Fault("portrait mode", "specifications", "camera_modes"),
    Fault("three subjects", "specifications", "people_per_photo"),
    Fault("minor", "people", "minimum_age", "subject"),
    Fault("no age", "people", "minimum_age", "subject"),
    Fault("language", "people", "language", "subject"),
    Fault("no consent", "consent", "consent", "subject"),
    Fault("copyright pending", "consent", "copyright"),
    Fault("sent twice", "series", "duplicate_file", "copy"),
    Fault("sent by another", "series", "duplicate_file", "copy"),
    Fault("same day", "series", "capture_interval"),
    Fault("same place", "series", "capture_interval"),
    Fault("too many", "series", "photos_per_subject", share=0.005),
    Fault("hidden filter", "review", "hidden filter", "photo", "review", 0.02),
    Fault("saved anew", "review", "saved anew", "copy", "review", 0.02),
    Fault("logo", "suspicious", "logo", "photo", "review", 0.02),
    Fault("contradictory place", "suspicious", "contradictory place", "subject", "review", 0.02),
    Fault("bystander", "privacy", "redacted", "photo", "review", 0.03),
    Fault("no one of the classes", "annotation", "no one matches", "photo", "annotators", 0.02),
    Fault("withdrawn", "consent", "consent", "subject", "ledger"),
)
"""All of them. A photo with a bystander stays; the bystander is to be filled in."""


_MIN_PHOTOS = 100
"""Below it there is no room for every fault and enough photos without one."""
_PER_SUBJECT = 4  # photos of a person, about
_MIN_DAYS_APART = timedelta(days=8)


@dataclass(frozen=True, slots=True)
class SubmittedPhoto:
    """A photo as it is sent in."""

    source: str
    household: str
    subjects: tuple[str, ...]
    taken_at: datetime
    location: str
    fault: str = ""
    original_source: str = ""
    claimed: tuple[str, ...] = ()
    locked: bool = field(default=False, compare=False)


def count_faults(photos: int) -> dict[str, int]:
    """Count the photos or people with each fault, for a number of photos."""
    if photos < _MIN_PHOTOS:
        problem, expected = "there are too few photos for every fault", f"{_MIN_PHOTOS} or more"
        raise SpecError(problem, expected=expected, found=str(photos), where="photos")
    by = {"subject": 1 / _PER_SUBJECT}
    return {f.name: max(1, round(f.share * photos * by.get(f.level, 1.0))) for f in FAULTS}


def count_copies(photos: int) -> int:
    """Count the photos that are copies of others."""
    count_by_fault = count_faults(photos)
    return sum(count_by_fault[fault.name] for fault in FAULTS if fault.level == "copy")


def assign_faults(
    submissions: Sequence[SubmittedPhoto], photos: int, random: np.random.Generator
) -> tuple[list[SubmittedPhoto], dict[str, str]]:
    """Assign every fault: all photos, and the fault of each person who has one."""
    photo_by_source = {photo.source: photo for photo in submissions}
    count_by_fault = count_faults(photos)
    people = _assign_people_faults(photo_by_source, count_by_fault, random)
    for fault in FAULTS:
        if fault.level == "photo" and fault.name != "too many":
            _assign_photo_faults(photo_by_source, fault, count_by_fault[fault.name], random)
    all_photos = list(photo_by_source.values())
    for fault in FAULTS:
        if fault.level == "copy":
            all_photos += _draw_photo_copies(
                photo_by_source, fault, count_by_fault[fault.name], random
            )
    return all_photos, people


def _assign_people_faults(
    photo_by_source: dict[str, SubmittedPhoto], count: dict[str, int], random: np.random.Generator
) -> dict[str, str]:
    homes: dict[str, list[str]] = {}
    for photo in photo_by_source.values():
        if not photo.fault and not photo.locked:
            homes.setdefault(photo.household, []).extend(photo.subjects)
    order = [list(homes)[k] for k in random.permutation(len(homes))]
    fault_by_subject: dict[str, str] = {}
    for fault in (f for f in FAULTS if f.level == "subject"):
        for _ in range(count[fault.name]):
            home_subjects = sorted(set(homes[order.pop()]))
            fault_by_subject[home_subjects[int(random.integers(len(home_subjects)))]] = fault.name
    for source, photo in photo_by_source.items():
        faults = [
            fault_by_subject[subject_id]
            for subject_id in photo.subjects
            if subject_id in fault_by_subject
        ]
        if faults:
            photo_by_source[source] = replace(photo, fault=faults[0])
    return fault_by_subject


def _assign_photo_faults(
    photo_by_source: dict[str, SubmittedPhoto],
    fault: Fault,
    number: int,
    random: np.random.Generator,
) -> None:
    for _ in range(number):
        photo = _draw_photo_for(photo_by_source, fault.name, random)
        previous = _find_previous_photo_of_home(photo_by_source, photo)
        if fault.name in ("same day", "same place") and previous is not None:
            photo_by_source[previous.source] = replace(previous, locked=True)
            later = timedelta(minutes=1) if fault.name == "same day" else timedelta(days=3)
            taken_at = previous.taken_at + later
            location = previous.location if fault.name == "same place" else photo.location
            photo = replace(
                photo, taken_at=taken_at, location=location, original_source=previous.source
            )
        elif fault.name == "three subjects":
            photo = replace(
                photo, claimed=_draw_three_other_subjects(photo_by_source, photo, random)
            )
        elif fault.name == "bystander":
            photo = replace(photo, claimed=photo.subjects[:1])
        photo_by_source[photo.source] = replace(photo, fault=fault.name)


def _follows_photo_without_fault(
    photo_by_source: dict[str, SubmittedPhoto], photo: SubmittedPhoto
) -> bool:
    previous = _find_previous_photo_of_home(photo_by_source, photo)
    return (
        previous is not None
        and not previous.fault
        and set(photo.subjects) <= set(previous.subjects)
    )


_IS_SUITABLE: dict[str, Callable[[dict[str, SubmittedPhoto], SubmittedPhoto], bool]] = {
    "bystander": lambda _, photo: len(photo.subjects) == 2,
    "same day": _follows_photo_without_fault,
    "same place": _follows_photo_without_fault,
    "sent by another": lambda photos, photo: bool(_find_unrelated_people(photos, photo)),
}
"""Conditions that a photo must meet to be given a fault; other faults suit any photo."""


def _find_previous_photo_of_home(
    photo_by_source: dict[str, SubmittedPhoto], photo: SubmittedPhoto
) -> SubmittedPhoto | None:
    """Find the photo that the same home took last before this one."""
    earlier_photos = [
        o
        for o in photo_by_source.values()
        if o.household == photo.household and o.taken_at < photo.taken_at
    ]
    return max(earlier_photos, key=lambda o: o.taken_at, default=None)


def _draw_photo_for(
    photo_by_source: dict[str, SubmittedPhoto], name: str, random: np.random.Generator
) -> SubmittedPhoto:
    is_suitable = _IS_SUITABLE.get(name)
    candidates = [
        photo for photo in photo_by_source.values() if not photo.fault and not photo.locked
    ]
    candidates = [
        photo for photo in candidates if is_suitable is None or is_suitable(photo_by_source, photo)
    ]
    if not candidates:
        problem = f"there is no photo left for the fault {name!r}"
        raise SpecError(problem, expected="more photos", where="photos")
    return candidates[int(random.integers(len(candidates)))]


def _draw_three_other_subjects(
    photo_by_source: dict[str, SubmittedPhoto], photo: SubmittedPhoto, random: np.random.Generator
) -> tuple[str, ...]:
    other_subjects = sorted(
        {subject_id for o in photo_by_source.values() if not o.fault for subject_id in o.subjects}
        - set(photo.subjects)
    )
    added_subjects = [
        other_subjects[k]
        for k in random.permutation(len(other_subjects))[: 3 - len(photo.subjects)]
    ]
    return (*photo.subjects, *added_subjects)


def _draw_photo_copies(
    photo_by_source: dict[str, SubmittedPhoto],
    fault: Fault,
    number: int,
    random: np.random.Generator,
) -> list[SubmittedPhoto]:
    copied_photos = []
    for _ in range(number):
        original = _draw_photo_for(photo_by_source, fault.name, random)
        photo_by_source[original.source] = replace(original, locked=True)
        copy = replace(original, fault=fault.name, original_source=original.source)
        if fault.name == "sent by another":
            copy = replace(copy, claimed=_find_unrelated_people(photo_by_source, original)[:1])
        elif fault.name == "saved anew":  # with another date, so that no rule of dates sees it
            location = f"{original.location}, later"
            later = timedelta(days=4, hours=8)  # another part of the day, whatever the hour is
            copy = replace(copy, taken_at=original.taken_at + later, location=location)
        copied_photos.append(copy)
    return copied_photos


def _find_unrelated_people(
    photo_by_source: dict[str, SubmittedPhoto], photo: SubmittedPhoto
) -> tuple[str, ...]:
    """List people without a fault all of whose photos were taken long before or after this one."""
    excluded_subjects = {
        w
        for o in photo_by_source.values()
        if o.fault or o.locked
        for w in (*o.subjects, *o.claimed)
    }
    recent_subjects = {
        w
        for o in photo_by_source.values()
        if abs(o.taken_at - photo.taken_at) < _MIN_DAYS_APART
        for w in o.subjects
    }
    all_subjects = {w for o in photo_by_source.values() for w in o.subjects}
    return tuple(sorted(all_subjects - excluded_subjects - recent_subjects - set(photo.subjects)))
