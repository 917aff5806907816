"""Which photos and people of a rehearsal get which fault; each photo has one at the most.

A fault of a person is one of all their photos. Photos that a fault leans on (the one that a copy
was made of, the one that was taken on the same day) stay whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np

from isolux.vocabulary.errors import SpecError
from isolux_worlds.rehearsal.faults import FAULTS, Fault

__all__ = ["LEAST_PHOTOS", "Sent", "copies", "numbers", "planted"]

LEAST_PHOTOS = 100
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
    if photos < LEAST_PHOTOS:
        raise SpecError(
            "there are too few photos for every fault", expected=f"{LEAST_PHOTOS} or more",
            found=str(photos), where="photos",
        )  # fmt: skip
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
