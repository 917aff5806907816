"""Where a row of a table in several files is, and how many people it stands for."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

IntArray = npt.NDArray[np.int64]


class TableRows(str):
    """The name of a table in several files, which knows in which of them each of its rows is.

    ``errors.place`` asks it: a row of files that were put together, or of people who were counted,
    is the row of no file.

    Parameters
    ----------
    said : str
        How the user named the table.
    files : sequence of str
        In the table's order; none: it is not known where a row is.
    ends : sequence of int
        How many rows there are up to the end of each.
    numbers : array of int, optional
        Of each row that is held, its number in the whole table, from 1; default: its own.
    times : array of int, optional
        How many people each row that is held stands for; default: one.

    Examples
    --------
    >>> TableRows("people", ["a.parquet", "b.parquet"], [100, 250]).find_file_and_row(101)
    ('b.parquet', 1)
    """

    __slots__ = ("ends", "files", "numbers", "times")

    files: tuple[str, ...]
    ends: tuple[int, ...]
    numbers: IntArray | None
    times: IntArray | None

    def __new__(
        cls,
        name: str,
        files: Sequence[str] = (),
        ends: Sequence[int] = (),
        *,
        numbers: IntArray | None = None,
        times: IntArray | None = None,
    ) -> Self:
        """Make a name of a table that knows its rows."""
        table_rows = super().__new__(cls, name)
        table_rows.files, table_rows.ends, table_rows.numbers, table_rows.times = (
            tuple(files),
            tuple(ends),
            numbers,
            times,
        )
        return table_rows

    @classmethod
    def from_file(cls, file: str) -> Self:
        """Name the rows of one file."""
        return cls(file, [file], [sys.maxsize])

    def find_file_and_row(self, row: int) -> tuple[str, int | None]:
        """Return the file of a row, from 1, and its row there; the table and None: not known."""
        number = row if self.numbers is None else int(self.numbers[row - 1])
        file_index = bisect_left(self.ends, number)
        if file_index == len(self.files):
            return str(self), None
        return self.files[file_index], number - (self.ends[file_index - 1] if file_index else 0)

    def take_rows(self, rows: IntArray) -> TableRows:
        """Return the table with some of its rows, from 0, in a new order."""
        numbers = rows + 1 if self.numbers is None else self.numbers[rows]
        times = None if self.times is None else self.times[rows]
        return TableRows(str(self), self.files, self.ends, numbers=numbers, times=times)

    def without_locations(self) -> TableRows:
        """Return the table's name alone, where rows were left out and ids are no numbers."""
        return TableRows(str(self))


def count_people_in_mask(mask: pl.Series, source: object) -> int:
    """Count the people of rows that a mask takes, of the table ``source``.

    Examples
    --------
    >>> two = TableRows("people", times=np.array([3, 4]))
    >>> (
    ...     count_people_in_mask(pl.Series([False, True]), two),
    ...     count_people_in_mask(pl.Series([True]), "people.csv"),
    ... )
    (4, 1)
    """
    if isinstance(source, TableRows) and source.times is not None:
        return int(source.times[mask.to_numpy()].sum())
    return int(mask.sum())
