"""Files of the original images, and the cosine of identity embeddings."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError
from isolux.io.hashing import sha256_file
from isolux.io.paths import resolve_inside
from isolux.predictions import read_outputs
from isolux.tasks._embeddings.vectors import ModelEmbeddings, read_embeddings
from isolux.tasks._images.compare import ImageMetricValues
from isolux.tasks._images.values import match_units

NO_ORIGINAL = "no original picture"
# At least two characters before "://", so that a drive such as "C:" is a path.
_URL_PATTERN = r"^[A-Za-z][A-Za-z0-9+.-]+://"
# FHIBE's table is three folders below the root of its release.
_MAX_PARENTS = 4
# A few paths show which directory is right, even if some files are missing.
_MAX_TRIED_URIS = 5
_HINT = "name their folder: --option originals=DIR (originals=…)"


def find_originals(
    dataset: Dataset, uris: pl.Series, root: str | None
) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Find the files of original images, by their ``uri``; with notes."""
    local_uris = uris.drop_nulls().unique(maintain_order=True)
    # Addresses are never opened: an audit reads local files only.
    local_uris = local_uris.filter(~local_uris.str.contains(_URL_PATTERN))
    if local_uris.is_empty():
        raise SpecError(
            "nothing says where the original pictures are",
            expected="a dataset whose images have paths (uri)",
            found="none" if uris.drop_nulls().is_empty() else "web addresses, which are not opened",
            hint="a table's column `file` or `path` names them",
        )
    base = _find_base_dir(dataset, local_uris) if root is None else Path(root).expanduser()
    if not base.is_dir():
        raise FileError("there is no such folder of original pictures", where=str(base), hint=_HINT)
    base = base.resolve()
    # Refuses paths that lead out of the folder.
    files = {uri: resolve_inside(base, uri) for uri in local_uris.to_list()}
    existing_files = {uri: path for uri, path in files.items() if path.is_file()}
    if not existing_files:
        raise SpecError(
            "none of the original pictures is there",
            expected=f"{local_uris[0]!r} below {base}",
            found=f"{len(files):,} paths without a file",
            hint=_HINT,
        )
    notes = [f"Original pictures were read from {base}."]
    if len(existing_files) < len(files):
        notes.append(
            f"{len(files) - len(existing_files):,} of {len(files):,} original pictures are absent."
        )
    return existing_files, tuple(notes)


def _find_base_dir(dataset: Dataset, uris: pl.Series) -> Path:
    """Find the directory that the first few paths begin in."""
    for base in _candidate_dirs(dataset):
        for uri in uris[:_MAX_TRIED_URIS]:
            # A path that leads out of one directory may be valid in the next.
            with suppress(FileError, OSError):
                if resolve_inside(base, uri).is_file():
                    return base
    raise SpecError(
        "the original pictures were not found",
        expected=f"{uris[0]!r} in the dataset's folder or one of three above it",
        found="no such file",
        hint=_HINT,
    )


def _candidate_dirs(dataset: Dataset) -> dict[Path, None]:
    """List the dataset's directories and their parents, without duplicates."""
    roots = [] if dataset.root is None else [dataset.root]
    paths = [Path(name).expanduser().resolve() for name in (*roots, *dataset.inputs)]
    return dict.fromkeys(
        base
        for path in paths
        for base in [*([path] if path.is_dir() else []), *path.parents[:_MAX_PARENTS]]
    )


_ORIGINAL_MODEL = "original_embeddings"


def identity_cosines(
    predictions: pl.DataFrame, units: pl.DataFrame, original_embeddings: str, model: str | None
) -> tuple[dict[str, ImageMetricValues], list[str]]:
    """Compute the cosine of each unit's embedding and that of its original."""
    original_frame = read_outputs(original_embeddings, model=_ORIGINAL_MODEL)
    if "embedding" not in original_frame.columns:
        raise SpecError(
            "these are not embeddings",
            expected="a NumPy array or a table with a column of vectors",
            found="columns " + ", ".join(original_frame.columns),
            where=original_embeddings,
        )
    originals, original_notes = _match_embeddings(original_frame, units, None, _ORIGINAL_MODEL)
    models, notes = _match_embeddings(predictions, units, model, "predictions")
    cosines = {
        embeddings.model: _cosine_similarity(embeddings, originals[0]) for embeddings in models
    }
    file = Path(original_embeddings)
    # The hash identifies the file, whose name may be reused for another network.
    from_file = f"Embeddings of the originals: {file.name} (SHA-256 {sha256_file(file)[:16]}…)."
    return cosines, list(dict.fromkeys([*notes, *original_notes, from_file]))


def _match_embeddings(
    frame: pl.DataFrame, units: pl.DataFrame, model: str | None, source: str
) -> tuple[tuple[ModelEmbeddings, ...], tuple[str, ...]]:
    """Match embeddings to units by their ids, and scale them to unit length."""
    matched, match_notes = match_units(frame["instance_id"].cast(pl.String), units)
    matched_frame = frame.join(matched, on="instance_id", maintain_order="left").drop("instance_id")
    matched_frame = matched_frame.join(
        units.select("unit", "instance_id"), on="unit", maintain_order="left"
    )
    embeddings, notes = read_embeddings(
        matched_frame, units["instance_id"], model=model, source=source
    )
    return embeddings, (*match_notes, *notes)


def _cosine_similarity(output: ModelEmbeddings, original: ModelEmbeddings) -> ImageMetricValues:
    """Compute the cosine of each unit's output and original; NaN, with a reason, without both."""
    has_output, has_original = output.row_index >= 0, original.row_index >= 0
    has_both = has_output & has_original
    # Embeddings of two networks may also be of equal length; that cannot be detected here.
    if has_both.any() and output.n_dimensions != original.n_dimensions:
        raise SpecError(
            "embeddings of the model's pictures and of the originals differ in length",
            expected=f"{original.n_dimensions} numbers, as the originals have",
            found=f"{output.n_dimensions} numbers of {output.model!r}",
        )
    cosines = np.full(len(has_both), np.nan)
    first = output.vectors[output.row_index[has_both]].astype(np.float64)
    second = original.vectors[original.row_index[has_both]].astype(np.float64)
    if has_both.any():
        # Both have unit length, so that the product is the cosine; rounding may exceed 1.
        cosines[has_both] = np.clip(np.einsum("nd,nd->n", first, second), -1.0, 1.0)
    # The output's reason goes first, then the original's.
    reason = output.reason.fill_null("original: " + original.reason)
    return ImageMetricValues(cosines, reason.to_numpy().astype(object))
