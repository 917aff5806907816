"""What loaders refuse: words that a setting does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from isolux.vocabulary.errors import SpecError


def check_choices(load: Callable[..., Any], **settings: object) -> None:
    """Refuse a setting that is none of the words that ``load`` declares as its ``Literal``."""
    hints = get_type_hints(load)
    for name, value in settings.items():
        words = [word for word in _literals(hints[name]) if word is not None]
        if value is not None and value not in words:
            raise SpecError(
                f"{name} cannot be set to that",
                expected=" or ".join(map(str, words)),
                found=repr(value),
            )


def _literals(hint: Any) -> list[Any]:
    """List the words of a type: of a Literal, and of those that it is made of."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [word for part in get_args(hint) for word in _literals(part)]
