"""Anonymise a table of people: pseudonyms for ids, months for dates, some columns as counts."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.core.errors import SpecError, TableError
from isolux.core.notes import Caution
from isolux_curate.user_tables import refuse_missing_columns

AGGREGATE_ONLY = (
    "relation",
    "relationship",
    "country_of_residence",
    "residence",
    "height",
    "weight",
    "pregnan",
    "disabilit",
    "difficult",
)
"""Parts of names of columns that are published as counts only: FHIBE's attributes."""
_IDENTIFYING_COLUMN = re.compile(
    r"(?i)(^|_)(name|surname|e?mail|phone|address|street|birth(day|date)?|dob|lat(itude)?|"
    r"lon(gitude)?|gps|ip|passport|licen[cs]e_plate|iban)($|_)"
)
_MAX_UNIQUE_SHARE = 0.9  # columns with a larger share of distinct words could name people
_MIN_ROWS = 20
_PERSON_COLUMNS = ("subject_id", "subject")
_NON_PERSON_COLUMNS = (
    "instance_id",
    "image_id",
    "file",
    "annotator",
    "annotator_id",
    "copyright_holder",
    "cluster_id",
)
# FHIBE publishes "the approximate time": night from 22 to 5, then morning, afternoon, evening.
_DAY_PARTS = dict(
    enumerate(5 * ["night"] + 7 * ["morning"] + 6 * ["afternoon"] + 4 * ["evening"] + 2 * ["night"])
)
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_MIN_SEARCHED_LENGTH = 4  # shorter ids are searched as whole words only
_MIN_COINCIDENCES, _COINCIDENCE_LEVEL = (
    3,
    1e-3,
)  # distinct numbers, or digits of one; level of the Poisson test
_DATE_FORMATS = (
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y:%m:%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
)
_ZONE = r"(:\d{2}(?:\.\d+)?) ?(?:Z|[+-]\d{2}:?\d{2})$"
_MONTHS = (
    "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mai|mär|avr|jui|aoû|déc|okt|dez|ene|abr|ago|dic"
    "|gen|mag|giu|lug|set|ott|fév"
)
_DAY_PATTERNS = (
    r"(?:^|[^\d.])(?:\d{4}[-/:.]\d{1,2}[-/:.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})(?:$|[^\d.])",
    (
        rf"(?i)(?:^|\D)\d{{1,2}}(?:st|nd|rd|th|\.)?(?:[\s-]+(?:of|de))?[\s-]*(?:{_MONTHS})\p{{L}}*\.?,?"
        r"(?:\s+de)?[\s-]+'?\d{2,4}(?:$|\D)"
    ),
    rf"(?i)(?:^|\P{{L}})(?:{_MONTHS})\p{{L}}*\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}(?:$|\D)",
    r"\d{4}\s?[年년]\s?\d{1,2}\s?[月월]\s?\d{1,2}\s?[日일]",
    r"(?:^|\D)(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:$|\D)",  # 20230504
)
_ANY_DAY = "|".join(f"(?:{pattern})" for pattern in _DAY_PATTERNS)
_MIN_DAY_SHARE = 0.5  # share of cells from which a column counts as dates


@dataclass(frozen=True, slots=True)
class PublishableTable:
    """An anonymised table that may be published.

    Parameters
    ----------
    people : polars.DataFrame
        The table: ids replaced, dates as ``YYYY-MM`` with a column ``…_time`` (night, morning,
        afternoon, evening) where they had a time, columns of ``counts`` left out.
    counts : polars.DataFrame
        ``attribute, value, people``: how many people gave each value, none below the least number;
        rarer ones are one row ``others``.
    notes : tuple of str
    """

    people: pl.DataFrame
    counts: pl.DataFrame
    notes: tuple[str, ...]


def compute_pseudonym(key: bytes, id_column: str, original_id: str) -> str:
    """Make a pseudonym, which only the key's owner can resolve: 16 hexadecimal digits.

    Examples
    --------
    >>> pseudonym = compute_pseudonym(b"key", "subject_id", "Ann")
    >>> compute_pseudonym(b"key", "subject_id", "Ann") == pseudonym
    True
    >>> compute_pseudonym(b"other", "subject_id", "Ann") == pseudonym
    False
    """
    return hmac.new(key, f"{id_column}\x00{original_id}".encode(), hashlib.sha256).hexdigest()[:16]


