"""Photos come in: once, whole, from below one folder, and with what their files tell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import FileError, TableError, UnknownNameError
from isolux_curate.intake.ingest import IngestResult, ingest_sheet_photos
from isolux_curate.project.folder import (
    create_or_open_project,
    open_project,
    read_journal,
    verify_journal_and_seals,
)
from isolux_curate.project.queries import read_images, read_people_in_photos, read_subjects
from tests.curate.intake._photos import photo, write


def _sheet(folder: Path, text: str) -> Path:
    (folder / "photos.csv").write_text(text)
    return folder / "photos.csv"


def test_a_photo_comes_in_with_what_its_file_and_the_sheets_tell(tmp_path: Path) -> None:
    write(tmp_path / "in", {"a.jpg": photo()})
    sheet = _sheet(tmp_path, "file,subject_id,clothing\na.jpg,s1,red\na.jpg,s2,\n")
    (tmp_path / "subjects.csv").write_text("subject_id,age,country\ns1,41,Kenya\ns2,,Peru\n")
    project = create_or_open_project(tmp_path / "p")
    done = ingest_sheet_photos(
        project, sheet, photo_folder=tmp_path / "in", subject_sheet=tmp_path / "subjects.csv"
    )
    assert done == IngestResult(1, 0, 0, 2)
    told = read_images(project).row(0, named=True)
    assert (told["image_id"], told["format"], told["width"], told["height"]) == (
        "a", "JPEG", 3264, 2448,
    )  # fmt: skip
    assert (told["megapixels"], told["make"], told["taken"]) == (
        7.99,
        "Acme",
        "2024-05-01T10:00:00",
    )
    assert (project.folder / told["file"]).read_bytes() == (tmp_path / "in/a.jpg").read_bytes()
    people = read_people_in_photos(project).select("instance_id", "subject_id", "clothing")
    assert people.rows() == [("a-1", "s1", "red"), ("a-2", "s2", None)]
    assert read_subjects(project).rows() == [("s1", 41.0, "Kenya"), ("s2", None, "Peru")]


def test_what_came_in_does_not_come_in_again(tmp_path: Path) -> None:
    write(tmp_path, {"a.jpg": photo((40, 30)), "b.jpg": photo((40, 30), shade=9)})
    sheet = _sheet(tmp_path, "file,subject_id\na.jpg,s1\n")
    project = create_or_open_project(tmp_path / "p")
    ingest_sheet_photos(project, sheet)
    rows = read_journal(project).height
    assert ingest_sheet_photos(project, sheet) == IngestResult(0, 1, 0, 0)
    assert read_journal(project).height == rows
    sheet = _sheet(tmp_path, "file,subject_id,copyright\na.jpg,s1,yes\nb.jpg,s1,yes\n")
    assert ingest_sheet_photos(project, sheet) == IngestResult(1, 1, 1, 0)
    assert read_people_in_photos(project)["copyright"].to_list() == ["yes", "yes"]


def test_a_later_sheet_takes_no_one_out_of_a_photo_and_mixes_no_one_up(tmp_path: Path) -> None:
    write(tmp_path, {"a.jpg": photo((40, 30))})
    project = create_or_open_project(tmp_path / "p")
    ingest_sheet_photos(
        project, _sheet(tmp_path, "file,subject_id,clothing\na.jpg,s1,red\na.jpg,s2,blue\n")
    )
    other = _sheet(tmp_path, "file,subject_id,clothing\na.jpg,s3,\na.jpg,s2,green\na.jpg,s1,\n")
    assert ingest_sheet_photos(project, other) == IngestResult(
        0, 1, 2, 0
    )  # s3 is new there, s2 wears something else
    people = (
        read_people_in_photos(project).select("instance_id", "subject_id", "clothing").sort("*")
    )
    assert people.rows() == [("a-1", "s1", "red"), ("a-2", "s2", "green"), ("a-3", "s3", None)]
    assert ingest_sheet_photos(project, other) == IngestResult(0, 1, 0, 0)
    ingest_sheet_photos(project, _sheet(tmp_path, "file,subject_id\na.jpg,s4\n"))
    assert read_people_in_photos(project)["subject_id"].sort().to_list() == ["s1", "s2", "s3", "s4"]
    assert read_journal(project)["said"].str.contains('"changed": 1').any()
    verify_journal_and_seals(project)


@pytest.mark.parametrize("word", ["unknown", "18-29", "inf", "nan"])
def test_a_word_for_a_number_is_told_by_its_row_before_anything_comes_in(tmp_path, word) -> None:
    write(tmp_path, {"a.jpg": photo((40, 30))})
    (tmp_path / "people.csv").write_text(f"subject_id,age\ns1,30\ns2,{word}\n")
    project = create_or_open_project(tmp_path / "p")
    with pytest.raises(TableError, match="not a number") as told:
        ingest_sheet_photos(project, _sheet(tmp_path, "file,subject_id\na.jpg,s1\n"),
            subject_sheet=tmp_path / "people.csv")  # fmt: skip
    assert "row 2, column 'age'" in str(told.value)
    assert read_images(project).height == 0


def test_another_photo_under_the_same_id_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a.jpg": photo((40, 30))})
    sheet = _sheet(tmp_path, "file,subject_id\na.jpg,s1\n")
    project = create_or_open_project(tmp_path / "p")
    ingest_sheet_photos(project, sheet)
    write(tmp_path, {"a.jpg": photo((40, 30), shade=9)})
    with pytest.raises(TableError, match="a photo came in before with other bytes"):
        ingest_sheet_photos(project, sheet)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("file,who\na.jpg,s1\n", UnknownNameError, "there is no column named 'subject_id'"),
        ("file,subject_id\na.jpg,\n", TableError, "a cell of 'subject_id' is empty"),
        (
            "file,subject_id\na.jpg,s1\na.jpg,s1\n",
            TableError,
            "a subject is listed twice for one photo",
        ),
        ("file,subject_id\nz.jpg,s1\n", FileError, "1 of 1 photos are not there"),
        ("file,subject_id\n../a.jpg,s1\n", FileError, "a path leads out of its folder"),
        ("file,subject_id,age\na.jpg,s1,old\n", TableError, "a cell of 'age' is not a number"),
        ("file,subject_id,image_id\na.jpg,s1,x\nb.jpg,s2,x\n", TableError, "is used for several f"),
    ],
)
def test_a_sheet_that_does_not_fit_is_refused_whole(
    tmp_path: Path, text: str, error: type[Exception], said: str
) -> None:
    write(tmp_path / "in", {"a.jpg": photo((40, 30)), "b.jpg": photo((40, 30))})
    project = create_or_open_project(tmp_path / "p")
    with pytest.raises(error, match=said):
        ingest_sheet_photos(project, _sheet(tmp_path, text), photo_folder=tmp_path / "in")
    assert read_images(project, include_excluded=True).is_empty()


def test_files_that_are_no_pictures_come_in_and_say_so(tmp_path: Path) -> None:
    whole = photo((400, 300))
    write(tmp_path, {"a.jpg": b"", "b.jpg": b"no picture", "c.jpg": whole[: len(whole) // 2]})
    sheet = _sheet(tmp_path, "file,subject_id\na.jpg,s1\nb.jpg,s1\nc.jpg,s1\n")
    project = create_or_open_project(tmp_path / "p")
    assert ingest_sheet_photos(project, sheet).n_new == 3
    assert read_images(project)["trouble"].null_count() == 0


def test_killed_in_the_middle_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """A kill while photos come in; then the command once more: all photos, each once."""
    files = {f"{k:03d}.jpg": photo((40, 30), shade=k % 250) for k in range(160)}
    write(tmp_path / "in", files)
    rows = "".join(f"{name},s{k}\n" for k, name in enumerate(files))
    sheet = _sheet(tmp_path, "file,subject_id\n" + rows)
    create_or_open_project(tmp_path / "p")
    program = (
        "import sys\n"
        "from isolux_curate.project.folder import open_project\n"
        "import isolux_curate.intake.ingest as m\n"
        "m._BATCH_SIZE = 20\nprint('go', flush=True)\n"
        "m.ingest_sheet_photos(open_project(sys.argv[1]), sys.argv[2], photo_folder=sys.argv[3])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "p"), str(sheet), str(tmp_path / "in")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"go\n"
        time.sleep(0.1)
        os.kill(running.pid, signal.SIGKILL)
    project = open_project(tmp_path / "p")
    before = read_images(project).height
    done = ingest_sheet_photos(project, sheet, photo_folder=tmp_path / "in")
    assert (done.n_new, done.n_existing) == (160 - before, before)
    assert read_images(project).height == read_people_in_photos(project).height == 160
    verify_journal_and_seals(project)


def test_numbers_of_a_workbook_and_of_csv_are_one(tmp_path: Path) -> None:
    write(tmp_path, {"a.jpg": photo((40, 30))})
    pl.DataFrame({"file": ["a.jpg"], "subject_id": [7], "device_year": [2015.0]}).write_parquet(
        tmp_path / "photos.parquet"
    )
    project = create_or_open_project(tmp_path / "p")
    ingest_sheet_photos(project, tmp_path / "photos.parquet")
    assert read_people_in_photos(project).select("subject_id", "device_year").row(0) == ("7", 2015)
