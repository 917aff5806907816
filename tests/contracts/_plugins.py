"""Every plugin that the registry finds, as a list that tests run over."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import pytest

from isolux.vocabulary import registry
from isolux.vocabulary.info import Info


@dataclass(frozen=True)
class Room:
    """What the plugins of a room declare, the function they hold, and what it takes by place."""

    info: type[Info]
    function: str | None
    by_place: int


ROOMS = {
    room: Room(info, function, {"tasks": 2, "papers": 0, "cards": 2}.get(room, 1))
    for room, (info, function) in registry.CONTRACTS.items()
}


@dataclass(frozen=True)
class Plugin:
    """One plugin file."""

    room: str
    name: str

    @property
    def module(self) -> ModuleType:
        return registry.load(self.room, self.name)

    def __str__(self) -> str:
        return f"{self.room}/{self.name}"


PLUGINS = [Plugin(room, name) for room in registry.ROOMS for name in registry.names(room)]


def of_room(room: str) -> pytest.MarkDecorator:
    """Run a test once for each plugin of a room, as ``plugin``."""
    return pytest.mark.parametrize("plugin", [p for p in PLUGINS if p.room == room], ids=str)
