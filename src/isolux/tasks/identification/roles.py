"""Who is enrolled, who is searched for, and on whose searches a threshold is set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.tasks._both_sides import shared_between
from isolux.tasks._identity import units_with_identity
from isolux.tasks._set_on import having, part_to_set_on
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

__all__ = ["Roles", "roles_of"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Roles:
    """Units in the order of their ids, and the part that each has.

    Parameters
    ----------
    units : polars.DataFrame
        ``unit_id, cluster_id, identity`` (null: unknown).
    enrolled, searched : [n] bool
        Whose images are in the gallery, and whose are searched for in it.
    setting : [n] bool
        Those on whose searches the threshold is set and who are then not judged.
    everyone : bool
        Every image is searched for among all others, so that both parts are everyone's.
    where : str
        What ``setting`` are called.
    cautions : tuple of Caution
        Of people on both sides of ``setting``.
    """

    units: pl.DataFrame
    enrolled: Flags
    searched: Flags
    setting: Flags
    everyone: bool
    where: str = ""
    cautions: tuple[Caution, ...] = ()

    @property
    def person(self) -> npt.NDArray[np.int64]:
        """Number of each unit's person, from 1; 0: unknown."""
        code = self.units["identity"].rank("dense").fill_null(0)
        return code.to_numpy().astype(np.int64)


def roles_of(
    dataset: Dataset,
    *,
    enrolled: str | None,
    threshold_on: float | str | None,
    identity: str | None,
    seed: int,
) -> Roles:
    """Read who is who."""
    units = units_with_identity(dataset, identity).sort("unit_id")
    n = units.height
    every = np.ones(n, dtype=np.bool_)
    gallery, searched = every, every
    if enrolled is not None and n:
        gallery, words = having(
            enrolled, dataset, units["unit_id"], setting="enrolled",
            expected="ATTRIBUTE=VALUE, such as role=gallery",
        )  # fmt: skip
        searched = ~gallery
        if not searched.any():
            raise SpecError(
                "every image is enrolled, and none is searched for",
                expected="some images that are not enrolled, or no --enrolled: each image is then"
                " searched for among all others",
                found=words,
                where="enrolled",
            )
    if threshold_on is None or not n:
        return Roles(units, gallery, searched, np.zeros(n, dtype=np.bool_), enrolled is None)
    asked = units.filter(pl.Series(searched))
    on, words = part_to_set_on(threshold_on, dataset, asked, seed)
    setting = np.zeros(n, dtype=np.bool_)
    setting[searched] = on
    shared = shared_between(dataset, asked, on, words)
    return Roles(units, gallery, searched, setting, enrolled is None, words, tuple(shared))
