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

from isolux.core.errors import TableError, format_location
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.io.cell_parsing import as_numbers
from isolux.io.json_values import decode_json
from isolux.io.refusals import refuse_cells

_IdOrText = int | str
_COUNT_SUFFIX = " ({n} in all)"
_NUMBER_BY_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6"}
_SUBJECT = re.compile(rb'"((?!label")[^"\\]{1,100})"\s*:\s*\{')
_SUBJECT_ID_DIGITS = 4  # of a subject's number; Fairness Indicators' list drops leading zeros


class _CasualLabel(msgspec.Struct, rename={"skin_type": "skin-type"}):
    age: _IdOrText | None = None
    gender: str | None = None
    skin_type: _IdOrText | None = None


class _CasualSubject(msgspec.Struct):
    files: list[str] | None = None
    dark_files: list[str] | None = None
    label: _CasualLabel | None = None


class _CasualPicture(msgspec.Struct, gc=False, rename={"skin_type": "skin-type"}):
    img_path: str
    subject_id: _IdOrText
    age: _IdOrText | None = None
    gender: str | None = None
    skin_type: _IdOrText | None = None


class _CasualLocation(msgspec.Struct, gc=False):
    country: str | None = None
    state_region: str | None = None


class _CasualMonkTone(msgspec.Struct, gc=False):
    scale: _IdOrText | None = None
    confidence: str | None = None


class _CasualFitzpatrickType(msgspec.Struct, gc=False):
    type: _IdOrText | None = None
    confidence: str | None = None


class _CasualVideo(msgspec.Struct, gc=False):
    video_name: str
    subject_id: _IdOrText
    age: _IdOrText | None = None
    gender: str | None = None
    geo_location: _CasualLocation | None = None
    native_language: str | None = None
    monk_skin_tone: _CasualMonkTone | None = None
    fitzpatrick_skin_tone: _CasualFitzpatrickType | None = None


class _CasualEntryForm(msgspec.Struct, gc=False):
    video_name: str | msgspec.UnsetType = msgspec.UNSET
    img_path: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class ConversationVideos:
    """Videos, or pictures of them, and what is said of each."""

    table: pl.DataFrame
    attributes: tuple[str, ...]
    subject_attributes: tuple[str, ...]
    has_pictures: bool = False


def parse_conversations(content: bytes, source: str) -> ConversationVideos:
    """Detect which of the three layouts it is, and read it."""
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"{":
        return _parse_conversations_v1(content, source)
    entry_forms = decode_json(content, list[_CasualEntryForm], source)
    if all(entry_form.video_name is not msgspec.UNSET for entry_form in entry_forms):
        return _parse_conversations_v2(decode_json(content, list[_CasualVideo], source), source)
    if all(entry_form.img_path is not msgspec.UNSET for entry_form in entry_forms):
        return _parse_flattened_conversations(
            decode_json(content, list[_CasualPicture], source), source
        )
    row = next(
        i for i, entry_form in enumerate(entry_forms) if entry_form.video_name is msgspec.UNSET
    )
    raise TableError(
        "an entry is neither a video nor a picture",
        expected="video_name (version 2) or img_path (Fairness Indicators' list) in every entry",
        where=format_location(source, row + 1),
    )


