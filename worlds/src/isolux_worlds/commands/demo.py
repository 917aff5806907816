"""``isolux demo``: audit a synthetic population whose disparities are planted."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    *,
    out: Annotated[str, typer.Option(help="the run directory to write")] = "demo",
    seed: Annotated[int, typer.Option(help="seed of the population and of the audit")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite/--no-overwrite", help="replace that directory")
    ] = False,
) -> None:
    """Audit a synthetic population; the report says what was planted and what was found."""
    from isolux.cli.screen import show_audit
    from isolux.io.atomic import refuse_existing
    from isolux_worlds.populations.demonstration import demonstrate

    refuse_existing(out, overwrite=overwrite)
    done = demonstrate(seed=seed)
    show_audit(done.run, done.report(out, overwrite=overwrite))
