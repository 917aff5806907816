"""A page for each plugin, from its ``INFO`` and its function's settings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from isolux.cli.listing import LISTABLE_KINDS, SETTING_FLAGS, find_package_of_kind
from isolux.core import registry
from isolux.core.formatting import describe_accepted_values
from isolux.core.info import (
    CardInfo,
    CheckInfo,
    DatasetInfo,
    DerivedInfo,
    FormatInfo,
    MeasureInfo,
    ModelInfo,
    PluginInfo,
    TaskInfo,
)
from isolux.core.plugin_options import list_keyword_options
from scripts.site.words import code, plain, table

__all__ = ["write_plugins"]

_USE = {
    "attributes": "isolux audit DATA --derive {name} --by …",
    "datasets": "isolux audit {name}:PATH --by …",
    "formats": "isolux audit DATA --predictions FILE --format {name} --by …",
    "tasks": "isolux audit DATA --task {name} --by …",
    "measures": "isolux audit DATA --by …      # disparities.parquet: kind = {name}",
    "models": "isolux predict DATA --model {name}:… --out answers",
    "analyses": "isolux explain RUN --analysis {name}",
    "checks": "isolux check DATA --only {name}",
    "cards": "isolux card RUN --kind {name} --out card",
}


def write_plugins(source: Path) -> None:
    """Write ``plugins.md``, a page for each kind, and a page for each plugin."""
    for kind in LISTABLE_KINDS:
        names = registry.names(find_package_of_kind(kind))
        folder = source / "plugins" / kind
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.md").write_text(_page(kind, name), encoding="utf-8")
        package = find_package_of_kind(kind)
        rows = [[f"[`{name}`]({kind}/{name}.md)", plain(registry.load_info(package, name).summary)]
                for name in names]  # fmt: skip
        menu = _menu(f"{kind}/{name}" for name in names)
        index = table(["name", "what it is"], rows)
        text = f"# {kind.capitalize()}\n\n{LISTABLE_KINDS[kind]}\n\n{index}\n"
        (source / "plugins" / f"{kind}.md").write_text(text + menu, encoding="utf-8")
    listed = [[f"[{kind}](plugins/{kind}.md)", LISTABLE_KINDS[kind]] for kind in LISTABLE_KINDS]
    text = (
        "# Plugins\n\nEach page is made of what the plugin says of itself; `isolux list KIND NAME` "
        "prints the same. [Adding one](CONTRIBUTING.md#add-a-plugin) is a new file.\n\n"
        f"{table(['kind', 'what it is'], listed)}\n"
    )
    (source / "plugins.md").write_text(
        text + _menu(f"plugins/{k}" for k in LISTABLE_KINDS), "utf-8"
    )


def _menu(pages: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])


def _page(kind: str, name: str) -> str:
    package = find_package_of_kind(kind)
    info = registry.load_info(package, name)
    use = _USE.get(kind, "").format(name=name)
    parts = [f"# {name}", f"**{plain(info.title)}.** {plain(info.summary)}"]
    if use:
        parts.append(f"```text\n{use}\n```")
    parts += [
        part for part in (_own(info), _protocols(package, name), _settings(package, name)) if part
    ]
    if info.assumptions:
        parts.append("## Assumes\n\n" + "\n".join(f"- {plain(one)}" for one in info.assumptions))
    if info.references:
        parts.append("## References\n\n" + "\n".join(map(_reference, info.references)))
    parts.append(f"Licence: {plain(info.licence)}.")
    return "\n\n".join(parts) + "\n"


def _reference(one: Any) -> str:
    said = f"- {plain(one.citation)}" + (f" {plain(one.location)}" if one.location else "")
    return said + (f" <{one.url}>" if one.url else "")


def _own(info: PluginInfo) -> str:
    """Say what a plugin of this kind says beside what all of them say."""
    return next((say(info) for kind, say in _OWN.items() if isinstance(info, kind)), "")


def _attributes(info: DerivedInfo) -> str:
    rows = [[code(name), plain(text)] for name, text in info.attributes]
    return "## Attributes\n\n" + table(["attribute", "what it is"], rows)


def _facts(info: CardInfo) -> str:
    rows = [[code(ask.key), plain(ask.question)] for ask in info.facts]
    return f"{plain(info.statement)}\n\n## Facts\n\n" + table(["key", "what it is"], rows)


def _format(info: FormatInfo) -> str:
    return f"Names end in {', '.join(map(code, info.suffixes))}." if info.suffixes else ""


def _model(info: ModelInfo) -> str:
    return f"Answers: {plain(info.predicts)}." + (
        f" Needs: {plain(info.needs)}." * bool(info.needs)
    )


def _metrics(info: TaskInfo) -> str:
    better = {"higher": "higher", "lower": "lower", "none": "alike"}
    rows = [
        [code(one.name), f"{plain(one.title)}. {plain(one.definition)}", better[one.direction],
         plain(_range(one.low, one.high)), "yes" if one.name in info.defaults else ""]
        for one in info.metrics
    ]  # fmt: skip
    columns = ["metric", "what it is", "better", "range", "by default"]
    return f"## Metrics\n\n{_index(info)}\n\n" + table(columns, rows)


def _index(info: TaskInfo) -> str:
    """Write entries by which the site's search finds a metric, also "per-class recall"."""
    terms = [metric.title for metric in info.metrics]
    terms += [
        f"per-class {metric.title.lower()}"
        for metric in info.metrics
        if "{label}" in metric.in_people + metric.meaning
    ]
    entries = ", ".join(f"! {term.replace(',', '')}" for term in terms)
    return f"```{{index}} {entries}\n```"


