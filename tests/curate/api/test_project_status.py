"""Whom a step left out: an injected shift is found, a step that takes all alike shows none."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import UnknownNameError
from isolux_curate.api.project_status import compute_funnel_and_group_exclusions
from isolux_curate.intake.ingest import write_photos_people_and_facts
from isolux_curate.project.folder import Project
from isolux_curate.project.verdicts import record_changed_verdicts
from tests.curate._projects import create_or_open_project, refused

N = 600  # photos, two of each subject; every second subject is older


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made: Project = create_or_open_project(tmp_path_factory.mktemp("shift") / "p")
    photos = [f"i{k}" for k in range(N)]
    who = [f"s{k // 2}" for k in range(N)]
    known = {"subject_id": [f"s{k}" for k in range(N // 2)],
             "age_group": ["older" if k % 2 else "younger" for k in range(N // 2)]}  # fmt: skip
    people = pl.DataFrame({"instance_id": photos, "image_id": photos, "subject_id": who})
    write_photos_people_and_facts(
        made, pl.DataFrame({"image_id": photos}), people, pl.DataFrame(known)
    )
    older = [p for k, p in enumerate(photos) if (k // 2) % 2]
    younger = [p for k, p in enumerate(photos) if not (k // 2) % 2]
    # 150 of 300 older and 60 of 300 younger leave; then 30 of each of those that remain.
    unlike = dict.fromkeys(older[:150] + younger[:60], "Found on the web.")
    alike = dict.fromkeys(older[150:180] + younger[60:90], "Blurred.")
    record_changed_verdicts(made, "suspicious", "web", refused(unlike), examined_units=photos)
    record_changed_verdicts(made, "quality", "blur", refused(alike), examined_units=photos)
    return made


def test_a_injected_shift_is_found_with_its_numbers(project: Project) -> None:
    found = compute_funnel_and_group_exclusions(project, by=["age_group"])
    row = found.shifts.row(by_predicate=(pl.col("step") == "suspicious")
                           & (pl.col("group") == "older"), named=True)  # fmt: skip
    assert (row["came"], row["left"], row["left_share"]) == (300, 150, 0.5)
    assert (row["share_before"], row["share_after"]) == (0.5, pytest.approx(150 / 390))
    assert row["difference"] == pytest.approx(0.5 - 0.35)
    assert row["low"] < 0.15 < row["high"]
    assert row["p_adjusted"] < 0.01
    assert found.funnel["remain"].to_list() == [600, 390, 330]


def test_a_step_that_takes_alike_shows_no_shift(project: Project) -> None:
    """30 of 150 older and 30 of 240 younger: a step is asked about those who had come so far."""
    found = compute_funnel_and_group_exclusions(project, by=["age_group"]).shifts
    rows = found.filter(step="quality")
    assert rows["came"].to_list() == [150, 240]
    assert rows["left_share"].to_list() == [0.2, 0.125]
    assert rows["p_adjusted"].min() > 0.01


def test_a_fact_that_there_is_not_is_named(project: Project) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'age_group'"):
        compute_funnel_and_group_exclusions(project, by=["age_grup"])


def test_a_group_of_few_is_not_judged_and_says_so(tmp_path: Path) -> None:
    made = create_or_open_project(tmp_path / "p")
    photos = [f"i{k}" for k in range(20)]
    people = pl.DataFrame({"instance_id": photos, "image_id": photos, "subject_id": photos})
    known = pl.DataFrame({"subject_id": photos, "region": ["a", "b"] * 9 + [None, None]})
    write_photos_people_and_facts(made, pl.DataFrame({"image_id": photos}), people, known)
    record_changed_verdicts(
        made, "quality", "blur", refused({"i0": "Blurred."}), examined_units=photos
    )
    found = compute_funnel_and_group_exclusions(made, by=["region"])
    assert found.shifts["p_adjusted"].null_count() == 2
    assert found.shifts["left"].to_list() == [1, 0]
    assert "2 of 20 people in photos have no 'region'" in found.notes[0]
