"""Which pairs are of one person, as files say it, and whom genuine pairs connect."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.cells import as_text, row_of
from isolux.io.refusals import refuse_cells
from isolux.io.yes_no import NO, YES
from isolux.vocabulary.errors import TableError, place

_ALIKE = 1e-6  # a·b and b·a on a processor
_YES = (*YES, "genuine", "same", "match", "matched", "mated")
_NO = (
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


def genuine_of(
    frame: pl.DataFrame,
    column: str | None,
    people: tuple[pl.Series, ...] | None,
    where: str,
) -> pl.Series:
    """Read whether each pair is of one person; null where it is not said."""
    known = None if people is None else (people[0] == people[1])
    if column is None:
        assert known is not None  # noqa: S101 - find_columns asks for one of the two
        return known.alias("genuine")
    folded = as_text(frame[column]).str.strip_chars().str.to_lowercase()
    told = pl.select(
        pl.when(folded.is_in(_YES))
        .then(pl.lit(value=True))
        .when(folded.is_in(_NO))
        .then(pl.lit(value=False))
    ).to_series()
    strange = told.is_null() & folded.is_not_null() & (folded != "")
    refuse_cells(
        strange,
        frame[column],
        "{n} pair(s) do not say whether they are of one person",
        "1 or 0, true or false, yes or no, genuine or impostor, same or different",
        where,
        hint="name another column with --data-option genuine=COLUMN",
    )
    if known is not None:
        torn = (told != known).fill_null(value=False)
        if torn.any():
            row = row_of(torn)
            kinds = [
                word
                for kind, word in ((True, "genuine"), (False, "impostors"))
                if (torn & (told == kind)).any()
            ]
            raise TableError(
                f"{torn.sum():,} of {frame.height:,} pairs are called {' or '.join(kinds)} against"
                " the people in them",
                expected="genuine where both are one person, and only there",
                found=", ".join(repr(side[row]) for side in people or ())
                + f" called {'genuine' if told[row] else 'impostors'}",
                where=place(where, row + 1, column),
                hint="name another column with --data-option genuine=COLUMN, or correct these rows",
            )
    return told.alias("genuine")


def refuse_both(
    ids: tuple[pl.Series, pl.Series], same: pl.Series, column: str | None, where: str
) -> None:
    """Refuse two pictures that one row calls genuine and another impostors, in either order."""
    told = pl.DataFrame(
        {"row": np.arange(len(same)), "one": ids[0], "other": ids[1], "same": same}
    ).filter(pl.col("same").is_not_null())
    pair = (pl.min_horizontal("one", "other"), pl.max_horizontal("one", "other"))
    each = told.with_columns(low=pair[0], high=pair[1]).unique(
        ["low", "high", "same"], keep="first", maintain_order=True
    )
    torn = each.filter(pl.struct("low", "high").is_duplicated()).sort("row", maintain_order=True)
    if torn.height:
        held = torn.filter(low=torn["low"][0], high=torn["high"][0])
        rows = dict(held.select("same", pl.col("row") + 1).iter_rows())
        raise TableError(
            f"{torn.height // 2:,} pair(s) are called both genuine and impostors",
            expected="one answer for two pictures, in whichever order they are named",
            found=f"{held['one'][0]!r} and {held['other'][0]!r}: genuine in row {rows[True]:,},"
            f" impostors in row {rows[False]:,}",
            where=place(where, int(held["row"][1]) + 1, column or ""),
            hint="correct the row that is wrong, or take both out",
        )


def refuse_two_scores(
    ids: tuple[pl.Series, pl.Series], score: pl.Series, model: pl.Series, where: str
) -> None:
    """Refuse two pictures that one model gives two scores, in either order."""
    told = pl.DataFrame(
        {"row": np.arange(len(score)), "one": ids[0], "other": ids[1], "score": score, "of": model}
    ).filter(pl.col("score").is_not_null() & (pl.col("one") != pl.col("other")))
    low, high = pl.min_horizontal("one", "other"), pl.max_horizontal("one", "other")
    pairs = told.select("row", "score", low=pl.col("of") + "\n" + low, high=high)
    twice = pairs.filter(pl.struct("low", "high").is_duplicated())
    first = pl.col("score").first().over("low", "high")
    size = pl.max_horizontal(first.abs(), pl.col("score").abs(), pl.lit(1.0))
    torn = twice.filter((pl.col("score") - first).abs() > _ALIKE * size)
    if torn.height:
        again = torn.row(0, named=True)
        row = again["row"]
        began = twice.filter(low=again["low"], high=again["high"]).row(0, named=True)
        raise TableError(
            f"{torn.select('low', 'high').n_unique():,} pair(s) have two scores",
            expected="one score for two pictures, in whichever order they are named",
            found=f"{ids[0][row]!r} and {ids[1][row]!r}: {began['score']:g} in row"
            f" {began['row'] + 1:,}, {again['score']:g} in row {row + 1:,}",
            where=place(where, row + 1, str(score.name)),
            hint="keep the row that holds, or name the model of each row in a column model",
        )


def people_of(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], same: pl.Series, n: int
) -> pl.Series:
    """Give the pictures that genuine pairs connect one number.

    Shapes: ``first, second`` [m].
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = same.fill_null(value=False).to_numpy()
    ends = (first[rows], second[rows])
    edges = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(n, n))
    return pl.Series(connected_components(edges, directed=False)[1])
