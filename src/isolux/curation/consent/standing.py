"""What stands for each person after all rows: the last act of each scope decides."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.curation.consent.row import SCOPES, Row, Scope

__all__ = ["revoked", "standing"]


def standing(rows: Sequence[Row]) -> pl.DataFrame:
    """Reckon what each person allows.

    Examples
    --------
    >>> from isolux.curation.consent.row import FIRST
    >>> now = "2026-01-01T00:00:00Z"
    >>> rows = [Row(1, now, "grant", "subject", "s1", ("evaluation", "training"), "", FIRST),
    ...         Row(2, now, "revoke", "subject", "s1", ("training",), "", FIRST)]
    >>> standing(rows).row(0)
    ('subject', 's1', True, False, None)
    """
    found: dict[tuple[str, str], dict[str, bool | None]] = {}
    names: dict[tuple[str, str], str | None] = {}
    for row in rows:
        key = (row.kind, row.mark or str(row.who))
        state = found.setdefault(key, dict.fromkeys(SCOPES))
        names[key] = row.who
        for scope in row.scopes:
            state[scope] = row.act == "grant"
    schema = {"kind": pl.String, "who": pl.String, **dict.fromkeys(SCOPES, pl.Boolean)}
    records = [{"kind": key[0], "who": names[key], **state} for key, state in found.items()]
    return pl.DataFrame(records, schema=schema)


def revoked(rows: Sequence[Row], scope: Scope = "evaluation") -> frozenset[str]:
    """List subjects and copyright holders who revoked a scope and did not grant it again.

    Examples
    --------
    >>> revoked([])
    frozenset()
    """
    state = standing(rows).filter(pl.col("kind") != "annotator", ~pl.col(scope))
    return frozenset(state["who"].drop_nulls().to_list())
