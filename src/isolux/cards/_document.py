"""A card as one typed document: what it says, from where, and what it cannot say; no markup.

A kind of card makes a ``Card``; ``_markdown`` and a template of the report print it, so that two
formats never disagree. A number stands in a table whose ``source`` names the run's file, metric and
attribute, and whose row names the group, n and the interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_MAX_OPEN = 3
"""Tables of a part that are in sight; further ones are folded behind their captions."""


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
        facts = (b for part in self.parts for b in part.blocks if isinstance(b, Said))
        return tuple({fact.key: fact for fact in facts if not fact.texts}.values())

    def markdown(self) -> str:
        """Print it as Markdown, with the metadata before it where the kind has some."""
        from isolux.cards._markdown import markdown_of

        return markdown_of(self)

    def html(self) -> str:
        """Print it as one HTML file that works offline, in the report's own dress."""
        from isolux.report.html import page
        from isolux.report.wording import safe_url

        parts = []
        for part in self.parts:
            tables = [block for block in part.blocks if isinstance(block, Table)]
            blocks = [
                {
                    "kind": type(block).__name__.lower(),
                    "of": block,
                    "folded": any(block is table for table in tables[_MAX_OPEN:]),
                }
                for block in part.blocks
            ]
            lists_blanks = part is self.first_asking
            parts.append({"title": part.title, "cites": part.cites, "blocks": blocks,
                          "lists_blanks": lists_blanks})  # fmt: skip
        follows = [(citation, safe_url(url)) for citation, url in self.follows]
        return page("card.html.j2", title=self.title, answer=self.answer, summary=self.run,
                    card=self, parts=parts, follows=follows)  # fmt: skip

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
        from isolux.io.atomic import write_texts

        name = self.kind.replace("_", "-")
        texts = {f"{name}.md": self.markdown(), f"{name}.html": self.html()}
        data = self.json()
        texts |= {} if data is None else {f"{name}.json": data}
        _refuse_folder(Path(out), list(texts), overwrite=overwrite)
        return write_texts(Path(out), texts)


def _refuse_folder(folder: Path, names: list[str], *, overwrite: bool) -> None:
    """Refuse a run's own folder, files that may not be replaced, and a file in its place."""
    from isolux.io.atomic import RUN_MARK
    from isolux.vocabulary.errors import OutputError

    present = [name for name in names if (folder / name).exists()]
    if (folder / RUN_MARK).is_file():
        problem = (
            "a card must not be in a run's own folder, because the run's next version would "
            "replace it"
        )
        expected, found = "another folder, such as `cards`", "a run"
    elif present and not overwrite:
        problem = "there is a card of this kind already"
        expected, found = "another folder, or --overwrite", ", ".join(present)
    elif any(path.exists() and not path.is_dir() for path in (folder, *folder.parents)):
        problem = "the folder for the card cannot be made"
        expected, found = "a folder, or a new path", "a file in its place"
    else:
        return
    raise OutputError(problem, expected=expected, found=found, where=str(folder))
