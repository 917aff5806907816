"""``isolux list``: what there is to load, read, score and explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from isolux.cli import command_output
from isolux.cli.streams import build_rich_console, print_clean_lines
from isolux.core import registry

if TYPE_CHECKING:
    from isolux.core.info import PluginInfo
    from isolux.core.plugin_options import Option

LISTABLE_KINDS = {
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

_PACKAGE_BY_KIND = {"attributes": "derive", "formats": "predictions", "analyses": "analyses"}
SETTING_FLAGS = {
    "datasets": "--data-option",
    "predictions": "--prediction-option",
    "tasks": "--option",
    "analyses": "--analysis-option",
    "checks": "--check-option",
    "models": "--model-option",
    "measures": "by flags of isolux audit",
    "rules": "in project.yaml, rules:",
}
"""How the settings of a package's plugins are given."""
_SHARED_OPTIONS = (
    "model",
    "metrics",
    "pictures",
    "overall",
)  # have their own flags, or are positional
_DIRECTION_TEXTS = {
    "higher": "higher is better",
    "lower": "lower is better",
    "none": "no better direction",
}
_SEPARATE_FIELDS = (
    "title",
    "summary",
    "references",
    "assumptions",
    "metrics",
    "attributes",
    "asks",
    "worse",
)
"""Fields of an ``INFO`` that are not printed as they are."""


def _complete_kind(incomplete: str) -> list[str]:
    return [listable for listable in LISTABLE_KINDS if listable.startswith(incomplete)]


def _complete_plugin_name(context: typer.Context, incomplete: str) -> list[str]:
    typed_kind = context.params.get("kind")
    names = registry.names(find_package_of_kind(typed_kind)) if typed_kind in LISTABLE_KINDS else ()
    return [name for name in names if name.startswith(incomplete)]


def listing(
    kind: Annotated[
        str | None,
        typer.Argument(help="what to list; not given: the kinds", autocompletion=_complete_kind),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            help="one of them: its settings, metrics or protocols",
            autocompletion=_complete_plugin_name,
        ),
    ] = None,
) -> None:
    """List what there is: tasks, datasets, models and eight other kinds.

    Without KIND, the kinds. With KIND, one line for each of that kind. With NAME, everything about
    one of them: every setting with its type, default and meaning, metrics, protocols, facts.
    """
    from isolux.core.errors import UnknownNameError

    if kind is None:
        rows = [
            [listable, f"{len(registry.names(find_package_of_kind(listable))):,}", text]
            for listable, text in LISTABLE_KINDS.items()
        ]
        _print_cut_rows("kinds", ["kind", "how many", "what they are"], rows)
        print_clean_lines(
            "", "`isolux list KIND` names them; `isolux list KIND NAME` prints one of them whole."
        )
        return
    if kind not in LISTABLE_KINDS:
        raise UnknownNameError("list", kind, LISTABLE_KINDS, where="isolux list")
    package = find_package_of_kind(kind)
    if name is not None:
        _print_plugin_details(package, name)
        return
    from isolux.api.synthesize import missing_package_error

    names = registry.names(package)
    if not names:
        raise missing_package_error(f"isolux list {kind}", "isolux-curate", "packages/curate")
    _print_cut_rows(
        kind,
        ["name", "what it is"],
        [[plugin_name, _summarise_plugin(package, plugin_name)] for plugin_name in names],
    )
    print_clean_lines("", f"`isolux list {kind} NAME` prints one of them whole.")


def find_package_of_kind(listable: str) -> str:
    """Return the package of a kind that can be listed."""
    return _PACKAGE_BY_KIND.get(listable, listable)


def _summarise_plugin(package: str, name: str) -> str:
    """Summarise a plugin in a line, with its licence, output or protocols."""
    from isolux.core.info import DatasetInfo, ModelInfo

    plugin_info = registry.load_info(package, name)
    if isinstance(plugin_info, DatasetInfo):
        return f"{plugin_info.title} ({plugin_info.licence})"
    if isinstance(plugin_info, ModelInfo):
        return f"{plugin_info.title}: {plugin_info.predicts}" + (
            f"; needs {plugin_info.needs}" if plugin_info.needs else ""
        )
    if package == "papers":
        return f"{plugin_info.title}: " + ", ".join(
            getattr(registry.load(package, name), "PROTOCOLS", {})
        )
    return plugin_info.summary


