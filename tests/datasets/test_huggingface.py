from __future__ import annotations

import json
import sys
from contextlib import suppress
from types import ModuleType

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, TableError, UnknownNameError
from isolux.datasets.huggingface import load
from tests.cli._run import isolux

FEATURES = {
    "id": {"dtype": "string", "_type": "Value"},
    "sex": {"names": ["female", "male"], "_type": "ClassLabel"},
    "roles": {"feature": {"names": ["nurse", "guard"], "_type": "ClassLabel"}, "_type": "List"},
}
ROWS = pl.DataFrame(
    {
        "id": ["a", "b", "c"],
        "sex": [1, 0, -1],
        "roles": [[0], [0, 1], []],
        "age": [30, 41, None],
    },
    schema_overrides={"roles": pl.List(pl.Int64)},
)


def saved(folder, *shards, features=FEATURES):
    """Write what ``save_to_disk`` writes: Arrow streams, their list, what is said of columns."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data-{i:05}-of-{len(shards):05}.arrow" for i in range(len(shards))]
    for name, shard in zip(names, shards, strict=True):
        shard.write_ipc_stream(folder / name)
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": n} for n in names]})
    )
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


def test_a_saved_folder_is_read_with_the_names_of_its_classes(tmp_path):
    dataset = load(saved(tmp_path, ROWS[:2], ROWS[2:]))
    assert dataset.instances["instance_id"].to_list() == ["a", "b", "c"]
    assert values(dataset, "sex") == ["male", "female", None]
    assert values(dataset, "roles") == ["nurse", "nurse", "guard", None]
    assert dataset.values_of("age")["number"].to_list() == [30.0, 41.0, None]
    assert dataset.notes == ("1 value(s) of 'sex' are -1: not known.",)
    assert len(dataset.inputs) == 4


def test_shards_are_in_the_order_of_the_list(tmp_path):
    saved(tmp_path, ROWS[:2], ROWS[2:])
    names = ["data-00001-of-00002.arrow", "data-00000-of-00002.arrow"]
    state = {"_data_files": [{"filename": name} for name in names]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert load(tmp_path).instances["instance_id"].to_list() == ["c", "a", "b"]


def test_of_several_parts_one_is_named(tmp_path):
    saved(tmp_path / "train", ROWS[:1])
    saved(tmp_path / "test", ROWS[1:])
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert load(tmp_path, split="test").instances["instance_id"].to_list() == ["b", "c"]
    with pytest.raises(FileError, match=r"(?s)several parts.*'train', 'test'"):
        load(tmp_path)
    with pytest.raises(UnknownNameError, match="no part named 'val'"):
        load(tmp_path, split="val")
    with pytest.raises(FileError, match="this folder holds one part alone"):
        load(tmp_path / "test", split="test")


def test_parquet_shards_by_part(tmp_path):
    (tmp_path / "data").mkdir()
    ROWS[:1].write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet")
    ROWS[1:2].write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet")
    ROWS[2:].write_parquet(tmp_path / "data" / "test-00000-of-00001.parquet")
    assert load(tmp_path, split="train").instances["instance_id"].to_list() == ["a", "b"]
    with pytest.raises(FileError, match=r"(?s)several parts.*'test', 'train'"):
        load(tmp_path)
    (tmp_path / "data" / "train-00000-of-00002.parquet").unlink()
    with pytest.raises(FileError, match=r"(?s)shards are not complete.*2 files.*1: train-00001"):
        load(tmp_path, split="train")


def test_classes_are_named_in_a_parquet_file_itself(tmp_path):
    said = {"huggingface": json.dumps({"info": {"features": FEATURES}})}
    ROWS.write_parquet(tmp_path / "0000.parquet", metadata=said)
    assert values(load(tmp_path / "0000.parquet"), "sex") == ["male", "female", None]
    assert values(load(tmp_path), "sex") == ["male", "female", None]


def test_pictures_are_left_alone_and_known_by_their_files_names(tmp_path):
    pictures = [{"bytes": b"no picture", "path": f"/elsewhere/someone/{i}.jpg"} for i in range(3)]
    rows = ROWS.drop("id").with_columns(
        pl.Series("image", pictures), pl.Series("objects", [{"bbox": 1}] * 3), vector=b"x"
    )
    dataset = load(saved(tmp_path, rows))
    assert dataset.instances["image_id"].to_list() == ["0.jpg", "1.jpg", "2.jpg"]
    assert "Not read, since they hold structures or bytes: 'objects', 'vector'." in dataset.notes
    assert "identified by their number" in dataset.notes[0]
    assert dataset.images["uri"].null_count() == 3


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"_data_files": []}, "list of shards cannot be read"),
        ({"_data_files": [{"filename": 1}]}, "list of shards cannot be read"),
        ({"_data_files": [{"filename": "../a.arrow"}]}, r"leads out of the folder.*\.\./a"),
        ({"_data_files": [{"filename": "/a.arrow"}]}, "leads out of the folder"),
        ({"_data_files": [{"filename": "b.arrow"}]}, "no such file.*b.arrow"),
        (
            {
                "_data_files": [{"filename": "data-00000-of-00001.arrow"}],
                "_indices_data_files": [{"filename": "indices.arrow"}],
            },
            "indices are kept apart",
        ),
    ],
)
def test_lists_of_shards_are_not_trusted(tmp_path, state, words):
    saved(tmp_path, ROWS)
    (tmp_path / "state.json").write_text(json.dumps(state))
    with pytest.raises(FileError, match=rf"(?s){words}"):
        load(tmp_path)


def test_names_of_parts_are_not_trusted(tmp_path):
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["../other"]}')
    with pytest.raises(FileError, match=r"(?s)a name leads out.*\.\./other"):
        load(tmp_path)


def test_classes_without_a_name_and_shards_that_differ_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"(?s)class has no name.*-1 to 1.*2.*row 2, column 'sex'"):
        load(saved(tmp_path, ROWS.with_columns(sex=pl.Series([0, 2, 1]))))
    with pytest.raises(TableError, match="the shards have different columns"):
        load(saved(tmp_path, ROWS, ROWS.drop("age")))


def test_damaged_and_missing_files_are_named(tmp_path):
    saved(tmp_path, ROWS)
    shard = tmp_path / "data-00000-of-00001.arrow"
    shard.write_bytes(b"no Arrow")
    with pytest.raises(FileError, match=r"(?s)not a valid Arrow file.*data-00000"):
        load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"(?s)holds no data set in Hugging Face's formats"):
        load(tmp_path / "empty")


@pytest.mark.filterwarnings("ignore")  # dill's, of classes that it cannot find
def test_what_the_library_itself_writes(tmp_path):
    datasets = pytest.importorskip(
        "datasets", reason="datasets is not installed: what it writes was NOT checked"
    )
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "sex": datasets.ClassLabel(names=["female", "male"]),
            "roles": datasets.Sequence(datasets.ClassLabel(names=["nurse", "guard"])),
        }
    )
    pa = pytest.importorskip("pyarrow")
    rows = ROWS.select("id", "sex", "roles").to_dict(as_series=False)
    table = pa.Table.from_pydict(rows, schema=features.arrow_schema)
    # Named by hand: with some versions of dill the library cannot name a data set by its content.
    made = datasets.Dataset(datasets.table.InMemoryTable(table), fingerprint="made")
    made.save_to_disk(tmp_path / "one", num_shards=2)
    datasets.DatasetDict({"test": made}).save_to_disk(tmp_path / "several")
    made.to_parquet(tmp_path / "test.parquet")
    for path in ("one", "test.parquet"):
        dataset = load(tmp_path / path)
        assert values(dataset, "sex") == ["male", "female", None]
        assert values(dataset, "roles") == ["nurse", "nurse", "guard", None]
    assert load(tmp_path / "several").instances["instance_id"].to_list() == ["a", "b", "c"]


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    n = 240
    rows = pl.DataFrame(
        {"id": [f"p{i}" for i in range(n)], "sex": [i % 2 for i in range(n)],
         "tone": ["AB"[i // 2 % 2] for i in range(n)]}
    )  # fmt: skip
    folder = saved(tmp_path / "data", rows)
    # Right of tone A, wrong of every second one of tone B.
    said = ["male" if i % 2 or i // 2 % 2 else "female" for i in range(n)]
    answers = "".join(f"p{i},{one}\n" for i, one in enumerate(said))
    (tmp_path / "net.csv").write_text(f"id,label\n{answers}")
    ran = isolux(
        monkeypatch, capsys, "audit", f"huggingface:{folder}", "--target", "sex", "--by", "tone",
        "--predictions", tmp_path / "net.csv",
        "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "50.0 points lower" in " ".join(ran.out.split())


@given(
    state=st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["_data_files", "filename", "features", "names"]), inner
            )
        ),
    ),
    file=st.sampled_from(["state.json", "dataset_info.json", "dataset_dict.json"]),
)
def test_any_json_gives_a_dataset_or_our_own_error(tmp_path_factory, state, file):
    folder = saved(tmp_path_factory.mktemp("fuzz"), ROWS)
    (folder / file).write_text(json.dumps(state))
    with suppress(IsoluxError):
        assert load(folder).instances.height == 3


def hub(monkeypatch, folder, *, fails=None):
    """Stand in for their library: it says what it was asked for and gives a folder of links."""
    asked = []

    def snapshot_download(**arguments):
        asked.append(arguments)
        if fails is not None:
            raise fails
        return str(folder)

    module = ModuleType("huggingface_hub")
    module.snapshot_download = snapshot_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return asked


def snapshot(folder, *names):
    """A cache as theirs: the files of a snapshot are links to blobs beside it."""
    blob = folder / "blobs" / "a1b2"
    blob.parent.mkdir(parents=True)
    ROWS.write_parquet(blob)
    for name in names:
        file = folder / "snapshots" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(blob)
    return folder / "snapshots"


def test_an_address_of_the_hub_is_fetched_as_parquet(monkeypatch, tmp_path):
    folder = snapshot(tmp_path, "default/train/0000.parquet", "default/test/0000.parquet")
    asked = hub(monkeypatch, folder)
    found = load("hub://owner/faces", split="test", id="id")
    assert values(found, "age") == ["30", "41", None]
    assert asked == [
        {
            "repo_id": "owner/faces",
            "repo_type": "dataset",
            "revision": "refs/convert/parquet",
            "allow_patterns": ["*.parquet"],
        }
    ]


def test_one_of_several_configurations_is_named(monkeypatch, tmp_path):
    folder = snapshot(tmp_path, "aligned/train/0000.parquet", "wild/train/0000.parquet")
    asked = hub(monkeypatch, folder)
    with pytest.raises(UnknownNameError, match="aligned, wild"):
        load("hub://owner/faces")
    assert load("hub://owner/faces", configuration="wild", id="id").instances.height == 3
    assert asked[-1]["allow_patterns"] == ["wild/*.parquet"]


@pytest.mark.parametrize("fails", [OSError("no route"), ValueError("bad id"), RuntimeError("401")])
def test_a_hub_that_does_not_give_it_is_named(monkeypatch, tmp_path, fails):
    hub(monkeypatch, tmp_path, fails=fails)
    with pytest.raises(FileError, match="does not give this data set") as caught:
        load("hub://owner/faces")
    assert str(fails) in str(caught.value)
    assert "hub://owner/faces" in str(caught.value)


def test_without_their_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(FileError, match=r"isolux\[hub\]"):
        load("hub://owner/faces")


@pytest.mark.parametrize("address", ["hub://", "hub://a/b/c", "hub://../x/..", "hub:owner"])
def test_what_is_no_address_is_refused_before_anything_is_asked(monkeypatch, tmp_path, address):
    asked = hub(monkeypatch, tmp_path)
    with pytest.raises(FileError, match="not an address of the hub"):
        load(address)
    assert asked == []
