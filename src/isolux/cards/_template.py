"""A first file of facts for one kind of card: every key that it asks for, with a comment a line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from isolux.cards._scenarios import at_risk
from isolux.cards._source import Source
from isolux.vocabulary.info import CardInfo

__all__ = ["facts_template"]


def facts_template(kind: str, info: CardInfo, source: Source | None = None) -> str:
    """Write a file of facts as YAML, all blank."""
    lines = [
        f"# Facts for isolux card RUN --kind {kind.replace('_', '-')} --facts THIS_FILE",
        "# A value is a text, a list of texts, or says: and source:. Leave out what is not known:",
        "# the card then names it as not stated. A file may hold the facts of several kinds.",
        "facts: 1",
    ]
    for ask in info.asks:
        lines += ["", f"# {ask.question}", f"{ask.key}:"]
    if kind == "bias_profile" and source is not None:
        lines += ["", *_scenarios(source)]
    return "\n".join(lines) + "\n"


def _scenarios(source: Source) -> Iterator[str]:
    """Name the groups that the profile names by itself; names are quoted as JSON, which YAML is."""
    yield "# groups at risk, as the run names them; add others"
    yield "scenarios:"
    for section in source.summary.sections:
        for row in at_risk(section, source.summary.audited.alpha):
            yield f"  - attribute: {json.dumps(section.attribute, ensure_ascii=False)}"
            yield f"    group: {json.dumps(row.group, ensure_ascii=False)}"
            yield "    harm:            # what happens to these people when the model is wrong"
            yield "    threshold:       # the difference that you accept"
            yield "    mitigation:      # what is done about it"
            yield "    review_trigger:  # when this is looked at again"
