"""The published JSON Schema of a file of facts, made of what the kinds of card ask for."""

from __future__ import annotations

from typing import Any

from isolux.cards._facts import SCENARIO, VERSION, known_asks

__all__ = ["facts_schema"]

_TEXT: dict[str, Any] = {"type": ["string", "number", "null"]}


def facts_schema() -> dict[str, Any]:
    """Return the schema: ``docs/schemas/card-facts-1.json``.

    Examples
    --------
    >>> facts_schema()["required"]
    ['facts']
    """
    texts: dict[str, Any] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
    fact = {
        "anyOf": [
            *texts["anyOf"],
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["says"],
                "properties": {"says": texts, "source": _TEXT},
            },
        ]
    }
    scenario = {
        "type": "object",
        "additionalProperties": False,
        "required": ["attribute", "group"],
        "properties": dict.fromkeys(SCENARIO, _TEXT),
    }
    asked = {
        key: {"description": ask.question, "$ref": "#/$defs/fact"}
        for key, ask in sorted(known_asks().items())
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://github.com/isolux/isolux/blob/main/docs/schemas/card-facts-1.json",
        "title": "What a user says beside a run: isolux card RUN --facts FILE",
        "type": "object",
        "additionalProperties": False,
        "required": ["facts"],
        "properties": {
            "facts": {"const": VERSION},
            "scenarios": {"type": ["array", "null"], "items": scenario},
            **asked,
        },
        "$defs": {"fact": fact},
    }
