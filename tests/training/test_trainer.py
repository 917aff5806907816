"""The loop of a training: what stops it, what goes on from its state, what each head learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isolux.core.errors import FileError, IsoluxError, SpecError
from isolux.training import (
    UNKNOWN,
    DecodedTrainingImage,
    Epoch,
    Schedule,
    State,
    TrainerInputs,
    TrainingImages,
    train_or_resume,
)
from isolux.training.checkpoints import (
    Checkpoint,
    check_is_same_training,
    read_checkpoint,
    write_checkpoint,
)


def torch_here():
    return pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no network was trained")


def scene(seed=0, n=96):
    """Two heads: one follows from the red of a picture, the other from its green."""
    rng = np.random.default_rng(seed)
    red, green = rng.integers(0, 2, n), rng.integers(0, 3, n)
    return red, green, np.column_stack([red, green])


def learning(torch, seed=0, **changed):
    red, green, labels = scene()
    n = len(red)

    def look(row):
        pixels = np.zeros((4, 4, 3), np.uint8)
        pixels[..., 0], pixels[..., 1] = 200 * red[row], 100 * green[row]
        return DecodedTrainingImage(pixels, f"{row:064x}")

    shown = TrainingImages(n, look, lambda one: one.transpose(2, 0, 1), 2)
    shown.scan()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(48, 16), torch.nn.BatchNorm1d(16),
            torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(16, 5),
        )  # fmt: skip
    rows = np.arange(n)
    made = TrainerInputs(
        torch, net, lambda x: net(x.float() / 255.0), shown, labels,
        {"red": slice(0, 2), "green": slice(2, 5)}, rows[:72], rows[72:],
    )  # fmt: skip
    return replace(made, **changed)


def test_a_step_without_room_is_named_and_nothing_is_kept():
    torch, kept = torch_here(), []

    def full(_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    with pytest.raises(IsoluxError, match=r"(?s)too little memory.*20\.00 GiB.*smaller --batch"):
        train_or_resume(learning(torch, run=full), HOW, None, kept.append)
    assert kept == []


HOW = Schedule(learning_rate=0.02, batch=16, epochs=6, patience=6, flip=True, seed=3)


def same(a, b):
    return a.keys() == b.keys() and all(bool((a[k] == b[k]).all()) for k in a)


def test_both_heads_are_learnt():
    torch = torch_here()
    state = train_or_resume(
        learning(torch), replace(HOW, epochs=12, patience=12), None, lambda _: None
    )
    best = state.history[state.selected_epoch() - 1]
    assert best.accuracy["red"] > 0.95
    assert best.accuracy["green"] > 0.95
    assert best.held_loss < state.history[0].held_loss / 2


@pytest.mark.parametrize("stop_after", [1, 4])
def test_gone_on_from_a_written_state_it_is_the_training_that_was_not_stopped(tmp_path, stop_after):
    torch = torch_here()
    pytest.importorskip("safetensors", reason="SAFETENSORS IS ABSENT: no checkpoint was written")
    whole = train_or_resume(learning(torch), HOW, None, lambda _: None)
    about, marks = {"labels": "a"}, np.arange(96)

    def keep(state):
        write_checkpoint(tmp_path / "c.safetensors", Checkpoint(state, about, marks))

    train_or_resume(learning(torch), replace(HOW, epochs=stop_after), None, keep)
    held = read_checkpoint(tmp_path / "c.safetensors")
    assert held.image_hashes.tolist() == marks.tolist()
    again = train_or_resume(learning(torch, seed=99), HOW, held.state, keep)  # other first weights
    assert same(dict(again.net), dict(whole.net))
    assert same(dict(again.adam), dict(whole.adam))
    assert same(dict(again.weights()), dict(whole.weights()))
    assert again.history == whole.history


def test_another_seed_is_another_training():
    torch = torch_here()
    one = train_or_resume(learning(torch), HOW, None, lambda _: None)
    other = train_or_resume(learning(torch), replace(HOW, seed=4), None, lambda _: None)
    assert not same(dict(one.net), dict(other.net))


def test_the_weights_kept_are_those_of_the_best_epoch_and_it_stops_by_patience():
    torch = torch_here()
    noise = np.random.default_rng(0).integers(0, 2, (96, 2))  # nothing can be learnt of it
    seen = {}

    def keep(state):
        seen[len(state.history)] = {k: v.clone() for k, v in state.net.items()}

    made = learning(torch, labels=noise)
    state = train_or_resume(made, replace(HOW, epochs=40, patience=2), None, keep)
    assert len(state.history) < 40
    assert len(state.history) - state.selected_epoch() == 2
    losses = [epoch.held_loss for epoch in state.history]
    assert state.selected_epoch() == int(np.argmin(losses)) + 1
    assert same(dict(state.weights()), seen[state.selected_epoch()])


def test_people_of_unknown_label_move_nothing_of_that_head():
    torch = torch_here()
    _, _, labels = scene()
    labels[:, 1] = UNKNOWN
    made = learning(torch, labels=labels)
    before = made.net[5].weight[2:].detach().clone()
    state = train_or_resume(made, HOW, None, lambda _: None)
    assert bool((made.net[5].weight[2:] == before).all())
    assert {epoch.accuracy["green"] for epoch in state.history} == {None}


def test_a_loss_that_is_no_number_ends_it_by_name():
    torch = torch_here()
    made = learning(torch)
    broken = replace(made, run=lambda x: made.run(x) * float("nan"))
    with pytest.raises(SpecError, match="diverged"):
        train_or_resume(broken, HOW, None, lambda _: None)


def test_a_picture_that_goes_away_meanwhile_ends_it_by_name():
    torch = torch_here()
    made = learning(torch)
    made.pictures._cached.clear()
    made.pictures.decode = lambda row: DecodedTrainingImage(None, None, "no such picture")
    with pytest.raises(IsoluxError, match="cannot be read any more"):
        train_or_resume(made, HOW, None, lambda _: None)


@pytest.mark.parametrize(
    ("name", "value"), [("learning_rate", 0.0), ("batch", 1), ("epochs", 0), ("patience", 0)]
)
def test_settings_that_cannot_be_used(name, value):
    with pytest.raises(SpecError, match=name):
        Schedule(**{name: value})


def test_of_epochs_as_good_the_first_is_kept():
    epochs = tuple(Epoch(k + 1, 1.0, loss, {}) for k, loss in enumerate([2.0, 1.0, 1.0]))
    assert State({}, {}, {}, epochs).selected_epoch() == 2
    assert State({}, {}, {}, epochs).is_finished(Schedule(epochs=9, patience=1))
    assert not State({}, {}, {}, epochs).is_finished(Schedule(epochs=9, patience=2))
    assert not State({}, {}, {}).is_finished(Schedule())


def test_a_state_of_another_training_is_refused_with_what_changed(tmp_path):
    before = Checkpoint(State({}, {}, {}), {"network": "ResNet-34", "labels": "a"}, np.zeros(0))
    check_is_same_training(before, {"network": "ResNet-34", "labels": "a"}, tmp_path)
    with pytest.raises(SpecError, match="whose labels differed"):
        check_is_same_training(before, {"network": "ResNet-34", "labels": "b"}, tmp_path)
    with pytest.raises(SpecError, match="whose network differed"):
        check_is_same_training(before, {"network": "ViT", "labels": "b"}, tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    pytest.importorskip("safetensors", reason="SAFETENSORS IS ABSENT: no checkpoint was read")
    torch_here()
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, Checkpoint(State({}, {}, {}), {}, np.arange(3)))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileError, match="checkpoint cannot be read"):
        read_checkpoint(path)


def test_no_step_has_one_row():
    """Five rows in steps of two: a normalised layer learns nothing from one row, and raises."""
    torch = torch_here()
    few = learning(torch, training_rows=np.arange(5), held_out=np.arange(72, 96))
    state = train_or_resume(few, replace(HOW, batch=2, epochs=1), None, lambda _: None)
    assert len(state.history) == 1
