"""The stage that every audit passes between scoring and measuring: whether its input can be right.

One table of checks, one file each. A check compares predictions with truth, or looks for a pattern
that a wrong file, column, unit or code makes and that people and models do not. It warns by a
``Caution``, which is read before any number, or refuses by a ``SpecError`` or ``TableError``.

To add a check, write ``plausibility/<name>.py`` with ``INFO`` (a ``PlausibilityInfo``) and
``check(inputs) -> list[Caution]``, name it in ``CHECKS``, add its row to
``docs/methods/plausibility.md`` and write ``tests/plausibility/test_<name>.py`` with
``build_broken_inputs()``. A check costs a few milliseconds per 10,000 people, and its memory grows
no faster than their number.
"""

from __future__ import annotations

from types import ModuleType

from isolux.core.notes import Caution
from isolux.plausibility import (
    answer_words,
    constant_answers,
    failing_groups,
    geometry_transforms,
    missing_group_labels,
    missing_truth,
    mixed_units,
    numbers_as_classes,
    pair_scores,
    perfect_answers,
    permuted_classes,
    placeholders,
    repeated_annotations,
    reversed_scores,
)
from isolux.plausibility._audit_inputs import AuditInputs

__all__ = ["CHECKS", "AuditInputs", "check_plausibility"]

CHECKS: tuple[ModuleType, ...] = (
    perfect_answers,
    placeholders,
    permuted_classes,
    geometry_transforms,
    repeated_annotations,
    reversed_scores,
    constant_answers,
    mixed_units,
    failing_groups,
    answer_words,
    numbers_as_classes,
    pair_scores,
    missing_truth,
    missing_group_labels,
)
"""In the order in which their cautions are read: what makes every number wrong comes first."""


def check_plausibility(inputs: AuditInputs) -> tuple[Caution, ...]:
    """Run every check that applies to the task; the first refusal ends the audit."""
    cautions: list[Caution] = []
    for plugin in CHECKS:
        if plugin.INFO.tasks and inputs.task not in plugin.INFO.tasks:
            continue
        if plugin.INFO.needs_predictions and inputs.predictions is None:
            continue
        cautions += plugin.check(inputs)
    return tuple(cautions)
