"""NumPy's files: arrays beside an array of ids lose the same places."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

from isolux.curation.withdrawal.rewriting.cells import rule_of
from isolux.curation.withdrawal.rewriting.rewritten import Rewritten
from isolux.curation.withdrawal.terms import Terms, kinds_of_column

__all__ = ["rewrite"]


def rewrite(data: bytes, terms: Terms) -> Rewritten:
    """Take entries out of arrays of text, and of arrays of the same length beside them."""
    try:
        if data[:6] == b"\x93NUMPY":
            return _one(data, terms)
        with np.load(io.BytesIO(data), allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            packed = any(one.compress_type for one in archive.infolist())
    except (ValueError, OSError, zipfile.BadZipFile, EOFError, KeyError) as error:
        return Rewritten(data, 0, why=f"arrays cannot be read: {str(error).splitlines()[0][:80]}")
    named = {len(one) for name, one in arrays.items() if _is_ids(name, one)}
    if why := next((w for n, one in arrays.items() if (w := _unread(n, one, named, terms))), ""):
        return Rewritten(data, 0, why=why)
    gone: dict[int, npt.NDArray[np.bool_]] = {}
    for name, array in arrays.items():
        if (hit := _hit(name, array, terms)) is not None and hit.any():
            before = gone.get(len(array), np.zeros(len(array), bool))
            gone[len(array)] = before | hit
    if not gone:
        return Rewritten(data, 0)
    kept = {
        name: array[~gone[len(array)]] if array.ndim and len(array) in gone else array
        for name, array in arrays.items()
    }
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, **kept)
    return Rewritten(out.getvalue(), int(sum(one.sum() for one in gone.values())))


def _one(data: bytes, terms: Terms) -> Rewritten:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if why := _unread("", array, frozenset(), terms):
        return Rewritten(data, 0, why=why)
    hit = _hit("id", array, terms)
    if hit is None or not hit.any():
        return Rewritten(data, 0)
    out = io.BytesIO()
    np.save(out, array[~hit])
    return Rewritten(out.getvalue(), int(hit.sum()))


def _is_ids(name: str, array: npt.NDArray[np.generic]) -> bool:
    """Tell whether an array is one of text, or of whole numbers that its name says are ids."""
    kind = array.dtype.kind
    return array.ndim == 1 and (
        kind in "US" or (kind in "iu" and kinds_of_column(name) is not None)
    )


def _unread(
    name: str, array: npt.NDArray[np.generic], named: AbstractSet[int], terms: Terms
) -> str:
    """Say why what an array holds of them would not be found; empty: it would."""
    if array.dtype.kind == "V":
        return "an array of records"
    if array.dtype.kind not in "US" and array.ndim > 1 and named.isdisjoint(array.shape):
        return "numbers (pixels, vectors), and beside them no ids of the same length"
    is_bare = array.dtype.kind in "iu" and re.fullmatch(r"(arr_\d+)?", name)
    if is_bare and any(one.isdigit() and np.any(array == int(one)) for one in terms.every):
        return "an array without a name holds numbers that are spelt as their ids"
    return ""


def _hit(name: str, array: npt.NDArray[np.generic], terms: Terms) -> npt.NDArray[np.bool_] | None:
    if not _is_ids(name, array):
        return None
    rule = rule_of(terms, name, [name])
    cells = [c.decode("utf-8", "replace") if isinstance(c, bytes) else str(c) for c in array]
    return np.array([rule(cell) for cell in cells], bool)
