"""A card as Markdown: every text from outside is escaped, so that none becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isolux.cards._document import Block, Bullets, Card, Paragraph, Part, Said, Table
from isolux.report.wording import plain, safe_url

__all__ = ["escaped", "markdown_of"]

_MARKUP = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_START = re.compile(r"^(\d*)(#{1,6}\s|[-+]\s|(?<=\d)[.)]\s|=+$|-{3,}$)")


def escaped(text: str) -> str:
    r"""Escape what Markdown, HTML in it, or a mention would read as more than text.

    Examples
    --------
    >>> escaped("a|b *c* <b> skin_tone"), escaped("# not a heading"), escaped("http://a.org")
    ('a\\|b \\*c\\* &lt;b&gt; skin_tone', '\\# not a heading', 'http&#58;//a.org')
    >>> print(escaped("1. no list"))
    1\. no list
    """
    text = "".join(_ENTITIES.get(letter, letter) for letter in plain(text))
    text = _MARKUP.sub(r"\\\1", text).replace("://", "&#58;//").replace("www.", "www&#46;")
    return _START.sub(r"\1\\\2", text)  # of "1." the dot: a digit cannot be escaped


def markdown_of(card: Card) -> str:
    """Print a card as Markdown."""
    lines = [card.metadata.rstrip() + "\n"] if card.metadata else []
    lines.append(f"# {escaped(card.title)}\n")
    lines += [f"> **Warning.** {escaped(text)}\n" for text in card.warnings]
    lines += [f"{escaped(text)}\n" for text in (card.answer, card.statement) if text]
    for part in card.parts:
        lines += _blanks(card) if part is card.first_asking else ()
        lines += _part(part)
    lines += ["## What this card follows\n", *_follows(card)]
    lines += ["\n## Where its numbers come from\n", *(f"- {escaped(t)}" for t in card.provenance)]
    return "\n".join(lines).rstrip() + "\n"


def _blanks(card: Card) -> Iterator[str]:
    n = len(card.blanks)
    yield (f"**{n} fact{' is' if n == 1 else 's are'} not stated** and marked below. Give "
           f"{'it' if n == 1 else 'them'} with `--facts FILE`: "
           + ", ".join(f"`{one.key}`" for one in card.blanks) + ".\n")  # fmt: skip


def _part(part: Part) -> Iterator[str]:
    yield f"## {escaped(part.title)}\n"
    if part.cites:
        yield f"*{escaped(part.cites)}*\n"
    for block in part.blocks:
        yield _block(block)


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"{escaped(block.text)}\n"
    if isinstance(block, Bullets):
        return "\n".join(f"- {escaped(text)}" for text in block.texts) + "\n"
    if isinstance(block, Said):
        return _said(block)
    return _table(block)


def _said(block: Said) -> str:
    label = f"**{escaped(block.label[:1].upper() + block.label[1:])}**"
    if not block.texts:
        return f"{label}: *not stated* (`{block.key}`)\n"
    source = f" *({escaped(block.source)})*" if block.source else ""
    if len(block.texts) == 1:
        return f"{label}: {escaped(block.texts[0])}{source}\n"
    listed = "\n".join(f"- {escaped(text)}" for text in block.texts)
    return f"{label}{source}:\n\n{listed}\n"


def _table(table: Table) -> str:
    head = " | ".join(escaped(column.title) for column in table.columns)
    rule = " | ".join("---:" if column.number else "---" for column in table.columns)
    rows = [" | ".join(escaped(cell) for cell in row) for row in table.rows]
    lines = [f"### {escaped(table.caption)}\n", f"| {head} |", f"| {rule} |"]
    lines += [f"| {row} |" for row in rows]
    lines += ["", f"Source: {escaped(table.source)}.\n"]
    lines += [f"{escaped(note)}\n" for note in table.notes]
    return "\n".join(lines)


def _follows(card: Card) -> Iterator[str]:
    for citation, address in card.follows:
        url = safe_url(address)
        yield f"- {escaped(citation)}" + (f" <{url}>" if url else "")
