"""A project becomes a dataset: who may be in it, under which ids and terms, and the same again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import mlcroissant
import polars as pl
import pytest

import isolux
from isolux.core.errors import (
    FileError,
    InputError,
    LicenceError,
    OutputError,
    SpecError,
    UnknownNameError,
)
from isolux.datasets import load
from isolux_curate.api.consent import append_grants_or_revocations
from isolux_curate.api.release import write_and_journal_release
from isolux_curate.project.folder import (
    PROJECT_FILE,
    open_project,
    read_journal,
    verify_journal_and_seals,
)
from isolux_curate.project.verdicts import record_changed_verdicts
from tests.curate._projects import project_of, refused
from tests.curate.api.release._projects import project_to_publish, published


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory):
    """A project of 40 photos, published once."""
    folder = tmp_path_factory.mktemp("release")
    project = project_to_publish(folder)
    record_changed_verdicts(
        project, "review", "drawing", refused({"5": "A drawing."}), examined_units=["5"]
    )
    return folder, project, published(folder, project)


def test_whoever_did_not_agree_is_not_in_it(world) -> None:
    folder, _, done = world
    people = pl.read_csv(folder / "out/people.csv", infer_schema=False)
    # 40 photos less one that was left out, and s0 (nothing), s1 (revoked), s2 (evaluation alone).
    assert people.height == done.release.n_photos == 36
    assert done.release.excluded_counts == {"a subject has not agreed to publication": 3}
    assert len(list((folder / "out/photos").iterdir())) == 36
    assert people["box_x"].cast(pl.Float64).min() == 10 + 3  # s3's photo is the first


def test_no_id_of_the_project_is_in_any_file(world) -> None:
    folder, project, _ = world
    from isolux_curate.project.queries import read_people_in_photos

    held = read_people_in_photos(project, include_excluded=True)
    ids = {*held["instance_id"], *held["subject_id"].drop_nulls()} - {str(k) for k in range(100)}
    ids |= {Path(f).stem for f in held["image_id"] if len(f) > 4}
    for path in (folder / "out").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        found = [one for one in ids if f'"{one}"'.encode() in data or f",{one},".encode() in data]
        assert not found, path
    assert not any(b"Acme" in p.read_bytes() for p in (folder / "out/photos").iterdir())


def test_it_is_read_back_and_audited(world) -> None:
    folder, _, _ = world
    dataset = load("curated", folder / "out")
    assert dataset.instances["subject_id"].n_unique() == 36
    assert dataset.instances.select("cluster_id", "subject_id").unique().height == 36
    assert dataset.instances["cluster_id"].n_unique() == 36  # nobody shares a photo
    tones = dataset.attributes.filter(attribute="perceived_skin_tone")
    # Two of three annotators said k and k + 1, one k + 1 and k + 2: three marks, of k + 1 alone.
    assert tones.group_by("unit_id").len()["len"].to_list() == [1] * 36
    marks = dataset.attributes.filter(attribute="perceived_skin_tone_marks")
    assert marks.height == 36 * 6
    top = marks.group_by("unit_id").agg(pl.col("value").mode().first())
    assert dict(top.iter_rows()) == dict(tones.select("unit_id", "value").iter_rows())
    assert dataset.info.licence == "stated in the dataset's own dataset.json"
    rows = dataset.instances.select(unit_id="instance_id", value=pl.lit(1.0))
    run = isolux.audit(rows, dataset, by="age_group", min_units=5, replicates=100).run
    assert run.group_metrics.height == 3
    coco = load("coco", folder / "out/objects.json")
    assert coco.instances.height == 36


def test_training_is_refused_whatever_loader_reads_it(world) -> None:
    folder, _, _ = world
    for name, path in (("curated", ""), ("table", "people.csv"), ("coco", "objects.json")):
        with pytest.raises(LicenceError, match="may not be used to train a model") as told:
            load(name, folder / "out" / path, purpose="training")
        # It names the release's own terms, and no licence or paper of the form that it is read in.
        assert "found: stated in the dataset's own dataset.json" in str(told.value)
        assert f"where: {folder / 'out/dataset.json'}" in str(told.value)
    with pytest.raises(LicenceError, match="For evaluation only"):
        isolux.sample(f"curated:{folder / 'out'}", balance=["age_group"], per_cell=1,
                      purpose="training")  # fmt: skip


def test_training_needs_consent_to_training(tmp_path: Path) -> None:
    project = project_to_publish(tmp_path, photos=6)
    with pytest.raises(SpecError, match="no photo may be published"):
        published(tmp_path, project, terms="training")
    append_grants_or_revocations(
        project.consent_path, "grant", who=["s3", "s4"], scope=("training",)
    )
    done = published(tmp_path, project, terms="training")
    assert done.release.n_photos == 2
    assert load("curated", tmp_path / "out", purpose="training").instances.height == 2


def test_publishing_again_gives_the_same_bytes(world) -> None:
    folder, project, _ = world
    before = {p: p.read_bytes() for p in sorted((folder / "out").rglob("*")) if p.is_file()}
    rows = read_journal(project).height
    published(folder, project, overwrite=True)
    assert {p: p.read_bytes() for p in sorted((folder / "out").rglob("*")) if p.is_file()} == before
    assert read_journal(project).height == rows
    verify_journal_and_seals(project)
    with pytest.raises(OutputError, match="exists already"):
        published(folder, project)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of rdflib, by mlcroissant
def test_croissant_leads_to_the_rows(world) -> None:
    folder, _, _ = world
    found = mlcroissant.Dataset(jsonld=str(folder / "out/croissant.json"))
    rows = list(found.records("people"))
    assert len(rows) == 36
    assert {row["people/age_group"] for row in rows} == {b"old", b"young"}
    told = json.loads((folder / "out/croissant.json").read_text())
    assert "no model may be trained on it" in str(told["rai:dataUseCases"])


def test_papers_say_what_the_journal_knows_and_name_the_rest(world) -> None:
    folder, _, done = world
    sheet = (folder / "out/datasheet.md").read_text()
    assert "40 photos came in; 36 are published" in sheet
    assert "| review | drawing | 1 | 1 | 39 |" in sheet
    assert "*not stated* (`datasheet_funding`)" in sheet
    assert "subject, publication: granted by 37, revoked by fewer than 3" in sheet
    crowd = (folder / "out/crowdworksheets.md").read_text()
    assert "Mark the skin tones of the person in the box" in crowd
    assert "| skin\\_tone | 40 | 120 | 3 |" in crowd or "| skin_tone | 40 | 120 | 3 |" in crowd
    assert done.n_blanks > 50
    (folder / "facts.yaml").write_text("facts: 1\ndatasheet_funding: The university.\n")
    other = published(folder / "b", world[1], facts=folder / "facts.yaml")
    assert other.n_blanks == done.n_blanks - 1
    assert "The university." in (folder / "b/out/datasheet.md").read_text()
    (folder / "facts.yaml").write_text("facts: 1\ndatasheet_colour: red\n")
    with pytest.raises(UnknownNameError, match="datasheet_colour"):
        published(folder / "c", world[1], facts=folder / "facts.yaml")


def test_attributes_for_counts_alone_are_counted_and_small_groups_hidden(tmp_path: Path) -> None:
    project = project_to_publish(tmp_path)
    done = published(tmp_path, project, attribute=["age_group", "height_cm"], publish_min=10)
    people = pl.read_csv(tmp_path / "out/people.csv")
    assert "height_cm" not in people.columns
    # 37 people, each of a height of their own: all are "others".
    assert pl.read_csv(tmp_path / "out/counts.csv").rows() == [("height_cm", "others", 37)]
    told = done.release.composition
    # 9 of 37 are old: with them, the young would give them away.
    assert told.filter(attribute="age_group").is_empty()
    assert done.release.n_hidden_groups >= 2


def test_composition_stands_beside_other_datasets(tmp_path: Path) -> None:
    project = project_to_publish(tmp_path)
    (tmp_path / "others.csv").write_text(
        "dataset,attribute,group,share\nFaces,age_group,old,0.1\nFaces,age_group,young,0.9\n"
    )
    published(tmp_path, project, compare_with=tmp_path / "others.csv")
    table = pl.read_csv(tmp_path / "out/composition.csv").filter(attribute="age_group")
    assert table.filter(dataset="Faces")["share"].to_list() == [0.1, 0.9]
    drawn = (tmp_path / "out/composition age_group.svg").read_text()
    assert drawn.count("<title>") == 4
    (tmp_path / "others.csv").write_text("dataset,attribute,group,share\nF,a,old,0.9\nF,a,b,0.9\n")
    with pytest.raises(InputError, match="this is not a composition"):
        published(tmp_path, project, compare_with=tmp_path / "others.csv", overwrite=True)
    assert (tmp_path / "out/composition age_group.svg").is_file()  # the earlier one stands


def test_regions_are_filled(tmp_path: Path) -> None:
    project = project_to_publish(tmp_path, photos=8)
    (tmp_path / "r.csv").write_text("image_id,x,y,w,h\n7,0,0,50,50\n0,0,0,9,9\n")
    done = published(tmp_path, project, redact=tmp_path / "r.csv", publish_min=1)
    assert done.release.n_redacted == 1


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"terms": "all"}, SpecError, "these are not terms"),
        ({"split": "train=0.8"}, SpecError, "do not sum to 1"),
        ({"split": "train:1"}, SpecError, "these are not splits"),
        ({"stratify": ["colour"]}, UnknownNameError, "attribute named 'colour'"),
        ({"attribute": ["colour"]}, UnknownNameError, "fact named 'colour'"),
        ({"labels": ["file"]}, SpecError, "these are not labels"),
    ],
)
def test_what_cannot_be_published_leaves_nothing(world, tmp_path, settings, error, said) -> None:
    _, project, _ = world
    with pytest.raises(error, match=said):
        published(tmp_path, project, **settings)
    assert list(tmp_path.iterdir()) == []  # no key either


def test_a_key_inside_and_no_ledger_are_refused(world, tmp_path: Path) -> None:
    _, project, _ = world
    with pytest.raises(SpecError, match="the key would be published"):
        write_and_journal_release(project, out=tmp_path / "o", key=tmp_path / "o/key")
    bare = project_of(tmp_path / "p", ["a"])
    with pytest.raises(FileError, match="no ledger of consent"):
        write_and_journal_release(bare, out=tmp_path / "o", key=tmp_path / "key")


def test_killed_at_any_moment_nothing_is_half_written(tmp_path: Path) -> None:
    project = project_to_publish(tmp_path, photos=30)
    published(tmp_path, project)
    whole = {p.name: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    with (tmp_path / "p" / PROJECT_FILE).open("a") as told:
        told.write("publish: {publish_min: 3}\n")
    code = (
        "import sys; from pathlib import Path\n"
        "from isolux_curate.project.folder import open_project\n"
        "from isolux_curate.api.release import write_and_journal_release\n"
        "import isolux.cards, isolux_curate.api.release.project_facts\n"
        "import isolux_curate.api.release.release_files\n"
        "print('go', flush=True)\n"
        f"here = Path({str(tmp_path)!r})\n"
        "write_and_journal_release(open_project(here / 'p', curator='ada'), out=here / 'out',"
        " key=here / 'key', attribute=['age_group', 'country'], overwrite=True)\n"
    )
    for k in range(10 if os.environ.get("ISOLUX_LAWS") == "full" else 5):
        one = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path.cwd())
        assert one.stdout is not None
        one.stdout.readline()
        time.sleep(0.05 * k)
        one.send_signal(signal.SIGKILL)
        one.wait()
        one.stdout.close()
        held = {p.name: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
        assert held == whole
    published(tmp_path, project, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
    verify_journal_and_seals(project)


@pytest.mark.parametrize("said", ["{split: [1]}", "{publish_least: 3}", "{publish_min: x}", "3"])
def test_settings_of_a_publication_are_read_by_their_names(tmp_path, said):
    folder = project_to_publish(tmp_path, 4).folder
    with (folder / PROJECT_FILE).open("a") as told:
        told.write(f"publish: {said}\n")
    with pytest.raises(SpecError, match="settings of a p") as refused:
        write_and_journal_release(open_project(folder), out=tmp_path / "out", key=tmp_path / "key")
    assert PROJECT_FILE in str(refused.value)
    assert not (tmp_path / "out").exists()
