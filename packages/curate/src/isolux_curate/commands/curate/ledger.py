"""Commands of a ledger of consent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.cli.table_output import print_table_in_column_blocks
from isolux.core.formatting import pluralise
from isolux.io.consent.rows import Act
from isolux_curate.api.consent import (
    append_grants_or_revocations,
    count_consent_by_scope,
    read_and_verify_consent_ledger,
)

VERBS = {
    "grant": append_grants_or_revocations,
    "revoke": append_grants_or_revocations,
    "consent": read_and_verify_consent_ledger,
}


def grant(ledger: str, **settings: Any) -> None:
    """Add to a consent ledger what people granted; no row is ever changed.

    Parameters
    ----------
    ledger : str
        The ledger's file; created, with its key, if missing.
    """
    _add_ledger_rows_and_print(ledger, "grant", settings)


def revoke(ledger: str, **settings: Any) -> None:
    """Add to a consent ledger what people revoked; no row is ever changed.

    Parameters
    ----------
    ledger : str
        The ledger's file; created, with its key, if missing.
    """
    _add_ledger_rows_and_print(ledger, "revoke", settings)


def _add_ledger_rows_and_print(ledger: str, consent_act: Act, settings: Mapping[str, Any]) -> None:
    rows = append_grants_or_revocations(ledger, consent_act, **settings)
    if not rows:
        print_clean_lines("0 rows added: the same stands already, with the same note")
        return
    print_clean_lines(
        f"{pluralise(len(rows), 'row')} added to {ledger}, the last is row {rows[-1].n:,}"
    )
    print_clean_lines(f"head: {rows[-1].hash}")


def consent(ledger: str, **settings: Any) -> None:
    """Show what a consent ledger says, and check that no row was changed, cut off or inserted.

    Parameters
    ----------
    ledger : str
        The file.
    """
    consent_ledger = read_and_verify_consent_ledger(ledger, **settings)
    for note in consent_ledger.notes:
        command_output.report_warning(note)
    checked = (
        "hashes and signatures verify" if consent_ledger.has_checked_signatures else "hashes verify"
    )
    print_clean_lines(f"{pluralise(len(consent_ledger.rows), 'row')}: {checked}")
    print_table_in_column_blocks(
        "People by what they allow", count_consent_by_scope(consent_ledger)
    )
    print_clean_lines(f"head: {consent_ledger.rows[-1].hash}")
