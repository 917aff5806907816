"""Verdicts, what stands after them, and the funnel that they make."""

from __future__ import annotations

import threading
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import UnknownNameError
from isolux_curate.project.folder import open_project, read_journal
from isolux_curate.project.queries import (
    read_exclusions_with_reasons,
    read_images,
    read_people_in_photos,
    tabulate_funnel_of_exclusions,
    tabulate_project_funnel,
)
from isolux_curate.project.verdicts import record_changed_verdicts
from tests.curate._projects import project_of, refused


def test_the_funnel_of_fhibe_is_the_papers_sum() -> None:
    """Methods, Quality control: 28,703 − 6,868 − 5,855 = 15,980; some photos fail at both steps."""
    came = pl.Series([f"i{k}" for k in range(28_703)])
    quality = came[:6_868]
    consent = came[6_000 : 6_868 + 5_855]  # 868 of them had left for quality
    gone = pl.DataFrame(
        {
            "image_id": pl.concat([quality, consent]),
            "step": ["quality"] * 6_868 + ["consent"] * 6_723,
            "rule": ["specifications"] * 6_868 + ["forms"] * 6_723,
        }
    ).with_row_index("decision_id")
    assert tabulate_funnel_of_exclusions(came, gone).rows() == [
        ("arrival", "came in", 0, 0, 28_703),
        ("quality", "specifications", 6_868, 6_868, 21_835),
        ("consent", "forms", 5_855, 6_723, 15_980),
    ]


def test_a_step_given_again_writes_nothing(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "abc")
    assert (
        record_changed_verdicts(
            project, "quality", "blur", refused({"a": "Blurred."}), examined_units="abc"
        )
        == 1
    )
    rows = read_journal(project).height
    assert (
        record_changed_verdicts(
            project, "quality", "blur", refused({"a": "Blurred."}), examined_units="abc"
        )
        == 0
    )
    assert read_journal(project).height == rows
    assert read_images(project)["image_id"].to_list() == ["b", "c"]


def test_a_rule_that_refuses_no_one_is_in_the_journal_once(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "abc")
    for _ in range(2):
        assert (
            record_changed_verdicts(project, "quality", "blur", refused({}), examined_units="abc")
            == 0
        )
    told = read_journal(project).filter(rule="blur")
    assert told["said"].to_list() == ['{"looked_at": 3, "out": 0}']


def test_a_verdict_is_taken_back_and_both_are_kept(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "ab")
    record_changed_verdicts(
        project, "consent", "form", refused({"a": "No form."}), examined_units="ab"
    )
    assert (
        record_changed_verdicts(project, "consent", "form", refused({}), examined_units="ab") == 1
    )
    assert read_images(project)["image_id"].to_list() == ["a", "b"]
    assert read_journal(project).filter(rule="form").height == 2


def test_other_words_for_the_same_reason_are_written(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "ab")
    record_changed_verdicts(
        project, "quality", "size", refused({"a": "5 megapixels."}), examined_units="ab"
    )
    assert (
        record_changed_verdicts(
            project, "quality", "size", refused({"a": "6 megapixels."}), examined_units="ab"
        )
        == 1
    )
    assert read_exclusions_with_reasons(project)["reason"].to_list() == ["6 megapixels."]


def test_a_photo_that_is_not_looked_at_again_stays_out(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "ab")
    record_changed_verdicts(
        project, "quality", "blur", refused({"a": "Blurred."}), examined_units="ab"
    )
    record_changed_verdicts(project, "quality", "blur", refused({}), examined_units="b")
    assert read_images(project)["image_id"].to_list() == ["b"]


def test_a_subject_who_is_left_out_takes_their_photos_along(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "abc", ["s1", "s1", "s2"])
    found = refused({"s1": "Found on the web."})
    record_changed_verdicts(
        project, "suspicious", "web", found, examined_units=["s1", "s2"], unit_kind="subject"
    )
    assert read_images(project)["image_id"].to_list() == ["c"]
    assert tabulate_project_funnel(project).rows()[1:] == [("suspicious", "web", 2, 2, 1)]


def test_an_instance_that_is_left_out_leaves_its_photo(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "ab")
    found = refused({"a": "A drawing."})
    record_changed_verdicts(
        project, "review", "person", found, examined_units="ab", unit_kind="instance"
    )
    assert read_images(project).height == 2
    assert read_people_in_photos(project)["instance_id"].to_list() == ["b"]


def test_a_photo_that_is_not_in_the_project_is_refused(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", ["photo 1", "photo 2"])
    with pytest.raises(UnknownNameError, match="there is no image named 'photo 3'"):
        record_changed_verdicts(project, "quality", "blur", refused({}), examined_units=["photo 3"])
    assert read_journal(project).filter(rule="blur").is_empty()


def test_curators_who_decide_at_once_wait_for_one_another(tmp_path: Path) -> None:
    from isolux_curate.project.folder import verify_journal_and_seals

    photos = [f"i{k}" for k in range(20)]
    project_of(tmp_path / "p", photos)

    def work(name: str) -> None:
        mine = open_project(tmp_path / "p", curator=name)
        for photo in photos[:5]:
            record_changed_verdicts(
                mine, "review", name, refused({photo: "No."}), examined_units=[photo]
            )

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ada", "bo", "cy")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    project = open_project(tmp_path / "p")
    assert verify_journal_and_seals(project) == 2 + 15
    assert tabulate_project_funnel(project)["left"].sum() == 5
