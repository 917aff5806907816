"""Find plugins: a plugin's name is its file's name; other packages add theirs by entry point.

Rooms that hold plugins are ``datasets``, ``predictions``, ``models``, ``derive``, ``checks``,
``tasks``, ``analyses`` and ``papers``. Listing names imports nothing, so ``isolux list`` and
``import isolux`` stay quick. A package of another author adds a task with::

    [project.entry-points."isolux.tasks"]
    gaze = "their_package.gaze"
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import cast

from isolux.vocabulary.errors import IsoluxError, UnknownNameError
from isolux.vocabulary.info import DatasetInfo, Info, TaskInfo

__all__ = ["ROOMS", "info", "load", "names", "task_info"]

ROOMS: dict[str, str] = {
    "datasets": "dataset",
    "predictions": "prediction format",
    "models": "model family",
    "derive": "family of derived attributes",
    "checks": "check",
    "tasks": "task",
    "analyses": "analysis",
    "papers": "paper",
}


@cache
def _own(room: str) -> tuple[str, ...]:
    spec = importlib.util.find_spec(f"isolux.{room}")
    if spec is None or not spec.submodule_search_locations:
        return ()
    found = pkgutil.iter_modules(list(spec.submodule_search_locations))
    return tuple(sorted(m.name for m in found if not m.name.startswith("_")))


def _foreign(room: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"isolux.{room}")}


def names(room: str) -> list[str]:
    """List the plugins of one room, without importing them.

    Examples
    --------
    >>> "classification" in names("tasks")
    True
    """
    if room not in ROOMS:
        raise UnknownNameError("room", room, ROOMS)
    return sorted({*_own(room), *_foreign(room)})


def load(room: str, name: str) -> ModuleType:
    """Import one plugin: its own file first, another package's entry point second.

    Raises
    ------
    UnknownNameError
        With the names that exist and the nearest of them.
    """
    if room not in ROOMS:
        raise UnknownNameError("room", room, ROOMS)
    if name in _own(room):
        return importlib.import_module(f"isolux.{room}.{name}")
    point = _foreign(room).get(name)
    if point is None:
        raise UnknownNameError(ROOMS[room], name, names(room))
    module = point.load()
    if not isinstance(module, ModuleType) or not hasattr(module, "INFO"):
        raise IsoluxError(
            f"the {ROOMS[room]} {name!r} of {point.value!r} is not a plugin",
            expected="an entry point that names a module with INFO",
            found=type(module).__name__,
        )
    return module


def info(room: str, name: str) -> Info:
    """Return a plugin's INFO."""
    return cast("Info", load(room, name).INFO)


def task_info(name: str) -> TaskInfo:
    """Return a task's INFO, with its metrics."""
    found = info("tasks", name)
    if not isinstance(found, TaskInfo):
        raise IsoluxError(f"the task {name!r} declares no metrics", expected="TaskInfo as INFO")
    return found


def dataset_info(name: str) -> DatasetInfo:
    """Return a dataset's INFO: licence, judgement, terms."""
    found = info("datasets", name)
    if not isinstance(found, DatasetInfo):
        raise IsoluxError(f"the dataset {name!r} has no DatasetInfo as INFO")
    return found
