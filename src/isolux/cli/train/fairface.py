"""``isolux train fairface``: FairFace's network; the same command goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines

VERBS = {"fairface": "isolux.api.train_fairface:train_fairface"}


def fairface(data: str, *, out: Path, **settings: Any) -> None:
    """Train FairFace's network on labelled faces; repeat the command to resume it.

    A ResNet-34 whose last layer answers perceived race, gender presentation and age at once. It is
    an instrument for measuring datasets, not a product for judging people. Data for evaluation only
    are refused. Each epoch is kept; --balance draws each combination of groups equally often.

    Parameters
    ----------
    data : str
        The label table of FairFace (its CSV), or NAME:PATH of other labelled faces.
    out : Path
        The directory to write, or to resume.
    """
    from isolux.api.train_fairface import train_fairface
    from isolux.core.progress import listen_to_lines

    with listen_to_lines(print_clean_lines):
        training_result = train_fairface(data, out=out, **settings)
    command_output.report_notes(training_result.notes)
    command_output.report_file("network", training_result.folder)
    heads = list(training_result.classes)
    print_clean_lines(
        f"run it: isolux predict DATA --model fairface:{training_result.folder}"
        f" --model-option answers={heads[0]} --out ANSWERS"
    )
