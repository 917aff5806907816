"""A directory of crops: each a PNG under a name that holds its content's key, and the list of all.

::

    OUT/crop.json           what was asked, of which data
    OUT/crops/ID-KEY.png    one person's crop; KEY is of the picture's bytes, points and settings
    OUT/crops.csv           one row a person, or the reason for no crop; once all are done

A PNG is written under a temporary name and renamed, so that what is there is whole. The same
command goes on where it was stopped; what changed has another key and is cut out again.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.api.crop.recipes import CropOptions, Person
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, OutputError, SpecError
from isolux.core.tables import INSTANCES
from isolux.engine.source_images import SourceImage, Unit
from isolux.geometry.crops import Pixels
from isolux.io.atomic import refuse_existing, write_bytes, write_text
from isolux.io.csv_text import to_safe_csv
from isolux.io.image_folder import ImageFolder
from isolux.io.staging import is_staging_name

CROP_RECORD = "crop.json"
"""The file that makes a directory one of crops."""
CROP_TABLE = "crops.csv"
_KEY_LENGTH = 16  # hex digits of a key in a file's name
_MAX_NAME_LENGTH = 120
_MAX_LISTED = 3
_CROP_FILE_NAME = re.compile(rf"(?P<who>.+)-[0-9a-f]{{{_KEY_LENGTH}}}\.png")


@dataclass(frozen=True, slots=True)
class CropRow:
    """One person's crop: ``file`` below the directory, or the ``reason`` for none."""

    id: str
    image_id: str
    subject_id: str | None
    file: str | None
    width: int | None
    height: int | None
    sha256: str | None
    reason: str | None


_SCHEMA = {
    name: pl.Int64 if name in ("width", "height") else pl.String for name in CropRow.__slots__
}


def compute_crop_key(
    recipe: str, options: CropOptions, person: Person, sha256: str, code: str
) -> str:
    """Compute the content key of a crop: SHA-256 of all that it depends on."""
    inputs = [recipe, asdict(options), asdict(person), sha256, code]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


class CropFolder:
    """The crops of one directory."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().resolve()
        self._crops = self.path / "crops"

    def open(self, record: Mapping[str, Any], people: Iterable[str], *, overwrite: bool) -> None:
        """Make the directory, and remove crops of people who are not in the data."""
        self._refuse_other(record, overwrite=overwrite)
        try:
            self._crops.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                "the directory of crops cannot be made",
                found=error.strerror,
                where=str(self.path),
                hint="choose another path",
            ) from error
        (self.path / CROP_TABLE).unlink(missing_ok=True)  # it lists all crops, or does not exist
        write_text(self.path / CROP_RECORD, _format_json(dict(record) | {"state": "unfinished"}))
        current_names = {_to_file_name(name) for name in people}
        for path in self._crops.iterdir():
            match = _CROP_FILE_NAME.fullmatch(path.name)
            if match and match["who"] not in current_names:
                path.unlink(missing_ok=True)

    def name(self, person: Person, key: str) -> str:
        """Return a crop's path below the directory."""
        return f"crops/{_to_file_name(person.id)}-{key[:_KEY_LENGTH]}.png"

    def size(self, name: str) -> tuple[int, int] | None:
        """Return width and height of an existing crop; None: it does not exist."""
        from PIL import Image

        try:
            with Image.open(self.path / name, formats=["PNG"]) as image:
                return image.size
        except OSError:
            return None

    def write(self, name: str, pixels: Pixels) -> None:
        """Write a crop, whole or not at all."""
        from PIL import Image

        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format="PNG")
        write_bytes(self.path / name, buffer.getvalue())

    def close(self, record: Mapping[str, Any], rows: Sequence[CropRow]) -> pl.DataFrame:
        """Write the table of crops, and remove crops that it does not list."""
        table = pl.DataFrame([asdict(row) for row in rows], schema=_SCHEMA)
        write_text(self.path / CROP_TABLE, to_safe_csv(table))
        listed_files = set(table["file"].drop_nulls())
        for path in self._crops.iterdir():
            if _CROP_FILE_NAME.fullmatch(path.name) and f"crops/{path.name}" not in listed_files:
                path.unlink(missing_ok=True)
        write_text(self.path / CROP_RECORD, _format_json(dict(record) | {"state": "finished"}))
        return table

    def discard(self) -> None:
        """Leave no empty directory behind where nothing came of it."""
        if self._crops.is_dir() and not any(self._crops.iterdir()):
            (self.path / CROP_RECORD).unlink(missing_ok=True)
            for folder in (self._crops, self.path):
                with suppress(OSError):
                    folder.rmdir()

    def _refuse_other(self, record: Mapping[str, Any], *, overwrite: bool) -> None:
        if not self.path.is_dir():
            refuse_existing(self.path, overwrite=False)
            return
        names = {path.name for path in self.path.iterdir() if not is_staging_name(path.name)}
        if not names:
            return
        if CROP_RECORD not in names:
            raise OutputError(
                "this directory contains something else and is left unchanged",
                expected=f"an empty directory, or one of crops, with {CROP_RECORD}",
                found=", ".join(sorted(names)[:3]),
                where=str(self.path),
                hint="choose another path",
            )
        earlier_record = _read_record(self.path)
        for key in ("data", "recipe"):
            if earlier_record.get(key) != record[key] and not overwrite:
                raise OutputError(
                    "this directory holds crops of other data"
                    if key == "data"
                    else "this directory holds crops by another recipe",
                    expected=str(earlier_record.get(key)),
                    found=str(record[key]),
                    where=str(self.path),
                    hint="choose another path, or replace them with --overwrite (overwrite=True)",
                )


