"""Values that cannot be groups, refused by name: twins, names taken, too many, plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.vocabulary.counts import people_at
from isolux.vocabulary.errors import JoinError, SpecError

MOST_NUMBERS = 30
"""An attribute with more different numbers than this needs bins."""
_TAKEN = ("everyone", "everyone else")


def check_join(rows: pl.DataFrame, theirs: pl.DataFrame, judged: pl.DataFrame, name: str) -> None:
    """Refuse an attribute of which no judged unit has a value."""
    if rows.is_empty() or judged.is_empty() or not theirs.is_empty():
        return
    of, units = rows["unit_id"].head(3).to_list(), judged["unit_id"].head(3).to_list()
    raise JoinError(
        f"no judged unit has a value of {name!r}",
        expected="unit ids such as " + ", ".join(map(repr, units)),
        found=f"unit ids such as {', '.join(map(repr, of))} ({rows['unit_kind'][0]})",
        hint="the attribute must be of the units that were scored",
    )


def check_twins(
    found: pl.DataFrame, values: Sequence[str], name: str, times: pl.Series | None
) -> None:
    """Refuse groups that differ by case or blanks alone: ``Male`` beside ``male``."""
    alike: dict[str, list[int]] = {}
    for code, value in enumerate(values):
        alike.setdefault(" ".join(value.split()).casefold(), []).append(code)
    twins = next((codes for codes in alike.values() if len(codes) > 1), None)
    if twins is None:
        return
    sizes = {
        values[code]: people_at(found["unit"].filter(found["code"] == code), times)
        for code in twins
    }
    kept = max(sizes, key=lambda value: sizes[value])
    raise SpecError(
        f"groups of {name!r} differ by case or blanks alone",
        expected="one spelling for each group",
        found=", ".join(f"{value!r} ({n:,})" for value, n in sizes.items()),
        hint=f'if they are one group, --group "{name}:{kept}={",".join(sizes)}"',
    )


def check_taken(values: Sequence[str], name: str) -> None:
    """Refuse a group with the name that all people together have in every table and sentence."""
    taken = next((v for v in values if v.strip().casefold() in _TAKEN), None)
    if taken is not None:
        raise SpecError(
            f"a group of {name!r} is called {taken!r}, as all people together are",
            expected="another name for it",
            found=repr(taken),
            hint=f'rename it: --group "{name}:all={taken}"',
        )


def check_many(values: Sequence[str], name: str, most: int | None) -> None:
    """Refuse more values than groups can be compared: all pairs of thousands are millions."""
    if most is None or len(values) <= most:
        return
    check_continuous(values, name)
    raise SpecError(
        f"{name!r} has {len(values):,} different values, too many to compare their groups",
        expected=f"at most {most:,}",
        found=", ".join(repr(value[:40]) for value in sorted(values)[:3]) + ", …",
        hint=f'--bins "{name}=top:50" keeps the 50 most common and merges all others; --group '
        f'"{name}:NAME=VALUE,VALUE" merges some; or is it an identifier, for --cluster?',
    )


def check_continuous(values: Sequence[str], name: str) -> None:
    """Refuse more different numbers than can be groups without bins."""
    numbers = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
    different = numbers.drop_nulls().n_unique()
    if different > MOST_NUMBERS:
        raise SpecError(
            f"{name!r} has {different:,} different numbers, too many to be groups",
            expected=f"at most {MOST_NUMBERS}, or bins",
            hint=f'give --bins "{name}=quantile:4" or --bins "{name}=edges:A,B,C"',
        )
