"""How the objects of a file are spelled: all of them alike as a rule, but for their numbers.

A file is written by one program, so that from object to object only numbers change. The text
between them is learned from one object, which must be valid JSON, and compared eight bytes at a
time; an object that is spelled otherwise is read as if nothing had been learned.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

__all__ = ["OTHER", "UNLEARNED", "Spelling", "spelling_of"]

_PLACES = {b"image_id": (0,), b"category_id": (1,), b"bbox": (2, 3, 4, 5), b"score": (6,)}
_FIELDS = {b"image_id": 1, b"category_id": 2, b"bbox": 4, b"score": 8}
_LISTS = {b"segmentation", b"keypoints"}  # columns, and of numbers that are not always as many
OTHER = 7
"""The place of a number that no column takes."""

_LONGEST = 1 << 10  # bytes of an object that is learned from
_TOKEN = re.compile(rb'"([^"]*)"|-?[0-9][0-9.eE+-]*')
_WORD = 8  # as of ``_scan.words``, which loads numba; what plugins say of themselves does not


class Spelling(NamedTuple):
    """The text around an object's numbers.

    Attributes
    ----------
    texts, masks : [8 w] uint8
        The texts, each filled up to whole words of eight bytes, and which bytes of them count.
    starts, lengths : [n + 2] and [n + 1] int64
        At which word each text begins, and its bytes; text k stands before number k, one after all.
    places : [n] int64
        0 and 1: image and category; 2 to 6: left, top, width, height, score; 7: of no column.
    fields : int
        The sum of the fields' numbers.
    """

    texts: npt.NDArray[np.uint8]
    masks: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    fields: int


def spelling_of(text: bytes) -> Spelling:
    """Learn how the object that a text begins with is spelled; one that has more than numbers, not.

    Examples
    --------
    >>> spelling_of(b'{"image_id": 7, "bbox": [1, 2, 3, 4], "score": .5}').places.tolist()
    []
    >>> spelling_of(b'{"image_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5}').places.tolist()
    [0, 2, 3, 4, 5, 6]
    """
    found = text[: text.find(b"}") + 1]
    if not found or len(found) > _LONGEST or b"\\" in found:
        return UNLEARNED
    try:
        fields = msgspec.json.decode(found, type=dict[str, float | list[float]])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNLEARNED
    texts, places, names, end = [], [], [], 0
    for token in _TOKEN.finditer(found):
        if token[1] is not None:
            names.append(token[1])
            taken = iter(_PLACES.get(token[1], ()))
            continue
        texts.append(found[end : token.start()])
        places.append(next(taken, OTHER))
        end = token.end()
    known = {name: _PLACES[name] for name in names if name in _PLACES}
    whole = [place for some in known.values() for place in some]
    if len(names) != len(fields) or _LISTS & set(names):
        return UNLEARNED
    if sorted(p for p in places if p != OTHER) != sorted(whole):
        return UNLEARNED
    return _laid_out([*texts, found[end:]], places, sum(_FIELDS[name] for name in known))


def _laid_out(texts: list[bytes], places: list[int], fields: int) -> Spelling:
    counts = [-(-len(text) // _WORD) for text in texts]
    held, masks = (
        b"".join(part.ljust(n * _WORD, b"\0") for part, n in zip(parts, counts, strict=True))
        for parts in (texts, [b"\xff" * len(text) for text in texts])
    )
    return Spelling(
        np.frombuffer(held, np.uint8), np.frombuffer(masks, np.uint8), np.cumsum([0, *counts]),
        np.array([len(text) for text in texts], np.int64), np.array(places, np.int64), fields,
    )  # fmt: skip


UNLEARNED = _laid_out([], [], 0)
"""What no object is compared with."""