def _parse_conversations_v1(content: bytes, source: str) -> ConversationVideos:
    subjects = decode_json(content, dict[str, _CasualSubject], source)
    _check_subjects_are_unique(content, subjects, source)
    people = list(subjects.values())
    subject_labels = _read_text_fields_as_columns(
        people, age="label.age", gender="label.gender", skin_type=_TYPE_PATH
    )
    described = subject_labels.with_columns(
        pl.Series("subject", list(subjects), dtype=pl.String),
        pl.Series("dark", [s.dark_files or [] for s in people], dtype=_PATH_LIST),
        pl.Series("all", [s.files or [] for s in people], dtype=_PATH_LIST),
        *_parse_age_and_skin_tone(subject_labels, source),
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
    return ConversationVideos(
        _add_video_ids(videos, source), ("lighting",), ("age", "gender", "skin_type")
    )


_PATH_LIST = pl.List(pl.String)
_TYPE_PATH = "label.skin_type"


def _check_subjects_are_unique(
    content: bytes, subjects: dict[str, _CasualSubject], source: str
) -> None:
    """JSON lets a name occur twice, and readers keep the last of them without a word."""
    repeated = [k for k, n in Counter(_SUBJECT.findall(content)).items() if n > 1]
    if repeated:
        raise TableError(
            "a subject occurs twice",
            expected=f"each of the {len(subjects):,} subjects once",
            found=repr(repeated[0].decode()),
            where=source,
        )


def _parse_conversations_v2(videos: list[_CasualVideo], source: str) -> ConversationVideos:
    columns = _read_text_fields_as_columns(
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
    described = columns.with_columns(*_parse_age_and_skin_tone(columns, source))
    return ConversationVideos(_add_video_ids(described, source), tuple(described.columns[2:]), ())


def _parse_flattened_conversations(
    pictures: list[_CasualPicture], source: str
) -> ConversationVideos:
    names = ("age", "gender", "skin_type")
    own_fields = {name: name for name in names}
    columns = _read_text_fields_as_columns(
        pictures, subject="subject_id", uri="img_path", **own_fields
    )
    inner = pl.col("uri").str.extract(r"((?:[^/\\]+[/\\]){0,2}[^/\\]+)$")
    described = columns.with_columns(inner, *_parse_age_and_skin_tone(columns, source))
    return ConversationVideos(
        _add_video_ids(described, source, uses_paths=True), names, (), has_pictures=True
    )


def _read_text_fields_as_columns(rows: Sequence[Any], **path_by_column: str) -> pl.DataFrame:
    """Read a column of text from the fields of rows; null where one of a path is not there."""
    columns = {}
    for name, path in path_by_column.items():
        cells = rows
        for step in path.split("."):
            cells = [getattr(cell, step, None) for cell in cells]
        texts = [None if cell is None else str(cell) for cell in cells]
        columns[name] = pl.Series(texts, dtype=pl.String)
    return pl.DataFrame(columns)


def _parse_age_and_skin_tone(rows: pl.DataFrame, source: str) -> list[pl.Series]:
    """Read ages, Fitzpatrick's types and, where they are, Monk's tones."""
    ages = as_numbers(rows["age"], source=source, column="age", unknown=UNKNOWN_VALUES).fill_nan(
        None
    )
    bad = ~ages.is_between(0, 120).fill_null(value=True)  # no one has lived much longer
    refuse_cells(
        bad, rows["age"], "an age is not a number of years" + _COUNT_SUFFIX, "0 to 120", source
    )
    types = rows["skin_type"].str.strip_chars().str.to_lowercase().str.strip_prefix("type ")
    types = _replace_unknown_by_null(types).replace(_NUMBER_BY_ROMAN).alias("skin_type")
    type_codes = [str(n) for n in range(1, 7)]
    is_unknown_code = ~types.is_in(type_codes).fill_null(value=True)
    expected = "1 to 6, or type i to vi"
    refuse_cells(
        is_unknown_code, rows["skin_type"], "no Fitzpatrick type" + _COUNT_SUFFIX, expected, source
    )
    labels = [ages.alias("age"), types]
    if "skin_tone" in rows.columns:
        tones = rows["skin_tone"].str.strip_chars().str.to_lowercase().str.strip_prefix("scale ")
        tones = _replace_unknown_by_null(tones).alias("skin_tone")
        is_unknown_code = ~tones.is_in([str(n) for n in range(1, 11)]).fill_null(value=True)
        problem = "no tone of Monk's scale" + _COUNT_SUFFIX
        refuse_cells(is_unknown_code, rows["skin_tone"], problem, "scale 1 to 10", source)
        labels.append(tones)
    return labels


def _replace_unknown_by_null(labels: pl.Series) -> pl.Series:
    is_known = ~pl.col("word").is_in(UNKNOWN_VALUES)
    return labels.to_frame("word").select(word=pl.when(is_known).then("word"))["word"]


def _add_video_ids(rows: pl.DataFrame, source: str, *, uses_paths: bool = False) -> pl.DataFrame:
    """Give each video an id: its file's name without suffix, or its path where that is shared."""
    check_paths_stay_inside(rows["uri"], source, "files")
    for name, problem in (("uri", "a video occurs twice"), ("subject", "a video has no subject")):
        bad = rows[name].is_null() | (rows[name] == "")
        bad = bad | ~rows[name].is_first_distinct() if name == "uri" else bad
        refuse_cells(
            bad, rows[name], problem + _COUNT_SUFFIX, "each video once, with its subject", source
        )
    path = pl.col("uri").str.replace(r"(?s)^(.+)\.[^./\\]*$", "${1}")
    stem = path.str.replace(r"(?s)^.*[/\\]", "")
    unique = rows.select(stem.n_unique()).item() == rows.height
    number = pl.col("subject")
    padded = pl.when(number.str.contains(r"^[0-9]+$")).then(number.str.zfill(_SUBJECT_ID_DIGITS))
    return rows.with_columns(
        video=pl.col("uri") if uses_paths or not unique else stem,
        subject_id=padded.otherwise(number),
    ).drop("subject")
