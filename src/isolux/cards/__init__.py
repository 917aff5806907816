"""Cards: papers for those who must hand some to a customer, a regulator or a committee.

    a finished run, facts → content → a kind's ``card`` → Card → Markdown, HTML, JSON

Each kind is a file here. It says what it follows, shows the run's numbers with where each stands,
and names what neither the run nor the user's facts say. No card is a statement of conformity.
"""

from __future__ import annotations

from isolux.cards._croissant import (
    CONFORMS_TO,
    DATASET_FACTS,
    make_croissant_json,
    media_type,
    parse_day,
    rai_properties,
)
from isolux.cards._document import (
    Bullets,
    Card,
    CardColumn,
    CardFact,
    CardSection,
    CardTable,
    Paragraph,
)
from isolux.cards._facts import (
    CardFacts,
    all_fact_fields,
    facts_schema,
    make_facts_template,
    read_facts,
)
from isolux.cards._run_source import RunSource, find_groups_at_risk, make_run_source

__all__ = [
    "CONFORMS_TO",
    "DATASET_FACTS",
    "Bullets",
    "Card",
    "CardColumn",
    "CardFact",
    "CardFacts",
    "CardSection",
    "CardTable",
    "Paragraph",
    "RunSource",
    "all_fact_fields",
    "facts_schema",
    "find_groups_at_risk",
    "make_croissant_json",
    "make_facts_template",
    "make_run_source",
    "media_type",
    "parse_day",
    "rai_properties",
    "read_facts",
]
