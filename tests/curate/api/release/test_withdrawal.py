"""Someone withdraws from a project and from what was published of it under a key."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError
from isolux.datasets import load
from isolux.io.consent import append_consent
from isolux.io.hashing import sha256_file
from isolux_curate.api.withdraw import search_folders_for_people, withdraw
from isolux_curate.project.folder import open_project, verify_journal_and_seals
from isolux_curate.project.queries import read_images
from isolux_curate.project.verdicts import record_changed_verdicts
from isolux_curate.withdrawal.workflow import WithdrawalPreview
from tests.cli._run import isolux as run
from tests.curate._projects import refused
from tests.curate.api.release._projects import project_to_publish, published
from tests.curate.withdrawal._search import hits


def test_a_publication_loses_them_and_can_be_read_as_before(tmp_path: Path) -> None:
    project = project_to_publish(tmp_path)
    published(tmp_path, project)
    out = tmp_path / "out"
    before = pl.read_csv(out / "people.csv", infer_schema=False)
    # The photos of this project are all one picture, so that others look like theirs.
    done = withdraw([tmp_path], who=["s17"], ledger=str(project.consent_path),
                    published_key=[str(tmp_path / "key")], keep_similar_images=True)  # fmt: skip
    assert done.receipt is not None, (done.remaining, done.unsearchable)
    after = pl.read_csv(out / "people.csv", infer_schema=False)
    gone = before.join(after, on="instance_id", how="anti")
    assert (before.height, after.height, gone.height) == (37, 36, 1)
    assert len(list((out / "photos").iterdir())) == 36
    assert load("curated", out).instances.height == 36
    objects = json.loads((out / "objects.json").read_text())
    assert len(objects["images"]) == len(objects["annotations"]) == 36
    words = [gone[c][0] for c in ("subject_id", "image_id", "instance_id")]
    assert hits(tmp_path, ["s17", *words], []) == []
    manifest = json.loads((out / "publish.json").read_text())["files"]
    assert set(manifest) == {p.relative_to(out).as_posix() for p in out.rglob("*")
                             if p.is_file() and p.name != "publish.json"}  # fmt: skip
    assert all(sha256_file(out / name) == told for name, told in manifest.items())
    left = read_images(project, include_excluded=True)["image_id"].to_list()
    assert sorted(map(int, left)) == [k for k in range(40) if k != 17]
    assert verify_journal_and_seals(project) > 0


def numbers_in(text: str) -> set[int]:
    words = re.findall(r"(?<![\w.])\d[\d,]*(?![\w.])", text)
    return {int(word.replace(",", "")) for word in words}


def test_no_table_or_document_of_the_folder_counts_them_any_more(folder: Path) -> None:
    """37 people of the documents less 36 rows would be their age group, country and tone."""
    out, key = folder / "out", str(folder / "key")
    before = {p.name: p.read_text() for p in out.iterdir() if p.is_file()}
    assert all(37 in numbers_in(before[f"{name}.md"]) for name in ("data_card", "datasheet"))
    (out / "README.txt").write_text("Ours, and not of isolux.\n")
    looked = withdraw([out], who=["s17"], ledger=str(folder / "p" / "consent.jsonl"),
                      scope=["publication"], published_key=[key], dry_run=True)  # fmt: skip
    assert isinstance(looked, WithdrawalPreview)
    done = withdraw([out], who=["s17"], ledger=str(folder / "p" / "consent.jsonl"),
                    scope=["publication"], published_key=[key],
                    keep_similar_images=True)  # fmt: skip
    assert done.receipt is not None
    assert any("counts and documents" in note for note in done.notes)
    rows = {"answers.csv", "dataset.json", "objects.json", "people.csv", "publish.json"}
    assert {p.name for p in out.iterdir() if p.is_file()} == rows | {"README.txt"}
    assert "README.txt" not in json.loads((out / "publish.json").read_text())["files"]
    deleted = {f"out/{name}" for name in before.keys() - rows}
    for artefacts in (looked.artefacts, done.artefacts):
        assert deleted <= {one.where for one in artefacts if one.done == "deleted"}
    people = pl.read_csv(out / "people.csv", infer_schema=False)
    manifest = json.loads((out / "publish.json").read_text())
    assert [manifest[n] for n in ("photos", "people", "subjects")] == [36, people.height, 36]
    assert json.loads((out / "dataset.json").read_text())["splits"] == {"test": 36}
    assert load("curated", out).instances.height == 36


def test_publishing_again_counts_the_rows_that_are_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project, photos = open_project(folder / "p"), [str(k) for k in range(40)]
    looked = refused({"1": "too small"})
    record_changed_verdicts(project, "specifications", "size", looked, examined_units=photos)
    done = withdraw([folder / "out", folder / "p"], who=["s17"], keep_similar_images=True,
                    published_key=[str(folder / "key")])  # fmt: skip
    assert done.receipt is not None, (done.remaining, done.unsearchable)
    settings = folder / "p" / "project.yaml"
    settings.write_text(settings.read_text() + "publish: {publish_min: 3}\n")
    flags = ("--attribute", "age_group", "--attribute", "country", "--overwrite")
    again = run(monkeypatch, capsys, "curate", "publish", folder / "p", "--out", folder / "out",
                "--key", folder / "key", *flags)  # fmt: skip
    assert again.code == 0, again.err
    people = pl.read_csv(folder / "out" / "people.csv", infer_schema=False)
    told = pl.read_csv(folder / "out" / "composition.csv", infer_schema=False)
    told = told.with_columns(pl.col("people").cast(pl.UInt32))
    for attribute in ("age_group", "country"):
        counts = told.filter(attribute=attribute).select("group", "people")
        assert dict(counts.rows()) == dict(people[attribute].value_counts().rows())
    for name in ("data_card", "datasheet"):
        text = (folder / "out" / f"{name}.md").read_text()
        assert "36 photos of 36 subjects" in text
        assert not {37, 40} & numbers_in(text)
    assert "Rule of intake size: " in text


def test_killed_before_the_documents_are_gone_it_takes_them_out_when_given_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    settings = {"ledger": str(folder / "p" / "consent.jsonl"), "scope": ["publication"],
                "published_key": [str(folder / "key")], "keep_similar_images": True}  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr("isolux_curate.withdrawal.published_folders.format_release_manifest", stop)
        with pytest.raises(KeyboardInterrupt):
            withdraw([folder / "out"], who=["s17"], **settings)
    done = withdraw([folder / "out"], **settings)
    assert done.receipt is not None
    assert not list((folder / "out").glob("*.md"))
    assert json.loads((folder / "out" / "publish.json").read_text())["people"] == 36


def test_an_archive_of_a_published_folder_is_named(folder: Path) -> None:
    shutil.make_archive(str(folder / "held" / "out"), "zip", folder / "out")
    done = withdraw([folder / "held", folder / "p"], who=["s17"], keep_similar_images=True,
                    published_key=[str(folder / "key")])  # fmt: skip
    assert done.receipt is None
    assert [(where, "delete it" in why) for where, why in done.unsearchable] == [
        ("held/out.zip", True)
    ]
    (folder / "held" / "out.zip").unlink()
    assert withdraw([folder / "held", folder / "p"], keep_similar_images=True).receipt is not None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Publish a project, and audit what was published in two ways."""
    folder = tmp_path_factory.mktemp("published")
    published(folder, project_to_publish(folder))
    people = pl.read_csv(folder / "out" / "people.csv", infer_schema=False)
    people.select("instance_id", label=pl.lit("young")).write_csv(folder / "said.csv")
    for name, data in (("run", "curated:{}/out"), ("other", "table:{}/out/people.csv")):
        isolux.audit(
            data.format(folder), task="classification", predictions=str(folder / "said.csv"),
            target="age_group", metric="accuracy", by="country", replicates=100,
        ).report(folder / name)  # fmt: skip
    (folder / "wrong.key").write_text("ab" * 32 + "\n")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "made"))


