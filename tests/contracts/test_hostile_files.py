"""No file from elsewhere can crash, hang, fill the memory, look outside its folder, or run code.

Every dataset and every format of predictions is given its made-up sample with one file damaged
(``_hostile.MUTATIONS``). What comes back is one of our errors, which names the file, or tables as
they should be. A new plugin is found by itself, through its sample.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, InputError, IsoluxError
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from isolux.io.images import MAX_PIXELS, read_image
from tests._left_open import open_below
from tests.cli._run import isolux
from tests.contracts import _hostile as hostile
from tests.contracts._plugins import PLUGINS, Plugin, mend, mend_error
from tests.contracts._samples import answers_file, dataset_file

READERS = [p for p in PLUGINS if p.package in {"datasets", "predictions"}]
KINDS = sorted(hostile.MUTATIONS | hostile.OF_TEXT)
SECONDS = 120  # a kernel is compiled the first time
EXAMPLES = 8


class HangingError(BaseException):
    """No error of ours may pass for it, and no loader may catch it."""


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Whatever waits for a pipe, or walks in circles, is stopped."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise HangingError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def sample(plugin: Plugin, folder: Path) -> Path:
    write = dataset_file if plugin.package == "datasets" else answers_file
    return write(plugin, folder)


def read(plugin: Plugin, path: Path) -> object:
    return plugin.module.load(path) if plugin.package == "datasets" else plugin.module.read(path)


def paths_in(found: object) -> list[str]:
    """Paths that came out of the file: whoever opens them opens these."""
    frames = [found.images, found.instances] if isinstance(found, Dataset) else [found]
    columns = [f[name] for f in frames for name in ("uri", "part_mask_uri") if name in f.columns]
    return [path for column in columns for path in column.drop_nulls() if "://" not in path]


def look(plugin: Plugin, path: Path, damaged: Path, root: Path) -> str:
    """Read it; say ``refused`` or ``loaded``, or fail."""
    try:
        with in_time(), warnings.catch_warnings():
            warnings.simplefilter("error")
            found = read(plugin, path)
    except IsoluxError as error:
        said = str(error)
        if not any(name in said for name in (damaged.name, path.name, root.name)):
            pytest.fail(f"which file? {said}")
        assert not open_below(root.resolve()), said
        return "refused"
    except (HangingError, Exception) as error:  # noqa: BLE001 (whatever is not ours)
        mend_error(plugin, error, damaged.name)
    if isinstance(found, Dataset):
        check(found.instances, INSTANCES)
        check(found.attributes, ATTRIBUTES)
        check(found.images, IMAGES)
    for inner in paths_in(found):
        real = os.path.realpath(root / inner)
        if not real.startswith(str(root.resolve())):
            mend(plugin, f"names a path that leaves the dataset's folder, {inner!r}", "path")
    return "loaded"


@pytest.mark.parametrize("plugin", READERS, ids=str)
@settings(max_examples=EXAMPLES)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
def test_any_damage_is_refused_or_loads(plugin: Plugin, kind: str, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="hostile") as made:
        folder, outside = Path(made) / "set", Path(made) / "outside"
        folder.mkdir()
        outside.mkdir()
        (outside / "secret.jpg").touch()
        path = sample(plugin, folder)
        damaged = hostile.damage(path, kind, seed, outside)
        with contextlib.chdir(made):
            look(plugin, path, damaged, folder)
        left = {p.name for p in Path(made).iterdir()}
        assert left == {"set", "outside"}, "data were run, or a file was left"


@pytest.mark.parametrize("plugin", READERS, ids=str)
def test_a_pipe_is_not_waited_for(plugin: Plugin, tmp_path: Path) -> None:
    path = sample(plugin, tmp_path)
    file = path if path.is_file() else hostile.files_of(path)[0]
    file.unlink()
    os.mkfifo(file)
    assert look(plugin, path, file, tmp_path) in {"refused", "loaded"}


@pytest.mark.parametrize("plugin", READERS, ids=str)
def test_rows_twice_are_refused_or_noted(plugin: Plugin, tmp_path: Path) -> None:
    """Ids that occur twice must not make tables whose ids occur twice (``check`` looks)."""
    path = sample(plugin, tmp_path)
    for seed in range(3):
        file = hostile.damage(path, "rows repeated or gone", seed, tmp_path)
        look(plugin, path, file, tmp_path)


CELLS = [
    p for p in READERS
    if p.name in {"bdd100k", "coco", "facet", "fairface", "fhibe", "fiftyone", "miap", "table"}
]  # fmt: skip


@pytest.mark.parametrize("plugin", CELLS, ids=str)
def test_a_wrong_cell_is_told_with_its_row(plugin: Plugin, tmp_path: Path) -> None:
    """Where a value of a file is refused as such, the message has the file and the row."""
    refused = untold = 0
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = sample(plugin, folder)
        file = hostile.damage(path, "a hostile cell", seed, tmp_path)
        try:
            read(plugin, path)
        except InputError as error:
            refused += 1
            said = str(error)
            whole = file.name in said and ("row" in said or isinstance(error, FileError))
            untold += not whole
        except IsoluxError:  # a column's name was changed
            refused += 1
        shutil.rmtree(folder)
    assert not untold
    assert refused or plugin.name == "table", "a table of one's own may hold anything"


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonlines", "table"])
def test_a_large_cell_with_newlines_is_one_cell(name: str, tmp_path: Path) -> None:
    text = "line\n" * 40_000  # 200 KB
    suffix = {"table": "csv"}.get(name, name)
    path = tmp_path / f"net.{suffix}"
    frame = pl.DataFrame({"id": ["1", "2"], "label": ["a", text], "score": [0.5, 0.25]})
    if suffix == "jsonlines":
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    plugin = next(p for p in READERS if p.name == name)
    found = read(plugin, path)
    labels = (
        found.attributes.filter(attribute="label")["value"]
        if isinstance(found, Dataset)
        else found["label"]
    )
    assert [len(label) for label in labels] == [1, len(text.strip())]


@pytest.mark.parametrize("plugin", READERS, ids=str)
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_nested_ten_thousand_deep(plugin: Plugin, opening: str, tmp_path: Path) -> None:
    path = sample(plugin, tmp_path)
    texts = [f for f in hostile.files_of(path) if f.suffix in {".json", ".jsonl", ".jsonlines"}]
    closing = "]" if opening == "[" else "}"
    for file in texts:
        file.write_text(opening * hostile.DEEP + "1" * (opening != "[") + closing * hostile.DEEP)
    if texts:
        assert look(plugin, path, texts[0], tmp_path) == "refused"


@pytest.mark.parametrize("name", ["embeddings"])
def test_pickled_objects_are_not_unpacked(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    plugin = next(p for p in READERS if p.name == name)
    path = sample(plugin, tmp_path)
    hostile.objects(path)
    with pytest.raises(FileError, match="not an array of numbers"):
        read(plugin, path)
    assert not (tmp_path / hostile.OWNED).exists()


@pytest.mark.parametrize("name", ["imdb_wiki", "lfwa", "widerface"])
def test_a_mat_file_with_objects_is_refused(name: str, tmp_path: Path) -> None:
    """MATLAB's objects and functions stand for code; scipy's own are never asked for theirs."""
    from scipy.io import savemat
    from scipy.io.matlab import MatlabObject

    plugin = next(p for p in READERS if p.name == name)
    path = sample(plugin, tmp_path)
    file = next(iter(tmp_path.glob("*.mat")), tmp_path / "wider_face_val.mat")
    variable = {"imdb_wiki": "imdb", "lfwa": "name", "widerface": "face_bbx_list"}[name]
    inner = np.zeros((1, 1), dtype=[("a", object)])
    inner["a"][0, 0] = np.array(["x"])
    savemat(file, {variable: MatlabObject(inner, classname="inline")})
    with pytest.raises(IsoluxError, match=r"(?s)object|has no ") as caught:
        read(plugin, file if name == "widerface" else path)
    assert file.name in str(caught.value)


def _links(folder: Path, outside: Path) -> dict[str, Path]:
    """Pictures that are links: to a file outside, to itself, to a file inside."""
    made = {name: folder / f"{name}_skin.png" for name in ("out", "loop", "in")}
    Image.new("L", (2, 2)).save(folder / "real_skin.png")
    made["out"].symlink_to(outside / "secret.png")
    made["loop"].symlink_to(made["loop"])
    made["in"].symlink_to(folder / "real_skin.png")
    return made


@pytest.mark.parametrize("name", ["image_files", "part_masks"])
@pytest.mark.parametrize("kind", ["out", "loop"])
def test_a_link_that_leaves_the_folder_is_not_followed(
    name: str, kind: str, tmp_path: Path
) -> None:
    folder, outside = tmp_path / "net", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.png").write_bytes(b"secret")
    made = _links(folder, outside)
    for other in set(made) - {kind, "in"}:
        made[other].unlink()
    plugin = next(p for p in READERS if p.name == name)
    assert look(plugin, folder, made[kind], folder) in {"refused", "loaded"}


def test_names_that_are_not_ascii_come_through(tmp_path: Path) -> None:
    names = ["李明.jpg", "é.jpg", "\u0627.jpg", "🙂.jpg"]
    (tmp_path / "set" / "nurse").mkdir(parents=True)
    for name in names:
        (tmp_path / "set" / "nurse" / name).touch()
    plugin = next(p for p in READERS if str(p) == "datasets/imagefolder")
    found = read(plugin, tmp_path / "set")
    assert isinstance(found, Dataset)
    assert {Path(uri).name for uri in found.images["uri"]} == set(names)


def _picture(folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.png"
    if kind == "one pixel":
        Image.new("RGB", (1, 1)).save(path)
    elif kind == "50,000 wide":
        Image.new("L", (50_000, 4)).save(path)
    elif kind == "bomb":  # a header that promises 3,600 million pixels, and next to no data
        body = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", body), (b"IDAT", zlib.compress(b"\0" * 100_000)), (b"IEND", b""))
        path.write_bytes(
            b"\x89PNG\r\n\x1a\n"
            + b"".join(
                struct.pack(">I", len(data))
                + name
                + data
                + struct.pack(">I", zlib.crc32(name + data))
                for name, data in parts
            )
        )
    else:
        Image.new("RGB", (400, 300), (9, 8, 7)).save(path, kind, quality=90)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * 0.6)])
    return path


@pytest.mark.parametrize(
    ("kind", "text"),
    [("bomb", "like a decompression bomb"), ("PNG", "damaged"), ("JPEG", "damaged")],
)
def test_a_picture_that_is_none_is_refused(kind: str, text: str, tmp_path: Path) -> None:
    path = _picture(tmp_path, kind)
    with pytest.raises(FileError, match=text) as caught:
        read_image(path)
    assert path.name in str(caught.value)


@pytest.mark.parametrize(("kind", "shape"), [("one pixel", (1, 1)), ("50,000 wide", (4, 50_000))])
def test_a_picture_of_an_odd_shape_is_read(kind: str, shape: tuple, tmp_path: Path) -> None:
    assert shape[0] * shape[1] < MAX_PIXELS
    assert read_image(_picture(tmp_path, kind)).shape[:2] == shape


MEMORY_MIB = 900
_BOMBS = """
import json, sys
from pathlib import Path
from isolux.core import registry
from isolux.core.errors import IsoluxError
from isolux.io.images import read_image
from tests.faults._memory import peak_mib
base = peak_mib()
for line in sys.argv[1:]:
    package, name, path = line.split("|")
    try:
        if package == "picture":
            read_image(path)
        else:
            module = registry.load(package, name)
            (module.load if package == "datasets" else module.read)(path)
        print(line, "LOADED")
    except IsoluxError as error:
        print(line, str(error).splitlines()[0])
