"""``isolux view``: a page in which runs are explored, as a file or from a local server."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines


def view(
    runs: list[str],
    *,
    bundle: Path | None = None,
    metric: Sequence[str] = (),
    people: bool = False,
    images: str | None = None,
    confirm_image_rights: bool = False,
    show_faces: bool = False,
    port: int | None = None,
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    publish_min: int = 0,
    overwrite: bool = False,
) -> None:
    """Explore runs: sort, search and filter groups, see intervals, distributions and findings.

    With --bundle, this writes a single file that opens with a double click, offline. It contains
    groups, and single people only with --people; without them, it has no distributions for groups
    of fewer than 10. Without --bundle, it starts a server for this computer only, until Ctrl-C: it
    shows single people, and with --images their pictures.

    Parameters
    ----------
    runs : list of str
        Run directories; several are shown side by side.
    bundle : Path, optional
        The page to write: an .html file.
    metric : sequence of str
        Include only these metrics; default: all.
    people : bool
        Also include single people: their ids, groups, scores and the answers about them.
    images : str, optional
        Without --bundle: the folder of the dataset's images, which are then shown, blurred.
    confirm_image_rights : bool
        You state that these pictures may be shown, where the licence does not say so.
    show_faces : bool
        Show pictures as they are, not blurred.
    port : int, optional
        Without --bundle: the server's port; default: the first free one from 8765.
    withdrawn : str, optional
        File with the ids of people who have withdrawn since: they are not shown. Values still count
        them; spreads of scores are left out, and --people is refused.
    allow_unmatched : bool
        Continue even if an id in that file matches nobody.
    publish_min : int
        Hide groups of fewer people, and whatever would reveal them; 0: nothing is hidden.
    overwrite : bool
        Replace an existing page.
    """
    shared_settings = {"withdrawn": withdrawn, "allow_unmatched": allow_unmatched, "metric": metric}
    server_flags = {
        "--images": images,
        "--port": port,
        "--show-faces": show_faces,
        "--confirm-image-rights": confirm_image_rights,
    }
    if bundle is None:
        file_flags = {"--people": people, "--publish-min": publish_min, "--overwrite": overwrite}
        _refuse_flags_without(file_flags, "--bundle FILE.html", _SERVER_ONLY_REASON)
        _serve_viewer_page(
            runs,
            images=images,
            may_show=confirm_image_rights,
            show_faces=show_faces,
            port=port,
            **shared_settings,
        )
        return
    _refuse_flags_without(
        server_flags, "no --bundle", "a file holds no pictures: the local viewer shows them"
    )
    _write_viewer_page(
        runs, bundle, people=people, publish_min=publish_min, overwrite=overwrite, **shared_settings
    )


_SERVER_ONLY_REASON = (
    "the local viewer shows single people to this computer alone; what leaves it is a file"
)


def _refuse_flags_without(flags: dict[str, Any], needs: str, reason: str) -> None:
    from isolux.core.errors import SpecError

    for flag, flag_value in flags.items():
        if flag_value not in (None, False, 0):
            raise SpecError(reason, expected=f"{flag} with {needs}", found=flag)


def _write_viewer_page(runs: list[str], bundle: Path, *, people: bool, **settings: Any) -> None:
    from isolux.api.view import view as run_view

    page = run_view(runs, bundle, people=people, **settings)
    _warn_of_changed_files(runs)
    size_mb = page.stat().st_size / 1e6
    command_output.report_file(
        "page", page, f" ({size_mb:.1f} MB, opens by a double click, without a network)"
    )
    if people:
        command_output.report_note(
            "It contains single people: their ids, groups and scores. Anyone who has the file has "
            "those."
        )
    elif settings["publish_min"]:
        _report_suppressed_counts(runs, settings["publish_min"])
    else:
        command_output.report_note(
            "It contains groups of every size, and the values of small ones can reveal single "
            "people: to pass it on, write it with --publish-min 10."
        )


def _report_suppressed_counts(runs: list[str], minimum: int) -> None:
    from isolux.api.publish import publish
    from isolux.api.publish.suppression_summary import describe_suppression
    from isolux.io import run_directory

    loaded = [run_directory.load_run(path, on_change="told") for path in runs]
    suppression_texts = [
        describe_suppression(run, publish(run, minimum, other_runs=loaded), minimum)
        for run in loaded
    ]
    for suppression_text in dict.fromkeys(filter(None, suppression_texts)):
        command_output.report_note(suppression_text)


def _warn_of_changed_files(runs: list[str]) -> None:
    """Warn of runs whose files were changed, as the page does."""
    from isolux.cli.table_output import print_stderr_warning
    from isolux.io.run_changes import describe_changes, list_changed_files

    for run in dict.fromkeys(runs):
        changed_names = list_changed_files(run)
        if changed_names:
            print_stderr_warning(f"{run}: {describe_changes(changed_names)}")


def _serve_viewer_page(runs: list[str], **settings: Any) -> None:
    from isolux.api.view import serve_view

    def ready(address: str, people: bool) -> None:
        _warn_of_changed_files(runs)
        command_output.report_file("viewer", address)
        if not people:
            print_clean_lines("It shows groups alone: a run keeps no people, or counts of them.")
        print_clean_lines("Open that address on this computer. Ctrl-C ends it.")
        # a script that reads the address need not wait for the end
        command_output.print_unfinished_json()

    # Ctrl-C is how a viewer ends, so it is not reported as an interruption.
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        serve_view(runs, ready, **settings)
    except KeyboardInterrupt:
        print_clean_lines("", "viewer: ended")
    finally:
        signal.signal(signal.SIGINT, handler)
