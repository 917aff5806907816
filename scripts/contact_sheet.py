"""A contact sheet: people of a world, a row for each value of an attribute, each cut from a photo.

The sheet of the docs (``docs/assets/photo_world.webp``) is written by

    python -m scripts.contact_sheet docs/assets/photo_world.webp

which draws the preset ``fair`` and shows ten Monk tones, nine people each.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds.drawing.anatomy import PersonFigure, build_person_figure
from isolux_worlds.drawing.rendering import render_photos
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES, MONK_TONES
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["contact_sheet"]

_TILE = (112, 136)
"""Width and height of a portrait, pixels."""
_GAP, _LABEL = 4, 96
_HEADS_WIDE = 2.5
"""Breadth of what is cut from a photo, in heads."""
_PAPER, _INK = (250, 249, 246), (40, 40, 44)


def contact_sheet(
    world: PhotoWorld, by: str = "skin_tone", columns: int = 9
) -> npt.NDArray[np.uint8]:
    """Show people of each group side by side.

    Parameters
    ----------
    world : PhotoWorld
    by : str
        An attribute of its people: a row for each value.
    columns : int
        People in a row: subjects of the group, each once, those who are best seen first (near,
        unhidden, in good light).

    Returns
    -------
    [h, w, 3] uint8
        The same for the same world and library versions.

    Raises
    ------
    UnknownNameError
        An attribute that the world's people have not.
    SpecError
        Fewer than one column.

    Examples
    --------
    >>> from isolux_worlds.photo_world import draw_people, preset
    >>> sheet = contact_sheet(draw_people(preset("fair"), seed=1), "age_group", columns=2)
    >>> sheet.shape
    (424, 332, 3)
    """
    if by not in world.people.columns:
        raise UnknownNameError("attribute", by, world.people.columns)
    if columns < 1:
        raise SpecError("a sheet needs columns", expected="1 or more", found=str(columns))
    chosen = _chosen(world, by, columns)
    values = _in_order(by, chosen[by].unique().to_list())
    width, height = _TILE[0] + _GAP, _TILE[1] + _GAP
    size = (len(values) * height + _GAP, columns * width + _LABEL + _GAP, 3)
    sheet = np.full(size, _PAPER, np.uint8)
    place = {value: k for k, value in enumerate(values)}
    for portrait, row in _portraits(world, chosen):
        y, x = place[row[by]] * height + _GAP, row["column"] * width + _LABEL
        sheet[y : y + _TILE[1], x : x + _TILE[0]] = portrait
    return _labelled(sheet, by, values)


def _in_order(by: str, values: list[str]) -> list[str]:
    known = list(BUILT_IN_ATTRIBUTES[by].shares) if by in BUILT_IN_ATTRIBUTES else []
    return [v for v in known if v in values] + sorted(v for v in values if v not in known)


def _chosen(world: PhotoWorld, by: str, columns: int) -> pl.DataFrame:
    """Choose the people to show, and their column."""
    best = {
        "occlusion": "none",
        "lighting": "well_lit",
        "time_of_day": "daytime",
        "mask": "none",
        "weather": "clear",
    }
    usual = {name: word for name, word in best.items() if name in world.people.columns}
    misses = pl.sum_horizontal(
        pl.lit(0), *(pl.col(name) != word for name, word in usual.items() if name != by)
    )
    raised = pl.lit(value=False)
    if "pose" in world.people.columns:
        raised = pl.col("pose").is_in(["arms_raised", "bending"])
    return (
        world.people.with_columns(misses=misses + raised, alone=pl.len().over("image_id"))
        .with_columns(far=(pl.col("face_h") < 44).cast(pl.Int64))
        .sort("misses", "far", "alone", "person_id")
        .unique(["subject_id", by], keep="first", maintain_order=True)
        .with_columns(column=pl.int_range(pl.len()).over(by))
        .filter(pl.col("column") < columns)
    )


def _portraits(
    world: PhotoWorld, chosen: pl.DataFrame
) -> list[tuple[npt.NDArray[np.uint8], dict[str, Any]]]:
    of_image: dict[str, list[dict[str, Any]]] = {}
    for row in chosen.iter_rows(named=True):
        of_image.setdefault(row["image_id"], []).append(row)
    return [
        (_cut(photo.pixels, build_person_figure(row, 1, world.seed)), row)
        for photo in render_photos(world, list(of_image))
        for row in of_image[photo.image_id]
    ]


def _cut(pixels: npt.NDArray[np.uint8], figure: PersonFigure) -> npt.NDArray[np.uint8]:
    """Cut head and chest from a photo, as far as it reaches, at the size of a tile."""
    from PIL import Image

    height, width = pixels.shape[:2]
    wide = min(_HEADS_WIDE * figure.u, float(width), height * _TILE[0] / _TILE[1])
    tall = wide * _TILE[1] / _TILE[0]
    x, y = figure.face.to_pixel(0.0, 0.0)
    left = min(max(0.0, x - wide / 2), width - wide)
    top = min(max(0.0, y - 0.40 * tall), height - tall)
    box = (left, top, left + wide, top + tall)
    tile = Image.fromarray(pixels).resize(_TILE, Image.Resampling.LANCZOS, box=box)
    return np.asarray(tile)


def _labelled(
    sheet: npt.NDArray[np.uint8], by: str, values: Sequence[str]
) -> npt.NDArray[np.uint8]:
    """Write each row's value at its left, over a swatch where it is a Monk tone."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(sheet)
    draw = ImageDraw.Draw(picture)
    for k, value in enumerate(values):
        top = k * (_TILE[1] + _GAP) + _GAP
        if by == "skin_tone" and value in MONK_TONES:
            draw.rectangle((14, top + 44, _LABEL - 14, top + 104), fill=MONK_TONES[value])
            text = f"Monk {value}"
        else:
            text = value.replace("_", " ")
        font = ImageFont.load_default(size=17 if len(text) < 9 else 13)
        draw.text((14, top + 16), text, fill=_INK, font=font)
    return np.asarray(picture)


def _main() -> None:
    from PIL import Image

    from isolux_worlds.photo_world.people import draw_people
    from isolux_worlds.photo_world.settings import preset

    parser = argparse.ArgumentParser(description="Write a contact sheet of a preset world.")
    parser.add_argument("out", type=Path, help="where to write it: .webp, .png or .jpg")
    parser.add_argument("--world", default="fair", help="a preset")
    parser.add_argument("--by", default="skin_tone", help="an attribute: a row for each value")
    parser.add_argument("--columns", type=int, default=9, help="people in a row")
    asked = parser.parse_args()
    sheet = contact_sheet(draw_people(preset(asked.world)), asked.by, asked.columns)
    Image.fromarray(sheet).save(asked.out, quality=88)


if __name__ == "__main__":
    _main()
