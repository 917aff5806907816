from __future__ import annotations

import io
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._mat import files as _mat_files
from isolux.datasets.lfwa import INFO, load
from tests.cli._run import isolux

NAMES = ["Ada_L\\Ada_L_0001.jpg", "Ada_L\\Ada_L_0002.jpg", "José_M\\José_M_0001.jpg"]
LABEL = [[0, 1], [0, 0], [1, 1]]
ATTRIBUTES = ["Male", " 5 o Clock Shadow "]


def cells(words):
    held = np.empty((len(words), 1), dtype=object)
    held[:, 0] = words
    return held


def old(names=NAMES, label=LABEL, attributes=ATTRIBUTES, **more):
    """Write it as MATLAB did before version 7.3."""
    stream = io.BytesIO()
    variables = {"name": cells(names), "label": np.array(label), "AttrName": cells(attributes)}
    savemat(stream, variables | more, do_compression=True)
    return stream.getvalue()


def indices(train, test):
    stream = io.BytesIO()
    savemat(stream, {"indices_img_train": np.array(train), "indices_img_test": np.array(test)})
    return stream.getvalue()


def new(names=NAMES, label=LABEL, attributes=ATTRIBUTES):
    """Write it as MATLAB 7.3 does: HDF5, columns first, cells as references to codes."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: MATLAB 7.3 was NOT checked")
    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=512) as file:
        held = file.create_group("#refs#")
        for key, words in (("name", names), ("AttrName", attributes)):
            refs = np.empty((1, len(words)), dtype=h5py.ref_dtype)
            for i, word in enumerate(words):
                codes = np.frombuffer(word.encode("utf-16-le"), dtype="<u2").reshape(-1, 1)
                one = held.create_dataset(f"{key}{i}", data=codes)
                one.attrs["MATLAB_class"] = np.bytes_("char")
                refs[0, i] = one.ref
            file.create_dataset(key, data=refs)
        file["label"] = np.array(label, dtype=np.float64).T
    return stream.getvalue()


def written(folder, data, name="lfw_att_40.mat"):
    (folder / name).write_bytes(data)
    return folder


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


@pytest.mark.parametrize("version", [old, new])
def test_both_versions_of_matlab_say_the_same(tmp_path, version):
    dataset = load(written(tmp_path, version()))
    files = ["Ada_L/Ada_L_0001.jpg", "Ada_L/Ada_L_0002.jpg", "José_M/José_M_0001.jpg"]
    assert dataset.instances["instance_id"].to_list() == files
    assert dataset.instances["subject_id"].to_list() == ["Ada_L", "Ada_L", "José_M"]
    assert dataset.instances["cluster_id"].to_list() == ["Ada_L", "Ada_L", "José_M"]
    assert values(dataset, "Male") == ["no", "no", "yes"]
    assert values(dataset, "5_o_Clock_Shadow") == ["yes", "no", "yes"]
    assert dataset.images["uri"].to_list() == files
    assert dataset.notes == ()


def test_without_h5py_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    (tmp_path / "lfw_att_40.mat").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    with pytest.raises(FileError, match=r"(?s)version 7.3.*not installed.*pip install h5py"):
        load(tmp_path)


def test_parts_count_from_1(tmp_path):
    written(tmp_path, old())
    with pytest.raises(
        FileError, match=r"(?s)part 'test' cannot be determined.*indices_train_test.mat"
    ):
        load(tmp_path, split="test")
    written(tmp_path, indices([1], [[3]]), "indices_train_test.mat")
    dataset = load(tmp_path)
    assert values(dataset, "split") == ["train", None, "test"]
    assert dataset.notes == ("1 photograph(s) are in neither part.",)
    assert load(tmp_path, split="test").instances["subject_id"].to_list() == ["José_M"]


@pytest.mark.parametrize(
    ("train", "test", "words"),
    [
        ([0], [1], r"index is of no photograph.*1 to 3.*0\.0.*row 1"),
        ([1, 4], [2], r"index is of no photograph.*4\.0.*row 2"),
        ([1.5], [2], "index is of no photograph"),
        ([float("nan")], [2], "index is of no photograph"),
        ([1, 2], [2], r"in both parts.*Ada_L_0002.jpg"),
    ],
)
def test_parts_that_cannot_be_are_refused(tmp_path, train, test, words):
    written(tmp_path, old())
    written(tmp_path, indices(train, test), "indices_train_test.mat")
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(tmp_path)


def test_seventy_three_attributes_and_the_folder_of_pictures(tmp_path):
    written(tmp_path, old(), "lfw_att_73.mat")
    (tmp_path / "lfw").mkdir()
    assert load(tmp_path, labels="73").images["uri"][0] == "lfw/Ada_L/Ada_L_0001.jpg"
    with pytest.raises(FileError, match=r"(?s)no LFWA attributes.*lfw_att_40.mat"):
        load(tmp_path)
    with pytest.raises(SpecError, match=r"(?s)labels cannot be set.*40 or 73.*'50'"):
        load(tmp_path, labels="50")


def test_minus_one_is_no_as_in_celeba(tmp_path):
    dataset = load(written(tmp_path, old(label=[[-1, 1], [-1, -1], [1, 1]])))
    assert values(dataset, "Male") == ["no", "no", "yes"]


def test_clusters(tmp_path):
    written(tmp_path, old())
    assert (
        cluster_by_requested_column(load(tmp_path), "image").instances["cluster_id"].null_count()
        == 3
    )
    with pytest.raises(UnknownNameError, match="no cluster named 'photo'"):
        cluster_by_requested_column(load(tmp_path), "photo")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": [[0, 1], [0, 0]]}, "labels do not go with.*3 rows of 2.*2 × 2"),
        ({"label": [[0], [0], [1]]}, "labels do not go with"),
        ({"label": [[0, 1], [0, 2], [1, 1]]}, r"neither yes nor no.*2.*row 2.*5_o_Clock"),
        ({"label": [[0.0, 1], [0, float("nan")], [1, 1]]}, "neither yes nor no.*nan.*row 2"),
        ({"label": cells(["a", "b"])}, "label holds no numbers"),
        ({"names": [NAMES[0], NAMES[1], NAMES[0]]}, r"listed twice.*row 3"),
        ({"names": [NAMES[0], "..\\a.jpg", NAMES[2]]}, r"leads out.*row 2"),
        ({"names": [NAMES[0], "a.jpg", NAMES[2]]}, r"not named by person and file.*row 2"),
        ({"names": [NAMES[0], np.eye(2), NAMES[2]]}, r"a cell of name is not text.*row 2"),
        ({"attributes": ["Male", "Male "]}, r"no name, or not a unique one"),
        ({"attributes": ["Male", ""]}, r"no name, or not a unique one"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, words):
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(written(tmp_path, old(**change)))


def test_missing_variables_and_objects_are_named(tmp_path):
    stream = io.BytesIO()
    savemat(stream, {"name": cells(NAMES), "label": np.array(LABEL)})
    with pytest.raises(TableError, match="the MATLAB file has no AttrName"):
        load(written(tmp_path, stream.getvalue()))
    stream = io.BytesIO()
    savemat(stream, {"name": {"a": 1}, "label": np.array(LABEL), "AttrName": cells(ATTRIBUTES)})
    with pytest.raises(TableError, match="name is not a cell array"):
        load(written(tmp_path, stream.getvalue()))


def test_objects_are_refused(tmp_path, monkeypatch):
    # scipy cannot write a MATLAB object, so it is made to read one: its class is what is refused.
    import scipy.io
    from scipy.io.matlab import MatlabOpaque

    opaque = np.zeros((1, 1), dtype=[("s0", object)]).view(MatlabOpaque)
    monkeypatch.setattr(scipy.io, "loadmat", lambda *_, **__: {"name": opaque, "AttrName": opaque})
    with pytest.raises(TableError, match=r"(?s)holds an object.*MatlabOpaque.*'AttrName'"):
        load(written(tmp_path, old()))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(_mat_files, "MAX_ANNOTATION_BYTES", 1 << 24)
    packed = zlib.compress(bytes(1 << 26))
    tag = (15).to_bytes(4, "little") + len(packed).to_bytes(4, "little")
    written(tmp_path, old()[:128] + tag + packed)
    with pytest.raises(FileError, match=r"(?s)unpacks to far more.*at most 16 MiB"):
        load(tmp_path)


def test_links_and_data_elsewhere_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: links were NOT checked")
    (tmp_path / "secret").write_bytes(bytes(48))
    for problem, words in (("link", "a link"), ("external", "data in another file")):
        (tmp_path / "lfw_att_40.mat").write_bytes(new())
        with h5py.File(tmp_path / "lfw_att_40.mat", "a") as file:
            del file["label"]
            if problem == "link":
                file["label"] = h5py.ExternalLink("secret.mat", "/x")
            else:
                where = [(str(tmp_path / "secret"), 0, 48)]
                file.create_dataset("label", (2, 3), "f8", external=where)
        with pytest.raises(TableError, match=rf"(?s)label of a MATLAB file cannot.*{words}"):
            load(tmp_path)


def test_damaged_files_of_version_7_3_are_named(tmp_path):
    data = new()
    with pytest.raises(FileError, match="not a MATLAB file, or it is damaged"):
        load(written(tmp_path, data[: len(data) // 2]))


def test_whose_judgement_it_is():
    assert INFO.label_source == "perceived"
    assert {r.key for r in INFO.references} == {"celeba", "lfw"}


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    n = 240
    names = [f"P{i}\\P{i}_0001.jpg" for i in range(n)]
    label = [[i % 2, i // 2 % 2] for i in range(n)]
    written(tmp_path, old(names, label, ["Smiling", "Male"]))
    # Wrong of every second one who is not perceived as male: of those who smile.
    said = ["yes" if smiles and male else "no" for smiles, male in label]
    rows = [f"P{i}/P{i}_0001.jpg,{one}\n" for i, one in enumerate(said)]
    (tmp_path / "net.csv").write_text("file,label\n" + "".join(rows))
    ran = isolux(
        monkeypatch, capsys, "audit", f"lfwa:{tmp_path}", "--target", "Smiling", "--by", "Male",
        "--predictions", tmp_path / "net.csv", "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "50.0 points lower" in " ".join(ran.out.split())


@given(cut=st.integers(0, 1_000), place=st.integers(0, 1_000), byte=st.integers(0, 255))
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, cut, place, byte):
    data = bytearray(old())
    data[place % len(data)] = byte
    folder = tmp_path_factory.mktemp("fuzz")
    with suppress(IsoluxError):
        assert load(written(folder, bytes(data[: len(data) - cut]))).instances.height > 0


@pytest.mark.parametrize("cut", [1, 60, 183])
def test_a_variable_that_was_cut_off_never_reaches_scipy(tmp_path, cut):
    # scipy reads on in a packed variable that was cut off or damaged, and can end the process.
    data = bytearray(old())
    data[179] = 85
    with pytest.raises(FileError, match="this is not a MATLAB file, or it is damaged"):
        load(written(tmp_path, bytes(data[: len(data) - cut])))
