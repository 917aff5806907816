"""Which pairs are independent of one another: whom they share.

A pair of two people weighs the product of their clusters' weights when clusters are resampled,
which is right where people meet many others. A pair of two people who meet no one else is a draw of
its own, and the product of two weights varies three times as much as one: they are one cluster.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.notes import Caution
from isolux.datasets.pairs.genuine_pairs import label_connected_components

IndexArray = npt.NDArray[np.int64]
_UNKNOWN_CLUSTERS_NOTE = (
    "Clusters are unknown: nothing says which pairs share a person, so every pair is taken as"
    " independent. Where pairs share people, intervals are too narrow."
)
_CAUTION_SHARE = 0.1  # of the pairs: below that it is a note
_MIN_REPEATED_ROWS = 20  # rows that repeat others at one distance: a file appended to itself
_MIN_DISTINCT_SHARE = 0.25  # scores that differ, of all: fewer repeat by chance
_LONE_PAIR_NOTE = "two people who are compared with each other alone are one cluster"


def flag_first_row_of_pair(first: pl.Series, second: pl.Series) -> npt.NDArray[np.bool_]:
    """Flag the first row of each pair of images, in either order; self-pairs are false."""
    pair = pl.DataFrame({"a": first, "b": second}).select(
        low=pl.min_horizontal("a", "b"), high=pl.max_horizontal("a", "b")
    )
    is_first = pair.select(
        pl.struct("low", "high").is_first_distinct() & (pl.col("low") != pl.col("high"))
    )
    return is_first.to_series().to_numpy()


def add_clusters_of_images(
    unit_rows: pl.DataFrame,
    pair_indices: tuple[IndexArray, IndexArray],
    is_genuine: pl.Series,
    is_first_of_pair: npt.NDArray[np.bool_],
) -> tuple[pl.DataFrame, str]:
    """Add the cluster of each image, and describe what clusters are.

    Shapes: ``pair_indices`` [m], ``is_first_of_pair`` [m].
    """
    n = unit_rows.height
    first, second = pair_indices[0][is_first_of_pair], pair_indices[1][is_first_of_pair]
    has_subjects = "subject_id" in unit_rows.columns
    if has_subjects:
        names = unit_rows["subject_id"].cast(pl.String)
        subject_names = pl.select(
            pl.coalesce(names, pl.format("picture {}", unit_rows["instance_id"]))
        ).to_series()
        person = subject_names.rank("dense").to_numpy().astype(np.int64) - 1
    else:
        person = (
            label_connected_components(*pair_indices, is_genuine, n).to_numpy().astype(np.int64)
        )
    merged = _merge_lone_pairs(person, pair_indices, is_genuine)
    if not has_subjects and bool(
        (np.bincount(np.concatenate([first, second]), minlength=n) <= 1).all()
    ):
        row = np.zeros(n, dtype=np.int64)
        rows = np.flatnonzero(is_first_of_pair)
        row[first], row[second] = rows, rows
        pair = pl.select(pl.format("pair {}", pl.Series(row + 1))).to_series()
        return unit_rows.with_columns(cluster_id=pair, pair_id=pair), _UNKNOWN_CLUSTERS_NOTE
    cluster_meaning = (
        "the people of the pairs"
        if has_subjects
        else ("the pictures that genuine pairs connect, directly or by way of others")
    )
    has_lone_pairs = bool((merged != person).any())
    label = (
        subject_names.gather(_find_first_unit_of_cluster(merged))
        if has_subjects
        else pl.Series(merged).cast(pl.String)
    )
    with_clusters = unit_rows.with_columns(cluster_id=label, pair_id=pl.lit(None, dtype=pl.String))
    return with_clusters, f"Clusters are {cluster_meaning}" + (
        f"; {_LONE_PAIR_NOTE}." if has_lone_pairs else "."
    )


def _merge_lone_pairs(
    person: IndexArray, pair_indices: tuple[IndexArray, IndexArray], is_genuine: pl.Series
) -> IndexArray:
    """Merge two people who are in impostor pairs only with each other into one cluster."""
    is_impostor = (is_genuine == False).fill_null(value=False).to_numpy()  # noqa: E712  (null is not False)
    first_person = person[pair_indices[0][is_impostor]]
    second_person = person[pair_indices[1][is_impostor]]
    edges = np.unique(np.sort(np.column_stack([first_person, second_person]), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    n_contacts = np.bincount(edges.ravel(), minlength=int(person.max(initial=-1)) + 1)
    lone_edges = edges[(n_contacts[edges] == 1).all(axis=1)]
    merged_person = np.arange(len(n_contacts))
    merged_person[lone_edges[:, 1]] = lone_edges[:, 0]
    united: IndexArray = merged_person[person]
    return united


def _find_first_unit_of_cluster(codes: IndexArray) -> pl.Series:
    """Return, for each unit, the first unit of its cluster."""
    frame = pl.DataFrame({"code": codes, "at": np.arange(len(codes))})
    return frame.select(pl.col("at").min().over("code")).to_series()


def caution_on_contradictions(
    ids: tuple[pl.Series, pl.Series],
    pair_indices: tuple[IndexArray, IndexArray],
    is_genuine: pl.Series,
    is_first_of_pair: npt.NDArray[np.bool_],
    n: int,
) -> list[Caution]:
    """Caution where two pictures are called impostors that genuine pairs connect."""
    person = label_connected_components(*pair_indices, is_genuine, n).to_numpy()
    is_contradicted = (is_genuine == False).fill_null(value=False).to_numpy() & is_first_of_pair  # noqa: E712
    is_contradicted &= person[pair_indices[0]] == person[pair_indices[1]]
    if not is_contradicted.any():
        return []
    row = int(np.argmax(is_contradicted))
    return [
        Caution(
            f"{int(is_contradicted.sum()):,} pair(s) are called impostors although genuine pairs"
            f" connect their two pictures, such as {ids[0][row]!r} and {ids[1][row]!r} (row"
            f" {row + 1:,}): one of the answers is wrong."
        )
    ]


def note_cross_group_pairs(
    name: str,
    first_groups: pl.Series,
    second_groups: pl.Series,
    is_genuine: pl.Series,
    is_first_of_pair: npt.NDArray[np.bool_],
) -> list[str]:
    """Say how many pairs are of two groups, or of one that is known on one side alone.

    Shapes: ``is_first_of_pair`` [m].
    """
    total = int(is_first_of_pair.sum())
    genuine_mask = is_genuine.fill_null(value=False).to_numpy()
    differs = (first_groups != second_groups).fill_null(value=False).to_numpy() & is_first_of_pair
    has_one_group = (
        first_groups.is_null() != second_groups.is_null()
    ).to_numpy() & is_first_of_pair
    notes: list[str] = []
    n_contradicted = int((differs & genuine_mask).sum())
    if n_contradicted:
        row = int(np.argmax(differs & genuine_mask))
        notes.append(
            Caution(
                f"{name}: {n_contradicted:,} genuine pair(s), each of one person, have two groups,"
                f" such as {first_groups[row]!r} and {second_groups[row]!r} (row {row + 1:,}): they"
                " count for neither."
            )
        )
    crossed = int((differs & ~genuine_mask).sum())
    if crossed:
        notes.append(
            f"{name}: {crossed:,} of {total:,} pairs are of two groups; they count only in the row"
            " for everyone."
        )
    n_half_known = int(has_one_group.sum())
    if n_half_known:
        text = (
            f"{name}: {n_half_known:,} of {total:,} pairs have a group on one side alone; they"
            " count only in the row for everyone."
        )
        notes.append(Caution(text) if n_half_known >= _CAUTION_SHARE * total else text)
    return notes


def caution_on_repeated_rows(frame: pl.DataFrame, score: str) -> list[Caution]:
    """Caution where rows without ids repeat others in every column, all at one distance."""
    if frame[score].n_unique() < _MIN_DISTINCT_SHARE * frame.height:
        return []
    rows = frame.with_row_index("_row")
    before = pl.col("_row").cast(pl.Int64) - pl.col("_row").cast(pl.Int64).shift(1)
    gaps = rows.select(gap=before.over(frame.columns)).drop_nulls()
    if gaps.is_empty():
        return []
    n, gap = gaps["gap"].value_counts(sort=True).select("count", "gap").row(0)
    if n < _MIN_REPEATED_ROWS:
        return []
    return [
        Caution(
            f"{n:,} of {frame.height:,} rows equal the row {gap:,} before them in every column, and"
            " count again: without ids they may be other pairs. Was a file appended to itself?"
        )
    ]