def documented(folder: Path, *more: object) -> tuple[object, ...]:
    ledger = folder / "p" / "consent.jsonl"
    return ("--who", "s17", "--scope", "publication", "--ledger", ledger, *more)


def files(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def older(folder: Path) -> None:
    """Leave out what older publications do not say: under which key ids were replaced."""
    path = folder / "out" / "dataset.json"
    told = json.loads(path.read_text())
    told.pop("pseudonym_key_mark", None)
    path.write_text(json.dumps(told))


@pytest.mark.parametrize("is_old", [False, True])
def test_the_documented_command_finds_them_by_the_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_old: bool
) -> None:
    if is_old:
        older(folder)
    done = run(monkeypatch, capsys, "withdraw", folder / "out", folder / "run", *documented(
        folder, "--published-key", folder / "key", "--keep-similar-images"))  # fmt: skip
    assert done.code == 0, done.err
    assert pl.read_csv(folder / "out" / "people.csv").height == 36
    assert len(list((folder / "out" / "photos").iterdir())) == 36
    assert pl.read_parquet(folder / "run" / "scores.parquet")["unit_id"].n_unique() == 36
    receipt = json.loads((folder / "p" / "withdrawals" / "0001.json").read_text())
    where = {(one["where"].split(" #")[0], one["done"]) for one in receipt["artefacts"]}
    assert {("out/people.csv", "rewritten"), ("out/photos/(withdrawn).jpg", "deleted"),
            ("run/scores.parquet", "rewritten")} <= where  # fmt: skip


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("which", ["out", "run", "other", "."])
@pytest.mark.parametrize("keys", [(), ("wrong.key",)])
def test_without_the_key_nothing_is_signed_and_nothing_is_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    which: str, keys: tuple[str, ...], is_old: bool,
) -> None:  # fmt: skip
    if is_old:
        older(folder)
    named = [flag for one in keys for flag in ("--published-key", folder / one)]
    before = files(folder)
    done = run(monkeypatch, capsys, "withdraw", folder / which, *documented(folder, *named))
    assert done.code == 2
    said = "".join(done.err.split())
    assert str(folder / ("out" if which == "." else which)) in said
    assert "--published-keyFILE" in said
    assert before == files(folder)
    proof = run(monkeypatch, capsys, "withdraw", folder / which, "--prove", "--who", "s17", *named)
    assert proof.code == 1
    assert "--published-keyFILE" in "".join(proof.out.split() + proof.err.split())


