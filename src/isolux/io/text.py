"""Is a file's content UTF-8 text? If not: what it is instead, where, and how to convert it."""

from __future__ import annotations

from pathlib import PurePath

from isolux.core.errors import FileError, format_location

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BINARY_SIGNATURES = {
    b"PK\x03\x04": ("an Excel workbook or zip archive", "save the table as CSV"),
    b"\x1f\x8b": ("a gzip archive", "end its name in .gz"),
    b"PAR1": ("a Parquet file", "end its name in .parquet"),
    b"ARROW1": ("an Arrow file", "end its name in .arrow"),
}


def check_utf8(content: bytes, source: str) -> bytes:
    """Return the bytes without a byte order mark if they are UTF-8 text."""
    for signature, (format_name, hint) in _BINARY_SIGNATURES.items():
        if content.startswith(signature):
            raise FileError("this is not text", found=format_name, where=source, hint=hint)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content[:4096]:
        raise FileError(
            "the file is not UTF-8 text",
            found="UTF-16 (Excel calls it Unicode text) or zero bytes",
            where=source,
            hint=_conversion_command("UTF-16", source),
        )
    content = content.removeprefix(_BYTE_ORDER_MARK)
    if content.isascii():
        return content
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start)
        raise FileError(
            "the file is not UTF-8 text",
            expected="UTF-8",
            found=f"byte 0x{content[error.start]:02X} at position {error.start}",
            where=format_location(source, row) if row else f"{source}, first line",
            hint=_conversion_command("WINDOWS-1252", source) + " (or whatever it was saved in)",
        ) from error
    return content


def _conversion_command(encoding: str, source: str) -> str:
    name = PurePath(source)
    return f"iconv -f {encoding} -t UTF-8 {name.name} > {name.stem}-utf8{name.suffix}"
