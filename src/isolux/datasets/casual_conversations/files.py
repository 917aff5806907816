"""Casual Conversations' JSON, both versions and the list of Fairness Indicators, as videos.

v1: a dictionary of subjects with their files and labels. v2: a list of videos with what subjects
said and annotators judged. Fairness Indicators' code flattens v1 to a list of pictures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from isolux.datasets._inner_paths import refuse_outside
from isolux.io.cells import as_numbers
from isolux.io.json_values import decode
from isolux.io.refusals import refuse_cells
from isolux.vocabulary.errors import TableError, place
from isolux.vocabulary.grouping import UNKNOWN_VALUES

_ID = int | str
_N = " ({n} in all)"
_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6"}
_SUBJECT = re.compile(rb'"((?!label")[^"\\]{1,100})"\s*:\s*\{')
_DIGITS = 4  # of a subject's number; Fairness Indicators' list drops leading zeros


class _Label(msgspec.Struct, rename={"skin_type": "skin-type"}):
    age: _ID | None = None
    gender: str | None = None
    skin_type: _ID | None = None


class _Subject(msgspec.Struct):
    files: list[str] | None = None
    dark_files: list[str] | None = None
    label: _Label | None = None


class _Picture(msgspec.Struct, gc=False, rename={"skin_type": "skin-type"}):
    img_path: str
    subject_id: _ID
    age: _ID | None = None
    gender: str | None = None
    skin_type: _ID | None = None


class _Where(msgspec.Struct, gc=False):
    country: str | None = None
    state_region: str | None = None


class _Monk(msgspec.Struct, gc=False):
    scale: _ID | None = None
    confidence: str | None = None


class _Fitzpatrick(msgspec.Struct, gc=False):
    type: _ID | None = None
    confidence: str | None = None


class _Video(msgspec.Struct, gc=False):
    video_name: str
    subject_id: _ID
    age: _ID | None = None
    gender: str | None = None
    geo_location: _Where | None = None
    native_language: str | None = None
    monk_skin_tone: _Monk | None = None
    fitzpatrick_skin_tone: _Fitzpatrick | None = None


class _Kind(msgspec.Struct, gc=False):
    video_name: str | msgspec.UnsetType = msgspec.UNSET
    img_path: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class Conversations:
    """Videos, or pictures of them, and what is said of each."""

    frame: pl.DataFrame
    attributes: tuple[str, ...]
    of_subjects: tuple[str, ...]
    pictures: bool = False


def read_conversations(data: bytes, where: str) -> Conversations:
    """Read whichever of the three it is."""
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"{":
        return _version_1(data, where)
    kinds = decode(data, list[_Kind], where)
    if all(kind.video_name is not msgspec.UNSET for kind in kinds):
        return _version_2(decode(data, list[_Video], where), where)
    if all(kind.img_path is not msgspec.UNSET for kind in kinds):
        return _flattened(decode(data, list[_Picture], where), where)
    row = next(i for i, kind in enumerate(kinds) if kind.video_name is msgspec.UNSET)
    raise TableError(
        "an entry is neither a video nor a picture",
        expected="video_name (version 2) or img_path (Fairness Indicators' list) in every entry",
        where=place(where, row + 1),
    )


def _version_1(data: bytes, where: str) -> Conversations:
    subjects = decode(data, dict[str, _Subject], where)
    _refuse_repeated_subjects(data, subjects, where)
    people = list(subjects.values())
    of_subjects = _columns(people, age="label.age", gender="label.gender", skin_type=_TYPE)
    described = of_subjects.with_columns(
        pl.Series("subject", list(subjects), dtype=pl.String),
        pl.Series("dark", [s.dark_files or [] for s in people], dtype=_PATHS),
        pl.Series("all", [s.files or [] for s in people], dtype=_PATHS),
        *_judged(of_subjects, where),
    )
    # A dark video is listed among all of a subject's, too: the first row of a file stays.
    rows = pl.concat(
        [
            described.select("subject", uri=name, lighting=pl.lit(word)).explode("uri").drop_nulls()
            for name, word in (("dark", "dark"), ("all", "bright"))
        ]
    ).unique("uri", keep="first", maintain_order=True)
    videos = described.select("subject", "age", "gender", "skin_type").join(
        rows, on="subject", how="inner", maintain_order="left"
    )
    return Conversations(_named(videos, where), ("lighting",), ("age", "gender", "skin_type"))


_PATHS = pl.List(pl.String)
_TYPE = "label.skin_type"


def _refuse_repeated_subjects(data: bytes, subjects: dict[str, _Subject], where: str) -> None:
    """JSON lets a name occur twice, and readers keep the last of them without a word."""
    twice = [k for k, n in Counter(_SUBJECT.findall(data)).items() if n > 1]
    if twice:
        raise TableError(
            "a subject occurs twice",
            expected=f"each of the {len(subjects):,} subjects once",
            found=repr(twice[0].decode()),
            where=where,
        )


def _version_2(videos: list[_Video], where: str) -> Conversations:
    read = _columns(
        videos,
        subject="subject_id",
        uri="video_name",
        age="age",
        gender="gender",
        skin_type="fitzpatrick_skin_tone.type",
        skin_type_confidence="fitzpatrick_skin_tone.confidence",
        skin_tone="monk_skin_tone.scale",
        skin_tone_confidence="monk_skin_tone.confidence",
        country="geo_location.country",
        state_region="geo_location.state_region",
        native_language="native_language",
    )
    described = read.with_columns(*_judged(read, where))
    return Conversations(_named(described, where), tuple(described.columns[2:]), ())


def _flattened(pictures: list[_Picture], where: str) -> Conversations:
    names = ("age", "gender", "skin_type")
    own = {name: name for name in names}
    read = _columns(pictures, subject="subject_id", uri="img_path", **own)
    inner = pl.col("uri").str.extract(r"((?:[^/\\]+[/\\]){0,2}[^/\\]+)$")
    described = read.with_columns(inner, *_judged(read, where))
    return Conversations(_named(described, where, whole=True), names, (), pictures=True)


def _columns(rows: Sequence[Any], **paths: str) -> pl.DataFrame:
    """Read a column of text from the fields of rows; null where one of a path is not there."""
    columns = {}
    for name, path in paths.items():
        cells = rows
        for step in path.split("."):
            cells = [getattr(cell, step, None) for cell in cells]
        texts = [None if cell is None else str(cell) for cell in cells]
        columns[name] = pl.Series(texts, dtype=pl.String)
    return pl.DataFrame(columns)


def _judged(rows: pl.DataFrame, where: str) -> list[pl.Series]:
    """Read ages, Fitzpatrick's types and, where they are, Monk's tones."""
    ages = as_numbers(rows["age"], where=where, column="age", unknown=UNKNOWN_VALUES).fill_nan(None)
    bad = ~ages.is_between(0, 120).fill_null(value=True)  # no one has lived much longer
    refuse_cells(bad, rows["age"], "an age is not a number of years" + _N, "0 to 120", where)
    types = rows["skin_type"].str.strip_chars().str.to_lowercase().str.strip_prefix("type ")
    types = _unless_unknown(types).replace(_ROMAN).alias("skin_type")
    known = [str(n) for n in range(1, 7)]
    strange = ~types.is_in(known).fill_null(value=True)
    expected = "1 to 6, or type i to vi"
    refuse_cells(strange, rows["skin_type"], "no Fitzpatrick type" + _N, expected, where)
    found = [ages.alias("age"), types]
    if "skin_tone" in rows.columns:
        tones = rows["skin_tone"].str.strip_chars().str.to_lowercase().str.strip_prefix("scale ")
        tones = _unless_unknown(tones).alias("skin_tone")
        strange = ~tones.is_in([str(n) for n in range(1, 11)]).fill_null(value=True)
        problem = "no tone of Monk's scale" + _N
        refuse_cells(strange, rows["skin_tone"], problem, "scale 1 to 10", where)
        found.append(tones)
    return found


def _unless_unknown(words: pl.Series) -> pl.Series:
    known = ~pl.col("word").is_in(UNKNOWN_VALUES)
    return words.to_frame("word").select(pl.when(known).then("word").alias("word"))["word"]


def _named(rows: pl.DataFrame, where: str, *, whole: bool = False) -> pl.DataFrame:
    """Give each video an id: its file's name without suffix, or its path where that is shared."""
    refuse_outside(rows["uri"], where, "files")
    for name, problem in (("uri", "a video occurs twice"), ("subject", "a video has no subject")):
        bad = rows[name].is_null() | (rows[name] == "")
        bad = bad | ~rows[name].is_first_distinct() if name == "uri" else bad
        refuse_cells(bad, rows[name], problem + _N, "each video once, with its subject", where)
    path = pl.col("uri").str.replace(r"(?s)^(.+)\.[^./\\]*$", "${1}")
    stem = path.str.replace(r"(?s)^.*[/\\]", "")
    unique = rows.select(stem.n_unique()).item() == rows.height
    number = pl.col("subject")
    padded = pl.when(number.str.contains(r"^[0-9]+$")).then(number.str.zfill(_DIGITS))
    return rows.with_columns(
        video=pl.col("uri") if whole or not unique else stem,
        subject_id=padded.otherwise(number),
    ).drop("subject")
