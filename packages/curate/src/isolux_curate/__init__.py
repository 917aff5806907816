"""Building a dataset of people: intake, consent, annotation, consensus, release, withdrawal."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isolux_curate.api.anonymise import anonymise
    from isolux_curate.api.consensus import consensus
    from isolux_curate.api.consensus_shapes import consensus_shapes

__all__ = ["anonymise", "consensus", "consensus_shapes"]


def __getattr__(name: str) -> Any:
    """Import a public function on first use, so that the program's help starts quickly."""
    if name not in __all__:
        raise AttributeError(f"module 'isolux_curate' has no attribute {name!r}")
    from isolux.core.arguments import explain_argument_errors

    module = importlib.import_module(f"isolux_curate.api.{name}")
    function = explain_argument_errors(getattr(module, name))
    function.__module__ = __name__  # the public path, also for pickle
    return globals().setdefault(name, function)


def __dir__() -> list[str]:
    return __all__
