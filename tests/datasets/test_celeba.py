from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.datasets import cluster_by_requested_column
from isolux.datasets.celeba import INFO, load
from tests.cli._run import isolux

# The published form: the number of rows, the names, and codes parted by one or two spaces.
ATTRIBUTES = "3\nSmiling Male Young \n1.jpg -1  1  1\n2.jpg  1 -1  1\n3.jpg -1 -1 -1\n"
IDENTITY = "1.jpg 20\n2.jpg 8\n3.jpg 20\n"
PARTITION = "1.jpg 0\n2.jpg 1\n3.jpg 2\n"
BOXES = (
    "3\nimage_id x_1 y_1 width height\n1.jpg    95  71 226 313\n2.jpg 72 94 221 306\n"
    "3.jpg 216 59 91 126\n"
)


@pytest.fixture
def folder(tmp_path):
    for place, text in (
        ("Anno/list_attr_celeba.txt", ATTRIBUTES),
        ("Anno/identity_CelebA.txt", IDENTITY),
        ("Anno/list_bbox_celeba.txt", BOXES),
        ("Eval/list_eval_partition.txt", PARTITION),
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    return tmp_path


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


def test_attributes_are_read_by_name_as_yes_or_no(folder):
    dataset = load(folder)
    assert dataset.instances["instance_id"].to_list() == ["1.jpg", "2.jpg", "3.jpg"]
    assert values(dataset, "Smiling") == ["no", "yes", "no"]
    assert values(dataset, "Male") == ["yes", "no", "no"]  # third by name, wherever it stands
    assert values(dataset, "Young") == ["yes", "yes", "no"]
    assert dataset.notes == ()
    assert len(dataset.inputs) == 3  # boxes are not of the aligned pictures, so they are not read


def as_kaggle_has_it(text, header=None):
    """CSV with a line of names, which holds the picture's too, and no number of rows."""
    lines = [",".join(line.split()) for line in text.splitlines()]
    names = header or f"image_id,{lines[1]}"
    return "\n".join([names, *lines[2 if header is None else 0 :]]) + "\n"


def test_kaggles_copy_is_the_same(folder, tmp_path_factory):
    root = tmp_path_factory.mktemp("kaggle")
    attributes = as_kaggle_has_it(ATTRIBUTES)
    assert attributes.startswith("image_id,Smiling,Male,Young\n1.jpg,-1,1,1\n")
    (root / "list_attr_celeba.csv").write_text(attributes)
    partition = as_kaggle_has_it(PARTITION, "image_id,partition")
    (root / "list_eval_partition.csv").write_text(partition)
    (root / "list_bbox_celeba.csv").write_text("image_id,x_1,y_1,width,height\n1.jpg,95,71,9,9\n")
    (root / "img_align_celeba" / "img_align_celeba").mkdir(parents=True)
    dataset = load(root)
    assert dataset.attributes.equals(load(folder).attributes)
    assert dataset.images["uri"][0] == "img_align_celeba/img_align_celeba/1.jpg"
    assert load(root, split="val").instances["instance_id"].to_list() == ["2.jpg"]
    (root / "list_eval_partition.csv").write_text("1.jpg,0\n2.jpg,1\n3.jpg,2\n")
    with pytest.raises(FileError, match="does not begin with a line of names"):
        load(root)


def test_identities_are_the_clusters(folder):
    instances = load(folder).instances
    assert instances["subject_id"].to_list() == ["20", "8", "20"]
    assert instances["cluster_id"].to_list() == ["20", "8", "20"]
    assert (
        cluster_by_requested_column(load(folder), "image").instances["cluster_id"].null_count() == 3
    )
    assert cluster_by_requested_column(load(folder), "Young").instances["cluster_id"].to_list() == [
        "yes",
        "yes",
        "no",
    ]
    with pytest.raises(UnknownNameError, match="no cluster named 'celebrity'"):
        cluster_by_requested_column(load(folder), "celebrity")


def test_without_identities_it_is_said_that_intervals_may_be_too_narrow(folder):
    (folder / "Anno" / "identity_CelebA.txt").unlink()
    dataset = load(folder)
    assert dataset.instances["cluster_id"].null_count() == 3
    assert "photographs of one celebrity count as independent" in dataset.notes[0]


def test_the_partition_is_an_attribute_and_a_choice(folder):
    assert values(load(folder), "split") == ["train", "val", "test"]
    chosen = load(folder, split="val")
    assert chosen.instances["instance_id"].to_list() == ["2.jpg"]
    assert chosen.attributes["unit_id"].unique().to_list() == ["2.jpg"]
    assert chosen.images.height == 1


def test_a_part_without_a_partition_is_refused(folder):
    (folder / "Eval" / "list_eval_partition.txt").unlink()
    assert "split" not in load(folder).attributes["attribute"].to_list()
    with pytest.raises(
        FileError, match=r"(?s)part 'test' cannot be determined.*list_eval_partition"
    ):
        load(folder, split="test")


def test_a_part_that_nobody_is_in_is_refused(folder):
    (folder / "Eval" / "list_eval_partition.txt").write_text("1.jpg 0\n2.jpg 0\n3.jpg 0\n")
    with pytest.raises(FileError, match="no picture is in the part 'test'"):
        load(folder, split="test")


def test_pictures_that_a_list_lacks_are_counted(folder):
    (folder / "Anno" / "identity_CelebA.txt").write_text("1.jpg 20\n")
    (folder / "Eval" / "list_eval_partition.txt").write_text("1.jpg 0\n2.jpg 2\n")
    dataset = load(folder)
    assert dataset.notes == (
        "2 of 3 picture(s) have no identity.",
        "1 of 3 picture(s) have no part of the partition.",
    )
    assert values(dataset, "split") == ["train", "test", None]
    assert dataset.instances["subject_id"].to_list() == ["20", None, None]


@pytest.mark.parametrize(
    ("made", "uri"),
    [
        ("img_align_celeba", "img_align_celeba/1.jpg"),
        ("Img/img_align_celeba_png", "Img/img_align_celeba_png/1.png"),
        ("elsewhere", "1.jpg"),
    ],
)
def test_where_the_pictures_lie(folder, made, uri):
    (folder / made).mkdir(parents=True)
    assert load(folder).images["uri"][0] == uri


def test_a_few_of_the_forty_may_be_asked_for(folder):
    dataset = load(folder, attributes=["Male"])
    assert dataset.attributes["attribute"].unique().sort().to_list() == ["Male", "split"]
    with pytest.raises(UnknownNameError, match=r"no attribute named 'male'"):
        load(folder, attributes=["male"])
    with pytest.raises(SpecError, match="no attribute is to be loaded"):
        load(folder, attributes=[])


def test_the_list_itself_may_be_named(folder):
    dataset = load(folder / "Anno" / "list_attr_celeba.txt")
    assert dataset.instances["subject_id"].to_list() == ["20", "8", "20"]  # lies beside it
    assert "split" not in dataset.attributes["attribute"].to_list()  # does not


def test_windows_line_ends_and_a_missing_last_one_change_nothing(folder):
    first = load(folder).attributes
    text = ATTRIBUTES.replace("\n", "\r\n").removesuffix("\r\n")
    (folder / "Anno" / "list_attr_celeba.txt").write_text(text, newline="")
    assert load(folder).attributes.equals(first)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("3.jpg -1 -1 -1\n", "", r"another number of rows.*expected: 3 rows.*found: 2.*cut off"),
        ("3.jpg -1 -1 -1", "3.jpg -1 -1", r"fewer cells.*found: 3 in row 3"),
        ("1.jpg -1", "1.jpg 0", r"neither 1 nor -1 \(1 cell.*found: '0'.*row 1, column 'Smiling'"),
        ("3.jpg", "1.jpg", r"listed twice.*'1.jpg'.*row 3, column 'image_id'"),
        ("2.jpg", "../2.jpg", r"leads out of the dataset's folder.*row 2"),
        ("2.jpg", '"2.jpg', "quotation mark"),
        ("Smiling Male", "Male Male", "two columns have the same name"),
    ],
)
def test_a_damaged_list_is_named_with_its_row(folder, old, new, words):
    file = folder / "Anno" / "list_attr_celeba.txt"
    file.write_text(ATTRIBUTES.replace(old, new, 1))
    with pytest.raises((FileError, TableError), match=rf"(?s){words}"):
        load(folder)


