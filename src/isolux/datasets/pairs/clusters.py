"""Which pairs are independent of one another: whom they share.

A pair of two people weighs the product of their clusters' weights when clusters are resampled,
which is right where people meet many others. A pair of two people who meet no one else is a draw of
its own, and the product of two weights varies three times as much as one: they are one cluster.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.datasets.pairs.truth import people_of
from isolux.vocabulary.notes import Caution

Places = npt.NDArray[np.int64]
_UNKNOWN = (
    "Clusters are unknown: nothing says which pairs share a person, so every pair is taken as"
    " independent. Where pairs share people, intervals are too narrow."
)
_MANY = 0.1  # of the pairs: below that it is a note
_RUN = 20  # rows that repeat others at one distance: a file appended to itself
_DISTINCT = 0.25  # scores that differ, of all: fewer repeat by chance
_LONE = "two people who are compared with each other alone are one cluster"


def first_of_pairs(first: pl.Series, second: pl.Series) -> npt.NDArray[np.bool_]:
    """Mark the first row of each two pictures, in either order; one with itself is no pair."""
    pair = pl.DataFrame({"a": first, "b": second}).select(
        low=pl.min_horizontal("a", "b"), high=pl.max_horizontal("a", "b")
    )
    kept = pair.select(
        pl.struct("low", "high").is_first_distinct() & (pl.col("low") != pl.col("high"))
    )
    return kept.to_series().to_numpy()


def clustered(
    listed: pl.DataFrame, ends: tuple[Places, Places], same: pl.Series, once: npt.NDArray[np.bool_]
) -> tuple[pl.DataFrame, str]:
    """Give each picture its cluster, and say what clusters are.

    Shapes: ``ends`` [m], ``once`` [m].
    """
    n = listed.height
    first, second = ends[0][once], ends[1][once]
    told = "subject_id" in listed.columns
    if told:
        names = listed["subject_id"].cast(pl.String)
        own = pl.select(
            pl.coalesce(names, pl.format("picture {}", listed["instance_id"]))
        ).to_series()
        person = own.rank("dense").to_numpy().astype(np.int64) - 1
    else:
        person = people_of(*ends, same, n).to_numpy().astype(np.int64)
    merged = _with_lone_pairs(person, ends, same)
    if not told and bool((np.bincount(np.concatenate([first, second]), minlength=n) <= 1).all()):
        row = np.zeros(n, dtype=np.int64)
        rows = np.flatnonzero(once)
        row[first], row[second] = rows, rows
        pair = pl.select(pl.format("pair {}", pl.Series(row + 1))).to_series()
        return listed.with_columns(cluster_id=pair, pair_id=pair), _UNKNOWN
    of = (
        "the people of the pairs"
        if told
        else ("the pictures that genuine pairs connect, directly or by way of others")
    )
    lone = bool((merged != person).any())
    label = own.gather(_first_places(merged)) if told else pl.Series(merged).cast(pl.String)
    found = listed.with_columns(cluster_id=label, pair_id=pl.lit(None, dtype=pl.String))
    return found, f"Clusters are {of}" + (f"; {_LONE}." if lone else ".")


def _with_lone_pairs(person: Places, ends: tuple[Places, Places], same: pl.Series) -> Places:
    """Unite two people who are in impostor pairs with each other and with no one else."""
    apart = (same == False).fill_null(value=False).to_numpy()  # noqa: E712  (null is not False)
    one, other = person[ends[0][apart]], person[ends[1][apart]]
    edges = np.unique(np.sort(np.column_stack([one, other]), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    met = np.bincount(edges.ravel(), minlength=int(person.max(initial=-1)) + 1)
    lone = edges[(met[edges] == 1).all(axis=1)]
    into = np.arange(len(met))
    into[lone[:, 1]] = lone[:, 0]
    united: Places = into[person]
    return united


def _first_places(codes: Places) -> pl.Series:
    """Return, for each unit, the first unit of its cluster."""
    frame = pl.DataFrame({"code": codes, "at": np.arange(len(codes))})
    return frame.select(pl.col("at").min().over("code")).to_series()


def contradicted(
    ids: tuple[pl.Series, pl.Series],
    ends: tuple[Places, Places],
    same: pl.Series,
    once: npt.NDArray[np.bool_],
    n: int,
) -> list[Caution]:
    """Caution where two pictures are called impostors that genuine pairs connect."""
    person = people_of(*ends, same, n).to_numpy()
    torn = (same == False).fill_null(value=False).to_numpy() & once  # noqa: E712
    torn &= person[ends[0]] == person[ends[1]]
    if not torn.any():
        return []
    row = int(np.argmax(torn))
    return [
        Caution(
            f"{int(torn.sum()):,} pair(s) are called impostors although genuine pairs connect their"
            f" two pictures, such as {ids[0][row]!r} and {ids[1][row]!r} (row {row + 1:,}): one of"
            " the answers is wrong."
        )
    ]


def of_two_groups(
    name: str, one: pl.Series, other: pl.Series, same: pl.Series, once: npt.NDArray[np.bool_]
) -> list[str]:
    """Say how many pairs are of two groups, or of one that is known on one side alone.

    Shapes: ``once`` [m].
    """
    total = int(once.sum())
    genuine = same.fill_null(value=False).to_numpy()
    apart = (one != other).fill_null(value=False).to_numpy() & once
    half = (one.is_null() != other.is_null()).to_numpy() & once
    notes: list[str] = []
    torn = int((apart & genuine).sum())
    if torn:
        row = int(np.argmax(apart & genuine))
        notes.append(
            Caution(
                f"{name}: {torn:,} genuine pair(s), each of one person, have two groups, such as"
                f" {one[row]!r} and {other[row]!r} (row {row + 1:,}): they count for neither."
            )
        )
    crossed = int((apart & ~genuine).sum())
    if crossed:
        notes.append(
            f"{name}: {crossed:,} of {total:,} pairs are of two groups; they count only in the row"
            " for everyone."
        )
    known = int(half.sum())
    if known:
        text = (
            f"{name}: {known:,} of {total:,} pairs have a group on one side alone; they count only"
            " in the row for everyone."
        )
        notes.append(Caution(text) if known >= _MANY * total else text)
    return notes


def twice_in_a_row(frame: pl.DataFrame, score: str) -> list[Caution]:
    """Caution where rows without ids repeat others in every column, all at one distance."""
    if frame[score].n_unique() < _DISTINCT * frame.height:
        return []
    rows = frame.with_row_index("_row")
    before = pl.col("_row").cast(pl.Int64) - pl.col("_row").cast(pl.Int64).shift(1)
    gaps = rows.select(gap=before.over(frame.columns)).drop_nulls()
    if gaps.is_empty():
        return []
    n, gap = gaps["gap"].value_counts(sort=True).select("count", "gap").row(0)
    if n < _RUN:
        return []
    return [
        Caution(
            f"{n:,} of {frame.height:,} rows equal the row {gap:,} before them in every column, and"
            " count again: without ids they may be other pairs. Was a file appended to itself?"
        )
    ]
