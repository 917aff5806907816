"""isolux: audit vision models for disparities between groups of people.

``load`` people, ``check`` and ``describe`` them, ``sample`` a test set, ``crop`` their faces;
``predict`` with a model or ``read_predictions``, ``score`` each person, ``audit`` groups and
intersections with honest uncertainty, ``explain`` why groups differ, ``compare`` two models, or any
number ``side_by_side``; ``view`` runs in a page, ``plot`` one in a notebook; ``metric_frame`` for
those who come from fairlearn, ``audit_estimator`` for those who come from scikit-learn;
``synthesize`` a world whose truth is known. First comes what a function is about, then settings
under the flags' names. Everything is imported when it is first used, so ``import isolux`` costs
little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isolux.api.across import CrossDatasetTables, across
    from isolux.api.audit import Audit, audit
    from isolux.api.audit_estimator import audit_estimator, estimator_predictions
    from isolux.api.card import card
    from isolux.api.check import check
    from isolux.api.compare import Comparison, compare
    from isolux.api.crop import crop
    from isolux.api.describe import describe
    from isolux.api.explain import explain
    from isolux.api.gate import gate
    from isolux.api.metric_frame import MetricFrame, metric_frame
    from isolux.api.monitor import Monitoring, monitor
    from isolux.api.plot import plot
    from isolux.api.predict import PredictionResult, predict
    from isolux.api.sample import sample
    from isolux.api.side_by_side import SideBySide, side_by_side
    from isolux.api.synthesize import synthesize
    from isolux.api.train_fairface import train_fairface
    from isolux.api.train_finetune import train_finetune
    from isolux.api.train_probe import train_probe
    from isolux.api.view import view
    from isolux.cards import Card
    from isolux.core.containers import Dataset, Run, Scores
    from isolux.core.spec import AuditSpec
    from isolux.datasets import load
    from isolux.policy import Decision
    from isolux.predictions import read_predictions
    from isolux.tasks import score

__all__ = [
    "Audit",
    "AuditSpec",
    "Card",
    "Comparison",
    "CrossDatasetTables",
    "Dataset",
    "Decision",
    "MetricFrame",
    "Monitoring",
    "PredictionResult",
    "Run",
    "Scores",
    "SideBySide",
    "__version__",
    "across",
    "audit",
    "audit_estimator",
    "card",
    "check",
    "compare",
    "crop",
    "describe",
    "estimator_predictions",
    "explain",
    "gate",
    "load",
    "metric_frame",
    "monitor",
    "plot",
    "predict",
    "read_predictions",
    "sample",
    "score",
    "side_by_side",
    "synthesize",
    "train_fairface",
    "train_finetune",
    "train_probe",
    "view",
]

_HOME = {
    "CrossDatasetTables": "api.across",
    "Audit": "api.audit",
    "AuditSpec": "core.spec",
    "Card": "cards",
    "Comparison": "api.compare",
    "Dataset": "core.containers",
    "Decision": "policy.decision",
    "MetricFrame": "api.metric_frame",
    "Monitoring": "api.monitor",
    "PredictionResult": "api.predict",
    "Run": "core.containers",
    "Scores": "core.containers",
    "SideBySide": "api.side_by_side",
    "across": "api.across",
    "estimator_predictions": "api.audit_estimator",
    "audit": "api.audit",
    "audit_estimator": "api.audit_estimator",
    "card": "api.card",
    "check": "api.check",
    "compare": "api.compare",
    "crop": "api.crop",
    "describe": "api.describe",
    "explain": "api.explain",
    "gate": "api.gate",
    "load": "datasets",
    "metric_frame": "api.metric_frame",
    "monitor": "api.monitor",
    "plot": "api.plot",
    "predict": "api.predict",
    "read_predictions": "predictions",
    "sample": "api.sample",
    "score": "tasks",
    "side_by_side": "api.side_by_side",
    "synthesize": "api.synthesize",
    "train_fairface": "api.train_fairface",
    "train_finetune": "api.train_finetune",
    "train_probe": "api.train_probe",
    "view": "api.view",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("isolux")
    if name in _HOME:
        value = getattr(importlib.import_module(f"isolux.{_HOME[name]}"), name)
        if not isinstance(value, type):
            from isolux.core.arguments import explain_argument_errors

            value = explain_argument_errors(value)
            value.__module__ = __name__  # where it is found again, by pickle too
        globals()[name] = value
        return value
    raise AttributeError(f"module 'isolux' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
