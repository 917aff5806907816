"""Pictures by name: folders, archives, tables, and what may not be among them."""

from __future__ import annotations

import io
import tarfile

import pytest

from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux.predictions import image_files


def archive(path, names, kind=tarfile.REGTYPE):
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "elsewhere"
            member.size = 3 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"abc"))
    return path


def test_a_folder_is_listed_to_its_bottom(tmp_path):
    root = tmp_path / "net"
    (root / "val").mkdir(parents=True)
    for name in ("b.PNG", "val/a.jpg", "notes.txt"):
        (root / name).touch()
    found = image_files.read(root)
    assert found.rows() == [
        ("net", "b.PNG", str(root / "b.PNG")),
        ("net", "val/a.jpg", str(root / "val" / "a.jpg")),
    ]


def test_an_archive_is_listed_and_not_unpacked(tmp_path):
    path = archive(tmp_path / "net.tar.gz", ["./b.png", "val/a.png", "list.txt"])
    found = image_files.read(path)
    assert found["instance_id"].to_list() == ["b.png", "val/a.png"]
    assert found["uri"].to_list() == [f"{path}::./b.png", f"{path}::val/a.png"]
    assert found["model"].unique().to_list() == ["net"]


def test_a_table_names_files_below_its_folder(tmp_path):
    path = tmp_path / "made.csv"
    path.write_text("image_id,uri,model\n7,out/7.png,m1\n7,out2/7.png,m2\n")
    found = image_files.read(path)
    assert found["model"].to_list() == ["m1", "m2"]
    assert found["uri"].to_list() == [str(tmp_path / "out/7.png"), str(tmp_path / "out2/7.png")]


def test_a_table_may_lie_elsewhere_than_its_pictures(tmp_path):
    (tmp_path / "tables").mkdir()
    path = tmp_path / "tables" / "made.csv"
    path.write_text("id,uri\n7,7.png\n")
    found = image_files.read(path, root=str(tmp_path / "out"))
    assert found.row(0) == ("made", "7", str(tmp_path / "out" / "7.png"))


def test_links_are_refused(tmp_path):
    root = tmp_path / "net"
    root.mkdir()
    (tmp_path / "secret.png").touch()
    (root / "a.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(FileError, match=r"a link among the pictures(.|\n)*found: a\.png"):
        image_files.read(root)
    linked = archive(tmp_path / "net.tar.gz", ["a.png"], tarfile.SYMTYPE)
    with pytest.raises(FileError, match="holds a link"):
        image_files.read(linked)
    with pytest.raises(FileError, match="leads out of it"):
        image_files.read(archive(tmp_path / "out.tar.gz", ["../a.png"]))


def test_a_path_in_a_table_that_leads_out_is_placed(tmp_path):
    path = tmp_path / "made.csv"
    path.write_text("id,uri\n7,a.png\n8,../b.png\n")
    with pytest.raises(FileError, match=r"leads out(.|\n)*row 2, column 'uri'(.|\n)*root="):
        image_files.read(path)


def test_nothing_to_read(tmp_path):
    with pytest.raises(FileError, match="there is no picture in it"):
        image_files.read(tmp_path)
    with pytest.raises(FileError, match=r"no such file(.|\n)*absent"):
        image_files.read(tmp_path / "absent")
    path = tmp_path / "made.csv"
    path.write_text("id,path_of\n7,a.png\n")
    with pytest.raises(UnknownNameError, match="no column named 'uri'"):
        image_files.read(path)
    path.write_text("who,uri\n7,a.png\n")
    with pytest.raises(SpecError, match="no column says whom a picture is about"):
        image_files.read(path)
    path.write_text("id,uri\n7,a.png\n7,b.png\n")
    with pytest.raises(TableError, match=r"two rows have the same model \+ instance_id"):
        image_files.read(path)
