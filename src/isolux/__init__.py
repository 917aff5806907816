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
    from isolux.cards import Card
    from isolux.datasets import load
    from isolux.policy import Decision
    from isolux.predictions import read_predictions
    from isolux.tasks import score
    from isolux.verbs.across import CrossDatasetTables, across
    from isolux.verbs.audit import Audit, audit
    from isolux.verbs.audit_estimator import audit_estimator, estimator_predictions
    from isolux.verbs.card import card
    from isolux.verbs.check import check
    from isolux.verbs.compare import Comparison, compare
    from isolux.verbs.crop import crop
    from isolux.verbs.describe import describe
    from isolux.verbs.explain import explain
    from isolux.verbs.gate import gate
    from isolux.verbs.metric_frame import MetricFrame, metric_frame
    from isolux.verbs.monitor import Monitoring, monitor
    from isolux.verbs.plot import plot
    from isolux.verbs.predict import PredictionResult, predict
    from isolux.verbs.sample import sample
    from isolux.verbs.side_by_side import SideBySide, side_by_side
    from isolux.verbs.synthesize import synthesize
    from isolux.verbs.train_fairface import train_fairface
    from isolux.verbs.train_finetune import train_finetune
    from isolux.verbs.train_probe import train_probe
    from isolux.verbs.view import view
    from isolux.vocabulary.containers import Dataset, Run, Scores
    from isolux.vocabulary.spec import AuditSpec

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
    "CrossDatasetTables": "verbs.across",
    "Audit": "verbs.audit",
    "AuditSpec": "vocabulary.spec",
    "Card": "cards",
    "Comparison": "verbs.compare",
    "Dataset": "vocabulary.containers",
    "Decision": "policy.decision",
    "MetricFrame": "verbs.metric_frame",
    "Monitoring": "verbs.monitor",
    "PredictionResult": "verbs.predict",
    "Run": "vocabulary.containers",
    "Scores": "vocabulary.containers",
    "SideBySide": "verbs.side_by_side",
    "across": "verbs.across",
    "estimator_predictions": "verbs.audit_estimator",
    "audit": "verbs.audit",
    "audit_estimator": "verbs.audit_estimator",
    "card": "verbs.card",
    "check": "verbs.check",
    "compare": "verbs.compare",
    "crop": "verbs.crop",
    "describe": "verbs.describe",
    "explain": "verbs.explain",
    "gate": "verbs.gate",
    "load": "datasets",
    "metric_frame": "verbs.metric_frame",
    "monitor": "verbs.monitor",
    "plot": "verbs.plot",
    "predict": "verbs.predict",
    "read_predictions": "predictions",
    "sample": "verbs.sample",
    "score": "tasks",
    "side_by_side": "verbs.side_by_side",
    "synthesize": "verbs.synthesize",
    "train_fairface": "verbs.train_fairface",
    "train_finetune": "verbs.train_finetune",
    "train_probe": "verbs.train_probe",
    "view": "verbs.view",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("isolux")
    if name in _HOME:
        value = getattr(importlib.import_module(f"isolux.{_HOME[name]}"), name)
        if not isinstance(value, type):
            from isolux.vocabulary.arguments import explain_argument_errors

            value = explain_argument_errors(value)
            value.__module__ = __name__  # where it is found again, by pickle too
        globals()[name] = value
        return value
    raise AttributeError(f"module 'isolux' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
