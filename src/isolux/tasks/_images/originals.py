"""Where the original pictures are, and whether it is still the same person."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl

from isolux.io.hashing import sha256_file
from isolux.io.paths import inside
from isolux.predictions import read_outputs
from isolux.tasks._embeddings.vectors import Embedded, read_embeddings
from isolux.tasks._images.compare import Measured
from isolux.tasks._images.values import match_units
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError

NO_ORIGINAL = "no original picture"
_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_UPWARDS = 4  # FHIBE's table lies three folders below the release's root
_TRIED = 5
_HINT = "name their folder: --option originals=DIR (originals=…)"


def originals_of(
    dataset: Dataset, uris: pl.Series, root: str | None
) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Find the files of original pictures."""
    known = uris.drop_nulls().unique(maintain_order=True)
    known = known.filter(~known.str.contains(_ADDRESS))
    if known.is_empty():
        raise SpecError(
            "nothing says where the original pictures are",
            expected="a dataset whose images have paths (uri)",
            found="none" if uris.drop_nulls().is_empty() else "web addresses, which are not opened",
            hint="a table's column `file` or `path` names them",
        )
    base = _found(dataset, known) if root is None else Path(root).expanduser()
    if not base.is_dir():
        raise FileError("there is no such folder of original pictures", where=str(base), hint=_HINT)
    base = base.resolve()
    files = {uri: inside(base, uri) for uri in known.to_list()}
    there = {uri: path for uri, path in files.items() if path.is_file()}
    if not there:
        raise SpecError(
            "none of the original pictures is there",
            expected=f"{known[0]!r} below {base}",
            found=f"{len(files):,} paths without a file",
            hint=_HINT,
        )
    notes = [f"Original pictures were read from {base}."]
    if len(there) < len(files):
        notes.append(f"{len(files) - len(there):,} of {len(files):,} original pictures are absent.")
    return there, tuple(notes)


def _found(dataset: Dataset, uris: pl.Series) -> Path:
    for base in _candidates(dataset):
        for uri in uris[:_TRIED]:
            with suppress(FileError, OSError):
                if inside(base, uri).is_file():
                    return base
    raise SpecError(
        "the original pictures were not found",
        expected=f"{uris[0]!r} in the dataset's folder or one of three above it",
        found="no such file",
        hint=_HINT,
    )


def _candidates(dataset: Dataset) -> dict[Path, None]:
    paths = [Path(name).expanduser().resolve() for name in dataset.inputs]
    return dict.fromkeys(
        base
        for path in paths
        for base in [*([path] if path.is_dir() else []), *path.parents[:_UPWARDS]]
    )


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
