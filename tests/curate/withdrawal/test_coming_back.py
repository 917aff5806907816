"""What reaches further than files: the server, annotators, backups that are restored, samples."""

from __future__ import annotations

import itertools
import json
import os
import shutil

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa

from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.io.consent import append_consent
from isolux_curate.annotation.exchange import import_and_apply_server_answers, plan_and_upload_tasks
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.api.anonymise import anonymise
from isolux_curate.api.withdraw import withdraw, withdraw_reappeared_people
from isolux_curate.project.database import open_read_transaction
from isolux_curate.project.folder import open_project, verify_journal_and_seals
from isolux_curate.project.queries import read_images
from isolux_curate.project.tables import META
from isolux_curate.project.verdicts import record_changed_verdicts
from isolux_curate.withdrawal.replacements import match_rows_at_least_distance
from tests.cli._run import isolux
from tests.curate._postgres import postgres as postgres  # noqa: PLC0414 (a fixture)
from tests.curate._projects import project_of, refused
from tests.curate.annotation._fake import TOKEN
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.withdrawal._lab import lab_of
from tests.curate.withdrawal._search import hits

WHO = "s0003"
FULL = os.environ.get("ISOLUX_LAWS") == "full"
GOOD = [{"from_name": "people", "to_name": "image", "type": "choices",
         "value": {"choices": ["1"]}}]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return lab_of(tmp_path_factory.mktemp("lab") / "lab", 6)


@pytest.fixture
def lab(made, tmp_path):
    root = tmp_path / "lab"
    shutil.copytree(made.root, root)
    return root


def rows_of(project, table):
    with open_read_transaction(project.engine) as connection:
        return connection.execute(sa.select(META.tables[table])).mappings().all()


@pytest.fixture
def pushed(lab, fake, monkeypatch):
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", TOKEN)
    project = open_project(lab / "faces", curator="ada")
    plan_and_upload_tasks(project, "count", LabelStudioServer(fake.url, TOKEN))
    for number in list(fake.tasks):
        fake.annotate(number, GOOD, user=1 + number % 2)
    import_and_apply_server_answers(project, "count", LabelStudioServer(fake.url, TOKEN))
    return project


def test_tasks_answers_and_pictures_on_the_server_go(made, lab, pushed, fake):
    mine = {r["task_id"] for r in rows_of(pushed, "tasks") if r["image_id"] in made.of(WHO)}
    assert len(mine) == 4
    with pytest.raises(SpecError, match="annotation server holds tasks"):
        withdraw([lab], who=[WHO])
    done = withdraw([lab], server=fake.url)  # it goes on
    assert done.receipt is not None
    left = json.dumps([list(fake.tasks.values()), sorted(fake.files)])
    assert not any(task in left for task in mine)
    assert len(fake.tasks) == len(fake.files) == 20
    assert not any(r["task_id"] in mine for r in rows_of(pushed, "annotations"))
    assert verify_journal_and_seals(pushed) > 0
    assert hits(lab, [WHO, *made.of(WHO), *mine], []) == []
    import_and_apply_server_answers(pushed, "count", LabelStudioServer(fake.url, TOKEN))
    assert len(rows_of(pushed, "annotations")) == 20


def test_a_picture_that_the_server_keeps_stops_it(lab, pushed, fake, monkeypatch):
    monkeypatch.setattr(fake, "_forget", lambda *_: {})
    with pytest.raises(FileError, match="pictures are still on the annotation server"):
        withdraw([lab], who=[WHO], server=fake.url)
    monkeypatch.undo()
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", TOKEN)
    assert withdraw([lab], server=fake.url).receipt is not None


def test_a_server_that_fails_in_the_middle_is_gone_on_with(lab, pushed, fake):
    deletes = itertools.count()

    def fault(method, _path):
        return 500 if method == "DELETE" and next(deletes) == 2 else None

    fake.faults += [fault] * 40
    with pytest.raises(FileError, match="could not do what was requested"):
        withdraw([lab], who=[WHO], server=fake.url)
    fake.faults.clear()
    done = withdraw([lab], server=fake.url)
    assert [one.n for one in done.artefacts if one.what == "tasks and pictures"] == [4]
    assert len(fake.tasks) == 20


def test_an_annotator_takes_their_own_answers(lab, pushed, fake):
    append_consent(pushed.consent_path, "grant", "annotator", ["user-1", "user-2"], ["evaluation"])
    withdraw([lab], who=["user-2"], kind="annotator", server=fake.url)
    assert {r["annotator_id"] for r in rows_of(pushed, "annotations")} == {"user-1"}
    assert [r["annotator_id"] for r in rows_of(pushed, "annotators")] == ["user-1"]
    held = [one["completed_by"] for task in fake.tasks.values() for one in task["annotations"]]
    assert set(held) == {1}
    assert read_images(pushed).height == 24  # no photo goes
    asked = {r["status"] for r in rows_of(pushed, "tasks")}
    assert asked == {"done", "redo"}
    assert verify_journal_and_seals(pushed) > 0
    assert hits(lab, ["user-2"], []) == []


