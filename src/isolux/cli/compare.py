"""``isolux compare``: two models on the same people, paired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import polars as pl

__all__ = ["compare", "made"]

_CLASSES = 10


def compare(
    first: str,
    second: str,
    *,
    out: str | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> None:
    """Say which groups gained and which lost from the first model to the second.

    Only people who are in both runs are compared: who withdrew in either is in neither.

    Parameters
    ----------
    first : str
        Run directory of the first model.
    second : str
        Run directory of the second model.
    out : str, optional
        Directory to write; default: print only.
    overwrite : bool
        Replace that directory.
    """
    from isolux.cli.screen import show_audit
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.compare import compare as compare_runs

    if out is not None:
        refuse_existing(out, overwrite=overwrite)
    found = compare_runs(first, second, **settings)
    report = found.report(out, overwrite=overwrite) if out is not None else None
    show_audit(found.run, report)
    _show_rankings(found.rankings, found.run.record["models"])


def made() -> Callable[..., None]:
    """Make the command."""
    from isolux.cli._flags import generated
    from isolux.verbs.compare import compare as compare_runs

    return generated(compare, compare_runs)


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
