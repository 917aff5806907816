"""What names a person in tables that lie about, and pictures that look like theirs.

Tables name photos and files by rows with their id; pictures are known by thumbnails.
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
from isolux_curate.id_columns import kinds_of_column
from isolux_curate.withdrawal.project_rows import Found
from isolux_curate.withdrawal.rewriting import PICTURES
from isolux_curate.withdrawal.rewriting.archives import is_archive, list_parts
from isolux_curate.withdrawal.rewriting.tables import Blind, decoded, read_frame
from isolux_curate.withdrawal.rewriting.text import read_delimited
from isolux_curate.withdrawal.terms import Terms, short_names, tails
from isolux_curate.withdrawal.walking import Place, beside_of

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


def thumbnail(data: bytes) -> Pixels | None:
    """Make the grey thumbnail by which a picture is known; None: it cannot be opened."""
    return next(thumbnails(data), None)


def thumbnails(data: bytes) -> Iterator[Pixels]:
    """Make one of each picture that a file holds, as pages and films of pictures do."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as opened:
            count = getattr(opened, "n_frames", 1)
            if count == 1:
                opened.draft("L", (4 * SIDE, 4 * SIDE))
            for k in range(count):
                if k:
                    opened.seek(k)
                yield _small(opened)
    except Exception:  # noqa: BLE001  (Pillow raises many; what cannot be opened is named)
        return


def _small(picture: Picture) -> Pixels:
    from PIL import Image, ImageOps

    if picture.mode.startswith(("I", "F")):  # more than eight bits
        wide = np.nan_to_num(np.asarray(picture, dtype=np.float64))
        peak = wide.max()
        top = next((one for one in (1, 255, 65_535) if one >= peak), peak)
        picture = Image.fromarray((wide.clip(0, top) * (255 / top)).astype(np.uint8))
    upright = ImageOps.exif_transpose(picture) or picture
    return np.asarray(upright.convert("L").resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def turned(looks: Pixels) -> Pixels:
    """Give thumbnails as they are, and turned by a quarter, a half and three quarters."""
    return np.concatenate([np.rot90(looks, k, axes=(1, 2)) for k in range(4)])


def from_text(texts: Iterable[str]) -> Pixels:
    """Read thumbnails that were written as text: ``[n, 32, 32]``.

    Examples
    --------
    >>> from_text([as_text(np.zeros((32, 32), np.uint8))]).shape
    (1, 32, 32)
    """
    held = [np.frombuffer(base64.b64decode(one), np.uint8) for one in texts]
    return np.array(held, np.uint8).reshape(-1, SIDE, SIDE)


def as_text(one: Pixels) -> str:
    """Write a thumbnail as text."""
    return base64.b64encode(np.ascontiguousarray(one).tobytes()).decode()


_TIMES = 4
_HEAD = 512  # bytes by which an archive is known
_TABLES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_OWNERS = ("subject", "copyright")
_OF_PHOTO = ("image", "instance", "file", "task")


def tables_by_place(places: Iterable[Place]) -> Iterator[tuple[Place, pl.DataFrame]]:
    """Read the tables among files and in archives, columns of ids as text and no others."""
    for place in places:
        try:
            with place.path.open("rb") as stream:
                data = stream.read(_HEAD)
                if place.path.suffix.lower() in _TABLES or is_archive(data):
                    data += stream.read()
        except OSError:
            continue  # it is named when it is looked through
        for frame in _tables(place.path.name, data):
            yield place, frame


def _tables(name: str, data: bytes) -> Iterator[pl.DataFrame]:
    """Read a table, or those in an archive."""
    frame = _read(name, data)
    if frame is not None and frame.height:
        yield frame
    for part, content in list_parts(name, data):
        yield from _tables(part, content)


def tables_in(places: Iterable[Place]) -> Iterator[pl.DataFrame]:
    """Read the tables alone."""
    yield from (table for _, table in tables_by_place(places))


def _read(name: str, data: bytes) -> pl.DataFrame | None:
    suffix = PurePosixPath(name).suffix.lower()
    frame: pl.DataFrame | None
    try:
        if suffix in (".parquet", ".arrow", ".feather"):
            frame, _ = read_frame(data)
        elif suffix in (".csv", ".tsv"):
            frame = read_delimited(data)
        elif suffix in (".jsonl", ".ndjson", ".json"):
            frame = _of_json(data, lines=suffix != ".json")
        else:
            return None
    except (Blind, OSError, ValueError, RecursionError, pl.exceptions.PolarsError,
            pl.exceptions.PanicException):  # fmt: skip
        return None  # it is named when it is looked through
    if frame is None:
        return None
    ids = [
        c
        for c, kind in frame.schema.items()
        if kinds_of_column(c) is not None
        and (kind in (pl.String, pl.Categorical) or kind.is_integer())
    ]
    return frame.select(pl.col(c).cast(pl.String) for c in ids) if ids else None


def _of_json(data: bytes, *, lines: bool) -> pl.DataFrame | None:
    text, _ = decoded(data)
    found = (
        [json.loads(line) for line in text.splitlines() if line.strip()]
        if lines
        else json.loads(text)
    )
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        return None
    names = list(dict.fromkeys(name for one in found for name in one))
    cells = {
        name: [
            None if isinstance(one.get(name), dict | list | None) else str(one[name])
            for one in found
        ]
        for name in names
    }
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String))