def anonymise_table(
    table: pl.DataFrame,
    key: bytes,
    *,
    id_columns: Sequence[str] = (),
    date_columns: Sequence[str] = (),
    count_only_columns: Sequence[str] | None = None,
    dropped_columns: Sequence[str] = (),
    min_people: int = 10,
    person: str | None = None,
) -> PublishableTable:
    """Anonymise a table for publication.

    Examples
    --------
    >>> rows = pl.DataFrame({"who": ["ann", "bo"], "taken": ["2021-03-05 14:00:00", None]})
    >>> table = anonymise_table(rows, b"k", id_columns=["who"], date_columns=["taken"])
    >>> table.people["taken"].to_list()
    ['2021-03', None]
    """
    listed_columns = (
        *id_columns,
        *date_columns,
        *(count_only_columns or ()),
        *dropped_columns,
        *([person] if person else []),
    )
    refuse_missing_columns(table, listed_columns)
    count_columns = _choose_count_only_columns(
        table.columns, count_only_columns, (*id_columns, *date_columns, *dropped_columns)
    )
    people = table.drop(*dropped_columns, *count_columns)
    _refuse_identifying_columns(people.columns, (*id_columns, *date_columns))
    person_column = person or guess_person_column_or_none(id_columns)
    counts = _count_people_merging_rare_values(table, count_columns, person_column, min_people)
    for name in date_columns:
        people = _replace_date_by_month(people, name)
    for name in id_columns:
        original_ids = people[name].cast(pl.String).drop_nulls().unique()
        pseudonyms = pl.Series(
            [compute_pseudonym(key, name, original_id) for original_id in original_ids],
            dtype=pl.String,
        )
        replaced = (
            pl.col(name).cast(pl.String).replace_strict(original_ids, pseudonyms, default=None)
        )
        people = people.with_columns(replaced)
    _refuse_columns_of_days(people, id_columns)
    _refuse_remaining_ids(table, people, id_columns)
    count_notes = _note_rows_without_person(table, count_columns, person_column, min_people)
    return PublishableTable(
        people,
        counts,
        (*_build_anonymisation_notes(people, id_columns, count_columns), *count_notes),
    )


def keep_rows_with_person_id(table: pl.DataFrame, person_column: str) -> pl.DataFrame:
    """Keep rows with a person's id: without one the number of people is unknown.

    Examples
    --------
    >>> table = pl.DataFrame({"subject_id": ["s1", None, " "]})
    >>> keep_rows_with_person_id(table, "subject_id").height
    1
    """
    person_id = pl.col(person_column).cast(pl.String).str.strip_chars()
    return table.filter(person_id.is_not_null() & (person_id != ""))


def guess_person_column_or_none(id_columns: Sequence[str]) -> str | None:
    """Find the column of ids that identifies people; None if there is none.

    Examples
    --------
    >>> columns = ["annotator", "subject_id"], ["participant"], ["image_id"]
    >>> tuple(map(guess_person_column_or_none, columns))
    ('subject_id', 'participant', None)
    """
    person_columns = [name for name in _PERSON_COLUMNS if name in id_columns]
    other_columns = [name for name in id_columns if name not in _NON_PERSON_COLUMNS]
    return (
        person_columns[0]
        if person_columns
        else other_columns[0]
        if len(other_columns) == 1
        else None
    )


def _note_rows_without_person(
    table: pl.DataFrame, count_columns: Sequence[str], person_column: str | None, min_people: int
) -> list[str]:
    """List rows that are in no count, and caution about too few people, as notes."""
    if not count_columns or person_column is None:
        return []
    identified_rows = keep_rows_with_person_id(table, person_column)
    notes: list[str] = []
    if identified_rows.height < table.height:
        n_excluded = table.height - identified_rows.height
        notes.append(
            f"Counts are of people by {person_column}: {n_excluded:,} of {table.height:,} rows"
            " without one are in none of them."
        )
    if identified_rows[person_column].n_unique() < min_people:
        notes.append(
            Caution(
                f"nothing is counted: fewer than {min_people} people are known by {person_column}."
            )
        )
    return notes


