"""Training a network by Adam: epochs, early stopping, and a state that can be resumed.

FairFace (section 4.2): Adam with a learning rate of .0001. Heads stand side by side in the last
layer; the loss is the sum of their mean cross-entropies, each over the people whose label is
known. After each epoch the held-out rows are judged, and the epoch at which their loss was lowest
is kept. What an epoch draws depends on the seed and its number alone, so a training that goes on
from its last state is the training that was never stopped: to the bit on one machine's CPU with as
many threads, and nearly so on a GPU, whose sums have no fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core import progress
from isolux.core.errors import IsoluxError, SpecError
from isolux.models import is_out_of_memory_error
from isolux.training.splits import draw_rows_balanced_by_cell
from isolux.training.training_images import TrainingImages

UNKNOWN = -1
"""The label of people whose class in a head is unknown."""

Ints = npt.NDArray[np.int64]
_ORDER_STREAM, _NETWORK_STREAM = (
    2,
    3,
)  # random streams of the seed: the order of rows; the network's own


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a network is trained; models that are compared share it.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    batch : int
        Rows of a step.
    epochs : int
        At most.
    patience : int
        Epochs without a lower held-out loss after which it stops.
    flip : bool
        Mirror half of the pictures, other ones each epoch.
    seed : int
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    """

    learning_rate: float = 1e-4
    batch: int = 64
    epochs: int = 20
    patience: int = 3
    flip: bool = False
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("learning_rate", 0.0 < self.learning_rate < 1.0, "above 0, below 1"),
            ("batch", self.batch >= 2, "2 or more"),
            ("epochs", self.epochs >= 1, "1 or more"),
            ("patience", self.patience >= 1, "1 or more"),
            ("seed", self.seed >= 0, "0 or more"),
        ):
            if not good:
                raise SpecError(
                    f"the setting {name!r} of a training cannot be used",
                    expected=expected,
                    found=repr(getattr(self, name)),
                )


@dataclass(frozen=True, slots=True)
class TrainerInputs:
    """Inputs of the trainer: network, images, labels and rows.

    Parameters
    ----------
    torch : module
    net : torch.nn.Module
    run : callable
        Pictures ``[k, …]`` on the device to logits ``[k, outputs]``.
    pictures : TrainingImages
    labels : [n, heads] int
        The class of each row in each head; ``UNKNOWN``.
    heads : mapping of str to slice
        Each head's outputs, in the order of ``labels``.
    training_rows, held_out : [k] int
        Rows that are learnt from, and those that choose the epoch.
    cells : [n] int, optional
        Balanced epochs: each cell of the training rows is drawn as often.
    """

    torch: Any
    net: Any
    run: Callable[[Any], Any]
    pictures: TrainingImages
    labels: Ints
    heads: Mapping[str, slice]
    training_rows: Ints
    held_out: Ints
    cells: Ints | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """Losses and accuracy of an epoch.

    Parameters
    ----------
    number : int
        From 1.
    loss, held_loss : float
        The sum of heads' mean cross-entropies: of the rows learnt from as they were met, and of
        those held out after the epoch.
    accuracy : mapping of str to (float or None)
        Of each head on those held out; None: no one of known label.
    """

    number: int
    loss: float
    held_loss: float
    accuracy: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class State:
    """All that a training resumes from: tensors by name, and its epochs.

    ``best`` holds the weights of the epoch that is kept; where that is the last one, it is empty.
    """

    net: Mapping[str, Any]
    adam: Mapping[str, Any]
    best: Mapping[str, Any]
    history: tuple[Epoch, ...] = ()

    def selected_epoch(self) -> int:
        """Return the epoch of the lowest held-out loss, the first of equals; 0: no epoch yet."""
        if not self.history:
            return 0
        return min(self.history, key=lambda epoch: (epoch.held_loss, epoch.number)).number

    def weights(self) -> Mapping[str, Any]:
        """Return the weights of that epoch."""
        return self.best or self.net

    def is_finished(self, schedule: Schedule) -> bool:
        """Return whether all epochs are done, or patience is used up."""
        n_epochs = len(self.history)
        return n_epochs >= schedule.epochs or (
            n_epochs > 0 and n_epochs - self.selected_epoch() >= schedule.patience
        )


def train_or_resume(
    inputs: TrainerInputs,
    schedule: Schedule,
    state: State | None,
    save_state: Callable[[State], None],
    report: Callable[[Epoch], None] = lambda _: None,
) -> State:
    """Train from the start or from a state until it is finished."""
    torch, net = inputs.torch, inputs.net
    adam = torch.optim.Adam(net.parameters(), lr=schedule.learning_rate)
    if state is not None:
        net.load_state_dict(dict(state.net))
        _restore_adam_state(torch, adam, state.adam)
    current = state or State({}, {}, {})
    while not current.is_finished(schedule):
        number = len(current.history) + 1
        progress.report_step(f"training: epoch {number} of {schedule.epochs}")
        # The network's tensors change in place during the epoch: the best weights are a copy.
        best_weights = current.best or (
            _copy_tensors_to_cpu(current.net) if current.history else {}
        )
        with raise_memory_errors_with_hint("a step of this training", schedule.device):
            loss = _train_epoch_and_average_loss(inputs, schedule, adam, number)
            held_loss, accuracy = _evaluate_held_out(inputs, schedule)
        epoch = Epoch(number, loss, held_loss, accuracy)
        if not np.isfinite(loss) or not np.isfinite(held_loss):
            raise SpecError(
                "the training diverged: its loss is no longer a number",
                expected="a lower --learning-rate",
                found=f"{schedule.learning_rate:g}",
                where=f"epoch {number}",
            )
        current = State(
            net.state_dict(), _list_adam_state_tensors(adam), {}, (*current.history, epoch)
        )
        if current.selected_epoch() != number:
            current = replace(current, best=best_weights)
        save_state(current)
        report(epoch)
    return current


