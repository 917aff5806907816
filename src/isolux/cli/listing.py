"""``isolux list``: what there is to load, read, score and explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from isolux.cli import document
from isolux.cli.streams import say, screen
from isolux.vocabulary import registry

if TYPE_CHECKING:
    from isolux.vocabulary.info import Info
    from isolux.vocabulary.plugin_options import Option

KINDS = {
    "attributes": "Attributes computed from boxes, pixels and captions: --derive.",
    "datasets": "What isolux audit NAME:PATH reads.",
    "formats": "Files of a model's output, recognised as a rule.",
    "tasks": "What a model is judged at, and by which metrics: --task.",
    "measures": "One number for how far the groups of an attribute lie apart.",
    "models": "Families of models that --model FAMILY:WHAT runs.",
    "analyses": "What isolux explain asks of a run: why do groups differ?",
    "checks": "What isolux check looks for before anything is measured.",
    "papers": "Published studies whose settings --protocol takes over.",
    "cards": "Papers for others that isolux card fills from a run.",
    "rules": "What photos and people must keep to in isolux curate.",
}
"""What can be listed, and what it is."""

_ROOM = {"attributes": "derive", "formats": "predictions", "analyses": "analyses"}
FLAGS = {
    "datasets": "--data-option",
    "predictions": "--prediction-option",
    "tasks": "--option",
    "analyses": "--analysis-option",
    "checks": "--check-option",
    "models": "--model-option",
    "measures": "by flags of isolux audit",
    "rules": "in project.yaml, rules:",
}
"""How the settings of a room's plugins are given."""
_SHARED = ("model", "metrics", "pictures", "overall")  # have flags of their own, or come by place
_BETTER = {"higher": "higher is better", "lower": "lower is better", "none": "no better direction"}
_TOLD = ("title", "summary", "references", "assumptions", "metrics", "attributes", "asks", "worse")
"""Fields of an ``INFO`` that are not printed as they are."""


def _complete_kind(incomplete: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def _complete_name(context: typer.Context, incomplete: str) -> list[str]:
    kind = context.params.get("kind")
    names = registry.names(room_of(kind)) if kind in KINDS else ()
    return [name for name in names if name.startswith(incomplete)]


def listing(
    kind: Annotated[
        str | None,
        typer.Argument(help="what to list; not given: the kinds", autocompletion=_complete_kind),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            help="one of them: its settings, metrics or protocols", autocompletion=_complete_name
        ),
    ] = None,
) -> None:
    """List what there is: tasks, datasets, models and eight other kinds.

    Without KIND, the kinds. With KIND, one line for each of that kind. With NAME, everything about
    one of them: every setting with its type, default and meaning, metrics, protocols, facts.
    """
    from isolux.vocabulary.errors import UnknownNameError

    if kind is None:
        rows = [
            [one, f"{len(registry.names(room_of(one))):,}", text] for one, text in KINDS.items()
        ]
        _show_lines("kinds", ["kind", "how many", "what they are"], rows)
        say("", "`isolux list KIND` names them; `isolux list KIND NAME` prints one of them whole.")
        return
    if kind not in KINDS:
        raise UnknownNameError("list", kind, KINDS, where="isolux list")
    room = room_of(kind)
    if name is not None:
        _show_one(room, name)
        return
    from isolux.verbs.synthesize import not_installed

    names = registry.names(room)
    if not names:
        raise not_installed(f"isolux list {kind}", "isolux-curate", "packages/curate")
    _show_lines(kind, ["name", "what it is"], [[one, _summary(room, one)] for one in names])
    say("", f"`isolux list {kind} NAME` prints one of them whole.")


def room_of(kind: str) -> str:
    """Name the room of a kind that can be listed."""
    return _ROOM.get(kind, kind)


def _summary(room: str, name: str) -> str:
    """Say in a line what a plugin is; the licence, output or protocols that it is chosen by."""
    from isolux.vocabulary.info import DatasetInfo, ModelInfo

    info = registry.info(room, name)
    if isinstance(info, DatasetInfo):
        return f"{info.title} ({info.licence})"
    if isinstance(info, ModelInfo):
        return f"{info.title}: {info.predicts}" + (f"; needs {info.needs}" if info.needs else "")
    if room == "papers":
        return f"{info.title}: " + ", ".join(getattr(registry.load(room, name), "PROTOCOLS", {}))
    return info.summary


