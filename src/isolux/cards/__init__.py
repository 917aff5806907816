"""Cards: papers for those who must hand some to a customer, a regulator or a committee.

    a finished run, facts → content → a kind's ``card`` → Card → Markdown, HTML, JSON

Each kind is a file here. It says what it follows, shows the run's numbers with where each stands,
and names what neither the run nor the user's facts say. No card is a statement of conformity.
"""

from __future__ import annotations

from isolux.cards._croissant import (
    CONFORMS_TO,
    DATASET_FACTS,
    build_rai_properties,
    build_validated_croissant_json,
    guess_media_type,
    parse_date_or_none,
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
    build_facts_json_schema,
    build_facts_template_yaml,
    load_all_fact_fields,
    read_facts,
)
from isolux.cards._run_source import RunSource, build_run_source, find_significantly_worse_groups

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
    "build_facts_json_schema",
    "build_facts_template_yaml",
    "build_rai_properties",
    "build_run_source",
    "build_validated_croissant_json",
    "find_significantly_worse_groups",
    "guess_media_type",
    "load_all_fact_fields",
    "parse_date_or_none",
    "read_facts",
]
