"""``isolux compare``: two models on the same people, paired."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
import typer

__all__ = ["compare"]

_CLASSES = 10


def compare(
    first: Annotated[str, typer.Argument(help="run directory of the first model")],
    second: Annotated[str, typer.Argument(help="run directory of the second model")],
    *,
    out: Annotated[str | None, typer.Option(help="directory to write; none: print only")] = None,
    id_from: Annotated[
        str | None,
        typer.Option(help="join people on: column (default: the whole id), basename, stem"),
    ] = None,
    allow_disagreement: Annotated[
        float, typer.Option(help="share of people whose truth or group may differ between runs")
    ] = 0.0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite/--no-overwrite", help="replace that directory")
    ] = False,
) -> None:
    """Say which groups gained and which lost from the first model to the second."""
    from isolux.cli.screen import show_audit
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.compare import compare as compare_runs

    if out is not None:
        refuse_existing(out, overwrite=overwrite)
    part: Any = id_from  # checked where it is used
    found = compare_runs(first, second, id_from=part, allow_disagreement=allow_disagreement)
    report = found.report(out, overwrite=overwrite) if out is not None else None
    show_audit(found.run, report)
    _show_rankings(found.rankings, found.run.record["models"])


def _show_rankings(rankings: pl.DataFrame, models: list[str]) -> None:
    """Print each attribute's classes by disparity, both models side by side."""
    from isolux.cli.screen import show_table

    def cell(row: dict[str, Any], side: str) -> list[str]:
        if row[f"rank_{side}"] is None:
            return ["–", "–"]
        worst, best = row[f"worst_{side}"], row[f"best_{side}"]
        return [str(row[f"rank_{side}"]), f"{100 * row[f'gap_{side}']:.1f} ({worst} < {best})"]

    for (metric, threshold, attribute), part in rankings.group_by(
        ["metric", "threshold", "attribute"], maintain_order=True
    ):
        rows = [
            [row["label"], *cell(row, "a"), *cell(row, "b")]
            for row in part.head(_CLASSES).iter_rows(named=True)
        ]
        columns = ["class", f"# {models[0]}", "gap, points", f"# {models[1]}", "gap, points"]
        typer.echo("")
        at = "" if threshold is None else f" at {threshold:g}"
        show_table(f"{metric}{at} by {attribute}: classes with the largest gaps", columns, rows)
