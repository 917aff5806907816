"""Which people of two runs are the same: by ids that both declare, if what is known of them agrees.

A join by accident compares other people and still looks like a comparison. So the number of a row
is no id, no part of an id is taken that was not asked for, and the truth, the groups and the file
names of those who meet must be the same in both runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.io.cells import unsigned_zero
from isolux.io.ids import ID_FROM, IdFrom, reduced
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import JoinError, SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.places import is_unrepeated
from isolux.vocabulary.spec import AuditSpec
from isolux.vocabulary.spec.groups import crossed

_NAMES = ("file", "filename", "path", "image", "uri", "image_id", "name")
"""Attributes that name a picture: compared by what follows the last slash."""
_EXACT = 2.0**53
"""Whole numbers below this are floats of their own."""


@dataclass(frozen=True, slots=True)
class SamePeople:
    """Who is who.

    Parameters
    ----------
    units : polars.DataFrame
        ``unit_id`` of the second run and ``as_first``, their id in the first.
    notes : tuple of str
        How they met, and what was compared.
    """

    units: pl.DataFrame
    notes: tuple[str, ...]


def same_people(
    first: Run, second: Run, spec: AuditSpec, id_from: IdFrom | None, allowed: float
) -> SamePeople:
    """Find the people whom both runs judged."""
    if id_from is not None and id_from not in ID_FROM:
        raise SpecError("people cannot be joined so", expected=", ".join(ID_FROM), found=id_from)
    if not 0.0 <= allowed <= 1.0:
        raise SpecError("a share cannot be that", expected="0 to 1", found=f"{allowed:g}")
    _refuse_row_numbers(first, second)
    way = id_from or "column"
    units = _met(first, second, way)
    agreed = _agreement(first, second, units, spec, allowed)
    n = units.height
    least = min(len(judged_units(run)) for run in (first, second))
    notes = [f"People were joined by {_words(way)}: {n:,} are in both runs.", *agreed]
    if 2 * n < least:
        notes.append(Caution(f"Only {n:,} people are in both runs; the smaller has {least:,}."))
    return SamePeople(units, tuple(notes))


def _words(way: str) -> str:
    return "whole id" if way == "column" else way


def _refuse_row_numbers(first: Run, second: Run) -> None:
    numbered = [run.record.get("ids") == "row numbers" for run in (first, second)]
    if not any(numbered):
        return
    files = [_data_file(run) for run in (first, second)]
    if all(numbered) and files[0] is not None and files[0] == files[1]:
        return  # the same bytes: a row is the same row
    which = "either run" if all(numbered) else f"the {'first' if numbered[0] else 'second'} run"
    raise JoinError(
        f"the people of {which} have no id, only the number of their row",
        expected="an id that names a person in both runs; the order of rows names nobody",
        found=" and ".join(str(dict(run.record["spec"]).get("data")) for run in (first, second)),
        hint="audit both again with --id COLUMN, a column that both tables have",
    )


def _data_file(run: Run) -> str | None:
    """Return the hash of the table that the people came from."""
    path = str(dict(run.record.get("spec") or {}).get("data") or "").partition(":")[2]
    return dict(run.record.get("inputs") or {}).get(path)


def judged_units(run: Run) -> pl.Series:
    """List those who have a score, or where there are only ranks, evidence of one."""
    held = [t["unit_id"].drop_nulls() for t in run.evidence.values() if "unit_id" in t.columns]
    tables = [run.scores["unit_id"]] if run.scores.height or not held else held
    return pl.concat([ids.cast(pl.String) for ids in tables]).unique(maintain_order=True)


def _met(first: Run, second: Run, way: IdFrom) -> pl.DataFrame:
    ids_a, ids_b = judged_units(first), judged_units(second)
    a = pl.DataFrame({"as_first": ids_a, "key": reduced(ids_a, way)})
    b = pl.DataFrame({"unit_id": ids_b, "key": reduced(ids_b, way)})
    for side, ids in ((a, "as_first"), (b, "unit_id")):
        twice = side.filter(pl.col("key").is_duplicated()).sort("key")
        if twice.height:
            raise JoinError(
                f"different people have the same {way}",
                expected=f"every {way} from one id only",
                found=f"{twice[ids][0]!r} and {twice[ids][1]!r}",
                hint="join on the whole id (--id-from column), or make the ids alike in both",
            )
    met = b.join(a, on="key", how="inner", maintain_order="left")
    if not met.height:
        raise JoinError(
            "the two runs have nobody in common",
            expected=f"the same people in both, by {_words(way)}",
            found=f"{_some(ids_a)} in the first, {_some(ids_b)} in the second",
            hint=_what_would_match(ids_a, ids_b, way),
        )
    return met.select("unit_id", "as_first")


def _what_would_match(ids_a: pl.Series, ids_b: pl.Series, tried: str) -> str:
    counts = {
        way: int(reduced(ids_b, way).is_in(reduced(ids_a, way).implode()).sum())
        for way in ID_FROM
        if way != tried
    }
    best = max(counts, key=lambda way: counts[way])
    if not counts[best]:
        return "name the column of ids that both tables have with --id in both audits"
    return f"--id-from {best} (id_from={best!r}) would match {counts[best]:,}, if they are the same"


def _some(ids: pl.Series) -> str:
    return ", ".join(repr(i) for i in ids.head(3).to_list()) or "nobody"


def _agreement(
    first: Run, second: Run, units: pl.DataFrame, spec: AuditSpec, allowed: float
) -> list[str]:
    """Compare what both runs know of those who meet; stop where it disagrees."""
    other = dict(second.record.get("spec") or {})
    by = [part for entry in (*spec.groups.by, *other.get("by", ())) for part in crossed(entry)]
    target = [truth] if (truth := spec.task.get("target")) and truth == other.get("target") else []
    held = [set(run.attributes["attribute"].unique()) for run in (first, second)]
    asked = [name for name in dict.fromkeys([*target, *by, *_NAMES]) if name in held[0] & held[1]]
    compared = [(name, _sides(first, second, units, name)) for name in asked]
    if not target and (truths := _truths(first, second, units)) is not None:
        compared.insert(0, ("truth", truths))
    told = []
    for name, both in compared:
        known = both.drop_nulls(["first", "second"])
        differ = known.filter(pl.col("first") != pl.col("second"))
        if differ.height > allowed * known.height:
            _refuse(name, differ, known.height, allowed)
        if differ.height:
            told.append(
                Caution(
                    f"{differ.height:,} of {known.height:,} people have another {name!r} in the"
                    " second run than in the first, whose values are used."
                )
            )
    names = ", ".join(repr(name) for name, _ in compared)
    return [*told, *([f"Those who met agree in {names}."] if names and not told else [])]


def _refuse(name: str, differ: pl.DataFrame, n: int, allowed: float) -> None:
    shown = [
        f"{row['as_first']!r} is {row['first']!r} in the first run and {row['second']!r} as"
        f" {row['unit_id']!r} in the second"
        for row in differ.head(3).iter_rows(named=True)
    ]
    raise JoinError(
        f"{differ.height:,} of {n:,} people who meet by their ids have another {name!r} in the"
        " second run: they are not the same people",
        expected=f"the same {name!r} in both"
        + (f", but for {100 * allowed:g} %" if allowed else ""),
        found="; ".join(shown),
        hint="name the right column of ids with --id in both audits; if the people are the same"
        " and their data differ, allow a share with --allow-disagreement 0.05",
    )


def _sides(first: Run, second: Run, units: pl.DataFrame, name: str) -> pl.DataFrame:
    """Put both runs' values of an attribute side by side: ``as_first, unit_id, first, second``."""
    a, b = (_values(one, name, other) for one, other in ((first, second), (second, first)))
    return units.join(
        a.rename({"unit_id": "as_first", "text": "first"}), on="as_first", how="left"
    ).join(b.rename({"text": "second"}), on="unit_id", how="left")


