"""Commands that send tasks to annotators, and import their answers."""

from __future__ import annotations

from pathlib import Path

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.core.formatting import pluralise
from isolux_curate.annotation.exchange import ImportResult
from isolux_curate.annotation.exchange import import_and_apply_server_answers as fetch_answers
from isolux_curate.annotation.exchange import plan_and_upload_tasks as send_tasks
from isolux_curate.annotation.golden_tasks import create_or_update_golden_tasks as create_golden
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
    write_consented_answers,
)
from isolux_curate.commands.curate._output import print_cautions_return_other_notes, print_notes
from isolux_curate.project.folder import open_project


def push(
    project: str, *, stage: str, server: str, training: bool = False, timeout: float = 60.0
) -> None:
    """Send the tasks of a stage to Label Studio: each task once, even after an interruption.

    The token is read from LABEL_STUDIO_TOKEN. Pictures are sent at a reduced size and without Exif.

    Parameters
    ----------
    project : str
        The project's folder.
    stage : str
        count, boxes, skin_tone, attributes or masks.
    server : str
        The server's address, such as http://127.0.0.1:8080.
    training : bool
        Send the golden tasks, which every rater answers before starting work.
    timeout : float
        Seconds to wait for a response from the server.
    """
    opened = open_project(project)
    label_studio = LabelStudioServer.from_url_with_environment_token(server, timeout_s=timeout)
    upload_result = send_tasks(opened, stage, label_studio, training=training)
    for note in upload_result.notes:
        command_output.report_warning(note)
    found_text = (
        f", {upload_result.n_already_sent:,} found there that were not noted"
        if upload_result.n_already_sent
        else ""
    )
    print_clean_lines(
        f"{pluralise(upload_result.n_planned, 'new task')}; {upload_result.n_sent:,}"
        f" sent{found_text}"
    )
    print_clean_lines(f"annotate at {label_studio.url}/projects/{upload_result.server_project}")
    flag = " --training" if training else ""
    print_clean_lines(f"next: isolux curate pull {project} --stage {stage} --server {server}{flag}")


def pull(
    project: str, *, stage: str, server: str, training: bool = False, timeout: float = 60.0
) -> None:
    """Fetch annotators' answers: each version once, with who gave it and when.

    The token is read from LABEL_STUDIO_TOKEN. Answers that break the stage's rules do not count and
    are requested again; photos that a rater sends back return to the earlier stage.

    Parameters
    ----------
    project : str
        The project's folder.
    stage : str
        count, boxes, skin_tone, attributes or masks.
    server : str
        The server's address, such as http://127.0.0.1:8080.
    training : bool
        Fetch answers to the golden tasks.
    timeout : float
        Seconds to wait for a response from the server.
    """
    opened = open_project(project)
    label_studio = LabelStudioServer.from_url_with_environment_token(server, timeout_s=timeout)
    import_result = fetch_answers(opened, stage, label_studio, training=training)
    notes = print_cautions_return_other_notes(import_result.notes)
    print_clean_lines(
        f"{pluralise(import_result.n_answers, 'answer')} on the server, {import_result.n_new:,} new"
    )
    _print_refused_and_sent_back(import_result, ": push it again")
    print_notes(notes)


def tasks(project: str, *, stage: str, out: Path, training: bool = False) -> None:
    """Write the open tasks of a stage: tasks.csv, pictures, and coco.json with boxes drawn so far.

    Parameters
    ----------
    project : str
        The project's folder.
    stage : str
        count, boxes, skin_tone, attributes or masks.
    out : Path
        The folder to write to.
    training : bool
        The golden tasks, which every rater answers before starting work.
    """
    number = plan_and_write_open_tasks(open_project(project), stage, out, training=training)
    print_clean_lines(f"{pluralise(number, 'open task')}: {out / 'tasks.csv'}")
    if number:
        print_clean_lines(
            f"next: isolux curate answers {project} FILE --stage {stage} --annotator NAME"
        )


def answers(
    project: str, file: str, *, stage: str, annotator: str | None = None, out: bool = False
) -> None:
    """Read answers from a table or a COCO file; with --out, write the answers that count instead.

    Reading the same file twice changes nothing; a changed answer is a new version.

    Parameters
    ----------
    project : str
        The project's folder.
    file : str
        A table of image_id (count, boxes) or instance_id, annotator, and question, answer, or
        label, x, y, w, h, or label, points; or a COCO file (.json) of boxes.
    stage : str
        count, boxes, skin_tone, attributes or masks.
    annotator : str, optional
        Who answered, if the file does not say.
    out : bool
        Write that file instead of reading it: a CSV with one row per answer, or a COCO file (.json)
        with what each annotator drew, for curate shapes.
    """
    opened = open_project(project)
    if out:
        row_counts = write_consented_answers(opened, stage, file)
        if row_counts.n_withdrawn:
            command_output.report_warning(
                f"{pluralise(row_counts.n_withdrawn, 'answer')} left out: the annotators withdrew."
            )
        print_clean_lines(f"{pluralise(row_counts.n_rows, 'row')}: {file}")
        return
    import_result = import_and_apply_sheet_answers(opened, stage, file, default_annotator=annotator)
    for caution in import_result.notes:
        command_output.report_warning(caution)
    print_clean_lines(pluralise(import_result.n_new, "new answer"))
    _print_refused_and_sent_back(import_result)


def _print_refused_and_sent_back(import_result: ImportResult, advice: str = "") -> None:
    if import_result.n_refused:
        print_clean_lines(
            f"{pluralise(import_result.n_refused, 'answer')} against the stage's rules: not counted"
        )
    if import_result.n_sent_back:
        print_clean_lines(
            f"{pluralise(import_result.n_sent_back, 'photo')} sent back to an earlier stage{advice}"
        )


def golden(project: str, sheet: str, *, stage: str) -> None:
    """Create golden tasks: from then on, a stage counts only answers from raters who graduated.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        A table of right answers: image_id (count) or instance_id, question, answer; for boxes
        image_id, label, x, y, w, h (pixels of the photo turned upright).
    stage : str
        count, boxes, skin_tone or attributes.
    """
    n_new = create_golden(open_project(project), stage, sheet)
    print_clean_lines(pluralise(n_new, "new golden task"))
    print_clean_lines(f"next: isolux curate push {project} --stage {stage} --training --server URL")
