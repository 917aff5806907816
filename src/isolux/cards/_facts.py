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

from isolux.cards._document import CardFact
from isolux.core import registry
from isolux.core.errors import SpecError, UnknownNameError, refuse_unknown_names
from isolux.core.info import CardInfo, FactField
from isolux.io.settings_files import read_mapping, refuse_repeated_keys

_VERSION = 1
_SCENARIO_KEYS = (
    "attribute",
    "group",
    "metric",
    "harm",
    "threshold",
    "mitigation",
    "review_trigger",
)
_MAX_TEXT_LENGTH = 20_000  # characters of one text: some ten pages
_TEXT_SCHEMA: dict[str, Any] = {"type": ["string", "number", "null"], "maxLength": _MAX_TEXT_LENGTH}


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
class CardFacts:
    """Facts of a user: texts by key, the source of each, and the file that holds them."""

    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    scenarios: tuple[Scenario, ...] = ()
    origin: str = ""
    sha256: str = ""

    def stated_fact(self, fact_field: FactField) -> CardFact:
        """Return the stated fact; one not stated has no texts."""
        texts = self.texts.get(fact_field.key, ())
        return CardFact(
            fact_field.question,
            texts,
            self.describe_source(fact_field.key) if texts else "",
            fact_field.key,
        )

    def joined_text(self, key: str) -> str:
        """Return what was stated as one text; empty: nothing."""
        return " ".join(self.texts.get(key, ()))

    def describe_source(self, key: str) -> str:
        """Describe who states a fact."""
        speaker = f"stated by the user in {self.origin}" if self.origin else "stated by the user"
        return f"{speaker}, from {self.sources[key]}" if self.sources.get(key) else speaker


def build_fact_fields(**question_by_key: str) -> tuple[FactField, ...]:
    """Make the fact fields of a kind of card, by key."""
    return tuple(FactField(key, question) for key, question in question_by_key.items())


def load_all_fact_fields() -> dict[str, FactField]:
    """Return every fact that some kind of card asks for, by key."""
    infos = (registry.load_info("cards", card_kind) for card_kind in registry.names("cards"))
    return {
        ask.key: ask
        for card_info in infos
        if isinstance(card_info, CardInfo)
        for ask in card_info.facts
    }


def read_facts(
    source: Mapping[str, Any] | str | Path | None,
    extra_fields: Mapping[str, FactField] | None = None,
) -> CardFacts:
    """Read a file of facts, or a mapping like one.

    Examples
    --------
    >>> facts = read_facts({"facts": 1, "contact": {"says": "a@b.org", "source": "the website"}})
    >>> facts.joined_text("contact"), facts.describe_source("contact")
    ('a@b.org', 'stated by the user, from the website')
    """
    if source is None:
        return CardFacts()
    source_name, origin, sha256 = "the facts", "", ""
    if isinstance(source, Mapping):
        mapping = {str(key): stated for key, stated in source.items()}
    else:
        source_name, origin = str(source), Path(source).name
        mapping = read_mapping(source)
        refuse_repeated_keys(source)
        sha256 = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    version = mapping.pop("facts", None)
    if version != _VERSION or isinstance(version, bool):
        raise SpecError(
            "the facts do not say by which version of facts they are written",
            expected=f"`facts: {_VERSION}` as the first line",
            found="none" if version is None else repr(version),
            where=source_name,
            hint="`isolux card RUN --kind KIND --init` prints such a file",
        )
    scenarios = tuple(_read_scenarios(mapping.pop("scenarios", None), source_name))
    known_fields = load_all_fact_fields() | dict(extra_fields or {})
    texts: dict[str, tuple[str, ...]] = {}
    sources: dict[str, str] = {}
    for key, stated in mapping.items():
        if key not in known_fields:
            raise UnknownNameError("fact", key, [*known_fields, "scenarios"], where=source_name)
        statement = stated if isinstance(stated, Mapping) else {"says": stated}
        _refuse_unknown_keys(statement, f"part of {key}", ("says", "source"), source_name)
        stated_text = statement.get("says")
        items = (
            stated_text
            if isinstance(stated_text, Sequence) and not isinstance(stated_text, str)
            else [stated_text]
        )
        texts[key] = tuple(
            filter(None, (_read_fact_text(element, key, source_name) for element in items))
        )
        sources[key] = _read_fact_text(statement.get("source"), "source", source_name)
    return CardFacts(texts, sources, scenarios, origin, sha256)


