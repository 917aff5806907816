"""Pairs that a verifier compared, alone: one row a pair, with the groups of either side.

A score or a distance, whether both are one person, and who they are by group: what a verification
test leaves behind where the pictures stay at home. With ids a picture may be in several pairs;
without them every pair is of two people of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.datasets._tables import first_named
from isolux.datasets._wide import attributes_of
from isolux.datasets.pairs.clusters import (
    clustered,
    contradicted,
    first_of_pairs,
    of_two_groups,
    twice_in_a_row,
)
from isolux.datasets.pairs.truth import genuine_of, refuse_both, refuse_two_scores
from isolux.io.cells import as_numbers, as_text, first_of
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.ids import ids_of
from isolux.io.refusals import refuse_cells, require_columns
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError, columns_shown
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.tables import ATTRIBUTES, INSTANCES, check

INFO = DatasetInfo(
    title="pairs that a verifier compared",
    summary="One row a pair: a score, whether both are one person, the groups of either side.",
    references=(
        Reference(
            key="biometric-testing",
            citation="ISO/IEC 19795-1:2021. Information technology: Biometric performance testing"
            " and reporting. Part 1: Principles and framework.",
        ),
    ),
    licence="the licence of your table",
    judgement="declared by the user",
    assumptions=(
        "each row is one comparison",
        "without ids, pairs are independent of one another",
    ),
    task="face_verification",
)


def load(
    path: str | Path,
    *,
    first: str | None = None,
    second: str | None = None,
    genuine: str | None = None,
    score: str | None = None,
    model: str | None = None,
    format: str | None = None,  # noqa: A002  (as in read_table)
) -> Dataset:
    r"""Read a table of pairs: the people in them, and what a model said of them.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, JSON lines or Arrow. Two columns ``race_a, race_b`` (or ``race_1,
        race_2``, ``race1, race2``, ``first_race, second_race``, …) are the attribute ``race`` of
        either side; one column alone is of both. ``subject_a, subject_b`` (``person``,
        ``identity``, ``name``) say who they are.
    first, second : str, optional
        The columns with the ids of the two pictures. Not given: the first there are of
        ``instance_id`` and ``other_id``, ``id1`` and ``id2``, ``image_a`` and ``image_b``, …;
        without any, every pair is of two people of its own.
    genuine : str, optional
        The column that says whether both are one person: 1 or 0, true or false, yes or no, genuine
        or impostor, same or different, match or nonmatch. Not given: the first there is of
        ``genuine``, ``same``, ``match``, ``label``, …; else where ``subject_a`` is ``subject_b``.
    score : str, optional
        The column with the similarity or distance; empty: the comparison failed. Not given: the
        first there is of ``score``, ``similarity``, ``cosine``, ``distance``, ….
    model : str, optional
        The model's name; not given: the column ``model``, else the column of the score.
    format : str, optional
        ``csv``, ``tsv``, ``parquet``, ``jsonlines`` or ``arrow``; by suffix where not given.

    Returns
    -------
    Dataset
        ``outputs`` are the pairs: ``model, instance_id, other_id, score, genuine``. Clusters are
        the people where they are told, else those whom genuine pairs connect, else the pairs; two
        people who are compared with each other alone are one cluster.

    Raises
    ------
    FileError, TableError, SpecError, UnknownNameError
        A file that cannot be read; a column that is not there; a score that is no finite number;
        a picture with two groups; words that do not say whether a pair is genuine; a pair that is
        called both genuine and impostors.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pairs.csv"
    ...     _ = file.write_text("same,dist,race_a,race_b\n1,0.2,Black,Black\n0,0.9,Black,White\n")
    ...     found = load(file)
    >>> found.outputs.select("instance_id", "other_id", "score", "genuine").row(0)
    ('pair 1, first', 'pair 1, second', 0.2, True)
    >>> found.attributes.filter(unit_id="pair 2, second")["value"].to_list()
    ['White']
    """
    where = str(path)
    frame = read_table(path, format=format)
    columns = find_columns(
        frame, where=where, first=first, second=second, score=score, genuine=genuine
    )
    ids = _ids(frame, columns, where)
    people = tuple(first_of(frame[name]) for name in columns.people) if columns.people else None
    same = genuine_of(frame, columns.genuine, people, where)
    refuse_both(ids, same, columns.genuine, where)
    once = first_of_pairs(*ids)
    units, notes = _units(ids, people, same, once, where)
    attributes, told = _attributes(frame, columns, ids, same, once, where)
    if columns.ids is None:
        notes = [*twice_in_a_row(frame, columns.score), *notes]
    own = frame[columns.model] if columns.model and model is None else None
    return Dataset(
        name="pairs",
        info=INFO,
        instances=check(units, INSTANCES, where=where),
        attributes=attributes,
        images=units.select("image_id").unique(maintain_order=True),
        inputs={where: sha256_file(path)},
        notes=(*notes, *told),
        outputs=_outputs(frame, columns, ids, same, own, model or columns.score, where),
    )


def _ids(frame: pl.DataFrame, columns: PairColumns, where: str) -> tuple[pl.Series, pl.Series]:
    if columns.ids is not None:
        one, other = columns.ids
        return ids_of(frame, one, where), ids_of(frame, other, where)
    number = pl.int_range(1, frame.height + 1, eager=True).cast(pl.String)
    return tuple(
        pl.select(pl.format("pair {}, {}", number, pl.lit(side))).to_series().alias("instance_id")
        for side in ("first", "second")
    )  # type: ignore[return-value]


def _units(
    ids: tuple[pl.Series, pl.Series],
    people: tuple[pl.Series, ...] | None,
    same: pl.Series,
    once: npt.NDArray[np.bool_],
    where: str,
) -> tuple[pl.DataFrame, list[str]]:
    """List the pictures once, with their person and their cluster, and say what the latter are."""
    both = pl.DataFrame({"instance_id": pl.concat([ids[0], ids[1]])})
    if people is not None:
        both = both.with_columns(subject_id=pl.concat([people[0], people[1]]))
        _refuse_two(both, "subject_id", "person", where)
    listed = both.unique("instance_id", keep="first", maintain_order=True)
    place = listed.select("instance_id", place=pl.int_range(pl.len()))
    first, second = (
        one.to_frame("instance_id")
        .join(place, on="instance_id", how="left", maintain_order="left")["place"]
        .to_numpy()
        for one in ids
    )
    units, note = clustered(listed, (first, second), same, once)
    torn = contradicted(ids, (first, second), same, once, listed.height)
    return units.with_columns(image_id="instance_id"), [*torn, note]


def _refuse_two(both: pl.DataFrame, column: str, what: str, where: str) -> None:
    values = both.drop_nulls(column).unique(["instance_id", column], maintain_order=True)
    twice = values.filter(pl.col("instance_id").is_duplicated())
    if twice.height:
        who = twice["instance_id"][0]
        held = twice.filter(instance_id=who)[column].to_list()
        raise TableError(
            f"{twice['instance_id'].n_unique():,} picture(s) have another {what} in one pair than"
            " in another",
            expected=f"one {what} for each picture",
            found=f"{who!r}: " + ", ".join(map(repr, held[:3])),
            where=where,
        )


def _attributes(
    frame: pl.DataFrame,
    columns: PairColumns,
    ids: tuple[pl.Series, pl.Series],
    same: pl.Series,
    once: npt.NDArray[np.bool_],
    where: str,
) -> tuple[pl.DataFrame, list[str]]:
    """Give each picture its groups; say how many pairs are of two."""
    units = pl.concat([ids[0], ids[1]])
    parts: list[pl.DataFrame] = [ATTRIBUTES.empty()]
    notes: list[str] = []
    for name, (one, other) in columns.sides.items():
        values = pl.concat([as_text(frame[one]), as_text(frame[other])]).alias(name)
        both = pl.DataFrame({"instance_id": units, name: values})
        if one != other or columns.ids is None:
            _refuse_two(both, name, name, where)
        rows = both.unique(maintain_order=True)
        rows = rows.filter(pl.col(name).is_not_null() | ~pl.col("instance_id").is_duplicated())
        parts.append(attributes_of(rows.select(name), rows["instance_id"], where=where))
        notes += of_two_groups(name, as_text(frame[one]), as_text(frame[other]), same, once)
    return check(pl.concat(parts), ATTRIBUTES, where=where), notes


def _outputs(
    frame: pl.DataFrame,
    columns: PairColumns,
    ids: tuple[pl.Series, pl.Series],
    same: pl.Series,
    models: pl.Series | None,
    model: str,
    where: str,
) -> pl.DataFrame:
    score = as_numbers(frame[columns.score], where=where, column=columns.score).fill_nan(None)
    endless = score.is_infinite().fill_null(value=False)
    refuse_cells(
        endless,
        score,
        "{n} score(s) are infinite",
        "how alike the two are, or nothing where the comparison failed",
        where,
        column=columns.score,
    )
    named = pl.repeat(model, frame.height, eager=True)
    if models is not None:
        named = as_text(models).fill_null(model)
    refuse_two_scores(ids, score.alias(columns.score), named, where)
    return pl.DataFrame(
        {"model": named, "instance_id": ids[0], "other_id": ids[1], "score": score, "genuine": same}
    )


# Which column of a table of pairs is which: ids, people, score, truth, and groups of either side.

_ID = (
    ("instance_id", "other_id"),
    ("id_a", "id_b"),
    ("id1", "id2"),
    ("id_1", "id_2"),
    ("image_a", "image_b"),
    ("image1", "image2"),
    ("image_1", "image_2"),
    ("img_a", "img_b"),
    ("img1", "img2"),
    ("img_1", "img_2"),
    ("file_a", "file_b"),
    ("file1", "file2"),
    ("file_1", "file_2"),
    ("path1", "path2"),
    ("path_1", "path_2"),
    ("left", "right"),
    ("probe", "gallery"),
    ("probe", "reference"),
    ("first", "second"),
)
_PEOPLE = ("subject", "subject_id", "person", "person_id", "identity", "identity_id", "name")
_SCORE = ("score", "similarity", "cosine", "cosine_similarity", "sim", "distance", "dist")
_GENUINE = (
    "genuine",
    "is_genuine",
    "same",
    "is_same",
    "issame",
    "same_person",
    "match",
    "is_match",
    "mated",
    "is_mated",
    "label",
    "target",
)
_ENDS = (
    ("_a", "_b"),
    ("_1", "_2"),
    ("1", "2"),
    ("_first", "_second"),
    ("_left", "_right"),
    ("_probe", "_gallery"),
    ("_probe", "_reference"),
    ("A", "B"),
)
_STARTS = (
    ("a_", "b_"),
    ("first_", "second_"),
    ("left_", "right_"),
    ("probe_", "gallery_"),
    ("probe_", "reference_"),
)
_MODEL = "model"


@dataclass(frozen=True, slots=True)
class PairColumns:
    """The columns of a table of pairs."""

    score: str
    genuine: str | None
    ids: tuple[str, str] | None
    people: tuple[str, str] | None
    sides: dict[str, tuple[str, str]]
    model: str | None


def find_columns(
    frame: pl.DataFrame,
    *,
    where: str,
    first: str | None,
    second: str | None,
    score: str | None,
    genuine: str | None,
) -> PairColumns:
    """Find each column, by its name where none is given."""
    require_columns(frame, (first, second, score, genuine), where)
    columns = frame.columns
    if (first is None) != (second is None):
        raise SpecError(
            "one side of a pair has an id and the other has none",
            expected="--data-option first=COLUMN and --data-option second=COLUMN, or neither",
            found=f"only {'first' if first else 'second'}={first or second}",
            where=where,
        )
    ids = (first, second) if first and second else _both(_ID, columns)
    taken = {score, genuine, *(ids or ())}
    rest = [name for name in columns if name not in taken]
    scored = score or first_named(_SCORE, rest)
    if scored is None:
        raise _missing(
            "how alike the two of a pair are", _SCORE, "--score-column COLUMN", columns, where
        )
    same = genuine or first_named(_GENUINE, [name for name in rest if name != scored])
    rest = [name for name in rest if name not in (scored, same)]
    sides = _sides([name for name in rest if name != _MODEL])
    people = next((sides.pop(name) for name in _PEOPLE if _differ(sides.get(name))), None)
    if same is None and people is None:
        raise _missing(
            "which pairs are of one person",
            (*_GENUINE[:6], "subject_a and subject_b"),
            "--data-option genuine=COLUMN",
            columns,
            where,
        )
    return PairColumns(scored, same, ids, people, sides, _MODEL if _MODEL in rest else None)


def _missing(
    what: str, known: Sequence[str], flag: str, columns: Sequence[str], where: str
) -> SpecError:
    return SpecError(
        f"no column says {what}",
        expected="one of " + ", ".join(known),
        found=columns_shown(columns),
        where=where,
        hint=f"name it with {flag}",
    )


def _both(known: Sequence[tuple[str, str]], columns: Sequence[str]) -> tuple[str, str] | None:
    folded = {name.strip().lower(): name for name in reversed(columns)}
    return next(((folded[a], folded[b]) for a, b in known if a in folded and b in folded), None)


def _differ(sides: tuple[str, str] | None) -> bool:
    return sides is not None and sides[0] != sides[1]


def _sides(columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Put the two columns of an attribute together: ``race_a, race_b``; one alone is of both."""
    there, found = set(columns), {}
    used: set[str] = set()
    for name in columns:
        if name in used:
            continue
        stem, other = next(
            ((s, o) for s, o in _partners(name) if o in there and o not in used), (name, name)
        )
        found[stem if stem not in found else name] = (name, other)
        used |= {name, other}
    return found


def _partners(name: str) -> list[tuple[str, str]]:
    ends = [(name[: -len(a)], name[: -len(a)] + b) for a, b in _ENDS if name.endswith(a)]
    starts = [(name[len(a) :], b + name[len(a) :]) for a, b in _STARTS if name.startswith(a)]
    return [(stem.rstrip("_"), other) for stem, other in [*ends, *starts] if stem.rstrip("_")]
