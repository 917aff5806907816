"""Matching the people of two runs: by declared ids, if truth, groups and file names agree.

An accidental join would compare different people and still look like a comparison. So row numbers
are not ids, parts of ids are used only if requested, and truth, groups and file names of matched
people must be the same in both runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import JoinError, SpecError
from isolux.core.notes import Caution
from isolux.core.spec import AuditSpec
from isolux.core.spec.groups import split_intersection
from isolux.core.unit_index import has_no_duplicates
from isolux.io.cell_parsing import drop_sign_of_zero
from isolux.io.ids import ID_FROM, IdFrom, reduce_ids

_FILE_NAME_ATTRIBUTES = ("file", "filename", "path", "image", "uri", "image_id", "name")
"""Attributes that name a picture: compared by what follows the last slash."""
_MAX_EXACT_INTEGER = 2.0**53
"""Whole numbers below this are floats of their own."""


@dataclass(frozen=True, slots=True)
class PersonMatches:
    """The matched people of two runs.

    Parameters
    ----------
    units : polars.DataFrame
        ``unit_id`` of the second run and ``as_first``, their id in the first.
    notes : tuple of str
        How they met, and what was compared.
    """

    units: pl.DataFrame
    notes: tuple[str, ...]


def match_people(
    first: Run, second: Run, spec: AuditSpec, id_from: IdFrom | None, max_disagreement: float
) -> PersonMatches:
    """Match the people who are in both runs."""
    if id_from is not None and id_from not in ID_FROM:
        raise SpecError("people cannot be joined so", expected=", ".join(ID_FROM), found=id_from)
    if not 0.0 <= max_disagreement <= 1.0:
        raise SpecError("a share cannot be that", expected="0 to 1", found=f"{max_disagreement:g}")
    _refuse_row_numbers(first, second)
    id_part = id_from or "column"
    units = _match_ids(first, second, id_part)
    agreement_notes = _check_agreement(first, second, units, spec, max_disagreement)
    n = units.height
    n_smaller_run = min(len(list_scored_units(run)) for run in (first, second))
    notes = [
        f"People were joined by {_describe_id_part(id_part)}: {n:,} are in both runs.",
        *agreement_notes,
    ]
    if 2 * n < n_smaller_run:
        notes.append(
            Caution(f"Only {n:,} people are in both runs; the smaller has {n_smaller_run:,}.")
        )
    return PersonMatches(units, tuple(notes))


def _describe_id_part(id_part: str) -> str:
    return "whole id" if id_part == "column" else id_part


def _refuse_row_numbers(first: Run, second: Run) -> None:
    has_row_numbers = [run.record.get("ids") == "row numbers" for run in (first, second)]
    if not any(has_row_numbers):
        return
    files = [_hash_of_data(run) for run in (first, second)]
    if all(has_row_numbers) and files[0] is not None and files[0] == files[1]:
        return  # the same bytes: a row is the same row
    run_text = (
        "either run"
        if all(has_row_numbers)
        else f"the {'first' if has_row_numbers[0] else 'second'} run"
    )
    raise JoinError(
        f"the people of {run_text} have no id, only the number of their row",
        expected="an id that names a person in both runs; the order of rows names nobody",
        found=" and ".join(str(dict(run.record["spec"]).get("data")) for run in (first, second)),
        hint="audit both again with --id COLUMN, a column that both tables have",
    )


def _hash_of_data(run: Run) -> str | None:
    """Return the hash of the table that the people came from."""
    path = str(dict(run.record.get("spec") or {}).get("data") or "").partition(":")[2]
    return dict(run.record.get("inputs") or {}).get(path)


def list_scored_units(run: Run) -> pl.Series:
    """List the units with a score, or with evidence where there are only ranks."""
    evidence_ids = [
        t["unit_id"].drop_nulls() for t in run.evidence.values() if "unit_id" in t.columns
    ]
    tables = [run.scores["unit_id"]] if run.scores.height or not evidence_ids else evidence_ids
    return pl.concat([ids.cast(pl.String) for ids in tables]).unique(maintain_order=True)


def _match_ids(first: Run, second: Run, id_part: IdFrom) -> pl.DataFrame:
    ids_a, ids_b = list_scored_units(first), list_scored_units(second)
    a = pl.DataFrame({"as_first": ids_a, "key": reduce_ids(ids_a, id_part)})
    b = pl.DataFrame({"unit_id": ids_b, "key": reduce_ids(ids_b, id_part)})
    for run_ids, ids in ((a, "as_first"), (b, "unit_id")):
        duplicates = run_ids.filter(pl.col("key").is_duplicated()).sort("key")
        if duplicates.height:
            raise JoinError(
                f"different people have the same {id_part}",
                expected=f"every {id_part} from one id only",
                found=f"{duplicates[ids][0]!r} and {duplicates[ids][1]!r}",
                hint="join on the whole id (--id-from column), or make the ids alike in both",
            )
    matched_rows = b.join(a, on="key", how="inner", maintain_order="left")
    if not matched_rows.height:
        raise JoinError(
            "the two runs have nobody in common",
            expected=f"the same people in both, by {_describe_id_part(id_part)}",
            found=f"{_format_example_ids(ids_a)} in the first, {_format_example_ids(ids_b)}"
            " in the second",
            hint=_suggest_id_part(ids_a, ids_b, id_part),
        )
    return matched_rows.select("unit_id", "as_first")


def _suggest_id_part(ids_a: pl.Series, ids_b: pl.Series, used_part: str) -> str:
    counts = {
        id_part: int(reduce_ids(ids_b, id_part).is_in(reduce_ids(ids_a, id_part).implode()).sum())
        for id_part in ID_FROM
        if id_part != used_part
    }
    best_part = max(counts, key=lambda id_part: counts[id_part])
    if not counts[best_part]:
        return "name the column of ids that both tables have with --id in both audits"
    return (
        f"--id-from {best_part} (id_from={best_part!r}) would match {counts[best_part]:,},"
        " if they are the same"
    )


def _format_example_ids(ids: pl.Series) -> str:
    return ", ".join(repr(i) for i in ids.head(3).to_list()) or "nobody"


def _check_agreement(
    first: Run, second: Run, units: pl.DataFrame, spec: AuditSpec, max_disagreement: float
) -> list[str]:
    """Check that truth and attributes of matched people agree; refuse disagreement."""
    second_spec = dict(second.record.get("spec") or {})
    by = [
        attribute
        for entry in (*spec.groups.by, *second_spec.get("by", ()))
        for attribute in split_intersection(entry)
    ]
    target = (
        [truth] if (truth := spec.task.get("target")) and truth == second_spec.get("target") else []
    )
    attribute_sets = [set(run.attributes["attribute"].unique()) for run in (first, second)]
    names_to_compare = [
        name
        for name in dict.fromkeys([*target, *by, *_FILE_NAME_ATTRIBUTES])
        if name in attribute_sets[0] & attribute_sets[1]
    ]
    compared_values = [
        (name, _join_attribute_values(first, second, units, name)) for name in names_to_compare
    ]
    if not target and (truths := _join_truths(first, second, units)) is not None:
        compared_values.insert(0, ("truth", truths))
    notes = []
    for name, values in compared_values:
        pairs = values.drop_nulls(["first", "second"])
        differing_rows = pairs.filter(pl.col("first") != pl.col("second"))
        if differing_rows.height > max_disagreement * pairs.height:
            _raise_disagreement(name, differing_rows, pairs.height, max_disagreement)
        if differing_rows.height:
            notes.append(
                Caution(
                    f"{differing_rows.height:,} of {pairs.height:,} people have another"
                    f" {name!r} in the"
                    " second run than in the first, whose values are used."
                )
            )
    names = ", ".join(repr(name) for name, _ in compared_values)
    return [*notes, *([f"Those who met agree in {names}."] if names and not notes else [])]


def _raise_disagreement(
    name: str, differing_rows: pl.DataFrame, n: int, max_disagreement: float
) -> None:
    examples = [
        f"{row['as_first']!r} is {row['first']!r} in the first run and {row['second']!r} as"
        f" {row['unit_id']!r} in the second"
        for row in differing_rows.head(3).iter_rows(named=True)
    ]
    raise JoinError(
        f"{differing_rows.height:,} of {n:,} people who meet by their ids have another"
        f" {name!r} in the"
        " second run: they are not the same people",
        expected=f"the same {name!r} in both"
        + (f", but for {100 * max_disagreement:g} %" if max_disagreement else ""),
        found="; ".join(examples),
        hint="name the right column of ids with --id in both audits; if the people are the same"
        " and their data differ, allow a share with --allow-disagreement 0.05",
    )


def _join_attribute_values(first: Run, second: Run, units: pl.DataFrame, name: str) -> pl.DataFrame:
    """Join both runs' values of an attribute: ``as_first, unit_id, first, second``."""
    a, b = (
        _normalise_values(run, name, other_run)
        for run, other_run in ((first, second), (second, first))
    )
    return units.join(
        a.rename({"unit_id": "as_first", "text": "first"}), on="as_first", how="left"
    ).join(b.rename({"text": "second"}), on="unit_id", how="left")


