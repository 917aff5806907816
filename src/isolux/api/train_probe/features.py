"""Features of a probe's training rows, and cautions on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.api._training_people import caution_on_rare_classes, caution_on_unknown_labels
from isolux.core.errors import FileError, JoinError, SpecError, TableError
from isolux.core.notes import Caution
from isolux.predictions import read_outputs
from isolux.training import Probe, ProbeFit

Floats = npt.NDArray[np.float64]
_MAX_LISTED_MODELS = 8


def find_feature_file(path: str | Path) -> Path:
    """Return the file of features: of a directory that ``predict`` wrote its table."""
    given_path = Path(path).expanduser()
    feature_path = given_path / "predictions.parquet" if given_path.is_dir() else given_path
    if not feature_path.exists():
        raise FileError(
            "there are no such features",
            where=str(path),
            hint="isolux predict DATA --model FAMILY:NAME --out DIR writes them, of a model of"
            " embeddings",
        )
    return feature_path


def read_features(path: str | Path) -> tuple[pl.DataFrame, int]:
    """Read features of one model: ``model, instance_id, embedding``, and count rows without."""
    file = find_feature_file(path)
    try:
        frame = read_outputs(file)
    except SpecError as error:  # a table of something else: what it lacks is no answer
        raise _no_features_error(path, str(error).splitlines()[0]) from error
    if "embedding" not in frame.columns:
        raise _no_features_error(path, "columns " + ", ".join(frame.columns))
    models = frame["model"].unique().sort().to_list()
    if len(models) != 1:
        raise SpecError(
            "a probe reads the features of one model",
            expected="one model in the file",
            found=", ".join(map(repr, models[:_MAX_LISTED_MODELS])) or "none",
            where=str(path),
        )
    feature_rows = frame.drop_nulls("embedding").select(
        "model",
        pl.col("instance_id").cast(pl.String),
        pl.col("embedding").cast(pl.List(pl.Float64)),
    )
    return feature_rows, frame.height - feature_rows.height


def _no_features_error(path: str | Path, description: str) -> TableError:
    return TableError(
        "these are not features",
        expected="embeddings: one vector a picture",
        found=description,
        where=str(path),
        hint="isolux predict DATA --model FAMILY:NAME --out DIR writes them, of a model of"
        " embeddings; DIR is given here",
    )


def to_matrix(vectors: pl.DataFrame, source: str) -> Floats:
    """Convert features to a matrix ``[n, d]``; the reader refused unequal lengths."""
    width = len(vectors["embedding"][0]) if vectors.height else 0
    matrix = vectors["embedding"].list.to_array(width).to_numpy().astype(np.float64)
    if not np.isfinite(matrix).all():
        raise TableError(
            "features are not finite",
            expected="finite numbers",
            found="NaN or infinite",
            where=source,
        )
    return np.asarray(matrix.reshape(len(vectors), width))


def join_features(
    rows: pl.DataFrame, vectors: pl.DataFrame, source: str
) -> tuple[Floats, pl.DataFrame]:
    """Join labelled rows and features by id, in the order of the rows."""
    matched_rows = rows.join(vectors, on="instance_id", how="inner", maintain_order="left")
    if rows.height and not matched_rows.height:
        raise JoinError(
            "the features belong to nobody who is labelled",
            expected="ids such as " + ", ".join(map(repr, rows["instance_id"].head(3))),
            found=", ".join(map(repr, vectors["instance_id"].head(3))),
            where=source,
        )
    return to_matrix(matched_rows, source), matched_rows.select(rows.columns)


_MAX_LISTED_CLASSES = 8
_NO_PERFORMANCE_NOTE = (
    "Those held out chose the step, so nothing here says how good the probe is: audit its labels of"
    " other pictures."
)
_MAX_MISSING_SHARE = 0.05  # share of a class without features from which a caution is given
_MIN_COMPARED_IMAGES = 20  # images: with fewer, scale and mean are too uncertain to compare
_EQUAL_FEATURE_TOLERANCE = (
    0.05  # standard deviations: features computed again, or kept in half precision
)
_MAX_SCALE_RATIO = 5.0  # ratio of scales beyond which features are of another model


def note_missing_features(labelled: pl.DataFrame, with_features: pl.DataFrame) -> list[str]:
    """Count the labelled people without features, and labels that mean "not known"."""
    notes = caution_on_unknown_labels(with_features["label"])
    n_missing = labelled.height - with_features.height
    if not n_missing:
        return notes
    counts = (
        labelled["label"]
        .value_counts(name="n")
        .join(with_features["label"].value_counts(name="left"), on="label", how="left")
        .with_columns(lost=pl.col("n") - pl.col("left").fill_null(0))
        .sort(pl.col("lost") / pl.col("n"), "label", descending=[True, False])
    )
    text = f"{n_missing:,} of {labelled.height:,} labelled people have no features and take no part"
    affected_classes = counts.filter(pl.col("lost") > _MAX_MISSING_SHARE * pl.col("n"))
    if not affected_classes.height:
        return [*notes, f"{text}."]
    classes_text = ", ".join(
        f"{label!r} lacks {n_lost:,} of {n:,}"
        for label, n, n_lost in affected_classes.head(_MAX_LISTED_CLASSES)
        .select("label", "n", "lost")
        .iter_rows()
    )
    return [*notes, Caution(f"{text}: {classes_text}. Is the file of features whole?")]


def caution_on_applied_features(
    probe: Probe,
    training_features: tuple[pl.Series, Floats],
    frame: pl.DataFrame,
    path: Path,
    n_missing: int,
) -> list[str]:
    """Caution where images to be labelled were trained on, or have other feature statistics.

    Shapes: ``training_features`` [n, d].
    """
    notes: list[str] = []
    if n_missing:
        notes.append(f"{n_missing:,} pictures of {path.name} have no features and get no label.")
    matrix = to_matrix(frame, str(path))
    if not len(matrix) or matrix.shape[1] != training_features[1].shape[1]:
        return notes
    is_identical = np.isin(
        _rows_to_comparable_bytes(matrix), _rows_to_comparable_bytes(training_features[1])
    )
    n_repeated = int(
        (
            is_identical
            | _flag_near_duplicates(frame["instance_id"], matrix, training_features, probe)
        ).sum()
    )
    if n_repeated:
        notes.append(
            Caution(
                f"{n_repeated:,} of {len(matrix):,} pictures of {path.name} have the features"
                " of pictures"
                " that the probe was trained on or stopped by. It knows their labels: audit those"
                " of other pictures."
            )
        )
    is_varying = training_features[1].std(axis=0) > 0
    if len(matrix) < _MIN_COMPARED_IMAGES or not is_varying.any():
        return notes
    scale_ratio = float(np.median(matrix.std(axis=0)[is_varying] / probe.scale[is_varying]))
    mean_distance = float(
        np.median(np.abs(matrix.mean(axis=0) - probe.mean)[is_varying] / probe.scale[is_varying])
    )
    if (
        not 1.0 / _MAX_SCALE_RATIO <= scale_ratio <= _MAX_SCALE_RATIO
        or mean_distance > _MAX_SCALE_RATIO
    ):
        notes.append(
            Caution(
                f"The features of {path.name} are not like those that the probe learnt from (they"
                f" spread {scale_ratio:.2g} times as much, around {mean_distance:.1f}"
                " standard deviations away):"
                " are they of another model, or scaled in another way?"
            )
        )
    return notes


def _flag_near_duplicates(
    ids: pl.Series, matrix: Floats, training_features: tuple[pl.Series, Floats], probe: Probe
) -> npt.NDArray[np.bool_]:
    """Flag rows with the id and, up to rounding, the features of a training row."""
    training_ids = pl.DataFrame(
        {"id": training_features[0], "at": np.arange(len(training_features[0]))}
    )
    training_row = pl.DataFrame({"id": ids}).join(
        training_ids, on="id", how="left", maintain_order="left"
    )["at"]
    has_same_id = training_row.is_not_null().to_numpy()
    distances = np.full(len(ids), np.inf)
    rows = training_row.drop_nulls().to_numpy()
    distances[has_same_id] = (
        np.abs(matrix[has_same_id] - training_features[1][rows]) / probe.scale
    ).mean(axis=1)
    return np.asarray(distances < _EQUAL_FEATURE_TOLERANCE)


def _rows_to_comparable_bytes(matrix: Floats) -> np.ndarray[Any, Any]:
    """Convert each row to one comparable value; 0.0 and -0.0 are equal."""
    rows = np.ascontiguousarray(matrix + 0.0)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def note_probe_training(
    fit: ProbeFit, rows: pl.DataFrame, code: np.ndarray[Any, Any], names: Sequence[str]
) -> tuple[str, ...]:
    """Note training rows, selected step and losses, with cautions first."""
    notes = caution_on_rare_classes(code[~fit.held_out], names)
    if fit.selected_step == 0:
        notes.append(
            Caution(
                "No step made the held-out rows likelier than all classes alike: these features"
                " say nothing of the target, or the labels are of others."
            )
        )
    first_losses, (training_loss, held_out_loss) = fit.losses[0], fit.losses[fit.selected_step]
    n, clusters = int((~fit.held_out).sum()), rows["cluster"].n_unique()
    training_text = f"Trained on {n:,} of {rows.height:,} rows in {clusters:,} clusters"
    step_text = (
        f"Step {fit.selected_step} of {len(fit.losses) - 1} is kept: cross-entropy"
        f" {training_loss:.3f} of the"
    )
    notes += [
        f"{training_text}; the others, in whole clusters, chose the step.",
        (
            f"{step_text} training rows and {held_out_loss:.3f} of those held out"
            f" ({first_losses[1]:.3f} before any)."
        ),
        _NO_PERFORMANCE_NOTE,
    ]
    return tuple(notes)
