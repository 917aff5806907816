"""Every step that reads photos asks the ledger of consent: now, and not when intake ran last."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa

import isolux_curate
from isolux.core.errors import FileError, TableError
from isolux.io.consent import append_consent
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.exchange import (
    import_and_apply_server_answers,
    plan_and_upload_tasks,
)
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
)
from isolux_curate.commands.curate import STEPS
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.intake.intake_verdicts import apply_and_record_rules
from isolux_curate.project.database import open_write_transaction
from isolux_curate.project.folder import (
    Project,
    create_or_open_project,
    open_project,
    verify_journal_and_seals,
)
from isolux_curate.project.queries import (
    read_exclusions_with_reasons,
    read_images,
    read_people_in_photos,
    tabulate_project_funnel,
)
from isolux_curate.project.tables import decisions, settings
from tests.cli._run import Ran
from tests.cli._run import isolux as command
from tests.curate._postgres import Postgres
from tests.curate._postgres import postgres as postgres  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._fake import Fake
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._projects import annotated_project, box, chosen

SCOPES = ("evaluation", "training", "publication")
N = 4
Run = Callable[..., Ran]
Change = Callable[[], object]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of four photos of four people who agreed to all; a box is drawn in each."""
    folder = tmp_path_factory.mktemp("drawn")
    project = annotated_project(folder, N)
    rows = "".join(f"{k}.jpg,s{k},black,grey\n" for k in range(N))
    (folder / "photos.csv").write_text("file,subject_id,hair,colour\n" + rows)
    ingest_sheet_photos(project, folder / "photos.csv", photo_folder=folder / "in")
    append_consent(project.consent_path, "grant", "subject", [f"s{k}" for k in range(N)], SCOPES)
    plan_and_write_open_tasks(project, "boxes", folder / "boxes")
    rows = "".join(f"{k},nurse,10,20,100,200\n" for k in range(N))
    (folder / "boxes.csv").write_text("image_id,label,x,y,w,h\n" + rows)
    import_and_apply_sheet_answers(project, "boxes", folder / "boxes.csv", default_annotator="ada")
    return folder


@pytest.fixture
def lab(drawn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    shutil.copytree(drawn, tmp_path / "lab")
    monkeypatch.chdir(tmp_path / "lab")
    return open_project(tmp_path / "lab/p", curator="ada")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: object) -> Ran:
        return command(monkeypatch, capsys, "curate", *args)

    return call


def _number(ran: Ran, pattern: str) -> int:
    assert ran.code == 0, ran.plain
    found = re.search(pattern, ran.out)
    assert found is not None, ran.out
    return int(found[1])


def _rows(ran: Ran, file: str) -> int:
    assert ran.code == 0, ran.plain
    return pl.read_csv(file).height


def _add(run: Run, change: Change, _: Fake) -> int:
    change()
    return _number(run("add", "p", "photos.csv", "--photos", "in"), r"(\d) there already")


def _push(run: Run, change: Change, fake: Fake) -> int:
    change()
    return _number(run("push", "p", "--stage", "count", "--server", fake.url), r"; (\d) sent")


def _pull(run: Run, change: Change, fake: Fake) -> int:
    _push(run, lambda: None, fake)
    for task in fake.tasks:
        fake.annotate(task, chosen(people=["1"]))
    change()
    return _number(run("pull", "p", "--stage", "count", "--server", fake.url), r", (\d) new")


def _tasks(run: Run, change: Change, _: Fake) -> int:
    change()
    said = run("tasks", "p", "--stage", "skin_tone", "--out", "work")
    assert _rows(said, "work/tasks.csv") == len(list(Path("work/pictures").iterdir()))
    return _rows(said, "work/tasks.csv")


def _answers(run: Run, change: Change, _: Fake) -> int:
    change()
    return _rows(run("answers", "p", "said.csv", "--stage", "boxes", "--out"), "said.csv")


def _given(run: Run, change: Change, _: Fake) -> int:
    run("tasks", "p", "--stage", "count", "--out", "work")
    rows = "".join(f"{k},people,1\n" for k in range(N))
    Path("given.csv").write_text("image_id,question,answer\n" + rows)
    change()
    said = run("answers", "p", "given.csv", "--stage", "count", "--annotator", "ada")
    return _number(said, r"(\d) new answer")


