"""IMDB-WIKI: half a million photographs of celebrities with birthdays, hence ages.

Rothe, Timofte and Van Gool (2018). Reads ``imdb.mat`` or ``wiki.mat`` (MATLAB 5). No one looked at
the pictures: gender and birthday come from the person's page and the year from the caption, so a
face may be someone else's. No picture is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.datasets._attribute_rows import attribute_rows
from isolux.datasets._boxes import checked_boxes
from isolux.datasets._clusters import clustered_as
from isolux.datasets._columns import BOX
from isolux.datasets._files import file_in, read_file, sha256_bytes
from isolux.datasets._inner_paths import refuse_outside
from isolux.datasets._mat.files import read_mat5, texts_of_cells
from isolux.io.cells import row_of
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError, TableError, place
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.tables import IMAGES, INSTANCES, check

__all__ = ["INFO", "load"]

_NUMBERS = ("dob", "photo_taken", "gender", "face_score", "second_face_score")
_EPOCH = 719_529  # MATLAB's number of 1 January 1970: it counts days from a year 0
_FIRST_DAY, _LAST_DAY = 367.0, 803_000.0  # 1 January of the year 1; in the year 2198
_AGES = (0, 100)  # years; dates that give others are mistakes
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
    judgement="inferred",
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
    keep: Literal["usable", "all"] = "usable",
    min_face_score: float | None = None,
    ages: Literal["mid-year", "year"] = "mid-year",
    sample: float | None = None,
    seed: int = 0,
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
    keep : {"usable", "all"}
        Leave out photographs without a face, with a second one, or whose age is unknown or not
        from 0 to 100; or load everything, such ages null.
    min_face_score : float, optional
        Leave out faces that the authors' detector was less sure of.
    ages : {"mid-year", "year"}
        The authors' rule, which takes a photograph to be of 1 July; or the difference of years.
    sample : float, optional
        Load a random part of what is kept, such as 0.1.
    seed : int
        The same part for the same seed and file.

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
    _refuse_settings(source, keep, ages, sample)
    given = Path(path).expanduser()
    name = f"{source}.mat"
    file = file_in(given, (name, f"**/{name}"), "IMDB-WIKI")
    key = file.stem if file.stem in ("imdb", "wiki") else source
    data, where = read_file(file), str(file)
    read = _read(data, where, key, ages)
    kept = _kept(read, keep, min_face_score)
    faces = _sampled(kept.frame, sample, seed)
    notes = list(kept.notes)
    if sample is not None:
        notes.append(f"A random part of {sample:g}, {faces.height:,} photographs, seed {seed}.")
    if faces.is_empty():
        raise FileError("no photograph is left", found="; ".join(notes), where=where)
    instances = check(_instances(faces), INSTANCES, where=where)
    dataset = Dataset(
        name="imdb_wiki",
        info=INFO,
        instances=instances,
        attributes=attribute_rows(faces, "file", ("gender", "age", "photo_year")),
        images=check(faces.select(image_id="file", uri="file"), IMAGES, where=where),
        inputs={where: sha256_bytes(data)},
        notes=tuple(notes),
    )
    named = instances["subject_id"].is_not_null().any()
    words = {"subject": "subject_id", "image": None, "face": None, "row": None}
    return clustered_as(dataset, default="subject" if named else None, names=words)


def _refuse_settings(source: str, keep: str, ages: str, sample: float | None) -> None:
    for name, value, known in (
        ("source", source, ("imdb", "wiki")),
        ("keep", keep, ("usable", "all")),
        ("ages", ages, ("mid-year", "year")),
    ):
        if value not in known:
            raise SpecError(
                f"{name} cannot be set to that", expected=" or ".join(known), found=repr(value)
            )
    if sample is not None and not 0 < sample <= 1:
        raise SpecError(
            "sample cannot be set to that", expected="above 0, at most 1", found=repr(sample)
        )


def _read(data: bytes, where: str, key: str, ages: str) -> pl.DataFrame:
    """Read the file's fields as columns, a row a photograph."""
    whole = read_mat5(data, where, (key,))[key]
    if whole.dtype.names is None or whole.size != 1:
        raise TableError(
            f"{key} is not a structure of fields",
            found=f"{whole.dtype} {whole.shape}"[:80],
            where=place(where, column=key),
        )
    fields = whole.ravel()[0]
    paths = texts_of_cells(_field(fields, "full_path", where), where, "full_path")
    n = len(paths)
    bad = paths.is_null()
    if bad.any():
        raise TableError("a photograph has no path", where=place(where, row_of(bad) + 1))
    refuse_outside(paths, where, "full_path")
    numbers = {name: _numbers(_field(fields, name, where), n, name, where) for name in _NUMBERS}
    celebrity = (
        _numbers(_field(fields, "celeb_id", where), n, "celeb_id", where)
        if "celeb_id" in (whole.dtype.names or ())
        else np.full(n, np.nan)
    )
    frame = pl.DataFrame({"file": paths, **numbers, "celebrity": celebrity})
    boxes = _boxes(_field(fields, "face_location", where), n, where)
    return _derived(frame.hstack(boxes), ages, where)


def _field(fields: Any, name: str, where: str) -> npt.NDArray[Any]:
    if name not in fields.dtype.names:
        known = ", ".join(fields.dtype.names)
        raise TableError(f"the MATLAB file has no {name}", found=known[:200], where=where)
    found = fields[name]
    if type(found) is not np.ndarray:
        raise TableError(
            "a MATLAB file holds an object",
            expected="numbers, text and cells",
            found=type(found).__name__,
            where=place(where, column=name),
        )
    return found