def _measure(info: MeasureInfo) -> str:
    return (
        f"Groups that are alike have {info.parity_value:g}. Range:"
        f" {plain(_range(info.low, info.high))}. Interval: {info.interval}."
    )


def _range(low: float | None, high: float | None) -> str:
    ends = ["" if end is None else f"{end:g}" for end in (low, high)]
    return " to ".join(ends) if all(ends) else f"from {ends[0]}" if ends[0] else "any number"


def _dataset(info: DatasetInfo) -> str:
    training = {None: "not stated", True: "allowed", False: "not allowed"}[info.training_allowed]
    rows = [
        ["labels", plain(info.label_source)],
        ["training a model on it", plain(f"{training}. {info.training_terms}".strip())],
        ["withdrawal of consent", plain(info.withdrawal)],
        *([plain(name), plain(words)] for name, words in info.terms),
    ]
    return table(["of the data", "what is said"], [row for row in rows if row[1]])


_OWN: dict[type[PluginInfo], Any] = {
    TaskInfo: _metrics,
    DatasetInfo: _dataset,
    DerivedInfo: _attributes,
    CardInfo: _facts,
    FormatInfo: _format,
    ModelInfo: _model,
    MeasureInfo: _measure,
    CheckInfo: lambda info: f"Reads: {info.needs}.",
}


def _protocols(package: str, name: str) -> str:
    found = getattr(registry.load(package, name), "PROTOCOLS", {})
    parts = []
    for protocol, settings in found.items():
        rows = [
            [code(f"--{key.replace('_', '-')}"), code(value)] for key, value in settings.items()
        ]
        parts.append(f"## `--protocol {name}:{protocol}`\n\n" + table(["sets", "to"], rows))
    return "\n\n".join(parts)


def _settings(package: str, name: str) -> str:
    """List the settings of the plugin's own, with the flag that sets them."""
    function, flag = registry.CONTRACTS[package][1], SETTING_FLAGS.get(package)
    if function is None or flag is None:
        return ""
    rows = [
        [
            code(one.name),
            plain(describe_accepted_values(one.type_hint)),
            _default(one.default),
            plain(one.description),
        ]
        for one in list_keyword_options(getattr(registry.load(package, name), function)).values()
    ]
    if not rows:
        return ""
    line = f"on the command line `{flag} NAME=VALUE`, or the flag of that name"
    said = f"In Python by name; {line}." if flag.startswith("--") else f"Set {flag.rstrip(':')}."
    head = f"## Settings\n\n{said}\n\n"
    return head + table(["setting", "takes", "default", "what it is"], rows)


def _default(value: object) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return "" if value in (None, ()) else code(value)
