"""Tasks go to a server and answers come back: nothing twice, nothing lost, whatever goes wrong."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import FileError, SpecError
from isolux.io.consent import append_consent
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.exchange import (
    TASK_ID_FIELD,
    import_and_apply_server_answers,
    plan_and_upload_tasks,
)
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.folder import (
    Project,
    open_project,
    read_journal,
    verify_journal_and_seals,
)
from isolux_curate.project.queries import (
    read_database_table,
    read_exclusions_with_reasons,
    read_images,
    read_people_in_photos,
)
from isolux_curate.project.verdicts import record_changed_verdicts
from tests.curate.annotation._fake import Fake, running
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._projects import annotated_project, box, chosen, tone


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return annotated_project(tmp_path, 25)


def _server(fake: Fake) -> LabelStudioServer:
    return LabelStudioServer.from_url_with_environment_token(fake.url, timeout_s=5)


def test_each_task_is_sent_once(project: Project, fake: Fake) -> None:
    first = plan_and_upload_tasks(project, "count", _server(fake))
    assert (first.n_planned, first.n_sent, first.n_already_sent) == (25, 25, 0)
    rows = read_journal(project).height
    again = plan_and_upload_tasks(project, "count", _server(fake))
    assert (again.n_planned, again.n_sent, again.n_already_sent) == (0, 0, 0)
    assert read_journal(project).height == rows
    assert len(fake.tasks) == 25
    assert len({t["data"][TASK_ID_FIELD] for t in fake.tasks.values()}) == 25
    assert fake.projects[1]["maximum_annotations"] == 1


def test_what_is_sent_names_no_photo_and_carries_no_exif(project: Project, fake: Fake) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    sent = next(iter(fake.files.values()))
    assert sent[:3] == b"\xff\xd8\xff"
    assert b"Exif" not in sent
    assert b"Acme" not in sent
    assert all("s1" not in str(t["data"][TASK_ID_FIELD]) for t in fake.tasks.values())
    secret = {task[:4] for task in read_database_table(project, "tasks")["task_id"]}
    assert len(secret) > 20


@pytest.mark.parametrize("lost_at", [1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_an_answer_of_the_server_that_is_lost_doubles_nothing(
    project: Project, fake: Fake, lost_at: int
) -> None:
    """Whatever request is done there and not heard of here, a second push ends at 25 tasks."""
    fake.faults = [*[lambda *_: None] * lost_at, lambda *_: "lost"]
    with suppress(FileError):  # a read is repeated, a write is not
        plan_and_upload_tasks(project, "count", _server(fake))
    plan_and_upload_tasks(project, "count", _server(fake))
    assert len(fake.tasks) == 25
    assert len(fake.projects) == 1
    noted = read_database_table(project, "tasks")
    assert noted["server_task"].n_unique() == 25
    assert noted["server_task"].null_count() == 0


def test_reads_are_repeated_and_writes_that_may_have_been_heard_are_not(
    project: Project, fake: Fake
) -> None:
    fake.faults = [lambda *_: 500, lambda *_: 503]  # listing projects
    assert plan_and_upload_tasks(project, "count", _server(fake)).n_sent == 25
    fake.faults = [lambda method, _: 500 if method == "POST" else None] * 9
    with pytest.raises(FileError, match="could not do what was requested"):
        plan_and_upload_tasks(project, "boxes", _server(fake))
    fake.faults = []
    assert plan_and_upload_tasks(project, "boxes", _server(fake)).n_sent == 25


def test_two_curators_at_once_send_each_task_once(project: Project, fake: Fake) -> None:
    def work() -> None:
        plan_and_upload_tasks(open_project(project.folder), "count", _server(fake))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.tasks) == 25
    assert len(fake.projects) == 1
    verify_journal_and_seals(project)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"token": "f" * 40}, "does not know this token, or it has expired"),
        ({"url": "http://127.0.0.1:9"}, "the annotation server does not answer"),
    ],
)
def test_a_server_that_cannot_be_spoken_to_is_told_plainly(
    project: Project, fake: Fake, wrong: dict[str, str], said: str
) -> None:
    given = {"url": fake.url, "token": fake.token} | wrong
    with pytest.raises(FileError, match=said) as caught:
        plan_and_upload_tasks(project, "count", LabelStudioServer(**given))
    assert given["token"] not in str(caught.value)
    assert given["token"] not in repr(LabelStudioServer(**given))


def test_a_server_that_is_slow_is_waited_for_so_long_and_no_longer(
    project: Project, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolux_curate.annotation.server._TRIES", 1)
    with fake.lock, pytest.raises(FileError, match="does not answer"):
        plan_and_upload_tasks(
            project, "count", LabelStudioServer(fake.url, fake.token, timeout_s=0.1)
        )


def test_without_a_token_or_classes_nothing_is_asked(
    project: Project, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LABEL_STUDIO_TOKEN")
    with pytest.raises(SpecError, match="there is no token"):
        LabelStudioServer.from_url_with_environment_token(fake.url)
    with pytest.raises(SpecError, match="nothing of the stage masks was pushed"):
        import_and_apply_server_answers(project, "masks", LabelStudioServer(fake.url, fake.token))
    assert fake.asked == []


def test_answers_come_back_once_and_newer_versions_replace_older_ones(
    project: Project, fake: Fake
) -> None:
    plan_and_upload_tasks(project, "boxes", _server(fake))
    for number in fake.tasks:
        fake.annotate(number, box("nurse", 10, 20, 30, 40, "guitarist"))
    done = import_and_apply_server_answers(project, "boxes", _server(fake))
    assert (done.n_answers, done.n_new, done.n_refused, done.notes) == (25, 25, 0, ())
    rows = read_journal(project).height
    assert import_and_apply_server_answers(project, "boxes", _server(fake)).n_new == 0
    assert read_journal(project).height == rows
    drawn = read_people_in_photos(project).filter(origin="boxes")
    assert drawn.select("x", "y", "w", "h", "primary", "secondary").row(0) == (
        40.0, 60.0, 120.0, 120.0, "nurse", "guitarist",
    )  # fmt: skip
    assert drawn["subject_id"].null_count() == 0
    fake.answer("PATCH", "/api/annotations/1001", {}, {"result": box("nurse", 0, 0, 50, 50)})
    assert import_and_apply_server_answers(project, "boxes", _server(fake)).n_new == 1
    drawn = read_people_in_photos(project).filter(origin="boxes")
    assert drawn.height == 25
    assert drawn["w"].max() == 200.0
    versions = read_database_table(project, "annotations")
    assert versions.height == 26
    assert versions["status"].value_counts().sort("count")["status"].to_list()[0] == "superseded"
    assert "user-1" in read_database_table(project, "annotators")["annotator_id"]
    verify_journal_and_seals(project)


def test_a_pull_that_is_stopped_goes_on(project: Project, fake: Fake, monkeypatch) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    for number in fake.tasks:
        fake.annotate(number, chosen(people=["2"]))
    monkeypatch.setattr("isolux_curate.annotation.exchange._READ_TOGETHER", 10)
    monkeypatch.setattr("isolux_curate.annotation.server._PAGE", 10)
    fake.faults = [lambda *_: None, lambda *_: 418]
    with pytest.raises(FileError, match="418"):
        import_and_apply_server_answers(project, "count", _server(fake))
    assert 0 < read_database_table(project, "annotations").height < 25
    import_and_apply_server_answers(project, "count", _server(fake))
    answers = read_database_table(project, "annotations")
    assert answers.height == answers["source_id"].n_unique() == 25


def test_photos_with_no_one_or_too_many_leave(project: Project, fake: Fake) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    for number in fake.tasks:
        said = {1: "0", 2: "more than 5"}.get(number, "3")
        fake.annotate(number, chosen(people=[said]))
    import_and_apply_server_answers(project, "count", _server(fake))
    assert read_images(project).height == 23
    assert sorted(read_exclusions_with_reasons(project)["rule"]) == [
        "more than 5",
        "no one matches",
    ]


def test_tasks_of_photos_that_left_are_taken_off_the_server_once_their_answers_are_here(
    project: Project, fake: Fake
) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    numbers = read_database_table(project, "tasks").select("server_task", "image_id")
    photo = {n: image for n, image in numbers.iter_rows() if n <= 3}
    fake.annotate(1, chosen(people=["0"]))  # no one matches: the first photo leaves by its answer
    fake.annotate(2, chosen(people=["2"]))
    blurred = [photo[2], photo[3]]
    out = pl.DataFrame({"unit_id": blurred, "reason": ["Blurred."] * 2})
    record_changed_verdicts(project, "quality", "blur", out, examined_units=blurred)
    assert plan_and_upload_tasks(project, "count", _server(fake)).notes == ()
    done = import_and_apply_server_answers(project, "count", _server(fake))
    assert done.n_new == 2
    assert "3 tasks of photos or people that left the project were removed" in done.notes[0]
    assert sorted(fake.tasks) == list(range(4, 26))
    assert len(fake.files) == 22
    again = import_and_apply_server_answers(project, "count", _server(fake))
    assert (again.n_new, again.notes) == (0, ())
    # Photos that come back are asked about again, unless their answer is here.
    record_changed_verdicts(project, "quality", "blur", out.clear(), examined_units=blurred)
    assert plan_and_upload_tasks(project, "count", _server(fake)).n_sent == 1
    verify_journal_and_seals(project)


def test_another_spelling_of_the_servers_address_is_the_same_server(
    project: Project, fake: Fake
) -> None:
    other = fake.url.replace("http://127.0.0.1", "HTTP://LocalHost") + "/"
    assert plan_and_upload_tasks(project, "count", _server(fake)).n_sent == 25
    server = LabelStudioServer.from_url_with_environment_token(other)
    assert server.url.startswith("http://localhost:")
    assert plan_and_upload_tasks(project, "count", server).n_sent == 0
    fake.annotate(1, chosen(people=["2"]))
    assert import_and_apply_server_answers(project, "count", server).n_new == 1
    assert import_and_apply_server_answers(project, "count", _server(fake)).n_new == 0
    server = LabelStudioServer.from_url_with_environment_token(other)
    assert plan_and_upload_tasks(project, "boxes", server).n_sent == 25
    assert len(fake.projects) == 2
    assert read_database_table(project, "tasks")["server"].unique().to_list() == [fake.url]


def test_another_server_is_refused_for_a_stage_and_not_for_the_next_one(
    project: Project, fake: Fake
) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    with running() as second:
        other = LabelStudioServer.from_url_with_environment_token(second.url)
        for act in (plan_and_upload_tasks, import_and_apply_server_answers):
            with pytest.raises(SpecError, match=f"(?s)was pushed to another server.*{fake.url}"):
                act(project, "count", other)
        assert second.projects == {}
        assert plan_and_upload_tasks(project, "boxes", other).n_sent == 25


def test_a_stage_about_boxes_without_any_says_so(project: Project, fake: Fake) -> None:
    with pytest.raises(SpecError, match=r"(?s)no box was drawn yet.*push .* --stage boxes"):
        plan_and_upload_tasks(project, "skin_tone", _server(fake))
    assert fake.projects == {}


def _drawn(project: Project, fake: Fake) -> list[int]:
    """Bring two photos to the stage of skin tone; the numbers of its tasks on the server."""
    plan_and_upload_tasks(project, "boxes", _server(fake))
    for number in list(fake.tasks)[:2]:
        fake.annotate(number, box("nurse", 10, 20, 30, 40))
    import_and_apply_server_answers(project, "boxes", _server(fake))
    number = plan_and_upload_tasks(project, "skin_tone", _server(fake)).server_project
    return [n for n, task in fake.tasks.items() if task["project"] == number]


def test_three_raters_of_skin_tone_are_asked_and_those_who_break_the_rule_again(
    project: Project, fake: Fake
) -> None:
    first, second = _drawn(project, fake)
    assert fake.projects[2]["maximum_annotations"] == 3
    for user, tones in enumerate((["3", "4"], ["4", "5", "6"], ["cannot be determined"]), 1):
        fake.annotate(first, tone(*tones), user)
    for user, tones in enumerate((["3", "4"], ["4"], ["2", "5"]), 1):
        fake.annotate(second, tone(*tones), user)
    done = import_and_apply_server_answers(project, "skin_tone", _server(fake))
    assert (done.n_new, done.n_refused) == (6, 2)
    status = dict(read_database_table(project, "tasks").filter(stage="skin_tone")
                  .select("server_task", "status").iter_rows())  # fmt: skip
    assert status == {first: "done", second: "redo"}
    said = read_answer_rows(project, "skin_tone").filter(question="perceived skin tone")
    assert said["annotator"].n_unique() == 3
    assert said.height == 2 + 3 + 1 + 2
    assert plan_and_upload_tasks(project, "skin_tone", _server(fake)).n_planned == 1
    assert read_database_table(project, "tasks").filter(stage="skin_tone")["round"].max() == 2


@pytest.mark.parametrize("question", ["tight", "right"])
def test_one_of_three_who_disagrees_sends_the_photo_back(
    project: Project, fake: Fake, question: str
) -> None:
    first, second = _drawn(project, fake)
    for user in (1, 2, 3):
        fake.annotate(first, tone("3", "4", **({question: "no"} if user == 2 else {})), user)
        fake.annotate(second, tone("3", "4"), user)
    assert import_and_apply_server_answers(project, "skin_tone", _server(fake)).n_sent_back == 1
    assert import_and_apply_server_answers(project, "skin_tone", _server(fake)).n_sent_back == 0
    assert read_people_in_photos(project).filter(origin="boxes").height == 1
    again = plan_and_upload_tasks(project, "boxes", _server(fake))
    assert (again.n_planned, again.n_sent) == (1, 1)
    fake.annotate(max(fake.tasks), box("nurse", 12, 22, 28, 38))
    import_and_apply_server_answers(project, "boxes", _server(fake))
    assert read_people_in_photos(project).filter(origin="boxes").height == 2
    assert plan_and_upload_tasks(project, "skin_tone", _server(fake)).n_planned == 1


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (box("nurse", 80, 10, 30, 30), "what was drawn leaves the photo."),
        (box("nurse", 10, 10, 0, 30), "a box has no area."),
        (box("doctor", 10, 10, 30, 30), "'doctor' is not one of the classes."),
    ],
)
def test_boxes_that_cannot_be_do_not_count(
    project: Project, fake: Fake, result: list[object], said: str
) -> None:
    plan_and_upload_tasks(project, "boxes", _server(fake))
    fake.annotate(1, result)
    assert import_and_apply_server_answers(project, "boxes", _server(fake)).n_refused == 1
    assert said in read_database_table(project, "annotations")["answer"][0]
    assert read_people_in_photos(project).filter(origin="boxes").is_empty()
    assert plan_and_upload_tasks(project, "boxes", _server(fake)).n_planned == 1


def test_tasks_of_others_and_deleted_answers_are_told(project: Project, fake: Fake) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    fake.annotate(1, chosen(people=["2"]))
    fake.annotate(2, chosen(people=["2"]))
    import_and_apply_server_answers(project, "count", _server(fake))
    del fake.tasks[1]
    fake.tasks[99] = {"id": 99, "project": 1, "annotations": [], "data": {"image": "x"}}
    notes = "\n".join(import_and_apply_server_answers(project, "count", _server(fake)).notes)
    assert "1 tasks on the server are none of this project" in notes
    assert "1 answers that came before are no longer on the server" in notes
    assert read_answer_rows(project, "count").height == 2


def test_an_annotator_who_withdrew_is_left_out(project: Project, fake: Fake) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    fake.annotate(1, chosen(people=["2"]), user=1)
    fake.annotate(2, chosen(people=["2"]), user=2)
    append_consent(project.consent_path, "grant", "annotator", ["user-1", "user-2"], ["evaluation"])
    append_consent(project.consent_path, "revoke", "annotator", ["user-2"], ["evaluation"])
    done = import_and_apply_server_answers(project, "count", _server(fake))
    assert done.n_new == 1
    assert "1 answers of annotators who withdrew were left out" in done.notes[0]
    assert read_database_table(project, "annotators")["annotator_id"].to_list() == ["user-1"]


def test_a_task_that_was_skipped_is_kept_as_skipped(project: Project, fake: Fake) -> None:
    plan_and_upload_tasks(project, "count", _server(fake))
    fake.annotate(1, [], was_cancelled=True)
    done = import_and_apply_server_answers(project, "count", _server(fake))
    assert (done.n_new, done.n_refused) == (1, 0)
    assert read_database_table(project, "annotations")["status"].to_list() == ["skipped"]
    assert read_database_table(project, "tasks").filter(server_task=1)["status"].to_list() == [
        "open"
    ]