def _golden(run: Run, change: Change, fake: Fake) -> int:
    """A golden task that was made before is not sent either."""
    rows = "".join(f"{k},nurse,10,20,100,200\n" for k in range(N))
    Path("golden.csv").write_text("image_id,label,x,y,w,h\n" + rows)
    assert run("golden", "p", "golden.csv", "--stage", "boxes").code == 0
    change()
    again = run("golden", "p", "golden.csv", "--stage", "boxes")
    assert not again.code or "took their consent back" in again.plain or "changed" in again.plain
    flags = ("--stage", "boxes", "--training", "--server", fake.url)
    return _number(run("push", "p", *flags), r"; (\d) sent")


def _sample(run: Run, change: Change, _: Fake) -> int:
    change()
    return _rows(run("sample", "p", "--type", "image", "--size", N, "--out", "s"), "s/sample.csv")


def _quality(run: Run, change: Change, _: Fake) -> int:
    names = read_people_in_photos(open_project("p"))
    rows = "".join(f"{k}-1,q,hair,black\n" for k in range(N))
    assert names.height == 2 * N
    Path("said.csv").write_text("unit,annotator,type,answer\n" + rows)
    change()
    said = run("quality", "p", "said.csv", "--attributes", ".1", "--out",
               "q")  # fmt: skip
    assert said.code == 0, said.plain
    return int(pl.read_csv("q/types.csv")["units"][0])


def _suspects(run: Run, change: Change, _: Fake) -> int:
    change()
    return _rows(run("suspects", "p", "--contradict", "hair=colour", "--out", "x.csv"), "x.csv")


def _recheck(run: Run, change: Change, _: Fake) -> int:
    """A model counts two people in each photo, where annotators counted one."""
    assert _given(run, lambda: None, _) == N
    rows = "".join(f"{k},2\n" for k in range(N))
    Path("model.csv").write_text("image_id,label\n" + rows)
    change()
    flags = ("--predictions", "model.csv", "--question", "people")
    return _number(run("recheck", "p", *flags), r"(\d) tasks? to be done again")


def _publish(run: Run, change: Change, _: Fake) -> int:
    change()
    said = run("publish", "p", "--out", "public", "--key", "key")
    assert _number(said, r"(\d) photos") == len(list(Path("public/photos").iterdir()))
    return _number(said, r"(\d) photos")


def _status(run: Run, change: Change, _: Fake) -> int:
    change()
    return _number(run("status", "p"), r"came in, (\d) remain")


def _intake(run: Run, change: Change, _: Fake) -> int:
    """Intake looks at everyone, to record who left: what is told is what stands after it."""
    change()
    said = run("intake", "p", "--only", "consent")
    assert said.code == 0, said.plain
    return _status(run, lambda: None, _)


USE_PHOTOS: dict[str, Callable[[Run, Change, Fake], int]] = {
    "add": _add, "intake": _intake, "push": _push, "pull": _pull, "tasks": _tasks,
    "answers": _answers, "answers, read": _given, "golden": _golden, "sample": _sample,
    "quality": _quality, "suspects": _suspects, "recheck": _recheck,
    "publish": _publish, "status": _status,
}  # fmt: skip
USE_NONE = {
    "init": "makes an empty project", "unset": "removes facts of everyone",
    "decide": "writes verdicts of people", "review": "writes verdicts of people",
    "show": "scores annotators; names no one; searches every file for illegal material, whoever"
    " agreed, and shows and copies none",
    "grant": "writes the ledger", "revoke": "writes the ledger", "consent": "shows the ledger",
    **dict.fromkeys(("concepts", "candidates", "quotas", "consistency", "consensus", "shapes",
                     "anonymise"), "reads files that it is given, and no project"),
}  # fmt: skip
QUERY_PHOTOS = {
    "annotation/exchange.py",
    "annotation/golden_tasks.py", "annotation/tasks.py",
    "intake/ingest.py", "project/verdicts.py", "project/queries.py", "project/fact_columns.py",
    "quality/hash_lists.py", "withdrawal/project_rows.py",
}  # fmt: skip


