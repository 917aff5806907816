"""``onnx:PATH``: answers that can be reckoned by hand, and what a file does not say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isolux.core.errors import FileError, IsoluxError, SpecError
from isolux.models import open_model
from scripts.onnx_file import Node, _bytes, _node, _number, _text, _value
from tests.models._networks import fixed_boxes, mean_colours

pytest.importorskip(
    "onnxruntime",
    reason="ONNXRUNTIME IS ABSENT: no ONNX network was run (pip install isolux[onnx])",
)

RED, GREEN, GREY = (
    np.full((6, 8, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 255, 0), (51, 51, 51))
)
LABELS = {"answers": "labels", "labels": ["red", "green", "blue"]}


def told(path, *options):
    return open_model(f"onnx:{path}", options)


def asked(model, pictures):
    return model.predictor([model.predictor.prepare(one) for one in pictures])


def test_labels_are_the_softmax_the_best_first(tmp_path):
    model = told(mean_colours(tmp_path / "net.onnx", 2 * np.eye(3), [0, 0, 0], **LABELS))
    found = asked(model, [RED, GREEN])
    assert found["picture"].to_list() == [0, 0, 0, 1, 1, 1]
    assert found["label"].to_list() == ["red", "green", "blue", "green", "red", "blue"]
    # The mean of red is 1: e² / (e² + 2) = 0.787, 1 / (e² + 2) = 0.107.
    assert found["score"].to_list() == pytest.approx([0.787, 0.107, 0.107] * 2, abs=1e-3)
    assert (model.predicts, model.name) == ("labels", "net")


def test_mean_std_scale_and_order_of_colours_are_what_the_network_was_trained_with(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], name="embedding",
                        answers="embeddings")  # fmt: skip

    def vector(*options):
        return asked(told(path, *options), [RED])["embedding"][0].to_list()

    assert vector() == [1, 0, 0]
    assert vector("colours=bgr") == [0, 0, 1]
    assert vector("scale=1") == [255, 0, 0]
    assert vector("mean=.5,.5,.5", "std=.5,.25,1") == pytest.approx([1, -2, -0.5])


def test_layouts_fixed_batches_and_open_sizes_are_read_from_the_file(tmp_path):
    for kind in ({"layout": "NHWC"}, {"batch": 2}, {"batch": 1}):
        path = mean_colours(tmp_path / "net.onnx", 2 * np.eye(3), [0, 0, 0], **kind, **LABELS)
        found = asked(told(path, "top=1"), [RED, GREEN, GREEN])
        assert found["label"].to_list() == ["red", "green", "green"], kind
        assert found["picture"].to_list() == [0, 1, 2], kind
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], side="s", **LABELS)
    with pytest.raises(SpecError, match=r"(?s)size of its input open.*size=HEIGHT,WIDTH"):
        told(path)
    assert told(path, "size=3,5").predictor.prepare(RED).values.shape == (3, 3, 5)


def test_probabilities_are_not_made_twice(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", [[0.7, 0, 0]] * 3, [0.1, 0.1, 0.1], **LABELS)
    assert asked(told(path), [RED])["score"].to_list() == pytest.approx([0.8, 0.1, 0.1])


def test_one_number_is_the_second_of_two_classes(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", [[3], [0], [0]], [0], answers="labels",
                        labels=["female", "male"])  # fmt: skip
    found = asked(told(path, "top=1"), [RED, GREEN])
    assert found["label"].to_list() == ["male", "female"]
    assert found["score"].to_list() == pytest.approx([1 / (1 + np.exp(-3)), 0.5])


def test_a_class_scores_the_highest_of_its_labels(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("n01440764 tench, Tinca tinca\nn01443537 goldfish\nCoral-Reef\n")
    path = mean_colours(tmp_path / "net.onnx", 2 * np.eye(3), [0, 0, 0], answers="labels")
    classes = tmp_path / "classes.yaml"
    classes.write_text("fish: [n01440764, goldfish]\nplace: [coral reef]\n")
    found = asked(told(path, f"labels={names}", f"classes={classes}"), [GREEN])
    assert found["label"].to_list() == ["fish", "place"]
    assert found["score"].to_list() == pytest.approx([0.787, 0.107], abs=1e-3)
    classes.write_text("fish: [Tinca tinca, '1']\n")
    model = told(path, f"labels={names}", f"classes={classes}")
    assert asked(model, [RED])["score"].to_list() == pytest.approx([0.787], abs=1e-3)
    assert model.notes == ("1 of the model's 3 classes map to none of the dataset's.",)


def test_what_does_not_map_is_listed(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], **LABELS)
    classes = tmp_path / "classes.yaml"
    classes.write_text("warm: [red, orange]\ncold: [cyan]\n")
    notes = told(path, f"classes={classes}").notes
    assert notes == (
        "2 labels of classes.yaml are not classes of the model: 'orange', 'cyan'.",
        "The model has no class for 'cold': it can never answer with these.",
        "2 of the model's 3 classes map to none of the dataset's.",
    )
    classes.write_text("warm: [orange]\n")
    with pytest.raises(SpecError, match=r"(?s)no label of the map.*'red', 'green'.*'orange'"):
        told(path, f"classes={classes}")
    (tmp_path / "cranes.txt").write_text("n02012849 crane\nn03126707 crane\nother\n")
    classes.write_text("bird: [crane]\n")
    with pytest.raises(SpecError, match=r"(?s)'crane' may be several.*0: n02012849.*1: n03126707"):
        told(path, f"labels={tmp_path / 'cranes.txt'}", f"classes={classes}")


@pytest.mark.parametrize(
    ("box_format", "box_units", "box"),
    [("xyxy", "pixels", [10, 20, 60, 80]), ("xywh", "pixels", [10, 20, 50, 60]),
     ("cxcywh", "shares", [0.35, 0.5, 0.5, 0.6]), ("xyxy", "shares", [0.1, 0.2, 0.6, 0.8])],
)  # fmt: skip
def test_boxes_come_back_in_the_pictures_pixels(tmp_path, box_format, box_units, box):
    path = fixed_boxes(tmp_path / "net.onnx", [box, box], [0.9, 0.01], labels=[1, 1],
                       answers="boxes", box_format=box_format, box_units=box_units)  # fmt: skip
    found = asked(told(path), [np.zeros((50, 200, 3), np.uint8), np.zeros((300, 100, 3), np.uint8)])
    sides = found.select("box_x", "box_y", "box_w", "box_h").rows()
    # Input 100 × 100; the first picture is 200 × 50: x doubles, y halves. Scores below .05 go.
    assert sides[0] == pytest.approx((20, 10, 100, 30), abs=1e-3)
    assert sides[1] == pytest.approx((10, 60, 50, 180), abs=1e-3)
    assert found["picture"].to_list() == [0, 1]
    assert found["label"].to_list() == ["1", "1"]
    assert found["score"].to_list() == pytest.approx([0.9, 0.9])


def test_boxes_of_padded_pictures_lie_where_the_picture_does(tmp_path):
    path = fixed_boxes(tmp_path / "net.onnx", [[0, 0, 100, 100], [10, 30, 20, 40]], [0.9, 0.8],
                       labels=[0, 0], answers="boxes", box_format="xyxy", box_units="pixels",
                       fit="pad")  # fmt: skip
    found = asked(told(path), [np.zeros((100, 200, 3), np.uint8)])
    # Halved to 100 × 50 and put between rows 25 and 75; what lies outside the picture is cut off.
    assert found.select("box_x", "box_y", "box_w", "box_h").rows() == [
        (0.0, 0.0, 200.0, 100.0), (20.0, 10.0, 20.0, 20.0)]  # fmt: skip


def test_scores_of_classes_leave_the_background_out(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("person\nbicycle\nnothing\n")
    path = fixed_boxes(
        tmp_path / "net.onnx", [[0, 0, 1, 1], [0, 0, 1, 1]], [[1.0, 3.0, 0.0], [0.0, 0.0, 9.0]],
        answers="boxes", box_format="xyxy", box_units="shares", background="last",
        activation="softmax",
    )  # fmt: skip
    found = asked(told(path, f"labels={names}"), [np.zeros((10, 10, 3), np.uint8)])
    assert found["label"].to_list() == ["bicycle"]  # the second box is of nothing: .0001
    e = np.exp([1.0, 3.0, 0.0])
    assert found["score"].to_list() == pytest.approx([e[1] / e.sum()], abs=1e-6)


def test_the_key_is_the_weights_and_the_settings_and_no_name(tmp_path):
    path = mean_colours(tmp_path / "a.onnx", np.eye(3), [0, 0, 0], **LABELS)
    same = mean_colours(tmp_path / "b.onnx", np.eye(3), [0, 0, 0], **LABELS)
    other = mean_colours(tmp_path / "c.onnx", np.eye(3), [0, 0, 1e-6], **LABELS)
    assert told(path).key == told(same).key
    assert told(other).key != told(path).key
    for option in ("fit=pad", "mean=.1,.1,.1", "filter=bicubic", "top=1", "colours=bgr"):
        assert told(path, option).key != told(path).key, option
    (tmp_path / "a.onnx.data").write_bytes(b"a file that the network does not name")
    assert told(path).key == told(same).key


def external(path, location, *, in_node=False):
    """Write a network, the mean of each colour times a matrix that is in another file."""
    entry = _bytes(13, _text(1, "location") + _text(2, location))
    tensor = _number(1, 3) + _number(1, 3) + _number(2, 1) + entry + _number(14, 1)
    graph = b"".join(_bytes(1, _node(node)) for node in (
        Node("GlobalAveragePool", ["x"], ["pooled"]), Node("Flatten", ["pooled"], ["flat"]),
        Node("MatMul", ["flat", "w"], ["logits"]),
    ))  # fmt: skip
    if in_node:  # the matrix is a constant: an attribute of an operator
        held = _text(1, "value") + _bytes(5, tensor) + _number(20, 4)
        graph = _bytes(1, _text(2, "w") + _text(4, "Constant") + _bytes(5, held)) + graph
    else:
        graph += _bytes(5, tensor + _text(8, "w"))
    graph += _text(2, "g") + _bytes(11, _value("x", "float32", ("n", 3, 4, 4)))
    graph += _bytes(12, _value("logits", "float32", ("n", 3)))
    path.write_bytes(_number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 17)))
    return path


def labelled(path, names):
    return told(path, "answers=labels", f"labels={names}", "top=1")


@pytest.mark.parametrize("in_node", [False, True])
def test_a_changed_file_of_weights_or_of_labels_is_another_model(tmp_path, in_node):
    (tmp_path / "names.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "any name.bin").write_bytes(np.eye(3, dtype="<f4").tobytes())
    path = external(tmp_path / "net.onnx", "any name.bin", in_node=in_node)
    first = labelled(path, tmp_path / "names.txt")
    assert labelled(path, tmp_path / "names.txt").key == first.key
    assert in_node or asked(first, [RED])["label"].item() == "red"
    (tmp_path / "any name.bin").write_bytes(np.eye(3, dtype="<f4")[::-1].tobytes())
    second = labelled(path, tmp_path / "names.txt")
    assert second.key != first.key
    assert in_node or asked(second, [RED])["label"].item() == "blue"
    (tmp_path / "names.txt").write_text("blue\ngreen\nred\n")
    assert labelled(path, tmp_path / "names.txt").key != second.key


def test_changed_weights_beside_a_network_are_predicted_again(tmp_path, monkeypatch):
    import polars as pl
    from PIL import Image

    import isolux

    monkeypatch.chdir(tmp_path)
    Image.fromarray(RED).save("a.png")
    Path("people.csv").write_text("id\na.png\n")
    Path("names.txt").write_text("red\ngreen\nblue\n")
    path = external(Path("net.onnx"), "w.bin")
    said = []
    for matrix in (np.eye(3), np.eye(3), np.eye(3)[::-1]):
        Path("w.bin").write_bytes(matrix.astype("<f4").tobytes())
        found = isolux.predict("table:people.csv", f"onnx:{path}", out="o",
                               model_option=["answers=labels", "labels=names.txt"])  # fmt: skip
        again = any("not again" in note for note in found.notes)
        said.append((found.predictions.filter(pl.col("rank") == 1)["label"].item(), again))
    assert said == [("red", False), ("red", True), ("blue", False)]


@pytest.mark.parametrize("location", ["../w.bin", "sub/../../w.bin", "{root}/w.bin", "link.bin"])
def test_weights_outside_the_networks_folder_are_refused(tmp_path, location):
    (tmp_path / "in").mkdir()
    (tmp_path / "w.bin").write_bytes(np.eye(3, dtype="<f4").tobytes())
    (tmp_path / "in" / "link.bin").symlink_to(tmp_path / "w.bin")
    path = external(tmp_path / "in" / "net.onnx", location.format(root=tmp_path))
    with pytest.raises(FileError, match="a path leads out of its folder"):
        told(path)


def test_weights_that_are_not_there_are_named(tmp_path):
    path = external(tmp_path / "net.onnx", "gone.bin")
    with pytest.raises(FileError, match=r"(?s)weights of this network is not there.*gone\.bin"):
        told(path)


@pytest.mark.parametrize("data", [b"", b"\x3a\xff", b"\x3b", b"\xff" * 12])
def test_bytes_that_are_no_network_are_said(tmp_path, data):
    (tmp_path / "net.onnx").write_bytes(data)
    with pytest.raises(FileError, match="cannot be run as an ONNX network"):
        told(tmp_path / "net.onnx")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ([], "does not say what the network answers"),
        (["answers=labels"], "the classes have no names"),
        (["answers=labels", "labels={two}"], r"(?s)names do not fit.*3 names.*2"),
        (["answers=boxes"], r"(?s)nothing says how the network writes a box.*box_format"),
        (["answers=labels", "scores_output=probs"], r"(?s)no output 'probs'.*logits"),
        (["answers=labels", "device=tpu"], r"no such device"),
        (["answers=labels", "device=cuda"], r"(?s)cannot use a GPU.*onnxruntime-gpu"),
        (["answers=labels", "mean=1,2"], r"(?s)three numbers each"),
        (["answers=masks"], r"(?s)which output.*masks_output"),
        (["answers=polygons"], r"(?s)'answers'.*labels"),
    ],
)
def test_what_no_one_says_is_asked_for(tmp_path, options, match):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0])
    (tmp_path / "two.txt").write_text("a\nb\n")
    given = [one.format(two=tmp_path / "two.txt") for one in options]
    with pytest.raises(SpecError, match=match):
        told(path, *given)


@pytest.mark.parametrize(
    ("settings", "options", "match"),
    [
        ({"meen": [0.5] * 3}, (), r"no setting of an ONNX network named 'meen'"),
        ({}, ("size=8,8",), r"(?s)pictures of one size.*4 × 4 pixels.*size=8,8"),
        ({"size": 8}, (), r"(?s)pictures of one size.*size=8"),
    ],
)
def test_settings_that_would_move_nothing_are_refused(tmp_path, settings, options, match):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], **LABELS, **settings)
    with pytest.raises(IsoluxError, match=match):
        told(path, *options)
    told(mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], **LABELS, size=[4, 4]))


def test_classes_of_one_name_are_one_that_scores_the_highest(tmp_path):
    # ImageNet has two cranes. Red is as 2 to 0 and 0: e² / (e² + 2) = 0.787 and 0.107.
    cranes = LABELS | {"labels": ["crane", "dog", "crane"]}
    model = told(mean_colours(tmp_path / "net.onnx", 2 * np.eye(3), [0, 0, 0], **cranes))
    found = asked(model, [RED])
    assert found["label"].to_list() == ["crane", "dog"]
    np.testing.assert_allclose(found["score"], [0.787, 0.107], atol=5e-4)
    assert model.notes[0].startswith("1 names stand for several of the model's 3 classes")


def test_no_label_at_all_is_refused(tmp_path):
    model = told(mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], **LABELS), "top=0")
    with pytest.raises(SpecError, match=r"(?s)no label of a picture.*top of 1 or more.*0"):
        asked(model, [RED])


def test_a_network_whose_names_are_no_text_is_said(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", [[1, 0], [0, 1], [1, 1]], [0, 0.1], answers="labels")
    whole = path.read_bytes()
    assert b"logits" in whole
    path.write_bytes(whole.replace(b"logits", b"l\x82gits"))
    with pytest.raises(FileError, match="cannot be run as an ONNX network"):
        told(path)


def test_a_file_that_is_no_network_is_said(tmp_path):
    (tmp_path / "net.onnx").write_text("no network")
    with pytest.raises(FileError, match=r"(?s)cannot be run as an ONNX network.*net\.onnx"):
        told(tmp_path / "net.onnx")
    with pytest.raises(FileError, match="no such file of a network"):
        told(tmp_path / "nowhere.onnx")


def test_without_onnxruntime_it_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], **LABELS)
    with pytest.raises(SpecError, match=r"(?s)family onnx needs onnxruntime.*isolux\[onnx\]"):
        told(path)


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_onnxruntime_falls_back_from_is_no_gpu(tmp_path, monkeypatch, device):
    import onnxruntime as ort

    path = mean_colours(tmp_path / "n.onnx", np.eye(3), np.zeros(3), answers="embeddings")
    opened = ort.InferenceSession

    def on_cpu(file, *, sess_options, providers):
        assert providers[0][0] == "CUDAExecutionProvider"
        return opened(file, sess_options=sess_options, providers=["CPUExecutionProvider"])

    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(ort, "get_available_providers", lambda: both)
    monkeypatch.setattr(ort, "InferenceSession", on_cpu)
    with pytest.raises(SpecError, match=r"(?s)did not start on the GPU.*CPUExecutionProvider"):
        open_model(f"onnx:{path}", [f"device={device}"])


@pytest.mark.parametrize("device", ["cuda", "cuda:x", "gpu"])
def test_a_device_that_is_not_there_is_named(tmp_path, device):
    path = mean_colours(tmp_path / "n.onnx", np.eye(3), np.zeros(3), answers="embeddings")
    with pytest.raises(SpecError, match=r"cannot use a GPU|no such device"):
        open_model(f"onnx:{path}", [f"device={device}"])
