"""Collect names of a person from tables in the folders, and images that equal theirs.

Rows with a person's id name photos and files; copies of images are recognised by thumbnails.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.checks.duplicates.hashes import SIDE
from isolux.io.images import Pixels
from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.withdrawal.file_walk import FileLocation, build_neighbour_lookup
from isolux_curate.withdrawal.project_rows import PersonReferences
from isolux_curate.withdrawal.rewriting import IMAGE_SUFFIXES
from isolux_curate.withdrawal.rewriting.archives import (
    is_archive_or_compressed,
    list_archive_members_or_empty,
)
from isolux_curate.withdrawal.rewriting.tables import (
    UnsearchableFile,
    decode_text_and_name_coding,
    read_parquet_or_arrow,
)
from isolux_curate.withdrawal.rewriting.text import read_delimited_or_none
from isolux_curate.withdrawal.terms import (
    IdentifyingTerms,
    list_file_name_and_stem,
    list_path_endings,
)

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


def build_grey_thumbnail_or_none(file_bytes: bytes) -> Pixels | None:
    """Build the grey thumbnail that identifies an image; None: it cannot be opened."""
    return next(iterate_grey_thumbnails(file_bytes), None)


def iterate_grey_thumbnails(file_bytes: bytes) -> Iterator[Pixels]:
    """Build a thumbnail of each frame or page of an image file."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(file_bytes)) as image:
            n_frames = getattr(image, "n_frames", 1)
            if n_frames == 1:
                image.draft("L", (4 * SIDE, 4 * SIDE))
            for frame in range(n_frames):
                if frame:
                    image.seek(frame)
                yield _shrink_to_upright_grey(image)
    except Exception:  # noqa: BLE001  (Pillow raises many types; the caller lists unreadable files)
        return


def _shrink_to_upright_grey(image: Picture) -> Pixels:
    from PIL import Image, ImageOps

    if image.mode.startswith(("I", "F")):  # more than eight bits
        pixel_values = np.nan_to_num(np.asarray(image, dtype=np.float64))
        max_pixel = pixel_values.max()
        max_value = next((limit for limit in (1, 255, 65_535) if limit >= max_pixel), max_pixel)
        image = Image.fromarray(
            (pixel_values.clip(0, max_value) * (255 / max_value)).astype(np.uint8)
        )
    upright = ImageOps.exif_transpose(image) or image
    return np.asarray(upright.convert("L").resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def stack_rotated_thumbnails(thumbnails: Pixels) -> Pixels:
    """Stack thumbnails with their rotations by 90, 180 and 270 degrees: ``[4 n, 32, 32]``."""
    return np.concatenate([np.rot90(thumbnails, k, axes=(1, 2)) for k in range(4)])


def decode_thumbnails(thumbnail_texts: Iterable[str]) -> Pixels:
    """Decode thumbnails from base64: ``[n, 32, 32]``.

    Examples
    --------
    >>> decode_thumbnails([encode_thumbnail(np.zeros((32, 32), np.uint8))]).shape
    (1, 32, 32)
    """
    arrays = [np.frombuffer(base64.b64decode(text), np.uint8) for text in thumbnail_texts]
    return np.array(arrays, np.uint8).reshape(-1, SIDE, SIDE)


def encode_thumbnail(thumbnail: Pixels) -> str:
    """Encode a thumbnail as base64."""
    return base64.b64encode(np.ascontiguousarray(thumbnail).tobytes()).decode()


_MAX_ROUNDS = 4
_HEADER_BYTES = 512  # bytes read to recognise an archive
_TABLE_SUFFIXES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_OWNER_KINDS = ("subject", "copyright")
_PHOTO_KINDS = ("image", "instance", "file", "task")


def iterate_id_tables_with_location(
    locations: Iterable[FileLocation],
) -> Iterator[tuple[FileLocation, pl.DataFrame]]:
    """Read the id columns, as text, of tables among files and in archives, with their location."""
    for location in locations:
        try:
            with location.path.open("rb") as stream:
                file_bytes = stream.read(_HEADER_BYTES)
                if location.path.suffix.lower() in _TABLE_SUFFIXES or is_archive_or_compressed(
                    file_bytes
                ):
                    file_bytes += stream.read()
        except OSError:
            continue  # listed as unsearchable when its content is searched
        for frame in _iterate_id_tables_and_members(location.path.name, file_bytes):
            yield location, frame


def _iterate_id_tables_and_members(file_name: str, file_bytes: bytes) -> Iterator[pl.DataFrame]:
    """Read the id columns of a table, or of the tables in an archive."""
    frame = _read_id_columns_or_none(file_name, file_bytes)
    if frame is not None and frame.height:
        yield frame
    for member_name, content in list_archive_members_or_empty(file_name, file_bytes):
        yield from _iterate_id_tables_and_members(member_name, content)


def iterate_id_tables(locations: Iterable[FileLocation]) -> Iterator[pl.DataFrame]:
    """Read the id columns of tables, without their locations."""
    yield from (table for _, table in iterate_id_tables_with_location(locations))


def _read_id_columns_or_none(file_name: str, file_bytes: bytes) -> pl.DataFrame | None:
    suffix = PurePosixPath(file_name).suffix.lower()
    frame: pl.DataFrame | None
    try:
        if suffix in (".parquet", ".arrow", ".feather"):
            frame, _ = read_parquet_or_arrow(file_bytes)
        elif suffix in (".csv", ".tsv"):
            frame = read_delimited_or_none(file_bytes)
        elif suffix in (".jsonl", ".ndjson", ".json"):
            frame = _parse_json_records_or_none(file_bytes, is_json_lines=suffix != ".json")
        else:
            return None
    except (UnsearchableFile, OSError, ValueError, RecursionError, pl.exceptions.PolarsError,
            pl.exceptions.PanicException):  # fmt: skip
        return None  # listed as unsearchable when its content is searched
    if frame is None:
        return None
    ids = [
        c
        for c, dtype in frame.schema.items()
        if parse_id_column_or_none(c) is not None
        and (dtype in (pl.String, pl.Categorical) or dtype.is_integer())
    ]
    return frame.select(pl.col(c).cast(pl.String) for c in ids) if ids else None


def _parse_json_records_or_none(file_bytes: bytes, *, is_json_lines: bool) -> pl.DataFrame | None:
    text, _ = decode_text_and_name_coding(file_bytes)
    records = (
        [json.loads(line) for line in text.splitlines() if line.strip()]
        if is_json_lines
        else json.loads(text)
    )
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        return None
    names = list(dict.fromkeys(name for record in records for name in record))
    cells = {
        name: [
            None if isinstance(record.get(name), dict | list | None) else str(record[name])
            for record in records
        ]
        for name in names
    }
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String))


