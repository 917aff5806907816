"""Training: a head for features that have none, and a whole network, by one recipe for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.training.checkpoints import (
    Checkpoint,
    read_checkpoint,
    refuse_other,
    write_checkpoint,
    write_weights,
)
from isolux.training.descent import UNKNOWN, Epoch, Learning, Schedule, State, descend
from isolux.training.faces import (
    CHECKPOINT,
    Faces,
    begun,
    network_of,
    prepared,
    refuse_changed,
    train_faces,
)
from isolux.training.finetune import FINETUNED, Tuned, finetune, tunable
from isolux.training.parts import draws_of_cell, held_out_rows, some_rows
from isolux.training.pictures import Look, Looked, Pictures
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.tables import INSTANCES

__all__ = [
    "CHECKPOINT",
    "FINETUNED",
    "UNKNOWN",
    "Checkpoint",
    "Epoch",
    "Faces",
    "Fit",
    "Learning",
    "Look",
    "Looked",
    "Pictures",
    "Probe",
    "Recipe",
    "Schedule",
    "State",
    "Tuned",
    "begun",
    "clusters_of",
    "descend",
    "draws_of_cell",
    "finetune",
    "fit_probe",
    "held_out_rows",
    "labels_of",
    "network_of",
    "prepared",
    "read_checkpoint",
    "refuse_changed",
    "refuse_other",
    "some_rows",
    "train_faces",
    "tunable",
    "write_checkpoint",
    "write_weights",
]

# Whose label is learnt: people with one value of an attribute, or of one class.


def clusters_of(dataset: Dataset) -> pl.DataFrame:
    """List people with what was sampled together: ``instance_id, cluster``, in their order."""
    return INSTANCES.conform(dataset.instances).select(
        "instance_id", cluster=pl.coalesce("cluster_id", pl.format("own\x1f{}", "instance_id"))
    )


def labels_of(dataset: Dataset, target: str | None) -> pl.DataFrame:
    """List who has one label: ``instance_id, label``; those with several or none are not there."""
    if target is None:
        instances = INSTANCES.conform(dataset.instances)
        if instances["classes"].is_null().all():
            raise SpecError(
                "nothing says what is to be learnt",
                expected="--target ATTRIBUTE (target=…), or instances with classes",
                found="neither",
            )
        values = instances.select("instance_id", label="classes").explode("label")
    else:
        dataset.values_of(target)  # which names those there are
        values = (
            dataset.instance_attributes()
            .filter(attribute=target)
            .select(instance_id="unit_id", label="value")
        )
    return (
        values.drop_nulls("label")
        .unique(maintain_order=True)
        .group_by("instance_id", maintain_order=True)
        .agg(pl.col("label"))
        .filter(pl.col("label").list.len() == 1)
        .with_columns(pl.col("label").list.first())
    )


# A linear probe: multinomial logistic regression on features, stopped early on held-out clusters.
# Fairness Indicators (Goyal et al. 2022, appendix B.3) gives models without a head one by the
# same training for all. Here that is a linear layer on features that stay as they are: features
# are centred and scaled by the training part, the mean cross-entropy plus ``l2`` / 2 times the
# squared weights is brought down by L-BFGS from zero, and the step with the lowest cross-entropy
# on held-out clusters is kept. There is nothing random but which clusters are held out.

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a probe is trained; models that are compared share it.

    Parameters
    ----------
    held_out : float
        Share of the rows, in whole clusters, used to decide when training stops: above 0, at most
        .5.
    l2 : float
        Weight of the L2 penalty, 0 or more.
    most_steps : int
        Of L-BFGS.
    patience : int
        Steps without a lower held-out cross-entropy after which it stops.
    seed : int
        Which clusters are held out.
    """

    held_out: float = 0.2
    l2: float = 1e-3
    most_steps: int = 500
    patience: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("held_out", 0.0 < self.held_out <= 0.5, "above 0, at most 0.5"),
            ("l2", np.isfinite(self.l2) and self.l2 >= 0, "a number of at least 0"),
            ("most_steps", self.most_steps >= 1, "1 or more"),
            ("patience", self.patience >= 1, "1 or more"),
        ):
            if not good:
                raise SpecError(
                    f"the setting {name!r} of a probe cannot be used",
                    expected=expected,
                    found=repr(getattr(self, name)),
                )


