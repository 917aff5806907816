"""Commands that bring tasks to annotators, and answers back."""

from __future__ import annotations

from pathlib import Path

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered
from isolux_curate.annotation.exchange import Pulled
from isolux_curate.annotation.exchange import pull as back_of
from isolux_curate.annotation.exchange import push as sent_of
from isolux_curate.annotation.server import Server
from isolux_curate.annotation.sheets import read_given, write_answers, write_tasks
from isolux_curate.annotation.training import golden as made_of
from isolux_curate.commands.curate._tell import say_notes, warn_first
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
    speaking = Server.from_environment(server, timeout_s=timeout)
    done = sent_of(opened, stage, speaking, training=training)
    for note in done.notes:
        document.warn(note)
    found = f", {done.found:,} found there that were not noted" if done.found else ""
    say(f"{numbered(done.planned, 'new task')}; {done.sent:,} sent{found}")
    say(f"annotate at {speaking.url}/projects/{done.server_project}")
    flag = " --training" if training else ""
    say(f"next: isolux curate pull {project} --stage {stage} --server {server}{flag}")


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
    speaking = Server.from_environment(server, timeout_s=timeout)
    done = back_of(opened, stage, speaking, training=training)
    notes = warn_first(done.notes)
    say(f"{numbered(done.seen, 'answer')} on the server, {done.new:,} new")
    _say_refused(done, ": push it again")
    say_notes(notes)


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
    number = write_tasks(open_project(project), stage, out, training=training)
    say(f"{numbered(number, 'open task')}: {out / 'tasks.csv'}")
    if number:
        say(f"next: isolux curate answers {project} FILE --stage {stage} --annotator NAME")


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
        A table (unit, annotator, question, answer; label, x, y, w, h; or label, points), or a COCO
        file (.json).
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
        wrote = write_answers(opened, stage, file)
        if wrote.withdrawn:
            document.warn(
                f"{numbered(wrote.withdrawn, 'answer')} left out: the annotators withdrew."
            )
        say(f"{numbered(wrote.rows, 'row')}: {file}")
        return
    done = read_given(opened, stage, file, annotator=annotator)
    for caution in done.notes:
        document.warn(caution)
    say(numbered(done.new, "new answer"))
    _say_refused(done)


def _say_refused(done: Pulled, advice: str = "") -> None:
    if done.refused:
        say(f"{numbered(done.refused, 'answer')} against the stage's rules: not counted")
    if done.sent_back:
        say(f"{numbered(done.sent_back, 'photo')} sent back to an earlier stage{advice}")


def golden(project: str, sheet: str, *, stage: str) -> None:
    """Create golden tasks: from then on, a stage counts only answers from raters who graduated.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        A table of right answers: unit, question, answer; or unit, label, x, y, w, h.
    stage : str
        count, boxes, skin_tone or attributes.
    """
    new = made_of(open_project(project), stage, sheet)
    say(numbered(new, "new golden task"))
    say(f"next: isolux curate push {project} --stage {stage} --training --server URL")
