"""A card as Markdown: every text from outside is escaped, so that none becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isolux.cards._document import Block, Bullets, Card, Paragraph, Said, Table
from isolux.report.wording import safe_url
from isolux.vocabulary.printable import plain

_MARKUP = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})
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
    text = _MARKUP.sub(r"\\\1", plain(text).translate(_ENTITIES))
    text = text.replace("://", "&#58;//").replace("www.", "www&#46;")
    return _START.sub(r"\1\\\2", text)  # of "1." the dot: a digit cannot be escaped


def markdown_of(card: Card) -> str:
    """Print a card as Markdown."""
    return "\n".join(_lines(card)).rstrip() + "\n"


def _lines(card: Card) -> Iterator[str]:
    if card.metadata:
        yield card.metadata.rstrip() + "\n"
    yield f"# {escaped(card.title)}\n"
    yield from (f"> **Warning.** {escaped(text)}\n" for text in card.warnings)
    yield from (f"{escaped(text)}\n" for text in (card.answer, card.statement) if text)
    for part in card.parts:
        if part is card.first_asking:
            n, keys = len(card.blanks), ", ".join(f"`{one.key}`" for one in card.blanks)
            yield (f"**{n} fact{' is' if n == 1 else 's are'} not stated** and marked below. Give "
                   f"{'it' if n == 1 else 'them'} with `--facts FILE`: {keys}.\n")  # fmt: skip
        yield f"## {escaped(part.title)}\n"
        if part.cites:
            yield f"*{escaped(part.cites)}*\n"
        yield from map(_block, part.blocks)
    yield "## What this card follows\n"
    for citation, address in card.follows:
        url = safe_url(address)
        yield f"- {escaped(citation)}" + (f" <{url}>" if url else "")
    yield "\n## Where its numbers come from\n"
    yield _bullets(card.provenance)


def _bullets(texts: tuple[str, ...]) -> str:
    return "\n".join(f"- {escaped(text)}" for text in texts)


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"{escaped(text)}\n"
        case Bullets(texts):
            return _bullets(texts) + "\n"
        case Table():
            return _table(block)
        case Said(label, texts, source, key):
            label = f"**{escaped(label[:1].upper() + label[1:])}**"
            source = f" *({escaped(source)})*" if source else ""
            if not texts:
                return f"{label}: *not stated* (`{key}`)\n"
            if len(texts) == 1:
                return f"{label}: {escaped(texts[0])}{source}\n"
            return f"{label}{source}:\n\n{_bullets(texts)}\n"


def _table(table: Table) -> str:
    head = [escaped(column.title) for column in table.columns]
    rule = ["---:" if column.number else "---" for column in table.columns]
    rows = [head, rule, *(map(escaped, row) for row in table.rows)]
    lines = [f"### {escaped(table.caption)}\n", *(f"| {' | '.join(row)} |" for row in rows)]
    lines += ["", f"Source: {escaped(table.source)}.\n"]
    return "\n".join([*lines, *(f"{escaped(note)}\n" for note in table.notes)])
