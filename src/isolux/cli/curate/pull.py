"""``isolux curate pull``: answers come back from the annotation server."""

from __future__ import annotations

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["pull"]


def pull(
    project: str,
    *,
    stage: str,
    server: str,
    training: bool = False,
    timeout: float = 60.0,
    curator: str | None = None,
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
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.annotation import Server
    from isolux.curation.annotation import pull as back_of
    from isolux.curation.project import open_project
    from isolux.vocabulary.notes import by_severity

    opened = open_project(project, who=curator)
    speaking = Server.from_environment(server, timeout_s=timeout)
    done = back_of(opened, stage, speaking, training=training)
    cautions, notes = by_severity(done.notes)
    for caution in cautions:
        document.warn(caution)
    say(f"{numbered(done.seen, 'answer')} on the server, {done.new:,} new")
    if done.refused:
        say(f"{numbered(done.refused, 'answer')} against the stage's rules: not counted")
    if done.sent_back:
        say(f"{numbered(done.sent_back, 'photo')} sent back to an earlier stage: push it again")
    for note in notes:
        document.note(note)
