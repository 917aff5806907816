"""``isolux curate answers``: answers that were given without a server come in, or all go out."""

from __future__ import annotations

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["answers"]


def answers(
    project: str,
    file: str,
    *,
    stage: str,
    annotator: str | None = None,
    out: bool = False,
    curator: str | None = None,
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
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.annotation import read_given, write_answers
    from isolux.curation.project import open_project

    opened = open_project(project, who=curator)
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
    if done.refused:
        say(f"{numbered(done.refused, 'answer')} against the stage's rules: not counted")
    if done.sent_back:
        say(f"{numbered(done.sent_back, 'photo')} sent back to an earlier stage")
