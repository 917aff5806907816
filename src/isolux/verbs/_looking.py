"""The pictures that are learnt from, and what becomes of those that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy.typing as npt
import polars as pl

from isolux.engine import list_pictures
from isolux.engine.pictures import Picture, open_picture, picture_folder
from isolux.io.images import Pixels
from isolux.training import Look, Looked, Pictures
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.notes import Caution

_MOST = 0.05  # of the pictures: with more, the folder or the files are not the right ones
_SHOWN = 3


def pictures_of(
    dataset: Dataset, ids: pl.Series, picture_of: Literal["image", "person"],
    prepare: Callable[[Pixels], npt.NDArray[Any]], threads: int,
) -> Pictures:  # fmt: skip
    """List one picture for each person, in their order."""
    if threads < 0:
        raise SpecError(
            "pictures are opened by threads", expected="--threads 1 or more; 0: one a core",
            found=str(threads),
        )  # fmt: skip
    listed: dict[str, Picture] = {}
    for picture in list_pictures(dataset, "labels", picture_of):
        for unit in picture.units:
            listed[unit.id] = replace(picture, units=(unit,))
    shown, folder = [listed[one] for one in ids.to_list()], picture_folder(dataset)

    def look(row: int) -> Look:
        found = open_picture(shown[row], folder)
        cut = found.cuts[0]
        return Look(cut.pixels, found.sha256, cut.reason)

    return Pictures(len(shown), look, prepare, threads)


def unreadable(ids: pl.Series, looked: Looked) -> list[list[str]]:
    """List who has no picture to learn from, with the reason."""
    pairs = zip(ids.to_list(), looked.reasons, strict=True)
    return [[one, why] for one, why in pairs if why is not None]


def told_of_pictures(ids: pl.Series, looked: Looked, where: str) -> tuple[str, ...]:
    """Say which pictures are left out."""
    missing = unreadable(ids, looked)
    if not missing:
        return ()
    of = len(looked.reasons)
    told = "; ".join(f"{one} ({why})" for one, why in missing[:_SHOWN])
    if len(missing) > _MOST * of:
        raise FileError(
            f"{len(missing):,} of {of:,} pictures cannot be learnt from",
            expected=f"at most {100 * _MOST:g} in a hundred, which are left out",
            found=told,
            where=where,
            hint="name the folder that holds them: --images FOLDER (images=…)",
        )
    more = f"; and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
    return (
        Caution(f"{len(missing):,} of {of:,} pictures cannot be read and are left out:"
                f" {told}{more}."),
    )  # fmt: skip
