"""Agreement with specialists, and within and between vendors: injected, and found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux_curate.api.annotation_quality import (
    measure_and_record_annotation_quality,
    measure_vendor_consistency,
)
from isolux_curate.intake.ingest import write_photos_people_and_facts
from isolux_curate.project.folder import Project, create_or_open_project
from isolux_curate.quality.sampling import draw_and_write_review_sample
from tests.curate._projects import project_of

PEOPLE = 600


def project_with_hair(folder: Path) -> Project:
    """Make a project in which a third of the people are old; everyone said their hair's colour."""
    ids = [f"p{k}" for k in range(PEOPLE)]
    people = pl.DataFrame(
        {"instance_id": ids, "image_id": ids, "subject_id": ids, "hair": ["brown"] * PEOPLE}
    )
    ages = ["old" if k % 3 == 0 else "young" for k in range(PEOPLE)]
    project = create_or_open_project(folder / "p", curator="ada")
    write_photos_people_and_facts(project, pl.DataFrame({"image_id": ids}), people,
             pl.DataFrame({"subject_id": ids, "age_group": ages}))  # fmt: skip
    return project


def specialists(folder: Path, units: list[str], wrong: set[str]) -> Path:
    """Let three specialists answer: of some units all see another colour."""
    rows = [f"{u},{who},hair,{'grey' if u in wrong else 'brown'}" for u in units for who in "qrs"]
    (folder / "specialists.csv").write_text("\n".join(["unit,annotator,type,answer", *rows]))
    return folder / "specialists.csv"


def test_a_injected_group_is_found_to_agree_less(tmp_path: Path) -> None:
    project = project_with_hair(tmp_path)
    # Of old people every second colour is wrong, of the young every tenth.
    wrong = {f"p{k}" for k in range(PEOPLE) if (k % 6 == 0 if k % 3 == 0 else k % 20 == 1)}
    given = specialists(tmp_path, [f"p{k}" for k in range(PEOPLE)], wrong)
    found = measure_and_record_annotation_quality(project, given, by=["age_group"], attributes=0.9)
    row = found.types.row(0, named=True)
    assert (row["type"], row["part"], row["metric"]) == ("hair", "specialists", "Jaccard")
    assert row["units"] == PEOPLE
    assert row["value"] == pytest.approx(1 - len(wrong) / PEOPLE)
    assert row["verdict"] == "missed"
    old = found.groups.filter(group="old").row(0, named=True)
    assert old["value"] == 0.5
    assert old["difference_high"] < 0 and old["p_adjusted"] < 0.01  # noqa: PT018


def test_a_sample_stands_for_what_it_was_drawn_from(tmp_path: Path) -> None:
    project = project_with_hair(tmp_path)
    done = draw_and_write_review_sample(project, tmp_path / "s", type=["instance"], size=400)
    units = done.sheet["unit_id"].to_list()
    given = specialists(
        tmp_path, [*units, *(f"p{k}" for k in range(PEOPLE))][:450], set(units[:40])
    )
    given.write_text("\n".join(dict.fromkeys(given.read_text().splitlines())))
    found = measure_and_record_annotation_quality(project, given, sample=tmp_path / "s")
    alone = measure_and_record_annotation_quality(project, given)
    row, wide = (one.types.row(0, named=True) for one in (found, alone))
    assert (row["units"], row["value"]) == (400, pytest.approx(0.9))
    # Two thirds of all were seen: the interval is √(1/3) as wide as it would be.
    assert (row["high"] - row["low"]) < 0.75 * (wide["high"] - wide["low"])
    assert (row["threshold"], row["verdict"]) == (None, None)
    assert "that were not drawn are passed over" in " ".join(found.notes)


def test_missing_answers_of_a_sample_are_told(tmp_path: Path) -> None:
    project = project_with_hair(tmp_path)
    done = draw_and_write_review_sample(project, tmp_path / "s", type=["instance"], size=100)
    given = specialists(tmp_path, done.sheet["unit_id"].to_list()[:90], set())
    found = measure_and_record_annotation_quality(project, given, sample=tmp_path / "s")
    assert "specialists answered 90 of the 100 units" in found.notes[0]


