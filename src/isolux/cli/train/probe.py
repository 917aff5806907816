"""``isolux train probe``: a linear layer on features, and its labels for other pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from isolux.cli import document

__all__ = ["made", "probe"]


def probe(data: str, *, out: Path, **settings: Any) -> None:
    """Train a linear layer on the features of labelled pictures, and label other pictures with it.

    Features are the embeddings that `isolux predict DATA --model … --out FEATURES` wrote, or a file
    of embeddings. Data for evaluation only may be labelled (--apply), but are refused for training.
    All models compared get the same recipe and the same held-out clusters.

    Parameters
    ----------
    data : str
        NAME:PATH of the labelled pictures, such as imagefolder:PICTURES.
    out : Path
        The directory to write.
    """
    from isolux.verbs.train_probe import train_probe
    from isolux.vocabulary.notes import by_severity

    done = train_probe(data, out=out, **settings)
    cautions, notes = by_severity(done.notes)
    for caution in cautions:
        document.warn(caution)
    for note in notes:
        document.note(note)
    document.wrote("probe", done.folder)
    for name in done.labels:
        document.wrote("labels", name)


def made() -> Callable[..., None]:
    """Make the command."""
    from isolux.cli._flags import generated
    from isolux.verbs.train_probe import train_probe

    return generated(probe, train_probe)
