"""Someone withdraws from a project and from what was published of it under a key."""

from __future__ import annotations

import json
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
from isolux_curate.project.folder import verify_journal_and_seals
from isolux_curate.project.queries import read_images
from tests.cli._run import isolux as run
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