@contextmanager
def raise_memory_errors_with_hint(purpose: str, device: str) -> Iterator[None]:
    """Re-raise errors of memory that ran out with the device and a hint."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, IsoluxError) or not is_out_of_memory_error(error):
            raise
        raise IsoluxError(
            f"there is too little memory for {purpose}",
            found=(str(error).splitlines() or [type(error).__name__])[0][:200],
            where=device,
            hint="a smaller --batch, smaller pictures, or another --device",
        ) from error


def _train_epoch_and_average_loss(
    inputs: TrainerInputs, schedule: Schedule, adam: Any, epoch: int
) -> float:
    """Train one epoch; return the mean loss of the rows at their steps."""
    torch = inputs.torch
    rng = np.random.default_rng([schedule.seed, _ORDER_STREAM, epoch])
    if inputs.cells is None:
        order = rng.permutation(inputs.training_rows)
    else:
        order = inputs.training_rows[
            draw_rows_balanced_by_cell(inputs.cells[inputs.training_rows], rng)
        ]
    # Batch normalisation needs two rows: 5 rows in twos become batches of 3 and 2.
    batches = np.array_split(order, max(min(ceil(len(order) / schedule.batch), len(order) // 2), 1))
    is_mirrored = rng.random(len(inputs.labels)) < 0.5 if schedule.flip else None
    inputs.net.train()
    total = 0.0
    on_cpu = schedule.device == "cpu"
    with torch.random.fork_rng(devices=[] if on_cpu else None):
        torch.manual_seed(
            int(np.random.default_rng([schedule.seed, _NETWORK_STREAM, epoch]).integers(1 << 31))
        )
        for rows, image_values in _iterate_prefetched_batches(inputs, batches):
            images = torch.from_numpy(image_values).to(schedule.device)
            if is_mirrored is not None:
                is_mirrored_batch = torch.from_numpy(is_mirrored[rows]).to(schedule.device)
                images = torch.where(
                    is_mirrored_batch[:, None, None, None], images.flip(-1), images
                )
            adam.zero_grad(set_to_none=True)
            loss, _, _ = _compute_loss_and_head_statistics(inputs, inputs.run(images), rows)
            loss.backward()
            adam.step()
            total += float(loss.detach()) * len(rows)
    return total / len(order)


def _iterate_prefetched_batches(inputs: TrainerInputs, batches: Any) -> Any:
    try:
        yield from inputs.pictures.iterate_prepared_batches(batches)
    except OSError as error:
        raise IsoluxError(
            "a picture that was there when the training began cannot be read any more",
            found=str(error),
            hint="bring it back; the same command goes on from the last epoch",
        ) from error


def _compute_loss_and_head_statistics(
    inputs: TrainerInputs, logits: Any, rows: Ints
) -> tuple[Any, Any, Any]:
    """Compute the loss, and per head summed cross-entropy and (n correct, n known)."""
    torch, functional = inputs.torch, inputs.torch.nn.functional
    target = torch.from_numpy(inputs.labels[rows]).to(logits.device)
    head_losses, accuracy_counts, loss = [], [], 0.0
    for k, outputs in enumerate(inputs.heads.values()):
        n_known = int((inputs.labels[rows, k] != UNKNOWN).sum())
        head_loss = functional.cross_entropy(
            logits[:, outputs].float(), target[:, k], ignore_index=UNKNOWN, reduction="sum"
        )
        n_correct = (logits[:, outputs].argmax(dim=1) == target[:, k]).sum()
        head_losses.append(head_loss)
        accuracy_counts.append((n_correct, n_known))
        loss = loss + head_loss / max(n_known, 1)
    return loss, head_losses, accuracy_counts


def _evaluate_held_out(
    inputs: TrainerInputs, schedule: Schedule
) -> tuple[float, dict[str, float | None]]:
    """Evaluate the held-out rows: the sum of heads' mean losses, and each head's accuracy."""
    inputs.net.eval()
    totals = np.zeros((len(inputs.heads), 3))
    batches = np.array_split(inputs.held_out, ceil(len(inputs.held_out) / schedule.batch))
    with inputs.torch.inference_mode():
        for rows, image_values in _iterate_prefetched_batches(inputs, batches):
            images = inputs.torch.from_numpy(image_values).to(schedule.device)
            _, head_losses, accuracy_counts = _compute_loss_and_head_statistics(
                inputs, inputs.run(images), rows
            )
            for k, (head_loss, (n_correct, n_known)) in enumerate(
                zip(head_losses, accuracy_counts, strict=True)
            ):
                totals[k] += float(head_loss), int(n_correct), n_known
    n_labelled = np.maximum(totals[:, 2], 1)
    accuracy = {
        name: float(n_correct / n) if n else None
        for name, (_, n_correct, n) in zip(inputs.heads, totals.tolist(), strict=True)
    }
    return float((totals[:, 0] / n_labelled).sum()), accuracy


def _list_adam_state_tensors(adam: Any) -> dict[str, Any]:
    """Return Adam's state tensors by name, such as ``7.exp_avg``."""
    state = adam.state_dict()["state"]
    return {
        f"{k}.{name}": tensor
        for k, row_state in state.items()
        for name, tensor in row_state.items()
    }


def _restore_adam_state(torch: Any, adam: Any, tensors: Mapping[str, Any]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        number, _, tensor_name = name.partition(".")
        state.setdefault(int(number), {})[tensor_name] = torch.as_tensor(tensor)
    adam.load_state_dict({"state": state, "param_groups": adam.state_dict()["param_groups"]})


def _copy_tensors_to_cpu(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}
