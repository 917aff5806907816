"""A drawn world: its four tables, and what they were drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux_worlds._joins import left_join_in_order
from isolux_worlds.photo_world.settings import WorldSettings

__all__ = ["PhotoWorld"]


@dataclass(frozen=True, slots=True)
class PhotoWorld:
    """A world drawn from settings: four tables, and what they were drawn from.

    Parameters
    ----------
    settings : WorldSettings
        Who lives there, how they are photographed, who annotates, which models err how.
    seed : int
    households, subjects, photos, people : polars.DataFrame
        See the tables of those names in ``photo_world/tables.py``.
    """

    settings: WorldSettings
    seed: int
    households: pl.DataFrame
    subjects: pl.DataFrame
    photos: pl.DataFrame
    people: pl.DataFrame

    def sized_people(self) -> pl.DataFrame:
        """Give the people with ``width`` and ``height`` of their photos."""
        return left_join_in_order(self.people, self.photos.select("image_id", "width", "height"))
