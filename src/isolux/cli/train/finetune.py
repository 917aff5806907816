"""``isolux train finetune``: an extractor with a new head, and its labels for other pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from isolux.cli import document
from isolux.cli.streams import say

__all__ = ["finetune", "made"]


def finetune(data: str, *, out: Path, **settings: Any) -> None:
    """Fine-tune a model on labelled pictures, and label other pictures with it.

    The whole model learns, with a new last layer; `train probe` leaves features unchanged. Repeat
    the command to resume it. Data for evaluation only may be labelled (--apply), but are refused
    for training. All models compared get the same recipe.

    Parameters
    ----------
    data : str
        NAME:PATH of the labelled pictures, such as imagefolder:PICTURES.
    out : Path
        The directory to write, or to resume.
    """
    from isolux.verbs.train_finetune import train_finetune
    from isolux.vocabulary.notes import by_severity
    from isolux.vocabulary.progress import said_to

    with said_to(say):
        done = train_finetune(data, out=out, **settings)
    cautions, notes = by_severity(done.notes)
    for caution in cautions:
        document.warn(caution)
    for note in notes:
        document.note(note)
    document.wrote("model", done.folder)
    for name in done.labels:
        document.wrote("labels", name)


def made() -> Callable[..., None]:
    """Make the command."""
    from isolux.cli._flags import generated
    from isolux.verbs.train_finetune import train_finetune

    return generated(finetune, train_finetune)