def _normalise_values(run: Run, name: str, other_run: Run) -> pl.DataFrame:
    """Normalise each unit's values to one text, so that numbers and lists compare equal."""
    rows = run.attributes.filter(pl.col("attribute") == name)
    text = pl.col("value").str.strip_chars()
    if name in _FILE_NAME_ATTRIBUTES:
        text = text.str.replace(r"(?s)^.*[/\\]", "")
    else:
        run_spec, other_spec = (
            recorded_run.record.get("spec") or {} for recorded_run in (run, other_run)
        )
        grouping_attributes = {
            attribute
            for entry in run_spec.get("by") or ()
            for attribute in split_intersection(entry)
        }
        separator = run_spec.get("separator") or other_spec.get("separator")
        if separator and name not in grouping_attributes:
            rows = rows.with_columns(pl.col("value").str.split(separator)).explode("value")
        number = text.cast(pl.Float64, strict=False)
        if "number" in rows.columns:
            number = pl.coalesce("number", number)
        # Integers may be names. Of others six digits: a computed attribute may be rounded in
        # one of two files.
        is_integer = number == number.floor()
        rounded_number = pl.when(is_integer).then(number).otherwise(number.round_sig_figs(6))
        rounded_number = drop_sign_of_zero(rounded_number).cast(pl.String)
        text = pl.when(number.abs() < _MAX_EXACT_INTEGER).then(rounded_number).otherwise(text)
    known_rows = rows.with_columns(text=text).drop_nulls("text")
    if has_no_duplicates(known_rows["unit_id"]):
        return known_rows.select("unit_id", "text")
    return known_rows.group_by("unit_id").agg(text=pl.col("text").unique().sort().str.join(", "))


def _join_truths(first: Run, second: Run, units: pl.DataFrame) -> pl.DataFrame | None:
    """Join both runs' truths from the evidence, if they use the same label map."""
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


def single_model_name(run: Run) -> str:
    """Return the name of a run's only model."""
    # Ranks alone (an area under the curve) leave no score of single units, but evidence of them.
    tables = [run.scores, *(t for t in run.evidence.values() if "model" in t.columns)]
    models = pl.concat([table["model"].cast(pl.String) for table in tables])
    names = models.drop_nulls().unique().to_list()
    if len(names) != 1:
        raise SpecError(
            "a run to compare holds no single model",
            expected="one model in each run",
            found=", ".join(map(str, names)) or "none",
        )
    return str(names[0])
