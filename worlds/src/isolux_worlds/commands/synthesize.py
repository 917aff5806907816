"""``isolux synthesize``: a synthetic world whose disparities are known, as a dataset's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolux.cli import command_output

if TYPE_CHECKING:
    from isolux_worlds.synthesis import Progress, Synthesis

__all__ = ["show_progress_on_terminal", "synthesize", "write_world"]


def synthesize(
    world: Annotated[
        str | None,
        typer.Argument(help="a preset, or your own YAML file; without it, the presets are listed"),
    ] = None,
    *,
    out: Annotated[Path | None, typer.Option(help="the directory to write")] = None,
    layout: Annotated[
        str, typer.Option(help="file format: facet, fhibe, coco, bdd100k or dollarstreet")
    ] = "facet",
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="the same seed draws the same people (default: the world's)"),
    ] = None,
    households: Annotated[
        int | None, typer.Option(min=1, help="number of households; default: the world's")
    ] = None,
    pixels: Annotated[
        bool,
        typer.Option("--pixels/--no-pixels", help="paint the pictures; without them: annotations"),
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="replace a world that already exists there")
    ] = False,
) -> None:
    """Write synthetic people, models that judged them, and the models' true errors.

    The files have the format of a real dataset, so that auditing them shows whether an audit finds
    what was injected. Without WORLD, this lists the presets and layouts.
    """
    from isolux.core.errors import SpecError

    if world is None:
        _print_presets_and_layouts()
        return
    if out is None:
        hint = f"isolux synthesize {world} --out {Path(world).stem}"
        raise SpecError("it is not said where to write", expected="--out DIR", hint=hint)
    with show_progress_on_terminal() as tell:
        synthesis = write_world(
            world,
            out=out,
            layout=layout,
            seed=seed,
            households=households,
            pixels=pixels,
            overwrite=overwrite,
            progress=tell,
        )
    photo_world = synthesis.world
    typer.echo(
        f"{photo_world.photos.height:,} photos of {photo_world.subjects.height:,} people"
        f" ({photo_world.people.height:,} people in photos), in {synthesis.seconds:.1f} seconds"
    )
    command_output.report_file("world", out)
    typer.echo(f"how to audit it: {out / 'README.txt'}")


def write_world(
    world: str | Path,
    *,
    out: Path,
    layout: str = "facet",
    seed: int | None = None,
    households: int | None = None,
    pixels: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Synthesis:
    """Write a world by its name or file; ``isolux.synthesize`` calls this."""
    from isolux.io.atomic import refuse_existing
    from isolux_worlds.synthesis import read_world_or_preset
    from isolux_worlds.synthesis import synthesize as write

    if not overwrite:
        refuse_existing(out, overwrite=False)
    settings = read_world_or_preset(world)
    if households is not None:
        settings = settings.model_copy(update={"households": households})
    return write(
        settings,
        out,
        layout=layout,
        seed=seed,
        pixels=pixels,
        overwrite=overwrite,
        progress=progress,
    )


@contextmanager
def show_progress_on_terminal() -> Iterator[Progress]:
    """Show on a terminal what is being done, and how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from isolux.core.progress import report_step

    text = TextColumn("{task.description}")
    console = Console(stderr=True)
    if not console.is_terminal:  # a log: a line now and then, no bars
        yield lambda activity, n_done, n_total: report_step(
            f"{activity}: {n_done:,} of {n_total:,}"
        )
        return
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bars = Bars(*columns, console=console, transient=True)
    numbers: dict[str, TaskID] = {}

    def update_progress(activity: str, n_done: int, n_total: int) -> None:
        if activity not in numbers:
            numbers[activity] = bars.add_task(activity, total=n_total)
        bars.update(numbers[activity], completed=n_done)

    with bars:
        yield update_progress


def _print_presets_and_layouts() -> None:
    from isolux.cli.table_output import print_unbroken_table
    from isolux_worlds.layouts import LAYOUTS
    from isolux_worlds.photo_world.settings import PRESETS, preset

    worlds = [[name, preset(name).about] for name in PRESETS]
    print_unbroken_table("Worlds", ["preset", "what is injected"], worlds)
    typer.echo("")
    rows = [[name, layout.summary] for name, layout in LAYOUTS.items()]
    print_unbroken_table("Layouts", ["layout", "what its files hold"], rows)
    typer.echo("\nisolux synthesize biased --out biased --layout facet")
