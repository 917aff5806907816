"""``isolux compare --datasets``: models on several datasets, as FairFace's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isolux.cli import document
from isolux.cli.streams import say


def show_datasets(runs: Sequence[str], *, out: str | None, **settings: Any) -> None:
    """Print the tables of models on several datasets, and write them where a folder is named."""
    from isolux.cli.screen import show_table
    from isolux.verbs.across import across as lay_out

    found = lay_out(_named(runs), out=out, **settings)
    for text in found.warnings:
        document.warn(text)
    document.give("values", found.values, of=found.folder)
    for caption, table in found.tables.items():
        say()
        rows = [["–" if cell is None else _cell(cell) for cell in row] for row in table.iter_rows()]
        show_table(caption, table.columns, rows)
    if found.folder is not None:
        say()
        document.wrote("tables", found.folder)


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _named(runs: Sequence[str]) -> dict[str, list[str]]:
    from isolux.vocabulary.errors import SpecError

    found: dict[str, list[str]] = {}
    for text in runs:
        name, equals, paths = text.partition("=")
        if not equals or not name.strip():
            raise SpecError(
                "it is not said which dataset a run is of", expected="DATASET=RUN", found=repr(text)
            )
        found.setdefault(name.strip(), []).extend(
            path.strip() for path in paths.split(",") if path.strip()
        )
    return found
