"""Which pairs are of one person, as files say it, and whom genuine pairs connect."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import TableError, format_location
from isolux.core.formatting import join_first
from isolux.io.cell_parsing import as_text, first_true_row
from isolux.io.refusals import refuse_cells
from isolux.io.yes_no import NO, YES

_MAX_LISTED_ROWS = 10
_SCORE_TOLERANCE = 1e-6  # a·b and b·a on a processor
_GENUINE_WORDS = (*YES, "genuine", "same", "match", "matched", "mated")
_IMPOSTOR_WORDS = (
    *NO,
    "-1",
    "-1.0",
    "impostor",
    "imposter",
    "different",
    "diff",
    "nonmatch",
    "non-match",
    "unmatched",
    "nonmated",
    "non-mated",
)


def read_or_derive_is_genuine(
    frame: pl.DataFrame,
    column: str | None,
    people: tuple[pl.Series, ...] | None,
    source: str,
) -> pl.Series:
    """Read whether each pair is of one person; null where it is not said."""
    is_same_person = None if people is None else (people[0] == people[1])
    if column is None:
        assert is_same_person is not None  # noqa: S101 - find_columns asks for one of the two
        return is_same_person.alias("genuine")
    folded = as_text(frame[column]).str.strip_chars().str.to_lowercase()
    is_genuine = pl.select(
        pl.when(folded.is_in(_GENUINE_WORDS))
        .then(pl.lit(value=True))
        .when(folded.is_in(_IMPOSTOR_WORDS))
        .then(pl.lit(value=False))
    ).to_series()
    is_unreadable = is_genuine.is_null() & folded.is_not_null() & (folded != "")
    refuse_cells(
        is_unreadable,
        frame[column],
        "{n} pair(s) do not say whether they are of one person",
        "1 or 0, true or false, yes or no, genuine or impostor, same or different",
        source,
        hint="name another column with --data-option genuine=COLUMN",
    )
    if is_same_person is not None:
        is_contradicted = (is_genuine != is_same_person).fill_null(value=False)
        if is_contradicted.any():
            row = first_true_row(is_contradicted)
            called_words = [
                word
                for is_called_genuine, word in ((True, "genuine"), (False, "impostors"))
                if (is_contradicted & (is_genuine == is_called_genuine)).any()
            ]
            raise TableError(
                f"{is_contradicted.sum():,} of {frame.height:,} pairs are called"
                f" {' or '.join(called_words)} against the people in them",
                expected="genuine where both are one person, and only there",
                found=", ".join(repr(side_people[row]) for side_people in people or ())
                + f" called {'genuine' if is_genuine[row] else 'impostors'}",
                where=format_location(source, row + 1, column),
                hint="name another column with --data-option genuine=COLUMN, or correct these rows",
            )
    return is_genuine.alias("genuine")


def check_pair_labels_agree(
    ids: tuple[pl.Series, pl.Series], is_genuine: pl.Series, column: str | None, source: str
) -> None:
    """Refuse two pictures that one row calls genuine and another impostors, in either order."""
    labelled_pairs = pl.DataFrame(
        {"row": np.arange(len(is_genuine)), "one": ids[0], "other": ids[1], "same": is_genuine}
    ).drop_nulls("same")
    pair = (pl.min_horizontal("one", "other"), pl.max_horizontal("one", "other"))
    distinct_labels = labelled_pairs.with_columns(low=pair[0], high=pair[1]).unique(
        ["low", "high", "same"], keep="first", maintain_order=True
    )
    contradicted = distinct_labels.filter(pl.struct("low", "high").is_duplicated()).sort(
        "row", maintain_order=True
    )
    if contradicted.height:
        pair_rows = contradicted.filter(low=contradicted["low"][0], high=contradicted["high"][0])
        rows = dict(pair_rows.select("same", pl.col("row") + 1).iter_rows())
        raise TableError(
            f"{contradicted.height // 2:,} pair(s) are called both genuine and impostors",
            expected="one answer for two pictures, in whichever order they are named",
            found=f"{pair_rows['one'][0]!r} and {pair_rows['other'][0]!r}: genuine in row"
            f" {rows[True]:,}, impostors in row {rows[False]:,}",
            where=format_location(source, int(pair_rows["row"][1]) + 1, column or ""),
            hint="correct the row that is wrong, or take both out",
        )


def check_one_score_per_pair(
    ids: tuple[pl.Series, pl.Series], score: pl.Series, model: pl.Series, source: str
) -> None:
    """Refuse two pictures that one model gives two scores, in either order."""
    scored_pairs = pl.DataFrame(
        {"row": np.arange(len(score)), "one": ids[0], "other": ids[1], "score": score, "of": model}
    ).filter(pl.col("score").is_not_null(), pl.col("one") != pl.col("other"))
    low, high = pl.min_horizontal("one", "other"), pl.max_horizontal("one", "other")
    pairs = scored_pairs.select("row", "score", low=pl.col("of") + "\n" + low, high=high)
    repeated_pairs = pairs.filter(pl.struct("low", "high").is_duplicated())
    first = pl.col("score").first().over("low", "high")
    size = pl.max_horizontal(first.abs(), pl.col("score").abs(), pl.lit(1.0))
    contradicted = repeated_pairs.filter((pl.col("score") - first).abs() > _SCORE_TOLERANCE * size)
    if contradicted.height:
        second_row = contradicted.row(0, named=True)
        row = second_row["row"]
        first_row = repeated_pairs.filter(low=second_row["low"], high=second_row["high"]).row(
            0, named=True
        )
        other_rows = join_first((f"{k + 1:,}" for k in contradicted["row"][1:]), _MAX_LISTED_ROWS)
        rows_text = f"; others in row(s) {other_rows}" if other_rows else ""
        raise TableError(
            f"{contradicted.select('low', 'high').n_unique():,} pair(s) have two scores",
            expected="one score for two pictures, in whichever order they are named",
            found=f"{ids[0][row]!r} and {ids[1][row]!r}: {first_row['score']:g} in row"
            f" {first_row['row'] + 1:,}, {second_row['score']:g} in row {row + 1:,}{rows_text}",
            where=format_location(source, row + 1, str(score.name)),
            hint="keep the row that holds, or name the model of each row in a column model",
        )


def label_connected_components(
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    is_genuine: pl.Series,
    n_images: int,
) -> pl.Series:
    """Find the connected components of images under genuine pairs, and return their numbers.

    Shapes: ``first, second`` [m].
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = is_genuine.fill_null(value=False).to_numpy()
    genuine_indices = (first[rows], second[rows])
    edges = coo_array(
        (np.ones(len(genuine_indices[0]), dtype=np.int8), genuine_indices),
        shape=(n_images, n_images),
    )
    return pl.Series(connected_components(edges, directed=False)[1])
