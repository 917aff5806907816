"""``isolux demo``: audit a synthetic population whose disparities are injected."""

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
    pixels: Annotated[
        bool,
        typer.Option(
            "--pixels/--no-pixels",
            help="paint photos, run a real network on them and audit its answers",
        ),
    ] = False,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate/--no-gate",
            help="a border gate: people searched for in a gallery, and their ages estimated",
        ),
    ] = False,
) -> None:
    """Audit a synthetic population; the report says what was injected and what was found."""
    from isolux.cli.audit_screen import print_audit
    from isolux.io.atomic import refuse_existing

    if pixels:
        _run_demo_from_images(out, seed, overwrite=overwrite)
    elif gate:
        from isolux_worlds.populations.border import write_and_audit_gate

        for audit, report in write_and_audit_gate(out, seed=seed, overwrite=overwrite):
            print_audit(audit.run, report)
    else:
        from isolux_worlds.populations.demonstration import demonstrate

        refuse_existing(out, overwrite=overwrite)
        demonstration = demonstrate(seed=seed)
        print_audit(demonstration.run, demonstration.report(out, overwrite=overwrite))


def _run_demo_from_images(out: str, seed: int, *, overwrite: bool) -> None:
    from isolux.cli.audit_screen import print_audit
    from isolux.cli.prediction_progress import track_predictions
    from isolux.core.extras import import_optional
    from isolux_worlds.commands.synthesize import show_progress_on_terminal
    from isolux_worlds.networks.audit import audit_masks

    import_optional(
        "onnxruntime", package="onnxruntime", extra="onnx", purpose="the demo from pixels"
    )
    with show_progress_on_terminal() as tell:
        audit, report = audit_masks(
            out, seed=seed, overwrite=overwrite, progress=tell, watched=track_predictions
        )
    print_audit(audit.run, report)
