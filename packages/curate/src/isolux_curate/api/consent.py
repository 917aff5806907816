"""The consent ledger: add grants and revocations, verify it, and summarise current consent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.core.errors import SpecError, TableError
from isolux.io.consent import (
    CONSENT_ROLES,
    SCOPES,
    Ledger,
    append_consent,
    compute_current_consent,
    read_ledger,
)
from isolux.io.consent.rows import Act, ConsentRole, ConsentRow
from isolux_curate.id_lists import read_id_list_or_empty


def append_grants_or_revocations(
    ledger: str | Path,
    act: Act,
    *,
    who: Sequence[str] = (),
    list: str | None = None,  # noqa: A002  (the flag is called --list)
    kind: ConsentRole = "subject",
    scope: Sequence[str] = (),
    note: str = "",
    allow_unmatched: bool = False,
    again: bool = False,
    key: str | None = None,
) -> Sequence[ConsentRow]:
    """Add what people granted or revoked to a ledger.

    Parameters
    ----------
    ledger : str or Path
        The ledger's file; created, with its key, if missing.
    act : {"grant", "revoke"}
    who : sequence of str
        Ids, as in the dataset.
    list : str, optional
        A text file (.txt) with one id per line, or a table with a column of ids (subject_id, id).
    kind : {"subject", "copyright", "annotator"}
        In which role they decide: as people in the photos, as photographers, or as annotators.
    scope : sequence of str
        evaluation, training, publication; default for a revocation: all three.
    note : str
        A reason, or a form number.
    allow_unmatched : bool
        Also revoke for people who have no row in the ledger yet.
    again : bool
        Grant for people who revoked: they consented again.
    key : str, optional
        The file with the project's key; default: the ledger's name with .key.

    Returns
    -------
    sequence of ConsentRow
        The rows that were added: none for whom the same stands already, with the same note.

    Raises
    ------
    SpecError, FileError, TableError, OutputError
        No person, no scope; a grant for people who revoked, without ``again``; a list that cannot
        be read; a ledger that was tampered with; a file that cannot be written.
    """
    scopes = parse_consent_scopes(scope)
    if not scopes and act == "revoke":
        scopes = [*SCOPES]
    if not scopes:
        raise SpecError(
            "what is granted is not said",
            expected="--scope with one or more of " + ", ".join(SCOPES),
            found="none",
        )
    if kind not in CONSENT_ROLES:
        raise SpecError(
            "this is not a kind of person", expected=", ".join(CONSENT_ROLES), found=repr(kind)
        )
    joined_ids = [person_id for person_id in who if "," in person_id]
    if joined_ids:
        raise SpecError(
            "there are several ids in one --who",
            expected="--who for each id, or --list FILE",
            found=repr(joined_ids[0]),
        )
    people = [*who, *read_id_list_or_empty(list, kind)]
    if act == "revoke" and not allow_unmatched:
        _refuse_people_unknown_to_ledger(ledger, kind, people, key)
    person_ids = (
        sorted({person_id.strip() for person_id in people if person_id.strip()}) if people else []
    )
    if person_ids and Path(ledger).expanduser().exists():
        consent_ledger = read_ledger(ledger, key=key)
        if act == "grant" and not again:
            _refuse_people_who_revoked(consent_ledger, kind, person_ids, scopes, str(ledger))
        unchanged_ids = _find_people_with_same_consent(consent_ledger, act, kind, scopes, note)
        people = [person_id for person_id in people if person_id.strip() not in unchanged_ids]
        if not people:
            return []
    return append_consent(ledger, act, kind, people, scopes, note=note, key=key)  # type: ignore[arg-type]


def _refuse_people_who_revoked(
    ledger: Ledger,
    person_kind: ConsentRole,
    person_ids: Sequence[str],
    scopes: Sequence[str],
    source: str,
) -> None:
    """Refuse a grant of people who revoked: an old list given again is no new consent."""
    id_series = pl.Series(person_ids, dtype=pl.String)
    is_revoked = pl.repeat(value=False, n=len(id_series), dtype=pl.Boolean, eager=True)
    for scope in scopes:
        is_revoked |= ~ledger.allows(person_kind, id_series, scope).fill_null(value=True)  # type: ignore[arg-type]
    if is_revoked.any():
        raise TableError(
            f"{is_revoked.sum():,} of {len(person_ids):,} people took back what is granted here",
            expected="people who have not revoked it",
            found=repr(id_series.filter(is_revoked)[0]),
            where=source,
            hint="take them out of the list, or say with --again that they consented anew",
        )


def _find_people_with_same_consent(
    ledger: Ledger, consent_act: Act, person_kind: ConsentRole, scopes: Sequence[str], note: str
) -> set[str]:
    """Find people whose last rows say the same about every scope, with the same note."""
    last: dict[tuple[str, str], tuple[Act, str | None]] = {}
    for row in ledger.rows:
        if row.kind == person_kind and row.who is not None:
            last |= {(row.who, scope): (row.act, row.note) for scope in row.scopes}
    names = {person_id for person_id, _ in last}
    return {
        person_id
        for person_id in names
        if all(last.get((person_id, s)) == (consent_act, note) for s in scopes)
    }


def _refuse_people_unknown_to_ledger(
    ledger: str | Path, person_kind: str, person_ids: Sequence[str], key: str | None
) -> None:
    """Refuse a revocation of people who are not in the ledger: the id may be misspelt."""
    if not Path(ledger).expanduser().exists():
        return
    consent_ledger = read_ledger(ledger, key=key)
    known_ids = {
        row.who for row in consent_ledger.rows if row.kind == person_kind and row.who is not None
    }
    id_series = pl.Series([person_id.strip() for person_id in person_ids], dtype=pl.String)
    known_ids |= {  # people whose id was erased from their rows
        person_id
        for scope in SCOPES
        for person_id in id_series.filter(
            consent_ledger.allows(person_kind, id_series, scope).is_not_null()  # type: ignore[arg-type]
        )
    }
    unknown_ids = [person_id for person_id in id_series if person_id not in known_ids]
    if unknown_ids and known_ids:
        raise TableError(
            f"{len(unknown_ids):,} of {len(person_ids):,} ids are in no row of the ledger",
            expected=f"ids of kind {person_kind} such as {min(known_ids)!r}",
            found="ids that were never granted anything",
            where=str(ledger),
            hint="check that they are written as in the ledger; if they are new to it, say so "
            "with --allow-unmatched",
        )


def parse_consent_scopes(texts: Sequence[str]) -> Sequence[str]:
    """Parse scopes; one text may hold several, separated by commas.

    Examples
    --------
    >>> parse_consent_scopes(["evaluation,training"])
    ['evaluation', 'training']
    """
    scopes = [scope.strip() for text in texts for scope in text.split(",") if scope.strip()]
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        raise SpecError(
            "this is not a scope of consent",
            expected="--scope with one or more of " + ", ".join(SCOPES),
            found=", ".join(map(repr, unknown)),
        )
    return scopes


def read_and_verify_consent_ledger(
    ledger: str | Path, *, key: str | None = None, head: str | None = None
) -> Ledger:
    """Read a ledger, and see that no row was changed, taken out or put in.

    Parameters
    ----------
    ledger : str or Path
        The file.
    key : str, optional
        The file with the project's key; default: the ledger's name with .key.
    head : str, optional
        The hash of the last row, or its beginning, as noted elsewhere: only this detects rows that
        were cut off at the end.

    Raises
    ------
    FileError, TableError
        No such file; a row that is not what was signed; no row with that hash.
    """
    consent_ledger = read_ledger(ledger, key=key)
    if head is not None and not any(
        row.hash.startswith(head.lower()) for row in consent_ledger.rows
    ):
        raise TableError(
            "the row that was last is not in the ledger: rows were cut off",
            expected=f"a row with the hash {head}",
            found=f"{len(consent_ledger.rows):,} rows, the last"
            f" {consent_ledger.rows[-1].hash[:12]}…",
            where=str(ledger),
            hint="bring the ledger back from a backup",
        )
    return consent_ledger


def count_consent_by_scope(ledger: Ledger) -> pl.DataFrame:
    """Count by kind of person and scope who allows it, revoked it, or was never asked."""
    state = compute_current_consent(ledger.rows)
    long = state.unpivot(SCOPES, index=["kind", "who"], variable_name="scope", value_name="allows")
    return (
        long.group_by("kind", "scope", maintain_order=True)
        .agg(
            allowed=pl.col("allows").sum(),
            revoked=(~pl.col("allows")).sum(),
            never_asked=pl.col("allows").is_null().sum(),
        )
        .sort("kind", "scope")
    )