@pytest.mark.parametrize("keys", [0, 1])
def test_runs_of_what_was_published_lose_their_rows_without_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keys: int
) -> None:
    """The project knows which pseudonyms its people have, given the key; else runs are refused."""
    key = ("--published-key", folder / "key", "--keep-similar-images") if keys else ()
    done = run(monkeypatch, capsys, "withdraw", folder / "p", folder / "run", folder / "other",
               "--who", "s17", *key)  # fmt: skip
    assert done.code == (0 if keys else 2), done.err
    rows = [pl.read_parquet(folder / name / "scores.parquet")["unit_id"].n_unique()
            for name in ("run", "other")]  # fmt: skip
    assert rows == ([36, 36] if keys else [37, 37])


def test_a_run_alone_is_not_searched_even_with_the_key(folder: Path) -> None:
    """It names units; which are theirs only the published folder or the project tells."""
    key, ledger = [str(folder / "key")], str(folder / "p" / "consent.jsonl")
    with pytest.raises(SpecError, match=r"(?s)/run.*published folder or project"):
        withdraw([folder / "run"], who=["s17"], published_key=key, ledger=ledger)


def test_a_table_of_photos_that_nothing_leads_to_is_refused(tmp_path: Path) -> None:
    ledger, held = tmp_path / "consent.jsonl", tmp_path / "held"
    held.mkdir()
    append_consent(ledger, "grant", "subject", ["s17"], ["publication"])
    (held / "answers.csv").write_text("image_id,label\nx1,a\nx2,b\n")
    with pytest.raises(SpecError, match=r"(?s)answers.csv.*it names photos and no people"):
        withdraw([held], who=["s17"], ledger=str(ledger))
    assert not search_folders_for_people([held], who=["s17"]).is_clean
    (held / "people.csv").write_text("subject_id,image_id\ns17,x1\ns18,x2\n")
    assert withdraw([held], who=["s17"], ledger=str(ledger)).receipt is not None
    assert (held / "answers.csv").read_text() == "image_id,label\nx2,b\n"


def test_a_link_that_leads_out_keeps_it_unfinished(tmp_path: Path) -> None:
    ledger, held = tmp_path / "consent.jsonl", tmp_path / "held"
    held.mkdir()
    append_consent(ledger, "grant", "subject", ["s17"], ["publication"])
    (tmp_path / "elsewhere.csv").write_text("subject_id\ns17\n")
    (held / "link.csv").symlink_to(tmp_path / "elsewhere.csv")
    done = withdraw([held], who=["s17"], ledger=str(ledger))
    assert done.receipt is None
    assert [why.split(":")[0] for _, why in done.unsearchable] == ["a link"]
