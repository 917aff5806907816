"""Synthetic worlds in the files of real datasets, so that every loader, task and protocol runs.

``PhotoWorld, pictures -> LAYOUTS["facet"].write -> FACET's files``, which ``datasets/facet.py``
reads as it reads FACET. A loader names things as its dataset does: a world's
``perceived_gender_presentation`` is FACET's ``gender_presentation`` and the pronoun of FHIBE.
"""

from __future__ import annotations

from collections.abc import Mapping

from isolux_worlds.layouts import bdd100k, coco, dollarstreet, facet, fhibe
from isolux_worlds.layouts._files import PaintedPicture
from isolux_worlds.layouts._layout import LayoutWriter, Way

__all__ = ["LAYOUTS", "LayoutWriter", "PaintedPicture", "Way"]

LAYOUTS: Mapping[str, LayoutWriter] = {
    "facet": facet.LAYOUT,
    "fhibe": fhibe.LAYOUT,
    "coco": coco.LAYOUT,
    "bdd100k": bdd100k.LAYOUT,
    "dollarstreet": dollarstreet.LAYOUT,
}
"""Layout to how it is written, read and audited; the names are those of the loaders."""
