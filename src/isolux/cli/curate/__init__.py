"""``isolux curate``: steps of building a dataset; each file of this folder is one of them."""

from __future__ import annotations

import importlib

import typer

from isolux.cli._help import Command

__all__ = ["STEPS", "curate", "group"]

STEPS = (
    "concepts", "candidates", "quotas",
    "init", "add", "intake", "decide", "push", "pull", "tasks", "answers", "golden", "raters",
    "sample", "quality", "consistency", "suspects", "review", "hashes",
    "status", "journal",
    "consensus", "shapes", "anonymise", "publish", "grant", "revoke", "consent",
)  # fmt: skip


def curate() -> None:
    """Build a dataset: photos come in and are judged, annotators agree, consent can be revoked."""


def group() -> typer.Typer:
    """Make the command with its steps."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=curate.__doc__)
    app.callback()(curate)
    for step in STEPS:
        app.command(step, cls=Command)(importlib.import_module(f"{__name__}.{step}").made())
    return app
