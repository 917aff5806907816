"""Photos against a list of hashes of known illegal material, which the user supplies.

isolux has no such list and fetches none: the National Center for Missing & Exploited Children and
others give theirs to those who may hold them. FHIBE (Methods, "Quality control and data filtering")
compared hashes with the former's. A match is told by its id alone. Nothing of it is copied, shown,
made smaller or written; where the list holds perceptual hashes, pixels are reduced in memory.

Photos that match are out at once; nothing leaves the project until each is decided
(``isolux_curate.project.held``).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.frames import read_table, refuse_unless_file
from isolux.vocabulary.errors import FileError, SpecError, TableError, UnknownNameError
from isolux_curate.project.decisions import (
    CONFIRMED,
    IN,
    KNOWN,
    LISTED,
    OUT,
    decide,
    listed,
    read_verdicts,
)
from isolux_curate.project.folder import Project
from isolux_curate.project.tables import images
from isolux_curate.user_tables import import_function

BITS = 8
"""Of 64: perceptual hashes that differ in no more bits match. By chance, 3 in 10 billion pairs."""
_EXACT = {"md5": 32, "sha1": 40, "sha256": 64}
_PHASH, _PHASH_DIGITS = "phash", 16
_HEX = re.compile(r"[0-9a-f]+")
_AT_ONCE = 1 << 22  # pairs of hashes

Hasher = Callable[[bytes], str]
_U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class HashList:
    """A list of hashes, ready to be asked.

    Parameters
    ----------
    exact : mapping of str to set of str
        ``md5``, ``sha1``, ``sha256``: hexadecimal digits.
    phash : [n] uint64
        Perceptual hashes as the package imagehash makes them.
    other : [m, bytes] uint8
        Perceptual hashes of ``hasher``.
    """

    exact: dict[str, frozenset[str]]
    phash: npt.NDArray[np.uint64]
    other: _U8 = field(default_factory=lambda: np.empty((0, 0), np.uint8))
    hasher: Hasher | None = None

    def __len__(self) -> int:
        """Count the entries."""
        return sum(map(len, self.exact.values())) + len(self.phash) + len(self.other)

    def match(self, data: bytes) -> str | None:
        """Name the entry that a file matches: its kind and digits; None: no entry.

        Examples
        --------
        >>> known = HashList({"md5": frozenset({hashlib.md5(b"x").hexdigest()})}, np.empty(0, "u8"))
        >>> known.match(b"x"), known.match(b"y")
        ('md5 9dd4e461268c8034f5c8564e155c67a6', None)
        """
        for name, entries in self.exact.items():
            digest = hashlib.new(name, data, usedforsecurity=False).hexdigest()
            if digest in entries:
                return f"{name} {digest}"
        if len(self.phash):
            for seen in _phashes(data):
                if (at := _near(self.phash, seen)) is not None:
                    return f"{_PHASH} {int(self.phash[at]):016x}"
        if self.hasher is not None and len(self.other):
            seen_bytes = _bytes_of(self.hasher(data), "the hasher")
            apart = np.bitwise_count(self.other ^ seen_bytes[None]).sum(axis=1, dtype=np.int64)
            if int(apart.min()) <= BITS:
                return f"perceptual {self.other[int(apart.argmin())].tobytes().hex()}"
        return None


def read_hash_list(path: str | Path, *, hasher: str | None = None) -> HashList:
    """Read a list of hashes."""
    where = str(path)
    ask: Hasher | None = None
    if hasher is not None:
        ask = import_function(
            hasher, "this is not a hash function", where="hasher", expected="python:MODULE:FUNCTION"
        )
    rows = _rows(Path(path), own=ask is not None)
    exact = {
        name: frozenset(_checked(rows[name], digits, name, where))
        for name, digits in _EXACT.items()
        if rows.get(name)
    }
    phash = [int(h, 16) for h in _checked(rows.get(_PHASH, []), _PHASH_DIGITS, _PHASH, where)]
    other = [_bytes_of(text, where) for text in rows.get("perceptual", [])]
    if len({len(one) for one in other}) > 1:
        raise TableError("perceptual hashes differ in length", expected="one length", where=where)
    if other and ask is None:
        raise SpecError(
            "the list has perceptual hashes of another kind",
            expected="--hasher, which makes such",
            found="none",
            where=where,
        )
    held = np.array(phash, dtype=np.uint64), np.array(other, dtype=np.uint8)
    found = HashList(exact, held[0], held[1], ask)
    if not len(found):
        raise FileError("the list of hashes is empty", expected="one entry or more", where=where)
    return found


def _rows(path: Path, *, own: bool) -> dict[str, list[str]]:
    """Read the entries by kind, of a table or of lines."""
    refuse_unless_file(path)
    plain = path.suffix in {".csv", ".txt", ""}
    try:
        text = path.read_text("utf-8") if plain else ""
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the list cannot be read", found=str(error), where=str(path)) from error
    first = text.partition("\n")[0]
    named = {*_EXACT, _PHASH, "perceptual"}
    if not plain or named & {word.strip().lower() for word in first.split(",")}:
        table = read_table(path, format="csv" if plain else None)
        return {
            name.lower(): [str(v).strip().lower() for v in table[name].drop_nulls()]
            for name in table.columns
            if name.lower() in named
        }
    lines = (line.split("#")[0].strip().lower() for line in text.splitlines())
    found: dict[str, list[str]] = {}
    kinds = {digits: name for name, digits in _EXACT.items()} | {_PHASH_DIGITS: _PHASH}
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        kind = "perceptual" if own else kinds.get(len(line))
        if kind is None:
            raise TableError(
                "a line is not a hash",
                expected="32, 40, 64 or 16 hexadecimal digits",
                found=f"{len(line)} characters",
                where=f"{path}, line {number}",
            )
        found.setdefault(kind, []).append(line)
    return found


def _checked(entries: Sequence[str], digits: int, name: str, where: str) -> list[str]:
    for number, entry in enumerate(entries, 1):
        if len(entry) != digits or not _HEX.fullmatch(entry):
            raise TableError(
                f"an entry is no {name}",
                expected=f"{digits} hexadecimal digits",
                found=f"{len(entry)} characters",
                where=f"{where}, entry {number} of {name}",
            )
    return list(entries)


def _bytes_of(text: str, where: str) -> _U8:
    try:
        return np.frombuffer(bytes.fromhex(text), dtype=np.uint8)
    except (ValueError, TypeError) as error:
        raise TableError(
            "this is not a hash",
            expected="hexadecimal digits",
            found=f"{len(str(text))} characters",
            where=where,
        ) from error


def _near(entries: npt.NDArray[np.uint64], seen: int) -> int | None:
    for at in range(0, len(entries), _AT_ONCE):
        apart = np.bitwise_count(entries[at : at + _AT_ONCE] ^ np.uint64(seen))
        if int(apart.min()) <= BITS:
            return at + int(apart.argmin())
    return None


def _phashes(data: bytes) -> list[int]:
    """Hash a picture as it is stored and as it is turned, each straight and mirrored."""
    from PIL import Image, ImageOps

    from isolux.checks.duplicates.hashes import SIDE, hash_thumbnails

    try:
        with Image.open(io.BytesIO(data)) as image:
            sides = [image.convert("L"), ImageOps.exif_transpose(image).convert("L")]
    except Exception:  # noqa: BLE001 - what is no picture has no picture's hash
        return []
    small = np.stack(
        [np.asarray(one.resize((SIDE, SIDE), Image.Resampling.LANCZOS)) for one in sides]
    )
    hashes = hash_thumbnails(small)
    if hashes.blank.all():
        return []
    return [int(one) for one in np.unique(np.concatenate([hashes.straight, hashes.mirrored]))]


@dataclass(frozen=True, slots=True)
class Matched:
    """What a list found: photos looked at, ids of new matches, ids that are undecided."""

    looked_at: int
    new: tuple[str, ...]
    undecided: tuple[str, ...]


def match_photos(project: Project, known: HashList) -> Matched:
    """Compare every photo's file with a list; those that match are out until decided."""
    import sqlalchemy as sa

    query = sa.select(images.c.image_id, images.c.file).where(images.c.file.is_not(None))
    rows = project.rows(query.order_by(images.c.image_id))
    fine = cleared(project)
    found: dict[str, str] = {}
    for image, file in rows:
        try:
            data = (project.folder / file).read_bytes()
        except OSError as error:
            raise FileError(
                "a photo cannot be read", found=str(error.strerror), where=f"photo {image}"
            ) from error
        entry = known.match(data)
        if entry is not None and fine.get(image) != entry:
            found[image] = entry
    new = write_matches(project, found, known)
    undecided = listed(project).filter(state="undecided")["image_id"]
    return Matched(len(rows), new, tuple(undecided))


