"""Tables in which people stand in several rows: outcomes, attributes, sub-totals below each other.

Nothing in a single row shows it; the sums do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import polars as pl

from isolux.core.errors import TableError, format_location
from isolux.core.notes import Caution
from isolux.io.cell_parsing import as_text

_TOTAL_WORDS = re.compile(
    r"(any|everyone|everybody|sum|combined|pooled|both( (sexes|genders))?)"
    r"|((sub|grand)[- ]?)?(totals?|overall|averages?|avg|mean)\b.*"
    r"|all(?! other)\b.*"
    r"|.*[ ,(-](sub-?)?(totals?|overall|averages?|avg)\)?"
)
"""What a row about everyone, or about several groups, is called; "all others" are a group."""
_MAX_SEARCHED_ROWS = 60  # rows of one attribute that are looked through for sums of others
_MAX_ROWS_FOR_ALL_SUBSETS = (
    6  # rows of which every selection is looked at, and not only those that stand together
)
_MIN_CASES = 50  # cases from which an equal sum is hardly by chance
_MAX_CHANCE = 0.02  # chance of an accidental equal sum, above which a sum is no evidence
_ATTRIBUTE_COLUMN_NAMES = (
    "attribute",
    "variable",
    "characteristic",
    "dimension",
    "demographic",
    "factor",
    "feature",
    "group",
    "category",
)
_VALUE_COLUMN_NAMES = ("value", "values", "level", "subgroup", "group", "category", "label")


def check_no_row_per_outcome(
    frame: pl.DataFrame, groups: Sequence[str], counts: tuple[str, str], source: str
) -> None:
    """Refuse a row for each outcome: over them the counts of one n add up to that n."""
    k, n = (pl.col(c) for c in counts)
    for name in groups if len(groups) > 1 else ():
        group_sums = frame.group_by(
            [group_column for group_column in groups if group_column != name]
        ).agg(rows=pl.len(), one=n.n_unique() == 1, whole=k.sum() == n.first())
        # In a single group two shares of one n may add up to it by chance.
        if (
            group_sums.height > 1
            and (group_sums["one"] & group_sums["whole"] & (group_sums["rows"] > 1)).all()
        ):
            values = ", ".join(map(repr, frame[name].unique(maintain_order=True).head(3)))
            raise TableError(
                f"each row is one outcome: over {name!r} the counts add up to {counts[1]!r}",
                expected="a row for each group, with how many of its cases are what is counted",
                found=f"{name} = {values}",
                where=format_location(source, column=name),
                hint="keep the rows of one outcome; or call this column 'metric', and each "
                "outcome gets its own rate",
            )


def check_no_stacked_attributes(
    frame: pl.DataFrame, groups: Sequence[str], counts: tuple[str, str], source: str
) -> None:
    """Refuse attributes below each other: the same people by race, then again by gender."""
    for name in groups:
        sums_by_value = frame.group_by(name, maintain_order=True).agg(
            pl.len(), *(pl.col(c).sum() for c in counts)
        )
        if sums_by_value.height < 2 or (sums_by_value["len"] < 2).any():
            continue
        # Values that occur under one part only: races under race, genders under gender.
        nested_columns = [
            group_column
            for group_column in groups
            if group_column != name
            and frame.select(pl.col(name).n_unique().over(group_column).max()).item() == 1
        ]
        is_equal_sum = all(sums_by_value[c].n_unique() == 1 for c in counts)
        is_attribute_name = name.strip().lower() in _ATTRIBUTE_COLUMN_NAMES and any(
            group_column.strip().lower() in _VALUE_COLUMN_NAMES for group_column in nested_columns
        )
        if nested_columns and (is_equal_sum or is_attribute_name):
            values = ", ".join(map(repr, sums_by_value[name].head(3)))
            raise TableError(
                f"{name!r} seems to name attributes, each of which divides the same people",
                expected="one attribute in a table, or a column for each",
                found=f"{name} = {values}, of {int(sums_by_value[counts[1]][0]):,} cases each"
                if is_equal_sum
                else f"{name} = {values}",
                where=format_location(source, column=name),
                hint="keep the rows of one attribute in a file of its own; --data-option"
                " totals=keep takes the rows as they are",
            )


def check_no_blank_groups(frame: pl.DataFrame, groups: Sequence[str], source: str) -> None:
    """Refuse a row that does not name its group."""
    for name in groups:
        cell_texts = frame[name].cast(pl.String).str.strip_chars()
        missing = (cell_texts.is_null() | (cell_texts == "")).arg_true()
        if len(missing):
            raise TableError(
                f"{len(missing):,} row(s) name no group in {name!r}",
                expected="a group in each row",
                found="an empty cell",
                where=format_location(source, int(missing[0]) + 1, name),
                hint="write the group into each row (also where a cell is merged over rows), "
                "'unknown' if it is not known; remove rows about everyone",
            )


def iterate_subtotal_rows(
    rows: pl.DataFrame, group_column: str, other_columns: Sequence[str], counts: tuple[str, str]
) -> Iterator[tuple[int, str]]:
    """Find rows whose counts are the sums of some others: ``Non-White`` below its parts."""
    tables = (
        rows.partition_by(list(other_columns), maintain_order=True) if other_columns else [rows]
    )
    for table in tables:
        if 3 <= table.height <= _MAX_SEARCHED_ROWS:
            yield from _iterate_rows_equal_to_sums(table, group_column, counts)


def _iterate_rows_equal_to_sums(
    table: pl.DataFrame, name: str, counts: tuple[str, str]
) -> Iterator[tuple[int, str]]:
    size = table.height
    k, n = table[counts[0]].to_list(), table[counts[1]].to_list()
    subsets = list(_iterate_subtotal_candidates(size))
    for r in range(size):
        rarer_count = min(k[r], n[r] - k[r])
        # How often an equal sum turns up by chance: n anywhere up to it, k within a fifth.
        by_chance = len(subsets) / (n[r] * max(0.2 * rarer_count, 1)) if n[r] else 1.0
        if n[r] < _MIN_CASES or not rarer_count or by_chance > _MAX_CHANCE:
            continue
        for subset in subsets:
            if (
                r not in subset
                and sum(n[i] for i in subset) == n[r]
                and sum(k[i] for i in subset) == k[r]
            ):
                yield table["_row"][r], " + ".join(repr(table[name][i]) for i in subset)
                break


def _iterate_subtotal_candidates(size: int) -> Iterator[tuple[int, ...]]:
    """List the rows that a sub-total may be of: those that stand together; of few rows, any."""
    if size <= _MAX_ROWS_FOR_ALL_SUBSETS:
        for n_rows in range(2, size):
            yield from combinations(range(size), n_rows)
        return
    for first in range(size):
        for last in range(first + 2, size + 1):
            yield tuple(range(first, last))


def caution_on_equal_counts(
    frame: pl.DataFrame,
    groups: Sequence[str],
    split_columns: Sequence[str],
    counts: tuple[str, str],
) -> list[str]:
    """Caution where two groups have the same counts: one may be the other by another name."""
    k, n = (pl.col(c) for c in counts)
    key = [*counts, *split_columns]
    rows = frame.with_row_index("_row", offset=1)
    # Where a design gives many groups one size, equal counts are no news.
    equal_rows = rows.filter(
        n >= _MIN_CASES,
        k > 0,
        k < n,
        pl.len().over(key) == 2,
        pl.len().over(counts[1], *split_columns) == 2,
    )
    if frame.height <= 2 or not equal_rows.height:
        return []
    first = equal_rows.row(0, named=True)
    twin_rows = equal_rows.filter(pl.all_horizontal([pl.col(c).eq_missing(first[c]) for c in key]))
    group_names = [
        " × ".join(str(row[g]) for g in groups) for row in twin_rows.iter_rows(named=True)
    ]
    return [
        Caution(
            f"{group_names[0]!r} and {group_names[-1]!r} have the same counts, {first[counts[0]]:,}"
            f" of {first[counts[1]]:,} (rows {twin_rows['_row'][0]} and {twin_rows['_row'][-1]}):"
            " is one the other by another name? Everyone in it would count twice."
        )
    ]


def drop_or_refuse_total_rows(
    frame: pl.DataFrame,
    groups: Sequence[str],
    split_columns: Sequence[str],
    counts: tuple[str, str],
    *,
    drop: bool,
    source: str,
) -> tuple[pl.DataFrame, list[str]]:
    """Find rows that repeat others: by their word, or as the sum of others of their attribute."""
    rows = frame.with_row_index("_row")
    description_by_row: dict[int, str] = {}
    for name in groups:
        for row, cell_value in rows.select("_row", pl.col(name).cast(pl.String)).iter_rows():
            if cell_value is not None and _TOTAL_WORDS.fullmatch(cell_value.strip().lower()):
                description_by_row.setdefault(row, f"{name} = {cell_value!r}")
        other_columns = [
            group_column for group_column in (*groups, *split_columns) if group_column != name
        ]
        remaining = rows.filter(~pl.col("_row").is_in(list(description_by_row)))
        sums = [
            pl.col(c).sum().over(other_columns) if other_columns else pl.col(c).sum()
            for c in counts
        ]
        size = pl.len().over(other_columns) if other_columns else pl.len()
        is_half_of_sum = pl.all_horizontal(
            [2 * pl.col(c) == total for c, total in zip(counts, sums, strict=True)]
        )
        # Of two rows alike neither is the other's total; of three or more one is that of the rest.
        totals = remaining.filter(is_half_of_sum & (size > 2) & (pl.col(counts[1]) > 0))
        for row, cell_value in totals.select("_row", name).iter_rows():
            description_by_row.setdefault(row, f"{name} = {cell_value!r}")
        remaining = rows.filter(~pl.col("_row").is_in(list(description_by_row)))
        for row, sums_of in iterate_subtotal_rows(remaining, name, other_columns, counts):
            description_by_row.setdefault(row, f"{name} = {rows[name][row]!r}, which is {sums_of}")
    if not description_by_row:
        return frame, []
    examples = ", ".join(
        f"row {row + 1} ({description})"
        for row, description in sorted(description_by_row.items())[:5]
    )
    if drop:
        kept_rows = rows.filter(~pl.col("_row").is_in(list(description_by_row))).drop("_row")
        return kept_rows, [
            f"{len(description_by_row):,} rows repeat others and were left out: {examples}."
        ]
    first = min(description_by_row)
    raise TableError(
        f"{len(description_by_row):,} row(s) repeat their parts: everyone would count twice",
        expected="only rows of groups: their totals are computed here",
        found=examples,
        where=format_location(source, first + 1),
        hint="leave them out with --data-option totals=drop, or take them from the file; if they"
        " are groups of their own, totals=keep",
    )


def check_groups_are_unique(
    frame: pl.DataFrame,
    groups: Sequence[str],
    split_columns: Sequence[str],
    counts: tuple[str, str],
    source: str,
) -> None:
    """Refuse two rows of one group; a column of fractions, which is no group, may part them."""
    if not groups:
        raise TableError(
            "no column says which group a row is about",
            expected="a column of words, such as race",
            found="columns " + ", ".join(map(repr, frame.columns[:20])),
            where=source,
        )
    key = [*groups, *split_columns]
    repeated = frame.with_row_index("_row").filter(pl.struct(key).is_duplicated())
    if repeated.height:
        first = repeated.row(0, named=True)
        equal_rows = repeated.filter(
            pl.all_horizontal([pl.col(c).eq_missing(first[c]) for c in key])
        )
        raise TableError(
            "a group has two rows",
            expected="one row for each group" + (" of a model and metric" if split_columns else ""),
            found=", ".join(f"{c} = {first[c]!r}" for c in key)
            + " in rows "
            + " and ".join(str(r + 1) for r in equal_rows["_row"][:2]),
            where=format_location(source, int(equal_rows["_row"][1]) + 1),
            hint=_suggest_parting_column(equal_rows, key, counts),
        )


def _suggest_parting_column(
    equal_rows: pl.DataFrame, key: Sequence[str], counts: tuple[str, str]
) -> str:
    """Suggest how to tell the rows of one group apart."""
    parting = [
        name
        for name in equal_rows.columns
        if name not in (*key, *counts, "_row")
        and equal_rows[name].is_unique().all()
        and as_text(equal_rows[name]).cast(pl.Float64, strict=False).is_not_null().all()
    ]
    if not parting:
        return "add them up, or put what distinguishes them in a separate column"
    name = parting[0]
    return (
        f"if {name!r} distinguishes them, write it in words ({name} {equal_rows[name][0]}): a"
        " column of fractions is read as a rate, not as a group"
    )
