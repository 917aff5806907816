"""Is a file's content UTF-8 text? If not: what it is instead, where, and how to convert it."""

from __future__ import annotations

from pathlib import PurePath

from isolux.vocabulary.errors import FileError, place

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER = {
    b"PK\x03\x04": ("an Excel workbook or zip archive", "save the table as CSV"),
    b"\x1f\x8b": ("a gzip archive", "end its name in .gz"),
    b"PAR1": ("a Parquet file", "end its name in .parquet"),
    b"ARROW1": ("an Arrow file", "end its name in .arrow"),
}


def decodable(data: bytes, where: str) -> bytes:
    """Return the bytes without a byte order mark if they are UTF-8 text."""
    for mark, (kind, hint) in _OTHER.items():
        if data.startswith(mark):
            raise FileError("this is not text", found=kind, where=where, hint=hint)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4096]:
        raise FileError(
            "the file is not UTF-8 text",
            found="UTF-16 (Excel calls it Unicode text) or zero bytes",
            where=where,
            hint=_conversion("UTF-16", where),
        )
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if data.isascii():
        return data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start)
        raise FileError(
            "the file is not UTF-8 text",
            expected="UTF-8",
            found=f"byte 0x{data[error.start]:02X} at position {error.start}",
            where=place(where, row) if row else f"{where}, first line",
            hint=_conversion("WINDOWS-1252", where) + " (or whatever it was saved in)",
        ) from error
    return data


def _conversion(encoding: str, where: str) -> str:
    name = PurePath(where)
    return f"iconv -f {encoding} -t UTF-8 {name.name} > {name.stem}-utf8{name.suffix}"
