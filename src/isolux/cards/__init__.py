"""Cards: papers for those who must hand some to a customer, a regulator or a committee.

    a finished run, facts → content → a kind's ``card`` → Card → Markdown, HTML, JSON

Each kind is a file here. It says what it follows, shows the run's numbers with where each stands,
and names what neither the run nor the user's facts say. No card is a statement of conformity.
"""

from __future__ import annotations

from isolux.cards._croissant import ASKS, CONFORMS, croissant_json, day_of, rai_of, type_of
from isolux.cards._document import Bullets, Card, Column, Paragraph, Part, Said, Table
from isolux.cards._facts import Facts, facts_schema, facts_template, known_asks, read_facts
from isolux.cards._source import Source, at_risk, source_of

__all__ = [
    "ASKS",
    "CONFORMS",
    "Bullets",
    "Card",
    "Column",
    "Facts",
    "Paragraph",
    "Part",
    "Said",
    "Source",
    "Table",
    "at_risk",
    "croissant_json",
    "day_of",
    "facts_schema",
    "facts_template",
    "known_asks",
    "rai_of",
    "read_facts",
    "source_of",
    "type_of",
]
