"""A project's folder: made once, opened by every step, refused where it is not whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from isolux.core.errors import FileError, OutputError, SpecError
from isolux_curate.project import database, folder
from isolux_curate.project.folder import create_or_open_project, open_project, read_journal
from isolux_curate.project.queries import read_images
from tests.curate._projects import project_of


def test_a_project_made_again_is_the_same(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", "ab")
    again = create_or_open_project(tmp_path / "p", curator="bo")
    assert read_images(again)["image_id"].to_list() == ["a", "b"]
    assert again.key == project.key
    assert read_journal(again).height == 2


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(OutputError, match="this folder holds other things"):
        create_or_open_project(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_is_no_project_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="isolux curate init"):
        open_project(tmp_path)


def test_a_project_without_its_key_is_refused(tmp_path: Path) -> None:
    create_or_open_project(tmp_path / "p")
    (tmp_path / "p/journal.key").unlink()
    with pytest.raises(FileError, match="the key that signs this project's journal is not there"):
        open_project(tmp_path / "p")


def test_a_database_that_was_lost_is_not_made_anew_in_silence(tmp_path: Path) -> None:
    create_or_open_project(tmp_path / "p")
    (tmp_path / "p/project.sqlite").unlink()
    with pytest.raises(FileError, match="holds no project"):
        open_project(tmp_path / "p")


def test_a_database_that_is_damaged_is_named(tmp_path: Path) -> None:
    create_or_open_project(tmp_path / "p")
    (tmp_path / "p/project.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(FileError, match="cannot be read"):
        open_project(tmp_path / "p")


@pytest.mark.parametrize(
    "change", ["UPDATE settings SET value = '9999' WHERE name = 'version of the tables'",
               "DELETE FROM settings"],
)  # fmt: skip
def test_tables_of_another_isolux_are_refused(tmp_path: Path, change: str) -> None:
    project = create_or_open_project(tmp_path / "p")
    with project.engine.begin() as connection:
        connection.execute(sa.text(change))
    for open_it in (open_project, create_or_open_project):
        with pytest.raises(FileError, match="another version"):
            open_it(tmp_path / "p")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql+pg8000://ada:secret@127.0.0.1/x", "the address holds a password"),
        ("mysql://ada@127.0.0.1/x", "projects are stored in SQLite or PostgreSQL"),
        ("not an address", "this is not the address of a database"),
        ("postgresql+nodriver://ada@127.0.0.1/x", "the driver of this database is not installed"),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_made(
    tmp_path: Path, address: str, said: str
) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        create_or_open_project(tmp_path / "p", database=address)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    "text", ["name: a\n", "name: a\ndatabase: sqlite\nrule: {}\n",
             "name: a\ndatabase: sqlite\nrules: [megapixels]\n"],
)  # fmt: skip
def test_settings_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    create_or_open_project(tmp_path / "p")
    (tmp_path / "p/project.yaml").write_text(text)
    with pytest.raises(SpecError, match="these are not the settings of a project"):
        open_project(tmp_path / "p")


@pytest.mark.parametrize("pages", [1, 4, 20])
def test_a_disk_that_fills_up_is_told_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    teach = database._set_sqlite_pragmas_and_transactions

    def small(engine: sa.Engine) -> None:
        teach(engine)
        limit = f"PRAGMA max_page_count={pages}"  # SQLite then says what a full disk says
        sa.event.listen(engine, "connect", lambda raw, _: raw.execute(limit).close())

    with monkeypatch.context() as patch:
        patch.setattr(database, "_set_sqlite_pragmas_and_transactions", small)
        with pytest.raises(OutputError, match=r"(?s)could not be written.*disk is full"):
            create_or_open_project(tmp_path / "p")
    assert read_journal(create_or_open_project(tmp_path / "p"))["rule"].to_list() == ["tables"]


def test_a_project_that_was_stopped_after_its_tables_gets_its_first_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(folder, "append_signed_journal_row", stopped)
        with pytest.raises(KeyboardInterrupt):
            create_or_open_project(tmp_path / "p")
    assert read_journal(create_or_open_project(tmp_path / "p")).height == 1
