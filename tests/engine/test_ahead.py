"""Pictures read ahead: by threads, or by processes of PyTorch's DataLoader, the same."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from isolux.core.errors import SpecError
from isolux.engine import prefetch as ahead
from isolux.engine.prefetch import (
    ImagePrefetcher,
    choose_n_decoding_processes,
    decode_and_prepare_image,
)
from isolux.engine.settings import PredictionSettings
from isolux.engine.source_images import SourceImage, Unit
from isolux.io.image_folder import ImageFolder
from isolux.models import ModelInput, Preprocessing, wrap_callable_as_model
from tests.engine._painted import paint, run

PREPARE = Preprocessing(9, 12, fit="crop", filter="bicubic", mean=(0.1, 0.2, 0.3))


def ten_minutes_from_now():
    return time.monotonic() + 600


class Net:
    """Labels a picture by its prepared mean."""

    predicts = "labels"
    prepare = PREPARE

    def __init__(self, device="cpu"):
        self.identity = {"device": device}

    def __call__(self, shown):
        return [f"{one.values.mean():.17g}" for one in shown]


@pytest.fixture
def torch_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    monkeypatch.setattr(ahead, "count_cores", lambda: 16)


def of(name, *units, **more):
    settings = {"width": None, "height": None, "needs_annotated_size": False, **more}
    return SourceImage(name, name, units=units or (Unit(name),), **settings)


PICTURES = [
    *(of(f"{k}.{'jpg' if k % 2 else 'png'}") for k in range(12)),
    of("broken.png"),
    of("empty.jpg"),
    of("absent.png"),
    SourceImage(
        "away", None, None, None, (Unit("away"),), needs_annotated_size=False, reason="on the web"
    ),
    of(
        "0.png",
        Unit("a", is_full_image=False, box=(2.5, 3.0, 20.0, 11.0)),
        Unit("b", is_full_image=False),
    ),
    of("1.jpg", width=7, height=7, needs_annotated_size=True),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(1)
    for k in range(12):
        pixels = rng.integers(0, 256, (30 + k, 44 - k, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(path / f"{k}.{'jpg' if k % 2 else 'png'}")
    (path / "broken.png").write_text("no picture")
    (path / "empty.jpg").write_bytes(b"")
    return ImageFolder(path)


def check(read, picture, folder):
    right = decode_and_prepare_image(picture, folder, PREPARE, 1.0)
    fields = attrgetter("decoded", "responses", "n_bytes")
    assert fields(read) == fields(right)
    for one, other in zip(read.model_inputs, right.model_inputs, strict=True):
        assert (one is None) == (other is None)
        if isinstance(one, ModelInput):
            assert (one.scale, one.offset, one.size) == (other.scale, other.offset, other.size)
            assert np.array_equal(one.values, other.values)


@pytest.mark.parametrize("batch", [1, 16])
def test_threads_read_in_order_and_a_bounded_number_ahead(folder, batch):
    taken = []
    reads = ImagePrefetcher(
        wrap_callable_as_model(Net(), version="1"), folder, PredictionSettings(batch, readers=2)
    )
    reads.start(taken.append(p) or p for p in PICTURES)
    for n, picture in enumerate(PICTURES):
        assert len(taken) <= n + batch + 4
        check(reads.next(picture, ten_minutes_from_now()), picture, folder)
        reads.submit_reads()
    reads.close()


def test_a_picture_that_hangs_is_late_and_those_behind_it_are_read(folder, monkeypatch):
    free = threading.Event()

    def hangs(picture, *rest):
        if picture is PICTURES[0]:
            free.wait(60)
        return decode_and_prepare_image(picture, *rest)

    monkeypatch.setattr(ahead, "decode_and_prepare_image", hangs)
    reads = ImagePrefetcher(
        wrap_callable_as_model(Net(), version="1"), folder, PredictionSettings(2, readers=1)
    )
    reads.start(iter(PICTURES))
    late = reads.next(PICTURES[0], 0.0)
    assert late.responses[0].fault == "time"
    for picture in PICTURES[1:4]:
        check(reads.next(picture, ten_minutes_from_now()), picture, folder)
    free.set()
    reads.close()


@pytest.mark.parametrize("is_lost", [False, True])
def test_processes_of_torch_read_what_threads_read(folder, is_lost):
    torch = pytest.importorskip("torch", reason="PyTorch is not among the pins")
    settings = PredictionSettings(2, reader_processes=2)
    reads = ImagePrefetcher(wrap_callable_as_model(Net(), version="1"), folder, settings)
    reads.start(iter(PICTURES))
    assert torch is not None
    for n, picture in enumerate(PICTURES):
        if is_lost and n == 3:
            os.kill(reads._process_results._workers[0].pid, signal.SIGKILL)
        check(reads.next(picture, ten_minutes_from_now()), picture, folder)
        reads.submit_reads()
    reads.close()


@pytest.mark.parametrize(
    ("device", "cores", "asked", "count"),
    [
        ("cuda", 16, None, 15), ("cuda:1", 64, None, 16), ("cuda", 7, None, 0),
        ("cpu", 64, None, 0), ("cuda", 16, 0, 0), ("cpu", 2, 3, 3),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("torch_is_there")
def test_how_many_processes_read(monkeypatch, device, cores, asked, count):
    monkeypatch.setattr(ahead, "count_cores", lambda: cores)
    assert (
        choose_n_decoding_processes(wrap_callable_as_model(Net(device), version="1"), asked)
        == count
    )


@pytest.mark.usefixtures("torch_is_there")
def test_processes_are_refused_for_a_model_that_prepares_pictures_itself():
    own = type("Own", (), {"identity": {"device": "cuda"}, "__call__": lambda self, _: []})
    model = wrap_callable_as_model(own(), version="1")
    assert choose_n_decoding_processes(model, None) == 0
    with pytest.raises(SpecError, match="no processes can read pictures for this model"):
        choose_n_decoding_processes(model, 2)


def test_threads_read_where_the_model_is_not_of_torch(monkeypatch):
    monkeypatch.setattr(ahead, "count_cores", lambda: 16)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert choose_n_decoding_processes(wrap_callable_as_model(Net("cuda"), version="1"), None) == 0


@pytest.mark.usefixtures("torch_is_there")
def test_a_few_pictures_start_no_process_and_come_into_the_same_shards(tmp_path):
    people = paint(tmp_path / "in", 30)
    by_cpu = run(people, tmp_path / "a", Net())[2]
    waited = sys.getswitchinterval()
    by_gpu = run(people, tmp_path / "b", Net("cuda"))[2]
    assert sys.getswitchinterval() == waited
    assert by_cpu.predictions.equals(by_gpu.predictions)
    assert by_cpu.inferences.equals(by_gpu.inferences)


@pytest.mark.usefixtures("torch_is_there")
def test_what_waits_behind_a_batch_that_hangs_is_asked_again(tmp_path):
    free, first = threading.Event(), []

    class Hangs(Net):
        def __call__(self, shown):
            if not first:
                first.append(1)
                free.wait(60)
            return super().__call__(shown)

    _, _, found = run(paint(tmp_path / "in", 12), tmp_path / "out", Hangs("cuda"), time_limit=3.0)
    free.set()
    assert found.inferences["reason"].null_count() == 12  # the first shard's pictures alone
    assert found.predictions.height == 12
