"""Who withdrew is in no count, no table and no sentence; with them go the photos that show them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import polars as pl
import pytest

import isolux as library
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError, TableError
from isolux.core.info import DatasetInfo
from isolux.datasets import load
from isolux.io.consent import append_consent
from isolux.people.redaction import redact_ids
from isolux.people.sources import load_people_or_take_dataset
from isolux.people.withdrawal import remove_withdrawn_from_runs, remove_withdrawn_people
from isolux.people.withdrawal_lists import WithdrawnList, read_withdrawn_list
from tests.cli._run import isolux

INFO = DatasetInfo(title="Five faces", summary="Made up.", references=())


def five(**settings):
    """Three photos: anna0 and bert0 in the first, anna0 alone in the second, two others in 3."""
    return Dataset(
        name="five faces",
        info=INFO,
        instances=pl.DataFrame(
            {
                "instance_id": ["face-1", "face-2", "face-3", "face-4", "face-5"],
                "image_id": ["photo-1", "photo-1", "photo-2", "photo-3", "photo-3"],
                "subject_id": ["anna0", "bert0", "anna0", "carl0", None],
            }
        ),
        attributes=pl.DataFrame(
            [
                ("instance", "face-1", "glasses", "no"),
                ("instance", "face-4", "glasses", "yes"),
                ("instance", "face-5", "badge", "b77"),
                ("subject", "anna0", "tone", "7"),
                ("subject", "bert0", "tone", "5"),
                ("subject", "carl0", "tone", "3"),
                ("image", "photo-1", "light", "dim"),
                ("image", "photo-3", "light", "well"),
            ],
            schema=["unit_kind", "unit_id", "attribute", "value"],
            orient="row",
        ),
        images=pl.DataFrame({"image_id": ["photo-1", "photo-2", "photo-3"]}),
        notes=("face-1 has no eyes",),
        **settings,
    )


def test_a_subject_goes_with_every_photo_and_who_else_is_in_it():
    left = remove_withdrawn_people(five(), WithdrawnList(frozenset({"anna0"})))
    assert left.instances["instance_id"].to_list() == ["face-4", "face-5"]
    assert left.images["image_id"].to_list() == ["photo-3"]
    # bert0 has no other photo: of him nothing is left either.
    assert set(left.attributes["unit_id"]) == {"face-4", "face-5", "carl0", "photo-3"}
    assert left.notes == (
        "(withdrawn) has no eyes",
        "1 person withdrew; also left out: 2 photos and 1 other person in them.",
    )


@pytest.mark.parametrize(
    ("column", "who", "stays"),
    [
        ("subject_id", "carl0", ["face-1", "face-2", "face-3"]),
        ("instance_id", "face-3", ["face-1", "face-2", "face-4", "face-5"]),
        ("image_id", "photo-1", ["face-3", "face-4", "face-5"]),
        ("pass_id", "b77", ["face-1", "face-2", "face-3"]),
    ],
)
def test_any_id_can_be_listed(column, who, stays):
    people = five()
    named = pl.col("attribute").replace("badge", "pass_id")
    people = replace(people, attributes=people.attributes.with_columns(attribute=named))
    left = remove_withdrawn_people(people, WithdrawnList(frozenset({who}), column))
    assert left.instances["instance_id"].to_list() == stays


def test_an_id_that_names_no_one_stops_the_work_and_is_not_named():
    for listed in ({"zoe00", "carl0"}, {"zoe00"}):
        with pytest.raises(SpecError, match=r"1 of \d ids .* match nobody here") as caught:
            remove_withdrawn_people(five(), WithdrawnList(frozenset(listed)))
        assert "--allow-unmatched" in str(caught.value)
        assert "zoe00" not in str(caught.value)


def test_ids_of_nobody_are_counted_and_not_named_where_that_is_right():
    listed = WithdrawnList(frozenset({"zoe00", "carl0"}))
    left = remove_withdrawn_people(five(), listed, allow_unmatched=True)
    assert left.notes[-1].endswith("1 id of the list names nobody here.")
    assert "zoe00" not in left.notes[-1]
    listed = WithdrawnList(frozenset({"zoe00"}))
    nobody = remove_withdrawn_people(five(), listed, allow_unmatched=True)
    assert nobody.instances.height == 5
    assert nobody.notes[-1] == (
        "Of the people who withdrew, none is in the data. 1 id of the list names nobody here."
    )


@pytest.mark.parametrize(
    ("who", "stays"),
    [
        ("carl0", ["face-1", "face-2", "face-3"]),  # a subject
        ("face-3", ["face-1", "face-2", "face-4", "face-5"]),
        ("photo-1", ["face-3", "face-4", "face-5"]),
        ("v9", ["face-1", "face-2", "face-3"]),  # a video, which is what was sampled
        ("in/2.jpg", ["face-1", "face-2", "face-4", "face-5"]),  # a file
        ("2.jpg", ["face-1", "face-2", "face-4", "face-5"]),
        ("2", ["face-1", "face-2", "face-4", "face-5"]),
        ("p-77", ["face-1", "face-2", "face-3"]),  # an attribute that is an id by its name
    ],
)
def test_a_plain_list_is_looked_up_in_every_kind_of_id(who, stays):
    people = five()
    video = pl.Series("cluster_id", ["v1", "v1", "v2", "v9", "v9"])
    files = pl.Series("uri", ["in/1.jpg", "in/2.jpg", "in/3.jpg"])
    badge = people.attributes.with_columns(
        attribute=pl.col("attribute").replace("badge", "pass_id")
    )
    badge = badge.with_columns(value=pl.col("value").replace("b77", "p-77"))
    people = replace(
        people,
        instances=people.instances.with_columns(video),
        images=people.images.with_columns(files),
        attributes=badge,
    )
    left = remove_withdrawn_people(people, WithdrawnList(frozenset({who})))
    assert left.instances["instance_id"].to_list() == stays


def test_a_value_that_is_no_id_withdraws_no_one():
    with pytest.raises(SpecError, match="match nobody here"):
        remove_withdrawn_people(five(), WithdrawnList(frozenset({"dim"})))


def test_an_id_of_two_kinds_takes_both_and_says_so():
    people = five()
    named = people.instances.with_columns(
        subject_id=pl.col("subject_id").replace("carl0", "face-3")
    )
    left = remove_withdrawn_people(
        replace(people, instances=named), WithdrawnList(frozenset({"face-3"}))
    )  # fmt: skip
    assert left.instances["instance_id"].to_list() == ["face-1", "face-2"]
    assert (
        "1 id of the list of withdrawn people names different people as instance_id and as "
        "subject_id: all of them went" in left.notes[-1]
    )


def test_a_file_of_someone_who_withdrew_is_no_input_any_more():
    people = five(inputs={"/data/photo-2.json": "1f", "/data/photo-3.json": "2e"})
    left = remove_withdrawn_people(people, WithdrawnList(frozenset({"photo-2"})))
    assert dict(left.inputs) == {"/data/photo-3.json": "2e"}


def test_a_person_without_a_subject_is_not_taken_for_one():
    left = remove_withdrawn_people(five(), WithdrawnList(frozenset({"anna0"})))
    assert "face-5" in left.instances["instance_id"].to_list()


def test_a_column_that_is_not_there_is_refused():
    listed = WithdrawnList(frozenset({"h"}), "household_id", source="gone.csv")
    with pytest.raises(TableError, match=r"(?s)no.* column of ids.*'household_id'.*gone.csv") as no:
        remove_withdrawn_people(five(), listed)
    # What is expected is what would be taken: each of these names ids that the data hold.
    assert no.value.expected == (
        "one column of image_id, instance_id, subject_id; or id, of whatever kind"
    )


OWN = "person,subject,race,since\n"


@pytest.fixture
def faces(tmp_path):
    """Sixty subjects, two photos each; of a list's columns, person and subject are ids."""
    rows = [f"p{k},s{k // 2},{'AB'[k // 2 % 2]},2025" for k in range(120)]
    (tmp_path / "faces.csv").write_text(OWN + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path / "faces.csv"


@pytest.mark.parametrize(
    ("name", "text", "gone"),
    [
        ("g.csv", "person,since\np3,2026\n", {"p3"}),  # named by --id
        ("g.csv", "since,subject\n2026,s3\n", {"p6", "p7"}),  # named by --cluster
        ("g.csv", "subject\ns3\n", {"p6", "p7"}),
        ("g.jsonl", '{"person": "p3", "race": "B"}\n', {"p3"}),
        ("g.csv", "cluster_id,race\ns3,B\n", {"p6", "p7"}),
        ("g.csv", "instance_id,race\np3,B\n", {"p3"}),
        ("g.csv", "id,since\ns3,2026\n", {"p6", "p7"}),
    ],
)
def test_a_list_may_go_by_what_the_table_calls_its_ids(faces, name, text, gone):
    (faces.parent / name).write_text(text, encoding="utf-8")
    where = str(faces.parent / name)
    of_file = load_people_or_take_dataset(
        f"table:{faces}", id="person", cluster="subject", withdrawn=where
    )
    held = load("table", faces, id="person")
    in_memory = load_people_or_take_dataset(
        replace(held, clusters=None), cluster="subject", withdrawn=where
    )
    for left in (of_file, in_memory):
        stay = set(left.instances["instance_id"])
        assert stay == {f"p{k}" for k in range(120)} - gone


@pytest.mark.parametrize(
    "text",
    [
        "race\nA\n",  # an attribute is no id, also where it stands alone
        "race,since\nA,2025\n",
        "subject_id\ns3\n",  # these data have subjects, and call them otherwise
        "s3\ns4\n",  # no row of names
        "person,subject\np3,s3\n",  # two, which may name different people
    ],
)
def test_no_other_column_of_a_list_is_taken_for_ids(monkeypatch, capsys, faces, text):
    gone = faces.parent / "gone.csv"
    gone.write_text(text, encoding="utf-8")
    ran = isolux(
        monkeypatch, capsys, "describe", f"table:{faces}", "--id", "person", "--cluster",
        "subject", "--by", "race", "--withdrawn", gone,
    )  # fmt: skip
    assert ran.code == 2
    assert "has not one column of ids that these data know" in ran.plain
    assert f"where: {gone}" in ran.plain
    assert "cluster_id, image_id, instance_id, person, subject; or id" in ran.plain
    assert "s3" not in ran.err


def test_a_list_for_runs_goes_by_what_they_call_their_ids(faces):
    ask = {"id": "person", "cluster": "subject", "by": ["race"], "replicates": 100}
    people = pl.read_csv(faces)
    said = people.select(id="person", label=pl.Series(["x", "y"] * 60))
    said.write_csv(faces.parent / "answers.csv")
    people.with_columns(truth=pl.lit("x")).write_csv(faces)
    run = library.audit(
        f"table:{faces}", predictions=f"{faces.parent}/answers.csv", target="truth", **ask
    ).run
    gone = faces.parent / "gone.csv"
    for text, n in (("person,since\np3,1\n", 119), ("subject,since\ns3,1\n", 118)):
        gone.write_text(text, encoding="utf-8")
        (left,) = remove_withdrawn_from_runs([run], read_withdrawn_list(gone))
        assert left.scores["unit_id"].n_unique() == n
    gone.write_text("subject_id,race\ns3,B\n", encoding="utf-8")  # its clusters are subjects
    (left,) = remove_withdrawn_from_runs([run], read_withdrawn_list(gone))
    assert left.scores["unit_id"].n_unique() == 118
    # An attribute, and an id that the run's people do not have though one of their own is alike.
    for text in ("race\nA\n", "household_id\np3\n", "subject_id\ns3\n"):
        gone.write_text(text, encoding="utf-8")
        alone = replace(run, record={**run.record, "clusters": {}})
        alone = replace(alone, attributes=alone.attributes.filter(attribute="race"))
        with pytest.raises(TableError, match=r"(?s)column of ids that these data know.*gone\.csv"):
            remove_withdrawn_from_runs([alone], read_withdrawn_list(gone))
    with pytest.raises(TableError, match="column of ids that these data know"):
        remove_withdrawn_from_runs(
            [run, alone], read_withdrawn_list(gone)
        )  # the second would keep the person


def test_nobody_left_is_refused():
    with pytest.raises(SpecError, match="nobody is left"):
        remove_withdrawn_people(five(), WithdrawnList(frozenset({"anna0", "carl0"})))


def test_the_input_stays_as_it_was():
    before = five()
    remove_withdrawn_people(before, WithdrawnList(frozenset({"anna0"})))
    assert before.instances.height == 5
    assert before.withdrawn_ids == frozenset()


@pytest.mark.parametrize(
    ("name", "text", "ids", "column"),
    [
        ("a.txt", "\ufeff s1 \n\n# gone in May\ns2\ns1\n", {"s1", "s2"}, None),
        ("a.csv", "since,subject_id\n2025,s1\n2026,s2\n", {"s1", "s2"}, "subject_id"),
        ("a.csv", "subject\ns1\n", {"s1"}, None),  # whether these are ids, the data say
        ("a.jsonl", '{"image_id": "7"}\n', {"7"}, "image_id"),
        ("a.jsonl", '{"image_id": -0.0}\n{"image_id": 0.5}\n', {"0.0", "0.5"}, "image_id"),
        ("a.txt", "-0.0\n0.5\n", {"0.0", "0.5"}, None),
    ],
)
def test_lists_are_read(tmp_path, name, text, ids, column):
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_withdrawn_list(tmp_path / name)
    assert (set(found.ids), found.column) == (ids, column)


@pytest.mark.parametrize(
    ("name", "content", "error", "says"),
    [
        ("a.txt", b"# nobody\n\n", FileError, "is empty"),
        ("a.txt", b"\xff\xfe\x00", FileError, "is not text"),
        ("a.csv", b"subject_id,image_id\n1,2\n", TableError, "found: 2 of them"),
        ("a.csv", b'subject_id\n""\n', TableError, "have no id"),
    ],
)
def test_a_list_that_cannot_be_read_is_named(tmp_path, name, content, error, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=says) as caught:
        read_withdrawn_list(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_missing_list_stops_everything(tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        read_withdrawn_list(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("note", "left"),
    [
        ("12 of 40 people", "12 of 40 people"),
        ("no face in image 12", "no face in image (withdrawn)"),
        ("no face in images 7, 12, 9", "no face in images 7, (withdrawn), 9"),
        ("no box of '12' was read", "no box of '(withdrawn)' was read"),
        ("val/12.jpg is damaged", "val/(withdrawn).jpg is damaged"),
        ("12.png is damaged; 12.5 % of all", "(withdrawn).png is damaged; 12.5 % of all"),
        ("s7 and bo have no eyes", "(withdrawn) and (withdrawn) have no eyes"),
        ("112 rows, boxes s77 and bob", "112 rows, boxes s77 and bob"),
    ],
)
def test_a_short_id_is_blotted_where_it_is_an_id(note, left):
    assert redact_ids([note], frozenset({"12", "s7", "bo"})) == [left]


def _people(path):
    """400 people with four photos each; the answers are right for three of four."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "subject", "race", "truth", "answer"])
        for person in range(400):
            for photo in range(4):
                race = "AB"[person % 2]
                rows.writerow(
                    [f"p{person:03}-{photo}", f"who{person:03}", race, "x", "xxxy"[photo]]
                )


def test_a_ledger_whose_people_are_gone_from_the_data_is_not_told_as_nobody_withdrew(
    tmp_path, monkeypatch, capsys
):
    from isolux.io.consent import SCOPES, compute_keyed_hash, erase_people, read_ledger_key
    from isolux.io.consent import revoke_consent as revoke

    ledger = tmp_path / "consent.jsonl"
    revoke(ledger, "subject", ["who007"], [*SCOPES])
    erase_people(ledger, [compute_keyed_hash("subject", "who007", read_ledger_key(ledger))])
    (tmp_path / "people.csv").write_text("id,subject_id,race\np1,who001,A\np2,who002,B\n")
    given = ("describe", f"table:{tmp_path / 'people.csv'}", "--withdrawn", str(ledger))
    done = isolux(monkeypatch, capsys, *given)
    assert done.code == 0, done.err
    said = " ".join((done.out + done.err).split())
    assert "Of the people who withdrew, none is in the data." in said
    assert "0 people" not in said


def test_an_audit_records_how_many_and_not_whom(tmp_path, monkeypatch, capsys):
    _people(tmp_path / "people.csv")
    (tmp_path / "gone.csv").write_text("subject\nwho007\nwho123\nwho999\n")
    (tmp_path / "answers.csv").write_text(
        "id,answer\n" + "".join(f"p{i:03}-{j},x\n" for i in range(400) for j in range(4))
    )
    out = tmp_path / "run"
    done = isolux(
        monkeypatch, capsys,
        "audit", f"table:{tmp_path / 'people.csv'}", "--predictions",
        str(tmp_path / "answers.csv"), "--target", "truth", "--prediction-column", "answer",
        "--by", "race", "--cluster", "subject", "--withdrawn", str(tmp_path / "gone.csv"),
        "--allow-unmatched", "--replicates", "200", "--out", str(out),
    )  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads((out / "audit.json").read_text())
    assert any(
        note == "8 people withdrew; also left out: 8 photos. 1 id of the list names nobody here."
        for note in record["notes"]
    )
    assert not any("no person in the dataset" in note for note in record["notes"])
    for file in out.rglob("*"):
        if file.suffix in (".json", ".html", ".csv"):
            text = file.read_text()
            assert "who007" not in text
            assert "p123-" not in text
    scores = pl.read_parquet(next(out.rglob("scores*.parquet")))
    assert scores["unit_id"].n_unique() == 4 * 398
    assert not scores["cluster_id"].is_in(["who007", "who123"]).any()


def test_a_plain_list_of_subjects_withdraws_them_and_not_nobody(tmp_path, monkeypatch, capsys):
    _people(tmp_path / "people.csv")
    (tmp_path / "gone.txt").write_text("who007\nwho123\n")
    page = tmp_path / "page.html"
    for cluster in ((), ("--cluster", "subject")):
        done = isolux(
            monkeypatch, capsys, "describe", f"table:{tmp_path / 'people.csv'}", *cluster,
            "--by", "race", "--withdrawn", tmp_path / "gone.txt", "--out", page,
        )  # fmt: skip
        assert done.code == 0, done.err
        assert "8 people withdrew; also left out: 8 photos." in " ".join(done.out.split())
    assert "who007" not in page.read_text()


def test_answers_about_others_are_not_lost_with_an_id_of_another_kind(
    tmp_path, monkeypatch, capsys
):  # fmt: skip
    """Subject 7 withdrew; photo 7 is of somebody else, whose answer still counts."""
    rows = "".join(f"{i},{(i + 50) % 100},{'AB'[i % 2]},x,{'xy'[i % 3 == 0]}\n" for i in range(100))
    (tmp_path / "people.csv").write_text(f"id,subject_id,race,truth,answer\n{rows}")
    (tmp_path / "gone.csv").write_text("subject_id\n7\n")
    done = isolux(
        monkeypatch, capsys, "audit", f"table:{tmp_path}/people.csv", "--target", "truth",
        "--predictions", f"{tmp_path}/people.csv", "--prediction-column", "answer", "--by", "race",
        "--withdrawn", tmp_path / "gone.csv", "--out", tmp_path / "run", "--replicates", "100",
        "--cluster", "subject_id", "--metric", "accuracy",
    )  # fmt: skip
    assert done.code == 0, done.err
    scores = pl.read_parquet(tmp_path / "run" / "scores.parquet")
    assert scores["unit_id"].n_unique() == 99
    assert scores.filter(unit_id="7")["value"].to_list() == [1.0]
    assert scores.filter(unit_id="57").is_empty()


def test_a_sample_never_draws_them(tmp_path, monkeypatch, capsys):
    _people(tmp_path / "people.csv")
    (tmp_path / "gone.txt").write_text("".join(f"p{i:03}-0\n" for i in range(399)))
    done = isolux(
        monkeypatch, capsys,
        "sample", f"table:{tmp_path / 'people.csv'}", "--balance", "race", "--per-cell", "500",
        "--withdrawn", str(tmp_path / "gone.txt"), "--out", str(tmp_path / "ids.csv"),
    )  # fmt: skip
    assert done.code == 0, done.err
    drawn = pl.read_csv(tmp_path / "ids.csv")["instance_id"].to_list()
    assert "p399-0" in drawn or len(drawn) == 1000
    assert not {f"p{i:03}-0" for i in range(399)} & set(drawn)


@pytest.mark.parametrize("text", ["id\nface-4\n", "id,date\nface-4,2026-05-01\n", "ids\nphoto-3\n"])
def test_a_column_called_id_says_no_more_than_a_plain_list(tmp_path, text):
    path = tmp_path / "gone.csv"
    path.write_text(text, encoding="utf-8")
    listed = read_withdrawn_list(path)
    assert listed.column is None
    left = remove_withdrawn_people(five(), listed)
    assert set(left.instances["instance_id"]) == {"face-1", "face-2", "face-3"}


def test_training_asks_a_ledger_about_training(tmp_path):
    """One revoked training, one evaluation, one never agreed to training, one is not in it."""
    ledger = tmp_path / "consent.jsonl"
    append_consent(ledger, "grant", "subject", ["s1", "s2", "s4"], ["evaluation", "training"])
    append_consent(ledger, "grant", "subject", ["s3", "other"], ["evaluation"])
    append_consent(ledger, "revoke", "subject", ["s1"], ["training"])
    append_consent(ledger, "revoke", "subject", ["s2"], ["evaluation"])
    people = tmp_path / "people.csv"
    people.write_text("id,subject_id,light\n" + "".join(f"{k},s{k},{k % 2}\n" for k in range(1, 7)))
    drawn = {}
    for purpose in ("evaluation", "training"):
        dataset = load_people_or_take_dataset(
            f"table:{people}", withdrawn=str(ledger), purpose=purpose
        )
        drawn[purpose] = dataset.instances["subject_id"].to_list()
    assert drawn["evaluation"] == ["s1", "s3", "s4", "s5", "s6"]
    assert drawn["training"] == ["s4", "s5", "s6"]
    assert (
        "1 id in the ledger never agreed to training: left out, like withdrawn people."
        in dataset.notes
    )
