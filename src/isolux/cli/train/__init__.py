"""``isolux train``: networks and heads; each file of this folder is a command of its name."""

from __future__ import annotations

import importlib

import typer

from isolux.cli._help import Command

__all__ = ["KINDS", "group", "train"]

KINDS = ("fairface", "finetune", "probe")


def train() -> None:
    """Train FairFace's network, or a head on a model's features, by one recipe for all compared."""


def group() -> typer.Typer:
    """Make the command with what can be trained."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=train.__doc__)
    app.callback()(train)
    for kind in KINDS:
        app.command(kind, cls=Command)(importlib.import_module(f"{__name__}.{kind}").made())
    return app
