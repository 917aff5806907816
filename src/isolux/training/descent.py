"""Training a network by Adam: epochs, early stopping, and a state from which it goes on.

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
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.models import out_of_memory
from isolux.training.parts import balanced_draw
from isolux.training.pictures import Pictures
from isolux.vocabulary import progress
from isolux.vocabulary.errors import IsoluxError, SpecError

UNKNOWN = -1
"""The label of people of whom a head's answer is not known."""

Ints = npt.NDArray[np.int64]
_DRAW, _CHANCE = 2, 3  # which random numbers of the seed: the order of rows; the network's own


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
class Learning:
    """What is learnt, from what.

    Parameters
    ----------
    torch : module
    net : torch.nn.Module
    run : callable
        Pictures ``[k, …]`` on the device to logits ``[k, outputs]``.
    pictures : Pictures
    labels : [n, heads] int
        The class of each row in each head; ``UNKNOWN``.
    heads : mapping of str to slice
        Each head's outputs, in the order of ``labels``.
    train, held : [k] int
        Rows that are learnt from, and those that choose the epoch.
    cells : [n] int, optional
        Balanced epochs: each cell of the training rows is drawn as often.
    """

    torch: Any
    net: Any
    run: Callable[[Any], Any]
    pictures: Pictures
    labels: Ints
    heads: Mapping[str, slice]
    train: Ints
    held: Ints
    cells: Ints | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """How an epoch went.

    Parameters
    ----------
    number : int
        From 1.
    loss, held_loss : float
        The sum of heads' mean cross-entropies: of the rows learnt from as they were met, and of
        those held out after the epoch.
    accuracy : mapping of str to (float or None)
        Of each head on those held out; None: no one of known label.
    seconds : float
    """

    number: int
    loss: float
    held_loss: float
    accuracy: Mapping[str, float | None]
    seconds: float


@dataclass(frozen=True, slots=True)
class State:
    """All that a training goes on from: tensors by name, and how its epochs went.

    ``best`` holds the weights of the epoch that is kept; where that is the last one, it is empty.
    """

    net: Mapping[str, Any]
    adam: Mapping[str, Any]
    best: Mapping[str, Any]
    history: tuple[Epoch, ...] = ()

    def kept(self) -> int:
        """Return the epoch of the lowest held-out loss, the first of equals; 0: no epoch yet."""
        if not self.history:
            return 0
        return min(self.history, key=lambda one: (one.held_loss, one.number)).number

    def weights(self) -> Mapping[str, Any]:
        """Return the weights of that epoch."""
        return self.best or self.net

    def over(self, how: Schedule) -> bool:
        """Say whether a training has all its epochs, or has waited long enough."""
        done = len(self.history)
        return done >= how.epochs or (done > 0 and done - self.kept() >= how.patience)


def descend(
    what: Learning,
    how: Schedule,
    state: State | None,
    keep: Callable[[State], None],
    tell: Callable[[Epoch], None] = lambda _: None,
) -> State:
    """Train, from the beginning or from a state, until it is over."""
    torch, net = what.torch, what.net
    adam = torch.optim.Adam(net.parameters(), lr=how.learning_rate)
    if state is not None:
        net.load_state_dict(dict(state.net))
        _restore(torch, adam, state.adam)
    now = state or State({}, {}, {})
    while not now.over(how):
        began, number = monotonic(), len(now.history) + 1
        progress.at(f"training: epoch {number} of {how.epochs}")
        # The network's own tensors change in the epoch: the weights kept so far are a copy.
        earlier = now.best or (_copied(now.net) if now.history else {})
        with room_for("a step of this training", how.device):
            loss = _epoch(what, how, adam, number)
            held_loss, accuracy = _judged(what, how)
        epoch = Epoch(number, loss, held_loss, accuracy, monotonic() - began)
        if not np.isfinite(loss) or not np.isfinite(held_loss):
            raise SpecError(
                "the training diverged: its loss is no longer a number",
                expected="a lower --learning-rate",
                found=f"{how.learning_rate:g}",
                where=f"epoch {number}",
            )
        now = State(net.state_dict(), _said(adam), {}, (*now.history, epoch))
        if now.kept() != number:
            now = replace(now, best=earlier)
        keep(now)
        tell(epoch)
    return now


