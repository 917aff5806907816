"""Find plugins: a plugin's name is its file's name; other packages add theirs by entry point.

Packages that hold plugins are ``datasets``, ``predictions``, ``models``, ``derive``, ``checks``,
``tasks``, ``measures``, ``analyses``, ``papers``, ``cards`` and ``rules``. Listing names imports
nothing, so ``isolux list`` and ``import isolux`` stay quick. A package of another author adds a
task with::

    [project.entry-points."isolux.tasks"]
    gaze = "their_package.gaze"

``CONTRACTS`` says what a plugin of each kind holds: an ``INFO`` of a class and a function. A name
that isolux itself has is its own; two other packages cannot share one.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType
from typing import Any, cast

from isolux.core.errors import IsoluxError, UnknownNameError
from isolux.core.info import (
    AnalysisInfo,
    CardInfo,
    CheckInfo,
    DatasetInfo,
    DerivedInfo,
    FormatInfo,
    MeasureInfo,
    ModelInfo,
    PluginInfo,
    RuleInfo,
    TaskInfo,
)

PLUGIN_KINDS: dict[str, str] = {
    "datasets": "dataset",
    "predictions": "prediction format",
    "models": "model family",
    "derive": "family of derived attributes",
    "checks": "check",
    "tasks": "task",
    "measures": "disparity measure",
    "analyses": "analysis",
    "papers": "paper",
    "cards": "kind of card",
    "rules": "rule of intake",
}

CONTRACTS: dict[str, tuple[type[PluginInfo], str | None]] = {
    "datasets": (DatasetInfo, "load"),
    "predictions": (FormatInfo, "read"),
    "models": (ModelInfo, "load"),
    "derive": (DerivedInfo, "derive"),
    "checks": (CheckInfo, "check"),
    "tasks": (TaskInfo, "score"),
    "measures": (MeasureInfo, "measure"),
    "analyses": (AnalysisInfo, "explain"),
    "papers": (PluginInfo, None),
    "cards": (CardInfo, "card"),
    "rules": (RuleInfo, "refuse"),
}
"""The class of each package's ``INFO``, and the function that its plugins hold."""

_PACKAGES = {"measures": "isolux.disparity.measures"}
"""Where the plugins of a package lie that is not at the root; all ``rules`` are other packages'."""


def _to_package_name(plugin_kind: str) -> str:
    return _PACKAGES.get(plugin_kind, f"isolux.{plugin_kind}")


@cache
def _list_builtin_plugins(plugin_kind: str) -> tuple[str, ...]:
    spec = importlib.util.find_spec(_to_package_name(plugin_kind))
    if spec is None or not spec.submodule_search_locations:
        return ()
    modules = pkgutil.iter_modules(list(spec.submodule_search_locations))
    return tuple(sorted(m.name for m in modules if not m.name.startswith("_")))


def list_entry_points(group: str) -> EntryPoints:
    """List what packages that are installed add to one group; all groups are read at once."""
    return cast("EntryPoints", _read_all_entry_points(tuple(sys.path)).select(group=group))


@cache
def _read_all_entry_points(
    _path: tuple[str, ...],
) -> Any:  # Python 3.11 and 3.12 give it different names
    """Look once through all packages that are installed, as long as the path stays."""
    return metadata.entry_points()


def _list_external_entry_points(plugin_kind: str) -> dict[str, list[EntryPoint]]:
    points_by_name: dict[str, list[EntryPoint]] = {}
    for point in _select_entry_points(f"isolux.{plugin_kind}", list_entry_points, tuple(sys.path)):
        points_by_name.setdefault(point.name, []).append(point)
    return points_by_name


