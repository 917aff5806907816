"""What loaders refuse: words that a setting does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from isolux.core.errors import SpecError


def check_literal_settings(load: Callable[..., Any], **settings: object) -> None:
    """Refuse a setting that is none of the words that ``load`` declares as its ``Literal``."""
    hints = get_type_hints(load)
    for name, setting in settings.items():
        words = [word for word in _list_literal_choices(hints[name]) if word is not None]
        if setting is not None and setting not in words:
            raise SpecError(
                f"{name} cannot be set to that",
                expected=" or ".join(map(str, words)),
                found=repr(setting),
            )


def _list_literal_choices(hint: Any) -> list[Any]:
    """List the words of a type: of a Literal, and of those that it is made of."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [word for inner_hint in get_args(hint) for word in _list_literal_choices(inner_hint)]
