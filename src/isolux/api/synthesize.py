"""``isolux.synthesize``: a synthetic world's files, written by the package isolux-worlds."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from isolux.core.errors import SpecError

_ENTRY_POINT_GROUP = "isolux.commands"
_COMMAND_NAME = "synthesize"


def synthesize(
    world: str | Path,
    *,
    out: str | Path,
    layout: str = "facet",
    seed: int | None = None,
    households: int | None = None,
    pixels: bool = True,
    overwrite: bool = False,
) -> Any:
    """Write synthetic people, models that judged them, and the models' true errors.

    Parameters
    ----------
    world : str or Path
        A preset (`isolux synthesize` lists them), or a YAML file of your own.
    out : str or Path
        The directory to write.
    layout : str
        Whose files: facet, fhibe, coco, bdd100k or dollarstreet.
    seed : int, optional
        The same seed draws the same people; default: the world's.
    households : int, optional
        How many homes, instead of the world's own number.
    pixels : bool
        Paint the pictures; without them there are annotations alone.
    overwrite : bool
        Replace a world that was written there.

    Returns
    -------
    isolux_worlds.synthesis.Synthesis
        ``.world`` (people, photos, answers), ``.seconds``.

    Raises
    ------
    SpecError
        isolux-worlds is not installed; or a setting that it does not take.

    Examples
    --------
    >>> import isolux, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     isolux.synthesize("fair", out=f"{folder}/fair", pixels=False, households=20)
    """
    entry_point_by_name = {point.name: point for point in entry_points(group=_ENTRY_POINT_GROUP)}
    if _COMMAND_NAME not in entry_point_by_name:
        raise missing_package_error("isolux.synthesize", "isolux-worlds", "worlds")
    command = importlib.import_module(entry_point_by_name[_COMMAND_NAME].module)
    return command.write_world(
        world,
        out=Path(out),
        layout=layout,
        seed=seed,
        households=households,
        pixels=pixels,
        overwrite=overwrite,
    )


def missing_package_error(command: str, package: str, folder: str) -> SpecError:
    """Say that something comes with another package of this repository, and how to install it."""
    return SpecError(
        f"`{command}` comes with the package {package}",
        expected=f"{package} installed",
        found="not installed",
        hint=f"`pip install . ./{folder}` in the repository",
    )
