"""Whom a probe learns from, and their features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.predictions import read_outputs
from isolux.training import Fit, Probe
from isolux.verbs._for_training import rare_classes, unknown_labels
from isolux.vocabulary.errors import FileError, JoinError, SpecError, TableError
from isolux.vocabulary.notes import Caution

Floats = npt.NDArray[np.float64]
_SHOWN = 8


def feature_file(path: str | Path) -> Path:
    """Return the file of features: of a directory that ``predict`` wrote its table."""
    given = Path(path).expanduser()
    found = given / "predictions.parquet" if given.is_dir() else given
    if not found.exists():
        raise FileError(
            "there are no such features",
            where=str(path),
            hint="isolux predict DATA --model FAMILY:NAME --out DIR writes them, of a model of"
            " embeddings",
        )
    return found


def read_features(path: str | Path) -> tuple[pl.DataFrame, int]:
    """Read features of one model: ``model, instance_id, embedding``, and count rows without."""
    file = feature_file(path)
    try:
        frame = read_outputs(file)
    except SpecError as error:  # a table of something else: what it lacks is no answer
        raise _no_features(path, str(error).splitlines()[0]) from error
    if "embedding" not in frame.columns:
        raise _no_features(path, "columns " + ", ".join(frame.columns))
    models = frame["model"].unique().sort().to_list()
    if len(models) != 1:
        raise SpecError(
            "a probe reads the features of one model",
            expected="one model in the file",
            found=", ".join(map(repr, models[:_SHOWN])) or "none",
            where=str(path),
        )
    there = frame.drop_nulls("embedding").select(
        "model",
        pl.col("instance_id").cast(pl.String),
        pl.col("embedding").cast(pl.List(pl.Float64)),
    )
    return there, frame.height - there.height


def _no_features(path: str | Path, found: str) -> TableError:
    return TableError(
        "these are not features",
        expected="embeddings: one vector a picture",
        found=found,
        where=str(path),
        hint="isolux predict DATA --model FAMILY:NAME --out DIR writes them, of a model of"
        " embeddings; DIR is given here",
    )


def matrix_of(vectors: pl.DataFrame, where: str) -> Floats:
    """Lay features out as ``[n, d]``; the reader refused those that differ in length."""
    width = len(vectors["embedding"][0]) if vectors.height else 0
    matrix = vectors["embedding"].list.to_array(width).to_numpy().astype(np.float64)
    if not np.isfinite(matrix).all():
        raise TableError(
            "features are not finite",
            expected="finite numbers",
            found="NaN or infinite",
            where=where,
        )
    return np.asarray(matrix.reshape(len(vectors), width))


def joined(rows: pl.DataFrame, vectors: pl.DataFrame, where: str) -> tuple[Floats, pl.DataFrame]:
    """Keep those who have features, in one order."""
    met = rows.join(vectors, on="instance_id", how="inner", maintain_order="left")
    if rows.height and not met.height:
        raise JoinError(
            "the features belong to nobody who is labelled",
            expected="ids such as " + ", ".join(map(repr, rows["instance_id"].head(3))),
            found=", ".join(map(repr, vectors["instance_id"].head(3))),
            where=where,
        )
    return matrix_of(met, where), met.select(rows.columns)


_NAMED = 8
_NOT_A_RESULT = (
    "Those held out chose the step, so nothing here says how good the probe is: audit its labels of"
    " other pictures."
)
_MANY = 0.05  # of the people, or of a class, without features
_AGAIN = 20  # pictures, below which their spread says little of where they are from
_ROUNDED = 0.05  # standard deviations: features computed again, or kept in half precision
_APART = 5.0  # spreads that differ by more are of another scale, or another model


def on_people(wanted: pl.DataFrame, met: pl.DataFrame) -> list[str]:
    """Count the labelled people without features, and labels that mean "not known"."""
    notes = unknown_labels(met["label"])
    lost = wanted.height - met.height
    if not lost:
        return notes
    counts = (
        wanted["label"]
        .value_counts(name="n")
        .join(met["label"].value_counts(name="left"), on="label", how="left")
        .with_columns(lost=pl.col("n") - pl.col("left").fill_null(0))
        .sort(pl.col("lost") / pl.col("n"), "label", descending=[True, False])
    )
    text = f"{lost:,} of {wanted.height:,} labelled people have no features and take no part"
    many = counts.filter(pl.col("lost") > _MANY * pl.col("n"))
    if not many.height:
        return [*notes, f"{text}."]
    each = ", ".join(
        f"{label!r} lacks {gone:,} of {n:,}"
        for label, n, gone in many.head(_NAMED).select("label", "n", "lost").iter_rows()
    )
    return [*notes, Caution(f"{text}: {each}. Is the file of features whole?")]


def on_applied(
    probe: Probe, learnt: tuple[pl.Series, Floats], frame: pl.DataFrame, path: Path, silent: int
) -> list[str]:
    """Caution where pictures to be labelled were trained on, or do not look like those that were.

    Shapes: ``learnt`` [n, d].
    """
    notes: list[str] = []
    if silent:
        notes.append(f"{silent:,} pictures of {path.name} have no features and get no label.")
    given = matrix_of(frame, str(path))
    if not len(given) or given.shape[1] != learnt[1].shape[1]:
        return notes
    known = np.isin(_keys(given), _keys(learnt[1]))
    again = int((known | _nearly(frame["instance_id"], given, learnt, probe)).sum())
    if again:
        notes.append(
            Caution(
                f"{again:,} of {len(given):,} pictures of {path.name} have the features of pictures"
                " that the probe was trained on or stopped by. It knows their labels: audit those"
                " of other pictures."
            )
        )
    varying = learnt[1].std(axis=0) > 0
    if len(given) < _AGAIN or not varying.any():
        return notes
    times = float(np.median(given.std(axis=0)[varying] / probe.scale[varying]))
    off = float(np.median(np.abs(given.mean(axis=0) - probe.mean)[varying] / probe.scale[varying]))
    if not 1.0 / _APART <= times <= _APART or off > _APART:
        notes.append(
            Caution(
                f"The features of {path.name} are not like those that the probe learnt from (they"
                f" spread {times:.2g} times as much, around {off:.1f} standard deviations away):"
                " are they of another model, or scaled in another way?"
            )
        )
    return notes


def _nearly(
    ids: pl.Series, given: Floats, learnt: tuple[pl.Series, Floats], probe: Probe
) -> npt.NDArray[np.bool_]:
    """Tell who has the id and, but for rounding, the features of a picture that was learnt from."""
    own = pl.DataFrame({"id": learnt[0], "at": np.arange(len(learnt[0]))})
    at = pl.DataFrame({"id": ids}).join(own, on="id", how="left", maintain_order="left")["at"]
    there = at.is_not_null().to_numpy()
    apart = np.full(len(ids), np.inf)
    rows = at.drop_nulls().to_numpy()
    apart[there] = (np.abs(given[there] - learnt[1][rows]) / probe.scale).mean(axis=1)
    return np.asarray(apart < _ROUNDED)


def _keys(matrix: Floats) -> np.ndarray[Any, Any]:
    """Make each row one value that can be looked up; 0.0 and -0.0 are one."""
    rows = np.ascontiguousarray(matrix + 0.0)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def on_learning(
    fit: Fit, rows: pl.DataFrame, code: np.ndarray[Any, Any], names: Sequence[str]
) -> tuple[str, ...]:
    """Say what was learnt from whom, and how it went."""
    notes = rare_classes(code[~fit.held_out], names)
    if fit.kept == 0:
        notes.append(
            Caution(
                "No step made the held-out rows likelier than all classes alike: these features"
                " say nothing of the target, or the labels are of others."
            )
        )
    start, (trained, held) = fit.losses[0], fit.losses[fit.kept]
    n, clusters = int((~fit.held_out).sum()), rows["cluster"].n_unique()
    whom = f"Trained on {n:,} of {rows.height:,} rows in {clusters:,} clusters"
    step = f"Step {fit.kept} of {len(fit.losses) - 1} is kept: cross-entropy {trained:.3f} of the"
    notes += [
        f"{whom}; the others, in whole clusters, chose the step.",
        f"{step} training rows and {held:.3f} of those held out ({start[1]:.3f} before any).",
        _NOT_A_RESULT,
    ]
    return tuple(notes)
