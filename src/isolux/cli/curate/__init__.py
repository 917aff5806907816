"""``isolux curate``: steps of building a dataset; each file of this folder is one of them."""

from __future__ import annotations

__all__ = ["STEPS", "curate"]

STEPS = (
    "concepts", "candidates", "quotas",
    "init", "add", "intake", "decide", "push", "pull", "tasks", "answers", "golden", "raters",
    "sample", "quality", "consistency", "suspects", "review", "hashes",
    "status", "journal",
    "consensus", "shapes", "anonymise", "publish", "grant", "revoke", "consent",
)  # fmt: skip


def curate() -> None:
    """Build a dataset: photos come in and are judged, annotators agree, consent can be revoked."""
