"""FlatBuffers, read as far as the metadata of Arrow files needs it, with every offset checked.

Written after the specification (flatbuffers.dev, "FlatBuffer Internals"): a table begins with how
far before it its vtable lies, which says where each field is; a vector begins with its length. The
package ``flatbuffers`` needs generated code, and looks at no offset before it follows it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from isolux.io.thrift_compact import DamagedError

__all__ = ["Table", "root"]

_VTABLE = 4  # bytes of a vtable before its first field: its own size and the table's


class Table:
    """A table in a buffer.

    Parameters
    ----------
    buffer : memoryview
        Nothing of the table may lie outside.
    at : int
        Where the table begins.

    Examples
    --------
    A root at byte 12 whose field 0 is the 32-bit number 7; its vtable lies at byte 4:

    >>> data = struct.pack("<IHHHxxiI", 12, 6, 8, 4, 8, 7)
    >>> root(memoryview(data)).number(0, "<i")
    7
    """

    __slots__ = ("_at", "_buffer", "_fields", "_vtables")

    def __init__(
        self, buffer: memoryview, at: int, vtables: dict[int, tuple[int, ...]] | None = None
    ) -> None:
        # Tables of one kind share a vtable as a rule, so that each is read once for a buffer.
        self._vtables = {} if vtables is None else vtables
        self._buffer, self._at = buffer, at
        vtable = at - self._read("<i", at)
        fields = self._vtables.get(vtable)
        self._fields = self._listed(vtable) if fields is None else fields

    def _listed(self, vtable: int) -> tuple[int, ...]:
        size = self._read("<H", vtable)
        if size < _VTABLE or size % 2 or vtable + size > len(self._buffer):
            raise DamagedError(f"no list of fields at byte {vtable:,} of a message")
        form = f"<{(size - _VTABLE) // 2}H"
        fields = struct.unpack_from(form, self._buffer, vtable + _VTABLE)
        self._vtables[vtable] = fields
        return fields

    @property
    def length(self) -> int:
        """Bytes of the buffer that it lies in."""
        return len(self._buffer)

    def _read(self, form: str, at: int) -> int:
        if at < 0:  # struct would count from the end
            raise DamagedError("a message points before itself")
        try:
            found: int = struct.unpack_from(form, self._buffer, at)[0]
        except struct.error as error:
            raise DamagedError(f"a message points at byte {at:,}, behind its end") from error
        return found

    def _where(self, field: int) -> int | None:
        step = self._fields[field] if field < len(self._fields) else 0
        return self._at + step if step else None

    def _followed(self, at: int) -> int:
        step = self._read("<I", at)
        if not step:
            raise DamagedError(f"byte {at:,} of a message points at itself")
        return at + step

    def number(self, field: int, form: str, default: int = 0) -> int:
        """Read a number in a form of ``struct``; the default where the table leaves it out."""
        at = self._where(field)
        return default if at is None else self._read(form, at)

    def table(self, field: int) -> Table | None:
        """Read a table within this one."""
        at = self._where(field)
        return None if at is None else Table(self._buffer, self._followed(at), self._vtables)

    def tables(self, field: int) -> Iterator[Table]:
        """Yield the tables of a vector."""
        at, count = self._vector(field, 4)
        for item in range(at, at + 4 * count, 4):
            yield Table(self._buffer, self._followed(item), self._vtables)

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        """Read a vector of structs, each in a form of ``struct``."""
        size = struct.calcsize(form)
        at, count = self._vector(field, size)
        return list(struct.iter_unpack(form, self._buffer[at : at + count * size]))

    def text(self, field: int) -> str:
        """Read a text; an empty one where the table leaves it out."""
        at, count = self._vector(field, 1)
        return bytes(self._buffer[at : at + count]).decode("utf-8", "replace")

    def _vector(self, field: int, size: int) -> tuple[int, int]:
        """Tell where a vector's items begin, and how many it has."""
        at = self._where(field)
        if at is None:
            return 0, 0
        at = self._followed(at)
        count = self._read("<I", at)
        if at + 4 + count * size > len(self._buffer):
            raise DamagedError(f"{count:,} items at byte {at:,} of a message go past its end")
        return at + 4, count


def root(buffer: memoryview) -> Table:
    """Read the table that a buffer is about."""
    if len(buffer) < 8:
        raise DamagedError("a message is too short to hold anything")
    return Table(buffer, int.from_bytes(buffer[:4], "little"))
