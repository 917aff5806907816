"""What is said of a training's epochs: while they go by, and of the one that is kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.training import UNKNOWN, Epoch, State
from isolux.vocabulary import progress
from isolux.vocabulary.notes import Caution


def say_epoch(one: Epoch, of: int) -> None:
    """Say how an epoch went."""
    right = ", ".join(
        f"{name} {100 * share:.1f} %" for name, share in one.accuracy.items() if share is not None
    )
    line = (
        f"epoch {one.number} of {of}: loss {one.loss:.4f}, held out {one.held_loss:.4f}"
        f" (right: {right}), {one.seconds:.0f} s"
    )
    progress.say(line)


def told_of_epochs(
    state: State, labels: npt.NDArray[np.int64], held: npt.NDArray[np.int64]
) -> tuple[str, ...]:
    """Say which epoch is kept, and which heads learnt nothing."""
    kept = state.history[state.kept() - 1]
    notes: list[str] = []
    for k, (name, share) in enumerate(kept.accuracy.items()):
        known = labels[held, k]
        known = known[known != UNKNOWN]
        if share is None or not len(known):
            notes.append(Caution(f"No one who was held out has a {name}: nothing says what its"
                                 " head learnt."))  # fmt: skip
            continue
        commonest = float(np.bincount(known).max() / len(known))
        if share <= commonest:
            notes.append(
                Caution(
                    f"The head for {name} is right for {100 * share:.1f} % of those held out, no "
                    f"more than the commonest answer alone ({100 * commonest:.1f} %)."
                )
            )
    text = f"Epoch {kept.number} of {len(state.history)} is kept: loss {kept.loss:.4f}"
    return (*notes, f"{text} of those learnt from, {kept.held_loss:.4f} of those held out.")
