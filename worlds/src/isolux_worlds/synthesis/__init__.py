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

from isolux.core.errors import OutputError, UnknownNameError
from isolux.io.atomic import staged_directory
from isolux_worlds.layouts import LAYOUTS, PaintedPicture
from isolux_worlds.marker import write_folder_marker
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import PRESETS, WorldSettings, preset, read_world
from isolux_worlds.photo_world.world import PhotoWorld
from isolux_worlds.synthesis.answers import (
    build_people_table,
    write_occupation_predictions,
    write_predictions_of_models,
)
from isolux_worlds.synthesis.texts import (
    build_audit_commands,
    build_injected_truth,
    build_protocol_commands,
    build_readme_text,
    format_world_yaml_with_version,
)

__all__ = ["Progress", "Synthesis", "read_world_or_preset", "synthesize"]

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
    protocol_commands: tuple[str, ...]
    seconds: float


def read_world_or_preset(text: str | Path) -> WorldSettings:
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
    world_settings = (
        settings if isinstance(settings, WorldSettings) else read_world_or_preset(settings)
    )
    if seed is not None:
        world_settings = world_settings.model_copy(update={"seed": seed})
    target, tell = Path(out).expanduser(), progress or _ignore_progress
    if overwrite:
        _check_folder_is_replaceable(target)
    with staged_directory(target, overwrite=overwrite, marks=_MARK, folder_kind="world") as stage:
        photo_world = draw_people(world_settings)
        (stage / "data").mkdir()
        pictures = _render_photos(photo_world, tell) if pixels else None
        world = layout_writer.write(photo_world, stage / "data", pictures)
        write_folder_marker(stage / "data", "`isolux synthesize`")
        build_people_table(world, layout_writer).write_csv(stage / "people.csv")
        for model in world_settings.models:
            folder = stage / "predictions" / model.name
            folder.mkdir(parents=True)
            write_occupation_predictions(world, stage / "people.csv", model, folder)
        ways, protocols = (
            tuple(way for way in listed_ways if pixels or not way.pictures)
            for listed_ways in (layout_writer.ways, layout_writer.protocols)
        )
        all_ways = (*ways, *protocols)
        write_predictions_of_models(world, layout, layout_writer, all_ways, stage, tell)
        audits = build_audit_commands(world_settings, layout, layout_writer, ways, stage)
        protocol_commands = build_protocol_commands(world_settings, layout, protocols, stage)
        guide_text = build_readme_text(
            world_settings, layout, layout_writer, audits, protocol_commands, pixels=pixels
        )
        (stage / "README.txt").write_text(guide_text, encoding="utf-8")
        stamped = format_world_yaml_with_version(world_settings, layout, pixels=pixels)
        (stage / "world.yaml").write_text(stamped, encoding="utf-8")
        truths = json.dumps(
            build_injected_truth(world_settings, layout_writer), indent=1, ensure_ascii=False
        )
        (stage / "injected.json").write_text(truths, encoding="utf-8")
    return Synthesis(target, world, audits, protocol_commands, time.monotonic() - began)


def _ignore_progress(activity: str, n_done: int, n_total: int) -> None:
    """Take news of progress and say nothing."""


def _render_photos(world: PhotoWorld, tell: Progress) -> Iterator[PaintedPicture]:
    """Paint the photos one by one."""
    from isolux_worlds.drawing import measure_visible_people, render_photos

    n = world.photos.height
    for n_done, photo in enumerate(render_photos(world), start=1):
        yield PaintedPicture(
            photo.image_id,
            photo.pixels,
            photo.owner,
            photo.part_labels,
            measure_visible_people(world, photo),
        )
        tell("painting photos", n_done, n)


def _check_folder_is_replaceable(target: Path) -> None:
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
