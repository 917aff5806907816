"""CelebA's text lists as columns: a picture a row, cells parted by any number of spaces.

``list_attr_celeba.txt`` and its like begin with the number of rows and a line of names, which may
lack the name of the first column; ``list_eval_partition.txt`` and its like begin with a row.
CelebAMask-HQ keeps the form. Kaggle's copies are CSV with a line of names in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError, SpecError, TableError, refuse_unknown_names
from isolux.core.info import DatasetInfo
from isolux.datasets._files import Inputs, build_recursive_patterns, find_first_file_or_none
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import left_join_in_order
from isolux.io.delimited_text import read_delimited
from isolux.io.refusals import refuse_cells, refuse_repeats
from isolux.io.text import check_utf8

ATTRIBUTES = ("list_attr_celeba.txt", "list_attr_celeba.csv")
IDENTITY = ("identity_CelebA.txt", "identity_CelebA.csv")
PARTITION = ("list_eval_partition.txt", "list_eval_partition.csv")
"""The lists' names: as published, and as Kaggle's copy has them."""
SPLITS = ("train", "val", "test")
"""What the partition's codes 0, 1, 2 mean."""

CELEBA_INFO = DatasetInfo(
    title="",
    summary="",
    references=(),
    licence="non-commercial research only; the pictures stay their owners'",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="perceived",
    terms=(
        ("Male", "perceived male gender presentation"),
        ("Young", "perceived as young"),
        ("Attractive", "judged attractive by annotators"),
        ("Pale_Skin", "perceived pale skin"),
    ),
    assumptions=(
        (
            "the groups come from a labelling company's judgements, not from what people say about "
            "themselves"
        ),
        "photographs of one celebrity are not independent: identities are clusters where known",
        "no means that a trait was not marked, as when it cannot be seen",
    ),
)
"""What CelebA, CelebAMask-HQ and LFWA share, whose labels one company made."""

FACE_CLUSTERS = {"subject": "subject_id", "image": None, "face": None, "row": None}
_MAX_COUNT_DIGITS = 9  # more are not a number of pictures
_IMAGE_COLUMNS = ("image_id", "idx")
_LABEL_BY_CODE = {"1": "yes", "-1": "no"}


def parse_celeba_list(
    content: bytes, source: str, column_names: Sequence[str] | None = None
) -> pl.DataFrame:
    """Read a list; every column is text."""
    text = _collapse_spaces(check_utf8(content, source))
    first, _, remainder = text.partition(b"\n")
    count = None
    if b"," in first:
        first, text = first.replace(b",", b" "), remainder.replace(b",", b" ")
        header, body = list(column_names or first.decode("utf-8").split(" ")), text
        if not first.startswith(_IMAGE_COLUMNS[0].encode()):
            raise FileError(
                "this CSV does not begin with a line of names",
                expected=f"{_IMAGE_COLUMNS[0]},…",
                found=first.decode("utf-8", "replace")[:60],
                where=source,
            )
    elif column_names is not None:
        header, body = list(column_names), text
    else:
        if first.isdigit() and len(first) <= _MAX_COUNT_DIGITS:
            count = int(first)
            first, _, remainder = remainder.partition(b"\n")
        header, body = first.decode("utf-8").split(" "), remainder
        if header[0] not in _IMAGE_COLUMNS:
            header = [_IMAGE_COLUMNS[0], *header]
    if '"' in "".join(header) or b'"' in body:
        raise FileError("a list of pictures holds a quotation mark", where=source)
    frame = read_delimited(" ".join(header).encode() + b"\n" + body, " ", source)
    if count is not None and count != frame.height:
        raise FileError(
            "the list has another number of rows than its first line says",
            expected=f"{count:,} rows",
            found=f"{frame.height:,}",
            where=source,
            hint="the file may be cut off: fetch it again",
        )
    if frame.is_empty():
        raise FileError("the list names no picture", where=source)
    check_paths_stay_inside(frame[header[0]], source, header[0])
    refuse_repeats(frame[header[0]], "a picture is listed twice", "each picture once", source)
    return frame


