"""Tables of annotation quality on the screen, and in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isolux.cli import document

if TYPE_CHECKING:
    from isolux.verbs.annotation_quality import Quality

__all__ = ["refuse_standing", "show_quality"]


def refuse_standing(out: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder that stands there already before anything is measured and written down."""
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.annotation_quality.measured import MARK

    if out is not None:
        target = out.expanduser().resolve()
        refuse_existing(target, overwrite=overwrite, marks=(MARK,), what="quality folder")


def show_quality(found: Quality, out: Path | None, *, overwrite: bool) -> None:
    """Say what was found, warnings first; where a folder is named, write the tables."""
    import polars as pl

    from isolux.cli.screen import show_wide
    from isolux.vocabulary.notes import by_severity

    cautions, notes = by_severity(found.notes)
    missed = found.types.filter(verdict="missed")
    for name, part in missed.select("type", "part").unique(maintain_order=True).iter_rows():
        document.warn(f"{name}: agreement ({part}) is below its threshold")
    for caution in cautions:
        document.warn(caution)
    numbers = pl.selectors.float() - pl.selectors.by_name("p_adjusted", require_all=False)
    title = "Agreement, 0 to 1 (met, missed: the whole interval is beyond the threshold)"
    show_wide(title, found.types.drop("method").with_columns(numbers.round(3)))
    if found.groups.height:
        told = found.groups.with_columns(numbers.round(3))
        show_wide("By group of people (difference: the group minus everyone)", told)
    for note in notes:
        document.note(note)
    if out is not None:
        document.wrote("quality", found.write(out, overwrite=overwrite))