def test_each_step_is_known_to_use_photos_or_not() -> None:
    """A new step has to be tried below, or to say why it need not ask."""
    assert {name.partition(",")[0] for name in USE_PHOTOS} | set(USE_NONE) == set(STEPS)


def test_photos_are_queried_past_the_one_place_only_where_it_is_known() -> None:
    """A module that selects from the table of photos itself has to be looked at."""
    root = Path(isolux_curate.__file__).parent
    asked = re.compile(r"from isolux_curate\.project\.tables import[^)]*?\bimages\b")
    files = root.rglob("*.py")
    found = {str(f.relative_to(root)) for f in files if asked.search(f.read_text("utf-8"))}
    assert found == QUERY_PHOTOS


@pytest.mark.parametrize("step", USE_PHOTOS)
def test_a_step_uses_whoever_agreed(step: str, lab: Project, run: Run, fake: Fake) -> None:
    assert USE_PHOTOS[step](run, lambda: None, fake) == N


@pytest.mark.parametrize("step", USE_PHOTOS)
def test_a_step_after_a_revocation(step: str, lab: Project, run: Run, fake: Fake) -> None:
    def revoke() -> None:
        assert run("revoke", "p/consent.jsonl", "--who", "s2").code == 0

    assert USE_PHOTOS[step](run, revoke, fake) == N - 1
    assert read_images(lab)["image_id"].to_list() == ["0", "1", "3"]
    verify_journal_and_seals(lab)


@pytest.mark.parametrize("step", USE_PHOTOS)
def test_a_step_with_a_ledger_that_does_not_verify(
    step: str, lab: Project, run: Run, fake: Fake
) -> None:
    def edit() -> None:
        append_consent(lab.consent_path, "revoke", "subject", ["s2"], SCOPES)
        lab.consent_path.write_text(lab.consent_path.read_text().replace('"revoke"', '"grant"'))

    with pytest.raises(AssertionError, match="this row was changed after it was written"):
        USE_PHOTOS[step](run, edit, fake)


@pytest.mark.parametrize("step", ["add", "tasks", "sample", "publish", "status", "intake"])
@pytest.mark.parametrize("has_rows", [True, False])
def test_a_step_with_a_ledger_that_lost_rows(
    step: str, has_rows: bool, lab: Project, run: Run, fake: Fake
) -> None:
    append_consent(lab.consent_path, "revoke", "subject", ["s2"], SCOPES)
    assert run("intake", "p", "--only", "consent").code == 0
    rows = lab.consent_path.read_text().splitlines(keepends=True)

    def lose() -> None:
        lab.consent_path.write_text("".join(rows[:-1]))
        if not has_rows:
            for file in (lab.consent_path, Path(f"{lab.consent_path}.key")):
                file.unlink()

    key = Path(f"{lab.consent_path}.key").read_bytes()
    with pytest.raises(AssertionError, match="lost rows" if has_rows else "is not there"):
        USE_PHOTOS[step](run, lose, fake)
    Path(f"{lab.consent_path}.key").write_bytes(key)
    lab.consent_path.write_text("".join(rows))
    append_consent(lab.consent_path, "grant", "subject", ["s2"], SCOPES)
    assert read_images(lab).height == N - 1  # until intake asks again: later rows are fine
    assert _intake(run, lambda: None, fake) == N


def test_another_ledger_in_place_of_the_one_that_was_read(lab: Project) -> None:
    lab.consent_path.unlink()
    append_consent(lab.consent_path, "grant", "subject", [f"s{k}" for k in range(2 * N)], SCOPES)
    with pytest.raises(TableError, match="lost rows"):
        read_images(lab)


def test_intake_that_changes_nothing_remembers_the_ledger(lab: Project) -> None:
    apply_and_record_rules(lab, only_rules=["consent"])
    append_consent(lab.consent_path, "revoke", "subject", ["s9"], SCOPES)
    assert apply_and_record_rules(lab, only_rules=["consent"]) is not None
    rows = lab.consent_path.read_text().splitlines(keepends=True)
    lab.consent_path.write_text("".join(rows[:-1]))
    with pytest.raises(TableError, match="lost rows"):
        read_images(lab)