def _collapse_spaces(list_bytes: bytes) -> bytes:
    list_bytes = list_bytes.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in list_bytes:
        list_bytes = list_bytes.replace(b"  ", b" ")
    return list_bytes.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip()


def parse_celeba_attributes(
    content: bytes, source: str, requested_attributes: Sequence[str] | None
) -> tuple[pl.DataFrame, list[str]]:
    """Read a list of attributes: the faces with yes and no, and the attributes' names."""
    image_rows = parse_celeba_image_list(content, source)
    attribute_names = image_rows.columns[1:]
    names = list(
        dict.fromkeys(attribute_names if requested_attributes is None else requested_attributes)
    )
    for name in names:
        refuse_unknown_names("attribute", [name], attribute_names, where=source)
        refuse_cells(
            ~image_rows[name].is_in(list(_LABEL_BY_CODE)).fill_null(value=False),
            image_rows[name],
            "an attribute is neither 1 nor -1 ({n} cell(s))",
            "1 (yes) or -1 (no)",
            source,
        )
    if not names:
        raise SpecError(
            "no attribute is to be loaded", expected=", ".join(attribute_names), where=source
        )
    words = pl.col(*names).replace_strict(_LABEL_BY_CODE, return_dtype=pl.String)
    return image_rows.select("image_id", *names).with_columns(words), names


def parse_celeba_image_list(content: bytes, source: str) -> pl.DataFrame:
    """Read a list with a line of names, whose first column is the picture."""
    read = parse_celeba_list(content, source)
    if read.columns[0] != _IMAGE_COLUMNS[0]:
        raise TableError(
            "this is the mapping to CelebA, not a list of pictures",
            expected="a line of names, then a picture and its values in each row",
            found=" ".join(read.columns[:6]),
            where=source,
            hint="were two files of the release swapped?",
        )
    return read


def join_celeba_list_and_note_missing(
    faces: pl.DataFrame, list_rows: pl.DataFrame, key: str, missing_phrase: str, notes: list[str]
) -> pl.DataFrame:
    """Add the columns of a list to the faces, and note how many it does not have."""
    joined_faces = left_join_in_order(faces, list_rows, key)
    n_missing = joined_faces[next(name for name in list_rows.columns if name != key)].null_count()
    if n_missing:
        notes.append(f"{n_missing:,} of {joined_faces.height:,} {missing_phrase}.")
    return joined_faces


def join_celeba_identity_and_split(
    faces: pl.DataFrame,
    folder: Path,
    key: str,
    missing_phrases: tuple[str, str],
    inputs: Inputs,
    notes: list[str],
) -> pl.DataFrame:
    """Add ``subject_id`` and ``split`` from CelebA's lists; null where a list is not at hand."""
    for names, column, missing_phrase in zip(
        (IDENTITY, PARTITION), ("subject_id", "split"), missing_phrases, strict=True
    ):
        file = find_first_file_or_none(folder, build_recursive_patterns(*names))
        if file is None:
            faces = faces.with_columns(pl.lit(None, dtype=pl.String).alias(column))
            if names == IDENTITY:
                notes.append(
                    f"{names[0]} is not at hand: photographs of one celebrity count as independent,"
                    " so intervals may be too narrow."
                )
            continue
        list_rows = parse_celeba_list(inputs.read(file), str(file), (key, column))
        if names == PARTITION:
            list_rows = list_rows.with_columns(
                _convert_split_codes_to_names(list_rows[column], str(file))
            )
        faces = join_celeba_list_and_note_missing(faces, list_rows, key, missing_phrase, notes)
    return faces


def _convert_split_codes_to_names(codes: pl.Series, source: str) -> pl.Series:
    """Turn the partition's codes into the names of its parts."""
    words = {str(code): word for code, word in enumerate(SPLITS)}
    refuse_cells(
        ~codes.is_in(list(words)).fill_null(value=False),
        codes,
        "a picture is in a part that CelebA does not have",
        "0 (train), 1 (val) or 2 (test)",
        source,
        max_length=80,
    )
    return codes.replace_strict(words)
