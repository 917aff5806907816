"""Where the pictures of a dataset are: named, beside the labels, above them, or nowhere."""

from __future__ import annotations

import pytest

from isolux.core.errors import FileError, TableError
from isolux.core.spec import AuditSpec
from isolux.datasets import load
from isolux.people.loading import load_people


def labels(folder, uri="val/1.jpg"):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "labels.csv"
    file.write_text(f"file,age,gender,race\n{uri},20-29,Male,Black\n")
    return file


def picture(folder, uri="val/1.jpg"):
    (folder / uri).parent.mkdir(parents=True, exist_ok=True)
    (folder / uri).touch()


@pytest.mark.parametrize("above", [0, 1, 2, 3])
def test_pictures_are_found_beside_the_labels_and_in_three_folders_above(tmp_path, above):
    picture(tmp_path)
    folder = tmp_path.joinpath(*["deeper"] * above)
    assert load("fairface", labels(folder)).root == str(tmp_path.resolve())


def test_pictures_that_are_nowhere_near_are_not_found(tmp_path):
    picture(tmp_path)
    assert load("fairface", labels(tmp_path / "a" / "b" / "c" / "d")).root is None


def test_the_folder_that_is_named_counts(tmp_path):
    picture(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    file = labels(tmp_path)
    dataset = load("fairface", file, images=tmp_path / "elsewhere")
    assert dataset.root == str((tmp_path / "elsewhere").resolve())
    with pytest.raises(FileError, match=r"no such folder of pictures(.|\n)*nowhere"):
        load("fairface", file, images=tmp_path / "nowhere")


def test_a_tables_root_counts_where_it_exists(tmp_path):
    picture(tmp_path / "pictures")
    file = tmp_path / "people.csv"
    file.write_text("image,group\nval/1.jpg,a\n")
    found = load("table", file, id="image", root=str(tmp_path / "pictures"))
    assert found.root == str((tmp_path / "pictures").resolve())
    assert load("table", file, id="image", root="/data/far/away").root is None


def test_paths_that_lead_out_are_not_followed(tmp_path):
    picture(tmp_path, "1.jpg")
    with pytest.raises(TableError, match="leads out of the dataset's folder"):
        load("fairface", labels(tmp_path / "in", "../1.jpg"))


def audit_of(file, *options):
    return AuditSpec(
        data=f"fairface:{file}", task="classification", by=("race",), data_option=options
    )


def test_the_command_line_names_it(tmp_path):
    picture(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    spec = audit_of(labels(tmp_path))
    assert load_people(spec.people).root == str(tmp_path.resolve())
    named = load_people(spec.people.model_copy(update={"images": str(tmp_path / "elsewhere")}))
    assert named.root == str((tmp_path / "elsewhere").resolve())
    with pytest.raises(FileError, match="no such folder"):
        load_people(spec.people.model_copy(update={"images": str(tmp_path / "nowhere")}))
