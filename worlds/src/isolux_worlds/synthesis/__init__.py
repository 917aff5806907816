"""A synthetic world, written as a dataset, with models' answers to it and the truth.

``settings -> draw_people -> render -> layout's files -> simulated models' files``, into a folder
that stands whole or not at all::

    DIR/world.yaml       the world, which draws the same one again
    DIR/injected.json     the true rate of every group, model by model
    DIR/people.csv       everyone and all that is known of them, under the ids of the data
    DIR/data/            the layout's own files, and SYNTHETIC.txt, which audits look for
    DIR/predictions/     a folder for each model
    DIR/README.txt       the commands that audit it
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from isolux.io.atomic import staged_directory
from isolux.vocabulary.errors import OutputError, UnknownNameError
from isolux_worlds.layouts import LAYOUTS, PaintedPicture
from isolux_worlds.marker import write_marker
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import PRESETS, WorldSettings, preset, read_world
from isolux_worlds.photo_world.world import PhotoWorld
from isolux_worlds.synthesis.answers import people_table, write_occupations, write_ways
from isolux_worlds.synthesis.texts import commands, guide, stamped_world, truth

__all__ = ["Progress", "Synthesis", "synthesize", "world_named"]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is, and of how much."""

_MARK = ("world.yaml", "injected.json")
"""The files that make a directory a written world; one without them is never replaced."""

_OUTPUT_NAMES = {*_MARK, "README.txt", "people.csv", "data", "predictions"}


@dataclass(frozen=True, slots=True)
class Synthesis:
    """A written world."""

    path: Path
    world: PhotoWorld
    commands: tuple[str, ...]
    seconds: float


def world_named(text: str | Path) -> WorldSettings:
    """Return the preset of that name, or the world of that YAML file."""
    if str(text) in PRESETS:
        return preset(str(text))
    if not Path(text).suffix and not Path(text).exists():
        raise UnknownNameError("preset or file of a world", str(text), PRESETS)
    return read_world(text)


def synthesize(
    settings: WorldSettings | str | Path,
    out: str | Path,
    *,
    layout: str = "facet",
    seed: int | None = None,
    pixels: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Synthesis:
    """Write a world, pictures and all, with its simulated models' answers."""
    began = time.monotonic()
    if layout not in LAYOUTS:
        raise UnknownNameError("layout", layout, LAYOUTS)
    layout_writer = LAYOUTS[layout]
    world_settings = settings if isinstance(settings, WorldSettings) else world_named(settings)
    if seed is not None:
        world_settings = world_settings.model_copy(update={"seed": seed})
    target, tell = Path(out).expanduser(), progress or _ignore_progress
    if overwrite:
        _refuse_more(target)
    with staged_directory(target, overwrite=overwrite, marks=_MARK, folder_kind="world") as stage:
        photo_world = draw_people(world_settings)
        (stage / "data").mkdir()
        pictures = _render_photos(photo_world, tell) if pixels else None
        world = layout_writer.write(photo_world, stage / "data", pictures)
        write_marker(stage / "data", "`isolux synthesize`")
        people_table(world, layout_writer).write_csv(stage / "people.csv")
        for model in world_settings.models:
            folder = stage / "predictions" / model.name
            folder.mkdir(parents=True)
            write_occupations(world, stage / "people.csv", model, folder)
        ways = tuple(way for way in layout_writer.ways if pixels or not way.pictures)
        write_ways(world, layout, layout_writer, ways, stage, tell)
        audits = commands(world_settings, layout, layout_writer, ways, stage)
        guide_text = guide(world_settings, layout, layout_writer, audits, pixels=pixels)
        (stage / "README.txt").write_text(guide_text, encoding="utf-8")
        stamped = stamped_world(world_settings, layout, pixels=pixels)
        (stage / "world.yaml").write_text(stamped, encoding="utf-8")
        truths = json.dumps(truth(world_settings, layout_writer), indent=1, ensure_ascii=False)
        (stage / "injected.json").write_text(truths, encoding="utf-8")
    return Synthesis(target, world, audits, time.monotonic() - began)


def _ignore_progress(activity: str, n_done: int, n_total: int) -> None:
    """Take news of progress and say nothing."""


def _render_photos(world: PhotoWorld, tell: Progress) -> Iterator[PaintedPicture]:
    """Paint the photos one by one."""
    from isolux_worlds.drawing import measure_visible, render

    n = world.photos.height
    for n_done, photo in enumerate(render(world), start=1):
        yield PaintedPicture(
            photo.image_id,
            photo.pixels,
            photo.owner,
            photo.part_labels,
            measure_visible(world, photo),
        )
        tell("painting photos", n_done, n)


def _refuse_more(target: Path) -> None:
    """Refuse to replace a directory that holds more than a world: runs in it are not ours."""
    if not all((target / name).is_file() for name in _MARK):
        return
    unexpected_names = sorted(
        path.name for path in target.iterdir() if path.name not in _OUTPUT_NAMES
    )
    if unexpected_names:
        problem = "this directory contains more than a written world, and is left unchanged"
        expected, description = ", ".join(sorted(_OUTPUT_NAMES)), ", ".join(unexpected_names[:8])
        hint = "move the rest away first, or choose another path"
        raise OutputError(
            problem, expected=expected, found=description, where=str(target), hint=hint
        )
