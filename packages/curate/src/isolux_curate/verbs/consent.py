"""The ledger of consent from a user's side: ids in a file, what stands, whether it is whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.io.consent import KINDS, SCOPES, Ledger, append, read_ledger, standing
from isolux.io.consent.rows import Act, Kind, Row
from isolux.vocabulary.errors import SpecError, TableError
from isolux_curate.listed_ids import listed_ids


def add_consent(
    ledger: str | Path,
    act: Act,
    *,
    who: Sequence[str] = (),
    list: str | None = None,  # noqa: A002  (the flag is called --list)
    kind: Kind = "subject",
    scope: Sequence[str] = (),
    note: str = "",
    allow_unmatched: bool = False,
    again: bool = False,
    key: str | None = None,
) -> Sequence[Row]:
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
    sequence of Row
        The rows that were added: none for whom the same stands already, with the same note.

    Raises
    ------
    SpecError, FileError, TableError, OutputError
        No person, no scope; a grant for people who revoked, without ``again``; a list that cannot
        be read; a ledger that was tampered with; a file that cannot be written.
    """
    wanted = scopes_of(scope)
    if not wanted and act == "revoke":
        wanted = [*SCOPES]
    if not wanted:
        raise SpecError(
            "what is granted is not said",
            expected="--scope with one or more of " + ", ".join(SCOPES),
            found="none",
        )
    if kind not in KINDS:
        raise SpecError("this is not a kind of person", expected=", ".join(KINDS), found=repr(kind))
    joined = [one for one in who if "," in one]
    if joined:
        raise SpecError(
            "there are several ids in one --who",
            expected="--who for each id, or --list FILE",
            found=repr(joined[0]),
        )
    people = [*who, *listed_ids(list, kind)]
    if act == "revoke" and not allow_unmatched:
        _refuse_strangers(ledger, kind, people, key)
    told = sorted({one.strip() for one in people if one.strip()}) if people else []
    if told and Path(ledger).expanduser().exists():
        held = read_ledger(ledger, key=key)
        if act == "grant" and not again:
            _refuse_revoked(held, kind, told, wanted, str(ledger))
        done = _standing_already(held, act, kind, wanted, note)
        people = [one for one in people if one.strip() not in done]
        if not people:
            return []
    return append(ledger, act, kind, people, wanted, note=note, key=key)  # type: ignore[arg-type]


def _refuse_revoked(
    held: Ledger, kind: Kind, who: Sequence[str], scopes: Sequence[str], where: str
) -> None:
    """Refuse a grant of people who took it back: an old list given again is no new consent."""
    asked = pl.Series(who, dtype=pl.String)
    revoked = pl.repeat(value=False, n=len(asked), dtype=pl.Boolean, eager=True)
    for scope in scopes:
        revoked |= ~held.allows(kind, asked, scope).fill_null(value=True)  # type: ignore[arg-type]
    if revoked.any():
        raise TableError(
            f"{revoked.sum():,} of {len(who):,} people took back what is granted here",
            expected="people who have not revoked it",
            found=repr(asked.filter(revoked)[0]),
            where=where,
            hint="take them out of the list, or say with --again that they consented anew",
        )


def _standing_already(
    held: Ledger, act: Act, kind: Kind, scopes: Sequence[str], note: str
) -> set[str]:
    """List the people whose last rows say the same of every scope, with the same note."""
    last: dict[tuple[str, str], tuple[Act, str | None]] = {}
    for row in held.rows:
        if row.kind == kind and row.who is not None:
            last |= {(row.who, scope): (row.act, row.note) for scope in row.scopes}
    names = {who for who, _ in last}
    return {who for who in names if all(last.get((who, s)) == (act, note) for s in scopes)}


def _refuse_strangers(ledger: str | Path, kind: str, who: Sequence[str], key: str | None) -> None:
    """Refuse a revocation of people whom the ledger never heard of: the id may be misspelt."""
    if not Path(ledger).expanduser().exists():
        return
    held = read_ledger(ledger, key=key)
    known = {row.who for row in held.rows if row.kind == kind and row.who is not None}
    asked = pl.Series([one.strip() for one in who], dtype=pl.String)
    known |= {  # of whom the row is there, and the id was erased
        one
        for scope in SCOPES
        for one in asked.filter(held.allows(kind, asked, scope).is_not_null())  # type: ignore[arg-type]
    }
    strangers = [one for one in asked if one not in known]
    if strangers and known:
        raise TableError(
            f"{len(strangers):,} of {len(who):,} ids are in no row of the ledger",
            expected=f"ids of kind {kind} such as {min(known)!r}",
            found="ids that were never granted anything",
            where=str(ledger),
            hint="check that they are written as in the ledger; if they are new to it, say so "
            "with --allow-unmatched",
        )


def scopes_of(given: Sequence[str]) -> Sequence[str]:
    """Read scopes, several of which may stand in one text.

    Examples
    --------
    >>> scopes_of(["evaluation,training"])
    ['evaluation', 'training']
    """
    wanted = [one.strip() for text in given for one in text.split(",") if one.strip()]
    unknown = [one for one in wanted if one not in SCOPES]
    if unknown:
        raise SpecError(
            "this is not a scope of consent",
            expected="--scope with one or more of " + ", ".join(SCOPES),
            found=", ".join(map(repr, unknown)),
        )
    return wanted


def check_consent(ledger: str | Path, *, key: str | None = None, head: str | None = None) -> Ledger:
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
    found = read_ledger(ledger, key=key)
    if head is not None and not any(row.hash.startswith(head.lower()) for row in found.rows):
        raise TableError(
            "the row that was last is not in the ledger: rows were cut off",
            expected=f"a row with the hash {head}",
            found=f"{len(found.rows):,} rows, the last {found.rows[-1].hash[:12]}…",
            where=str(ledger),
            hint="bring the ledger back from a backup",
        )
    return found


def summary(ledger: Ledger) -> pl.DataFrame:
    """Count for each kind of person and scope who allows it, revoked it, or was never asked."""
    state = standing(ledger.rows)
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