def test_fhibes_thresholds_within_and_between_vendors(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    rows = []
    for unit in range(200):
        for vendor in ("v", "w"):
            for who in "123":
                # One in twenty errs; w calls every second beard something else.
                word = "other" if draw.random() < 0.05 else "beard"
                word = "stubble" if vendor == "w" and unit % 2 and word == "beard" else word
                rows.append((f"u{unit}", vendor + who, vendor, "beard", word))
    names = ["unit", "annotator", "vendor", "type", "answer"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "sets.csv")
    found = measure_vendor_consistency(tmp_path / "sets.csv")
    said = {(r["part"], r["vendor"]): r for r in found.types.iter_rows(named=True)}
    assert said["intra-vendor", "v"]["verdict"] == "met"
    assert said["intra-vendor", "v"]["threshold"] == 0.8
    # .95² + .05² = .905 agree where both say it alike, half of the units.
    assert said["intra-vendor", "v"]["value"] == pytest.approx(0.905, abs=0.03)
    assert said["inter-vendor", None]["value"] == pytest.approx(0.454, abs=0.03)
    assert (said["inter-vendor", None]["threshold"], said["inter-vendor", None]["verdict"]) == (
        0.7, "missed",
    )  # fmt: skip
    wrote = found.write(tmp_path / "out")
    assert sorted(p.name for p in wrote.iterdir()) == [
        "groups.csv", "quality.json", "types.csv", "units.csv",
    ]  # fmt: skip


def test_boxes_are_held_against_90_per_cent(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    rows = [
        (f"u{k}", f"{v}{a}", v, "boxes", 10 + float(draw.normal(0, 0.5)), 10.0, 100.0, 200.0)
        for k in range(70) for v in "vw" for a in "123"
    ]  # fmt: skip
    names = ["unit", "annotator", "vendor", "type", "x", "y", "w", "h"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "sets.csv")
    found = measure_vendor_consistency(tmp_path / "sets.csv").types
    assert found["threshold"].to_list() == [0.9, 0.9, 0.9]
    assert found["verdict"].to_list() == ["met"] * 3
    assert found["pairs"].to_list() == [70 * 9, 70 * 3, 70 * 3]


def test_too_few_units_are_not_judged(tmp_path: Path) -> None:
    rows = "".join(f"{k},{w},v,hair,red\n" for k in range(20) for w in "ab")
    (tmp_path / "sets.csv").write_text("unit,annotator,vendor,type,answer\n" + rows)
    row = measure_vendor_consistency(tmp_path / "sets.csv").types.row(0, named=True)
    assert row["low"] is None
    assert row["verdict"] == "open"
    assert row["reason"] == "fewer than 50 units"


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", ["a"])
    given = specialists(tmp_path, ["a"], set())
    with pytest.raises(UnknownNameError, match="type of answer named 'hair'"):
        measure_and_record_annotation_quality(project, given)
    other = project_with_hair(tmp_path / "q")
    with pytest.raises(TableError, match="about nothing that was collected"):
        measure_and_record_annotation_quality(other, given)
    draw_and_write_review_sample(other, tmp_path / "s", type=["subject"], size=5)
    given = specialists(tmp_path, ["p1"], set())
    with pytest.raises(SpecError, match="no sample of 'hair' was drawn"):
        measure_and_record_annotation_quality(other, given, sample=tmp_path / "s")
    (tmp_path / "one.csv").write_text("unit,annotator,vendor,type,answer\na,x,v,hair,red\n")
    with pytest.raises(TableError, match="no unit was answered twice"):
        measure_vendor_consistency(tmp_path / "one.csv")
    (tmp_path / "none.csv").write_text("unit,annotator,type,answer\na,x,hair,red\n")
    with pytest.raises(UnknownNameError, match="vendor"):
        measure_vendor_consistency(tmp_path / "none.csv")
