"""Anonymise photos and their table for publication: from one folder to another, with a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import SpecError
from isolux_curate.privacy import (
    DUMMY_KEY,
    KEY_HASH_FIELD,
    PRIVACY_FILE,
    hash_pseudonym_key,
    read_or_create_pseudonym_key,
    resolve_key_outside_target,
)
from isolux_curate.privacy.photos import (
    copy_photos_without_metadata,
    load_region_filler,
    read_redaction_boxes_by_photo,
)
from isolux_curate.privacy.table import (
    PublishableTable,
    anonymise_table,
    guess_person_column_or_none,
)
from isolux_curate.user_tables import refuse_missing_columns

_FILE_COLUMN = "file"  # the column that names a photo
_DEFAULT_ID_COLUMNS = ("subject_id", "subject", "annotator", "annotator_id", "copyright_holder")


@dataclass(frozen=True, slots=True)
class AnonymisationResult:
    """The anonymised tables, and numbers of photos.

    Examples
    --------
    See ``anonymise``.
    """

    people: pl.DataFrame
    counts: pl.DataFrame
    folder: Path
    n_photos: int
    n_filled: int
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
) -> AnonymisationResult:
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
    AnonymisationResult

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
    key_path = resolve_key_outside_target(target, key)
    refuse_existing(
        target, overwrite=overwrite, marks=(PRIVACY_FILE,), folder_kind="anonymised dataset"
    )
    rows = read_table(table)
    ids = [*id] or [c for c in rows.columns if c in _DEFAULT_ID_COLUMNS]
    ids += [person] if person is not None and person not in ids else []
    file_columns = [_FILE_COLUMN] if photos is not None and _FILE_COLUMN not in ids else []
    refuse_missing_columns(rows, file_columns, str(table))
    regions = read_redaction_boxes_by_photo(redact, rows, _FILE_COLUMN)
    if (redact is not None or keep_exif) and photos is None:
        raise SpecError("there are no photos to change", expected="--photos FOLDER", found="none")
    anonymise_rows = partial(
        anonymise_table,
        rows,
        id_columns=[*ids, *file_columns],
        date_columns=date,
        count_only_columns=aggregate,
        dropped_columns=drop,
        min_people=publish_min,
        person=person or guess_person_column_or_none(ids),
    )
    anonymise_rows(DUMMY_KEY)  # check the table before a key is created
    fill = load_region_filler(inpaint)
    key_bytes = read_or_create_pseudonym_key(key_path)
    publishable = anonymise_rows(key_bytes)
    with staged_directory(
        target, overwrite=overwrite, marks=(PRIVACY_FILE,), folder_kind="anonymised dataset"
    ) as staging_dir:
        names: dict[str, str] = {}
        if photos is not None:
            names = copy_photos_without_metadata(
                rows[_FILE_COLUMN], Path(photos), staging_dir, key_bytes, keep_exif, regions, fill
            )
            publishable = _replace_file_names(publishable, rows[_FILE_COLUMN], names)
        settings = {
            "ids": ids,
            "dates": list(date),
            "dropped": list(drop),
            "publish_min": publish_min,
            "counts": sorted(set(publishable.counts["attribute"])),
            "kept_exif": list(keep_exif),
            "filled": len(regions),
            "filled_with": inpaint if regions else None,
        }
        _write_anonymised_tables_and_record(
            staging_dir, publishable, settings, hash_pseudonym_key(key_bytes)
        )
    return AnonymisationResult(
        publishable.people, publishable.counts, target, len(names), len(regions), publishable.notes
    )


def _write_anonymised_tables_and_record(
    staging_dir: Path, publishable: PublishableTable, settings: Mapping[str, Any], key_hash: str
) -> None:
    import json

    from isolux.io.atomic import write_text
    from isolux.io.csv_text import to_safe_csv

    write_text(staging_dir / "people.csv", to_safe_csv(publishable.people))
    write_text(staging_dir / "counts.csv", to_safe_csv(publishable.counts))
    record = {
        "settings": dict(settings),
        "rows": publishable.people.height,
        "notes": list(publishable.notes),
        KEY_HASH_FIELD: key_hash,
    }
    write_text(staging_dir / PRIVACY_FILE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _replace_file_names(
    publishable: PublishableTable, file_names: pl.Series, new_name_by_file: Mapping[str, str]
) -> PublishableTable:
    new_names = file_names.cast(pl.String).replace_strict(
        new_name_by_file, default=None, return_dtype=pl.String
    )
    return PublishableTable(
        publishable.people.with_columns(new_names.alias(_FILE_COLUMN)),
        publishable.counts,
        publishable.notes,
    )
