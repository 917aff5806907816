"""Training FairFace's network: a ResNet-34 with one last layer for all heads (section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.core.extras import import_optional
from isolux.io.images import Pixels, resize_image
from isolux.models import move_network_to_device
from isolux.models.fairface import (
    FILE,
    MEAN,
    STD,
    Heads,
    build_resnet34,
    compute_head_logits,
    heads_to_metadata,
    load_initial_weights,
)
from isolux.training.checkpoints import (
    Checkpoint,
    check_is_same_training,
    read_checkpoint,
    train_with_checkpoints,
    write_safetensors,
)
from isolux.training.trainer import Epoch, Schedule, State, TrainerInputs
from isolux.training.training_images import ImageScan, TrainingImages

CHECKPOINT = "checkpoint.safetensors"
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FaceTrainingSet:
    """Face images with their labels and rows.

    Parameters
    ----------
    images : TrainingImages
        As ``build_square_resize`` brings them to the network.
    scan : ImageScan
        What the first look at them found.
    labels : [n, heads] int
        ``UNKNOWN`` where a head's answer is not known.
    training_rows, held_out : [k] int
    cells : [n] int, optional
        Of balanced epochs.
    """

    images: TrainingImages
    scan: ImageScan
    labels: Ints
    training_rows: Ints
    held_out: Ints
    cells: Ints | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """A network with its first weights, where it is trained.

    ``initial_weights`` says where the weights come from, by content.
    """

    torch: Any
    net: Any
    heads: Heads
    device: str
    initial_weights: str


def build_face_network(heads: Heads, *, seed: int, weights: str | None, device: str) -> Network:
    """Build the network before any image is opened."""
    torch = import_optional("torch", package="torch", extra="train", purpose="training a network")
    net = build_resnet34(torch, heads.outputs, seed=seed)
    start = (
        f"random, of seed {seed}"
        if weights is None
        else f"sha256:{load_initial_weights(net, weights)}"
    )
    return Network(torch, move_network_to_device(net, device), heads, device, start)


def build_square_resize(side_px: int) -> Callable[[Pixels], npt.NDArray[np.uint8]]:
    """Return a function that resizes images to a square of ``side_px``, as the authors do."""

    def prepare(pixels: Pixels) -> npt.NDArray[np.uint8]:
        return np.ascontiguousarray(resize_image(pixels, side_px, side_px).transpose(2, 0, 1))

    return prepare


def read_matching_checkpoint_or_none(
    folder: Path, training_record: Mapping[str, Any]
) -> Checkpoint | None:
    """Read the checkpoint of the same training; None: there is none."""
    path = folder / CHECKPOINT
    if not path.is_file():
        return None
    checkpoint = read_checkpoint(path)
    check_is_same_training(checkpoint, training_record, folder)
    return checkpoint


def train_face_network(
    network: Network,
    faces: FaceTrainingSet,
    schedule: Schedule,
    *,
    folder: Path,
    training_record: Mapping[str, Any],
    checkpoint: Checkpoint | None = None,
    report: Callable[[Epoch], None] = lambda _: None,
) -> State:
    """Train, write a checkpoint after each epoch, and the best epoch's weights at the end."""
    if checkpoint is not None:
        check_images_unchanged(checkpoint, faces.scan, folder)
    inputs = TrainerInputs(
        network.torch,
        network.net,
        _build_forward_function(network),
        faces.images,
        faces.labels,
        network.heads.slices(),
        faces.training_rows,
        faces.held_out,
        faces.cells,
    )
    path, image_hashes = folder / CHECKPOINT, faces.scan.hashes
    state = train_with_checkpoints(
        checkpoint,
        inputs,
        schedule,
        path=path,
        training_record=training_record,
        image_hashes=image_hashes,
        report=report,
    )
    metadata = heads_to_metadata(network.heads, epoch=state.selected_epoch())
    write_safetensors(folder / FILE, state.weights(), metadata)
    return state


def _build_forward_function(network: Network) -> Callable[[Any], Any]:
    torch = network.torch
    mean, std = (
        torch.tensor(statistics, device=network.device)[:, None, None] for statistics in (MEAN, STD)
    )

    def forward(images: Any) -> Any:
        return compute_head_logits(torch, network.net, (images.float() / 255.0 - mean) / std)

    return forward


def check_images_unchanged(checkpoint: Checkpoint, scan: ImageScan, folder: Path) -> None:
    """Refuse to resume with other images than the training began with."""
    has_changed = checkpoint.image_hashes != scan.hashes
    if has_changed.any():
        raise SpecError(
            "pictures have changed since this training began",
            expected="the same files",
            found=f"{int(has_changed.sum()):,} of {len(has_changed):,} others, the first in row"
            f" {int(np.argmax(has_changed)) + 1:,}",
            where=str(folder),
            hint="begin again with --overwrite, or in another folder",
        )
