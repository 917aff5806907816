"""``isolux curate``: steps of building a dataset; each file here has those of one part."""

from __future__ import annotations

import importlib

import typer

from isolux.cli._flags import generated
from isolux.cli._help import Command

__all__ = ["STEPS", "curate", "group"]

STEPS = {
    "concepts": "candidates", "candidates": "candidates", "quotas": "candidates",
    "init": "project", "add": "project", "intake": "project", "decide": "project",
    "push": "annotation", "pull": "annotation", "tasks": "annotation", "answers": "annotation",
    "golden": "annotation",
    "sample": "quality", "quality": "quality", "consistency": "quality", "suspects": "quality",
    "review": "quality",
    "status": "project", "show": "project",
    "consensus": "publication", "shapes": "publication", "anonymise": "publication",
    "publish": "publication", "grant": "ledger", "revoke": "ledger", "consent": "ledger",
}  # fmt: skip
"""The steps in their order, each with its file; ``VERBS`` there names the public function whose
settings are flags of a step too."""


def curate() -> None:
    """Build a dataset: photos come in and are judged, annotators agree, consent can be revoked."""


def group() -> typer.Typer:
    """Make the command with its steps."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=curate.__doc__)
    app.callback()(curate)
    for step, file in STEPS.items():
        module = importlib.import_module(f"{__name__}.{file}")
        verb = getattr(module, "VERBS", {}).get(step)
        app.command(step, cls=Command)(generated(getattr(module, step), verb))
    return app