@dataclass(frozen=True, slots=True)
class Probe:
    """A linear layer: probabilities of classes from features.

    Parameters
    ----------
    classes : tuple of str
    mean, scale : [d] float
        Of the training part; features are centred and divided by them.
    weights : [d + 1, k] float
        The last row is the bias.
    """

    classes: tuple[str, ...]
    mean: Floats
    scale: Floats
    weights: Floats

    def __call__(self, features: npt.ArrayLike) -> Floats:
        """Give probabilities ``[n, k]`` of features ``[n, d]``."""
        given = np.asarray(features, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != len(self.mean):
            raise SpecError(
                "these features are not of the model that the probe was trained on",
                expected=f"{len(self.mean)} numbers each",
                found=str(given.shape[-1] if given.ndim else given),
            )
        return np.asarray(
            np.exp(_log_softmax(_design((given - self.mean) / self.scale), self.weights))
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """A trained probe, and how its training went.

    Parameters
    ----------
    probe : Probe
    held_out : [n] bool
        The rows that the training stopped by.
    losses : [steps, 2] float
        Cross-entropy (natural logarithm) of the training and the held-out rows after each step,
        from step 0, where all classes are as likely.
    kept : int
        The step whose weights these are.
    """

    probe: Probe
    held_out: npt.NDArray[np.bool_]
    losses: Floats
    kept: int


def fit_probe(
    features: npt.ArrayLike, labels: Ints, clusters: Ints, classes: tuple[str, ...], recipe: Recipe
) -> Fit:
    """Train a probe.

    Shapes: ``features`` [n, d], ``labels`` [n], ``clusters`` [n].
    """
    x = np.asarray(features, dtype=np.float64)
    aside = held_out_rows(clusters, recipe.held_out, recipe.seed)
    if len(np.unique(labels[~aside])) < 2:
        raise SpecError(
            "a probe needs classes to tell apart",
            expected="two classes or more among the rows that it is trained on",
            found=", ".join(repr(classes[k]) for k in np.unique(labels[~aside])) or "none",
        )
    mean, spread = x[~aside].mean(axis=0), x[~aside].std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    design = _design((x - mean) / scale)
    weights, losses, kept = _descend(design, labels, aside, len(classes), recipe)
    return Fit(Probe(classes, mean, scale, weights), aside, losses, kept)


def _design(scaled: Floats) -> Floats:
    return np.column_stack([scaled, np.ones(len(scaled))])


def _log_softmax(design: Floats, weights: Floats) -> Floats:
    logits = design @ weights
    logits -= logits.max(axis=1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))


def _descend(
    design: Floats, labels: Ints, aside: npt.NDArray[np.bool_], k: int, recipe: Recipe
) -> tuple[Floats, Floats, int]:
    """Bring the loss down; weights of the best step, losses of all, and which it was."""
    from scipy.optimize import minimize

    d = design.shape[1]
    x, y = design[~aside], labels[~aside]
    rows = np.arange(len(y))
    held_x, held_y = design[aside], labels[aside]
    held_rows = np.arange(len(held_y))
    penalised = np.ones((d, 1))
    penalised[-1] = 0.0  # the bias is free

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(d, k)
        logs = _log_softmax(x, weights)
        off = np.exp(logs)
        off[rows, y] -= 1.0
        shrunk = recipe.l2 * weights * penalised
        value = -logs[rows, y].mean() + 0.5 * float((shrunk * weights).sum())
        return float(value), (x.T @ off / len(y) + shrunk).ravel()

    def both(weights: Floats) -> tuple[float, float]:
        held = -_log_softmax(held_x, weights)[held_rows, held_y].mean()
        return float(-_log_softmax(x, weights)[rows, y].mean()), float(held)

    best, kept, losses = np.zeros((d, k)), 0, [both(np.zeros((d, k)))]

    def look(flat: Floats) -> None:
        nonlocal best, kept
        weights = flat.reshape(d, k)
        losses.append(both(weights))
        if losses[-1][1] < losses[kept][1]:
            best, kept = weights.copy(), len(losses) - 1
        if len(losses) - 1 - kept >= recipe.patience:
            raise StopIteration

    minimize(
        loss,
        np.zeros(d * k),
        jac=True,
        method="L-BFGS-B",
        callback=look,
        options={"maxiter": recipe.most_steps, "maxfun": 10 * recipe.most_steps},
    )
    return best, np.array(losses), kept
