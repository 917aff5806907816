"""Training: a head for features that have none, and a whole network, by one recipe for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.tables import INSTANCES
from isolux.training.checkpoints import (
    Checkpoint,
    check_is_same_training,
    read_checkpoint,
    write_checkpoint,
    write_safetensors,
)
from isolux.training.faces import (
    CHECKPOINT,
    FaceTrainingSet,
    build_face_network,
    build_square_resize,
    check_images_unchanged,
    read_matching_checkpoint_or_none,
    train_face_network,
)
from isolux.training.finetune import (
    FINETUNED,
    TrainableExtractor,
    add_classification_head,
    finetune_with_checkpoints,
)
from isolux.training.splits import (
    count_draws_per_cell,
    draw_held_out_mask_by_cluster,
    sample_rows_at_most,
)
from isolux.training.trainer import UNKNOWN, Epoch, Schedule, State, TrainerInputs, train_or_resume
from isolux.training.training_images import DecodedTrainingImage, ImageScan, TrainingImages

__all__ = [
    "CHECKPOINT",
    "FINETUNED",
    "UNKNOWN",
    "Checkpoint",
    "DecodedTrainingImage",
    "Epoch",
    "FaceTrainingSet",
    "ImageScan",
    "Probe",
    "ProbeFit",
    "ProbeSettings",
    "Schedule",
    "State",
    "TrainableExtractor",
    "TrainerInputs",
    "TrainingImages",
    "add_classification_head",
    "build_face_network",
    "build_square_resize",
    "check_images_unchanged",
    "check_is_same_training",
    "count_draws_per_cell",
    "draw_held_out_mask_by_cluster",
    "finetune_with_checkpoints",
    "fit_linear_probe",
    "list_people_with_clusters",
    "list_people_with_one_label",
    "read_checkpoint",
    "read_matching_checkpoint_or_none",
    "sample_rows_at_most",
    "train_face_network",
    "train_or_resume",
    "write_checkpoint",
    "write_safetensors",
]

# Training labels: people with exactly one value of an attribute, or one class.


def list_people_with_clusters(dataset: Dataset) -> pl.DataFrame:
    """List people with their clusters: ``instance_id, cluster``, in their order."""
    return INSTANCES.conform(dataset.instances).select(
        "instance_id", cluster=pl.coalesce("cluster_id", pl.format("own\x1f{}", "instance_id"))
    )


def list_people_with_one_label(dataset: Dataset, target: str | None) -> pl.DataFrame:
    """List people with exactly one label: ``instance_id, label``."""
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
        dataset.values_of(target)  # its error lists the attributes
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
class ProbeSettings:
    """How a probe is trained; models that are compared share it.

    Parameters
    ----------
    held_out : float
        Share of the rows, in whole clusters, used to decide when training stops: above 0, at most
        .5.
    l2 : float
        Weight of the L2 penalty, 0 or more.
    max_steps : int
        Of L-BFGS.
    patience : int
        Steps without a lower held-out cross-entropy after which it stops.
    seed : int
        Which clusters are held out.
    """

    held_out: float = 0.2
    l2: float = 1e-3
    max_steps: int = 500
    patience: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("held_out", 0.0 < self.held_out <= 0.5, "above 0, at most 0.5"),
            ("l2", np.isfinite(self.l2) and self.l2 >= 0, "a number of at least 0"),
            ("max_steps", self.max_steps >= 1, "1 or more"),
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
        matrix = np.asarray(features, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.mean):
            raise SpecError(
                "these features are not of the model that the probe was trained on",
                expected=f"{len(self.mean)} numbers each",
                found=str(matrix.shape[-1] if matrix.ndim else matrix),
            )
        return np.asarray(
            np.exp(
                _compute_log_softmax(
                    _append_intercept_column((matrix - self.mean) / self.scale), self.weights
                )
            )
        )


@dataclass(frozen=True, slots=True)
class ProbeFit:
    """A trained probe, and how its training went.

    Parameters
    ----------
    probe : Probe
    held_out : [n] bool
        The rows that the training stopped by.
    losses : [steps, 2] float
        Cross-entropy (natural logarithm) of the training and the held-out rows after each step,
        from step 0, where all classes are as likely.
    selected_step : int
        The step whose weights these are.
    """

    probe: Probe
    held_out: npt.NDArray[np.bool_]
    losses: Floats
    selected_step: int


def fit_linear_probe(
    features: npt.ArrayLike,
    labels: Ints,
    clusters: Ints,
    classes: tuple[str, ...],
    settings: ProbeSettings,
) -> ProbeFit:
    """Train a probe.

    Shapes: ``features`` [n, d], ``labels`` [n], ``clusters`` [n].
    """
    x = np.asarray(features, dtype=np.float64)
    is_held_out = draw_held_out_mask_by_cluster(clusters, settings.held_out, settings.seed)
    if len(np.unique(labels[~is_held_out])) < 2:
        raise SpecError(
            "a probe needs classes to tell apart",
            expected="two classes or more among the rows that it is trained on",
            found=", ".join(repr(classes[k]) for k in np.unique(labels[~is_held_out])) or "none",
        )
    mean, deviations = x[~is_held_out].mean(axis=0), x[~is_held_out].std(axis=0)
    scale = np.where(deviations > 0, deviations, 1.0)
    design = _append_intercept_column((x - mean) / scale)
    weights, losses, selected_step = _minimise_with_early_stopping(
        design, labels, is_held_out, len(classes), settings
    )
    return ProbeFit(Probe(classes, mean, scale, weights), is_held_out, losses, selected_step)


def _append_intercept_column(scaled_features: Floats) -> Floats:
    return np.column_stack([scaled_features, np.ones(len(scaled_features))])


def _compute_log_softmax(design: Floats, weights: Floats) -> Floats:
    logits = design @ weights
    logits -= logits.max(axis=1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))


def _minimise_with_early_stopping(
    design: Floats,
    labels: Ints,
    is_held_out: npt.NDArray[np.bool_],
    n_classes: int,
    settings: ProbeSettings,
) -> tuple[Floats, Floats, int]:
    """Minimise the loss; return the best step's weights, all losses, and the best step."""
    from scipy.optimize import minimize

    d = design.shape[1]
    x, y = design[~is_held_out], labels[~is_held_out]
    rows = np.arange(len(y))
    held_out_x, held_out_y = design[is_held_out], labels[is_held_out]
    held_out_index = np.arange(len(held_out_y))
    is_penalised = np.ones((d, 1))
    is_penalised[-1] = 0.0  # the bias is not penalised

    def compute_loss_and_gradient(flat_weights: Floats) -> tuple[float, Floats]:
        weights = flat_weights.reshape(d, n_classes)
        log_probabilities = _compute_log_softmax(x, weights)
        residuals = np.exp(log_probabilities)
        residuals[rows, y] -= 1.0
        penalty_gradient = settings.l2 * weights * is_penalised
        mean_loss = -log_probabilities[rows, y].mean() + 0.5 * float(
            (penalty_gradient * weights).sum()
        )
        return float(mean_loss), (x.T @ residuals / len(y) + penalty_gradient).ravel()

    def compute_losses(weights: Floats) -> tuple[float, float]:
        held_out_loss = -_compute_log_softmax(held_out_x, weights)[
            held_out_index, held_out_y
        ].mean()
        return float(-_compute_log_softmax(x, weights)[rows, y].mean()), float(held_out_loss)

    best_weights, selected_step, losses = (
        np.zeros((d, n_classes)),
        0,
        [compute_losses(np.zeros((d, n_classes)))],
    )

    def record_step(flat_weights: Floats) -> None:
        nonlocal best_weights, selected_step
        weights = flat_weights.reshape(d, n_classes)
        losses.append(compute_losses(weights))
        if losses[-1][1] < losses[selected_step][1]:
            best_weights, selected_step = weights.copy(), len(losses) - 1
        if len(losses) - 1 - selected_step >= settings.patience:
            raise StopIteration

    minimize(
        compute_loss_and_gradient,
        np.zeros(d * n_classes),
        jac=True,
        method="L-BFGS-B",
        callback=record_step,
        options={"maxiter": settings.max_steps, "maxfun": 10 * settings.max_steps},
    )
    return best_weights, np.array(losses), selected_step
