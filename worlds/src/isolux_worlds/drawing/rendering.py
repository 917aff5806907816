"""Photos of a world, pixel by pixel, with the pictures that say whose each pixel is.

``PhotoWorld`` (tables) → ``render_photos`` → ``RenderedPhoto``, one photo at a time. A photo is
painted from back to front: the scene, haze, then everyone by their layer, each with what stands
before them, then rain or snow; at last the light of the place and the sensor (``light.py``). Each
photo has random streams of its own, named by the world's seed, the photo and the person: any part
of a world renders the same, alone or among others, in one thread or in several.
"""

from __future__ import annotations

import io
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.drawing.anatomy import (
    PersonFigure,
    build_person_figure,
    read_attribute_values_or_defaults,
)
from isolux_worlds.drawing.backgrounds import paint_background
from isolux_worlds.drawing.canvas import OCCLUDER, Canvas, Paint
from isolux_worlds.drawing.light import blur_in_place, develop_photo, draw_random_light
from isolux_worlds.drawing.occluders import paint_occluder
from isolux_worlds.drawing.person import paint_person
from isolux_worlds.drawing.setting import (
    BackgroundScene,
    compute_haze_colour,
    compute_haze_share,
    paint_fog_and_puddles,
    paint_rain_or_snow,
)
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["JPEG_QUALITY", "RenderedPhoto", "encode_image", "render_photos"]

_MAX_PEOPLE = OCCLUDER - 1
_BATCH_SIZE = 64
"""Photos whose people are taken from the table at once."""


@dataclass(frozen=True, slots=True)
class RenderedPhoto:
    """A photo and its label pictures.

    ``pixels``: [h, w, 3] uint8; ``owner``, ``part_labels``: [h, w] uint8; ``body_px``: [people]
    int.
    """

    image_id: str
    pixels: npt.NDArray[np.uint8]
    owner: npt.NDArray[np.uint8]
    part_labels: npt.NDArray[np.uint8]
    body_px: npt.NDArray[np.int64]


def render_photos(
    world: PhotoWorld, image_ids: Iterable[str] | None = None, *, workers: int | None = None
) -> Iterator[RenderedPhoto]:
    """Paint photos of a world, one after another."""
    photos = {row["image_id"]: row for row in world.photos.iter_rows(named=True)}
    photo_ids = list(photos) if image_ids is None else list(image_ids)
    for name in photo_ids:
        if name not in photos:
            raise UnknownNameError("photo", name, list(photos))
    rows = _list_person_rows_by_image(world.people, photo_ids)
    threads = min(4, os.cpu_count() or 1) if workers is None else workers
    return _render_in_order(
        _iterate_render_jobs(world, [photos[name] for name in photo_ids], rows), threads
    )


_Row = Mapping[str, Any]
_Job = tuple[_Row, list[_Row], int]


def _iterate_render_jobs(
    world: PhotoWorld, photos: list[dict[str, Any]], rows: Mapping[str, list[int]]
) -> Iterator[_Job]:
    """Photos with their people, taken from the table some at a time."""
    for first in range(0, len(photos), _BATCH_SIZE):
        batch = photos[first : first + _BATCH_SIZE]
        people_rows = [rows.get(photo["image_id"], []) for photo in batch]
        people = iter(
            world.people[[k for photo_rows in people_rows for k in photo_rows]].to_dicts()
        )
        for photo, photo_rows in zip(batch, people_rows, strict=True):
            yield photo, [next(people) for _ in photo_rows], world.seed


def _list_person_rows_by_image(people: pl.DataFrame, photo_ids: list[str]) -> dict[str, list[int]]:
    rows = (
        people.select("image_id").with_row_index("row").filter(pl.col("image_id").is_in(photo_ids))
    )
    return dict(rows.group_by("image_id", maintain_order=True).agg("row").iter_rows())


