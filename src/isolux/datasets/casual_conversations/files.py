"""Casual Conversations' JSON, both versions and the list of Fairness Indicators, as videos.

v1: a dictionary of subjects with their files and labels. v2: a list of videos with what subjects
said and annotators judged. Fairness Indicators' code flattens v1 to a list of pictures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from isolux.datasets._inner_paths import refuse_outside
from isolux.datasets._json import decode
from isolux.io.cells import as_numbers, row_of
from isolux.vocabulary.errors import TableError, place
from isolux.vocabulary.grouping import UNKNOWN_VALUES

__all__ = ["Conversations", "read_conversations"]

_ID = int | str
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
    """Videos, or pictures of them, and what is said of each.

    ``frame``: ``video`` (unique), ``uri``, ``subject_id``, ``age`` (years, null: not known),
    ``gender``, ``skin_type`` (Fitzpatrick, 1 to 6) and, of v1 ``lighting``, of v2 ``skin_tone``
    (Monk, 1 to 10), both confidences, ``country``, ``state_region``, ``native_language``.
    ``attributes`` names those of these columns that are attributes of the video, ``of_subjects``
    those of the subject. ``pictures``: they are not videos.
    """

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
    labels = [subject.label or _Label() for subject in subjects.values()]
    of_subjects = pl.DataFrame(
        {
            "subject": pl.Series(list(subjects), dtype=pl.String),
            "age": _texts([label.age for label in labels]),
            "gender": _texts([label.gender for label in labels]),
            "skin_type": _texts([label.skin_type for label in labels]),
            "dark": pl.Series([s.dark_files or [] for s in subjects.values()], dtype=_PATHS),
            "all": pl.Series([s.files or [] for s in subjects.values()], dtype=_PATHS),
        }
    )
    described = of_subjects.with_columns(*_judged(of_subjects, where))
    # A dark file may stand in the list of all files too: which one is dark, its own list says.
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
    homes = [video.geo_location or _Where() for video in videos]
    monk = [video.monk_skin_tone or _Monk() for video in videos]
    fitzpatrick = [video.fitzpatrick_skin_tone or _Fitzpatrick() for video in videos]
    read = pl.DataFrame(
        {
            "subject": _texts([video.subject_id for video in videos]),
            "uri": _texts([video.video_name for video in videos]),
            "age": _texts([video.age for video in videos]),
            "gender": _texts([video.gender for video in videos]),
            "skin_type": _texts([one.type for one in fitzpatrick]),
            "skin_type_confidence": _texts([one.confidence for one in fitzpatrick]),
            "skin_tone": _texts([one.scale for one in monk]),
            "skin_tone_confidence": _texts([one.confidence for one in monk]),
            "country": _texts([home.country for home in homes]),
            "state_region": _texts([home.state_region for home in homes]),
            "native_language": _texts([video.native_language for video in videos]),
        }
    )
    described = read.with_columns(*_judged(read, where))
    names = tuple(name for name in described.columns if name not in ("subject", "uri"))
    return Conversations(_named(described, where), names, ())


def _flattened(pictures: list[_Picture], where: str) -> Conversations:
    read = pl.DataFrame(
        {
            "subject": _texts([picture.subject_id for picture in pictures]),
            # The last three parts are what its code goes by; before them is someone's own folder.
            "uri": _texts([picture.img_path for picture in pictures]).str.extract(
                r"((?:[^/\\]+[/\\]){0,2}[^/\\]+)$"
            ),
            "age": _texts([picture.age for picture in pictures]),
            "gender": _texts([picture.gender for picture in pictures]),
            "skin_type": _texts([picture.skin_type for picture in pictures]),
        }
    )
    described = read.with_columns(*_judged(read, where))
    names = ("age", "gender", "skin_type")
    return Conversations(_named(described, where, whole=True), names, (), pictures=True)


def _texts(values: Sequence[_ID | None]) -> pl.Series:
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def _judged(rows: pl.DataFrame, where: str) -> list[pl.Series]:
    """Read ages, Fitzpatrick's types and, where they are, Monk's tones."""
    ages = as_numbers(rows["age"], where=where, column="age", unknown=UNKNOWN_VALUES).fill_nan(None)
    bad = ~ages.is_between(0, 120).fill_null(value=True)  # no one has lived much longer
    _refuse(bad, rows["age"], "an age is not a number of years", "0 to 120", where)
    types = rows["skin_type"].str.strip_chars().str.to_lowercase().str.strip_prefix("type ")
    types = _unless_unknown(types).replace(_ROMAN).alias("skin_type")
    known = [str(n) for n in range(1, 7)]
    strange = ~types.is_in(known).fill_null(value=True)
    _refuse(strange, rows["skin_type"], "no Fitzpatrick type", "1 to 6, or type i to vi", where)
    found = [ages.alias("age"), types]
    if "skin_tone" in rows.columns:
        tones = rows["skin_tone"].str.strip_chars().str.to_lowercase().str.strip_prefix("scale ")
        tones = _unless_unknown(tones).alias("skin_tone")
        strange = ~tones.is_in([str(n) for n in range(1, 11)]).fill_null(value=True)
        _refuse(strange, rows["skin_tone"], "no tone of Monk's scale", "scale 1 to 10", where)
        found.append(tones)
    return found


def _unless_unknown(words: pl.Series) -> pl.Series:
    known = ~pl.col("word").is_in(UNKNOWN_VALUES)
    return words.to_frame("word").select(pl.when(known).then("word").alias("word"))["word"]


def _refuse(bad: pl.Series, cells: pl.Series, problem: str, expected: str, where: str) -> None:
    if bad.any():
        row = row_of(bad)
        raise TableError(
            f"{problem} ({bad.sum():,} in all)",
            expected=expected,
            found=repr(cells[row]),
            where=place(where, row + 1, cells.name),
        )


def _named(rows: pl.DataFrame, where: str, *, whole: bool = False) -> pl.DataFrame:
    """Give each video an id: its file's name without suffix, or its path where that is shared."""
    refuse_outside(rows["uri"], where, "files")
    for name, problem in (("uri", "a video occurs twice"), ("subject", "a video has no subject")):
        bad = rows[name].is_null() | (rows[name] == "")
        bad = bad | ~rows[name].is_first_distinct() if name == "uri" else bad
        _refuse(bad, rows[name], problem, "each video once, with its subject", where)
    path = pl.col("uri").str.replace(r"(?s)^(.+)\.[^./\\]*$", "${1}")
    stem = path.str.replace(r"(?s)^.*[/\\]", "")
    unique = rows.select(stem.n_unique()).item() == rows.height
    number = pl.col("subject")
    padded = pl.when(number.str.contains(r"^[0-9]+$")).then(number.str.zfill(_DIGITS))
    return rows.with_columns(
        video=pl.col("uri") if whole or not unique else stem,
        subject_id=padded.otherwise(number),
    ).drop("subject")
