"""Checks of values that cannot be groups: spelling variants, reserved names, too many values."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core.counts import count_people_at_rows
from isolux.core.errors import JoinError, SpecError
from isolux.core.spelling import describe_variants, fold_spelling

MAX_NUMBERS = 30
"""An attribute with more different numbers than this needs bins."""
_RESERVED_NAMES = ("overall", "everyone", "everyone else")


def check_has_scored_values(
    rows: pl.DataFrame, scored_rows: pl.DataFrame, scored_units: pl.DataFrame, name: str
) -> None:
    """Refuse an attribute without a value of any scored unit."""
    if rows.is_empty() or scored_units.is_empty() or not scored_rows.is_empty():
        return
    row_ids, unit_ids = rows["unit_id"].head(3).to_list(), scored_units["unit_id"].head(3).to_list()
    raise JoinError(
        f"no judged unit has a value of {name!r}",
        expected="unit ids such as " + ", ".join(map(repr, unit_ids)),
        found=f"unit ids such as {', '.join(map(repr, row_ids))} ({rows['unit_kind'][0]})",
        hint="the attribute must be of the units that were scored",
    )


def check_spelling_variants(
    unit_codes: pl.DataFrame, values: Sequence[str], name: str, multiplicity: pl.Series | None
) -> None:
    """Refuse groups whose names look alike: ``Male`` and ``male``, or a Cyrillic A in ``Asian``."""
    # To a reader these are one group, whose people would be compared in two halves.
    codes_by_folded: dict[str, list[int]] = {}
    for code, spelling in enumerate(values):
        codes_by_folded.setdefault(fold_spelling(spelling), []).append(code)
    variant_codes = next((codes for codes in codes_by_folded.values() if len(codes) > 1), None)
    if variant_codes is None:
        return
    sizes = {
        values[code]: count_people_at_rows(
            unit_codes["unit"].filter(unit_codes["code"] == code), multiplicity
        )
        for code in variant_codes
    }
    commonest = max(sizes, key=lambda spelling: sizes[spelling])
    raise SpecError(
        f"groups of {name!r} differ by case, blanks or letters of the same look alone",
        expected="one spelling for each group",
        found=", ".join(
            f"{text} ({n:,})"
            for text, n in zip(describe_variants(sizes), sizes.values(), strict=True)
        ),
        hint=f'if they are one group, --group "{name}:{commonest}={",".join(sizes)}"',
    )


def check_reserved_names(values: Sequence[str], name: str) -> None:
    """Refuse a group with the reserved name of the overall row or the complement."""
    # These names stand for the overall row and for complements in every table.
    reserved = next((v for v in values if v.strip().casefold() in _RESERVED_NAMES), None)
    if reserved is not None:
        raise SpecError(
            f"a group of {name!r} is called {reserved!r}, as all people together are",
            expected="another name for it",
            found=repr(reserved),
            hint=f'rename it: --group "{name}:all={reserved}"',
        )


def check_n_values(values: Sequence[str], name: str, max_values: int | None) -> None:
    """Refuse too many values: all pairs of thousands of groups are millions of tests."""
    if max_values is None or len(values) <= max_values:
        return
    # For numbers, the error that suggests bins is the more useful one.
    check_not_continuous(values, name)
    raise SpecError(
        f"{name!r} has {len(values):,} different values, too many to compare their groups",
        expected=f"at most {max_values:,}",
        found=", ".join(repr(example[:40]) for example in sorted(values)[:3]) + ", …",
        hint=f'--bins "{name}=top:50" keeps the 50 most common and merges all others; --group '
        f'"{name}:NAME=VALUE,VALUE" merges some; or is it an identifier, for --cluster?',
    )


def check_not_continuous(values: Sequence[str], name: str) -> None:
    """Refuse more distinct numbers than can be groups without bins."""
    numbers = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
    n_distinct = numbers.drop_nulls().n_unique()
    if n_distinct > MAX_NUMBERS:
        raise SpecError(
            f"{name!r} has {n_distinct:,} different numbers, too many to be groups",
            expected=f"at most {MAX_NUMBERS}, or bins",
            hint=f'give --bins "{name}=quantile:4" or --bins "{name}=edges:A,B,C"',
        )
