"""``isolux curate suspects``: evidence about photos becomes a sheet for people to review."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isolux.cli import document
from isolux.cli.streams import say

__all__ = ["suspects"]


def suspects(
    project: str,
    *,
    out: Path,
    evidence: str | None = None,
    contradict: Sequence[str] = (),
    scene: str | None = None,
    logo_score: float = 0.6,
    sky: float = 0.5,
    curator: str | None = None,
) -> None:
    """Collect evidence about suspicious photos: one row for each subject to be reviewed.

    Nothing is decided yet: people fill in verdict and reason, and curate review reads the sheet
    back.

    Parameters
    ----------
    project : str
        The project's folder.
    out : Path
        The CSV to write.
    evidence : str, optional
        A table image_id or subject_id, kind (web match, location, logo, …), says, score.
    contradict : sequence of str
        Facts that must say the same, as in --contradict country=landmark_country.
    scene : str, optional
        The fact that says indoors or outdoors, to be compared with the pixels.
    logo_score : float
        Logos with a lower score are ignored (FHIBE's).
    sky : float
        The share of the upper third, 0 to 1, above which sky casts doubt on "indoors".
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation.project import open_project
    from isolux.curation.quality.evidence import gather_suspects
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text

    found = gather_suspects(
        open_project(project, who=curator), evidence, contradict=contradict, scene=scene,
        logo_score=logo_score, sky=sky,
    )  # fmt: skip
    write_text(out, csv_text(found.sheet))
    show_wide("Evidence", found.kinds)
    for note in found.notes:
        document.note(note)
    say(f"{found.sheet.height:,} to review")
    document.wrote("sheet", out)