def find_in_tables(places: Sequence[Place], found: Found) -> None:
    """Add photos, people in photos and files that rows with their ids name."""
    tables = list(tables_in(places))
    for table in tables:
        for column in table.columns:
            kinds, strict = kinds_of_column(column) or ((), False)
            if strict:
                found.others.setdefault(kinds[0], set()).update(table[column].drop_nulls())
    for _ in range(_TIMES):
        before = sum(map(len, found.named.values()))
        for table in tables:
            _grow(table, found)
        if sum(map(len, found.named.values())) == before:
            return


def _grow(table: pl.DataFrame, found: Found) -> None:
    """Follow rows of one table from owners to photos, and from photos to all that is in them."""
    strict = {c: kinds_of_column(c) for c in table.columns}
    of = {c: said[0] for c, said in strict.items() if said is not None and said[1]}
    mine = pl.repeat(value=False, n=table.height, dtype=pl.Boolean, eager=True)
    for column, kinds in of.items():
        names = {n for k in kinds for n in found.named.get(k, ()) if k in (*_OWNERS, *_OF_PHOTO)}
        if names:
            hit = table[column].is_in(pl.Series(sorted(names), dtype=pl.String).implode())
            mine = mine | hit.fill_null(value=False)
    if not mine.any():
        return
    rows = table.filter(mine)
    for column, kinds in of.items():
        if kinds[0] in _OF_PHOTO:
            found.add(kinds[0], set(rows[column].drop_nulls()))
    own = [c for c, said in strict.items() if c in ("id", "unit_id") and said is not None]
    for column in own:  # of a table of people whose id has no other name
        found.add("instance", set(rows[column].drop_nulls()))
        if not any(kinds[0] == "image" for kinds in of.values()):
            found.add("image", set(rows[column].drop_nulls()))


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures of theirs: SHA-256, thumbnails as text, and names of files."""

    sums: frozenset[str]
    looks: tuple[str, ...]
    names: frozenset[str]


def known_pictures(places: Sequence[Place], terms: Terms) -> Pictures:
    """Find pictures that have their names, and those that are the same under any name."""
    sums, names = set(terms.pictures), set[str]()
    beside = beside_of(places)
    seen: list[tuple[Place, str, str | None]] = []
    looks: dict[str, None] = {}
    for place in places:
        if place.path.suffix.lower() not in PICTURES:
            continue
        name = place.name.rpartition("/")[2]
        near = [one.rpartition("/")[2] for one in beside(place)] if terms.may_name(name) else []
        data = place.path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        small = thumbnail(data)
        look = as_text(small) if small is not None and small.std() >= _BLANK else None
        seen.append((place, digest, look))
        if digest in sums or terms.is_path(place.name) or terms.is_name(name, near):
            sums.add(digest)
            if look is not None:
                looks[look] = None
    rest: set[str] = set()  # names that pictures of others have, in folders of their own
    for place, digest, look in seen:
        if digest not in sums and look not in looks:
            rest.update(short_names(place.name))
        else:
            sums.add(digest)
            names.update(tails(place.name))
            names.add(short_names(place.name)[-1])
    return Pictures(frozenset(sums), tuple(looks), frozenset(names - rest))


_BLANK = 2.0  # grey levels; as the check of duplicates has it
