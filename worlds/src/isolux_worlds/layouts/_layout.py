"""What a layout is: how it is written, what its loader calls things, how it is audited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from isolux.core.spec import split_intersection
from isolux_worlds.layouts._files import PaintedPicture
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["Ids", "LayoutWriter", "Native", "Way"]


@dataclass(frozen=True, slots=True)
class Ids:
    """How a layout's loader names photos and people."""

    images: pl.DataFrame
    people: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Native:
    """What a world's attribute is called in a layout; ``values`` that have another name there.

    ``exact`` is false where several of the world's values share one of the layout's, or one of
    them is seen with mistakes.
    """

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Way:
    """One task on a layout: the folder or file below the data, and the audit's options.

    ``{data}`` in an option stands for the folder of the data; ``pictures``: the task needs what is
    only known once pictures are painted. ``protocol``: the published one that sets the audit.
    ``predictor``: whose answers are judged, where they are not simulated for the whole task.
    """

    task: str
    path: str = ""
    options: tuple[str, ...] = ()
    pictures: bool = False
    protocol: str = ""
    predictor: str = ""

    @property
    def answers(self) -> str:
        """The simulated predictor, and the name of its files."""
        return self.predictor or self.task


@dataclass(frozen=True, slots=True)
class LayoutWriter:
    """One dataset's files: how they are written, what the loader calls things, how to audit them.

    ``needs_all``: the layout keeps every attribute of a world as it is; ``also``: groupings that
    its own files bring; ``judges_people`` is false where photos are judged; ``protocols``: the
    published protocols that its files are for.
    """

    summary: str
    write: Callable[[PhotoWorld, Path, Iterator[PaintedPicture] | None], PhotoWorld]
    ids: Callable[[PhotoWorld], Ids]
    ways: tuple[Way, ...]
    names: Mapping[str, Native] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    needs_all: bool = False
    also: tuple[str, ...] = ()
    judges_people: bool = True
    protocols: tuple[Way, ...] = ()

    def translate_grouping_or_none(self, entry: str) -> str | None:
        """Translate an attribute or intersection; None where the layout does not know it."""
        if self.needs_all:
            return entry
        natives = [self.names.get(name) for name in split_intersection(entry)]
        return "*".join(native.name for native in natives if native) if all(natives) else None

    def values(self, entry: str, values: Sequence[str]) -> list[str]:
        """Translate a group's values."""
        pairs = zip(split_intersection(entry), values, strict=True)
        return [self.names[n].values.get(v, v) if n in self.names else v for n, v in pairs]
