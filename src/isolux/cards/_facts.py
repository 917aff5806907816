"""What a user says beside a run: a YAML file of facts, each with where it comes from.

A card never invents: what the run does not know and the file does not say is a blank that is named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isolux.cards._document import Said
from isolux.io.settings_files import read_mapping, refuse_repeated_keys
from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import Ask, CardInfo

__all__ = ["SCENARIO", "VERSION", "Facts", "Scenario", "known_asks", "read_facts"]

VERSION = 1
_LONGEST = 20_000
SCENARIO = ("attribute", "group", "metric", "harm", "threshold", "mitigation", "review_trigger")


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

    def answers_to(self, asks: Mapping[str, Ask]) -> Callable[..., tuple[Said, ...]]:
        """Return the function from keys of ``asks`` to what was stated, or blanks."""
        return lambda *keys: tuple(self.said(asks[key]) for key in keys)

    def text(self, key: str) -> str:
        """Return what was stated as one text; empty: nothing."""
        return " ".join(self.texts.get(key, ()))

    def source(self, key: str) -> str:
        """Say who states it."""
        told = f"stated by the user in {self.origin}" if self.origin else "stated by the user"
        return f"{told}, from {self.sources[key]}" if self.sources.get(key) else told


def known_asks() -> dict[str, Ask]:
    """Return every fact that some kind of card asks for, by key."""
    found: dict[str, Ask] = {}
    for kind in registry.names("cards"):
        info = registry.info("cards", kind)
        if isinstance(info, CardInfo):
            found |= {ask.key: ask for ask in info.asks}
    return found


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
    if not isinstance(source, Mapping):
        where, origin = str(source), Path(source).name
        said = read_mapping(source)
        refuse_repeated_keys(source)
        sha256 = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    else:
        said = {str(key): value for key, value in source.items()}
    _refuse_version(said.pop("facts", None), where)
    scenarios = _scenarios(said.pop("scenarios", None), where)
    known = known_asks() | dict(more or {})
    texts: dict[str, tuple[str, ...]] = {}
    sources: dict[str, str] = {}
    for key, value in said.items():
        if key not in known:
            raise UnknownNameError("fact", key, [*known, "scenarios"], where=where)
        texts[key], sources[key] = _value(value, key, where)
    return Facts(texts, sources, scenarios, origin, sha256)


def _refuse_version(said: object, where: str) -> None:
    if said == VERSION and not isinstance(said, bool):
        return
    raise SpecError(
        "the facts do not say by which version of facts they are written",
        expected=f"`facts: {VERSION}` as the first line",
        found="none" if said is None else repr(said),
        where=where,
        hint="`isolux card RUN --kind KIND --init` prints such a file",
    )


def _value(value: object, key: str, where: str) -> tuple[tuple[str, ...], str]:
    if isinstance(value, Mapping):
        for name in value:
            if name not in ("says", "source"):
                raise UnknownNameError(f"part of {key}", str(name), ("says", "source"), where=where)
        return _texts(value.get("says"), key, where), _text(value.get("source"), "source", where)
    return _texts(value, key, where), ""


def _texts(value: object, key: str, where: str) -> tuple[str, ...]:
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return tuple(text for one in listed if (text := _text(one, key, where)))


def _text(value: object, key: str, where: str) -> str:
    """Read a text; numbers and days are texts too, nothing is an empty one."""
    if value is None:
        return ""
    if isinstance(value, bool | bytes | Mapping | Sequence) and not isinstance(value, str):
        raise SpecError(
            f"{key} is not text", expected="a text, or a list of texts", found=repr(value),
            where=where, hint="put it in quotes" if isinstance(value, bool) else None,
        )  # fmt: skip
    text = re.sub(r"\s+", " ", str(value)).strip()
    if len(text) > _LONGEST:
        raise SpecError(
            f"{key} is too long", expected=f"{_LONGEST:,} characters or fewer",
            found=f"{len(text):,}", where=where,
        )  # fmt: skip
    return text


def _scenarios(value: object, where: str) -> tuple[Scenario, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise SpecError(
            "scenarios is not a list", expected="`- attribute: …` and `group: …` for each",
            found=repr(value), where=where,
        )  # fmt: skip
    return tuple(_scenario(one, f"{where}, scenario {k}") for k, one in enumerate(value, start=1))


def _scenario(value: object, where: str) -> Scenario:
    if not isinstance(value, Mapping):
        raise SpecError("a scenario is not a mapping", expected="`attribute:` and `group:`",
                        found=repr(value), where=where)  # fmt: skip
    for key in value:
        if key not in SCENARIO:
            raise UnknownNameError("part of a scenario", str(key), SCENARIO, where=where)
    said = {str(key): _text(one, str(key), where) for key, one in value.items()}
    for key in ("attribute", "group"):
        if not said.get(key):
            raise SpecError(
                f"a scenario names no {key}", expected="`attribute:` and `group:` as in the run",
                found=", ".join(said) or "nothing", where=where,
            )  # fmt: skip
    return Scenario(**said)
