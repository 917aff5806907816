"""Pictures, pictures of parts, text and values are told apart without being named."""

from __future__ import annotations

import io
import tarfile

import pytest

from isolux.predictions import detect_output_format, read_outputs


def archive(path, names):
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    return path


@pytest.mark.parametrize(
    ("names", "form"),
    [
        (["1.png", "2.jpg"], "image_files"),
        (["1_skin.png", "1_hair.png", "notes.txt"], "part_masks"),
        (["1_skin.png", "2_hair.png", "stray.png"], "part_masks"),
        (["her_hat.png", "2.png", "3.png"], "image_files"),
        (["0--Parade/1.txt"], "widerface_text"),
    ],
)
def test_folders_and_archives_are_told_by_what_most_files_are_called(tmp_path, names, form):
    folder = tmp_path / "net"
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    assert detect_output_format(folder) == form
    assert detect_output_format(archive(tmp_path / "net.tar.gz", names)) == form


def test_tables_are_told_by_their_columns(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("image_id,uri\n7,7.png\n")
    assert read_outputs(path)["uri"].to_list() == [str(tmp_path / "7.png")]
    path.write_text("image_id,LPIPS\n7,0.5\n")
    assert read_outputs(path).row(0) == ("net", "7", "lpips", 0.5)
    path.write_text("id,label,psnr\n7,nurse,20\n")
    assert read_outputs(path)["label"].to_list() == ["nurse"]