def test_a_ledger_that_was_deleted_is_missed(lab: Project) -> None:
    lab.consent_path.unlink()
    with pytest.raises(FileError, match="ledger of consent is not there"):
        read_images(lab)


@pytest.mark.parametrize("scope", ["training", "publication"])
def test_one_scope_blocks_what_it_covers(scope: str, lab: Project, run: Run, fake: Fake) -> None:
    append_consent(lab.consent_path, "revoke", "subject", ["s2"], [scope])  # type: ignore[list-item]
    assert _push(run, lambda: None, fake) == N
    assert _publish(run, lambda: None, fake) == (N - 1 if scope == "publication" else N)


def test_one_of_two_in_a_photo_is_enough(tmp_path: Path) -> None:
    project = annotated_project(tmp_path, 2)
    (tmp_path / "more.csv").write_text("file,subject_id,copyright_holder\n0.jpg,t,h\n1.jpg,s1,h2\n")
    ingest_sheet_photos(project, tmp_path / "more.csv", photo_folder=tmp_path / "in")
    append_consent(project.consent_path, "revoke", "subject", ["t"], SCOPES)
    assert read_images(project)["image_id"].to_list() == ["1"]
    append_consent(project.consent_path, "grant", "subject", ["t"], SCOPES)
    assert read_images(project).height == 2
    append_consent(project.consent_path, "revoke", "copyright", ["h2"], SCOPES)
    assert read_images(project)["image_id"].to_list() == ["0"]
    assert read_exclusions_with_reasons(project).select("step", "rule").row(0) == (
        "consent",
        "copyright",
    )


def test_status_shows_who_waits_and_how_far_annotation_is(lab: Project, run: Run) -> None:
    """Four photos with a box each; two have three tones, and the first person revokes."""
    assert run("tasks", "p", "--stage", "skin_tone", "--out", "work").code == 0
    people = read_people_in_photos(lab).filter(origin="boxes").sort("image_id")["instance_id"]
    answers = (("perceived skin tone", "3"), ("perceived skin tone", "4"),
               ("is the box tight?", "yes"), ("is the class right?", "yes"))  # fmt: skip
    rows = "".join(f"{p},{who},{question},{answer}\n" for p in people[:2] for who in "abc"
                   for question, answer in answers)  # fmt: skip
    Path("tones.csv").write_text("instance_id,annotator,question,answer\n" + rows)
    assert run("answers", "p", "tones.csv", "--stage", "skin_tone").code == 0
    append_consent(lab.consent_path, "revoke", "subject", ["s0"], SCOPES)
    told = run("status", "p").out
    assert "1 subject who took their consent back: still in the project, in 1 photo" in told
    assert re.search(r"boxes +0 +3 +0 +1\W", told)
    assert re.search(r"skin_tone +2 +1 +0 +1\W", told)
    assert re.search(r"the journal, \d rows, verifies; the ledger of consent, 5 rows, ver", told)
    with open_write_transaction(lab.engine) as connection:
        connection.execute(sa.update(decisions).values(reason="another"))
    changed = run("status", "p")
    assert changed.code == 2
    assert "was changed after it was written" in changed.plain


def test_what_status_advises_removes_them(
    lab: Project, run: Run, monkeypatch: Any, capsys: Any
) -> None:
    append_consent(lab.consent_path, "revoke", "subject", ["s0"], SCOPES)
    for path in ("in", "boxes"):
        shutil.rmtree(path)
    advice = re.search(r"`isolux withdraw (\S+) (--replay)`", run("status", "p").out)
    assert advice is not None
    assert _withdraw(monkeypatch, capsys, *advice.groups()).code == 0
    assert read_images(lab, include_excluded=True)["image_id"].to_list() == ["1", "2", "3"]
    assert "took their consent back" not in run("status", "p").out


