"""``isolux curate``: steps of building a dataset; each file here has those of one part."""

from __future__ import annotations

STEPS = {
    "concepts": "candidates",
    "candidates": "candidates",
    "quotas": "candidates",
    "init": "project",
    "add": "project",
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
"""The steps in their order, each with its file; ``VERBS`` there names the public function whose
settings are flags of a step too, and ``EXAMPLES`` gives its help an example."""


def curate() -> None:
    """Build a dataset: photos come in and are judged, annotators agree, consent can be revoked."""