def _refuse_unknown_keys(
    mapping: Mapping[Any, Any], description: str, valid_keys: Sequence[str], source_name: str
) -> None:
    refuse_unknown_names(description, mapping, valid_keys, where=source_name)


def _read_fact_text(stated: object, key: str, source_name: str) -> str:
    """Read a text; numbers and days are texts too, nothing is an empty one."""
    if stated is None:
        return ""
    if isinstance(stated, bool | bytes | Mapping | Sequence) and not isinstance(stated, str):
        hint = "put it in quotes" if isinstance(stated, bool) else None
        raise _build_fact_error(
            f"{key} is not text", "a text, or a list of texts", stated, source_name, hint
        )
    if len(str(stated)) > _MAX_TEXT_LENGTH:
        raise SpecError(
            f"{key} is too long for a card",
            expected=f"at most {_MAX_TEXT_LENGTH:,} characters",
            found=f"{len(str(stated)):,}",
            where=source_name,
            hint="state it briefly, and name the document that holds the rest",
        )
    return re.sub(r"\s+", " ", str(stated)).strip()


def _build_fact_error(
    problem: str, expected: str, refused: object, source_name: str, hint: str | None = None
) -> SpecError:
    return SpecError(problem, expected=expected, found=repr(refused), where=source_name, hint=hint)


def _read_scenarios(stated: object, source_name: str) -> Iterator[Scenario]:
    if not isinstance(stated, Sequence | None) or isinstance(stated, str):
        expected = "`- attribute: …` and `group: …` for each"
        raise _build_fact_error("scenarios is not a list", expected, stated, source_name)
    for k, scenario_mapping in enumerate(stated or (), start=1):
        item_source = f"{source_name}, scenario {k}"
        if not isinstance(scenario_mapping, Mapping):
            raise _build_fact_error(
                "a scenario is not a mapping",
                "`attribute:` and `group:`",
                scenario_mapping,
                item_source,
            )
        _refuse_unknown_keys(scenario_mapping, "part of a scenario", _SCENARIO_KEYS, item_source)
        texts = {
            str(key): _read_fact_text(text, str(key), item_source)
            for key, text in scenario_mapping.items()
        }
        for key in ("attribute", "group"):
            if not texts.get(key):
                expected = "`attribute:` and `group:` as in the run"
                raise _build_fact_error(f"a scenario names no {key}", expected, texts, item_source)
        yield Scenario(**texts)


def build_facts_template_yaml(
    card_kind: str, card_info: CardInfo, at_risk: Sequence[tuple[str, str]] = ()
) -> str:
    """Write a first file of facts as YAML, all blank, with a comment a line.

    ``at_risk`` are attributes and groups that a profile names by itself.
    """
    import json

    lines = [
        f"# Facts for isolux card RUN --kind {card_kind.replace('_', '-')} --facts THIS_FILE",
        "# A value is a text, a list of texts, or says: and source:. Leave out what is not known:",
        "# the card then names it as not stated. A file may hold the facts of several kinds.",
        "facts: 1",
    ]
    for ask in card_info.facts:
        lines += ["", f"# {ask.question}", f"{ask.key}:"]
    if card_kind == "bias_profile":
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


def build_facts_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of facts: ``docs/schemas/card-facts-1.json``.

    Examples
    --------
    >>> build_facts_json_schema()["required"]
    ['facts']
    """
    text_or_list: dict[str, Any] = {
        "anyOf": [_TEXT_SCHEMA, {"type": "array", "items": _TEXT_SCHEMA}]
    }
    fact = _build_object_schema(["says"], {"says": text_or_list, "source": _TEXT_SCHEMA})
    scenario = _build_object_schema(
        ["attribute", "group"], dict.fromkeys(_SCENARIO_KEYS, _TEXT_SCHEMA)
    )
    fact_schemas = {
        key: {"description": ask.question, "$ref": "#/$defs/fact"}
        for key, ask in sorted(load_all_fact_fields().items())
    }
    scenarios = {"type": ["array", "null"], "items": scenario}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://github.com/isolux/isolux/blob/main/docs/schemas/card-facts-1.json",
        "title": "What a user says beside a run: isolux card RUN --facts FILE",
        **_build_object_schema(
            ["facts"], {"facts": {"const": _VERSION}, "scenarios": scenarios, **fact_schemas}
        ),
        "$defs": {"fact": {"anyOf": [*text_or_list["anyOf"], fact]}},
    }


def _build_object_schema(required: list[str], properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }
