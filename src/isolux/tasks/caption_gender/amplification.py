"""Bias amplification: whether genders and objects go together more often than in the pictures.

For each gender a and object t the sums of nine columns, one row a caption that names one gender:
captions; a true; t there; both; t there and a said; t said and a true; t said and a said; t said;
captions over the number of genders. Statistics are functions of these sums, so groups, intervals
and comparisons come as for any other.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, SumStatistic

__all__ = ["BIAS_AMPLIFICATION", "GENDER_TO_OBJECT", "OBJECT_TO_GENDER"]

_CELLS = 9


def _columns(evidence: pl.DataFrame) -> FloatArray:
    """Nine numbers a gender and object for each row; rows that are not judged add nothing."""
    rows = evidence.height
    if "objects" not in evidence.columns or not rows:
        return np.zeros((rows, _CELLS))
    genders = evidence["truth"].drop_nulls().unique().sort().to_list()
    objects = evidence["objects"].explode().drop_nulls().unique().sort().to_list()
    used = (evidence["reason"].is_null() & evidence["gender"].is_not_null()).to_numpy()
    there, named = (_held(evidence[name], objects) for name in ("objects", "said_objects"))
    out = np.zeros((rows, len(genders), len(objects), _CELLS))
    for i, gender in enumerate(genders):
        true, said = ((evidence[name] == gender).fill_null(value=False).to_numpy().astype(float)
                      for name in ("truth", "gender"))  # fmt: skip
        cells = (
            np.ones_like(there), np.broadcast_to(true[:, None], there.shape), there,
            there * true[:, None], there * said[:, None], named * true[:, None],
            named * said[:, None], named, np.full_like(there, 1.0 / len(genders)),
        )  # fmt: skip
        out[:, i] = np.stack(cells, axis=-1)
    out[~used] = 0.0
    return out.reshape(rows, -1) if out.size else np.zeros((rows, _CELLS))


def _held(lists: pl.Series, names: list[str]) -> FloatArray:
    found = np.zeros((len(lists), len(names)))
    for j, name in enumerate(names):
        found[:, j] = lists.list.contains(name).fill_null(value=False).to_numpy()
    return found


def _cells(sums: FloatArray) -> FloatArray:
    """Part sums ``[..., k]`` into ``[..., pairs, 9]``; all NaN where captions are of one gender."""
    cells = sums.reshape(*sums.shape[:-1], -1, _CELLS)
    one = np.asarray((cells[..., 1] >= cells[..., 0]).any(axis=-1))
    found: FloatArray = np.where(one[..., None, None], np.nan, cells)
    return found


def _divided(top: FloatArray, bottom: FloatArray) -> FloatArray:
    found: FloatArray = np.divide(
        top, bottom, out=np.full_like(top, np.nan), where=np.nan_to_num(bottom) > 0
    )
    return found


def _mean(values: FloatArray) -> FloatArray:
    """Average over pairs that are known; NaN where none is."""
    known = np.isfinite(values)
    n = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    found: FloatArray = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return found


def _sign(cells: FloatArray) -> FloatArray:
    """1 where gender and object go together more than by chance, −1 less, 0 as often."""
    n, gender, thing, both = (cells[..., i] for i in range(4))
    found: FloatArray = np.sign(both * n - gender * thing)
    return found


def _object_to_gender(sums: FloatArray) -> FloatArray:
    """Wang & Russakovsky's T → A: the gender said, given the object that is there."""
    cells = _cells(sums)
    change = _divided(cells[..., 4] - cells[..., 3], cells[..., 2])
    return _mean(_sign(cells) * change)


def _gender_to_object(sums: FloatArray) -> FloatArray:
    """Wang & Russakovsky's A → T: the object said, given the gender that is true."""
    cells = _cells(sums)
    change = _divided(cells[..., 5] - cells[..., 3], cells[..., 1])
    return _mean(_sign(cells) * change)


def _bias_amplification(sums: FloatArray) -> FloatArray:
    """Zhao et al.: a gender's share of an object's captions, less that of its pictures."""
    cells = _cells(sums)
    there = _divided(cells[..., 3], cells[..., 2])
    said = _divided(cells[..., 6], cells[..., 7])
    equal = _divided(cells[..., 8], cells[..., 0])
    gained = np.where(there > equal, said - there, np.where(np.isnan(said + there), np.nan, 0.0))
    genders = 1.0 / np.nan_to_num(equal, nan=1.0).max(axis=-1, initial=1e-12)
    found: FloatArray = _mean(gained) * genders
    return found


OBJECT_TO_GENDER = SumStatistic(_columns, _object_to_gender)
GENDER_TO_OBJECT = SumStatistic(_columns, _gender_to_object)
BIAS_AMPLIFICATION = SumStatistic(_columns, _bias_amplification)