def test_a_backup_that_is_restored_is_withdrawn_again(made, lab, tmp_path):
    words = [WHO, *made.of(WHO)]
    backup = tmp_path / "backup"
    shutil.copytree(lab, backup)
    withdraw([lab], who=[WHO])
    safe = tmp_path / "safe"  # what is kept apart from backups of the data
    safe.mkdir()
    for name in ("consent.jsonl", "consent.jsonl.key"):
        shutil.copy2(lab / "faces" / name, safe)
    shutil.copytree(lab / "faces" / "withdrawals", safe / "withdrawals")
    restored = tmp_path / "again" / "lab"
    shutil.copytree(backup, restored)
    assert hits(restored, words, []) != []
    (done,) = withdraw_reappeared_people([restored], ledger=str(safe / "consent.jsonl"))
    assert done.receipt is not None, (done.remaining, done.unsearchable)
    assert hits(restored, words, list(made.pixels(made.of(WHO)).values())) == []
    assert withdraw_reappeared_people([restored], ledger=str(safe / "consent.jsonl")) == []
    # A run alone knows no subject: receipts know whose units they were.
    shutil.copytree(backup / "runs", tmp_path / "runs")
    (done,) = withdraw_reappeared_people([tmp_path / "runs"], ledger=str(safe / "consent.jsonl"))
    assert done.receipt is not None
    assert hits(tmp_path / "runs", words, []) == []


def test_a_publication_that_is_restored_alone_is_known_by_its_key(
    lab, made, tmp_path, monkeypatch, capsys
):
    """Consent to publication alone was taken back: the ledger still names who they are."""
    people, out = lab / "inbox" / "people.csv", lab / "anonymous"
    made.photos.select("subject_id", "file").write_csv(people)
    key, ledger = tmp_path / "names.key", str(lab / "faces" / "consent.jsonl")
    anonymise(people, out=out, key=key, id=["subject_id"], photos=lab / "inbox")
    before = pl.read_csv(out / "people.csv").height
    append_consent(lab / "faces" / "consent.jsonl", "revoke", "subject", [WHO], ["publication"])
    with pytest.raises(SpecError, match="--published-key FILE"):
        withdraw_reappeared_people([out], ledger=ledger, scope=["publication"])
    told = isolux(
        monkeypatch, capsys, "withdraw", out, "--replay", "--ledger", ledger, "--scope",
        "publication", "--published-key", key,
    )  # fmt: skip
    assert told.code == 0, told.err
    assert pl.read_csv(out / "people.csv").height == before - len(made.of(WHO))


def test_who_consented_again_is_not_taken_out_again(lab, tmp_path):
    backup = tmp_path / "backup"
    shutil.copytree(lab, backup)
    withdraw([lab], who=[WHO])
    ledger = lab / "faces" / "consent.jsonl"
    append_consent(ledger, "grant", "subject", [WHO], ["evaluation", "training", "publication"])
    assert withdraw_reappeared_people([backup / "inbox"], ledger=str(ledger)) == []


def test_the_closest_comes_in_their_place(lab, tmp_path):
    """By hand: pronoun first, so 'c' (she, other age) before 'b' (he, all else the same)."""
    sample = lab / "sample.csv"
    columns = "subject_id,pronoun,age_group,ancestry,people\n"
    sample.write_text(columns + f"{WHO},she,30-39,Africa;Asia,1\ns0001,he,18-29,Asia,2\n")
    pool = tmp_path / "pool.csv"
    pool.write_text(
        columns + f"b,he,30-39,Africa;Asia,1\nc,she,18-29,Asia,9\n{WHO},she,30-39,Africa;Asia,1\n"
        "s0001,she,30-39,Africa;Asia,1\nd,she,18-29,Asia,2\n"
    )
    done = withdraw([lab], who=[WHO], sample=str(sample), pool=str(pool), complexity=["people"])
    assert sample.read_text().splitlines()[1:] == ["s0001,he,18-29,Asia,2", "d,she,18-29,Asia,2"]
    told = json.loads(done.receipt.read_text())["replaced"]
    assert [(one["pronoun"], one["age_group"], one["ancestry"]) for one in told] == [(0, 1, 0.5)]
    withdraw([lab], who=["s0001"])
    with pytest.raises(SpecError, match="go together"):
        withdraw([lab], who=["s0002"], sample=str(sample))
    with pytest.raises(UnknownNameError, match="pronouns"):
        withdraw([lab], who=["s0002"], sample=str(sample), pool=str(pool), match=["pronouns"])


