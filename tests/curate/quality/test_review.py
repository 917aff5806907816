"""Suspicious photos: evidence, samples, reviews and what they say of everyone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux_curate.intake.ingest import ingest_sheet_photos, write_photos_people_and_facts
from isolux_curate.project.folder import (
    Project,
    create_or_open_project,
    read_journal,
    verify_journal_and_seals,
)
from isolux_curate.project.queries import read_images, tabulate_project_funnel
from isolux_curate.project.verdicts import record_changed_verdicts
from isolux_curate.quality.evidence import gather_evidence_for_review
from isolux_curate.quality.review_results import record_review_and_estimate_share
from isolux_curate.quality.sampling import draw_and_write_review_sample
from tests.curate._projects import project_of, refused


def filled(sheet: Path, out: set[str], to: Path) -> Path:
    """Fill a sheet: these are out, all others in."""
    table = pl.read_csv(sheet, infer_schema=False)
    gone = pl.col("unit_id").is_in(sorted(out))
    table.with_columns(
        verdict=pl.when(gone).then(pl.lit("out")).otherwise(pl.lit("in")),
        reason=pl.when(gone).then(pl.lit("The photos were found elsewhere.")),
    ).write_csv(to)
    return to


def test_fhibes_four_hundred_of_2017(tmp_path: Path) -> None:
    photos = [f"p{k}" for k in range(4034)]
    project = project_of(tmp_path / "p", photos, [f"s{k // 2}" for k in range(4034)])
    done = draw_and_write_review_sample(project, tmp_path / "s", type=["subject"], size=400, seed=5)
    assert done.design.strata.rows() == [("subject", "", 2017, 400)]
    bad = set(done.sheet["unit_id"][:14])
    sheet = filled(tmp_path / "s/sample.csv", bad, tmp_path / "filled.csv")
    told = record_review_and_estimate_share(
        project, sheet, rule="found online", sample=tmp_path / "s"
    )
    assert (told.n_reviewed, told.n_out, told.n_excluded_photos, told.n_new_verdicts) == (
        400,
        14,
        28,
        14,
    )
    assert told.estimate is not None
    assert (told.estimate.value, told.estimate.population) == (0.035, 2017)
    assert (round(told.estimate.low, 4), round(told.estimate.high, 4)) == (0.0221, 0.055)
    assert read_images(project).height == 4034 - 28
    assert tabulate_project_funnel(project).filter(rule="found online")["left"].to_list() == [28]
    said = read_journal(project).filter(rule="found online: estimate")["said"][0]
    assert '"found": 14' in said
    assert not any(one in said for one in bad)
    again = record_review_and_estimate_share(
        project, sheet, rule="found online", sample=tmp_path / "s"
    )
    assert again.n_new_verdicts == 0
    verify_journal_and_seals(project)


def test_a_sample_by_type_and_stratum_is_as_large_as_its_margin_needs(tmp_path: Path) -> None:
    project = create_or_open_project(tmp_path / "p", curator="ada")
    ids = [f"p{k}" for k in range(1000)]
    people = pl.DataFrame({"instance_id": ids, "image_id": ids, "subject_id": ids})
    known = pl.DataFrame(
        {"subject_id": ids, "age_group": ["old" if k < 100 else "young" for k in range(1000)]}
    )
    write_photos_people_and_facts(project, pl.DataFrame({"image_id": ids}), people, known)
    record_changed_verdicts(project, "x", "y", refused({"p0": "z"}), examined_units=["p0"])
    done = draw_and_write_review_sample(
        project, tmp_path / "s", type=["image", "subject"], by=["age_group"], margin=0.05
    )
    # Worth 384.1 - z² = 380.3 independent ones: n × 998 / (999 - n) = 380.3, n = 275.6.
    assert done.design.strata.filter(type="image")["drawn"].sum() == 276
    assert done.design.strata.filter(type="image").rows() == [
        ("image", "old", 99, 27), ("image", "young", 900, 249),
    ]  # fmt: skip
    assert "p0" not in done.sheet["unit_id"]
    again = draw_and_write_review_sample(
        project, tmp_path / "t", type=["image", "subject"], by=["age_group"], margin=0.05
    )
    assert again.sheet.equals(done.sheet)
    assert read_journal(project).filter(rule="sample of image").height == 1


def test_a_sample_of_a_table_of_evidence(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", ["a"])
    rows = "".join(f"u{k},{'web' if k < 30 else 'place'}\n" for k in range(60))
    (tmp_path / "rows.csv").write_text("unit_id,kind\n" + rows)
    done = draw_and_write_review_sample(
        project, tmp_path / "s", table=tmp_path / "rows.csv", by=["kind"], size=10
    )
    assert done.design.strata.rows() == [("table", "place", 30, 5), ("table", "web", 30, 5)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, "is not said, or twice"), ({"type": ["mask"]}, "kind of unit"),
     ({"type": ["subject"], "by": ["colour"]}, "fact named 'colour'"),
     ({"type": ["boxes"]}, "there is no boxes to review"),
     ({"type": ["image"], "size": 0}, "a sample of no units")],
)  # fmt: skip
def test_samples_that_cannot_be_drawn(tmp_path: Path, settings: dict, said: str) -> None:
    project = project_of(tmp_path / "p", ["a"])
    with pytest.raises((SpecError, UnknownNameError), match=said):
        draw_and_write_review_sample(project, tmp_path / "s", **settings)


def with_places(folder: Path) -> Project:
    """Make a project of six photos; three with skies, told to be indoors but for one."""
    (folder / "in").mkdir()
    for k in range(6):
        sky = (110, 160, 230) if k < 3 else (90, 80, 70)
        Image.new("RGB", (90, 90), sky).save(folder / "in" / f"{k}.png")
    (folder / "photos.csv").write_text(
        "file,subject_id,scene,seen_country\n"
        + "".join(
            f"{k}.png,s{k // 2},{'outdoor' if k == 2 else 'Indoors'},Peru\n" for k in range(6)
        )
    )
    (folder / "subjects.csv").write_text("subject_id,country\ns0,Peru\ns1,peru \ns2,Chile\n")
    project = create_or_open_project(folder / "p", curator="ada")
    ingest_sheet_photos(
        project,
        folder / "photos.csv",
        photo_folder=folder / "in",
        subject_sheet=folder / "subjects.csv",
    )
    return project


def test_evidence_becomes_a_sheet(tmp_path: Path) -> None:
    project = with_places(tmp_path)
    (tmp_path / "e.csv").write_text(
        "image_id,kind,says,score\n3,Web match,https://example.org/a,\n4,logo,,0.9\n5,logo,,0.4\n"
        "0,web match,https://example.org/b,\n"
    )
    found = gather_evidence_for_review(
        project, evidence=tmp_path / "e.csv", contradict=["country=seen_country"], scene="scene"
    )
    assert dict(found.evidence_kinds.select("kind", "rows").rows()) == {
        "contradiction of country": 2, "logo": 1, "scene": 2, "web match": 2,
    }  # fmt: skip
    sheet = {row["unit_id"]: row for row in found.sheet.iter_rows(named=True)}
    assert found.sheet["unit_id"][0] == "s0"  # two kinds of evidence
    assert sheet["s0"]["kinds"] == "scene;web match"
    assert sheet["s0"]["photos"] == "0;1"
    assert sheet["s2"]["evidence"] == "contradiction of country: country: Chile, seen_country: Peru"
    assert (sheet["4"]["unit_kind"], sheet["s1"]["kinds"]) == ("image", "web match")
    assert "5" not in sheet
    assert "1 logo of a score below 0.6" in found.notes[0]


def test_a_review_takes_subjects_and_photos_and_counts_what_was_right(tmp_path: Path) -> None:
    project = with_places(tmp_path)
    (tmp_path / "e.csv").write_text("image_id,kind\n0,web match\n2,web match\n4,logo\n")
    gather_evidence_for_review(project, evidence=tmp_path / "e.csv").sheet.write_csv(
        tmp_path / "sheet.csv"
    )
    sheet = filled(tmp_path / "sheet.csv", {"s0", "4"}, tmp_path / "filled.csv")
    told = record_review_and_estimate_share(project, sheet, rule="suspicious")
    assert (told.n_reviewed, told.n_out, told.n_excluded_photos) == (3, 2, 3)
    assert told.evidence_kinds.select("kind", "reviewed", "out", "share").rows() == [
        ("logo", 1, 1, 1.0), ("web match", 2, 1, 0.5),
    ]  # fmt: skip
    assert read_images(project)["image_id"].to_list() == ["2", "3", "5"]


def test_rows_without_a_verdict_wait(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", ["a", "b"])
    sheet = tmp_path / "s.csv"
    sheet.write_text("unit_id,verdict,reason\ns-a,out,Found.\ns-b,,\n")
    told = record_review_and_estimate_share(project, sheet, rule="found online")
    assert (told.n_reviewed, told.n_excluded_photos) == (1, 1)
    assert "1 of 2 rows have no verdict yet" in told.notes[0]
    sheet.write_text("unit_id,verdict,reason\ns-a,,\n")
    with pytest.raises(TableError, match="nothing was reviewed yet"):
        record_review_and_estimate_share(project, sheet, rule="found online")


def test_a_sheet_of_another_sample_is_refused(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", list("abcd"))
    draw_and_write_review_sample(project, tmp_path / "s", type=["subject"], size=2)
    sheet = tmp_path / "all.csv"
    sheet.write_text("unit_id,verdict,reason\n" + "".join(f"s-{k},in,\n" for k in "abcd"))
    with pytest.raises(TableError, match="the sheet is not of this sample"):
        record_review_and_estimate_share(project, sheet, rule="found online", sample=tmp_path / "s")


@pytest.mark.parametrize(
    ("text", "said"),
    [("image_id,kind\nz,web\n", "image named 'z'"),
     ("image_id,kind\n,web\n", "a row is about nobody"),
     ("image_id,kind\na,\n", "a row is of no kind"), ("image_id\na\n", "column named 'kind'"),
     ("image_id,kind,score\na,logo,high\n", "a score is none"),
     ("subject_id,kind\nz,web\n", "subject named 'z'")],
)  # fmt: skip
def test_evidence_that_is_none(tmp_path: Path, text: str, said: str) -> None:
    project = project_of(tmp_path / "p", ["a"])
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises((TableError, UnknownNameError), match=said):
        gather_evidence_for_review(project, evidence=tmp_path / "e.csv")


def test_nothing_to_gather_is_refused(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", ["a"])
    with pytest.raises(SpecError, match="there is no evidence"):
        gather_evidence_for_review(project)
    with pytest.raises(SpecError, match="not a pair of facts"):
        gather_evidence_for_review(project, contradict=["country"])
