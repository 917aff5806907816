"""What a command and the processes that read for it say to each other: one line of JSON each time.

The command asks for pictures, each with a number and a place in shared memory for each unit. The
process puts what it prepared there, and answers with what is known of each picture besides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from isolux.engine.answering import Said
from isolux.engine.pictures import Opened, Picture, Unit
from isolux.engine.reading import Read
from isolux.io.images import Pixels
from isolux.models import Prepared, Preprocessing

__all__ = ["Asked", "How", "answer", "ask", "asked", "heard", "not_read"]


class Asked(NamedTuple):
    """A picture that is to be read: its number, and a place for each unit."""

    number: int
    places: Sequence[int]
    picture: Picture


@dataclass(frozen=True, slots=True)
class How:
    """How a process reads, all of it JSON; see ``read_picture``. It is told this first.

    Parameters
    ----------
    folder : str
        Of the pictures, whole.
    box_factor : float
    prepare : dict
        As ``Preprocessing.said``.
    """

    folder: str
    box_factor: float
    prepare: dict[str, Any]

    def written(self) -> bytes:
        """Write it as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> How:
        """Read what ``written`` wrote."""
        return cls(**json.loads(line))

    def preprocessing(self) -> Preprocessing:
        """Make the preparation that is told."""
        told: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in self.prepare.items()
        }
        return Preprocessing(**told)


def ask(wanted: Sequence[Asked]) -> bytes:
    """Write pictures that are to be read as one line."""
    told = [
        [number, places, p.image_id, p.path, p.width, p.height, p.placed, p.reason,
         [[unit.id, unit.whole, unit.box] for unit in p.units]]
        for number, places, p in wanted
    ]  # fmt: skip
    return json.dumps(told).encode() + b"\n"


def asked(line: bytes) -> list[Asked]:
    """Read what ``ask`` wrote."""
    return [
        Asked(number, places, Picture(
            image_id, path, width, height,
            tuple(Unit(name, whole, tuple(box) if box else None) for name, whole, box in units),
            placed, reason,
        ))
        for number, places, image_id, path, width, height, placed, reason, units in json.loads(line)
    ]  # fmt: skip


def answer(number: int, read: Read) -> list[Any]:
    """Say what a process found: of each unit why there is nothing, or where its pixels lie."""
    told = [
        [one.scale, one.offset, one.size] if said is None else [said.reason, said.fault]
        for one, said in zip(read.shown, read.said, strict=True)
    ]
    opened = read.opened
    return [number, opened.sha256, opened.width, opened.height, told]


def not_read(number: int) -> list[Any]:
    """Say that a process could not read a picture at all: a thread of the command will say why."""
    return [number]


def heard(
    told: Sequence[Any], one: Asked, pixels: Callable[[int], Pixels], prepare: Preprocessing
) -> tuple[Read, list[int]]:
    """Make of an answer what a thread would have read, and list the places that are not used."""
    _, sha256, width, height, units = told
    read = Read(Opened(one.picture, sha256, width, height, ()), [], [])
    unused = []
    for place, found in zip(one.places, units, strict=True):
        if len(found) == 2:  # a reason, and whose fault it is
            read.shown.append(None)
            read.said.append(Said(None, *found))
            unused.append(place)
            continue
        scale, offset, size = found
        shown = Prepared(pixels(place), prepare.table, tuple(scale), tuple(offset), tuple(size))
        read.shown.append(shown)
        read.said.append(None)
        read.n_bytes += shown.nbytes
    return read, unused
