"""``isolux curate consent``: what stands in a ledger, and whether it is whole."""

from __future__ import annotations

from typing import Any

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["consent"]

VERB = "isolux.verbs.consent:check_consent"


def consent(ledger: str, **settings: Any) -> None:
    """Show what a consent ledger says, and check that no row was changed, cut off or inserted.

    Parameters
    ----------
    ledger : str
        The file.
    """
    from isolux.cli.screen import show_wide
    from isolux.verbs.consent import check_consent, summary

    found = check_consent(ledger, **settings)
    for note in found.notes:
        document.warn(note)
    checked = "hashes and signatures verify" if found.signatures else "hashes verify"
    say(f"{numbered(len(found.rows), 'row')}: {checked}")
    show_wide("People by what they allow", summary(found))
    say(f"head: {found.rows[-1].hash}")
