"""Every plugin that the registry finds, as a list that tests run over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import ModuleType
from typing import Never

import pytest

from isolux.core import registry
from isolux.core.info import PluginInfo


@dataclass(frozen=True)
class Package:
    """What the plugins of a package declare, the function they hold, and what it takes by place."""

    info: type[PluginInfo]
    function: str | None
    by_place: int


PACKAGES = {
    package: Package(info, function, {"tasks": 2, "papers": 0, "cards": 2}.get(package, 1))
    for package, (info, function) in registry.CONTRACTS.items()
}


@dataclass(frozen=True)
class Plugin:
    """One plugin file."""

    package: str
    name: str

    @property
    def module(self) -> ModuleType:
        return registry.load(self.package, self.name)

    def __str__(self) -> str:
        return f"{self.package}/{self.name}"


MENDED_BY = {
    "datasets": {
        "file": "datasets/_files.read_file (Inputs().read lists the file as well)",
        "json": "io/json_values.decode",
        "path": "datasets/_inner_paths.refuse_outside",
        "cell": "io/refusals.refuse_cells",
    },
    "predictions": {
        "file": "io/frames.refuse_unless_file",
        "json": "io/json_values.decode, whose form it is",
        "path": "io/paths.inside",
        "cell": "core/tables.check",
    },
}
"""What a reader that fails a contract is to call, by its package."""


def mend(plugin: Plugin, problem: str, helper: str) -> Never:
    """Fail with a sentence that names the helper by which the plugin passes."""
    pytest.fail(f"{plugin} {problem}: use `{MENDED_BY[plugin.package][helper]}`", pytrace=False)


def mend_error(plugin: Plugin, error: BaseException, file: str) -> Never:
    """Fail for an error that is not isolux's own, with the helper that raises one in its place."""
    if not isinstance(error, Exception):
        mend(plugin, f"waits for {file}, which is no plain file or is endless", "file")
    if isinstance(error, RecursionError | json.JSONDecodeError):
        mend(plugin, f"does not refuse the JSON of {file}: {type(error).__name__}", "json")
    helper = "file" if isinstance(error, OSError | UnicodeError) else "cell"
    mend(plugin, f"raises {type(error).__name__} ({error}) for {file}", helper)


PLUGINS = [
    Plugin(package, name) for package in registry.PLUGIN_KINDS for name in registry.names(package)
]


def of_package(package: str) -> pytest.MarkDecorator:
    """Run a test once for each plugin of a package, as ``plugin``."""
    return pytest.mark.parametrize("plugin", [p for p in PLUGINS if p.package == package], ids=str)
