"""``isolux curate``: the steps of building a dataset, in one file for each part."""

from __future__ import annotations

STEPS = {
    "concepts": "candidates",
    "candidates": "candidates",
    "quotas": "candidates",
    "init": "project",
    "add": "project",
    "unset": "project",
    "intake": "project",
    "decide": "project",
    "push": "annotation",
    "pull": "annotation",
    "tasks": "annotation",
    "answers": "annotation",
    "golden": "annotation",
    "sample": "quality",
    "quality": "quality",
    "consistency": "quality",
    "recheck": "quality",
    "suspects": "quality",
    "review": "quality",
    "status": "project",
    "show": "project",
    "consensus": "publication",
    "shapes": "publication",
    "anonymise": "publication",
    "publish": "publication",
    "grant": "ledger",
    "revoke": "ledger",
    "consent": "ledger",
}
"""The steps in order, each with its file; ``VERBS`` there maps a step to the public function whose
settings become flags, and ``EXAMPLES`` to an example for its help."""


def curate() -> None:
    """Build a dataset: photos come in and are judged, annotators agree, consent can be revoked."""