def _numbers(values: npt.NDArray[Any], n: int, name: str, where: str) -> Numbers:
    if values.dtype.kind not in "buif" or values.size != n:
        raise TableError(
            f"{name} does not go with full_path",
            expected=f"{n:,} numbers",
            found=f"{values.dtype}, {values.size:,}",
            where=place(where, column=name),
        )
    return np.ravel(values).astype(np.float64)


def _boxes(cells: npt.NDArray[Any], n: int, where: str) -> pl.DataFrame:
    """Read corners ``x1 y1 x2 y2``, counted from 1 and inclusive, as boxes from 0."""
    flat = np.ravel(cells)
    if flat.dtype != object or flat.size != n:
        raise TableError(
            "face_location does not go with full_path",
            expected=f"{n:,} cells",
            found=f"{flat.dtype}, {flat.size:,}",
            where=place(where, column="face_location"),
        )
    # Each cell is an array of its own, so looking at each is the only way to name a wrong one.
    fits = [_is_corners(cell) for cell in flat]
    if not all(fits):
        row = fits.index(False)
        raise TableError(
            "a face has no four corners",
            expected="x1 y1 x2 y2",
            found=str(flat[row])[:60],
            where=place(where, row + 1, "face_location"),
        )
    corners = np.concatenate(flat.tolist(), axis=0).astype(np.float64) if n else np.empty((0, 4))
    left, top, right, bottom = corners.T
    sides = (left - 1, top - 1, right - left + 1, bottom - top + 1)
    return checked_boxes(
        pl.DataFrame(dict(zip(BOX, sides, strict=True))), where, field="face_location"
    )


def _is_corners(cell: object) -> bool:
    return type(cell) is np.ndarray and cell.shape == (1, 4) and cell.dtype.kind in "uif"


def _derived(frame: pl.DataFrame, ages: str, where: str) -> pl.DataFrame:
    strange = frame["gender"].is_not_nan() & ~frame["gender"].is_in([0.0, 1.0])
    if strange.any():
        raise TableError(
            "a gender has a code that IMDB-WIKI does not have",
            expected="0 (female), 1 (male) or NaN",
            found=str(frame["gender"][row_of(strange)]),
            where=place(where, row_of(strange) + 1, "gender"),
        )
    day, year = pl.col("dob"), pl.col("photo_taken")
    # Some birthdays are not known to the page and stand as 0 or before the year 1.
    told = day.is_finite() & day.is_between(_FIRST_DAY, _LAST_DAY)
    date = pl.when(told).then(day.floor() - _EPOCH).cast(pl.Int32).cast(pl.Date)
    taken = pl.when(year.is_between(1800, 2200)).then(year)  # years before photography are slips
    found = frame.with_columns(born=date, photo_year=taken)
    month, of_month = (pl.col("born").dt.month(), pl.col("born").dt.day())
    had_birthday = month.cast(pl.Int32) * 100 + of_month <= 701  # months are of 8 bits
    years = pl.col("photo_year") - pl.col("born").dt.year()
    if ages == "mid-year":
        years = years - (~had_birthday).cast(pl.Int32)
    faceless = pl.col("face_score").is_infinite() | pl.col("face_score").is_nan()
    return found.with_columns(
        age=pl.when(years.is_between(*_AGES)).then(years.cast(pl.Float64)),
        gender=pl.when(pl.col("gender") == 1)
        .then(pl.lit("Male"))
        .when(pl.col("gender") == 0)
        .then(pl.lit("Female")),
        who=pl.when(pl.col("celebrity").is_finite()).then(
            pl.col("celebrity").cast(pl.Int64, strict=False).cast(pl.String)
        ),
        faceless=faceless,
    ).with_columns(pl.when(~pl.col("faceless")).then(pl.col(name)).alias(name) for name in BOX)


@dataclass(frozen=True, slots=True)
class _Kept:
    frame: pl.DataFrame
    notes: tuple[str, ...]


def _kept(faces: pl.DataFrame, keep: str, min_face_score: float | None) -> _Kept:
    """Leave out what cannot be judged, and count each reason."""
    usable = keep == "usable"
    least = float("-inf") if min_face_score is None else min_face_score
    reasons = {
        "no face was found": pl.col("faceless") & usable,
        "there is a second face": pl.col("second_face_score").is_not_nan() & usable,
        "the age is unknown or not from 0 to 100": pl.col("age").is_null() & usable,
        f"the face's score is below {least:g}": (
            (pl.col("face_score") < least) | pl.col("face_score").is_nan()
        )
        & (min_face_score is not None),
        "its path occurred before": ~pl.col("file").is_first_distinct(),
    }
    flags = faces.select(flag.alias(reason) for reason, flag in reasons.items())
    out = flags.select(pl.any_horizontal(pl.all()).alias("out"))["out"]
    kept = faces.filter(~out)
    notes = []
    if out.any():
        counts = flags.sum().row(0, named=True)
        listed = ", ".join(f"{count:,} as {reason}" for reason, count in counts.items() if count)
        notes.append(
            f"{int(out.sum()):,} of {faces.height:,} photographs are left out: {listed} (one may"
            " have several reasons)."
        )
    unknown = kept["gender"].null_count()
    if unknown:
        notes.append(f"{unknown:,} photograph(s) have no gender.")
    return _Kept(kept, tuple(notes))


def _sampled(faces: pl.DataFrame, sample: float | None, seed: int) -> pl.DataFrame:
    if sample is None or faces.is_empty():
        return faces
    size = max(1, round(sample * faces.height))
    chosen = np.random.default_rng(seed).choice(faces.height, size, replace=False)
    return faces[np.sort(chosen)]


def _instances(faces: pl.DataFrame) -> pl.DataFrame:
    return faces.select(
        instance_id="file",
        image_id="file",
        subject_id="who",
        classes=pl.lit(["face"]),
        **{name: pl.col(name) for name in BOX},
    )
