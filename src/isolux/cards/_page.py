"""A card as one HTML file, in the report's own dress: offline, escaped, printable."""

from __future__ import annotations

from isolux.cards._document import Bullets, Card, Paragraph, Said, Table
from isolux.report.html import page
from isolux.report.wording import safe_url

__all__ = ["page_of"]

_OPEN = 3
"""Tables of a part that are in sight; further ones are folded behind their captions."""


def page_of(card: Card) -> str:
    """Print a card as one HTML document."""
    kinds = {Table: "table", Paragraph: "paragraph", Bullets: "bullets", Said: "said"}
    parts = []
    for part in card.parts:
        seen, blocks = 0, []
        for block in part.blocks:
            seen += isinstance(block, Table)
            folded = isinstance(block, Table) and seen > _OPEN
            blocks.append({"kind": kinds[type(block)], "of": block, "folded": folded})
        parts.append({"title": part.title, "cites": part.cites, "blocks": blocks,
                      "lists_blanks": part is card.first_asking})  # fmt: skip
    return page(
        "card.html.j2",
        title=card.title,
        answer=card.answer,
        summary=card.run,
        card=card,
        parts=parts,
        follows=[(citation, safe_url(url)) for citation, url in card.follows],
    )
