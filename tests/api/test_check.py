"""The orchestration of checks: which run, what is noted, what fails."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.api.check import CheckResult, check, load_dataset_or_report_problems
from isolux.checks._problems import PROBLEMS
from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux.core.schema import check as check_table
from tests.checks._dataset import dataset, picture, with_files


def test_tables_alone_are_checked_without_pictures(tmp_path):
    data = with_files(tmp_path, ["a.jpg"])
    found = check(data, no_images=True)
    assert set(found.checks) == {
        "boxes",
        "ids",
        "keypoints",
        "masks",
        "repeats",
        "splits",
        "value_ranges",
    }
    assert "Without pictures these were not checked: missing_files, paths" in found.notes[0]
    check_table(found.problems, PROBLEMS)


def test_pictures_are_opened_once_for_all_checks(tmp_path, monkeypatch):
    from isolux.checks import _inspection

    opened = []
    look = _inspection._inspect_file
    monkeypatch.setattr(
        _inspection, "_inspect_file", lambda path: (opened.append(path), look(path))[1]
    )
    for name in ("a.jpg", "b.jpg"):
        picture(1).save(tmp_path / name)
    found = check(with_files(tmp_path, ["a.jpg", "b.jpg"]), images=tmp_path)
    assert len(opened) == 2
    assert found.problems["check"].to_list() == ["duplicates"]
    assert not found.failed()
    assert found.failed(strict=True)


def test_checks_can_be_chosen_and_set(tmp_path):
    data = dataset({"box_x": [0.0], "box_y": [0.0], "box_w": [70.0], "box_h": [9.0]},
                   {"image_id": ["i0"], "width": [64], "height": [48]})  # fmt: skip
    assert check(data, only=["boxes"]).problems.height == 1
    assert check(data, skip=["boxes"]).problems.is_empty()
    loose = check(data, only=["boxes"], check_option=["boxes.slack_px=9"])
    assert loose.problems.is_empty()
    with pytest.raises(UnknownNameError, match="did you mean 'boxes'"):
        check(data, only=["boxs"])
    with pytest.raises(SpecError, match="no check is left to run"):
        check(data, only=["boxes"], skip=["boxes"])
    with pytest.raises(SpecError, match=r"belongs to no check(.|\n)*found: 'slack_px=9'"):
        check(data, only=["boxes"], check_option=["slack_px=9"])
    with pytest.raises(SpecError, match="no setting 'pictures'"):
        check(data, only=["duplicates"], check_option=["duplicates.pictures=1"])
    with pytest.raises(FileError, match="no such folder of pictures"):
        check(data, images=tmp_path / "absent")


def test_errors_stand_first(tmp_path):
    picture(1).save(tmp_path / "a.png")
    picture(2).save(tmp_path / "b.png", "JPEG")
    data = with_files(tmp_path, ["a.png", "b.png"], width=[1, 64], height=[1, 48])
    found = check(data, images=tmp_path)
    assert found.problems["severity"].to_list() == ["error", "warning"]
    assert found.failed()


def test_what_a_loader_refuses_is_a_problem_of_the_data(tmp_path):
    def refuse():
        raise TableError("an age is not a number", expected="years", found="'old'", where="a.csv")

    found = load_dataset_or_report_problems(refuse, tmp_path, "table")
    assert isinstance(found, CheckResult)
    assert found.failed()
    row = found.problems.row(0, named=True)
    assert (row["check"], row["problem"], row["file"]) == (
        "loading", "an age is not a number", "a.csv",
    )  # fmt: skip


def test_a_path_where_nothing_is_stays_a_mistake(tmp_path):
    def refuse():
        raise FileError("there is no such file", where=str(tmp_path / "absent"))

    with pytest.raises(FileError, match="no such file"):
        load_dataset_or_report_problems(refuse, tmp_path / "absent", "table")


_COLUMNS = (
    "image_id,filepath,json_path,subject_id,is_primary,image_height,image_width,person_bbox,age,"
    "keypoints,natural_skin_color,segments"
)
_FACE = [(10, 10), (60, 10), (60, 60), (10, 60)]


def _fhibe_row(n, *, box="[10, 10, 50, 50]", age=31, nose=30, colour=""):
    corners = [{"x": x, "y": y} for x, y in _FACE]
    segments = [{"class_name": "0. Face skin", "polygon": corners}]
    points = {"0. Nose": [nose, 30, 1]}
    cells = [f"i{n}", f"i{n}.png", f"i{n}.json", f"s{n}", "True", "480", "640", box, age, points]
    return [str(cell) for cell in (*cells, colour, segments)]


def _write_fhibe(folder, rows):
    table = pl.DataFrame(rows, schema=_COLUMNS.split(","), orient="row")
    table.write_csv(folder / "fhibe_downsampled.csv")
    return f"fhibe:{folder}"


def test_every_cell_that_a_loader_refuses_is_a_row(tmp_path):
    rows = [
        _fhibe_row(1),
        _fhibe_row(2, age=150),
        _fhibe_row(3, box="[10, 10, -5, 50]"),
        _fhibe_row(4, colour="9. [1, 2, 3]", age=151),
    ]
    found = check(_write_fhibe(tmp_path, rows), no_images=True).problems
    places = sorted(
        (problem, file.partition("csv, ")[2])
        for problem, file in found.select("problem", "file").iter_rows()
    )
    assert places == [
        ("a box has a negative width or height", "row 3, column 'person_bbox'"),
        ("a skin colour is not one of FHIBE's six", "row 4, column 'natural_skin_color'"),
        ("an age is not that of an adult", "row 2, column 'age'"),
        ("an age is not that of an adult", "row 4, column 'age'"),
    ]


def test_a_refused_cell_of_someone_who_withdrew_shows_no_id(tmp_path):
    """Their id may stand in the cell: one problem, as loading raises it, redacted."""
    rows = [_fhibe_row(1), _fhibe_row(2, colour="s2"), _fhibe_row(3, age=150)]
    withdrawn = tmp_path / "withdrawn.txt"
    withdrawn.write_text("s2\n")
    data = _write_fhibe(tmp_path, rows)
    found = check(data, no_images=True, withdrawn=str(withdrawn)).problems
    assert found.height == 1
    assert "s2" not in str(found["found"].to_list())
    everything = check(data, no_images=True).problems
    assert everything.height == 2
    assert "s2" in str(everything["found"].to_list())


def test_keypoints_are_held_against_the_union_of_part_masks(tmp_path):
    rows = [_fhibe_row(1), _fhibe_row(2, nose=330)]  # moved by 300 pixels
    found = check(_write_fhibe(tmp_path, rows), no_images=True).problems
    assert found.select("unit_id", "problem", "found").rows() == [
        ("i2_s2", "visible keypoints are outside their person's mask",
         "1 of 1, such as (330.0, 30.0)"),
    ]  # fmt: skip
