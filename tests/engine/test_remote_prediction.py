"""A model in processes of its own: the same files as in one, and none that is lost ends a run."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from isolux.core.errors import InputError, IsoluxError, SpecError, TableError
from isolux.engine import (
    PredictionSettings,
    ShardStore,
    list_source_images,
    predict_missing_shards_in_process,
    predict_missing_shards_remotely,
    remote_prediction,
    split_into_shards,
)
from isolux.engine import remote_prediction as work
from isolux.engine.jobs.processes import ProcessExecutor
from isolux.engine.source_images import find_image_folder
from isolux.models import open_model, wrap_callable_as_model
from tests.engine._painted import brightness, paint

NETS = '''
import ctypes, os, signal, time
from pathlib import Path

def brightness(pictures):
    return [str(int(one.mean())) for one in pictures]

def net():
    Path(f"opened-{os.getpid()}").touch()
    return brightness

def killed(*, times: int = 1, everywhere: bool = False):
    """End the process at picture 5, the first times."""
    def answer(pictures):
        before = len(list(Path().glob("killed-*")))
        if any(everywhere or one.mean() == 25 for one in pictures) and before < times:
            Path(f"killed-{before}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return brightness(pictures)
    return answer

def deadly():
    return killed(times=1000)

def hopeless():
    return killed(times=1000, everywhere=True)

def stuck():
    """Hang at picture 5 with Python's lock held: no thread of the process gets on."""
    def answer(pictures):
        if any(one.mean() == 25 for one in pictures):
            ctypes.PyDLL(None).sleep(60)
        return brightness(pictures)
    return answer

def late():
    def answer(pictures):
        if any(one.mean() == 25 for one in pictures):
            time.sleep(60)
        return brightness(pictures)
    return answer

def ended():
    """End the process at picture 5, as a crash of compiled code does."""
    def answer(pictures):
        if any(one.mean() == 25 for one in pictures):
            os._exit(3)
        return brightness(pictures)
    return answer

def wrong():
    return lambda pictures: ["a"] * (len(pictures) + 1)
