"""Files inside a tar archive, read one after another and never unpacked to disk.

An archive from elsewhere is not trusted: links, devices, names that lead out of it and archives
that unpack to far more than they hold are refused.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from isolux.core.errors import FileError, extract_first_line
from isolux.io.bounded_zlib import LimitedStream, TooLargeError, max_unpacked_bytes

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_MAX_UNPACKED_BYTES = 4 << 30  # bytes unpacked, whatever the archive's size
# names in an archive: ten times the largest dataset read here, and few enough for memory
_MAX_MEMBERS = 2_000_000
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_DAMAGE_ERRORS = (
    tarfile.TarError,
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    OverflowError,
    MemoryError,
)


def is_tar(path: str | Path) -> bool:
    """Tell by its name whether a file is a tar archive."""
    return Path(path).name.lower().endswith(TAR_SUFFIXES)


def read_tar_files(path: str | Path, suffix: str = "") -> Generator[tuple[str, bytes]]:
    """Give each file of an archive whose name ends in ``suffix``: its name and its bytes."""
    path = Path(path).expanduser()
    source = str(path)
    try:
        with path.open("rb") as raw:
            head = raw.read(6)
            raw.seek(0)
            size = path.stat().st_size
            if not size:
                raise FileError("the file is empty", expected="a tar archive", where=source)
            limit = max_unpacked_bytes(size, _MAX_UNPACKED_BYTES)
            opener = next((o for magic, o in _OPENERS.items() if head.startswith(magic)), None)
            stream = opener(raw) if opener else raw
            yield from _read_members(LimitedStream(stream, limit), suffix, source)
    except TooLargeError as error:
        raise FileError(
            "this archive unpacks to far more than its own size, like a decompression bomb",
            expected=f"at most {limit >> 20:,} MiB",
            found=f"more, in {size:,} bytes",
            where=source,
            hint="unpack it yourself if you trust it, and name the folder",
        ) from error
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=source) from error
    except _DAMAGE_ERRORS as error:
        raise FileError(
            "this archive is damaged, cut off or no tar archive",
            found=extract_first_line(error, 120),
            where=source,
        ) from error


def _read_members(stream: LimitedStream, suffix: str, source: str) -> Iterator[tuple[str, bytes]]:
    count = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
        for member in archive:
            count += 1
            _refuse_unsafe(member, source)
            if count > _MAX_MEMBERS:
                raise FileError(
                    f"this archive holds more than {_MAX_MEMBERS:,} files", where=source
                )
            # An archive that lists its members forever would fill the memory.
            archive.members.clear()
            if member.isdir() or not member.name.endswith(suffix):
                continue
            member_file = archive.extractfile(member)
            if member_file is None:
                continue
            content = member_file.read()
            if len(content) != member.size:
                raise EOFError(f"{member.name!r} is cut off")
            yield member.name, content
    if not count:
        raise FileError("this archive holds no file", where=source)


def _refuse_unsafe(member: tarfile.TarInfo, source: str) -> None:
    name = PurePosixPath(member.name.replace("\\", "/"))
    problem = ""
    if name.is_absolute() or ".." in name.parts or "\0" in member.name:
        problem = "a name in this archive leads out of it"
    elif not (member.isreg() or member.isdir()) or member.issparse():
        problem = "this archive holds a link, a device or a file with holes"
    if problem:
        raise FileError(
            problem,
            expected="plain files and folders",
            found=repr(member.name) + (f" → {member.linkname!r}" if member.linkname else ""),
            where=source,
        )
