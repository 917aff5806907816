"""Archives: members are deleted or rewritten, all others stay byte by byte."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from isolux_curate.privacy import PRIVACY_FILE
from isolux_curate.publication.manifest import RELEASE_FILE
from isolux_curate.withdrawal.rewriting.tables import RewriteResult, UnsearchableFile

PartRewriter = Callable[[str, bytes, list[str]], RewriteResult]
"""A function that rewrites a member, given its name, its bytes and all members' names."""


def is_archive_or_compressed(file_bytes: bytes) -> bool:
    """Check by its first bytes whether a file is an archive or compressed."""
    return (
        file_bytes.startswith((b"PK\x03\x04", *_CODEC_BY_MAGIC)) or file_bytes[257:262] == b"ustar"
    )


def list_archive_members_or_empty(archive_name: str, file_bytes: bytes) -> list[tuple[str, bytes]]:
    """List the members of an archive, or a compressed file's content; empty for other files."""
    archive_parts: list[tuple[str, bytes]] = []

    def collect_part(part_name: str, content: bytes, _: list[str]) -> RewriteResult:
        archive_parts.append((part_name, content))
        return content, 0

    with suppress(UnsearchableFile):  # listed as unsearchable when its content is searched
        rewrite_archive_members(
            archive_name.rpartition(".")[0] or archive_name, file_bytes, collect_part
        )
    return archive_parts


def rewrite_archive_members(
    inner_name: str, file_bytes: bytes, rewrite_part: PartRewriter
) -> RewriteResult:
    """Rewrite an archive's members, or a compressed file's content, named ``inner_name``."""
    if file_bytes.startswith(b"PK\x03\x04"):
        return _rewrite_zip_members(file_bytes, rewrite_part)
    if file_bytes[257:262] == b"ustar":
        return _rewrite_tar_members(file_bytes, rewrite_part)
    codec = next(
        (
            codec
            for magic_bytes, codec in _CODEC_BY_MAGIC.items()
            if file_bytes.startswith(magic_bytes)
        ),
        None,
    )
    if codec is None:
        return file_bytes, 0
    unpack, pack = codec
    with convert_errors_to_unsearchable("it cannot be unpacked"):
        unpacked = unpack(file_bytes)
    content, n = rewrite_part(inner_name, unpacked, [])
    return (pack(content) if n and content is not None else content), n


@contextmanager
def convert_errors_to_unsearchable(problem: str) -> Iterator[None]:
    """Turn a library's exceptions into an unsearchable file."""
    try:
        yield
    except UnsearchableFile:
        raise
    except Exception as error:  # zipfile, tarfile and the others raise many
        raise UnsearchableFile(f"{problem}: {error}") from error


def _rewrite_zip_members(file_bytes: bytes, rewrite_part: PartRewriter) -> RewriteResult:
    out, n = io.BytesIO(), 0
    with (
        convert_errors_to_unsearchable("the archive cannot be opened"),
        zipfile.ZipFile(io.BytesIO(file_bytes)) as old,
        zipfile.ZipFile(out, "w") as new,
    ):
        names = old.namelist()
        for member in old.infolist():
            if member.flag_bits & 1:
                raise UnsearchableFile("a part of the archive is encrypted")
            member_bytes = old.read(member)
            content, n_removed = (
                (member_bytes, 0)
                if member.is_dir()
                else rewrite_part(member.filename, member_bytes, names)
            )
            n += n_removed
            if content is not None:
                new.writestr(member, content, member.compress_type)
        _refuse_published_folder(names, n)
    return out.getvalue(), n


def _refuse_published_folder(names: Sequence[str], n: int) -> None:
    """Refuse an archive of a published folder that lost rows: its documents would count them."""
    if n and any(name.rpartition("/")[2] in (RELEASE_FILE, PRIVACY_FILE) for name in names):
        raise UnsearchableFile(
            "an archive of a published folder, whose counts and documents count them: delete it"
        )


def _rewrite_tar_members(file_bytes: bytes, rewrite_part: PartRewriter) -> RewriteResult:
    out, n = io.BytesIO(), 0
    with (
        convert_errors_to_unsearchable("the archive cannot be opened"),
        tarfile.open(fileobj=io.BytesIO(file_bytes), mode="r:") as old,
        tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        names = old.getnames()
        for member in old.getmembers():
            stream = old.extractfile(member) if member.isfile() else None
            if stream is None:
                new.addfile(member)
                continue
            content, n_removed = rewrite_part(member.name, stream.read(), names)
            n += n_removed
            if content is not None:
                member.size, member.pax_headers = len(content), {}
                new.addfile(member, io.BytesIO(content))
        _refuse_published_folder(names, n)
    return out.getvalue(), n


_CODEC_BY_MAGIC: dict[bytes, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.decompress, functools.partial(gzip.compress, mtime=0)),
    b"BZh": (bz2.decompress, bz2.compress),
    b"\xfd7zXZ\x00": (lzma.decompress, lzma.compress),
}
