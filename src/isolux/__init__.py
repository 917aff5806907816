"""isolux: audit vision models for disparities between groups of people.

``load`` people, ``read_predictions``, ``score`` each person, ``audit`` groups and intersections
with honest uncertainty, ``compare`` two models; ``metric_frame`` for those who come from
fairlearn. Everything is imported when it is first used, so ``import isolux`` costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isolux.datasets import load
    from isolux.predictions import read_predictions
    from isolux.tasks import score
    from isolux.verbs.audit import Audit, audit
    from isolux.verbs.compare import Comparison, compare
    from isolux.verbs.metric_frame import MetricFrame, metric_frame
    from isolux.vocabulary.containers import Dataset, Run, Scores
    from isolux.vocabulary.spec import AuditSpec

__all__ = [
    "Audit",
    "AuditSpec",
    "Comparison",
    "Dataset",
    "MetricFrame",
    "Run",
    "Scores",
    "__version__",
    "audit",
    "compare",
    "load",
    "metric_frame",
    "read_predictions",
    "score",
]

_HOME = {
    "Audit": "verbs.audit",
    "AuditSpec": "vocabulary.spec",
    "Comparison": "verbs.compare",
    "Dataset": "vocabulary.containers",
    "MetricFrame": "verbs.metric_frame",
    "Run": "vocabulary.containers",
    "Scores": "vocabulary.containers",
    "audit": "verbs.audit",
    "compare": "verbs.compare",
    "load": "datasets",
    "metric_frame": "verbs.metric_frame",
    "read_predictions": "predictions",
    "score": "tasks",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("isolux")
    if name in _HOME:
        value = getattr(importlib.import_module(f"isolux.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'isolux' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
