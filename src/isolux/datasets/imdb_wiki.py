"""IMDB-WIKI: half a million photographs of celebrities with birthdays, hence ages.

Rothe, Timofte and Van Gool (2018). Reads ``imdb.mat`` or ``wiki.mat`` (MATLAB 5). No one looked at
the pictures: gender and birthday come from the person's page and the year from the caption, so a
face may be someone else's. No picture is opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError, format_location
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._files import Inputs, build_recursive_patterns, find_single_file
from isolux.datasets._mat.files import convert_mat_cells_to_text, read_mat5_variables
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import build_clustered_dataset, melt_columns_to_attribute_rows
from isolux.io.refusals import refuse_cells

_NUMBER_FIELDS = ("dob", "photo_taken", "gender", "face_score", "second_face_score")
_EPOCH = 719_529  # MATLAB's number of 1 January 1970: it counts days from a year 0
_FIRST_DAY, _LAST_DAY = 367.0, 803_000.0  # 1 January of the year 1; in the year 2198
_AGE_RANGE = (0, 100)  # years; dates that give others are mistakes
Numbers = npt.NDArray[np.float64]

INFO = DatasetInfo(
    title="IMDB-WIKI",
    summary="523,051 photographs of celebrities from IMDb and Wikipedia, with age and gender.",
    references=(
        Reference(
            key="imdb-wiki",
            citation="Rothe, R., Timofte, R., & Van Gool, L. (2018). Deep expectation of real and"
            " apparent age from a single image without facial landmarks. International Journal of"
            " Computer Vision, 126, 144–157.",
            url="https://data.vision.ee.ethz.ch/cvl/rrothe/imdb-wiki/",
        ),
    ),
    licence="academic research only; the pictures stay their owners'",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="inferred",
    terms=(
        ("gender", "gender as the person's page states it"),
        ("age", "age by the page's birthday and the caption's year"),
        ("photo_year", "year of the photograph"),
    ),
    assumptions=(
        "the strongest face in a photograph is the person whose page it was found on",
        "a photograph was taken in the middle of its caption's year",
        "photographs of one celebrity are not independent: IMDb's ids are clusters where known",
    ),
)


def load(
    path: str | Path,
    *,
    source: Literal["imdb", "wiki"] = "imdb",
) -> Dataset:
    r"""Load IMDB-WIKI.

    ``cluster`` of ``isolux.load`` may be ``subject`` (where not given and celebrities have ids,
    as in IMDb's file), ``image``, an attribute.

    Parameters
    ----------
    path : str or Path
        The folder with ``imdb.mat`` or ``wiki.mat``; or one of them.
    source : {"imdb", "wiki"}
        Which of the two; a file that is named ``wiki.mat`` says so itself.

    Returns
    -------
    Dataset
        ``instances``: a photograph, its path as id, ``subject_id`` (IMDb's number of the
        celebrity; null on Wikipedia), the face's box in pixels (null: no face found).
        ``attributes``: ``gender`` (``Male``, ``Female``, null), ``age`` (years, as ``number`` too)
        and ``photo_year``. The notes count what was left out, by reason.

    Raises
    ------
    FileError, TableError
        A damaged file, fields of unequal length, an object in it, a path that leads out of the
        folder; with the row.
    SpecError
        A setting that there is not; a part that is not between 0 and 1.

    Examples
    --------
    Born on 15 July 1950, photographed in 1980: 29 years old in the middle of that year.

    >>> import tempfile
    >>> from scipy.io import savemat
    >>> path, face = np.empty((2, 1, 1), dtype=object)
    >>> path[0, 0], face[0, 0] = "01/a.jpg", np.array([[11.0, 21, 50, 80]])
    >>> fields = {"dob": 712419, "photo_taken": 1980, "gender": 1.0, "face_score": 4.5}
    >>> fields |= {"second_face_score": np.nan, "full_path": path, "face_location": face}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     savemat(Path(folder) / "wiki.mat", {"wiki": fields})
    ...     dataset = load(folder, source="wiki")
    >>> dataset.attributes.select("attribute", "value").rows()
    [('gender', 'Male'), ('age', '29'), ('photo_year', '1980')]
    >>> dataset.instances.select("box_x", "box_y", "box_w", "box_h").row(0)
    (10.0, 20.0, 40.0, 60.0)
    """
    check_literal_settings(load, source=source)
    file = find_single_file(path, build_recursive_patterns(f"{source}.mat"), "IMDB-WIKI")
    key = file.stem if file.stem in ("imdb", "wiki") else source
    inputs, location = Inputs(), str(file)
    photos = _read_imdb_wiki_photos(inputs.read(file), location, key)
    faces, notes = _drop_unusable_photos(photos)
    if faces.is_empty():
        raise FileError("no photograph is left", found="; ".join(notes), where=location)
    return build_clustered_dataset(
        "imdb_wiki",
        INFO,
        instances=faces.select(
            *BOX_COLUMNS,
            instance_id="file",
            image_id="file",
            subject_id="who",
            classes=pl.lit(["face"]),
        ),
        attributes=melt_columns_to_attribute_rows(faces, "file", ("gender", "age", "photo_year")),
        images=faces.select(image_id="file", uri="file"),
        inputs=inputs,
        source=location,
        notes=notes,
        is_boxed=False,
        cluster="subject" if faces["who"].is_not_null().any() else None,
        clusters={"subject": "subject_id", "image": None, "face": None, "row": None},
    )


def _read_imdb_wiki_photos(content: bytes, source: str, key: str) -> pl.DataFrame:
    """Read the file's fields as columns, a row a photograph."""
    structure = read_mat5_variables(content, source, (key,))[key]
    if structure.dtype.names is None or structure.size != 1:
        raise TableError(
            f"{key} is not a structure of fields",
            found=f"{structure.dtype} {structure.shape}"[:80],
            where=format_location(source, column=key),
        )
    fields = structure.ravel()[0]
    paths = convert_mat_cells_to_text(
        _read_struct_field(fields, "full_path", source), source, "full_path"
    )
    n = len(paths)
    refuse_cells(paths.is_null(), paths, "a photograph has no path", None, source)
    check_paths_stay_inside(paths, source, "full_path")
    numbers = {
        name: _check_numbers_per_photo(_read_struct_field(fields, name, source), n, name, source)
        for name in _NUMBER_FIELDS
    }
    celebrity = (
        _check_numbers_per_photo(
            _read_struct_field(fields, "celeb_id", source), n, "celeb_id", source
        )
        if "celeb_id" in (structure.dtype.names or ())
        else np.full(n, np.nan)
    )
    frame = pl.DataFrame({"file": paths, **numbers, "celebrity": celebrity})
    boxes = _convert_matlab_corners_to_boxes(
        _read_struct_field(fields, "face_location", source), n, source
    )
    return _derive_age_gender_and_person(frame.hstack(boxes), source)


def _read_struct_field(fields: Any, name: str, source: str) -> npt.NDArray[Any]:
    if name not in fields.dtype.names:
        field_names = ", ".join(fields.dtype.names)
        raise TableError(f"the MATLAB file has no {name}", found=field_names[:200], where=source)
    field_values = fields[name]
    if type(field_values) is not np.ndarray:
        raise TableError(
            "a MATLAB file holds an object",
            expected="numbers, text and cells",
            found=type(field_values).__name__,
            where=format_location(source, column=name),
        )
    return field_values


def _check_numbers_per_photo(values: npt.NDArray[Any], n: int, name: str, source: str) -> Numbers:
    if values.dtype.kind not in "buif" or values.size != n:
        raise TableError(
            f"{name} does not go with full_path",
            expected=f"{n:,} numbers",
            found=f"{values.dtype}, {values.size:,}",
            where=format_location(source, column=name),
        )
    return np.ravel(values).astype(np.float64)


def _convert_matlab_corners_to_boxes(cells: npt.NDArray[Any], n: int, source: str) -> pl.DataFrame:
    """Read corners ``x1 y1 x2 y2``, counted from 1 and inclusive, as boxes from 0."""
    flat = np.ravel(cells)
    if flat.dtype != object or flat.size != n:
        raise TableError(
            "face_location does not go with full_path",
            expected=f"{n:,} cells",
            found=f"{flat.dtype}, {flat.size:,}",
            where=format_location(source, column="face_location"),
        )
    # Each cell is an array of its own, so looking at each is the only way to name a wrong one.
    are_corners = [_is_four_corner_numbers(cell) for cell in flat]
    if not all(are_corners):
        row = are_corners.index(False)
        raise TableError(
            "a face has no four corners",
            expected="x1 y1 x2 y2",
            found=str(flat[row])[:60],
            where=format_location(source, row + 1, "face_location"),
        )
    corners = np.concatenate(flat.tolist(), axis=0).astype(np.float64) if n else np.empty((0, 4))
    x_min, y_min, x_max, y_max = corners.T
    box_columns = (x_min - 1, y_min - 1, x_max - x_min + 1, y_max - y_min + 1)
    return check_box_columns(
        pl.DataFrame(dict(zip(BOX_COLUMNS, box_columns, strict=True))),
        source,
        field="face_location",
    )


def _is_four_corner_numbers(cell: object) -> bool:
    return type(cell) is np.ndarray and cell.shape == (1, 4) and cell.dtype.kind in "uif"


def _derive_age_gender_and_person(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    is_unknown_code = frame["gender"].is_not_nan() & ~frame["gender"].is_in([0.0, 1.0])
    problem = "a gender has a code that IMDB-WIKI does not have"
    refuse_cells(is_unknown_code, frame["gender"], problem, "0 (female), 1 (male) or NaN", source)
    day, year = pl.col("dob"), pl.col("photo_taken")
    # Some birthdays are not known to the page and stand as 0 or before the year 1.
    is_known_birthday = day.is_finite() & day.is_between(_FIRST_DAY, _LAST_DAY)
    date = pl.when(is_known_birthday).then(day.floor() - _EPOCH).cast(pl.Int32).cast(pl.Date)
    photo_year = pl.when(year.is_between(1800, 2200)).then(
        year
    )  # years before photography are slips
    with_dates = frame.with_columns(born=date, photo_year=photo_year)
    month, day_of_month = (pl.col("born").dt.month(), pl.col("born").dt.day())
    had_birthday = month.cast(pl.Int32) * 100 + day_of_month <= 701  # months are of 8 bits
    whole_years = pl.col("photo_year") - pl.col("born").dt.year()
    years = whole_years - (~had_birthday).cast(pl.Int32)
    faceless = pl.col("face_score").is_infinite() | pl.col("face_score").is_nan()
    return with_dates.with_columns(
        age=pl.when(years.is_between(*_AGE_RANGE)).then(years.cast(pl.Float64)),
        gender=pl.when(pl.col("gender") == 1)
        .then(pl.lit("Male"))
        .when(pl.col("gender") == 0)
        .then(pl.lit("Female")),
        who=pl.when(pl.col("celebrity").is_finite()).then(
            pl.col("celebrity").cast(pl.Int64, strict=False).cast(pl.String)
        ),
        faceless=faceless,
    ).with_columns(
        pl.when(~pl.col("faceless")).then(pl.col(name)).alias(name) for name in BOX_COLUMNS
    )


def _drop_unusable_photos(faces: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Drop unusable photographs and repeated paths, and note how many, by reason."""
    reasons = {
        "no face was found": pl.col("faceless"),
        "there is a second face": pl.col("second_face_score").is_not_nan(),
        "the age is unknown or not from 0 to 100": pl.col("age").is_null(),
        "its path occurred before": ~pl.col("file").is_first_distinct(),
    }
    flags = faces.select(flag.alias(reason) for reason, flag in reasons.items())
    is_dropped = flags.select(out=pl.any_horizontal(pl.all()))["out"]
    usable = faces.filter(~is_dropped)
    notes = []
    if is_dropped.any():
        counts = flags.sum().row(0, named=True)
        reason_list = ", ".join(
            f"{count:,} as {reason}" for reason, count in counts.items() if count
        )
        notes.append(
            f"{int(is_dropped.sum()):,} of {faces.height:,} photographs are left out: {reason_list}"
            " (one may have several reasons)."
        )
    unknown = usable["gender"].null_count()
    if unknown:
        notes.append(f"{unknown:,} photograph(s) have no gender.")
    return usable, notes
