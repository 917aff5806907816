"""``isolux report``: render a run's report again from its tables; and, if asked, a gallery."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from isolux.vocabulary.containers import Run

__all__ = ["report"]


def report(
    run: Annotated[str, typer.Argument(help="a run directory, as `isolux audit --out` wrote it")],
    *,
    out: Annotated[
        str | None, typer.Option(help="where to write the page; none: report.html in the run")
    ] = None,
    gallery: Annotated[
        int | None,
        typer.Option(help="also write gallery.html beside it: so many worst misses of each group"),
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="the folder of the dataset's images, for --gallery")
    ] = None,
    i_may_show_these_images: Annotated[
        bool,
        typer.Option(
            "--i-may-show-these-images",
            help="you state that these pictures may be shown, where the licence does not say so",
        ),
    ] = False,
) -> None:
    """Render the report of a finished run again, from its tables alone.

    With --gallery, pictures of the people whom the model served worst, in a file of its own that
    can be deleted when somebody withdraws their consent.
    """
    from isolux.io import run_directory
    from isolux.report.html import write_report
    from isolux.vocabulary.errors import SpecError

    if (gallery is None) != (images is None):
        raise SpecError(
            "a gallery needs a number of pictures and where they are",
            expected="--gallery N together with --images FOLDER",
            found="--images alone" if gallery is None else "--gallery alone",
        )
    loaded = run_directory.load(run)
    path = Path(out) if out is not None else Path(run) / "report.html"
    write_report(loaded, path)
    typer.echo(f"report: {path}")
    if gallery is not None and images is not None:
        _write_gallery(loaded, path, images, gallery, may_show=i_may_show_these_images)


def _write_gallery(run: Run, report: Path, images: str, n: int, *, may_show: bool) -> None:
    from isolux.people.loading import judged_people
    from isolux.report.gallery import write_gallery
    from isolux.vocabulary.spec import recorded_spec

    made = write_gallery(
        run,
        judged_people(recorded_spec(run.record)),
        report.with_name("gallery.html"),
        images=images,
        per_group=n,
        may_show=may_show,
    )
    for note in made.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"gallery: {made.path} ({made.shown} people; delete it when somebody withdraws)")
