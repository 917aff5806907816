"""The columns of an Arrow file as its schema declares them: types, and what each has in a batch.

The numbers are those of Schema.fbs in apache/arrow, version 5 of the metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from isolux.io.flatbuffers import Table
from isolux.io.thrift_compact import DamagedError

__all__ = ["Column", "UnreadTypeError", "columns_of", "refuse_unread"]

NULL, INT, FLOAT, BINARY, UTF8, BOOL, DECIMAL, DATE, TIME, TIMESTAMP, INTERVAL = range(1, 12)
LIST, STRUCT, UNION, FIXED_BINARY, FIXED_LIST, MAP, DURATION, LARGE_BINARY = range(12, 20)
LARGE_UTF8, LARGE_LIST, RUN_ENDS, BINARY_VIEW, UTF8_VIEW, LIST_VIEW, LARGE_LIST_VIEW = range(20, 27)

OFFSETS = {BINARY: 4, UTF8: 4, LIST: 4, MAP: 4, LARGE_BINARY: 8, LARGE_UTF8: 8, LARGE_LIST: 8}
"""Types whose values are told apart by offsets, and the bytes of one."""
VIEWS = (BINARY_VIEW, UTF8_VIEW)

_UNREAD = {
    INTERVAL: ("interval", "cast it to a number of seconds or days"),
    UNION: ("union", "cast it to one type"),
    RUN_ENDS: ("run-end encoded", "cast it to the type of its values"),
    LIST_VIEW: ("list_view", "cast it to list"),
    LARGE_LIST_VIEW: ("large_list_view", "cast it to large_list"),
}
_WIDE = ("decimal256", "cast it to float64, or to decimal128 if its digits fit")
_UNITS = {INTERVAL: (32, 64, 128), FLOAT: (16, 32, 64), DATE: (32, 64)}
_DEFAULT = {INTERVAL: 0, FLOAT: 0, DATE: 1}  # where the file leaves the unit out
_WIDTHS = {INT: (0, 0), DECIMAL: (2, 128), TIME: (1, 32)}
"""Types that say how many bits a value has: in which field, and where the file leaves it out."""
_FIXED = {BOOL: 1, TIMESTAMP: 64, DURATION: 64}
_DEEPEST = 32
_LEAST = 12  # bytes that a field takes in the schema at the very least


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or what its lists and structs hold.

    Parameters
    ----------
    name : str
    kind : int
        The type's number in Schema.fbs.
    bits : int
        Of one value of a fixed width; 0 of other types.
    children : tuple of Column
    size : int
        Items of each list, where they all have so many.
    words : int, optional
        The dictionary whose words these are; what lies in a batch are then keys.
    keys : int
        Bits of such a key.
    finer : tuple
        What else tells its type from others: signed or not, units, digits, time zone, notes.
    """

    name: str
    kind: int
    bits: int
    children: tuple[Column, ...]
    size: int
    words: int | None
    keys: int
    finer: tuple[int | str, ...]

    def plain(self) -> Column:
        """Return a column of its dictionary's words themselves."""
        return replace(self, words=None, keys=0)


def columns_of(schema: Table) -> tuple[Column, ...]:
    """Read the columns that a schema declares."""
    if schema.number(0, "<h"):
        raise DamagedError("its numbers are big-endian")
    budget = [schema.length // _LEAST]
    return tuple(_column(field, budget, 0) for field in schema.tables(1))


def _column(field: Table, budget: list[int], deep: int) -> Column:
    budget[0] -= 1  # fields may share bytes, which would let a few stand for millions
    if deep > _DEEPEST or budget[0] < 0:
        raise DamagedError("fields within fields without end")
    kind, told = field.number(2, "<B"), field.table(3)
    if not NULL <= kind <= LARGE_LIST_VIEW or told is None:
        raise DamagedError(f"no such type: {kind}")
    children = tuple(_column(child, budget, deep + 1) for child in field.tables(5))
    bits = _bits(kind, told)
    size = told.number(0, "<i") if kind == FIXED_LIST else 0
    lists = kind in (LIST, LARGE_LIST, FIXED_LIST, MAP)
    if bits < 0 or size < 0 or (lists and len(children) != 1):
        raise DamagedError(f"column {field.text(0)!r}: its type is none")
    words, keys = _coded(field)
    finer = _finer(kind, told, field)
    return Column(field.text(0), kind, bits, children, size, words, keys, finer)


def _coded(field: Table) -> tuple[int | None, int]:
    """Tell a column's dictionary and the width of its keys, where it has one."""
    coded = field.table(4)
    if coded is None:
        return None, 0
    keys = coded.table(1)
    width = 32 if keys is None else keys.number(0, "<i")
    if width not in (8, 16, 32, 64):
        raise DamagedError(f"column {field.text(0)!r}: keys of {width} bits")
    return coded.number(0, "<q"), width


def _finer(kind: int, told: Table, field: Table) -> tuple[int | str, ...]:
    of: tuple[int | str, ...] = ()
    if kind == INT:
        of = (told.number(1, "<B"),)
    elif kind == DECIMAL:
        of = told.number(0, "<i"), told.number(1, "<i")
    elif kind in (TIME, DURATION):
        of = (told.number(0, "<h", 1),)
    elif kind == TIMESTAMP:
        of = told.number(0, "<h"), told.text(1)
    # an Enum's words are here, and what makes a text a date to one library and not to another
    return (*of, *(pair.text(part) for pair in field.tables(6) for part in (0, 1)))


def _bits(kind: int, told: Table) -> int:
    if kind in _UNITS:
        unit = told.number(0, "<h", _DEFAULT[kind])
        if not 0 <= unit < len(_UNITS[kind]):
            raise DamagedError(f"no such unit: {unit}")
        return _UNITS[kind][unit]
    if kind == FIXED_BINARY:
        return 8 * told.number(0, "<i")
    if kind in _WIDTHS:
        field, default = _WIDTHS[kind]
        return told.number(field, "<i", default)
    return _FIXED.get(kind, 0)


class UnreadTypeError(ValueError):
    """A whole file, with a column of a type that polars has no counterpart of.

    Parameters
    ----------
    said : str
        The column, and its type in Arrow.
    hint : str
        What to make of it.
    """

    def __init__(self, said: str, hint: str) -> None:
        super().__init__(said)
        self.hint = hint


def refuse_unread(columns: tuple[Column, ...]) -> None:
    """Refuse columns of types that polars cannot read."""
    for column in columns:
        found = _unread(column)
        if found:
            raise UnreadTypeError(f"the column {column.name!r} is {found[0]}", found[1])


def _unread(column: Column) -> tuple[str, str] | None:
    if column.kind == DECIMAL and column.bits > 128:
        return _WIDE
    if column.kind in _UNREAD:
        return _UNREAD[column.kind]
    inside = next(filter(None, map(_unread, column.children)), None)
    return (f"{inside[0]}, within its values", inside[1]) if inside else None