def _render_in_order(jobs: Iterator[_Job], workers: int) -> Iterator[RenderedPhoto]:
    waiting: deque[Future[RenderedPhoto]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for job in jobs:
            waiting.append(pool.submit(_render_photo, *job))
            if len(waiting) > 2 * workers:  # no more photos in memory than that
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _render_photo(photo: _Row, people: list[_Row], seed: int) -> RenderedPhoto:
    name = str(photo["image_id"])
    if len(people) > _MAX_PEOPLE:
        problem, expected = "too many people in one photo to paint", f"at most {_MAX_PEOPLE}"
        raise SpecError(problem, expected=expected, found=str(len(people)), where=f"photo {name}")
    words = read_attribute_values_or_defaults(photo)
    light = draw_random_light(
        words["lighting"], words["time_of_day"], build_named_rng(seed, "light", name)
    )
    canvas = Canvas(int(photo["width"]), int(photo["height"]), light=light.direction)
    rng = build_named_rng(seed, "background", name)
    setting = BackgroundScene(canvas, words["scene"], words["time_of_day"], words["weather"], rng)
    canvas.haze_colour = compute_haze_colour(setting)
    paint_background(setting)
    paint_fog_and_puddles(setting)
    canvas.paint()
    blur_in_place(canvas.picture, max(1, canvas.height // 300))
    for k in sorted(range(len(people)), key=lambda k: (people[k]["layer"], k)):
        figure = build_person_figure({**photo, **people[k]}, k + 1, seed)
        canvas.haze = compute_haze_share(setting, 7.6 * figure.u / setting.height)
        _paint_ground_shadow(setting, figure)
        paint_person(canvas, figure)
        paint_occluder(setting, figure)
    canvas.haze = 0.0
    paint_rain_or_snow(setting)
    canvas.paint()
    pixels = develop_photo(canvas.picture, light, zlib.crc32(f"{seed}/{name}".encode()))
    return RenderedPhoto(
        name, pixels, canvas.owner, canvas.part_labels, canvas.body_px[1 : len(people) + 1]
    )


def _paint_ground_shadow(setting: BackgroundScene, figure: PersonFigure) -> None:
    """Paint a soft shadow at the feet, away from the light; long when the sun is low."""
    u, canvas = figure.u, setting.canvas
    x, y = figure.joint_midpoint("heel")
    reach = {"daytime": 0.9, "dawn_dusk": 1.9, "night": 0.8}[setting.time_of_day]
    strength = 0.34 if setting.weather == "clear" or setting.indoors else 0.2
    shadow_sign = -1.0 if canvas.light[0] > 0 else 1.0
    spread = abs(figure.joints["left_heel"][0] - figure.joints["right_heel"][0]) / 2
    shade = Paint((12.0, 14.0, 22.0), alpha=strength, soft=0.35 * u)
    canvas.ellipse(
        (x + shadow_sign * 0.6 * reach * u, y + 0.12 * u), spread + reach * u, 0.26 * u, shade
    )
    for body_side in ("right", "left"):
        foot = figure.joints[f"{body_side}_heel"]
        canvas.ellipse((foot[0], foot[1] + 0.14 * u), 0.36 * u, 0.12 * u, shade)


JPEG_QUALITY = 90
"""Of written photos, as libjpeg counts; colours are kept at full width (4:4:4), so that skin tones
at edges stay what they are."""


def encode_image(
    pixels: npt.NDArray[np.uint8], image_format: Literal["jpg", "png"] = "jpg"
) -> bytes:
    """Return a picture's bytes: a PNG without loss, for speed rather than size, or a JPEG.

    ``pixels``: [h, w, 3] or, as PNG alone, [h, w] uint8.
    """
    if image_format == "png":
        from PIL import Image

        stream = io.BytesIO()
        quick = {"compress_level": 1, "compress_type": zlib.Z_RLE}
        Image.fromarray(pixels).save(stream, format="PNG", **quick)
        return stream.getvalue()
    import simplejpeg

    contiguous = np.ascontiguousarray(pixels)
    return bytes(simplejpeg.encode_jpeg(contiguous, quality=JPEG_QUALITY, colorsubsampling="444"))