def _show_lines(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a line for each row: what is too long for the screen ends with an ellipsis."""
    if document.giving():
        document.give_words(title, columns, rows)
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns) - 1)]
    for *first, last in rows:
        start = "  ".join(text.ljust(width) for text, width in zip(first, widths, strict=True))
        _print(f"{start}  {last}", is_cut=True)


def _show_one(room: str, name: str) -> None:
    """Print what one plugin is, and everything that can be asked of it."""
    from isolux.vocabulary.plugin_options import described_options

    info = registry.info(room, name)
    say(f"{name}: {info.title}")
    _print(info.summary, indent=2)
    for reference in info.references:
        _print(f"{reference.citation} {reference.place}".rstrip(), indent=2)
    for label, text in (*_facts(info), *(("assumes", one) for one in info.assumptions)):
        _print(f"{label}: {text}", indent=2)
    _show_parts(room, name)
    function = registry.CONTRACTS[room][1]
    if room not in FLAGS or function is None:
        return
    options = described_options(getattr(registry.load(room, name), function))
    rows = [
        [option.name, _type_and_default(option), option.text]
        for option in options.values()
        if option.name not in _SHARED
    ]
    columns = ["name", "type and default", "meaning"]
    given = f"{FLAGS[room]} NAME=VALUE" if FLAGS[room].startswith("--") else FLAGS[room]
    given = f"--NAME VALUE with --task {name}, or {given}" if room == "tasks" else given
    _show_entries(f"settings of {name}: {given}", columns, rows)


def _type_and_default(option: Option) -> str:
    """Say what a setting takes and its default, which its text may say better."""
    from isolux.vocabulary.words import wanted

    if option.default is not None:
        return f"{wanted(option.kind)}; default: {_shown(option.default)}"
    is_told = "default" in option.text.lower() or "not given" in option.text.lower()
    return wanted(option.kind).removesuffix(", or none") + ("" if is_told else "; default: not set")


def _facts(info: Info) -> list[tuple[str, str]]:
    """List what an ``INFO`` says in single words and sentences."""
    values = {one.name: getattr(info, one.name) for one in fields(info) if one.name not in _TOLD}
    return [
        (name.replace("_", " "), _shown(value))
        for name, value in values.items()
        if value not in (None, "", ()) and not isinstance(value, Mapping)
    ]


def _shown(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(": ".join(p) if isinstance(p, tuple) else str(p) for p in value)
    return str(value)


def _show_parts(room: str, name: str) -> None:
    """Print a task's metrics, a paper's protocols, a family's attributes, a card's facts."""
    from isolux.vocabulary.info import CardInfo, DerivedInfo, TaskInfo

    info = registry.info(room, name)
    if isinstance(info, TaskInfo):
        rows = [[m.name, f"{m.unit}; {_BETTER[m.direction]}", m.definition] for m in info.metrics]
        _show_entries(f"metrics of {name}", ["metric", "unit and direction", "definition"], rows)
    if isinstance(info, DerivedInfo):
        rows = [list(row) for row in info.attributes]
        _show_entries(f"attributes of {name}", ["attribute", "what it is"], rows)
    if isinstance(info, CardInfo):
        rows = [[ask.key, ask.question] for ask in info.asks]
        _show_entries(f"facts of {name}: --facts FILE", ["key", "what it is"], rows)
    for protocol, settings in getattr(registry.load(room, name), "PROTOCOLS", {}).items():
        rows = [[key.replace("_", "-"), _shown(value)] for key, value in settings.items()]
        _show_entries(f"--protocol {name}:{protocol}", ["setting", "value"], rows)


def _show_entries(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print entries: a name, what kind of thing it is, and below it what it means."""
    if not rows:
        return
    if document.giving():
        document.give_words(title, columns, rows)
        return
    say("", title)
    for name, *between, meaning in rows:
        if not between and len(name) + len(meaning) + 4 < screen().width:
            _print(f"{name}: {meaning}", indent=2)
            continue
        _print(f"{name} ({'; '.join(between)})" if between else name, indent=2)
        _print(meaning, indent=6)


def _print(text: str, *, indent: int = 0, is_cut: bool = False) -> None:
    """Print a text that is broken between words, or cut off at the screen's edge."""
    from isolux.cli.audit_screen import wrap_text

    width = screen().width - indent
    for line in wrap_text(text, width, most=1 if is_cut else None):
        say(" " * indent + line.plain)
