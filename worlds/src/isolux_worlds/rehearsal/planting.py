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

from isolux.vocabulary.errors import SpecError

__all__ = ["FAULTS", "Fault", "Sent", "copies", "numbers", "planted"]

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


_MIN_PHOTOS = 100
"""Below it there is no room for every fault and enough photos without one."""
_PER_SUBJECT = 4  # photos of a person, about
_FAR = timedelta(days=8)


@dataclass(frozen=True, slots=True)
class Sent:
    """A photo as it is sent in."""

    source: str
    household: str
    subjects: tuple[str, ...]
    taken: datetime
    place: str
    fault: str = ""
    of: str = ""
    claimed: tuple[str, ...] = ()
    locked: bool = field(default=False, compare=False)


def numbers(photos: int) -> dict[str, int]:
    """Tell how often each fault is planted in so many photos."""
    if photos < _MIN_PHOTOS:
        problem, expected = "there are too few photos for every fault", f"{_MIN_PHOTOS} or more"
        raise SpecError(problem, expected=expected, found=str(photos), where="photos")
    by = {"subject": 1 / _PER_SUBJECT}
    return {f.name: max(1, round(f.share * photos * by.get(f.level, 1.0))) for f in FAULTS}


def copies(photos: int) -> int:
    """Tell how many of so many photos are copies of others."""
    found = numbers(photos)
    return sum(found[fault.name] for fault in FAULTS if fault.level == "copy")


def planted(
    sent: Sequence[Sent], photos: int, random: np.random.Generator
) -> tuple[list[Sent], dict[str, str]]:
    """Plant every fault."""
    held = {one.source: one for one in sent}
    count = numbers(photos)
    people = _plant_people(held, count, random)
    for fault in FAULTS:
        if fault.level == "photo" and fault.name != "too many":
            _plant_photos(held, fault, count[fault.name], random)
    found = list(held.values())
    for fault in FAULTS:
        if fault.level == "copy":
            found += _copied(held, fault, count[fault.name], random)
    return found, people


def _plant_people(
    held: dict[str, Sent], count: dict[str, int], random: np.random.Generator
) -> dict[str, str]:
    homes: dict[str, list[str]] = {}
    for one in held.values():
        if not one.fault and not one.locked:
            homes.setdefault(one.household, []).extend(one.subjects)
    order = [list(homes)[k] for k in random.permutation(len(homes))]
    found: dict[str, str] = {}
    for fault in (f for f in FAULTS if f.level == "subject"):
        for _ in range(count[fault.name]):
            who = sorted(set(homes[order.pop()]))
            found[who[int(random.integers(len(who)))]] = fault.name
    for source, one in held.items():
        own = [found[who] for who in one.subjects if who in found]
        if own:
            held[source] = replace(one, fault=own[0])
    return found


def _plant_photos(
    held: dict[str, Sent], fault: Fault, number: int, random: np.random.Generator
) -> None:
    for _ in range(number):
        one = _drawn(held, fault.name, random)
        before = _before(held, one)
        if fault.name in ("same day", "same place") and before is not None:
            held[before.source] = replace(before, locked=True)
            at = before.taken + timedelta(hours=2 if fault.name == "same day" else 3 * 24)
            place = before.place if fault.name == "same place" else one.place
            one = replace(one, taken=at, place=place, of=before.source)
        elif fault.name == "three subjects":
            one = replace(one, claimed=_three(held, one, random))
        elif fault.name == "bystander":
            one = replace(one, claimed=one.subjects[:1])
        held[one.source] = replace(one, fault=fault.name)


def _after_another(held: dict[str, Sent], one: Sent) -> bool:
    before = _before(held, one)
    return before is not None and not before.fault and set(one.subjects) <= set(before.subjects)


_FITS: dict[str, Callable[[dict[str, Sent], Sent], bool]] = {
    "bystander": lambda _, one: len(one.subjects) == 2,
    "same day": _after_another,
    "same place": _after_another,
    "sent by another": lambda held, one: bool(_strangers(held, one)),
}
"""What a photo must be like for a fault; any will do for the others."""


def _before(held: dict[str, Sent], one: Sent) -> Sent | None:
    """Find the photo that the same home took last before this one."""
    own = [o for o in held.values() if o.household == one.household and o.taken < one.taken]
    return max(own, key=lambda o: o.taken, default=None)


def _drawn(held: dict[str, Sent], name: str, random: np.random.Generator) -> Sent:
    fits = _FITS.get(name)
    free = [one for one in held.values() if not one.fault and not one.locked]
    free = [one for one in free if fits is None or fits(held, one)]
    if not free:
        problem = f"there is no photo left for the fault {name!r}"
        raise SpecError(problem, expected="more photos", where="photos")
    return free[int(random.integers(len(free)))]


def _three(held: dict[str, Sent], one: Sent, random: np.random.Generator) -> tuple[str, ...]:
    others = sorted(
        {who for o in held.values() if not o.fault for who in o.subjects} - set(one.subjects)
    )
    more = [others[k] for k in random.permutation(len(others))[: 3 - len(one.subjects)]]
    return (*one.subjects, *more)


def _copied(
    held: dict[str, Sent], fault: Fault, number: int, random: np.random.Generator
) -> list[Sent]:
    found = []
    for _ in range(number):
        one = _drawn(held, fault.name, random)
        held[one.source] = replace(one, locked=True)
        copy = replace(one, fault=fault.name, of=one.source)
        if fault.name == "sent by another":
            copy = replace(copy, claimed=_strangers(held, one)[:1])
        elif fault.name == "saved anew":  # with another date, so that no rule of dates sees it
            place = f"{one.place}, later"
            copy = replace(copy, taken=one.taken + timedelta(days=4), place=place)
        found.append(copy)
    return found


def _strangers(held: dict[str, Sent], one: Sent) -> tuple[str, ...]:
    """List people without a fault all of whose photos were taken long before or after this one."""
    bad = {w for o in held.values() if o.fault or o.locked for w in (*o.subjects, *o.claimed)}
    near = {w for o in held.values() if abs(o.taken - one.taken) < _FAR for w in o.subjects}
    every = {w for o in held.values() for w in o.subjects}
    return tuple(sorted(every - bad - near - set(one.subjects)))
