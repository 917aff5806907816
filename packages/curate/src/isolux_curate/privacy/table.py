"""A table of people that names no one: ids under a key, months for days, some columns as counts."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.notes import Caution
from isolux_curate.user_tables import refuse_missing

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
"""FHIBE's attributes that are published as counts alone; columns whose names hold one of them."""
_NAMING = re.compile(
    r"(?i)(^|_)(name|surname|e?mail|phone|address|street|birth(day|date)?|dob|lat(itude)?|"
    r"lon(gitude)?|gps|ip|passport|licen[cs]e_plate|iban)($|_)"
)
_UNIQUE = 0.9  # share of distinct words in a column from which it could name people
_FEW_ROWS = 20
_PERSON = ("subject_id", "subject")
_NO_PERSON = (
    "instance_id",
    "image_id",
    "file",
    "annotator",
    "annotator_id",
    "copyright_holder",
    "cluster_id",
)
# FHIBE publishes "the approximate time": night from 22 to 5, then morning, afternoon, evening.
_PARTS = dict(
    enumerate(5 * ["night"] + 7 * ["morning"] + 6 * ["afternoon"] + 4 * ["evening"] + 2 * ["night"])
)
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_LONG = 4  # characters of an id from which it is searched for inside of other words
_FEW, _RARE = 3, 1e-3  # different numbers, or digits of one; how rarely chance makes so many agree
_DATES = (
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
_DAYS = (
    r"(?:^|[^\d.])(?:\d{4}[-/:.]\d{1,2}[-/:.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})(?:$|[^\d.])",
    (
        rf"(?i)(?:^|\D)\d{{1,2}}(?:st|nd|rd|th|\.)?(?:[\s-]+(?:of|de))?[\s-]*(?:{_MONTHS})\p{{L}}*\.?,?"
        r"(?:\s+de)?[\s-]+'?\d{2,4}(?:$|\D)"
    ),
    rf"(?i)(?:^|\P{{L}})(?:{_MONTHS})\p{{L}}*\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}(?:$|\D)",
    r"\d{4}\s?[年년]\s?\d{1,2}\s?[月월]\s?\d{1,2}\s?[日일]",
    r"(?:^|\D)(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:$|\D)",  # 20230504
)
_DAY = "|".join(f"(?:{one})" for one in _DAYS)
_MANY_DAYS = 0.5  # of the cells that say something: then a column is one of dates


@dataclass(frozen=True, slots=True)
class Told:
    """What may be published of a table.

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


def pseudonym(key: bytes, kind: str, value: str) -> str:
    """Give an id that only the key's owner can lead back: 16 hexadecimal digits.

    Examples
    --------
    >>> pseudonym(b"key", "subject_id", "Ann") == pseudonym(b"key", "subject_id", "Ann")
    True
    >>> pseudonym(b"other", "subject_id", "Ann") == pseudonym(b"key", "subject_id", "Ann")
    False
    """
    return hmac.new(key, f"{kind}\x00{value}".encode(), hashlib.sha256).hexdigest()[:16]


def anonymised(
    table: pl.DataFrame,
    key: bytes,
    *,
    ids: Sequence[str] = (),
    dates: Sequence[str] = (),
    aggregate: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    least: int = 10,
    person: str | None = None,
) -> Told:
    """Make a table fit to be published.

    Examples
    --------
    >>> rows = pl.DataFrame({"who": ["ann", "bo"], "taken": ["2021-03-05 14:00:00", None]})
    >>> anonymised(rows, b"k", ids=["who"], dates=["taken"]).people["taken"].to_list()
    ['2021-03', None]
    """
    named = (*ids, *dates, *(aggregate or ()), *drop, *([person] if person else []))
    refuse_missing(table, named)
    counted = _aggregated(table.columns, aggregate, (*ids, *dates, *drop))
    people = table.drop(*drop, *counted)
    _refuse_naming(people.columns, (*ids, *dates))
    by = person or person_of(ids)
    counts = _counts(table, counted, by, least)
    for name in dates:
        people = _with_months(people, name)
    for name in ids:
        known = people[name].cast(pl.String).drop_nulls().unique()
        others = pl.Series([pseudonym(key, name, value) for value in known], dtype=pl.String)
        told = pl.col(name).cast(pl.String).replace_strict(known, others, default=None)
        people = people.with_columns(told)
    _refuse_days(people, ids)
    _refuse_traces(table, people, ids)
    said = _on_counts(table, counted, by, least)
    return Told(people, counts, (*_doubts(people, ids, counted), *said))


def identified(table: pl.DataFrame, person: str) -> pl.DataFrame:
    """Keep the rows whose person is known: of the others nobody can say how many people they are.

    Examples
    --------
    >>> identified(pl.DataFrame({"subject_id": ["s1", None, " "]}), "subject_id").height
    1
    """
    known = pl.col(person).cast(pl.String).str.strip_chars()
    return table.filter(known.is_not_null() & (known != ""))


def person_of(ids: Sequence[str]) -> str | None:
    """Name the column of ids that tells one person from another; None: none is known to.

    Examples
    --------
    >>> person_of(["annotator", "subject_id"]), person_of(["participant"]), person_of(["image_id"])
    ('subject_id', 'participant', None)
    """
    named = [name for name in _PERSON if name in ids]
    others = [name for name in ids if name not in _NO_PERSON]
    return named[0] if named else others[0] if len(others) == 1 else None


def _on_counts(
    table: pl.DataFrame, columns: Sequence[str], person: str | None, least: int
) -> list[str]:
    """Say who is in no count, and that there are too few people for any."""
    if not columns or person is None:
        return []
    known = identified(table, person)
    told: list[str] = []
    if known.height < table.height:
        left = table.height - known.height
        told.append(
            f"Counts are of people by {person}: {left:,} of {table.height:,} rows without one are"
            " in none of them."
        )
    if known[person].n_unique() < least:
        told.append(
            Caution(f"nothing is counted: fewer than {least} people are known by {person}.")
        )
    return told


def _refuse_traces(table: pl.DataFrame, people: pl.DataFrame, ids: Sequence[str]) -> None:
    """Refuse a table in which an id still stands: in words, or as a number in its own row."""
    known = {str(v) for name in ids for v in table[name].drop_nulls().unique()}
    long = sorted(v for v in known if len(v) >= _LONG)
    short = sorted(v for v in known if len(v) < _LONG and not v.isdigit())
    words = "|".join(re.escape(v) for v in short)
    for name, kind in people.schema.items():
        if name in ids:
            continue
        cells = people[name].cast(pl.String, strict=False)
        found = _own_numbers(table, cells, ids)
        if kind == pl.String:
            found |= cells.str.contains_any(long) if long else False
            found |= cells.str.contains(rf"(^|\W)({words})($|\W)") if short else False
        rows = found.fill_null(value=False).arg_true()
        if len(rows):
            raise SpecError(
                "an id is still present in another column",
                expected="no id in what is published",
                found=f"{len(rows):,} cells of {name}, the first in row {int(rows[0]) + 1}",
                hint=f"--id {name} replaces its values, --drop {name} leaves it out",
            )


def _own_numbers(table: pl.DataFrame, cells: pl.Series, ids: Sequence[str]) -> pl.Series:
    """Find cells that hold their own row's id, where that is so of most rows and no chance."""
    found = pl.repeat(value=False, n=len(cells), dtype=pl.Boolean, eager=True)
    bare = cells.str.replace(r"\.0+$", "").str.strip_chars_start("0")
    for name in ids:
        own = table[name].cast(pl.String).str.strip_chars_start("0")
        same = ((own.str.len_chars() > 0) & (bare == own)).fill_null(value=False)
        if same.sum() * 2 > len(cells) and not _by_chance(pl.DataFrame({"own": own, "cell": bare})):
            found |= same
    return found


def _by_chance(pairs: pl.DataFrame) -> bool:
    """Say whether cells dealt out at random would equal as many ids, each pair counted once."""
    from scipy.stats import poisson

    pairs = pairs.unique()
    same = pairs.filter(pl.col("own") == pl.col("cell"))["own"]
    if (same.str.len_chars() >= _FEW).any():
        return False
    if len(same) == len(pairs):
        return len(same) < _FEW
    owns, cells = (pairs[name].value_counts(name="n") for name in ("own", "cell"))
    both = owns.join(cells, left_on="own", right_on="cell")
    expected = (both["n"] * both["n_right"]).sum() / len(pairs)
    return bool(poisson.sf(len(same) - 1, expected) > _RARE)


def _aggregated(
    columns: Sequence[str], asked: Sequence[str] | None, other: Collection[str]
) -> list[str]:
    if asked is not None:
        return list(asked)
    named = [c for c in columns if any(word in c.lower() for word in AGGREGATE_ONLY)]
    return [c for c in named if c not in other]


def _refuse_naming(columns: Sequence[str], treated: Collection[str]) -> None:
    naming = [c for c in columns if c not in treated and _NAMING.search(c)]
    if naming:
        raise SpecError(
            "a column could name people or say where they are",
            expected="such columns among ids or dates, or dropped",
            found=", ".join(naming),
            hint="--drop COLUMN leaves it out, --id COLUMN replaces its values",
        )


def _refuse_days(people: pl.DataFrame, ids: Collection[str]) -> None:
    """Refuse columns that still tell days: with a place, the day of a photo names who was there."""
    found = []
    for name, kind in people.schema.items():
        if name in ids or not (kind in (pl.String, pl.Date, pl.Datetime) or kind.is_integer()):
            continue
        said = people[name].cast(pl.String).str.strip_chars()
        said = said.filter(said != "")
        if len(said) and said.str.contains(_DAY).sum() >= _MANY_DAYS * len(said):
            found.append(name)
    if found:
        raise SpecError(
            "a column tells days",
            expected="months: columns of dates among --date, or dropped",
            found=", ".join(found),
            hint=f"--date {found[0]} publishes the month, --drop {found[0]} leaves it out",
        )


def _counts(
    table: pl.DataFrame, columns: Sequence[str], person: str | None, least: int
) -> pl.DataFrame:
    """Count people by value; rarer values are one row, which the next rarest joins if need be."""
    if columns and person is None:
        raise SpecError(
            "whom a count would count is not known: rows are not people",
            expected="the column that tells one person from another",
            found=f"no such column, and {', '.join(columns)} to be published as counts",
            hint="--person subject_id names it; --drop COLUMN leaves a column out",
        )
    table = table if person is None else identified(table, person)
    counts: list[tuple[str, str, int]] = []
    for name in columns:
        said = table.select(who=pl.col(str(person)), value=pl.col(name).cast(pl.String))
        several = pl.col("value").n_unique().over("who") > 1
        rows = (
            said.with_columns(pl.col("value").fill_null("(not said)"))
            # Of two values, a person would be counted twice and give others away.
            .with_columns(value=pl.when(several).then(pl.lit("(several)")).otherwise("value"))
            .group_by("value")
            .agg(people=pl.col("who").drop_nulls().n_unique())
            .sort("people", "value", descending=[True, False])
            .rows()
        )
        told = [row for row in rows if row[1] >= least]
        rest = [row for row in rows if row[1] < least]
        while rest and sum(n for _, n in rest) < least and told:
            rest.append(told.pop())
        if rest and sum(n for _, n in rest) >= least:
            told.append(("others", sum(n for _, n in rest)))
        counts += [(name, *row) for row in told]
    schema = {"attribute": pl.String, "value": pl.String, "people": pl.Int64}
    return pl.DataFrame(counts, schema=schema, orient="row")


def _with_months(people: pl.DataFrame, name: str) -> pl.DataFrame:
    """Replace a date by its month, and its time by the part of the day."""
    cells = people[name]
    if cells.dtype == pl.Date:
        cells = cells.cast(pl.Datetime)
    if cells.dtype != pl.Datetime:
        text = people[name].cast(pl.String).str.strip_chars()
        text = text.set(text == "", None).str.replace(_ZONE, "$1")
        read = [text.str.to_datetime(form, strict=False) for form in _DATES]
        cells = pl.select(pl.coalesce([pl.lit(s) for s in read])).to_series()
        years = cells.dt.year()
        known = (years >= _FIRST_YEAR) & (years <= _LAST_YEAR)
        wrong = (~known.fill_null(value=False) & text.is_not_null()).arg_true()
        if len(wrong):
            raise TableError(
                "a date is none",
                expected="such as 2021-03-05 or 2021-03-05 14:00:00",
                found=repr(text[int(wrong[0])]),
                where=f"row {int(wrong[0]) + 1}, column {name}",
            )
    hour = cells.dt.hour()
    timed = bool((hour.fill_null(0) != 0).any())
    people = people.with_columns(cells.dt.strftime("%Y-%m").alias(name), hour.alias("__hour"))
    if timed:
        told = pl.col("__hour").replace_strict(_PARTS, return_dtype=pl.String, default=None)
        people = people.with_columns(told.alias(f"{name}_time"))
    return people.drop("__hour")


def _doubts(people: pl.DataFrame, ids: Collection[str], counted: Sequence[str]) -> tuple[str, ...]:
    notes: list[str] = []
    words = [c for c, kind in people.schema.items() if kind == pl.String and c not in ids]
    unique = [
        c
        for c in words
        if people.height >= _FEW_ROWS
        and people[c].n_unique() > _UNIQUE * people.height - people[c].null_count()
    ]
    if unique:
        notes.append(
            Caution(
                f"almost every row has different words in {', '.join(unique)}: they could name "
                "people. Read them, or leave them out (--drop)."
            )
        )
    if counted:
        notes.append(f"Published as counts alone: {', '.join(counted)}.")
    if not ids:
        notes.append(Caution("no column of ids was replaced: --id names one (subject_id)."))
    return tuple(notes)
