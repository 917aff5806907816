"""Every error that isolux raises on purpose, and what each of them means.

::

    IsoluxError                 catch this one to catch all of them
    ├── InputError              something read from outside is not as declared
    │   ├── FileError         missing, empty, unreadable, not UTF-8, unknown format
    │   ├── TableError        a column or a cell: missing, wrong type, out of range, duplicated
    │   ├── JoinError         ids of two tables do not meet
    │   └── RunError          a finished run cannot be used: damaged, changed since, cut
    ├── SpecError               a setting is wrong, or two of them contradict each other
    ├── LicenceError            a dataset's licence does not allow what was asked for
    ├── UnknownNameError        no dataset, task, format, metric or column has that name
    └── OutputError             a result cannot be written where it was asked for

A message says what is wrong, what was expected, what was found, where, and what to do,
each on its own line, so that the command line can print it as it stands.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate

from isolux.core.printable import clean_line
from isolux.core.table_rows import TableRows

_MAX_LISTED_COLUMNS = 20
_MAX_LISTED_NAMES, _MAX_LIST_LENGTH = (
    30,
    200,
)  # names that are listed whole; of more, so many letters
_MAX_FOUND_LENGTH = (
    300  # characters of what was found that a message shows: a cell may hold megabytes
)

__all__ = [
    "FileError",
    "InputError",
    "IsoluxError",
    "JoinError",
    "LicenceError",
    "OutputError",
    "RunError",
    "SpecError",
    "TableError",
    "UnknownNameError",
    "find_similar_file_names",
    "format_columns",
    "format_location",
]


class IsoluxError(Exception):
    """The root of all errors raised on purpose.

    Parameters
    ----------
    problem : str
        One sentence: what is wrong.
    expected, found, where, hint : str, optional
        What should have been there, what was there, in which file, row and column, and
        what the reader can do about it.

    Examples
    --------
    >>> print(TableError("a score is not a number", expected="0 to 1", found="'high'"))
    a score is not a number
      expected: 0 to 1
      found: 'high'
    """

    def __init__(
        self,
        problem: str,
        *,
        expected: str | None = None,
        found: str | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        if found is not None and len(found) > _MAX_FOUND_LENGTH:
            found = (
                f"{found[:_MAX_FOUND_LENGTH]} … ({len(found) - _MAX_FOUND_LENGTH:,} more"
                " characters)"
            )
        self.problem = problem
        self.expected = expected
        self.found = found
        self.where = where
        self.hint = hint
        lines = [clean_line(problem)]  # a name in it can neither steer a terminal nor begin a line
        lines += [
            f"  {label}: {clean_line(text)}"
            for label, text in (
                ("expected", expected),
                ("found", found),
                ("where", where),
                ("what to do", hint),
            )
            if text
        ]
        super().__init__("\n".join(lines))


class InputError(IsoluxError):
    """Something read from outside is not as it was declared to be."""


class FileError(InputError):
    """A file is missing, empty, unreadable, in the wrong encoding or of an unknown format."""


class TableError(InputError):
    """A column is missing or a cell does not hold what its column promises."""


class JoinError(InputError):
    """The ids of two tables do not meet."""


class RunError(InputError):
    """A finished run cannot be decided about: damaged, changed since it was written, cut."""


class SpecError(IsoluxError):
    """A setting is wrong, or two settings contradict each other."""


class LicenceError(IsoluxError):
    """A dataset's licence does not allow what was asked for."""


class OutputError(IsoluxError):
    """A result cannot be written where it was asked for."""


class UnknownNameError(IsoluxError):
    """A name that nothing answers to; the message lists the nearest names that exist.

    Parameters
    ----------
    name_type : str
        What was looked for: ``"dataset"``, ``"metric"``, ``"column"``.
    name : str
        The name that was given.
    valid_names : iterable of str
        The names that exist.
    where : str, optional
        The file or table that was searched.
    found : str, optional
        What there is of that name, and why it does not answer to it.
    """

    def __init__(
        self,
        name_type: str,
        name: str,
        valid_names: Iterable[str],
        *,
        where: str | None = None,
        found: str | None = None,
    ) -> None:
        self.name_type = name_type
        self.name = name
        self.valid_names = tuple(valid_names)
        names = sorted(set(self.valid_names))
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        super().__init__(
            f"there is no {name_type} named {name!r}",
            expected=f"one of {_format_limited_name_list(names)}"
            if names
            else f"at least one {name_type}, but there is none",
            found=found,
            where=where,
            hint=f"did you mean {' or '.join(repr(n) for n in near)}?" if near else None,
        )


def extract_first_line(error: BaseException, max_length: int = 200) -> str:
    """Return the first line of an error's message, or of what has none its kind."""
    return (str(error).splitlines() or [type(error).__name__])[0][:max_length]


def refuse_unknown_names(
    name_type: str,
    names: Iterable[object],
    valid_names: Collection[str],
    *,
    where: str | None = None,
) -> None:
    """Raise ``UnknownNameError`` for the first name that does not exist."""
    for name in names:
        if name not in valid_names:
            raise UnknownNameError(name_type, str(name), valid_names, where=where)


def _format_limited_name_list(names: Sequence[str]) -> str:
    """List all names where they are few, else the first ones and how many there are."""
    if len(names) <= _MAX_LISTED_NAMES:
        return ", ".join(names)
    cumulative_lengths = list(accumulate(len(name) + 2 for name in names))
    n_listed = max(3, sum(end <= _MAX_LIST_LENGTH for end in cumulative_lengths))
    return f"{', '.join(names[:n_listed])}, … ({len(names):,} in all)"


def format_did_you_mean(name: str, valid_names: Iterable[str]) -> str | None:
    """Ask whether the nearest of the names that exist was meant; None where none is near.

    Examples
    --------
    >>> format_did_you_mean("colum", ["column", "id"])
    "did you mean 'column'?"
    """
    near = difflib.get_close_matches(name, list(valid_names), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else None


def find_similar_file_names(name: str, file_names: Iterable[str]) -> list[str]:
    """List up to three files whose name is like another; the suffix alone makes none alike.

    Examples
    --------
    >>> find_similar_file_names("peple.csv", ["people.csv", "population.csv", "pop.csv"])
    ['people.csv']
    """
    stem = name.partition(".")[0]
    stem_by_name = {file_name: file_name.partition(".")[0] or file_name for file_name in file_names}
    near = difflib.get_close_matches(
        stem or name, sorted(set(stem_by_name.values())), n=3, cutoff=0.6
    )
    return [
        file_name for like in near for file_name in stem_by_name if stem_by_name[file_name] == like
    ][:3]


def format_columns(names: Iterable[str], noun: str = "columns") -> str:
    """List the columns of a table as an error shows what was found: the first of many.

    Examples
    --------
    >>> format_columns(["id", "label"])
    "columns 'id', 'label'"
    """
    columns = list(names)
    remainder = (
        f" and {len(columns) - _MAX_LISTED_COLUMNS:,} more"
        if len(columns) > _MAX_LISTED_COLUMNS
        else ""
    )
    return f"{noun} " + ", ".join(map(repr, columns[:_MAX_LISTED_COLUMNS])) + remainder


def format_location(
    file: object | None = None, row: int | None = None, column: str | None = None
) -> str | None:
    """Name a place in a file: ``people.csv, row 12, column 'age'``."""
    if isinstance(file, TableRows) and row is not None:
        file, row = file.find_file_and_row(row)
    segments = [
        str(file) if file is not None else "",
        f"row {row}" if row is not None else "",
        f"column {column!r}" if column is not None else "",
    ]
    return ", ".join(p for p in segments if p) or None
