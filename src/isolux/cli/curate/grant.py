"""``isolux curate grant``: add to a ledger of consent what people granted."""

from __future__ import annotations

from typing import Any

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["grant"]

VERB = "isolux.verbs.consent:add_consent"


def grant(ledger: str, **settings: Any) -> None:
    """Add to a consent ledger what people granted; no row is ever changed.

    Parameters
    ----------
    ledger : str
        The ledger's file; created, with its key, if missing.
    """
    from isolux.verbs.consent import add_consent

    rows = add_consent(ledger, "grant", **settings)
    if not rows:
        say("0 rows added: the same stands already, with the same note")
        return
    say(f"{numbered(len(rows), 'row')} added to {ledger}, the last is row {rows[-1].n:,}")
    say(f"head: {rows[-1].hash}")