def _refuse_remaining_ids(
    table: pl.DataFrame, anonymised_table: pl.DataFrame, id_columns: Sequence[str]
) -> None:
    """Refuse a table that still contains an id: in text, or as a number in its own row."""
    ids_as_text = {str(v) for name in id_columns for v in table[name].drop_nulls().unique()}
    long_ids = sorted(v for v in ids_as_text if len(v) >= _MIN_SEARCHED_LENGTH)
    short_ids = sorted(v for v in ids_as_text if len(v) < _MIN_SEARCHED_LENGTH and not v.isdigit())
    words = "|".join(re.escape(v) for v in short_ids)
    for name, dtype in anonymised_table.schema.items():
        if name in id_columns:
            continue
        cells = anonymised_table[name].cast(pl.String, strict=False)
        has_id = _flag_cells_repeating_row_id(table, cells, id_columns)
        if dtype == pl.String:
            has_id |= cells.str.contains_any(long_ids) if long_ids else False
            has_id |= cells.str.contains(rf"(^|\W)({words})($|\W)") if short_ids else False
        rows = has_id.fill_null(value=False).arg_true()
        if len(rows):
            raise SpecError(
                "an id is still present in another column",
                expected="no id in what is published",
                found=f"{len(rows):,} cells of {name}, the first in row {int(rows[0]) + 1}",
                hint=f"--id {name} replaces its values, --drop {name} leaves it out",
            )


def _flag_cells_repeating_row_id(
    table: pl.DataFrame, cells: pl.Series, id_columns: Sequence[str]
) -> pl.Series:
    """Flag cells that hold their own row's id, if most rows do and it is no coincidence."""
    is_own_id = pl.repeat(value=False, n=len(cells), dtype=pl.Boolean, eager=True)
    plain_cells = cells.str.replace(r"\.0+$", "").str.strip_chars_start("0")
    for name in id_columns:
        row_ids = table[name].cast(pl.String).str.strip_chars_start("0")
        is_equal = ((row_ids.str.len_chars() > 0) & (plain_cells == row_ids)).fill_null(value=False)
        if is_equal.sum() * 2 > len(cells) and not _could_equal_by_chance(
            pl.DataFrame({"own": row_ids, "cell": plain_cells})
        ):
            is_own_id |= is_equal
    return is_own_id


def _could_equal_by_chance(pairs: pl.DataFrame) -> bool:
    """Test whether randomly permuted cells would equal as many ids (Poisson), by distinct pair."""
    from scipy.stats import poisson

    pairs = pairs.unique()
    equal_cells = pairs.filter(pl.col("own") == pl.col("cell"))["own"]
    if (equal_cells.str.len_chars() >= _MIN_COINCIDENCES).any():
        return False
    if len(equal_cells) == len(pairs):
        return len(equal_cells) < _MIN_COINCIDENCES
    id_counts, cell_counts = (pairs[name].value_counts(name="n") for name in ("own", "cell"))
    joint_counts = id_counts.join(cell_counts, left_on="own", right_on="cell")
    expected = (joint_counts["n"] * joint_counts["n_right"]).sum() / len(pairs)
    return bool(poisson.sf(len(equal_cells) - 1, expected) > _COINCIDENCE_LEVEL)


def _choose_count_only_columns(
    columns: Sequence[str],
    requested_columns: Sequence[str] | None,
    treated_columns: Collection[str],
) -> list[str]:
    if requested_columns is not None:
        return list(requested_columns)
    matching_columns = [c for c in columns if any(word in c.lower() for word in AGGREGATE_ONLY)]
    return [c for c in matching_columns if c not in treated_columns]


def _refuse_identifying_columns(columns: Sequence[str], treated_columns: Collection[str]) -> None:
    naming = [c for c in columns if c not in treated_columns and _IDENTIFYING_COLUMN.search(c)]
    if naming:
        raise SpecError(
            "a column could name people or say where they are",
            expected="such columns among ids or dates, or dropped",
            found=", ".join(naming),
            hint="--drop COLUMN leaves it out, --id COLUMN replaces its values",
        )


def _refuse_columns_of_days(people: pl.DataFrame, id_columns: Collection[str]) -> None:
    """Refuse columns that still hold days: with a location, a photo's day identifies people."""
    day_columns = []
    for name, dtype in people.schema.items():
        if name in id_columns or not (
            dtype in (pl.String, pl.Date, pl.Datetime) or dtype.is_integer()
        ):
            continue
        cells = people[name].cast(pl.String).str.strip_chars()
        cells = cells.filter(cells != "")
        if len(cells) and cells.str.contains(_ANY_DAY).sum() >= _MIN_DAY_SHARE * len(cells):
            day_columns.append(name)
    if day_columns:
        raise SpecError(
            "a column tells days",
            expected="months: columns of dates among --date, or dropped",
            found=", ".join(day_columns),
            hint=f"--date {day_columns[0]} publishes the month, --drop {day_columns[0]} leaves it"
            " out",
        )