def test_a_revocation_alone_takes_no_one_else_along(tmp_path: Path) -> None:
    """Sheets say who agreed; the ledger was made by the first who took it back."""
    project = annotated_project(tmp_path, 3)
    (tmp_path / "who.csv").write_text("subject_id,consent\ns0,form 1\ns1,form 2\ns2,form 3\n")
    ingest_sheet_photos(
        project,
        tmp_path / "photos.csv",
        photo_folder=tmp_path / "in",
        subject_sheet=tmp_path / "who.csv",
    )
    append_consent(project.consent_path, "revoke", "subject", ["s1"], SCOPES)
    apply_and_record_rules(project, only_rules=["consent"])
    assert read_images(project)["image_id"].to_list() == ["0", "2"]
    assert dict(tabulate_project_funnel(project).select("rule", "left").iter_rows()) == {
        "came in": 0,
        "consent": 1,
    }


def test_the_funnel_counts_a_revocation_once(lab: Project) -> None:
    append_consent(lab.consent_path, "revoke", "subject", ["s2"], SCOPES)
    before = tabulate_project_funnel(lab)
    apply_and_record_rules(lab, only_rules=["consent"])
    assert tabulate_project_funnel(lab).equals(before)
    assert before["remain"][-1] == N - 1


@pytest.mark.parametrize("step", ["push", "pull"])
def test_tasks_that_were_sent_before_are_taken_off_the_server(
    step: str, lab: Project, run: Run, fake: Fake
) -> None:
    """Of every stage; a person who agrees again is asked about again."""
    assert _push(run, lambda: None, fake) == N
    assert run("push", "p", "--stage", "boxes", "--server", fake.url).code == 0
    assert run("push", "p", "--stage", "skin_tone", "--server", fake.url).code == 0
    assert len(fake.tasks) == len(fake.files) == 2 * N  # boxes were drawn without a server
    for task in fake.tasks:
        fake.annotate(task, chosen(people=["1"]))
    append_consent(lab.consent_path, "revoke", "subject", ["s2"], SCOPES)
    ran = run(step, "p", "--stage", "count", "--server", fake.url)
    assert "2 tasks of photos or people that left the project were removed from" in ran.out
    assert len(fake.tasks) == len(fake.files) == 2 * (N - 1)
    run("pull", "p", "--stage", "count", "--server", fake.url)
    assert set(read_answer_rows(lab, "count")["image_id"]) == {"0", "1", "3"}
    run("grant", "p/consent.jsonl", "--who", "s2", "--scope", "evaluation", "--again")
    assert _push(run, lambda: None, fake) == 1
    assert run("status", "p").code == 0


def _withdraw(monkeypatch: Any, capsys: Any, *args: object) -> Ran:
    return command(monkeypatch, capsys, "withdraw", *args)