def _values(run: Run, name: str, other: Run) -> pl.DataFrame:
    """Give each unit's values as one text, whether or not the run read them as numbers or lists."""
    rows = run.attributes.filter(pl.col("attribute") == name)
    text = pl.col("value").str.strip_chars()
    if name in _NAMES:
        text = text.str.replace(r"(?s)^.*[/\\]", "")
    else:
        own, others = (one.record.get("spec") or {} for one in (run, other))
        grouped = {part for entry in own.get("by") or () for part in crossed(entry)}
        separator = own.get("separator") or others.get("separator")
        if separator and name not in grouped:
            rows = rows.with_columns(pl.col("value").str.split(separator)).explode("value")
        number = text.cast(pl.Float64, strict=False)
        if "number" in rows.columns:
            number = pl.coalesce("number", number)
        # Whole numbers may be names. Of others six figures: a computed attribute may be rounded in
        # one of two files.
        whole = number == number.floor()
        short = pl.when(whole).then(number).otherwise(number.round_sig_figs(6))
        short = unsigned_zero(short).cast(pl.String)
        text = pl.when(number.abs() < _EXACT).then(short).otherwise(text)
    known = rows.with_columns(text=text).drop_nulls("text")
    if is_unrepeated(known["unit_id"]):
        return known.select("unit_id", "text")
    return known.group_by("unit_id").agg(text=pl.col("text").unique().sort().str.join(", "))


def _truths(first: Run, second: Run, units: pl.DataFrame) -> pl.DataFrame | None:
    """Put both runs' truths side by side where they stand in the evidence, merged alike."""
    tables = [run.evidence.get("classification") for run in (first, second)]
    if any(t is None or "truth" not in t.columns for t in tables):
        return None
    merges = [(run.record.get("spec") or {}).get("label_map") or () for run in (first, second)]
    if merges[0] != merges[1]:
        return None
    a, b = (
        t.select("unit_id", text=pl.col("truth").list.sort().list.join(", ")).unique("unit_id")
        for t in tables
        if t is not None
    )
    return units.join(
        a.rename({"unit_id": "as_first", "text": "first"}), on="as_first", how="left"
    ).join(b.rename({"text": "second"}), on="unit_id", how="left")


def one_model(run: Run) -> str:
    """Name the only model of a run."""
    # Ranks alone (an area under the curve) leave no score of single units, but evidence of them.
    tables = [run.scores, *(t for t in run.evidence.values() if "model" in t.columns)]
    named = pl.concat([table["model"].cast(pl.String) for table in tables])
    names = named.drop_nulls().unique().to_list()
    if len(names) != 1:
        raise SpecError(
            "a run to compare holds no single model",
            expected="one model in each run",
            found=", ".join(map(str, names)) or "none",
        )
    return str(names[0])