def test_several_are_replaced_by_what_is_best_together():
    """An earlier key is never given up for later ones: against all assignments, 60 times."""
    rng = np.random.default_rng(0)
    keys = ("pronoun", "age_group", "ancestry")
    for _ in range(60):
        gone, pool = (
            pl.DataFrame({k: rng.choice(["a", "b", "a;b"], n) for k in keys}
                         | {"people": rng.integers(1, 9, n)})
            for n in (3, 5)
        )  # fmt: skip
        found = match_rows_at_least_distance(gone, pool, number_columns=["people"])
        assert found["pool"].n_unique() == 3
        spread = np.concatenate([gone["people"], pool["people"]]).std() or 1.0

        def cost(order, gone=gone, pool=pool, spread=spread):
            parts = []
            for key in keys:
                sets = [(set(gone[key][i].split(";")), set(pool[key][j].split(";")))
                        for i, j in enumerate(order)]  # fmt: skip
                parts.append(round(sum(1 - len(a & b) / len(a | b) for a, b in sets), 6))
            hard = sum(abs(gone["people"][i] - pool["people"][j]) for i, j in enumerate(order))
            return (*parts, hard / spread)

        best = min(cost(order) for order in itertools.permutations(range(5), 3))
        mine = cost(found.sort("gone")["pool"].to_list())
        assert mine[:3] == best[:3]
        assert mine[3] <= best[3] + 0.05


def kept_statistics(project):
    with open_read_transaction(project.engine) as connection:
        query = "SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats"
        return str(connection.execute(sa.text(f"{query} WHERE schemaname = 'public'")).all())


def test_a_project_in_postgresql(tmp_path, postgres):
    people = {"i1": "s-17", "i2": "s-18", "i3": "s-18"}
    project = project_of(
        tmp_path / "p", list(people), list(people.values()), database=postgres.address
    )
    record_changed_verdicts(
        project, "review", "ada", refused({"i1": "Of s-17."}), examined_units=list(people)
    )
    append_consent(project.consent_path, "grant", "subject", ["s-17", "s-18"], ["evaluation"])
    with project.engine.connect() as connection:
        connection.execute(sa.text("ANALYZE"))
        connection.commit()
    assert "s-17" in kept_statistics(project)
    assert withdraw([tmp_path / "p"], who=["s-17"]).receipt is not None
    assert "s-17" not in kept_statistics(project)
    assert "s-18" in kept_statistics(project)
    assert [row["subject_id"] for row in rows_of(project, "subjects")] == ["s-18"]
    assert read_images(project)["image_id"].to_list() == ["i2", "i3"]
    assert verify_journal_and_seals(project) > 0
    dumped = b"".join(p.read_bytes() for p in (postgres.folder / "data/base").rglob("*")
                      if p.is_file())  # fmt: skip
    assert b"s-18" in dumped
    assert b"s-17" not in dumped
    assert withdraw([tmp_path / "p"], who=["s-18"]).receipt is not None  # tables are empty now
    assert "s-18" not in kept_statistics(project)


ODD = ["1", "11", "a", "é", "table", "subject_id", "s/1", "day", "2024", "x y", "a_0", "a_0_0"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    return lab_of(tmp_path_factory.mktemp("odd") / "lab", len(ODD), names=lambda k: ODD[k])


@pytest.mark.parametrize("who", ["1", "a", "s/1", "a_0"] if not FULL else ODD)
def test_ids_that_could_be_anything_take_no_one_else_along(odd, tmp_path, who):
    """Photos of a_0 are called a_0_0 as someone else is, 1 is a part of 11 and a number, …."""
    root = tmp_path / "lab"
    shutil.copytree(odd.root, root)
    mine = odd.of(who)
    done = withdraw([root], who=[who])
    assert done.receipt is not None, (done.remaining, done.unsearchable)
    stay = sorted(set(odd.photos["image_id"]) - set(mine))
    held = {
        "project": read_images(open_project(root / "faces"))["image_id"].to_list(),
        "rows": pl.read_csv(root / "inbox/photos.csv", infer_schema=False)["image_id"].to_list(),
        "crops": pl.read_csv(root / "crops/crops.csv", infer_schema=False)["image_id"].to_list(),
        "lines": pl.read_ndjson(root / "public/people.jsonl")["image_id"].to_list(),
        "units": [one[:-2] for one in
                  pl.read_parquet(root / "answers/predictions.parquet")["instance_id"]],
        "scores": [one[:-2] for one in
                   pl.read_parquet(root / "runs/light/scores.parquet")["unit_id"].unique()],
        "photos": [one.stem for one in (root / "public/photos").iterdir()],
        "cut out": [one.name.rsplit("-", 2)[0] for one in (root / "crops/crops").iterdir()],
        "vectors": [one[:-2] for one in np.load(root / "answers/embeddings.npz")["instance_id"]],
    }  # fmt: skip
    for name, left in held.items():
        assert sorted(set(left)) == stay, name
    assert (root / "runs/light/report.html").exists()