def add_names_found_in_tables(
    locations: Sequence[FileLocation], references: PersonReferences
) -> None:
    """Add photos, instances and files of rows that hold a person's ids, until nothing is new."""
    tables = list(iterate_id_tables(locations))
    for table in tables:
        for column in table.columns:
            id_kinds, strict = parse_id_column_or_none(column) or ((), False)
            if strict:
                references.other_names.setdefault(id_kinds[0], set()).update(
                    table[column].drop_nulls()
                )
    for _ in range(_MAX_ROUNDS):
        n_before = sum(map(len, references.names_by_kind.values()))
        for table in tables:
            _add_references_of_matching_rows(table, references)
        if sum(map(len, references.names_by_kind.values())) == n_before:
            return


def _add_references_of_matching_rows(table: pl.DataFrame, references: PersonReferences) -> None:
    """Add ids from one table: from owners to their photos, and from photos to all in them."""
    parsed_columns = {c: parse_id_column_or_none(c) for c in table.columns}
    kinds_by_column = {
        c: parsed[0] for c, parsed in parsed_columns.items() if parsed is not None and parsed[1]
    }
    is_referenced = pl.repeat(value=False, n=table.height, dtype=pl.Boolean, eager=True)
    for column, id_kinds in kinds_by_column.items():
        names = {
            n
            for k in id_kinds
            for n in references.names_by_kind.get(k, ())
            if k in (*_OWNER_KINDS, *_PHOTO_KINDS)
        }
        if names:
            is_match = table[column].is_in(pl.Series(sorted(names), dtype=pl.String).implode())
            is_referenced = is_referenced | is_match.fill_null(value=False)
    if not is_referenced.any():
        return
    rows = table.filter(is_referenced)
    for column, id_kinds in kinds_by_column.items():
        if id_kinds[0] in _PHOTO_KINDS:
            references.add_names(id_kinds[0], set(rows[column].drop_nulls()))
    generic_columns = [
        c for c, parsed in parsed_columns.items() if c in ("id", "unit_id") and parsed is not None
    ]
    for column in generic_columns:  # a table of people with a generic id column
        references.add_names("instance", set(rows[column].drop_nulls()))
        if not any(id_kinds[0] == "image" for id_kinds in kinds_by_column.values()):
            references.add_names("image", set(rows[column].drop_nulls()))


@dataclass(frozen=True, slots=True)
class PersonImages:
    """A person's images: SHA-256, thumbnails as text, and file names."""

    hashes: frozenset[str]
    thumbnails: tuple[str, ...]
    file_names: frozenset[str]


def find_person_images(locations: Sequence[FileLocation], terms: IdentifyingTerms) -> PersonImages:
    """Find images with a person's names, and images with the same content under other names."""
    hashes, names = set(terms.photo_hashes), set[str]()
    list_neighbours = build_neighbour_lookup(locations)
    images: list[tuple[FileLocation, str, str | None]] = []
    thumbnail_texts: dict[str, None] = {}
    for location in locations:
        if location.path.suffix.lower() not in IMAGE_SUFFIXES:
            continue
        name = location.name.rpartition("/")[2]
        neighbour_names = (
            [neighbour.rpartition("/")[2] for neighbour in list_neighbours(location)]
            if terms.is_name_without_neighbours(name)
            else []
        )
        file_bytes = location.path.read_bytes()
        digest = hashlib.sha256(file_bytes).hexdigest()
        pixels = build_grey_thumbnail_or_none(file_bytes)
        thumbnail_text = (
            encode_thumbnail(pixels)
            if pixels is not None and pixels.std() >= _MIN_STD_GREY_LEVELS
            else None
        )
        images.append((location, digest, thumbnail_text))
        if (
            digest in hashes
            or terms.is_path_of_people(location.name)
            or terms.is_name_among_neighbours(name, neighbour_names)
        ):
            hashes.add(digest)
            if thumbnail_text is not None:
                thumbnail_texts[thumbnail_text] = None
    other_names: set[str] = set()  # file names that other people's images also have
    for location, digest, thumbnail_text in images:
        if digest not in hashes and thumbnail_text not in thumbnail_texts:
            other_names.update(list_file_name_and_stem(location.name))
        else:
            hashes.add(digest)
            names.update(list_path_endings(location.name))
            names.add(list_file_name_and_stem(location.name)[-1])
    return PersonImages(frozenset(hashes), tuple(thumbnail_texts), frozenset(names - other_names))


_MIN_STD_GREY_LEVELS = 2.0  # grey levels; the same limit as in the check of duplicates
