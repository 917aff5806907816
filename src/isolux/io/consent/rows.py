"""Rows of a ledger of consent: what one says, and how bytes become rows.

One row of a ledger: what it says, its hash and its signature.

The hash is not over the person's id but over its mark, a hash under the project's key, and over a
seal of the id and the note. So a withdrawal can take both out of the row: the chain still holds,
and by the mark alone the person is known again, when a backup brings them back.

A ledger's bytes as rows, each of which follows the one before it and is what was signed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from isolux.core.errors import TableError, format_location
from isolux.io.consent.chain import (
    FIRST_PREVIOUS_HASH,
    compute_commitment,
    compute_keyed_hash,
    hash_fields,
    is_signed,
    new_salt,
    sign_digest,
)

Act = Literal["grant", "revoke"]
ConsentRole = Literal["subject", "copyright", "annotator"]
Scope = Literal["evaluation", "training", "publication"]
CONSENT_ROLES, SCOPES = get_args(ConsentRole), get_args(Scope)
_ERASED_FIELDS = ("who", "note", "salt")
"""What a withdrawal takes out of a row; the three are there together or not at all."""
_FIELDS = (
    "n",
    "at",
    "act",
    "kind",
    *_ERASED_FIELDS,
    "scopes",
    "mark",
    "seal",
    "previous",
    "hash",
    "signature",
)


@dataclass(frozen=True, slots=True)
class ConsentRow:
    """A row: at a time, a person of a kind granted or revoked the use for some scopes."""

    n: int
    at: str
    act: Act
    kind: ConsentRole
    who: str | None
    scopes: tuple[Scope, ...]
    note: str | None
    previous: str
    salt: str | None = None
    mark: str = ""
    seal: str = ""
    hash: str = ""
    signature: str = ""

    def to_json_line(self) -> str:
        """Write it as a line of JSON."""
        return json.dumps({name: getattr(self, name) for name in _FIELDS}, ensure_ascii=False)

    def compute_hash(self) -> str:
        """Compute the row's hash, over all fields except erasable ones, hash and signature."""
        return hash_fields(
            {
                "n": self.n,
                "at": self.at,
                "act": self.act,
                "kind": self.kind,
                "scopes": list(self.scopes),
                "mark": self.mark,
                "seal": self.seal,
                "previous": self.previous,
            }
        )

    def has_valid_commitment(self) -> bool:
        """Return whether id and note match their commitment, or were erased together."""
        is_erased = [getattr(self, name) is None for name in _ERASED_FIELDS]
        if any(is_erased):
            return all(is_erased)
        return self.seal == compute_commitment(str(self.salt), self._committed_fields())

    def _committed_fields(self) -> dict[str, str | None]:
        return {"who": self.who, "note": self.note}


def sign_row(row: ConsentRow, key: bytes) -> ConsentRow:
    """Return the row with its hash and its signature."""
    salt = row.salt or new_salt()
    seal = compute_commitment(salt, {"who": row.who, "note": row.note})
    completed = replace(
        row, salt=salt, seal=seal, mark=compute_keyed_hash(row.kind, str(row.who), key)
    )
    digest = completed.compute_hash()
    return replace(completed, hash=digest, signature=sign_digest(digest, key))


def erase_row(row: ConsentRow) -> ConsentRow:
    """Return the row without person and note; its hash and signature stay valid."""
    return replace(row, who=None, note=None, salt=None)


def parse_row(line: str, number: int, source: str) -> ConsentRow:
    """Read a line."""
    location = format_location(source, number)
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or set(fields) != set(_FIELDS):
        missing = [f for f in _FIELDS if f not in fields] if isinstance(fields, dict) else []
        raise TableError(
            "this row is not one of a ledger of consent",
            expected="a JSON object with " + ", ".join(_FIELDS),
            found="without " + ", ".join(missing) if missing else line[:60],
            where=location,
        )
    scopes = fields["scopes"] if isinstance(fields["scopes"], list) else []
    rules = {
        "act": fields["act"] in get_args(Act),
        "kind": fields["kind"] in CONSENT_ROLES,
        "who": fields["who"] is None or _is_id(fields["who"]),
        "scopes": bool(scopes) and all(s in SCOPES for s in scopes),
        "n": isinstance(fields["n"], int),
        "at": isinstance(fields["at"], str),
        **{
            name: fields[name] is None or isinstance(fields[name], str) for name in ("note", "salt")
        },
        **{name: _is_hash_text(fields[name]) for name in _HASH_FIELDS},
    }
    bad = [name for name, holds in rules.items() if not holds]
    if bad:
        raise TableError(
            f"the field {bad[0]!r} of this row is not what a ledger of consent holds",
            expected={
                "act": "grant or revoke",
                "kind": ", ".join(CONSENT_ROLES),
                "who": "an id",
                "scopes": "one or more of " + ", ".join(SCOPES),
            }.get(bad[0], "as written"),
            found=repr(fields[bad[0]])[:60],
            where=location,
        )
    return ConsentRow(**{**cast("dict[str, Any]", fields), "scopes": tuple(scopes)})


def _is_id(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


_HASH_FIELDS = ("mark", "seal", "previous", "hash", "signature")


def _is_hash_text(value: object) -> bool:
    """Return whether a value may be a hash; ``compare_digest`` accepts ASCII only."""
    return isinstance(value, str) and value.isascii()


def split_complete_lines(content: bytes) -> tuple[list[str], bytes]:
    """Split bytes into complete lines and the bytes of an unfinished last line."""
    end = content.rfind(b"\n") + 1
    tail = content[end:]
    if _is_json(tail):
        end, tail = len(content), b""
    text = content[:end].decode("utf-8", errors="replace")
    return text.removesuffix("\n").split("\n") if text else [], tail


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def verify_rows(lines: Sequence[str], key: bytes | None, source: str) -> list[ConsentRow]:
    """Parse rows and verify their hash chain, commitments and signatures."""
    rows: list[ConsentRow] = []
    previous = FIRST_PREVIOUS_HASH
    for number, line in enumerate(lines, 1):
        row = parse_row(line, number, source)
        location = format_location(source, number)
        for is_wrong, problem, expected, description, hint in (
            (
                row.to_json_line() != line,
                "this row is not as it was written",
                "the line that isolux writes",
                "other spaces, line ends, spellings or duplicate fields",
                _RESTORE_HINT,
            ),
            (
                row.compute_hash() != row.hash or not row.has_valid_commitment(),
                "this row was changed after it was written",
                "what was hashed and sealed",
                f"another content, hash {row.hash[:12]}…",
                _RESTORE_HINT,
            ),
            (
                row.previous != previous or row.n != number,
                "a row before this one was taken out, put in or moved",
                f"row {number} after {previous[:12]}…",
                f"row {row.n} after {row.previous[:12]}…",
                _RESTORE_HINT,
            ),
            (
                key is not None and not is_signed(row.hash, row.signature, key),
                "this row's signature does not verify",
                "a signature under the project's key",
                row.signature[:12] + "…",
                "the row was written with another key; which is the project's?",
            ),
        ):
            if is_wrong:
                raise TableError(
                    problem, expected=expected, found=description, where=location, hint=hint
                )
        rows.append(row)
        previous = row.hash
    return rows


_RESTORE_HINT = "bring the ledger back from a backup"
