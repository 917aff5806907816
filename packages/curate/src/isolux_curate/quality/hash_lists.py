"""Compare photos with a list of hashes of known illegal material, which the user supplies.

isolux has no such list and fetches none: the National Center for Missing & Exploited Children and
others give theirs to those who may hold them. FHIBE (Methods, "Quality control and data filtering")
compared hashes with the former's. A match is reported by its id only. Its pixels are never copied,
shown, downscaled to a file or written; for perceptual hashes they are reduced in memory.

Photos that match are out at once; nothing leaves the project until each is decided.
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

from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux.io.frames import read_table, refuse_unless_file
from isolux_curate.project.folder import Project
from isolux_curate.project.tables import images
from isolux_curate.project.verdicts import (
    DECIDED,
    HASH_LIST,
    IN,
    KNOWN_MATERIAL,
    OUT,
    read_and_check_verdict_sheet,
    read_hash_matches_with_state,
    record_changed_verdicts,
)
from isolux_curate.user_tables import import_user_function

BITS = 8
"""Of 64: perceptual hashes that differ in no more bits match. By chance, 3 in 10 billion pairs."""
_DIGITS_BY_HASH = {"md5": 32, "sha1": 40, "sha256": 64}
_PHASH, _PHASH_DIGITS = "phash", 16
_HEX = re.compile(r"[0-9a-f]+")
_BATCH_SIZE = 1 << 22  # pairs of hashes

Hasher = Callable[[bytes], str]
_U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class HashList:
    """A list of hashes that photos are compared with.

    Parameters
    ----------
    exact : mapping of str to set of str
        ``md5``, ``sha1``, ``sha256``: hexadecimal digits.
    phash : [n] uint64
        Perceptual hashes as the package imagehash makes them.
    perceptual : [m, bytes] uint8
        Perceptual hashes of ``hasher``.
    """

    exact: dict[str, frozenset[str]]
    phash: npt.NDArray[np.uint64]
    perceptual: _U8 = field(default_factory=lambda: np.empty((0, 0), np.uint8))
    hasher: Hasher | None = None

    def __len__(self) -> int:
        """Count the entries."""
        return sum(map(len, self.exact.values())) + len(self.phash) + len(self.perceptual)

    def find_matching_entry_or_none(self, file_bytes: bytes) -> str | None:
        """Find the entry that a file matches, as its kind and digits; None without a match.

        Examples
        --------
        >>> known = HashList({"md5": frozenset({hashlib.md5(b"x").hexdigest()})}, np.empty(0, "u8"))
        >>> [known.find_matching_entry_or_none(b) for b in (b"x", b"y")]
        ['md5 9dd4e461268c8034f5c8564e155c67a6', None]
        """
        for name, entries in self.exact.items():
            digest = hashlib.new(name, file_bytes, usedforsecurity=False).hexdigest()
            if digest in entries:
                return f"{name} {digest}"
        if len(self.phash):
            for photo_hash in _compute_photo_hashes_or_empty(file_bytes):
                if (index := _find_nearby_hash_or_none(self.phash, photo_hash)) is not None:
                    return f"{_PHASH} {int(self.phash[index]):016x}"
        if self.hasher is not None and len(self.perceptual):
            photo_hash_bytes = _parse_hex_hash(self.hasher(file_bytes), "the hasher")
            distances = np.bitwise_count(self.perceptual ^ photo_hash_bytes[None]).sum(
                axis=1, dtype=np.int64
            )
            if int(distances.min()) <= BITS:
                return f"perceptual {self.perceptual[int(distances.argmin())].tobytes().hex()}"
        return None


def read_hash_list(list_path: str | Path, *, hasher: str | None = None) -> HashList:
    """Read a list of hashes."""
    source = str(list_path)
    hash_function: Hasher | None = None
    if hasher is not None:
        hash_function = import_user_function(
            hasher,
            "this is not a hash function",
            source="hasher",
            expected="python:MODULE:FUNCTION",
        )
    rows = _read_entries_by_hash_kind(Path(list_path), has_hasher=hash_function is not None)
    exact = {
        name: frozenset(_refuse_malformed_entries(rows[name], digits, name, source))
        for name, digits in _DIGITS_BY_HASH.items()
        if rows.get(name)
    }
    phash = [
        int(h, 16)
        for h in _refuse_malformed_entries(rows.get(_PHASH, []), _PHASH_DIGITS, _PHASH, source)
    ]
    perceptual_hashes = [_parse_hex_hash(text, source) for text in rows.get("perceptual", [])]
    if len({len(hash_bytes) for hash_bytes in perceptual_hashes}) > 1:
        raise TableError("perceptual hashes differ in length", expected="one length", where=source)
    if perceptual_hashes and hash_function is None:
        raise SpecError(
            "the list has perceptual hashes of another kind",
            expected="--hasher, which makes such",
            found="none",
            where=source,
        )
    arrays = np.array(phash, dtype=np.uint64), np.array(perceptual_hashes, dtype=np.uint8)
    hash_list = HashList(exact, arrays[0], arrays[1], hash_function)
    if not len(hash_list):
        raise FileError("the list of hashes is empty", expected="one entry or more", where=source)
    return hash_list


def _read_entries_by_hash_kind(path: Path, *, has_hasher: bool) -> dict[str, list[str]]:
    """Read the entries by kind of hash, from a table or from lines."""
    refuse_unless_file(path)
    is_plain_text = path.suffix in {".csv", ".txt", ""}
    try:
        text = path.read_text("utf-8") if is_plain_text else ""
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the list cannot be read", found=str(error), where=str(path)) from error
    first_line = text.partition("\n")[0]
    column_names = {*_DIGITS_BY_HASH, _PHASH, "perceptual"}
    if not is_plain_text or column_names & {word.strip().lower() for word in first_line.split(",")}:
        table = read_table(path, format="csv" if is_plain_text else None)
        return {
            name.lower(): [str(v).strip().lower() for v in table[name].drop_nulls()]
            for name in table.columns
            if name.lower() in column_names
        }
    lines = (line.split("#")[0].strip().lower() for line in text.splitlines())
    entries: dict[str, list[str]] = {}
    name_by_digits = {digits: name for name, digits in _DIGITS_BY_HASH.items()} | {
        _PHASH_DIGITS: _PHASH
    }
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        hash_name = "perceptual" if has_hasher else name_by_digits.get(len(line))
        if hash_name is None:
            raise TableError(
                "a line is not a hash",
                expected="32, 40, 64 or 16 hexadecimal digits",
                found=f"{len(line)} characters",
                where=f"{path}, line {number}",
            )
        entries.setdefault(hash_name, []).append(line)
    return entries


def _refuse_malformed_entries(
    entries: Sequence[str], n_digits: int, hash_name: str, source: str
) -> list[str]:
    for number, entry in enumerate(entries, 1):
        if len(entry) != n_digits or not _HEX.fullmatch(entry):
            raise TableError(
                f"an entry is no {hash_name}",
                expected=f"{n_digits} hexadecimal digits",
                found=f"{len(entry)} characters",
                where=f"{source}, entry {number} of {hash_name}",
            )
    return list(entries)


def _parse_hex_hash(hex_digits: str, source: str) -> _U8:
    try:
        return np.frombuffer(bytes.fromhex(hex_digits), dtype=np.uint8)
    except (ValueError, TypeError) as error:
        raise TableError(
            "this is not a hash",
            expected="hexadecimal digits",
            found=f"{len(str(hex_digits))} characters",
            where=source,
        ) from error


def _find_nearby_hash_or_none(entries: npt.NDArray[np.uint64], photo_hash: int) -> int | None:
    for start in range(0, len(entries), _BATCH_SIZE):
        distances = np.bitwise_count(entries[start : start + _BATCH_SIZE] ^ np.uint64(photo_hash))
        if int(distances.min()) <= BITS:
            return start + int(distances.argmin())
    return None


def _compute_photo_hashes_or_empty(file_bytes: bytes) -> list[int]:
    """Compute perceptual hashes of an image as stored and upright, each also mirrored."""
    from PIL import Image, ImageOps

    from isolux.checks.duplicates.hashes import SIDE, hash_thumbnails

    try:
        with Image.open(io.BytesIO(file_bytes)) as image:
            orientations = [image.convert("L"), ImageOps.exif_transpose(image).convert("L")]
    except Exception:  # noqa: BLE001 - an unreadable image has no hash
        return []
    thumbnails = np.stack(
        [
            np.asarray(orientation.resize((SIDE, SIDE), Image.Resampling.LANCZOS))
            for orientation in orientations
        ]
    )
    hashes = hash_thumbnails(thumbnails)
    if hashes.is_blank.all():
        return []
    return [
        int(photo_hash)
        for photo_hash in np.unique(np.concatenate([hashes.upright, hashes.mirrored]))
    ]


@dataclass(frozen=True, slots=True)
class HashMatches:
    """Photos compared with a list, the ids of new matches, and the ids of undecided ones."""

    n_photos: int
    new_ids: tuple[str, ...]
    undecided_ids: tuple[str, ...]


def match_and_exclude_photos(project: Project, hash_list: HashList) -> HashMatches:
    """Compare all photos with a list; those that match are out until decided."""
    import sqlalchemy as sa

    query = sa.select(images.c.image_id, images.c.file).where(images.c.file.is_not(None))
    rows = project.fetch_rows(query.order_by(images.c.image_id))
    cleared_entries = read_cleared_entry_by_image(project)
    entry_by_image: dict[str, str] = {}
    for image, file in rows:
        try:
            file_bytes = (project.folder / file).read_bytes()
        except OSError as error:
            raise FileError(
                "a photo cannot be read", found=str(error.strerror), where=f"photo {image}"
            ) from error
        entry = hash_list.find_matching_entry_or_none(file_bytes)
        if entry is not None and cleared_entries.get(image) != entry:
            entry_by_image[image] = entry
    new_ids = exclude_new_hash_matches(project, entry_by_image, hash_list)
    undecided_ids = read_hash_matches_with_state(project).filter(state="undecided")["image_id"]
    return HashMatches(len(rows), new_ids, tuple(undecided_ids))


def read_cleared_entry_by_image(project: Project) -> Mapping[str, str]:
    """Read the entry that each photo matched, for photos that people decided to keep."""
    cleared_matches = read_hash_matches_with_state(project).filter(state=IN)
    return dict(cleared_matches.select("image_id", "entry").rows())


def exclude_new_hash_matches(
    project: Project, entry_by_image: Mapping[str, str], hash_list: HashList
) -> tuple[str, ...]:
    """Exclude matching photos; the ids of those that are new."""
    matched_ids = set(
        read_hash_matches_with_state(project).filter(pl.col("state") != IN)["image_id"]
    )
    new_ids = tuple(image for image in entry_by_image if image not in matched_ids)
    schema = {"unit_id": pl.String, "reason": pl.String}
    refused = pl.DataFrame(
        [(image_id, entry_by_image[image_id]) for image_id in new_ids], schema=schema, orient="row"
    )
    if new_ids:
        record_changed_verdicts(
            project,
            KNOWN_MATERIAL,
            HASH_LIST,
            refused,
            examined_units=new_ids,
            details={"entries": len(hash_list)},
        )
    return new_ids


def record_decisions_about_matches(project: Project, verdict_sheet: str | Path) -> int:
    """Record the decisions about matches; the number of changed ones."""
    verdicts = read_and_check_verdict_sheet(verdict_sheet, "image")
    state = read_hash_matches_with_state(project)
    unknown_ids = verdicts.filter(~pl.col("unit_id").is_in(state["image_id"].implode()))["unit_id"]
    if len(unknown_ids):
        raise UnknownNameError(
            "match", unknown_ids[0], state["image_id"].to_list(), where=str(verdict_sheet)
        )
    state_by_image = dict(state.select("image_id", "state").rows())
    changed_ids = [
        u for u, v in verdicts.select("unit_id", "verdict").iter_rows() if state_by_image[u] != v
    ]
    no_verdicts = pl.DataFrame(schema={"unit_id": pl.String, "reason": pl.String})
    confirmed = verdicts.filter(verdict=OUT).select("unit_id", "reason")
    cleared_ids = verdicts.filter(verdict=IN)["unit_id"]
    if len(cleared_ids):
        record_changed_verdicts(
            project, KNOWN_MATERIAL, DECIDED, no_verdicts, examined_units=cleared_ids
        )
        record_changed_verdicts(
            project, KNOWN_MATERIAL, HASH_LIST, no_verdicts, examined_units=cleared_ids
        )
    if confirmed.height:
        record_changed_verdicts(
            project, KNOWN_MATERIAL, DECIDED, confirmed, examined_units=confirmed["unit_id"]
        )
    return len(changed_ids)