@cache
def _select_entry_points(
    group: str, read: Callable[..., Iterable[EntryPoint]], _path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """Ask once for a group, as long as the path stays."""
    return tuple(read(group=group))


def names(plugin_kind: str) -> list[str]:
    """List the plugins of one kind, without importing them.

    Examples
    --------
    >>> "classification" in names("tasks")
    True
    """
    if plugin_kind not in PLUGIN_KINDS:
        raise UnknownNameError("kind of plugin", plugin_kind, PLUGIN_KINDS)
    return sorted({*_list_builtin_plugins(plugin_kind), *_list_external_entry_points(plugin_kind)})


def load(plugin_kind: str, name: str) -> ModuleType:
    """Import one plugin: its own file first, another package's entry point second."""
    if plugin_kind not in PLUGIN_KINDS:
        raise UnknownNameError("kind of plugin", plugin_kind, PLUGIN_KINDS)
    if name in _list_builtin_plugins(plugin_kind):
        return importlib.import_module(f"{_to_package_name(plugin_kind)}.{name}")
    points = _list_external_entry_points(plugin_kind).get(name)
    if points is None:
        raise UnknownNameError(PLUGIN_KINDS[plugin_kind], name, names(plugin_kind))
    return _import_external_plugin(plugin_kind, name, points)


def _import_external_plugin(
    plugin_kind: str, name: str, entry_points: list[EntryPoint]
) -> ModuleType:
    """Import another package's plugin, and refuse what is none."""
    modules = sorted({point.value for point in entry_points})
    if len(modules) > 1:
        raise IsoluxError(
            f"two packages name a {PLUGIN_KINDS[plugin_kind]} {name!r}",
            expected="one",
            found=" and ".join(map(repr, modules)),
            hint="uninstall one of the two packages",
        )
    try:
        module = entry_points[0].load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise IsoluxError(
            f"the {PLUGIN_KINDS[plugin_kind]} {name!r} of another package cannot be imported",
            found=f"{type(error).__name__}: {error}",
            where=modules[0],
        ) from error
    info_class, function = CONTRACTS[plugin_kind]
    missing_requirements = [
        requirement
        for requirement, is_met in (
            ("a module", isinstance(module, ModuleType)),
            (f"INFO: {info_class.__name__}", isinstance(getattr(module, "INFO", None), info_class)),
            (f"{function}(…)", function is None or callable(getattr(module, function, None))),
        )
        if not is_met
    ]
    if missing_requirements:
        raise IsoluxError(
            f"the {PLUGIN_KINDS[plugin_kind]} {name!r} of another package is not a plugin",
            expected="an entry point that names a module with INFO"
            + (f" and {function}" if function else ""),
            found="without " + ", ".join(missing_requirements),
            where=modules[0],
        )
    return cast("ModuleType", module)


def load_info(plugin_kind: str, name: str) -> PluginInfo:
    """Return a plugin's INFO."""
    return cast("PluginInfo", load(plugin_kind, name).INFO)


def task_info(task: str) -> TaskInfo:
    """Return a task's INFO, with its metrics."""
    plugin_info = load_info("tasks", task)
    if not isinstance(plugin_info, TaskInfo):
        raise IsoluxError(f"the task {task!r} declares no metrics", expected="TaskInfo as INFO")
    return plugin_info


def load_measure_info(name: str) -> MeasureInfo:
    """Return a disparity measure's INFO: its words, unit and direction."""
    plugin_info = load_info("measures", name)
    if not isinstance(plugin_info, MeasureInfo):
        raise IsoluxError(f"the measure {name!r} has no MeasureInfo as INFO")
    return plugin_info


def load_analysis_info(name: str) -> AnalysisInfo:
    """Return an analysis's INFO: what it needs, and whether it makes claims."""
    plugin_info = load_info("analyses", name)
    if not isinstance(plugin_info, AnalysisInfo):
        raise IsoluxError(f"the analysis {name!r} has no AnalysisInfo as INFO")
    return plugin_info


def load_dataset_info(name: str) -> DatasetInfo:
    """Return a dataset's INFO: licence, source of its labels, terms."""
    plugin_info = load_info("datasets", name)
    if not isinstance(plugin_info, DatasetInfo):
        raise IsoluxError(f"the dataset {name!r} has no DatasetInfo as INFO")
    return plugin_info
