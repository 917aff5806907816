"""``isolux report``: render a run's report again from its tables; and, if asked, a gallery."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isolux.cli import command_output
from isolux.core.formatting import AND_MORE, join_first

if TYPE_CHECKING:
    from isolux.core.containers import Run


def report(
    run: str,
    *,
    out: str | None = None,
    publish_min: int = 0,
    gallery: int | None = None,
    images: str | None = None,
    confirm_image_rights: bool = False,
) -> None:
    """Render the report of a finished run again, from its tables.

    For a page that others will read, use --publish-min 10 --out FILE, which hides small groups.
    --gallery writes pictures of the people with the worst results to a separate file, which can be
    deleted when a person withdraws consent.

    Parameters
    ----------
    run : str
        A run directory written by `isolux audit --out`.
    out : str, optional
        Where to write the page; default: report.html in the run.
    publish_min : int
        Hide groups of fewer people, and whatever would reveal them; 0: nothing is hidden.
    gallery : int, optional
        Also write gallery.html beside it, with this many of the worst misses of each group.
    images : str, optional
        The folder of the dataset's images, for --gallery.
    confirm_image_rights : bool
        You state that these pictures may be shown, where the licence does not say so.
    """
    from isolux.api.publish import publish
    from isolux.cli.table_output import print_missing_figures_hint, print_suppression_if_large
    from isolux.core.errors import SpecError
    from isolux.io import run_directory
    from isolux.io.owned_files import refuse_foreign_page
    from isolux.report.html import write_report

    if publish_min and gallery is not None:
        raise SpecError(
            "a gallery shows single people, whatever --publish-min hides",
            expected="--publish-min or --gallery",
            found="both",
        )
    if (gallery is None) != (images is None):
        raise SpecError(
            "a gallery needs a number of pictures and where they are",
            expected="--gallery N together with --images FOLDER",
            found="--images alone" if gallery is None else "--gallery alone",
        )
    path = Path(out) if out is not None else Path(run) / "report.html"
    refuse_foreign_page(path)
    loaded = run_directory.load_run(run)
    published_run = publish(loaded, publish_min) if publish_min else loaded
    write_report(published_run, path)
    if publish_min:
        _warn_of_other_pages(path)
    command_output.report_file("report", path)
    if publish_min:
        print_suppression_if_large(loaded, published_run, publish_min)
    print_missing_figures_hint(
        f"isolux report {run}" + (f" --out {out}" if out is not None else "")
    )
    if gallery is not None and images is not None:
        _write_gallery(loaded, path, images, gallery, may_show=confirm_image_rights)


def _warn_of_other_pages(path: Path) -> None:
    """Warn where the folder has another published page: the two together may reveal counts."""
    from isolux.cli.table_output import print_stdout_warning
    from isolux.report.html import find_other_published_pages

    page_names = [page.name for page in find_other_published_pages(path)]
    if page_names:
        names_text = join_first(page_names, 3, AND_MORE)
        print_stdout_warning(
            f"{names_text} in this folder {'is' if len(page_names) == 1 else 'are'} made to be"
            " published too. Each page protects itself alone: of the same people, one page can be"
            " subtracted from another, and small counts follow. Publish one page with all that is"
            " to be told."
        )


def _write_gallery(run: Run, report: Path, images: str, n: int, *, may_show: bool) -> None:
    from isolux.core.spec import read_recorded_spec
    from isolux.people.loading import load_audit_people
    from isolux.people.synthetic import find_synthetic_marker_file
    from isolux.report.error_gallery import write_error_gallery

    gallery = write_error_gallery(
        run,
        load_audit_people(read_recorded_spec(run.record)),
        report.with_name("gallery.html"),
        images=images,
        per_group=n,
        may_show=may_show or find_synthetic_marker_file([images]) is not None,
    )
    for note in gallery.notes:
        command_output.report_note(note)
    suffix = f" ({gallery.n_shown} people; delete it when a person withdraws)"
    command_output.report_file("gallery", gallery.path, suffix)
