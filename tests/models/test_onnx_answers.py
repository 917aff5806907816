"""``onnx:PATH``: numbers, pictures, masks and poses, and what is inferred from few settings."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from isolux.core.errors import SpecError
from isolux.geometry.variants import decode_mask
from isolux.models import open_model
from isolux.models._numbers import parse_values
from scripts.onnx_file import Node, onnx_bytes
from tests.models._networks import mean_colours

pytest.importorskip("onnxruntime", reason="ONNXRUNTIME IS ABSENT: no ONNX network was run")

GREY = np.full((6, 8, 3), 51, np.uint8)  # .2 of white
WHITE = np.full((6, 8, 3), 255, np.uint8)


def asked(path, pictures, *options):
    predictor = open_model(f"onnx:{path}", options).predictor
    return predictor([predictor.prepare(one) for one in pictures])


def softmax(values):
    powers = np.exp(np.asarray(values, float))
    return powers / powers.sum()


# Numbers


def test_an_only_output_is_the_number(tmp_path):
    path = mean_colours(tmp_path / "age.onnx", [[100], [0], [0]], [18], name="age")
    found = asked(path, [GREY, WHITE], "answers=numbers")
    assert found["value"].to_list() == pytest.approx([38, 118])  # 100 × .2 + 18, 100 × 1 + 18
    assert found["picture"].to_list() == [0, 1]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (["values=10,20,40"], [10, 20, 40]),
        (["values=1-3"], [1, 2, 3]),
        (["answers=numbers", "labels=0-9,10-19,30"], [4.5, 14.5, 30]),
    ],
)
def test_classes_that_are_numbers_give_their_mean_by_probability(tmp_path, options, numbers):
    path = mean_colours(tmp_path / "net.onnx", [[5, 0, 1]] * 3, [0, 0, 0])
    # The three colours of grey sum to .6: logits 3, 0 and .6.
    expected = softmax([3, 0, 0.6]) @ np.array(numbers)
    assert asked(path, [GREY], *options)["value"].to_list() == pytest.approx([expected])


def test_one_output_between_two_numbers_is_a_share_of_the_way(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", [[1], [0], [0]], [0])
    found = asked(path, [GREY], "values=10,20", "activation=none")
    assert found["value"].to_list() == pytest.approx([12])  # .2 of the way


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["answers=numbers"], r"(?s)the numbers do not fit.*each of its 3 classes.*found: 0"),
        (["values=0-100"], r"(?s)the numbers do not fit.*found: 101"),
        (["answers=numbers", "labels=a,b,c"], r"(?s)names that are no numbers.*'a', 'b', 'c'"),
        (["values=young-old"], r"(?s)not the numbers.*found: values=young-old"),
        (["answers=labels", "labels=a,b,c", "values=1,2,3"], r"values are of a network that"),
        (["answers=numbers", "values=1,2,3", "classes=map.yaml"], r"numbers have no classes"),
    ],
)
def test_numbers_that_nothing_says_are_asked_for(tmp_path, options, match):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0])
    with pytest.raises(SpecError, match=match):
        asked(path, [GREY], *options)


# Pictures


def identity(path, side=4, output="image", layout="NCHW", shift=0.0):
    """Write a network that gives its input, plus a number."""
    shape = ("n", 3, side, side) if layout == "NCHW" else ("n", side, side, 3)
    nodes = [Node("Add", ["x", "shift"], [output])]
    weights = {"shift": np.asarray(shift, np.float32)}
    path.write_bytes(
        onnx_bytes(nodes, weights, {"x": ("float32", shape)}, {output: ("float32", shape)})
    )
    return path


def picture(side=4):
    return np.random.default_rng(2).integers(0, 256, (side, side, 3)).astype(np.uint8)


def made(found):
    return [np.asarray(Image.open(io.BytesIO(png))) for png in found["png"]]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("preset", ["imagenet", "clip", "minus-one-to-one", "bgr-255"])
def test_a_picture_is_what_the_input_was_made_of(tmp_path, preset, layout):
    path = identity(tmp_path / "net.onnx", layout=layout)
    # Fit and share would resize, but a picture of the input's size stays as it is.
    options = [f"preset={preset}", *(["share=1"] if preset == "imagenet" else [])]
    (found,) = made(asked(path, [picture()], *options))
    assert np.array_equal(found, picture())


def test_a_range_of_ones_own_gives_black_and_white(tmp_path):
    path = identity(tmp_path / "net.onnx", shift=0.5)  # 0 to 1 becomes .5 to 1.5
    (found,) = made(asked(path, [picture()], "output_range=.5,1.5"))
    assert np.array_equal(found, picture())
    (clipped,) = made(asked(path, [WHITE]))  # 1.5 is white too
    assert (clipped == 255).all()
    with pytest.raises(SpecError, match="output_range is not two numbers"):
        asked(path, [WHITE], "output_range=1,1")


def test_an_output_that_is_no_picture_is_said(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0])
    with pytest.raises(SpecError, match=r"(?s)output is not a picture.*\[3\]"):
        asked(path, [GREY], "answers=images")


# Masks and poses


def constant(path, arrays, side=8):
    """Write a network whose outputs are the same for each picture."""
    nodes = [
        Node("ReduceMean", ["x"], ["m"], {"axes": [1, 2, 3], "keepdims": 0}),
        Node("Mul", ["m", "zero"], ["nil"]),
    ]
    weights, outputs = {"zero": np.zeros((), np.float32)}, {}
    for name, array in arrays.items():
        weights[f"{name}0"] = np.asarray(array, np.float32)
        weights[f"{name}s"] = np.asarray([-1] + [1] * np.ndim(array), np.int64)
        nodes.append(Node("Reshape", ["nil", f"{name}s"], [f"{name}n"]))
        nodes.append(Node("Add", [f"{name}0", f"{name}n"], [name]))
        outputs[name] = ("float32", ("n", *np.shape(array)))
    path.write_bytes(onnx_bytes(nodes, weights, {"x": ("float32", ("n", 3, side, side))}, outputs))
    return path


def decoded(row):
    return decode_mask(row["mask_counts"], row["mask_height"], row["mask_width"])


def test_masks_come_back_in_the_pictures_pixels(tmp_path):
    left = np.zeros((8, 8))
    left[:, :4] = 1  # the left half of the input
    path = constant(tmp_path / "net.onnx", {"masks": [left, 1 - left], "scores": [[0.9], [0.2]]})
    wide, tall = np.zeros((6, 12, 3), np.uint8), np.zeros((10, 4, 3), np.uint8)
    found = asked(path, [wide, tall], "labels=[person]", "min_score=.5", "activation=none")
    assert found.select("picture", "label", "score").rows() == [
        (0, "person", pytest.approx(0.9)), (1, "person", pytest.approx(0.9)),
    ]  # fmt: skip
    for row, shape in zip(found.iter_rows(named=True), ((6, 12), (10, 4)), strict=True):
        half = np.zeros(shape, bool)
        half[:, : shape[1] // 2] = True
        assert np.array_equal(decoded(row), half)
        assert row["box_x"] is None


def test_a_mask_of_a_padded_or_cut_picture_lies_where_the_picture_does(tmp_path):
    path = constant(tmp_path / "net.onnx", {"masks": [np.ones((2, 2))], "scores": [[0.9]]})
    wide = np.zeros((4, 8, 3), np.uint8)
    options = ("labels=[person]", "activation=none")
    (padded,) = asked(path, [wide], "fit=pad", *options).iter_rows(named=True)
    assert decoded(padded).all()
    (cut,) = asked(path, [wide], "fit=crop", *options).iter_rows(named=True)
    shown = np.zeros((4, 8), bool)
    shown[:, 2:6] = True  # the middle square; the network saw nothing else
    assert np.array_equal(decoded(cut), shown)


def test_poses_come_back_in_the_pictures_pixels(tmp_path):
    pose = [[0.5, 0.25, 0.8], [1, 1, 0.1]]  # shares of the input's sides
    path = constant(
        tmp_path / "net.onnx",
        {"keypoints": [pose], "boxes": [[0, 0, 0.5, 1]], "scores": [0.9], "labels": [0]},
    )
    options = ("labels=[person]", "box_format=xyxy", "box_units=shares")
    (row,) = asked(path, [np.zeros((20, 40, 3), np.uint8)], *options).iter_rows(named=True)
    assert (row["keypoints_x"], row["keypoints_y"]) == ([20, 40], [5, 20])
    assert row["keypoints_v"] == pytest.approx([0.8, 0.1])
    assert [row[f"box_{edge}"] for edge in "xywh"] == [0, 0, 20, 20]
    with pytest.raises(SpecError, match=r"(?s)how the network writes a box.*without box_format"):
        asked(path, [GREY], "labels=[person]", "box_units=shares")


# What need not be said


def test_rows_that_sum_to_1_are_labels_and_names_stand_in_the_option(tmp_path):
    nodes = [
        Node("GlobalAveragePool", ["x"], ["p"]), Node("Flatten", ["p"], ["f"], {"axis": 1}),
        Node("Gemm", ["f", "w", "b"], ["g"]), Node("Softmax", ["g"], ["out"]),
    ]  # fmt: skip
    weights = {"w": np.array([[0, 9]] * 3, np.float32), "b": np.array([5, 0], np.float32)}
    path = tmp_path / "net.onnx"
    path.write_bytes(
        onnx_bytes(nodes, weights, {"x": ("float32", ("n", 3, 4, 4))},
                   {"out": ("float32", ("n", 2))})
    )  # fmt: skip
    with pytest.raises(SpecError, match=r"(?s)classes have no names.*Female,Male.*2 classes"):
        open_model(f"onnx:{path}")
    model = open_model(f"onnx:{path}", ["labels=dark,bright", "size=4"])
    assert model.predicts == "labels"
    predictor = model.predictor
    found = predictor([predictor.prepare(np.zeros_like(GREY)), predictor.prepare(WHITE)])
    assert found.filter(rank=1)["label"].to_list() == ["dark", "bright"]


def test_one_number_stands_for_three_channels_and_for_both_sides(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], side="s", name="embedding")
    (vector,) = asked(path, [WHITE], "size=5", "mean=.5", "std=.25")["embedding"].to_list()
    assert vector == pytest.approx([2, 2, 2])  # (1 − .5) / .25


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0])
    with pytest.raises(
        SpecError,
        match=r"(?s)one size; mean or std is larger.*; the names do not fit.*"
        r"4 × 4.*; numbers up to 1.*; 3 names.*size=9,9; mean \[0.*; 2",
    ):
        open_model(f"onnx:{path}", ["labels=Female,Male", "size=9", "std=256"])


@pytest.mark.parametrize("option", ["mean=127.5", "std=256", "mean=1.5,0,0"])
def test_mean_and_std_of_another_scale_are_refused(tmp_path, option):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], name="embedding")
    with pytest.raises(SpecError, match=r"(?s)larger than any pixel.*scale=1 leaves pixels"):
        open_model(f"onnx:{path}", [option])
    assert open_model(f"onnx:{path}", [option, "scale=1"]).predicts == "embeddings"


def test_a_preset_that_contradicts_the_file_is_refused_by_name(tmp_path):
    path = mean_colours(tmp_path / "net.onnx", np.eye(3), [0, 0, 0], name="embedding",
                        mean=[0.5, 0.5, 0.5], std=0.5)  # fmt: skip
    with pytest.raises(SpecError, match=r"(?s)preset 'imagenet' contradicts.*mean=.*std="):
        open_model(f"onnx:{path}", ["preset=imagenet"])
    agreeing = open_model(f"onnx:{path}", ["preset=minus-one-to-one"])
    assert agreeing.predictor.prepare.mean == (0.5, 0.5, 0.5)
    own = open_model(f"onnx:{path}", ["preset=minus-one-to-one", "mean=.4"])
    assert own.predictor.prepare.mean == (0.4, 0.4, 0.4)  # what is given wins


@pytest.mark.parametrize("values", ["100-0", "5-5", "ten"])
def test_a_range_of_no_numbers_is_refused(values) -> None:
    with pytest.raises(SpecError, match="not the numbers that classes stand for"):
        parse_values(values)
