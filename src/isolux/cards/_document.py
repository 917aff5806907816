"""A card as one typed document: what it says, from where, and what it cannot say; no markup.

A kind of card makes a ``Card``; ``_markdown`` and ``_page`` print it, so that two formats never
disagree. A number stands in a table whose ``source`` names the run's file, metric and attribute,
and whose row names the group, n and the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Bullets", "Card", "Column", "Paragraph", "Part", "Said", "Table"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, and whether its cells are numbers."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; the first column names the row. ``source``: where each row can be found."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    source: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A few sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences that do not lean on one another."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A fact: what it answers, what is said, and by whom.

    ``texts`` is empty where it was not stated; ``key`` is then what the file of facts would call
    it. ``source`` names who says so: the run, or the user's file.
    """

    label: str
    texts: tuple[str, ...]
    source: str = ""
    key: str = ""


Block = Table | Paragraph | Bullets | Said


@dataclass(frozen=True, slots=True)
class Part:
    """A heading, the paragraph of a law or standard that it answers, and what stands below."""

    title: str
    blocks: tuple[Block, ...]
    cites: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A card of a finished audit.

    Parameters
    ----------
    kind : str
        The kind, with ``_``: ``"model_card"``.
    title, statement, answer : str
        What it is of; what it is not; what the audit found, in a few sentences (of data: empty).
    warnings : tuple of str
        What must be read before the numbers.
    parts : tuple of Part
    follows : tuple of (str, str)
        What it follows: a citation, and its address or nothing.
    provenance : tuple of str
        The run, its hashes and the file of facts.
    metadata : str
        What stands before the Markdown: YAML between two lines of ``---``; empty: nothing.
    data : mapping, optional
        What ``json`` gives, where the kind has a schema.
    run : Any
        The summary that the page takes its frame from.
    """

    kind: str
    title: str
    statement: str
    answer: str
    warnings: tuple[str, ...]
    parts: tuple[Part, ...]
    follows: tuple[tuple[str, str], ...]
    provenance: tuple[str, ...]
    metadata: str = ""
    data: Mapping[str, Any] | None = None
    run: Any = field(default=None, repr=False, compare=False)

    @property
    def first_asking(self) -> Part | None:
        """The first part with facts; what was not stated is listed before it."""
        asking = (p for p in self.parts if any(isinstance(b, Said) for b in p.blocks))
        return next(asking, None) if self.blanks else None

    @property
    def blanks(self) -> tuple[Said, ...]:
        """The facts that were not stated, each once."""
        found = {
            block.key: block
            for part in self.parts
            for block in part.blocks
            if isinstance(block, Said) and not block.texts
        }
        return tuple(found.values())

    def markdown(self) -> str:
        """Print it as Markdown, with the metadata before it where the kind has some."""
        from isolux.cards._markdown import markdown_of

        return markdown_of(self)

    def html(self) -> str:
        """Print it as one HTML file that works offline."""
        from isolux.cards._page import page_of

        return page_of(self)

    def json(self) -> str | None:
        """Print its data as JSON; None where the kind has no schema."""
        import json

        if self.data is None:
            return None
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, out: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write ``KIND.md``, ``KIND.html`` and, where there is data, ``KIND.json`` into a folder.

        Parameters
        ----------
        out : str or Path
            The folder; it is made where it is not there.
        overwrite : bool
            Replace files of these names.

        Returns
        -------
        list of Path
            The files that were written.

        Raises
        ------
        OutputError
            A file is there and may not be replaced, or cannot be written.
        """
        from isolux.cards._files import write_files

        named: dict[str, Callable[[], str | None]] = {
            "md": self.markdown, "html": self.html, "json": self.json,
        }  # fmt: skip
        name = self.kind.replace("_", "-")
        texts = {f"{name}.{end}": made() for end, made in named.items()}
        kept = {file: text for file, text in texts.items() if text is not None}
        return write_files(Path(out), kept, overwrite=overwrite)