def _print_cut_rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a line for each row: what is too long for the screen ends with an ellipsis."""
    if command_output.is_json_active():
        command_output.add_text_table_to_json(title, columns, rows)
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns) - 1)]
    for *first, last in rows:
        start = "  ".join(text.ljust(width) for text, width in zip(first, widths, strict=True))
        _print_wrapped_or_cut(f"{start}  {last}", is_cut=True)


def _print_plugin_details(package: str, name: str) -> None:
    """Print what one plugin is, with all its settings."""
    from isolux.core.plugin_options import list_keyword_options

    plugin_info = registry.load_info(package, name)
    print_clean_lines(f"{name}: {plugin_info.title}")
    _print_wrapped_or_cut(plugin_info.summary, indent=2)
    for reference in plugin_info.references:
        _print_wrapped_or_cut(f"{reference.citation} {reference.location}".rstrip(), indent=2)
    for label, text in (
        *_list_text_fields(plugin_info),
        *(("assumes", assumption) for assumption in plugin_info.assumptions),
    ):
        _print_wrapped_or_cut(f"{label}: {text}", indent=2)
    _print_plugin_contents(package, name)
    function = registry.CONTRACTS[package][1]
    if package not in SETTING_FLAGS or function is None:
        return
    options = list_keyword_options(getattr(registry.load(package, name), function))
    rows = [
        [option.name, _format_type_and_default(option), option.text]
        for option in options.values()
        if option.name not in _SHARED_OPTIONS
    ]
    columns = ["name", "type and default", "meaning"]
    usage = (
        f"{SETTING_FLAGS[package]} NAME=VALUE"
        if SETTING_FLAGS[package].startswith("--")
        else SETTING_FLAGS[package]
    )
    usage = f"--NAME VALUE with --task {name}, or {usage}" if package == "tasks" else usage
    _print_described_entries(f"settings of {name}: {usage}", columns, rows)


def _format_type_and_default(option: Option) -> str:
    """Format a setting's type and default, unless its text already gives the default."""
    from isolux.core.formatting import describe_accepted_values

    if option.default is not None:
        return (
            f"{describe_accepted_values(option.type_hint)}; default: "
            f"{_format_setting(option.default)}"
        )
    is_told = "default" in option.text.lower() or "not given" in option.text.lower()
    return describe_accepted_values(option.type_hint).removesuffix(", or none") + (
        "" if is_told else "; default: not set"
    )


def _list_text_fields(plugin_info: PluginInfo) -> list[tuple[str, str]]:
    """List the text fields of an ``INFO``."""
    values = {
        info_field.name: getattr(plugin_info, info_field.name)
        for info_field in fields(plugin_info)
        if info_field.name not in _SEPARATE_FIELDS
    }
    return [
        (name.replace("_", " "), _format_setting(field_value))
        for name, field_value in values.items()
        if field_value not in (None, "", ()) and not isinstance(field_value, Mapping)
    ]


def _format_setting(setting: object) -> str:
    if setting is None or setting == ():
        return "none"
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    if isinstance(setting, tuple | list):
        return ", ".join(": ".join(p) if isinstance(p, tuple) else str(p) for p in setting)
    return str(setting)


def _print_plugin_contents(package: str, name: str) -> None:
    """Print a task's metrics, a paper's protocols, a family's attributes, a card's facts."""
    from isolux.core.info import CardInfo, DerivedInfo, TaskInfo

    plugin_info = registry.load_info(package, name)
    if isinstance(plugin_info, TaskInfo):
        rows = [
            [m.name, f"{m.unit}; {_DIRECTION_TEXTS[m.direction]}", m.definition]
            for m in plugin_info.metrics
        ]
        _print_described_entries(
            f"metrics of {name}", ["metric", "unit and direction", "definition"], rows
        )
    if isinstance(plugin_info, DerivedInfo):
        rows = [list(row) for row in plugin_info.attributes]
        _print_described_entries(f"attributes of {name}", ["attribute", "what it is"], rows)
    if isinstance(plugin_info, CardInfo):
        rows = [[fact.key, fact.question] for fact in plugin_info.facts]
        _print_described_entries(f"facts of {name}: --facts FILE", ["key", "what it is"], rows)
    for protocol, settings in getattr(registry.load(package, name), "PROTOCOLS", {}).items():
        rows = [
            [key.replace("_", "-"), _format_setting(setting)] for key, setting in settings.items()
        ]
        _print_described_entries(f"--protocol {name}:{protocol}", ["setting", "value"], rows)


def _print_described_entries(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print entries: a name, what kind of thing it is, and below it what it means."""
    if not rows:
        return
    if command_output.is_json_active():
        command_output.add_text_table_to_json(title, columns, rows)
        return
    print_clean_lines("", title)
    for name, *between, meaning in rows:
        if not between and len(name) + len(meaning) + 4 < build_rich_console().width:
            _print_wrapped_or_cut(f"{name}: {meaning}", indent=2)
            continue
        _print_wrapped_or_cut(f"{name} ({'; '.join(between)})" if between else name, indent=2)
        _print_wrapped_or_cut(meaning, indent=6)


def _print_wrapped_or_cut(text: str, *, indent: int = 0, is_cut: bool = False) -> None:
    """Print a text that is broken between words, or cut off at the screen's edge."""
    from isolux.cli.audit_screen import wrap_text

    width = build_rich_console().width - indent
    for line in wrap_text(text, width, max_lines=1 if is_cut else None):
        print_clean_lines(" " * indent + line.plain)
