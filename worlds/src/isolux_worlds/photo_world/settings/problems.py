"""What is wrong with a world's settings, in words: the key, what it takes and what it was given."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Sequence

from pydantic import ValidationError

from isolux.vocabulary.errors import SpecError

__all__ = ["first_problem"]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def _key_path(parts: Sequence[object]) -> str:
    """Write where a key stands: ``attributes.lighting.given[0].shares``."""
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts)
    return text.removeprefix(".")


def first_problem(error: ValidationError, known: Sequence[str], where: str | None) -> SpecError:
    """Say what pydantic found first; ``known`` are names of settings, for a hint."""
    first = error.errors(include_url=False)[0]
    parts = [p for p in first["loc"] if p != "[key]"]
    key = f"key {_key_path(parts)!r}" if parts else None
    place = ", ".join(p for p in (where, key) if p) or None
    if first["type"] == "extra_forbidden":
        name = str(parts[-1])
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        return SpecError(
            f"there is no setting {_SHORT.repr(name)}",
            where=place,
            hint=f"did you mean {near[0]!r}?" if near else "see the settings of a world",
        )
    return SpecError(
        "the world cannot be used as it is written",
        expected=str(first["msg"]).removeprefix("Value error, "),
        found="nothing" if first["type"] == "missing" else _SHORT.repr(first.get("input")),
        where=place,
    )