print(json.dumps(peak_mib() - base))
"""


def _bombs(folder: Path) -> list[str]:
    """Files of a few megabytes at most that hold gigabytes."""
    from scipy.io import savemat

    member = gzip.compress(b"a,b\n" * (1 << 22))  # 16 MiB
    (folder / "people.csv.gz").write_bytes(member * 30)
    (folder / "net.csv.gz").write_bytes(member * 30)
    (folder / "net.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * (1 << 20)) * 30)
    (folder / "net.json.gz").write_bytes(gzip.compress(b"[" * (1 << 20) + b" " * (1 << 24)) * 20)
    blanks = gzip.compress(b" " * (1 << 24)) * 90  # 1.5 GB
    (folder / "blanks.json.gz").write_bytes(blanks)
    (folder / "blanks.txt.gz").write_bytes(blanks)
    pl.select(pl.repeat(value=True, n=42_000_000, dtype=pl.Boolean).alias("id")).with_columns(
        pl.col("id").alias(f"c{k}") for k in range(24)
    ).write_parquet(folder / "many.parquet", compression_level=1)
    _picture(folder, "bomb")
    header = {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**3)}
    with (folder / "net.npy").open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(b"\0" * 64)
    (folder / "net.ids.txt").write_text("a\n")
    savemat(
        folder / "lfw_att_40.mat", {"label": np.zeros((1 << 27, 1), np.uint8)}, do_compression=True
    )
    return [
        f"datasets|table|{folder / 'people.csv.gz'}",
        f"datasets|table|{folder / 'many.parquet'}",
        f"datasets|lfwa|{folder / 'lfw_att_40.mat'}",
        f"predictions|csv|{folder / 'net.csv.gz'}",
        f"predictions|jsonlines|{folder / 'net.jsonl.gz'}",
        f"predictions|coco_results|{folder / 'net.json.gz'}",
        f"predictions|scalabel|{folder / 'blanks.json.gz'}",
        f"predictions|widerface_text|{folder / 'blanks.txt.gz'}",
        f"predictions|embeddings|{folder / 'net.npy'}",
        f"picture||{folder / 'bomb.png'}",
    ]


def test_bombs_are_refused_within_memory(tmp_path: Path) -> None:
    bombs = _bombs(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _BOMBS, *bombs], cwd=Path(__file__).resolve().parents[2],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    *said, used = done.stdout.splitlines()
    assert len(said) == len(bombs)
    assert not [line for line in said if line.endswith("LOADED")]
    assert json.loads(used) < MEMORY_MIB, said


CLI = ["fairface", "facet", "coco", "lfwa", "table"]


@pytest.mark.parametrize("command", ["audit", "describe", "check", "sample"])
@pytest.mark.parametrize("name", CLI)
def test_the_command_line_says_what_is_wrong(monkeypatch, capsys, tmp_path, name, command) -> None:
    """No traceback, an exit code that is not 0, and nothing written."""
    plugin = next(p for p in READERS if str(p) == f"datasets/{name}")
    folder = tmp_path / "set"
    folder.mkdir()
    path = sample(plugin, folder)
    file = path if path.is_file() else next(iter(hostile.files_of(path)))
    file.write_bytes(file.read_bytes()[:7] + b"\0\xff" + b"[" * hostile.DEEP)
    monkeypatch.chdir(tmp_path)
    more = {
        "audit": ["--target", "class", "--by", "tone", "--prediction-column", "class",
                  "--out", "out"],
        "describe": ["--out", "out.html"],
        "check": ["--no-images"],
        "sample": ["--balance", "tone", "--per-cell", "1", "--out", "out.csv"],
    }[command]  # fmt: skip
    ran = isolux(monkeypatch, capsys, command, f"{name}:{path}", *more)
    assert ran.code == (1 if command == "check" else 2), ran.err + ran.out
    assert "Traceback" not in ran.err + ran.out
    assert "bug in isolux" not in ran.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["set"], "an output was left"