@contextmanager
def room_for(what: str, device: str) -> Iterator[None]:
    """Turn any error of memory that ran out into one that says where, and what helps."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, IsoluxError) or not out_of_memory(error):
            raise
        raise IsoluxError(
            f"there is too little memory for {what}",
            found=(str(error).splitlines() or [type(error).__name__])[0][:200],
            where=device,
            hint="a smaller --batch, smaller pictures, or another --device",
        ) from error


def _epoch(what: Learning, how: Schedule, adam: Any, number: int) -> float:
    """Go over the training rows once; give their mean loss, each row as it was met."""
    torch = what.torch
    rng = np.random.default_rng([how.seed, _DRAW, number])
    if what.cells is None:
        order = rng.permutation(what.train)
    else:
        order = what.train[balanced_draw(what.cells[what.train], rng)]
    # A normalised layer learns nothing from one row: of 5 in twos the parts are 3 and 2.
    parts = np.array_split(order, max(min(ceil(len(order) / how.batch), len(order) // 2), 1))
    mirrored = rng.random(len(what.labels)) < 0.5 if how.flip else None
    what.net.train()
    total = 0.0
    on_cpu = how.device == "cpu"
    with torch.random.fork_rng(devices=[] if on_cpu else None):
        torch.manual_seed(int(np.random.default_rng([how.seed, _CHANCE, number]).integers(1 << 31)))
        for rows, values in _given(what, parts):
            shown = torch.from_numpy(values).to(how.device)
            if mirrored is not None:
                turned = torch.from_numpy(mirrored[rows]).to(how.device)
                shown = torch.where(turned[:, None, None, None], shown.flip(-1), shown)
            adam.zero_grad(set_to_none=True)
            loss, _, _ = _losses(what, what.run(shown), rows)
            loss.backward()
            adam.step()
            total += float(loss.detach()) * len(rows)
    return total / len(order)


def _given(what: Learning, parts: Any) -> Any:
    try:
        yield from what.pictures.batches(parts)
    except OSError as error:
        raise IsoluxError(
            "a picture that was there when the training began cannot be read any more",
            found=str(error),
            hint="bring it back; the same command goes on from the last epoch",
        ) from error


def _losses(what: Learning, scores: Any, rows: Ints) -> tuple[Any, Any, Any]:
    """Give the loss, and per head summed cross-entropy and right answers with their numbers."""
    torch, plain = what.torch, what.torch.nn.functional
    target = torch.from_numpy(what.labels[rows]).to(scores.device)
    sums, tallies, loss = [], [], 0.0
    for k, where in enumerate(what.heads.values()):
        known = int((what.labels[rows, k] != UNKNOWN).sum())
        part = plain.cross_entropy(
            scores[:, where].float(), target[:, k], ignore_index=UNKNOWN, reduction="sum"
        )
        right = (scores[:, where].argmax(dim=1) == target[:, k]).sum()
        sums.append(part)
        tallies.append((right, known))
        loss = loss + part / max(known, 1)
    return loss, sums, tallies


def _judged(what: Learning, how: Schedule) -> tuple[float, dict[str, float | None]]:
    """Judge the held-out rows: the sum of heads' mean losses, and each head's accuracy."""
    what.net.eval()
    found = np.zeros((len(what.heads), 3))
    parts = np.array_split(what.held, ceil(len(what.held) / how.batch))
    with what.torch.inference_mode():
        for rows, values in _given(what, parts):
            shown = what.torch.from_numpy(values).to(how.device)
            _, sums, tallies = _losses(what, what.run(shown), rows)
            for k, (one, (right, known)) in enumerate(zip(sums, tallies, strict=True)):
                found[k] += float(one), int(right), known
    known = np.maximum(found[:, 2], 1)
    shares = {
        name: float(right / n) if n else None
        for name, (_, right, n) in zip(what.heads, found.tolist(), strict=True)
    }
    return float((found[:, 0] / known).sum()), shares


def _said(adam: Any) -> dict[str, Any]:
    """Name Adam's tensors, which are all that it remembers: ``7.exp_avg``."""
    state = adam.state_dict()["state"]
    return {f"{k}.{name}": one for k, own in state.items() for name, one in own.items()}


def _restore(torch: Any, adam: Any, said: Mapping[str, Any]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for name, one in said.items():
        number, _, what = name.partition(".")
        state.setdefault(int(number), {})[what] = torch.as_tensor(one)
    adam.load_state_dict({"state": state, "param_groups": adam.state_dict()["param_groups"]})


def _copied(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.detach().clone() for name, one in tensors.items()}
