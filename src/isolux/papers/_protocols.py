"""What papers do alike: lay the run of a protocol out as the paper's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import refuse_unknown_names
from isolux.core.tables import Status

Protocols = Mapping[str, Mapping[str, object]]
Layout = Callable[[Run], pl.DataFrame]
"""A run to one of the paper's tables; without rows where the run does not have what it needs."""


def check_protocol_exists(paper: str, protocols: Protocols, protocol_name: str) -> None:
    """Refuse a protocol that the paper does not have."""
    refuse_unknown_names("protocol", [protocol_name], protocols, where=f"papers/{paper}")


def build_nonempty_tables_by_caption(
    paper: str, protocols: Protocols, layouts: Mapping[str, Layout], protocol_name: str, run: Run
) -> dict[str, pl.DataFrame]:
    """Lay the run of a protocol out by caption; tables without rows are left out."""
    check_protocol_exists(paper, protocols, protocol_name)
    tables = {caption: layout(run) for caption, layout in layouts.items()}
    return {caption: table for caption, table in tables.items() if not table.is_empty()}


def find_analysis_table_or_empty(run: Run, analysis: str, caption_prefix: str = "") -> pl.DataFrame:
    """Read the first table of an analysis whose caption begins so off the record of a run."""
    tables: Mapping[str, Any] = (run.record.get("explained") or {}).get(analysis) or {}
    for title, table in tables.items():
        if title.startswith(caption_prefix):
            return pl.DataFrame(
                table["rows"], schema=table["columns"], orient="row", infer_schema_length=None
            )
    return pl.DataFrame()


def explain_missing_table(run: Run) -> str:
    """Say why a table of a run has no rows."""
    groups = run.group_metrics.drop_nulls("attribute")
    too_small = groups.filter(status=Status.INSUFFICIENT_UNITS)
    if too_small.is_empty():
        return "this run does not have its groups or metrics"
    min_units = (run.record.get("spec") or {}).get("min_units") or 0
    largest = too_small.row(int(too_small["n_units"].arg_max() or 0), named=True)
    class_text = f" of the class {largest['label']}" if largest["label"] is not None else ""
    return (
        f"{too_small.height:,} of {groups.height:,} groups have fewer than the {min_units:,} "
        f"people that it needs (--min-units), the largest of them {largest['n_units']:,} "
        f"({largest['group']}{class_text}), and no two that can be compared are left"
    )