def cleared(project: Project) -> Mapping[str, str]:
    """Name the entry that each photo matched of which people said that it is no such material."""
    found = listed(project).filter(state=IN)
    return dict(found.select("image_id", "entry").rows())


def write_matches(project: Project, found: Mapping[str, str], known: HashList) -> tuple[str, ...]:
    """Leave matches out; the ids of those that were not known before."""
    before = set(listed(project).filter(pl.col("state") != IN)["image_id"])
    new = tuple(image for image in found if image not in before)
    schema = {"unit_id": pl.String, "reason": pl.String}
    refused = pl.DataFrame([(one, found[one]) for one in new], schema=schema, orient="row")
    if new:
        decide(project, KNOWN, LISTED, refused, looked_at=new, said={"entries": len(known)})
    return new


def decide_matches(project: Project, sheet: str | Path) -> int:
    """Write what people decided about matches; how many are decided now that were not."""
    said = read_verdicts(sheet, "image")
    state = listed(project)
    strangers = said.filter(~pl.col("unit_id").is_in(state["image_id"].implode()))["unit_id"]
    if len(strangers):
        raise UnknownNameError("match", strangers[0], state["image_id"].to_list(), where=str(sheet))
    before = dict(state.select("image_id", "state").rows())
    changed = [u for u, v in said.select("unit_id", "verdict").iter_rows() if before[u] != v]
    none = pl.DataFrame(schema={"unit_id": pl.String, "reason": pl.String})
    gone = said.filter(verdict=OUT).select("unit_id", "reason")
    back = said.filter(verdict=IN)["unit_id"]
    if len(back):
        decide(project, KNOWN, CONFIRMED, none, looked_at=back)
        decide(project, KNOWN, LISTED, none, looked_at=back)
    if gone.height:
        decide(project, KNOWN, CONFIRMED, gone, looked_at=gone["unit_id"])
    return len(changed)
