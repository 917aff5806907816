"""Someone withdraws from a project and from what was published of it under a key."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from isolux.datasets import load
from isolux.io.hashing import sha256_file

pytest.importorskip("sqlalchemy", reason="not installed: pip install 'isolux[curate]'")

from isolux.curation.project import check_journal, read_images  # isort: skip
from isolux.verbs.withdraw import withdraw  # isort: skip
from tests.curation.withdrawal._search import hits  # isort: skip
from tests.verbs.release._projects import project_to_publish, published  # isort: skip


def test_a_publication_loses_them_and_can_be_read_as_before(tmp_path: Path) -> None:
    project = project_to_publish(tmp_path)
    published(tmp_path, project)
    out = tmp_path / "out"
    before = pl.read_csv(out / "people.csv", infer_schema=False)
    # The photos of this project are all one picture, so that others look like theirs.
    done = withdraw([tmp_path], who=["s17"], ledger=str(project.consent),
                    published_key=[str(tmp_path / "key")], keep_alike=True)  # fmt: skip
    assert done.receipt is not None, (done.left, done.blind)
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
    left = read_images(project, everything=True)["image_id"].to_list()
    assert sorted(map(int, left)) == [k for k in range(40) if k != 17]
    assert check_journal(project) > 0
