"""Building a dataset of people well: what annotators answered becomes labels, doubts kept."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isolux_curate.verbs.anonymise import anonymise
    from isolux_curate.verbs.consensus import consensus
    from isolux_curate.verbs.consensus_shapes import consensus_shapes

__all__ = ["anonymise", "consensus", "consensus_shapes"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: the program's help needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'isolux_curate' has no attribute {name!r}")
    from isolux.vocabulary.arguments import told_of_arguments

    module = importlib.import_module(f"isolux_curate.verbs.{name}")
    value = told_of_arguments(getattr(module, name))
    value.__module__ = __name__  # where it is found again, by pickle too
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return __all__
