"""``isolux train probe``: a linear layer on features, and its labels for other pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import command_output

VERBS = {"probe": "isolux.api.train_probe:train_probe"}


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
    from isolux.api.train_probe import train_probe

    probe_result = train_probe(data, out=out, **settings)
    command_output.report_notes(probe_result.notes)
    command_output.report_file("probe", probe_result.folder)
    for name in probe_result.labels:
        command_output.report_file("labels", name)
