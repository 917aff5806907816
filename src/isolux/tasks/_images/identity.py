"""Is it still the same person: the cosine between a model's picture's embedding and the original's.

Any face recogniser's embeddings; FHIBE takes CurricularFace's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from isolux.io.hashing import sha256_file
from isolux.predictions import read_outputs
from isolux.tasks._embeddings.vectors import Embedded, read_embeddings
from isolux.tasks._images.compare import Measured
from isolux.tasks._images.units import match_units
from isolux.vocabulary.errors import SpecError

__all__ = ["identity_cosines"]

_ORIGINAL = "original_embeddings"


def identity_cosines(
    made: pl.DataFrame, units: pl.DataFrame, original_embeddings: str, model: str | None
) -> tuple[dict[str, Measured], list[str]]:
    """Compare each unit's embedding with that of its original."""
    theirs = read_outputs(original_embeddings, model=_ORIGINAL)
    if "embedding" not in theirs.columns:
        raise SpecError(
            "these are not embeddings",
            expected="a NumPy array or a table with a column of vectors",
            found="columns " + ", ".join(theirs.columns),
            where=original_embeddings,
        )
    originals, said = _brought(theirs, units, None, _ORIGINAL)
    models, notes = _brought(made, units, model, "predictions")
    cosines = {one.model: _cosine(one, originals[0]) for one in models}
    file = Path(original_embeddings)
    from_file = f"Embeddings of the originals: {file.name} (SHA-256 {sha256_file(file)[:16]}…)."
    return cosines, list(dict.fromkeys([*notes, *said, from_file]))


def _brought(
    frame: pl.DataFrame, units: pl.DataFrame, model: str | None, where: str
) -> tuple[tuple[Embedded, ...], tuple[str, ...]]:
    """Give vectors the ids of the units that they are of, and make them unit length."""
    matched, said = match_units(frame["instance_id"].cast(pl.String), units)
    named = frame.join(matched, on="instance_id", maintain_order="left").drop("instance_id")
    named = named.join(units.select("unit", "instance_id"), on="unit", maintain_order="left")
    found, notes = read_embeddings(named, units["instance_id"], model=model, where=where)
    return found, (*said, *notes)


def _cosine(made: Embedded, original: Embedded) -> Measured:
    have, had = made.row >= 0, original.row >= 0
    both = have & had
    if both.any() and made.width != original.width:
        raise SpecError(
            "embeddings of the model's pictures and of the originals differ in length",
            expected=f"{original.width} numbers, as the originals have",
            found=f"{made.width} numbers of {made.model!r}",
        )
    value = np.full(len(both), np.nan)
    first = made.vectors[made.row[both]].astype(np.float64)
    second = original.vectors[original.row[both]].astype(np.float64)
    if both.any():
        value[both] = np.clip(np.einsum("nd,nd->n", first, second), -1.0, 1.0)
    reason = made.reason.fill_null("original: " + original.reason)
    return Measured(value, reason.to_numpy().astype(object))
