"""``isolux train finetune``: an extractor with a new head, and its labels for other pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines

VERBS = {"finetune": "isolux.api.train_finetune:train_finetune"}


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
    from isolux.api.train_finetune import train_finetune
    from isolux.core.progress import listen_to_lines

    with listen_to_lines(print_clean_lines):
        training_result = train_finetune(data, out=out, **settings)
    command_output.report_notes(training_result.notes)
    command_output.report_file("model", training_result.folder)
    for name in training_result.labels:
        command_output.report_file("labels", name)