def read_crops(path: str | Path) -> pl.DataFrame:
    """Read the list of a finished directory of crops."""
    folder = Path(path).expanduser()
    record = _read_record(folder)
    if record.get("state") != "finished" or not (folder / CROP_TABLE).is_file():
        raise FileError(
            "these crops are not complete",
            expected="a finished run of isolux crop",
            where=str(folder),
            hint="the command that was interrupted resumes",
        )
    try:
        return pl.read_csv(folder / CROP_TABLE, schema=_SCHEMA)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(
            "the list of these crops is damaged",
            expected="columns " + ", ".join(_SCHEMA),
            found=str(error).splitlines()[0][:_MAX_NAME_LENGTH],
            where=str(folder / CROP_TABLE),
            hint="make them again: isolux crop … --overwrite",
        ) from error


def list_crop_per_person(
    dataset: Dataset, crops: str | Path
) -> tuple[list[SourceImage], ImageFolder]:
    """List one image per person: the crop, or the reason for none."""
    table = read_crops(crops)
    row_by_id = {row["id"]: row for row in table.iter_rows(named=True)}
    ids = INSTANCES.conform(dataset.instances)["instance_id"].to_list()
    if ids and not any(name in row_by_id for name in ids):
        raise SpecError(
            "these are crops of other people",
            expected=f"ids such as {ids[0]!r}",
            found=", ".join(map(repr, list(row_by_id)[:_MAX_LISTED])) or "nobody",
            where=str(crops),
            hint="cut out the people of these data: isolux crop",
        )
    images = []
    for name in ids:
        row = row_by_id.get(name) or {"file": None, "reason": "not among the crops"}
        reason = None if row["file"] else f"no crop: {row['reason']}"
        images.append(
            SourceImage(
                row["file"] or name,
                row["file"],
                None,
                None,
                (Unit(name),),
                needs_annotated_size=False,
                reason=reason,
            )
        )
    return images, ImageFolder(Path(crops).expanduser())


def _read_record(folder: Path) -> dict[str, Any]:
    mark = folder / CROP_RECORD
    try:
        # Reading a pipe would block.
        contents = json.loads(mark.read_text(encoding="utf-8") if mark.is_file() else "")
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(
            "this is not a directory of crops",
            expected=f"{CROP_RECORD}, as isolux crop writes it",
            where=str(folder),
        ) from error
    return contents if isinstance(contents, dict) else {}


def _format_json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=2, sort_keys=True) + "\n"


def _to_file_name(name: str) -> str:
    """Make an id safe for a file name; the key separates ids that collide."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".")[-_MAX_NAME_LENGTH:] or "_"
