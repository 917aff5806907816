"""Synthetic worlds in the files of real datasets, so that every loader, task and protocol runs.

``PhotoWorld, pictures -> LAYOUTS["facet"].write -> FACET's files``, which ``datasets/facet.py``
reads as it reads FACET.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from isolux_worlds.layouts import bdd100k, coco, dollarstreet, facet, fhibe
from isolux_worlds.layouts._written import Ids, Picture, Written
from isolux_worlds.layouts.audits import AUDITS, Audits, Native, Way
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["LAYOUTS", "Audits", "Ids", "Layout", "Native", "Picture", "Way", "Written"]


@dataclass(frozen=True, slots=True)
class Layout:
    """One dataset's files."""

    summary: str
    write: Callable[[PhotoWorld, Path, Iterator[Picture] | None], Written]
    ids: Callable[[PhotoWorld], Ids]
    audits: Audits
    judges_people: bool = True


LAYOUTS: Mapping[str, Layout] = {
    "facet": Layout(
        "occupations, boxes, masks; what three annotators perceived",
        facet.write,
        facet.ids,
        AUDITS["facet"],
    ),
    "fhibe": Layout(
        "photos and aligned faces; what people say of themselves; joints and parts",
        fhibe.write,
        fhibe.ids,
        AUDITS["fhibe"],
    ),
    "coco": Layout(
        "boxes, masks, 17 joints, captions; every attribute of the world",
        coco.write,
        coco.ids,
        AUDITS["coco"],
    ),
    "bdd100k": Layout(
        "frames of streets: pedestrians and riders, weather, places and their incomes",
        bdd100k.write,
        bdd100k.ids,
        AUDITS["bdd100k"],
    ),
    "dollarstreet": Layout(
        "photos of homes: what they show, country and income; photos are judged, not people",
        dollarstreet.write,
        dollarstreet.ids,
        AUDITS["dollarstreet"],
        judges_people=False,
    ),
}
"""Layout to how it is written, read and audited; the names are those of the loaders."""