def _count_people_merging_rare_values(
    table: pl.DataFrame, count_columns: Sequence[str], person_column: str | None, min_people: int
) -> pl.DataFrame:
    """Count people by value; rare values are merged until each row has the minimum of people."""
    if count_columns and person_column is None:
        raise SpecError(
            "whom a count would count is not known: rows are not people",
            expected="the column that tells one person from another",
            found=f"no such column, and {', '.join(count_columns)} to be published as counts",
            hint="--person subject_id names it; --drop COLUMN leaves a column out",
        )
    table = table if person_column is None else keep_rows_with_person_id(table, person_column)
    counts: list[tuple[str, str, int]] = []
    for name in count_columns:
        person_values = table.select(
            who=pl.col(str(person_column)), value=pl.col(name).cast(pl.String)
        )
        has_several_values = pl.col("value").n_unique().over("who") > 1
        rows = (
            person_values.with_columns(pl.col("value").fill_null("(not said)"))
            # A person with two values would be counted twice, and totals would reveal others.
            .with_columns(
                value=pl.when(has_several_values).then(pl.lit("(several)")).otherwise("value")
            )
            .group_by("value")
            .agg(people=pl.col("who").drop_nulls().n_unique())
            .sort("people", "value", descending=[True, False])
            .rows()
        )
        published_rows = [row for row in rows if row[1] >= min_people]
        rare_rows = [row for row in rows if row[1] < min_people]
        while rare_rows and sum(n for _, n in rare_rows) < min_people and published_rows:
            rare_rows.append(published_rows.pop())
        if rare_rows and sum(n for _, n in rare_rows) >= min_people:
            published_rows.append(("others", sum(n for _, n in rare_rows)))
        counts += [(name, *row) for row in published_rows]
    schema = {"attribute": pl.String, "value": pl.String, "people": pl.Int64}
    return pl.DataFrame(counts, schema=schema, orient="row")


def _replace_date_by_month(people: pl.DataFrame, date_column: str) -> pl.DataFrame:
    """Replace dates by months, and times by the part of the day in a column of its own."""
    cells = people[date_column]
    if cells.dtype == pl.Date:
        cells = cells.cast(pl.Datetime)
    if cells.dtype != pl.Datetime:
        text = people[date_column].cast(pl.String).str.strip_chars()
        text = text.set(text == "", None).str.replace(_ZONE, "$1")
        parsed = [text.str.to_datetime(date_format, strict=False) for date_format in _DATE_FORMATS]
        cells = pl.select(pl.coalesce([pl.lit(s) for s in parsed])).to_series()
        years = cells.dt.year()
        is_plausible = (years >= _FIRST_YEAR) & (years <= _LAST_YEAR)
        faulty_rows = (~is_plausible.fill_null(value=False) & text.is_not_null()).arg_true()
        if len(faulty_rows):
            raise TableError(
                "a date is none",
                expected="such as 2021-03-05 or 2021-03-05 14:00:00",
                found=repr(text[int(faulty_rows[0])]),
                where=f"row {int(faulty_rows[0]) + 1}, column {date_column}",
            )
    hour = cells.dt.hour()
    has_time = bool((hour.fill_null(0) != 0).any())
    people = people.with_columns(
        cells.dt.strftime("%Y-%m").alias(date_column), hour.alias("__hour")
    )
    if has_time:
        day_part = pl.col("__hour").replace_strict(_DAY_PARTS, return_dtype=pl.String, default=None)
        people = people.with_columns(day_part.alias(f"{date_column}_time"))
    return people.drop("__hour")


def _build_anonymisation_notes(
    people: pl.DataFrame, id_columns: Collection[str], count_columns: Sequence[str]
) -> tuple[str, ...]:
    notes: list[str] = []
    text_columns = [
        c for c, dtype in people.schema.items() if dtype == pl.String and c not in id_columns
    ]
    unique_columns = [
        c
        for c in text_columns
        if people.height >= _MIN_ROWS
        and people[c].n_unique() > _MAX_UNIQUE_SHARE * people.height - people[c].null_count()
    ]
    if unique_columns:
        notes.append(
            Caution(
                f"almost every row has different words in {', '.join(unique_columns)}: they"
                " could name people. Read them, or leave them out (--drop)."
            )
        )
    if count_columns:
        notes.append(f"Published as counts alone: {', '.join(count_columns)}.")
    if not id_columns:
        notes.append(Caution("no column of ids was replaced: --id names one (subject_id)."))
    return tuple(notes)
