"""``isolux crop``: cut people or faces out of a dataset's pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines

VERB = "isolux.api.crop:crop"


def crop(data: str, *, out: Path, **settings: Any) -> None:
    """Cut people or faces out of a dataset's pictures, in the way a publication does.

    People without a box or visible points, or whose picture cannot be used, get no crop;
    OUT/crops.csv says why. Repeat the command to resume it. `isolux predict DATA --crops OUT` shows
    the crops to a model.

    Parameters
    ----------
    data : str
        NAME:PATH, such as fhibe:FHIBE.
    out : Path
        The directory to write, or to resume.
    """
    from isolux.api.crop import crop as run_crop

    crop_result = run_crop(data, out=out, **settings)
    command_output.report_notes(crop_result.notes)
    n_crops = crop_result.crops["file"].count()
    print_clean_lines(
        f"{n_crops:,} crops of {crop_result.crops.height:,} people: {crop_result.n_new_crops:,} cut"
        " out now"
    )
    command_output.report_file("crops", crop_result.folder)
    print_clean_lines(
        f"a model's answers: isolux predict {data} --crops {crop_result.folder} --model … --out …"
    )
