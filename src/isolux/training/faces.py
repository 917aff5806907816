"""Training FairFace's network: a ResNet-34 with one last layer for all heads (section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.io.images import Pixels, resize_image
from isolux.models import to_device
from isolux.models.fairface import (
    FILE,
    MEAN,
    STD,
    Heads,
    heads_text,
    logits,
    resnet34,
    start_from,
)
from isolux.training.checkpoints import (
    Checkpoint,
    descend_from,
    read_checkpoint,
    refuse_other,
    write_weights,
)
from isolux.training.descent import Epoch, Learning, Schedule, State
from isolux.training.pictures import Looked, Pictures
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.extras import needed

CHECKPOINT = "checkpoint.safetensors"
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Faces:
    """Face images with their labels and rows.

    Parameters
    ----------
    pictures : Pictures
        As ``prepared`` brings them to the network.
    looked : Looked
        What the first look at them found.
    labels : [n, heads] int
        ``UNKNOWN`` where a head's answer is not known.
    train, held : [k] int
    cells : [n] int, optional
        Of balanced epochs.
    """

    pictures: Pictures
    looked: Looked
    labels: Ints
    train: Ints
    held: Ints
    cells: Ints | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """A network with its first weights, where it is trained.

    ``start`` says where the weights come from, by content.
    """

    torch: Any
    net: Any
    heads: Heads
    device: str
    start: str


def network_of(heads: Heads, *, seed: int, weights: str | None, device: str) -> Network:
    """Build the network before any image is opened."""
    torch = needed("torch", package="torch", extra="train", purpose="training a network")
    net = resnet34(torch, heads.outputs, seed=seed)
    start = f"random, of seed {seed}" if weights is None else f"sha256:{start_from(net, weights)}"
    return Network(torch, to_device(net, device), heads, device, start)


def prepared(side_px: int) -> Callable[[Pixels], npt.NDArray[np.uint8]]:
    """Return a function that resizes images to a square of ``side_px``, as the authors do."""

    def prepare(pixels: Pixels) -> npt.NDArray[np.uint8]:
        return np.ascontiguousarray(resize_image(pixels, side_px, side_px).transpose(2, 0, 1))

    return prepare


def begun(folder: Path, training_record: Mapping[str, Any]) -> Checkpoint | None:
    """Read the checkpoint of the same training; None: there is none."""
    path = folder / CHECKPOINT
    if not path.is_file():
        return None
    checkpoint = read_checkpoint(path)
    refuse_other(checkpoint, training_record, folder)
    return checkpoint


def train_faces(
    network: Network,
    faces: Faces,
    schedule: Schedule,
    *,
    folder: Path,
    about: Mapping[str, Any],
    before: Checkpoint | None = None,
    tell: Callable[[Epoch], None] = lambda _: None,
) -> State:
    """Train, write a checkpoint after each epoch, and the best epoch's weights at the end."""
    if before is not None:
        refuse_changed(before, faces.looked, folder)
    inputs = Learning(
        network.torch,
        network.net,
        _build_forward(network),
        faces.pictures,
        faces.labels,
        network.heads.slices(),
        faces.train,
        faces.held,
        faces.cells,
    )
    path, image_hashes = folder / CHECKPOINT, faces.looked.marks
    state = descend_from(
        before, inputs, schedule, path=path, about=about, marks=image_hashes, tell=tell
    )
    metadata = heads_text(network.heads, epoch=state.kept())
    write_weights(folder / FILE, state.weights(), metadata)
    return state


def _build_forward(network: Network) -> Callable[[Any], Any]:
    torch = network.torch
    mean, std = (
        torch.tensor(statistics, device=network.device)[:, None, None] for statistics in (MEAN, STD)
    )

    def forward(images: Any) -> Any:
        return logits(torch, network.net, (images.float() / 255.0 - mean) / std)

    return forward


def refuse_changed(checkpoint: Checkpoint, scan: Looked, folder: Path) -> None:
    """Refuse to resume with other images than the training began with."""
    has_changed = checkpoint.marks != scan.marks
    if has_changed.any():
        raise SpecError(
            "pictures have changed since this training began",
            expected="the same files",
            found=f"{int(has_changed.sum()):,} of {len(has_changed):,} others, the first in row"
            f" {int(np.argmax(has_changed)) + 1:,}",
            where=str(folder),
            hint="begin again with --overwrite, or in another folder",
        )
