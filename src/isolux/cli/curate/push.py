"""``isolux curate push``: tasks go to the annotation server."""

from __future__ import annotations

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["push"]


def push(
    project: str,
    *,
    stage: str,
    server: str,
    training: bool = False,
    timeout: float = 60.0,
    curator: str | None = None,
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
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.annotation import Server
    from isolux.curation.annotation import push as sent_of
    from isolux.curation.project import open_project

    opened = open_project(project, who=curator)
    speaking = Server.from_environment(server, timeout_s=timeout)
    done = sent_of(opened, stage, speaking, training=training)
    for note in done.notes:
        document.warn(note)
    found = f", {done.found:,} found there that were not noted" if done.found else ""
    say(f"{numbered(done.planned, 'new task')}; {done.sent:,} sent{found}")
    say(f"annotate at {speaking.url}/projects/{done.server_project}")
    flag = " --training" if training else ""
    say(f"next: isolux curate pull {project} --stage {stage} --server {server}{flag}")
