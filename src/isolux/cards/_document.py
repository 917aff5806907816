"""A card as one typed document: what it says, from where, and what it cannot say; no markup.

A kind of card makes a ``Card``; it is printed here as Markdown and by a template of the report as
HTML, so that two formats never disagree. A number stands in a table whose ``source`` names the
run's file, metric and attribute, and whose row names the group, n and the interval.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isolux.core.errors import OutputError
from isolux.core.printable import clean_line
from isolux.report.wording import keep_http_url_only

_MARKUP_PATTERN = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})
_LINE_START_PATTERN = re.compile(r"^(\d*)(#{1,6}\s|[-+]\s|(?<=\d)[.)]\s|=+$|-{3,}$)")


@dataclass(frozen=True, slots=True)
class CardColumn:
    """A column's heading, and whether its cells are numbers."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class CardTable:
    """Cells as text; the first column names the row. ``source``: where each row can be found."""

    caption: str
    columns: tuple[CardColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    source: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A few sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """Independent sentences, as a list."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CardFact:
    """A fact: what it answers, what is said, and by whom.

    ``texts`` is empty where it was not stated; ``key`` is then what the file of facts would call
    it. ``source`` names who says so: the run, or the user's file.
    """

    label: str
    texts: tuple[str, ...]
    source: str = ""
    key: str = ""


CardBlock = CardTable | Paragraph | Bullets | CardFact


@dataclass(frozen=True, slots=True)
class CardSection:
    """A heading, the paragraph of a law or standard that it answers, and what stands below."""

    title: str
    blocks: tuple[CardBlock, ...]
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
    parts : tuple of CardSection
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
    parts: tuple[CardSection, ...]
    follows: tuple[tuple[str, str], ...]
    provenance: tuple[str, ...]
    metadata: str = ""
    data: Mapping[str, Any] | None = None
    run: Any = field(default=None, repr=False, compare=False)

    @property
    def first_asking(self) -> CardSection | None:
        """The first part with facts; what was not stated is listed before it."""
        sections_with_facts = (
            p for p in self.parts if any(isinstance(b, CardFact) for b in p.blocks)
        )
        return next(sections_with_facts, None) if self.blanks else None

    @property
    def blanks(self) -> tuple[CardFact, ...]:
        """The facts that were not stated, each once."""
        facts = (b for section in self.parts for b in section.blocks if isinstance(b, CardFact))
        return tuple({fact.key: fact for fact in facts if not fact.texts}.values())

    def markdown(self) -> str:
        """Print it as Markdown, with the metadata before it where the kind has some."""
        return "\n".join(_yield_card_markdown(self)).rstrip() + "\n"

    def html(self) -> str:
        """Print it as one HTML file that works offline, in the report's style."""
        from isolux.report.html import render_run_page

        follows = [(citation, keep_http_url_only(url)) for citation, url in self.follows]
        return render_run_page(
            "card.html.j2",
            title=self.title,
            answer=self.answer,
            summary=self.run,
            card=self,
            follows=follows,
        )

    def json(self) -> str | None:
        """Print its data as JSON; None where the kind has no schema."""
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
        json_text = self.json()
        texts |= {} if json_text is None else {f"{name}.json": json_text}
        _check_output_folder(Path(out), list(texts), overwrite=overwrite)
        return write_texts(Path(out), texts)


_RUN_FOLDER_PROBLEM = (
    "a card must not be in a run's own folder, because the run's next version would replace it"
)


def _check_output_folder(folder: Path, file_names: list[str], *, overwrite: bool) -> None:
    """Refuse a run's own folder, files that may not be replaced, and a file in its place."""
    from isolux.io.atomic import RUN_MARK

    present = [name for name in file_names if (folder / name).exists()]
    is_file = any(path.exists() and not path.is_dir() for path in (folder, *folder.parents))
    refusals = (
        (
            (folder / RUN_MARK).is_file(),
            _RUN_FOLDER_PROBLEM,
            "another folder, such as `cards`",
            "a run",
        ),
        (
            present and not overwrite,
            "there is a card of this kind already",
            "another folder, or --overwrite",
            ", ".join(present),
        ),
        (
            is_file,
            "the folder for the card cannot be made",
            "a folder, or a new path",
            "a file in its place",
        ),
    )
    for is_wrong, problem, expected, found_text in refusals:
        if is_wrong:
            raise OutputError(problem, expected=expected, found=found_text, where=str(folder))


def escape_markdown(text: str) -> str:
    r"""Escape what Markdown, HTML in it, or a mention would read as more than text.

    Examples
    --------
    >>> escape_markdown("a|b *c* <b> skin_tone"), escape_markdown("# not a heading"), escape_markdown("http://a.org")
    ('a\\|b \\*c\\* &lt;b&gt; skin_tone', '\\# not a heading', 'http&#58;//a.org')
    >>> print(escape_markdown("1. no list"))
    1\. no list
    """
    text = _MARKUP_PATTERN.sub(r"\\\1", clean_line(text).translate(_ENTITIES))
    text = text.replace("://", "&#58;//").replace("www.", "www&#46;")
    return _LINE_START_PATTERN.sub(r"\1\\\2", text)  # of "1." the dot: a digit cannot be escaped


def _yield_card_markdown(card: Card) -> Iterator[str]:
    if card.metadata:
        yield card.metadata.rstrip() + "\n"
    yield f"# {escape_markdown(card.title)}\n"
    yield from (f"> **Warning.** {escape_markdown(text)}\n" for text in card.warnings)
    yield from (f"{escape_markdown(text)}\n" for text in (card.answer, card.statement) if text)
    for section in card.parts:
        if section is card.first_asking:
            n, keys = len(card.blanks), ", ".join(f"`{blank.key}`" for blank in card.blanks)
            yield (
                f"**{n} fact{' is' if n == 1 else 's are'} not stated** and marked below. Give "
                f"{'it' if n == 1 else 'them'} with `--facts FILE`: {keys}.\n"
            )
        yield f"## {escape_markdown(section.title)}\n"
        if section.cites:
            yield f"*{escape_markdown(section.cites)}*\n"
        yield from map(_format_markdown_block, section.blocks)
    yield "## What this card follows\n"
    for citation, address in card.follows:
        url = keep_http_url_only(address)
        yield f"- {escape_markdown(citation)}" + (f" <{url}>" if url else "")
    yield "\n## Where its numbers come from\n"
    yield _format_markdown_bullets(card.provenance)


def _format_markdown_bullets(texts: tuple[str, ...]) -> str:
    return "\n".join(f"- {escape_markdown(text)}" for text in texts)


def _format_markdown_block(block: CardBlock) -> str:
    match block:
        case Paragraph(text):
            return f"{escape_markdown(text)}\n"
        case Bullets(texts):
            return _format_markdown_bullets(texts) + "\n"
        case CardTable():
            return _format_markdown_table(block)
        case CardFact(label, texts, source, key):
            label = f"**{escape_markdown(label[:1].upper() + label[1:])}**"
            source = f" *({escape_markdown(source)})*" if source else ""
            if not texts:
                return f"{label}: *not stated* (`{key}`)\n"
            if len(texts) == 1:
                return f"{label}: {escape_markdown(texts[0])}{source}\n"
            return f"{label}{source}:\n\n{_format_markdown_bullets(texts)}\n"


def _format_markdown_table(table: CardTable) -> str:
    headings = [escape_markdown(column.title) for column in table.columns]
    alignments = ["---:" if column.number else "---" for column in table.columns]
    rows = [headings, alignments, *(map(escape_markdown, row) for row in table.rows)]
    lines = [f"### {escape_markdown(table.caption)}\n", *(f"| {' | '.join(row)} |" for row in rows)]
    lines += ["", f"Source: {escape_markdown(table.source)}.\n"]
    return "\n".join([*lines, *(f"{escape_markdown(note)}\n" for note in table.notes)])