def test_lists_beside_it_are_checked_too(folder):
    file = folder / "Eval" / "list_eval_partition.txt"
    file.write_text(PARTITION.replace("2\n", "3\n"))
    with pytest.raises(TableError, match=r"(?s)part that CelebA does not.*'3'.*Eval.*row 3"):
        load(folder)
    file.write_text(PARTITION)


def test_an_unknown_setting_is_refused(folder):
    with pytest.raises(SpecError, match=r"(?s)split cannot be set.*train or val.*'valid'"):
        load(folder, split="valid")


def test_whose_judgement_it_is_and_in_which_words():
    assert INFO.label_source == "perceived"
    assert dict(INFO.terms)["Male"] == "perceived male gender presentation"
    assert "research" in INFO.licence


def test_as_many_pictures_as_there_are_take_a_moment(tmp_path):
    n = 202_599
    names = " ".join(f"a{i}" for i in range(40))
    rows = "".join(f"{i:06}.jpg" + " -1  1" * 20 + "\n" for i in range(n))
    (tmp_path / "list_attr_celeba.txt").write_text(f"{n}\n{names}\n{rows}")
    began = time.process_time()
    dataset = load(tmp_path, attributes=["a0", "a1"])
    assert time.process_time() - began < 10  # 0.5 s on a quiet machine
    assert dataset.attributes.height == 2 * n


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    n = 400
    male, smiling = [i % 2 for i in range(n)], [(i // 2) % 2 for i in range(n)]
    rows = [f"{i}.jpg {2 * smiling[i] - 1} {2 * male[i] - 1}\n" for i in range(n)]
    (tmp_path / "list_attr_celeba.txt").write_text(f"{n}\nSmiling Male\n{''.join(rows)}")
    (tmp_path / "identity_CelebA.txt").write_text("".join(f"{i}.jpg {i // 4}\n" for i in range(n)))
    # Right of everybody perceived as male; wrong of every second other one who smiles, and so of
    # a quarter of the others.
    said = [
        s if m or (i // 4) % 2 else 0 for i, (m, s) in enumerate(zip(male, smiling, strict=True))
    ]
    answers = [f"{i}.jpg,{('no', 'yes')[one]}\n" for i, one in enumerate(said)]
    (tmp_path / "net.csv").write_text("file,label\n" + "".join(answers))
    ran = isolux(
        monkeypatch, capsys, "audit", f"celeba:{tmp_path}", "--task", "classification",
        "--target", "Smiling", "--by", "Male", "--predictions", tmp_path / "net.csv",
        "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    told = " ".join(ran.out.split())
    assert "25.0 points lower" in told


@given(text=st.text(st.sampled_from('1- \n\t.ajpg"\r/\0,é'), max_size=60))
def test_any_list_gives_a_dataset_or_our_own_error(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "list_attr_celeba.txt").write_bytes(text.encode())
    with suppress(IsoluxError):
        dataset = load(folder)
        assert set(dataset.attributes["value"]) <= {"yes", "no"}
        assert dataset.instances.height == dataset.images.height > 0