'''


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "isolux_apart_nets.py").write_text(NETS)
    return paint(tmp_path / "in", 12)


def run(people, out, factory="net", *, workers=2, retries=2, stop=None, tell=None, **settings):
    """Predict; with 0 workers in this process."""
    model = open_model(f"python:isolux_apart_nets:{factory}", name="net")
    shards = split_into_shards(list_source_images(people, "labels", "image"), 4)
    how = PredictionSettings(**{"batch": 3, "max_failures": 1.0, **settings})
    store, folder = ShardStore(out), find_image_folder(people)
    with store.lock():
        store.write_record({"state": "unfinished", "shards": len(shards)})
        if workers:
            ran = predict_missing_shards_remotely(
                ProcessExecutor(workers), model, (), shards, folder, store, "k" + model.key, how,
                retries=retries, stop=stop, report=tell,
            )  # fmt: skip
        else:
            ran = predict_missing_shards_in_process(
                model, shards, folder, store, "k" + model.key, how
            )
        gathered = store.collect("labels", ran.keys, "net") if ran.is_complete else None
    return ran, gathered


def everything(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def reasons(gathered):
    return dict(gathered.inferences.drop_nulls("reason").select("unit_id", "reason").rows())


def test_files_are_those_of_one_process_and_a_model_is_opened_once_a_worker(people, tmp_path):
    (tmp_path / "in" / "007.png").write_text("no picture")
    run(people, tmp_path / "here", workers=0)
    here = len(list(tmp_path.glob("opened-*")))
    told = []
    ran, _ = run(people, tmp_path / "there", tell=lambda *now: told.append(now))
    assert everything(tmp_path / "here") == everything(tmp_path / "there")
    assert (ran.n_computed, ran.n_images, ran.is_complete) == (3, 12, True)
    assert told[-1] == (12, 12, 12)
    assert 1 <= len(list(tmp_path.glob("opened-*"))) - here <= 2
    assert [p.name for p in (tmp_path / "there").iterdir() if p.name.startswith(".")] == []


def test_what_is_there_is_not_done_again_and_a_changed_pixel_redoes_its_shard(people, tmp_path):
    run(people, tmp_path / "out")
    before = everything(tmp_path / "out")
    ran, _ = run(people, tmp_path / "out")
    assert (ran.n_computed, ran.n_images, ran.is_complete) == (0, 0, True)
    assert everything(tmp_path / "out") == before
    whole = (tmp_path / "in" / "001.png").read_bytes()
    (tmp_path / "in" / "005.png").write_bytes(whole)
    ran, found = run(people, tmp_path / "out")
    assert ran.n_computed == 1
    assert found.predictions["label"].to_list()[4:7] == ["20", "5", "30"]


def test_a_killed_worker_is_replaced_and_its_shard_done_again(people, tmp_path):
    ran, found = run(people, tmp_path / "out", "killed")
    assert (tmp_path / "killed-0").exists()
    assert (ran.n_computed, reasons(found)) == (3, {})
    assert found.predictions["label"].to_list() == [str(5 * k) for k in range(12)]


def test_a_picture_that_kills_each_worker_is_a_reason_and_asked_again(people, tmp_path):
    ran, found = run(people, tmp_path / "out", "deadly", retries=1, workers=1)
    why = "its worker was lost: its process ended with -9"
    assert reasons(found) == {"005.png": why}
    assert found.predictions["label"].to_list() == [str(5 * k) for k in range(12) if k != 5]
    assert found.inferences.drop_nulls("fault")["fault"].to_list() == ["model"]
    assert len(list(tmp_path.glob("killed-*"))) == 3  # a try, one more, and the picture alone
    ran, _ = run(people, tmp_path / "out", "deadly", retries=0)
    assert ran.n_computed == 1
    with pytest.raises(InputError, match=r"(?s)too many pictures.*1 × its worker was lost"):
        run(people, tmp_path / "few", "deadly", retries=0, max_failures=0.05)


def test_a_shard_whose_pictures_all_end_their_worker_is_given_up_after_two(people, tmp_path):
    _, found = run(people, tmp_path / "out", "hopeless", retries=0, workers=1)
    why = "its worker was lost: its process ended with -9"
    assert reasons(found) == {f"{k:03}.png": why for k in range(12)}
    assert len(list(tmp_path.glob("killed-*"))) == 9  # of three shards: once, and two pictures


def test_a_worker_that_holds_pythons_lock_is_ended_and_the_rest_is_done(
    people, tmp_path, monkeypatch
):
    monkeypatch.setattr(remote_prediction, "_TIME_LIMIT_FACTOR", 1.0)
    monkeypatch.setattr(remote_prediction, "_MIN_MARGIN_S", 2.0)
    began = time.monotonic()
    _, found = run(people, tmp_path / "out", "stuck", workers=1, time_limit=1.0)
    assert time.monotonic() - began < 50
    late = "not answered within the time limit of its shard"
    assert reasons(found) == {"005.png": late}
    assert found.inferences.drop_nulls("fault")["fault"].to_list() == ["time"]
    assert found.predictions.height == 11


def test_a_worker_keeps_its_time_limit_as_one_process_does(people, tmp_path):
    for name, workers in (("here", 0), ("there", 1)):
        run(people, tmp_path / name, "late", workers=workers, time_limit=2.0)
    assert everything(tmp_path / "here") == everything(tmp_path / "there")


@pytest.mark.parametrize(("factory", "code"), [("ended", 3), ("net", 0)])
def test_a_model_that_ends_the_process_is_named(people, tmp_path, factory, code):
    rows = "".join(f"{k:03}.png,a\n" for k in range(12))
    (tmp_path / "people.csv").write_text("image,light\n" + rows)
    command = ["predict", "table:people.csv", "--images", "in", "--id", "image", "--out", "o"]
    ran = subprocess.run(
        [sys.executable, "-m", "isolux", *command,
         "--model", f"python:isolux_apart_nets:{factory}", "--batch", "3"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == code, ran.stderr
    said = f"the process ended while '{factory}' was answering: the model ended it (os._exit"
    assert (said in ran.stderr) == bool(code)


def test_answers_that_do_not_fit_end_the_work(people, tmp_path):
    with pytest.raises(TableError, match=r"(?s)3 answers for 3 pictures.*found: 4"):
        run(people, tmp_path / "out", "wrong")
    assert list((tmp_path / "out").rglob("*.parquet")) == []


def test_a_worker_with_another_model_refuses_to_answer(people, tmp_path, monkeypatch):
    real = work.ModelRequest

    def told(*given):
        return real(*given[:3], "0" * 64, {**given[4], "numpy": "1.0"}, *given[5:])

    monkeypatch.setattr(remote_prediction, "ModelRequest", told)
    with pytest.raises(IsoluxError, match="a worker has another model, or other code") as caught:
        run(people, tmp_path / "out")
    assert "not 1.0" in str(caught.value)


def test_to_stop_finishes_the_shards_at_hand_and_the_next_command_goes_on(people, tmp_path):
    asked = iter([False, True, True, True, True, True])
    ran, found = run(people, tmp_path / "a", workers=1, stop=lambda: next(asked))
    assert (ran.is_complete, found, ran.n_computed) == (False, None, 1)
    ran, _ = run(people, tmp_path / "a")
    assert ran.n_computed == 2
    run(people, tmp_path / "b", workers=0)
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


def test_a_callable_in_memory_is_refused(people, tmp_path):
    model = wrap_callable_as_model(brightness, name="net", version="1")
    store = ShardStore(tmp_path / "out")
    with store.lock(), pytest.raises(SpecError, match="in memory cannot be given to other"):
        predict_missing_shards_remotely(
            ProcessExecutor(1),
            model,
            (),
            [],
            find_image_folder(people),
            store,
            "k",
            PredictionSettings(),
        )


def test_a_worker_without_the_commands_folder_says_so(tmp_path):
    asked = work.ModelRequest(
        "python:x:y", (), "n", "k", {}, "c", "r", "p", str(tmp_path / "no"), {}
    )
    here = Path.cwd()
    with pytest.raises(IsoluxError, match=r"(?s)does not see the folder.*all nodes share"):
        work.open_model_in_worker(asdict(asked))
    assert Path.cwd() == here


def test_pictures_come_back_from_json_as_they_were():
    import json

    import msgspec

    from isolux.engine import Shard
    from isolux.engine.source_images import SourceImage, Unit

    unit = Unit("u", is_full_image=False, box=(1.5, 2.0, 3.0, 4.25))
    picture = SourceImage(
        "i",
        "a/b.jpg",
        10,
        None,
        (unit, Unit("v")),
        needs_annotated_size=True,
        reason=None,
        boxes=((0.0, 1.0, 2.0, 3.0),),
    )
    sent = json.loads(json.dumps(work.shard_to_json(Shard(3, (picture,)))))
    assert sent["index"] == 3
    assert msgspec.convert(sent["shard"], tuple[SourceImage, ...]) == (picture,)
