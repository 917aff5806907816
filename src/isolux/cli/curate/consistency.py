"""``isolux curate consistency``: do annotators of a vendor agree, and vendors with one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["consistency"]

VERB = "isolux.verbs.annotation_quality:vendor_consistency"


def consistency(
    table: str, *, out: Path | None = None, overwrite: bool = False, **settings: Any
) -> None:
    """Compare sets of annotations of the same units within and between vendors, by group.

    Parameters
    ----------
    table : str
        One row per answer: unit, annotator, vendor, type, and answer, or x, y, w, h, or points.
    out : Path, optional
        A folder for the tables; default: only print them.
    overwrite : bool
        Replace an earlier folder of tables.
    """
    from isolux.cli.curate._quality_tables import refuse_standing, show_quality
    from isolux.verbs.annotation_quality import vendor_consistency

    refuse_standing(out, overwrite=overwrite)
    show_quality(vendor_consistency(table, **settings), out, overwrite=overwrite)
