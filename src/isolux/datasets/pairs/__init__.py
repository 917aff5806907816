"""Pairs that a verifier compared, alone: one row a pair, with the groups of either side.

A score or a distance, whether both are one person, and who they are by group: what a verification
test leaves behind where the pictures stay at home. With ids a picture may be in several pairs;
without them every pair is of two people of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.datasets._refusals import refuse_cells
from isolux.datasets._wide import attributes_of
from isolux.datasets.pairs.clusters import (
    clustered,
    contradicted,
    first_of_pairs,
    of_two_groups,
    twice_in_a_row,
)
from isolux.datasets.pairs.columns import PairColumns, find_columns
from isolux.datasets.pairs.truth import genuine_of, refuse_both, refuse_two_scores
from isolux.io.cells import as_numbers, as_text, first_of
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.ids import ids_of
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import TableError
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
        frame.columns, where=where, first=first, second=second, score=score, genuine=genuine
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
