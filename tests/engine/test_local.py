"""Running a model on one machine: every picture answered once, whatever happens on the way."""

from __future__ import annotations

import threading
import time
import weakref

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import InputError, IsoluxError, TableError
from tests.engine._painted import Counting, brightness, paint, run


def answers(gathered):
    return dict(gathered.predictions.select("instance_id", "label").rows())


def reasons(gathered):
    missing = gathered.inferences.drop_nulls("reason")
    return dict(missing.select("unit_id", "reason").rows())


def said(picture, score=1.0):
    return pl.DataFrame({"picture": [picture], "label": "a", "score": score})


def everything(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_each_picture_gets_its_own_answer_in_the_datasets_order(tmp_path):
    people = paint(tmp_path / "in", 10)
    _, ran, found = run(people, tmp_path / "out")
    assert found.predictions["instance_id"].to_list() == people.instances["instance_id"].to_list()
    assert answers(found) == {f"{k:03}.png": str(5 * k) for k in range(10)}
    assert (ran.n_computed, ran.n_images) == (3, 10)
    assert found.inferences["width"].to_list() == [8] * 10
    assert found.inferences["height"].to_list() == [6] * 10


def test_what_is_there_is_not_done_again(tmp_path):
    people, net = paint(tmp_path / "in", 10), Counting()
    run(people, tmp_path / "out", net)
    before = everything(tmp_path / "out")
    assert net.shown == 10
    _, ran, _ = run(people, tmp_path / "out", net)
    assert (net.shown, ran.n_computed, ran.n_images) == (10, 0, 0)
    assert everything(tmp_path / "out") == before


def test_a_changed_pixel_redoes_its_shard_alone(tmp_path):
    people, net = paint(tmp_path / "in", 10), Counting()
    run(people, tmp_path / "out", net)
    pixels = np.array(Image.open(tmp_path / "in" / "005.png"))
    pixels[0, 0, 0] += 90
    Image.fromarray(pixels).save(tmp_path / "in" / "005.png")
    net.batches.clear()
    _, ran, found = run(people, tmp_path / "out", net)
    assert (ran.n_computed, net.shown) == (1, 4)  # pictures 4 to 7
    assert len(list((tmp_path / "out" / "shards").iterdir())) == 3  # the old shard is gone
    assert answers(found)["004.png"] == "20"


def test_another_model_never_meets_the_answers_of_the_one_before(tmp_path):
    people = paint(tmp_path / "in", 6)
    run(people, tmp_path / "out", version="1")
    other = Counting(lambda pictures: ["other"] * len(pictures))
    _, ran, found = run(people, tmp_path / "out", other, version="2")
    assert ran.n_computed == 2
    assert set(answers(found).values()) == {"other"}


def test_a_callable_of_which_nothing_is_known_is_always_asked(tmp_path):
    people, net = paint(tmp_path / "in", 6), Counting()
    for _ in range(2):
        run(people, tmp_path / "out", net, version=None)
    assert net.shown == 12


def test_people_who_are_added_leave_earlier_shards_as_they_are(tmp_path):
    net = Counting()
    run(paint(tmp_path / "in", 8), tmp_path / "out", net)
    net.batches.clear()
    _, ran, found = run(paint(tmp_path / "in", 9), tmp_path / "out", net)
    assert (ran.n_computed, net.shown, found.predictions.height) == (1, 1, 9)


def test_a_run_that_is_stopped_goes_on_and_ends_in_the_same_bytes(tmp_path):
    people, net = paint(tmp_path / "in", 12), Counting()
    asked = iter([False, True])
    _, ran, found = run(people, tmp_path / "a", net, stop=lambda: next(asked))
    assert (ran.is_complete, found, ran.n_computed) == (False, None, 1)
    assert not (tmp_path / "a" / "predictions.parquet").exists()
    net.batches.clear()
    _, ran, _ = run(people, tmp_path / "a", net)
    assert (ran.n_computed, net.shown) == (2, 8)
    run(people, tmp_path / "b")
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


def test_the_whole_is_not_there_while_a_shard_is_done_again(tmp_path):
    people = paint(tmp_path / "in", 8)
    run(people, tmp_path / "out")
    asked = iter([False, True])
    run(people, tmp_path / "out", version="2", stop=lambda: next(asked))
    assert not (tmp_path / "out" / "predictions.parquet").exists()


def test_broken_pictures_are_rows_with_a_reason(tmp_path):
    people = paint(tmp_path / "in", 8)
    (tmp_path / "in" / "001.png").write_text("no picture")
    (tmp_path / "in" / "003.png").unlink()
    whole = (tmp_path / "in" / "006.png").read_bytes()
    (tmp_path / "in" / "006.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "in" / "007.png").write_bytes(b"")
    _, _, found = run(people, tmp_path / "out")
    assert set(answers(found)) == {"000.png", "002.png", "004.png", "005.png"}
    told = reasons(found)
    assert told["001.png"].startswith("this is not a picture, or it is damaged")
    assert told["003.png"] == "no such picture"
    assert told["006.png"].startswith("this is not a picture, or it is damaged")
    assert told["007.png"] == "the file is empty"
    assert set(found.inferences.drop_nulls("fault")["fault"]) == {"picture"}


def test_broken_pictures_are_not_looked_at_again_until_they_are_mended(tmp_path):
    people, net = paint(tmp_path / "in", 8), Counting()
    good = (tmp_path / "in" / "001.png").read_bytes()
    (tmp_path / "in" / "001.png").write_text("no picture")
    run(people, tmp_path / "out", net)
    net.batches.clear()
    run(people, tmp_path / "out", net)
    assert net.shown == 0
    (tmp_path / "in" / "001.png").write_bytes(good)
    _, _, found = run(people, tmp_path / "out", net)
    assert net.shown == 4
    assert answers(found)["001.png"] == "5"


def test_a_model_that_raises_loses_that_picture_alone_and_is_asked_again(tmp_path):
    people = paint(tmp_path / "in", 8)
    angry = [True]

    def net(pictures):
        if angry[0] and any(one.mean() == 15 for one in pictures):
            raise ValueError("I do not like 15")
        return brightness(pictures)

    _, _, found = run(people, tmp_path / "out", net)
    assert reasons(found) == {"003.png": "the model raised ValueError: I do not like 15"}
    assert len(answers(found)) == 7
    angry[0] = False
    _, ran, found = run(people, tmp_path / "out", net)
    assert (ran.n_computed, reasons(found), len(answers(found))) == (1, {}, 8)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (TimeoutError("the server is slow"), "TimeoutError: the server is slow"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_a_models_own_timeout_or_exit_is_neither_a_limit_nor_the_end(tmp_path, raised, told):
    def net(pictures):
        raise raised

    _, _, found = run(paint(tmp_path / "in", 1), tmp_path / "out", net)
    assert reasons(found) == {"000.png": f"the model raised {told}"}


def test_a_picture_that_hangs_is_asked_alone_once_and_the_rest_is_done(tmp_path):
    people, free, shown = paint(tmp_path / "in", 12), threading.Event(), []

    def net(pictures):
        shown.append([int(one.mean()) // 5 for one in pictures])
        if any(one.mean() == 25 for one in pictures):
            free.wait(60)
        return brightness(pictures)

    began = time.monotonic()
    _, _, found = run(people, tmp_path / "out", net, time_limit=2.0)
    free.set()
    assert time.monotonic() - began < 20
    late = "not answered within the time limit of its shard"
    # Shard 2 is pictures 4 to 7, its first batch 4 to 6, which hangs at picture 5.
    assert reasons(found) == {"005.png": late}
    assert len(answers(found)) == 11
    assert shown == [[0, 1, 2], [3], [4, 5, 6], [4], [5], [6], [7], [8, 9, 10], [11]]


def test_a_model_that_hangs_at_every_picture_is_asked_for_two_alone(tmp_path):
    people, free, shown = paint(tmp_path / "in", 8), threading.Event(), []

    def net(pictures):
        shown.append(len(pictures))
        free.wait(60)

    _, _, found = run(people, tmp_path / "out", net, time_limit=1.0)
    free.set()
    assert set(reasons(found).values()) == {"not answered within the time limit of its shard"}
    assert shown == [3, 1, 1] * 2  # of each shard of 4: a batch of 3, and two of them alone


def test_memory_that_is_too_small_halves_the_batch(tmp_path):
    sizes = []

    def net(pictures):
        sizes.append(len(pictures))
        if len(pictures) > 2:
            raise RuntimeError("CUDA error: out of memory")
        return brightness(pictures)

    _, ran, found = run(paint(tmp_path / "in", 16), tmp_path / "out", net, batch=8, shard_size=16)
    assert len(answers(found)) == 16
    assert ran.batch == 2
    assert sizes.count(8) == 1  # tried once, and not again


def test_what_filled_the_memory_is_let_go_before_half_of_it_is_tried(tmp_path):
    held = []

    class Tensor:
        pass

    def net(pictures):
        assert len(pictures) == 4 or held[0]() is None  # else there is as little room as before
        filled = Tensor()
        held.append(weakref.ref(filled))
        if len(pictures) == 4:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return brightness(pictures)

    _, ran, found = run(paint(tmp_path / "in", 4), tmp_path / "out", net, batch=4)
    assert (ran.batch, len(answers(found))) == (2, 4)


def test_memory_that_is_too_small_for_one_picture_ends_the_run(tmp_path):
    def net(pictures):
        raise MemoryError

    with pytest.raises(IsoluxError, match=r"(?s)too little memory for one picture.*smaller model"):
        run(paint(tmp_path / "in", 4), tmp_path / "out", net)


def test_too_many_failures_end_the_run_and_what_was_answered_stays(tmp_path):
    people = paint(tmp_path / "in", 12)
    for k in (5, 6):
        (tmp_path / "in" / f"00{k}.png").write_text("no picture")
    with pytest.raises(InputError, match=r"(?s)at most 0.1 of 12.*2 so far.*the first: '005.png'"):
        run(people, tmp_path / "out", max_failures=0.1)
    assert len(list((tmp_path / "out" / "shards").iterdir())) == 2
    net = Counting()
    _, ran, found = run(people, tmp_path / "out", net, max_failures=0.2)
    assert (net.shown, ran.n_computed, len(answers(found))) == (4, 1, 10)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (lambda p: ["a"] * (len(p) + 1), r"3 answers for 3 pictures"),
        (lambda p: 7, r"a row for each answer.*\n.*int"),
        (lambda p: pl.DataFrame({"label": ["a"] * len(p)}), r"without picture"),
        (lambda p: said(99), r"not given"),
        (lambda p: said(0), r"no row for 2 of 3 pictures"),
        (lambda p: said(0.5), r"whole numbers"),
        (lambda p: said(0, score=7.0), r"not a confidence"),
        (lambda p: said(0, score=float("nan")), r"finite"),
        (lambda p: said(None), r"not given|whole numbers"),
    ],
)  # fmt: skip
def test_answers_that_do_not_fit_end_the_run(tmp_path, given, match):
    with pytest.raises(TableError, match=match):
        run(paint(tmp_path / "in", 4), tmp_path / "out", given)
    assert list((tmp_path / "out").rglob("*.parquet")) == []


def test_a_row_without_a_label_is_an_answer_that_there_is_none(tmp_path):
    def net(pictures):
        labels = [None if one.mean() == 10 else "seen" for one in pictures]
        return pl.DataFrame({"picture": range(len(labels)), "label": labels, "score": 0.5})

    _, _, found = run(paint(tmp_path / "in", 4), tmp_path / "out", net)
    assert [answers(found)[f"00{k}.png"] for k in range(4)] == ["seen", "seen", None, "seen"]
    assert reasons(found) == {}


def test_what_is_told_counts_pictures_up_to_all_of_them(tmp_path):
    told = []
    people = paint(tmp_path / "in", 10)
    run(people, tmp_path / "out", tell=lambda *now: told.append(now))
    assert told[-1] == (10, 10, 10)
    assert [t[0] for t in told] == sorted(t[0] for t in told)
    told.clear()
    run(people, tmp_path / "out", tell=lambda *now: told.append(now))
    assert told[-1] == (10, 10, 0)


def test_pictures_are_prepared_ahead_and_the_model_sees_what_came_of_it(tmp_path):
    class Net:
        threads = set()

        def prepare(self, picture):
            self.threads.add(threading.current_thread().name)
            if picture.mean() == 20:
                raise ValueError("odd")
            return float(picture.mean())

        def __call__(self, numbers):
            return [f"{one:g}" for one in numbers]

    net = Net()
    _, _, found = run(paint(tmp_path / "in", 6), tmp_path / "out", net)
    assert answers(found) == {f"00{k}.png": str(5 * k) for k in (0, 1, 2, 3, 5)}
    assert reasons(found) == {"004.png": "the model's preparation raised ValueError: odd"}
    assert threading.main_thread().name not in net.threads


def test_memory_stays_bounded_ahead_of_a_slow_model(tmp_path):
    ready = []

    class Net:
        def prepare(self, picture):
            ready.append(1)
            return picture

        def __call__(self, pictures):
            time.sleep(0.01)
            waiting.append(len(ready) - sum(seen))
            seen.append(len(pictures))
            return brightness(pictures)

    waiting, seen = [], []
    run(paint(tmp_path / "in", 60), tmp_path / "out", Net(), shard_size=60, readers=2)
    assert max(waiting) <= 3 + 2 * 2 + 3  # the batch, what may wait, and the batch at hand


def test_pictures_are_let_go_when_they_are_answered(tmp_path):
    seen, alive = [], []

    def net(pictures):
        seen.extend(weakref.ref(one) for one in pictures)
        alive.append(sum(one() is not None for one in seen))
        return brightness(pictures)

    run(paint(tmp_path / "in", 48), tmp_path / "out", net, shard_size=48, readers=2)
    assert max(alive) <= 2 * 3  # the batch at hand, and at most the one before