@pytest.mark.parametrize("has_ledger", [True, False])
def test_whoever_withdrew_is_not_brought_back(
    has_ledger: bool, lab: Project, run: Run, monkeypatch: Any, capsys: Any
) -> None:
    for name in ("boxes.csv", "boxes"):
        path = Path(name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not has_ledger:
        for file in (lab.consent_path, Path(f"{lab.consent_path}.key")):
            file.unlink()
        with open_write_transaction(
            lab.engine
        ) as connection:  # as of a project that never had a ledger
            connection.execute(sa.delete(settings).where(settings.c.name.contains("ledger")))
    shutil.copytree("in", "old")
    assert _withdraw(monkeypatch, capsys, "p", "--who", "s2").code == 0
    assert "s2" not in lab.consent_path.read_text()
    told = run("add", "p", "photos.csv", "--photos", "old")
    assert "1 photo left out: people in them took their consent back" in told.out
    assert read_images(lab, include_excluded=True).height == N - 1
    assert b"s2" not in (lab.folder / "project.sqlite").read_bytes()
    assert len(list((lab.folder / "photos").glob("*/*"))) == N - 1
    old = run("grant", "p/consent.jsonl", "--who", "s2", "--scope", "evaluation")
    assert "took back what is granted here" in old.plain
    run("grant", "p/consent.jsonl", "--who", "s2", "--scope", "evaluation", "--again")
    assert "1 photo came in" in run("add", "p", "photos.csv", "--photos", "old").out
    assert read_images(lab)["image_id"].to_list() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("scope", [(), ("--scope", "evaluation")])
def test_a_project_remembers_who_withdrew_by_another_ledger(
    scope: tuple[str, ...], lab: Project, run: Run, monkeypatch: Any, capsys: Any
) -> None:
    """Of two projects the ledger is named; both know the person from then on, and never by id."""
    create_or_open_project("q", curator="ada")
    append_consent("all.jsonl", "grant", "subject", [f"s{k}" for k in range(N)], SCOPES)
    done = _withdraw(monkeypatch, capsys, "p", "q", "--who", "s2", "--ledger", "all.jsonl", *scope)
    assert done.code == 0, done.plain
    for name in ("p", "q"):
        assert ("s2" in (Path(name) / "consent.jsonl").read_text()) is bool(scope)
        assert "1 photo left out" in run("add", name, "photos.csv", "--photos", "in").out
        assert read_images(open_project(name), include_excluded=True).height == N - 1


def test_a_subject_of_the_sheet_of_subjects_alone_stays_out(lab: Project, run: Run) -> None:
    append_consent(lab.consent_path, "revoke", "subject", ["s9"], SCOPES)
    Path("subjects.csv").write_text("subject_id,age\ns1,30\ns9,40\n")
    run("add", "p", "photos.csv", "--photos", "in", "--subjects", "subjects.csv")
    assert b"s9" not in (lab.folder / "project.sqlite").read_bytes()


def test_white_space_around_an_id_brings_no_one_back(lab: Project, run: Run) -> None:
    append_consent(lab.consent_path, "revoke", "subject", ["s9"], SCOPES)
    append_consent(lab.consent_path, "revoke", "copyright", ["h9"], SCOPES)
    shutil.copy("in/1.jpg", "in/9.jpg")
    Path("more.csv").write_text(
        "file,image_id,subject_id,copyright_holder\n"
        "9.jpg,a,s9 ,h1\n9.jpg,b,\u00a0s9,h1\n9.jpg,c,s1,h9\t\n9.jpg, d , s1 , h1 \n"
    )
    Path("who.csv").write_text("subject_id,age\n s9 ,40\ns1 ,30\n")
    told = run("add", "p", "more.csv", "--photos", "in", "--subjects", "who.csv")
    assert "3 photos left out" in told.out, told.plain
    assert b"s9" not in (lab.folder / "project.sqlite").read_bytes()
    photos = read_images(lab, include_excluded=True)["image_id"].to_list()
    assert photos == ["0", "1", "2", "3", "d"]
    assert read_people_in_photos(lab).filter(image_id="d")["subject_id"].to_list() == ["s1"]


def test_a_project_without_a_ledger_asks_no_one(tmp_path: Path, fake: Fake) -> None:
    project = annotated_project(tmp_path, 2)
    assert (
        plan_and_upload_tasks(
            project, "boxes", LabelStudioServer.from_url_with_environment_token(fake.url)
        ).n_sent
        == 2
    )
    fake.annotate(1, [*box("nurse", 10, 20, 30, 40), *box("nurse", 50, 20, 30, 40)])
    done = import_and_apply_server_answers(
        project, "boxes", LabelStudioServer.from_url_with_environment_token(fake.url)
    )
    assert done.notes == ()
    assert read_images(project).height == 2


def test_in_postgresql(tmp_path: Path, postgres: Postgres, fake: Fake) -> None:
    project = annotated_project(tmp_path, 3, database=postgres.address)
    append_consent(project.consent_path, "grant", "subject", ["s0", "s1", "s2"], SCOPES)
    server = LabelStudioServer.from_url_with_environment_token(fake.url)
    assert plan_and_upload_tasks(project, "boxes", server).n_sent == 3
    for task in fake.tasks:
        fake.annotate(task, [*box("nurse", 10, 20, 30, 40), *box("nurse", 50, 20, 30, 40)])
    append_consent(project.consent_path, "revoke", "subject", ["s1"], SCOPES)
    assert import_and_apply_server_answers(project, "boxes", server).n_new == 2
    assert read_exclusions_with_reasons(project)["rule"].to_list() == [
        "consent",
        "bystander",
        "bystander",
    ]
    lab = tmp_path / "p/consent.jsonl"
    lab.write_text(lab.read_text().replace('"revoke"', '"grant"'))
    with pytest.raises(TableError, match="this row was changed"):
        plan_and_upload_tasks(project, "boxes", server)
