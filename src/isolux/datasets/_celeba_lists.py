"""CelebA's text lists as columns: a picture a row, cells parted by any number of spaces.

``list_attr_celeba.txt`` and its like begin with the number of rows and a line of names, which may
lack the name of the first column; ``list_eval_partition.txt`` and its like begin with a row.
CelebAMask-HQ keeps the form.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.datasets._inner_paths import refuse_outside
from isolux.io.cells import row_of
from isolux.io.delimited import read_delimited
from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError, SpecError, TableError, UnknownNameError, place

__all__ = [
    "ASSUMPTIONS",
    "IDENTITY",
    "LICENCE",
    "PARTITION",
    "SPLITS",
    "TERMS",
    "WITHDRAWAL",
    "chosen_names",
    "parts_of",
    "read_list",
    "said_yes_or_no",
    "subjects_of",
    "whole_numbers",
]

IDENTITY, PARTITION = "identity_CelebA.txt", "list_eval_partition.txt"
SPLITS = ("train", "val", "test")
"""What the partition's codes 0, 1, 2 mean."""

LICENCE = "non-commercial research only; the pictures stay their owners'"
WITHDRAWAL = "no way for the people shown to withdraw is published"
TERMS = (
    ("Male", "perceived male gender presentation"),
    ("Young", "perceived as young"),
    ("Attractive", "judged attractive by annotators"),
    ("Pale_Skin", "perceived pale skin"),
)
"""What the labels of CelebA and of LFWA, which one company made, are called in reports."""
ASSUMPTIONS = (
    (
        "the groups come from a labelling company's judgements, not from what people say about "
        "themselves"
    ),
    "photographs of one celebrity are not independent: identities are clusters where known",
    "no means that a trait was not marked, as when it cannot be seen",
)
"""Of CelebA and of CelebAMask-HQ, whose faces are CelebA's."""

_DIGITS = 9  # more are not a number of pictures
_FIRST = ("image_id", "idx")
_WORDS = {"1": "yes", "-1": "no"}


def read_list(data: bytes, where: str, names: Sequence[str] | None = None) -> pl.DataFrame:
    r"""Read a list; every column is text.

    Examples
    --------
    >>> read_list(b"1\nMale Young \n000001.jpg -1  1\n", "a.txt").rows()
    [('000001.jpg', '-1', '1')]
    """
    text = _single_spaces(decodable(data, where))
    first, _, rest = text.partition(b"\n")
    count = None
    if names is not None:
        header, body = list(names), text
    else:
        if first.isdigit() and len(first) <= _DIGITS:
            count = int(first)
            first, _, rest = rest.partition(b"\n")
        header, body = first.decode("utf-8").split(" "), rest
        if header[0] not in _FIRST:
            header = [_FIRST[0], *header]
    if '"' in "".join(header) or b'"' in body:
        raise FileError("a list of pictures holds a quotation mark", where=where)
    frame = read_delimited(" ".join(header).encode() + b"\n" + body, " ", where)
    if count is not None and count != frame.height:
        raise FileError(
            "the list has another number of rows than its first line says",
            expected=f"{count:,} rows",
            found=f"{frame.height:,}",
            where=where,
            hint="the file may be cut off: fetch it again",
        )
    if frame.is_empty():
        raise FileError("the list names no picture", where=where)
    refuse_outside(frame[header[0]], where, header[0])
    _refuse_repeats(frame[header[0]], where)
    return frame


def _single_spaces(text: bytes) -> bytes:
    text = text.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip()


def _refuse_repeats(ids: pl.Series, where: str) -> None:
    """Refuse a picture that occurs twice, with the row of its second place."""
    repeated = ids.is_duplicated()
    if repeated.any():
        first = ids[row_of(repeated)]
        row = int((ids == first).arg_true()[1])
        raise TableError(
            "a picture is listed twice",
            expected="each picture once",
            found=repr(first),
            where=place(where, row + 1, ids.name),
        )


def said_yes_or_no(frame: pl.DataFrame, names: Sequence[str], where: str) -> pl.DataFrame:
    """Turn 1 and -1 into ``yes`` and ``no``, and refuse everything else."""
    for name in names:
        strange = ~frame[name].is_in(list(_WORDS)).fill_null(value=False)
        if strange.any():
            row = row_of(strange)
            raise TableError(
                f"an attribute is neither 1 nor -1 ({strange.sum():,} cell(s))",
                expected="1 (yes) or -1 (no)",
                found=repr(frame[name][row]),
                where=place(where, row + 1, name),
            )
    return frame.with_columns(pl.col(*names).replace_strict(_WORDS, return_dtype=pl.String))


def whole_numbers(frame: pl.DataFrame, names: Sequence[str], where: str) -> pl.DataFrame:
    """Read columns as whole numbers, and refuse everything else."""
    read = frame.with_columns(pl.col(*names).cast(pl.Int64, strict=False))
    for name in names:
        if read[name].null_count():
            row = row_of(read[name].is_null())
            raise TableError(
                f"{name} is not a whole number",
                found=repr(frame[name][row])[:80],
                where=place(where, row + 1, name),
            )
    return read


def subjects_of(data: bytes, where: str) -> pl.DataFrame:
    """Read ``identity_CelebA.txt``: ``image_id``, ``subject_id``."""
    return read_list(data, where, ("image_id", "subject_id"))


def parts_of(data: bytes, where: str) -> pl.DataFrame:
    """Read ``list_eval_partition.txt``: ``image_id``, ``split`` (one of ``SPLITS``)."""
    found = read_list(data, where, ("image_id", "code"))
    words = {str(code): word for code, word in enumerate(SPLITS)}
    strange = ~found["code"].is_in(list(words)).fill_null(value=False)
    if strange.any():
        row = row_of(strange)
        raise TableError(
            "a picture is in a part that CelebA does not have",
            expected="0 (train), 1 (val) or 2 (test)",
            found=repr(found["code"][row])[:80],
            where=place(where, row + 1),
        )
    return found.select("image_id", split=pl.col("code").replace_strict(words))


def chosen_names(known: Sequence[str], wanted: Sequence[str] | None, where: str) -> list[str]:
    """Return the attributes to load, each once; None loads all."""
    names = list(dict.fromkeys(known if wanted is None else wanted))
    for name in names:
        if name not in known:
            raise UnknownNameError("attribute", name, known, where=where)
    if not names:
        raise SpecError("no attribute is to be loaded", expected=", ".join(known), where=where)
    return names


def read_pictures(data: bytes, where: str) -> pl.DataFrame:
    """Read a list whose rows are pictures; refuse the mapping, whose rows are numbers."""
    read = read_list(data, where)
    if read.columns[0] != _FIRST[0]:
        raise TableError(
            "this is the mapping to CelebA, not a list of pictures",
            expected="a line of names, then a picture and its values in each row",
            found=" ".join(read.columns[:6]),
            where=where,
            hint="were two files of the release swapped?",
        )
    return read
