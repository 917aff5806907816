"""Photos and their table made fit to be published: from a folder to another, under a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from isolux.vocabulary.errors import SpecError
from isolux_curate.privacy import KEY_MARK, NO_KEY, key_at, key_mark, outside_of
from isolux_curate.privacy.photos import copy_photos, filler, read_regions
from isolux_curate.privacy.table import Told, anonymised, person_of
from isolux_curate.user_tables import refuse_missing

MARK = "privacy.json"
_FILE = "file"  # the column that names a photo
_IDS = ("subject_id", "subject", "annotator", "annotator_id", "copyright_holder")


@dataclass(frozen=True, slots=True)
class Anonymised:
    """What was written.

    Examples
    --------
    See ``anonymise``.
    """

    people: pl.DataFrame
    counts: pl.DataFrame
    folder: Path
    pictures: int
    filled: int
    notes: tuple[str, ...]


def anonymise(
    table: str | Path,
    *,
    out: str | Path,
    key: str | Path,
    photos: str | Path | None = None,
    id: Sequence[str] = (),  # noqa: A002 (as everywhere)
    person: str | None = None,
    date: Sequence[str] = (),
    aggregate: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    publish_min: int = 10,
    keep_exif: Sequence[str] = (),
    redact: str | Path | None = None,
    inpaint: str = "black",
    overwrite: bool = False,
) -> Anonymised:
    r"""Make photos and their table fit to be published.

    Parameters
    ----------
    table : str or Path
        One row per person or photo, in any format of tables.
    out : str or Path
        The folder to write: ``people.csv``, ``counts.csv``, ``privacy.json`` and ``photos/``.
    key : str or Path
        The key file used to replace ids; created if missing. Whoever holds
        it can lead them back: it may not lie in ``out``.
    photos : str or Path, optional
        The folder of the photos that the column ``file`` names: they are copied without their
        metadata, under meaningless names, and no pixel changes. Default: only the table.
    id : sequence of str
        Columns of ids; default: those called subject_id, subject, annotator, annotator_id,
        copyright_holder.
    person : str, optional
        The column by which people are counted; default: subject_id or subject among the ids, or
        else the only id column. Rows without an id in it are in no count.
    date : sequence of str
        Columns of dates: months are published, and the part of the day if there is a time.
    aggregate : sequence of str, optional
        Columns that are published only as counts; default: FHIBE's (relations, country of
        residence, height, weight, pregnancy, disability and difficulty), by their names.
    drop : sequence of str
        Columns that are not published.
    publish_min : int
        The smallest count that is published.
    keep_exif : sequence of str
        Tags of JPEG files to keep: Make, Model. How a photo is turned always does.
    redact : str or Path, optional
        A table ``file, x, y, w, h`` in pixels of the upright photo: regions that are filled in
        (bystanders, text).
    inpaint : str
        What fills them: black, opencv (from what surrounds them; needs opencv-python-headless) or
        python:MODULE:FUNCTION (yours: a picture and a mask in, a picture out).
    overwrite : bool
        Replace ``out``, if this command wrote it.

    Returns
    -------
    Anonymised

    Raises
    ------
    SpecError
        A column that could name people and was not said to be an id or dropped; an id that still
        stands in another column; a key inside of ``out``; counts, and no column of people.
    InputError
        A photo that is not there, is damaged or is of a format whose metadata is not known.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     at = Path(folder)
    ...     rows = "subject_id,tone,taken\nann-lee,3,2021-03-05\nbo-tan,5,2021-04-01\n"
    ...     _ = (at / "people.csv").write_text(rows)
    ...     done = anonymise(at / "people.csv", out=at / "out", key=at / "key", date=["taken"])
    ...     (at / "out" / "people.csv").read_text().count("ann-lee")
    0
    >>> done.people["taken"].to_list()
    ['2021-03', '2021-04']
    """
    from isolux.io.atomic import refuse_existing, staged_directory
    from isolux.io.frames import read_table

    target = Path(out).expanduser().resolve()
    secret_at = outside_of(target, key)
    refuse_existing(target, overwrite=overwrite, marks=(MARK,), what="anonymised dataset")
    rows = read_table(table)
    ids = [*id] or [c for c in rows.columns if c in _IDS]
    ids += [person] if person is not None and person not in ids else []
    named = [_FILE] if photos is not None and _FILE not in ids else []
    refuse_missing(rows, named, str(table))
    regions = read_regions(redact, rows, _FILE)
    if (redact is not None or keep_exif) and photos is None:
        raise SpecError("there are no photos to change", expected="--photos FOLDER", found="none")
    treat = partial(
        anonymised,
        rows,
        ids=[*ids, *named],
        dates=date,
        aggregate=aggregate,
        drop=drop,
        least=publish_min,
        person=person or person_of(ids),
    )
    treat(NO_KEY)  # a table that is refused leaves no key behind
    fill = filler(inpaint)
    secret = key_at(secret_at)
    told = treat(secret)
    with staged_directory(
        target, overwrite=overwrite, marks=(MARK,), what="anonymised dataset"
    ) as stage:
        names: dict[str, str] = {}
        if photos is not None:
            names = copy_photos(rows[_FILE], Path(photos), stage, secret, keep_exif, regions, fill)
            told = _renamed(told, rows[_FILE], names)
        settings = {
            "ids": ids,
            "dates": list(date),
            "dropped": list(drop),
            "publish_min": publish_min,
            "counts": sorted(set(told.counts["attribute"])),
            "kept_exif": list(keep_exif),
            "filled": len(regions),
            "filled_with": inpaint if regions else None,
        }
        _write(stage, told, settings, key_mark(secret))
    return Anonymised(told.people, told.counts, target, len(names), len(regions), told.notes)


def _write(stage: Path, told: Told, settings: Mapping[str, Any], mark: str) -> None:
    import json

    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text

    write_text(stage / "people.csv", csv_text(told.people))
    write_text(stage / "counts.csv", csv_text(told.counts))
    record = {
        "settings": dict(settings),
        "rows": told.people.height,
        "notes": list(told.notes),
        KEY_MARK: mark,
    }
    write_text(stage / MARK, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _renamed(told: Told, files: pl.Series, names: Mapping[str, str]) -> Told:
    new = files.cast(pl.String).replace_strict(names, default=None, return_dtype=pl.String)
    return Told(told.people.with_columns(new.alias(_FILE)), told.counts, told.notes)
