"""Pictures read by processes: what threads read, and nothing left of them however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from isolux.engine import reader_processes
from isolux.engine.pictures import Picture, Unit
from isolux.engine.reader_processes import ReaderProcesses, process_count, started_early
from isolux.engine.reading import read_picture
from isolux.io.picture_folder import PictureFolder
from isolux.models import Prepared, Preprocessing, callable_model
from isolux.vocabulary.errors import SpecError
from tests.engine._painted import paint, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes read on Linux alone")

PREPARE = Preprocessing(9, 12, fit="crop", filter="bicubic", mean=(0.1, 0.2, 0.3))
LONG = 240.0  # seconds: a process imports for a second, on a busy machine for many


class Net:
    """Labels a picture by its prepared mean."""

    predicts = "labels"
    prepare = PREPARE

    def __init__(self, device="cpu"):
        self.identity = {"device": device}

    def __call__(self, shown):
        return [f"{one.values.mean():.17g}" for one in shown]


def until(true):
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(group):
    """List what is at work in a group of processes; what ended and waits for its parent is not."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, _, of = rest.split()[:3]
        if int(of) == group and state not in "ZX":
            found.append(path.parent.name)
    return found


def noise(folder, n):
    rng = np.random.default_rng(1)
    for k in range(n):
        pixels = rng.integers(0, 256, (30 + k, 44 - k, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{k}.{'jpg' if k % 2 else 'png'}")


def of(name, *units, **more):
    told = {"width": None, "height": None, "placed": False, **more}
    return Picture(name, name, units=units or (Unit(name),), **told)


def by_thread(folder):
    """Read in this process, as a thread would, and remember what was asked."""
    asked = []

    def instead(picture):
        asked.append(picture.image_id)
        future = Future()
        future.set_result(read_picture(picture, PictureFolder(folder), PREPARE, 1.0))
        return future

    return instead, asked


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("pictures")
    noise(found, 12)
    (found / "broken.png").write_text("no picture")
    (found / "empty.jpg").write_bytes(b"")
    return found


@pytest.fixture
def started(folder):
    instead, asked = by_thread(folder)
    found = ReaderProcesses(2, PREPARE, PictureFolder(folder), 1.25, 4, 1 << 20, instead)
    found.asked = asked
    until(lambda: all(one.ready for one in found._all))
    yield found
    found.close()
    assert alive(found._server.process.pid) == []


PICTURES = [
    *(of(f"{k}.{'jpg' if k % 2 else 'png'}") for k in range(12)),
    of("broken.png"), of("empty.jpg"), of("absent.png"),
    Picture("away", None, None, None, (Unit("away"),), placed=False, reason="on the web"),
    of("0.png", Unit("a", whole=False, box=(2.5, 3.0, 20.0, 11.0)),
       Unit("b", whole=False), Unit("c", whole=False, box=(900.0, 3.0, 20.0, 11.0)),
       Unit("d", whole=False, box=(-3.0, 1.0, 17.5, 20.0))),
    of("1.jpg", width=7, height=7, placed=True),
]  # fmt: skip


def test_processes_read_what_threads_read(started, folder):
    waiting = {}

    def take(k):
        check(waiting.pop(k).result(LONG), PICTURES[k], folder)

    for k, picture in enumerate(PICTURES):
        while (future := started.submit(picture)) is None:  # until something is let go
            started.hand_out()
            take(min(waiting))
        waiting[k] = future
    started.hand_out()
    for k in list(waiting):
        take(k)
    assert started.asked == []
    assert len(started._places) == len(set(started._places)) == len(started._shared)
    # It forked, so it may have no thread but those of polars, which no process calls.
    tasks = Path(f"/proc/{started._server.process.pid}/task").glob("*/comm")
    names = [one.read_text().strip() for one in tasks]
    assert sum(not one.startswith(("jemalloc", "polars")) for one in names) == 1, names


def check(found, picture, folder):
    right = read_picture(picture, PictureFolder(folder), PREPARE, 1.25)
    assert (found.opened, found.said, found.n_bytes) == (right.opened, right.said, right.n_bytes)
    for one, other in zip(found.shown, right.shown, strict=True):
        assert (one is None) == (other is None)
        if isinstance(one, Prepared):
            assert (one.scale, one.offset, one.size) == (other.scale, other.offset, other.size)
            assert np.array_equal(one.values, other.values)
    found.free()


def test_what_a_lost_process_had_is_read_by_threads(started):
    futures = [started.submit(picture) for picture in PICTURES[:12]]
    os.killpg(started._server.process.pid, signal.SIGKILL)
    started.hand_out()
    found = [future.result(LONG).opened.picture for future in futures]
    assert found == PICTURES[:12]
    until(lambda: not started.ready)


def test_a_process_that_hangs_is_given_up_alone(started):
    group = started._server.process.pid
    os.killpg(group, signal.SIGSTOP)
    futures = [started.submit(picture) for picture in PICTURES[:8]]
    started.hand_out()  # four each
    assert started.give_up(futures[0])
    assert [one.result(LONG).opened.picture for one in futures[:4]] == PICTURES[:4]
    assert started.asked == [picture.image_id for picture in PICTURES[:4]]
    assert not any(one.done() for one in futures[4:])
    os.killpg(group, signal.SIGCONT)
    assert [one.result(LONG).opened.picture for one in futures[4:]] == PICTURES[4:8]
    assert len(started.asked) == 4
    for one in futures:
        one.result().free and one.result().free()
    assert len(started._places) == len(started._shared) - 4  # it may still write to these


_KILLED = """
import sys, time
from isolux.engine.reader_processes import ReaderProcesses
from isolux.io.picture_folder import PictureFolder
from isolux.models import Preprocessing
found = ReaderProcesses(2, Preprocessing(8, 8), PictureFolder("."), 1.0, 4, 1 << 20, None)
print(found._server.process.pid, flush=True)
while not found.ready:
    time.sleep(0.02)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("ready", [False, True])
def test_none_outlives_a_command_that_is_killed(ready):
    command = subprocess.Popen([sys.executable, "-c", _KILLED], stdout=subprocess.PIPE, text=True)
    try:
        group = int(command.stdout.readline())
        if ready:
            assert command.stdout.readline() == "ready\n"
            assert len(alive(group)) == 3
    finally:
        command.kill()
        command.wait()
        command.stdout.close()
    until(lambda: not alive(group))


def test_a_run_is_the_same_by_threads_and_by_processes(tmp_path, monkeypatch):
    people = paint(tmp_path / "in", 30)
    (tmp_path / "in" / "004.png").write_text("no picture")
    (tmp_path / "in" / "009.png").unlink()
    began = []
    ready = ReaderProcesses.ready.fget
    monkeypatch.setattr(
        ReaderProcesses, "ready",
        property(lambda self: began.append(until(lambda: ready(self))) or True),
    )  # fmt: skip
    for where, settings in (("a", {}), ("b", {"reader_processes": 2})):
        run(people, tmp_path / where, Net(), **settings)
        assert bool(began) == (where == "b")
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / where).rglob("*") if path.is_file()}
        for where in "ab"
    ]
    assert files[0] == files[1]


def test_a_few_pictures_start_no_process(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_processes, "cores", lambda: 16)
    monkeypatch.setattr(reader_processes, "_Server", None)  # which none may call
    people = paint(tmp_path / "in", 40)
    _, _, found = run(people, tmp_path / "out", Net("cuda"))
    assert found.predictions.height == 40


@pytest.mark.parametrize(
    ("device", "here", "asked", "count"),
    [
        ("cuda", 16, None, 15), ("cuda:1", 64, None, 16), ("cuda", 7, None, 0),
        ("cpu", 64, None, 0), ("cuda", 16, 0, 0), ("cpu", 2, 3, 3),
    ],
)  # fmt: skip
def test_how_many_processes_read(monkeypatch, device, here, asked, count):
    monkeypatch.setattr(reader_processes, "cores", lambda: here)
    assert process_count(callable_model(Net(device), version="1"), asked) == count


def test_processes_are_refused_for_a_model_that_prepares_pictures_itself(monkeypatch):
    monkeypatch.setattr(reader_processes, "cores", lambda: 16)
    own = type("Own", (), {"identity": {"device": "cuda"}, "__call__": lambda self, _: []})
    model = callable_model(own(), version="1")
    assert process_count(model, None) == 0
    with pytest.raises(SpecError, match="no processes can read pictures for this model"):
        process_count(model, 2)


def test_processes_that_were_started_early_end_where_none_is_needed(monkeypatch):
    monkeypatch.setattr(reader_processes, "cores", lambda: 8)
    with started_early(("weights=w", "device=cuda:0"), None):
        group = reader_processes._early[0].process.pid
        assert alive(group)
    assert (reader_processes._early, alive(group)) == ([], [])
    for options, asked in (((), None), (("device=cpu",), None), (("device=cuda",), 0)):
        with started_early(options, asked):
            assert reader_processes._early == []


def test_what_a_gpu_is_asked_ahead_is_put_into_the_same_shards(tmp_path, monkeypatch):
    people = paint(tmp_path / "in", 30)
    found = [run(people, tmp_path / "a", Net())[2]]
    monkeypatch.setattr(reader_processes, "cores", lambda: 16)
    waited = sys.getswitchinterval()
    found.append(run(people, tmp_path / "b", Net("cuda"))[2])
    assert sys.getswitchinterval() == waited
    a, b = found
    assert a.predictions.equals(b.predictions)
    assert a.looks.equals(b.looks)


def test_what_waits_behind_a_batch_that_hangs_is_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_processes, "cores", lambda: 16)
    free, first = threading.Event(), []

    class Hangs(Net):
        def __call__(self, shown):
            if not first:
                first.append(1)
                free.wait(60)
            return super().__call__(shown)

    _, _, found = run(paint(tmp_path / "in", 12), tmp_path / "out", Hangs("cuda"), time_limit=3.0)
    free.set()
    late = found.looks.drop_nulls("reason")
    assert late["unit_id"].to_list() == [f"{k:03}.png" for k in range(4)]  # the first shard
