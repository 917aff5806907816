"""Whoever cannot be told from others makes no group look larger: an attack on what is counted."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest
import yaml

import isolux_curate
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
)
from isolux_curate.api.consent import append_grants_or_revocations
from isolux_curate.api.release.tables import count_groups_suppressing_small
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.privacy.table import anonymise_table
from isolux_curate.project.folder import create_or_open_project, open_project
from isolux_curate.project.queries import read_people_in_photos
from tests.curate.api.release._projects import published
from tests.curate.intake._photos import photo, write

SINGLE, PAIRED, LEAST = 24, 12, 10


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Two dozen subjects with a photo each, and twelve photos of one pair, of whom one is drawn.

    Annotators find the drawn person's tone darker than anybody else's.
    """
    folder = tmp_path_factory.mktemp("pair")
    n = SINGLE + PAIRED
    write(folder / "in", {f"{k}.jpg": photo((400, 300), shade=k * 5) for k in range(n)})
    named = [(k, f"s{k}") for k in range(SINGLE)]
    named += [(k, who) for k, who in product(range(SINGLE, n), ("ann-1", "bob-2"))]
    rows = "".join(f"{k}.jpg,{who}\n" for k, who in named)
    (folder / "photos.csv").write_text("file,subject_id\n" + rows)
    create_or_open_project(folder / "p", curator="ada")
    path = folder / "p" / "project.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"classes": ["nurse"]}))
    project = open_project(folder / "p", curator="ada")
    ingest_sheet_photos(project, folder / "photos.csv", photo_folder=folder / "in")
    plan_and_write_open_tasks(project, "boxes", folder / "boxes")
    boxes = "".join(f"{k},nurse,10,20,100,200\n" for k in range(n))
    (folder / "boxes.csv").write_text("image_id,label,x,y,w,h\n" + boxes)
    import_and_apply_sheet_answers(project, "boxes", folder / "boxes.csv", default_annotator="ada")
    plan_and_write_open_tasks(project, "skin_tone", folder / "tones")
    units = pl.read_csv(folder / "tones/tasks.csv", infer_schema=False)["instance_id"]
    drawn = read_people_in_photos(project).filter(pl.col("instance_id").is_in(units.implode()))
    said = []
    for unit, image in drawn.select("instance_id", "image_id").iter_rows():
        tones = (9, 10) if int(image) >= SINGLE else (2, 3)
        for who in "xyz":
            said += [f"{unit},{who},perceived skin tone,{tone}" for tone in tones]
            said += [f"{unit},{who},{q},yes" for q in ("is the box tight?", "is the class right?")]
    (folder / "tones.csv").write_text("instance_id,annotator,question,answer\n" + "\n".join(said))
    import_and_apply_sheet_answers(project, "skin_tone", folder / "tones.csv")
    people, scope = sorted({who for _, who in named}), ("evaluation", "publication")
    append_grants_or_revocations(project.consent_path, "grant", who=people, scope=scope)
    done = published(folder, project, attribute=[], publish_min=LEAST)
    return folder, project, done


def test_twelve_photos_of_one_person_are_no_group_of_ten(released):
    folder, _, done = released
    people = pl.read_csv(folder / "out/people.csv")
    nameless = people.filter(pl.col("subject_id").is_null())
    assert nameless.height == PAIRED  # whose box it is, no one was asked
    told = pl.read_csv(folder / "out/composition.csv").filter(attribute="perceived_skin_tone")
    assert told.rows() == [("p", "perceived_skin_tone", 2, SINGLE, 1.0)]
    # What whoever reads it can reckon: nobody is left beside those who are told.
    assert people["subject_id"].n_unique() - 1 == told["people"].sum()
    said = f"{PAIRED} of {SINGLE + PAIRED} people in photos have no subject_id: composition.csv and"
    assert any(note.startswith(said) for note in done.notes)
    card = (folder / "out/data_card.md").read_text()
    assert "no count of people includes them" in card
    assert "People with a subject_id, each once" in card


def test_too_few_who_are_known_are_counted_nowhere(released, tmp_path):
    _, project, _ = released
    done = published(tmp_path, project, attribute=[], publish_min=SINGLE + 1)
    assert pl.read_csv(tmp_path / "out/composition.csv").is_empty()
    assert any(isinstance(n, Caution) and "composition.csv is empty" in n for n in done.notes)


def nameless_rows(**values: int) -> pl.DataFrame:
    """Lay out 30 known people, and rows without a person of these values."""
    known = [(f"id-{k:03}", "tall" if k < 15 else "small") for k in range(30)]
    return pl.DataFrame(
        [*known, *((who, v) for v, n in values.items() for who in [None, ""] * n)],
        schema=["subject_id", "height"], orient="row",
    )  # fmt: skip


def test_counts_of_a_table_hold_nobody_twice_and_nobody_unknown():
    told = anonymise_table(nameless_rows(giant=10, tall=3), b"key", id_columns=["subject_id"])
    assert sorted(told.counts.rows()) == [("height", "small", 15), ("height", "tall", 15)]
    assert "Counts are of people by subject_id: 26 of 56 rows without one" in told.notes[-1]
    few = anonymise_table(nameless_rows(giant=40).tail(85), b"key", id_columns=["subject_id"])
    assert few.counts.is_empty()
    assert any(isinstance(n, Caution) and "nothing is counted" in n for n in few.notes)


@pytest.mark.parametrize("ids", [[], ["image_id"], ["image_id", "annotator"]])
def test_rows_are_not_counted_as_people(ids):
    rows = pl.DataFrame({"image_id": [f"photo-{k}" for k in range(20)], "annotator": "ada-lovelace",
                         "height": ["giant"] * 20})  # fmt: skip
    with pytest.raises(SpecError, match=r"(?s)rows are not people.*height.*--person"):
        anonymise_table(rows, b"key", id_columns=ids)
    assert anonymise_table(
        rows, b"key", id_columns=ids, dropped_columns=["height"]
    ).counts.is_empty()


def test_an_annotator_or_a_photo_is_not_taken_for_the_person(tmp_path):
    """Twenty photos of two people by two annotators: by photo they would be twenty people."""
    rows = [f"photo-{k},ada-{k % 2},who-{k // 10},tall" for k in range(20)]
    table = tmp_path / "people.csv"
    table.write_text("image_id,annotator,participant,height\n" + "\n".join(rows), encoding="utf-8")
    where = {"out": tmp_path / "out", "key": tmp_path / "key", "overwrite": True}
    with pytest.raises(SpecError, match="rows are not people"):
        isolux_curate.anonymise(table, id=["image_id", "annotator"], **where)
    done = isolux_curate.anonymise(
        table, id=["image_id", "annotator"], person="participant", publish_min=2, **where
    )
    assert done.counts.rows() == [("height", "tall", 2)]
    assert "who-" not in (tmp_path / "out/people.csv").read_text()


def test_a_composition_of_nobody_is_empty():
    nobody = pl.DataFrame(schema={"who": pl.String, "tone": pl.String})
    table, hidden = count_groups_suppressing_small(nobody, ["tone"], "p", LEAST)
    assert (table.height, hidden) == (0, 0)
