"""What a user says beside a run: a YAML file of facts, each with where it comes from.

A card never invents: what the run does not know and the file does not say is a blank that is named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isolux.cards._document import Said
from isolux.io.settings_files import read_mapping, refuse_repeated_keys
from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import Ask, CardInfo

_VERSION = 1
_SCENARIO = ("attribute", "group", "metric", "harm", "threshold", "mitigation", "review_trigger")
_LONGEST = 20_000  # characters of one text: some ten pages
_TEXT: dict[str, Any] = {"type": ["string", "number", "null"], "maxLength": _LONGEST}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a user says of one group at risk; texts are empty where nothing was said."""

    attribute: str
    group: str
    metric: str = ""
    harm: str = ""
    threshold: str = ""
    mitigation: str = ""
    review_trigger: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a user says: texts by key, whence each comes, and the file that holds them."""

    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    scenarios: tuple[Scenario, ...] = ()
    origin: str = ""
    sha256: str = ""

    def said(self, ask: Ask) -> Said:
        """Say what was stated, or name the blank."""
        texts = self.texts.get(ask.key, ())
        return Said(ask.question, texts, self.source(ask.key) if texts else "", ask.key)

    def text(self, key: str) -> str:
        """Return what was stated as one text; empty: nothing."""
        return " ".join(self.texts.get(key, ()))

    def source(self, key: str) -> str:
        """Say who states it."""
        who = f"stated by the user in {self.origin}" if self.origin else "stated by the user"
        return f"{who}, from {self.sources[key]}" if self.sources.get(key) else who


def asks_of(**questions: str) -> tuple[Ask, ...]:
    """Name what a kind of card asks for, by key."""
    return tuple(Ask(key, question) for key, question in questions.items())


def known_asks() -> dict[str, Ask]:
    """Return every fact that some kind of card asks for, by key."""
    infos = (registry.info("cards", kind) for kind in registry.names("cards"))
    return {ask.key: ask for info in infos if isinstance(info, CardInfo) for ask in info.asks}


def read_facts(
    source: Mapping[str, Any] | str | Path | None, more: Mapping[str, Ask] | None = None
) -> Facts:
    """Read a file of facts, or a mapping like one.

    Examples
    --------
    >>> facts = read_facts({"facts": 1, "contact": {"says": "a@b.org", "source": "the website"}})
    >>> facts.text("contact"), facts.source("contact")
    ('a@b.org', 'stated by the user, from the website')
    """
    if source is None:
        return Facts()
    where, origin, sha256 = "the facts", "", ""
    if isinstance(source, Mapping):
        said = {str(key): value for key, value in source.items()}
    else:
        where, origin = str(source), Path(source).name
        said = read_mapping(source)
        refuse_repeated_keys(source)
        sha256 = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    version = said.pop("facts", None)
    if version != _VERSION or isinstance(version, bool):
        raise SpecError(
            "the facts do not say by which version of facts they are written",
            expected=f"`facts: {_VERSION}` as the first line",
            found="none" if version is None else repr(version),
            where=where,
            hint="`isolux card RUN --kind KIND --init` prints such a file",
        )
    scenarios = tuple(_scenarios(said.pop("scenarios", None), where))
    known = known_asks() | dict(more or {})
    texts: dict[str, tuple[str, ...]] = {}
    sources: dict[str, str] = {}
    for key, value in said.items():
        if key not in known:
            raise UnknownNameError("fact", key, [*known, "scenarios"], where=where)
        parts = value if isinstance(value, Mapping) else {"says": value}
        _refuse_unknown(parts, f"part of {key}", ("says", "source"), where)
        says = parts.get("says")
        listed = says if isinstance(says, Sequence) and not isinstance(says, str) else [says]
        texts[key] = tuple(filter(None, (_text(one, key, where) for one in listed)))
        sources[key] = _text(parts.get("source"), "source", where)
    return Facts(texts, sources, scenarios, origin, sha256)


def _refuse_unknown(parts: Mapping[Any, Any], what: str, names: Sequence[str], where: str) -> None:
    for name in parts:
        if name not in names:
            raise UnknownNameError(what, str(name), names, where=where)


def _text(value: object, key: str, where: str) -> str:
    """Read a text; numbers and days are texts too, nothing is an empty one."""
    if value is None:
        return ""
    if isinstance(value, bool | bytes | Mapping | Sequence) and not isinstance(value, str):
        hint = "put it in quotes" if isinstance(value, bool) else None
        raise _refusal(f"{key} is not text", "a text, or a list of texts", value, where, hint)
    if len(str(value)) > _LONGEST:
        raise SpecError(
            f"{key} is too long for a card",
            expected=f"at most {_LONGEST:,} characters",
            found=f"{len(str(value)):,}",
            where=where,
            hint="state it briefly, and name the document that holds the rest",
        )
    return re.sub(r"\s+", " ", str(value)).strip()


def _refusal(
    problem: str, expected: str, found: object, where: str, hint: str | None = None
) -> SpecError:
    return SpecError(problem, expected=expected, found=repr(found), where=where, hint=hint)


def _scenarios(value: object, where: str) -> Iterator[Scenario]:
    if not isinstance(value, Sequence | None) or isinstance(value, str):
        expected = "`- attribute: …` and `group: …` for each"
        raise _refusal("scenarios is not a list", expected, value, where)
    for k, one in enumerate(value or (), start=1):
        place = f"{where}, scenario {k}"
        if not isinstance(one, Mapping):
            raise _refusal("a scenario is not a mapping", "`attribute:` and `group:`", one, place)
        _refuse_unknown(one, "part of a scenario", _SCENARIO, place)
        said = {str(key): _text(text, str(key), place) for key, text in one.items()}
        for key in ("attribute", "group"):
            if not said.get(key):
                expected = "`attribute:` and `group:` as in the run"
                raise _refusal(f"a scenario names no {key}", expected, said, place)
        yield Scenario(**said)


def facts_template(kind: str, info: CardInfo, at_risk: Sequence[tuple[str, str]] = ()) -> str:
    """Write a first file of facts as YAML, all blank, with a comment a line.

    ``at_risk`` are attributes and groups that a profile names by itself.
    """
    import json

    lines = [
        f"# Facts for isolux card RUN --kind {kind.replace('_', '-')} --facts THIS_FILE",
        "# A value is a text, a list of texts, or says: and source:. Leave out what is not known:",
        "# the card then names it as not stated. A file may hold the facts of several kinds.",
        "facts: 1",
    ]
    for ask in info.asks:
        lines += ["", f"# {ask.question}", f"{ask.key}:"]
    if kind == "bias_profile":
        lines += ["", "# groups at risk, as the run names them; add others", "scenarios:"]
    for attribute, group in at_risk:  # quoted as JSON, which YAML is
        lines += [
            f"  - attribute: {json.dumps(attribute, ensure_ascii=False)}",
            f"    group: {json.dumps(group, ensure_ascii=False)}",
            "    harm:            # what happens to these people when the model is wrong",
            "    threshold:       # the difference that you accept",
            "    mitigation:      # what is done about it",
            "    review_trigger:  # when this is looked at again",
        ]
    return "\n".join(lines) + "\n"


def facts_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of facts: ``docs/schemas/card-facts-1.json``.

    Examples
    --------
    >>> facts_schema()["required"]
    ['facts']
    """
    texts: dict[str, Any] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
    fact = _object_schema(["says"], {"says": texts, "source": _TEXT})
    scenario = _object_schema(["attribute", "group"], dict.fromkeys(_SCENARIO, _TEXT))
    asked = {
        key: {"description": ask.question, "$ref": "#/$defs/fact"}
        for key, ask in sorted(known_asks().items())
    }
    scenarios = {"type": ["array", "null"], "items": scenario}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://github.com/isolux/isolux/blob/main/docs/schemas/card-facts-1.json",
        "title": "What a user says beside a run: isolux card RUN --facts FILE",
        **_object_schema(
            ["facts"], {"facts": {"const": _VERSION}, "scenarios": scenarios, **asked}
        ),
        "$defs": {"fact": {"anyOf": [*texts["anyOf"], fact]}},
    }


def _object_schema(required: list[str], properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }
