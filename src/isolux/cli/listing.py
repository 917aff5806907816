"""``isolux list``: what there is to load, read, score and explain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from isolux.cli.streams import say

if TYPE_CHECKING:
    from isolux.vocabulary.info import Info

__all__ = ["FUNCTIONS", "KINDS", "listing", "room_of"]


KINDS = (
    "attributes", "datasets", "formats", "tasks", "measures", "models", "analyses", "checks",
    "papers", "cards", "rules",
)  # fmt: skip
"""What can be listed."""

_ROOM = {"attributes": "derive", "formats": "predictions", "analyses": "analyses"}
FUNCTIONS = {
    "datasets": ("load", "--data-option"),
    "predictions": ("read", "--prediction-option"),
    "tasks": ("score", "--option"),
    "analyses": ("explain", "--analysis-option"),
    "checks": ("check", "--check-option"),
    "models": ("load", "--model-option"),
    "rules": ("refuse", "in project.yaml, rules:"),
}
_SHARED = ("model", "metrics", "pictures")  # have flags of their own


def listing(
    kind: Annotated[str, typer.Argument(help="what to list")],
    name: Annotated[
        str | None, typer.Argument(help="one of them: its settings, metrics or protocols")
    ] = None,
) -> None:
    """List datasets, formats, tasks, measures, models, analyses, checks, papers, cards, rules.

    With NAME, show the settings, metrics, protocols, attributes or facts of one of them.
    """
    from isolux.cli.screen import show_table
    from isolux.vocabulary import registry
    from isolux.vocabulary.errors import UnknownNameError

    if kind not in KINDS:
        raise UnknownNameError("list", kind, KINDS, where="isolux list")
    room = room_of(kind)
    if name is not None:
        _show_one(room, name)
        return
    names = registry.names(room)
    if not names:
        say(f"no {kind} yet: another package can add them (docs/architecture.md)")
        return
    infos = [registry.info(room, one) for one in names]
    if kind == "models":
        _show_models(dict(zip(names, infos, strict=True)))
        return
    rows = [[one, i.summary, i.licence] for one, i in zip(names, infos, strict=True)]
    show_table(kind, ["name", "what it is", "licence"], rows)
    if kind in ("tasks", "papers", "attributes"):
        say()
        for one in names:
            _show_parts(room, one)
    else:
        say("", f"`isolux list {kind} NAME` shows the settings of one of them.")


def room_of(kind: str) -> str:
    """Name the room of a kind that can be listed."""
    return _ROOM.get(kind, kind)


def _show_models(infos: Mapping[str, Info]) -> None:
    """Print what each family is, answers and needs."""
    from isolux.cli.screen import show_table
    from isolux.vocabulary.info import ModelInfo

    rows = [
        [f"{name}:", info.summary, info.predicts, info.needs]
        for name, info in infos.items()
        if isinstance(info, ModelInfo)
    ]
    show_table("models", ["--model", "what it is", "answers", "needs"], rows)
    say("", "`isolux list models NAME` shows the settings of one of them.")


def _show_one(room: str, name: str) -> None:
    """Print what one plugin is, and everything that can be asked of it."""
    from isolux.cli.screen import show_table
    from isolux.vocabulary import registry
    from isolux.vocabulary.plugin_options import named_options

    info = registry.info(room, name)
    say(f"{name}: {info.summary}")
    for reference in info.references:
        say(f"  {reference.citation} {reference.place}".rstrip())
    for assumption in info.assumptions:
        say(f"  assumes: {assumption}")
    say()
    _show_parts(room, name)
    if room in FUNCTIONS:
        function, flag = FUNCTIONS[room]
        found = named_options(getattr(registry.load(room, name), function))
        rows = [[key, _shown(value)] for key, value in found.items() if key not in _SHARED]
        if rows:
            show_table(f"settings of {name}: {flag} NAME=VALUE", ["name", "default"], rows)


def _shown(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple | list):
        return ",".join(str(part) for part in value)
    return str(value)


def _show_parts(room: str, name: str) -> None:
    """Print a task's metrics, a paper's protocols, a family's attributes, a card's facts."""
    from isolux.cli.screen import show_table
    from isolux.vocabulary import registry
    from isolux.vocabulary.info import CardInfo, DerivedInfo, TaskInfo

    info = registry.info(room, name)
    if isinstance(info, TaskInfo):
        better = {"higher": "higher", "lower": "lower", "none": "alike"}
        metrics = [[m.name, m.definition, better[m.direction]] for m in info.metrics]
        show_table(f"metrics of {name}", ["metric", "definition", "better"], metrics)
    if isinstance(info, DerivedInfo):
        rows = [list(row) for row in info.attributes]
        show_table(f"attributes of {name}", ["attribute", "what it is"], rows)
    if isinstance(info, CardInfo):
        facts = [[ask.key, ask.question] for ask in info.asks]
        show_table(f"facts of {name}: --facts FILE", ["key", "what it is"], facts)
    for protocol, settings in getattr(registry.load(room, name), "PROTOCOLS", {}).items():
        rows = [[key.replace("_", "-"), _shown(value)] for key, value in settings.items()]
        show_table(f"--protocol {name}:{protocol}", ["setting", "value"], rows)
