"""Boxes that are read another way than they were written, or that are about other pictures."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import IMAGES, INSTANCES
from isolux.tasks._boxes.box_formats import to_xywh

WIDTH, HEIGHT, PICTURES, EACH = 640, 480, 40, 3
RANDOM = np.random.default_rng(5)
N = PICTURES * EACH
W, H = RANDOM.uniform(40, 160, N), RANDOM.uniform(60, 200, N)
X, Y = RANDOM.uniform(0, WIDTH - W), RANDOM.uniform(0, HEIGHT - H)
IMAGE = np.repeat([f"{i:03}.jpg" for i in range(PICTURES)], EACH)
DX, DY = RANDOM.normal(0, 4, N), RANDOM.normal(0, 4, N)


def people(*, sizes=True):
    instances = pl.DataFrame(
        {"instance_id": [f"p{i}" for i in range(N)], "image_id": IMAGE, "box_x": X, "box_y": Y,
         "box_w": W, "box_h": H}
    )  # fmt: skip
    images = pl.DataFrame({"image_id": np.unique(IMAGE)})
    if sizes:
        images = images.with_columns(width=pl.lit(WIDTH), height=pl.lit(HEIGHT))
    info = DatasetInfo(title="x", summary="x", references=())
    return Dataset("x", info, INSTANCES.conform(instances), images=IMAGES.conform(images))


def drawn(box=None, image=IMAGE, scores=None):
    columns = (X + DX, Y + DY, W, H) if box is None else box
    named = zip(("box_x", "box_y", "box_w", "box_h"), columns, strict=True)
    frame = pl.DataFrame(
        {"model": ["m"] * N, "image_id": image, "label": [None] * N, **dict(named)}
    )
    given = RANDOM.uniform(0.3, 1, N) if scores is None else scores
    return frame.with_columns(pl.col("label").cast(pl.String), score=pl.Series(given))


def recall(predictions, **options):
    scores = isolux.score("detection", people(), predictions, metrics=["recall_at_iou"], **options)
    return scores.units.filter(pl.col("threshold") == 0.5)["value"].mean(), cautions(scores)


def cautions(scores):
    return [note for note in scores.notes if isinstance(note, Caution)]


RIGHT, _ = recall(drawn())
OTHERS = {
    "xyxy": (X + DX, Y + DY, X + DX + W, Y + DY + H),
    "cxcywh": (X + DX + W / 2, Y + DY + H / 2, W, H),
    "yxhw": (Y + DY, X + DX, H, W),
    "yxyx": (Y + DY, X + DX, Y + DY + H, X + DX + W),
    "xywhn": ((X + DX) / WIDTH, (Y + DY) / HEIGHT, W / WIDTH, H / HEIGHT),
    "xyxyn": ((X + DX) / WIDTH, (Y + DY) / HEIGHT, (X + DX + W) / WIDTH, (Y + DY + H) / HEIGHT),
    "cxcywhn": (
        (X + DX + W / 2) / WIDTH, (Y + DY + H / 2) / HEIGHT, W / WIDTH, H / HEIGHT
    ),
}  # fmt: skip


def test_right_boxes_give_no_caution():
    value, said = recall(drawn())
    assert value > 0.9
    assert said == []


@pytest.mark.parametrize("name", OTHERS)
def test_another_order_is_refused_and_its_option_mends_it(name):
    with pytest.raises(TableError, match=f"boxes of 'm' are {name}, and were read as") as caught:
        recall(drawn(OTHERS[name]))
    assert f"--option box_format={name}" in str(caught.value)
    value, said = recall(drawn(OTHERS[name]), box_format=name)
    assert value == pytest.approx(RIGHT)
    assert said == []


def test_the_right_order_read_as_another_is_refused():
    with pytest.raises(TableError, match="have a negative side when read as xyxy"):
        recall(drawn(), box_format="xyxy")


def test_shares_of_pictures_need_their_sizes():
    frame = drawn(OTHERS["xywhn"])
    with pytest.raises(SpecError, match="needs the sizes of the pictures"):
        to_xywh(frame, "xywhn", pl.DataFrame({"image_id": ["000.jpg"]}))


def test_predictions_of_the_next_picture_are_refused():
    moved = np.repeat([f"{(i + 1) % PICTURES:03}.jpg" for i in range(PICTURES)], EACH)
    with pytest.raises(JoinError, match="belong to other pictures"):
        recall(drawn(image=moved))


@pytest.mark.parametrize("factor", [3, 2, 1.1, 1 / 1.1, 0.25])
def test_boxes_of_resized_pictures_are_refused_with_the_factor(factor):
    with pytest.raises(TableError, match="times as large as in the dataset") as caught:
        recall(drawn(tuple(factor * c for c in (X + DX, Y + DY, W, H))))
    assert f"boxes of 'm' are {factor:.2f} times" in str(caught.value)
    told = re.search(r"multiply the four numbers by about ([\d.]+);", str(caught.value))
    assert float(told[1]) == pytest.approx(1 / factor, rel=0.01)


@pytest.mark.parametrize(
    ("name", "scale", "told"),
    [
        ("square", lambda w, h: (512 / w, 512 / h), "of pictures of 5{2} × 5{2} pixels"),
        ("longer", lambda w, h: (640 / max(w, h),) * 2, "whose longer side is 6{2} pixels"),
        ("shorter", lambda w, h: (800 / min(w, h),) * 2, "whose shorter side is (7|8){2} pixels"),
    ],
)
def test_boxes_of_pictures_brought_to_one_size_are_refused_with_that_size(name, scale, told):
    """Pictures of many sizes, each resized in the same way before the model saw it."""
    draw = np.random.default_rng(8)
    sizes = [(int(w), int(h)) for w, h in draw.integers(300, 1500, (PICTURES, 2))]
    wide, high = (np.repeat([s[k] for s in sizes], EACH) for k in (0, 1))
    x, y, w, h = X / WIDTH * wide, Y / HEIGHT * high, W / WIDTH * wide, H / HEIGHT * high
    dataset = people()
    sized = IMAGES.conform(
        pl.DataFrame({"image_id": np.unique(IMAGE), "width": [s[0] for s in sizes],
                      "height": [s[1] for s in sizes]})
    )  # fmt: skip
    moved = dataset.instances.with_columns(
        box_x=pl.Series(x), box_y=pl.Series(y), box_w=pl.Series(w), box_h=pl.Series(h)
    )
    dataset = replace(dataset, instances=moved, images=sized)
    by = np.repeat([scale(*s) for s in sizes], EACH, axis=0)
    given = drawn((x * by[:, 0] + DX, y * by[:, 1] + DY, w * by[:, 0], h * by[:, 1]))
    pattern = told.replace("{2}", r"\d\d")
    with pytest.raises(TableError, match=f"boxes of 'm' are .*{pattern}"):
        isolux.score("detection", dataset, given)
    right = drawn((x + DX, y + DY, w, h))
    assert cautions(isolux.score("detection", dataset, right)) == []


def test_a_margin_around_people_is_no_other_size_and_is_told_first():
    """Boxes of the same centres, half as large again: a detector that leaves room."""
    wider = (X + DX - W / 4, Y + DY - H / 4, 1.5 * W, 1.5 * H)
    _, said = recall(drawn(wider))
    assert any("have 1.50 times the side of the people whom they find" in note for note in said)
    noisy = np.exp(RANDOM.normal(0, 0.15, N))
    w, h = W * noisy, H * noisy
    _, said = recall(drawn((X + (W - w) / 2, Y + (H - h) / 2, w, h)))
    assert said == []


def test_the_margin_of_centred_faces_is_no_other_size():
    """One face in the middle of each crop, drawn half as large again by the model."""
    n = 60
    draw = np.random.default_rng(2)
    cx, cy = 89 + draw.normal(0, 4, n), 109 + draw.normal(0, 4, n)
    side = draw.uniform(70, 90, n)
    ids = [f"{i:03}" for i in range(n)]
    columns = {"box_x": cx - side / 2, "box_y": cy - side / 2, "box_w": side, "box_h": side}
    instances = pl.DataFrame({"instance_id": ids, "image_id": ids, **columns})
    images = pl.DataFrame({"image_id": ids, "width": [178] * n, "height": [218] * n})
    faces = Dataset("x", DatasetInfo(title="x", summary="x", references=()),
                    INSTANCES.conform(instances), images=IMAGES.conform(images))  # fmt: skip
    larger = {"box_x": cx - 0.75 * side, "box_y": cy - 0.75 * side, "box_w": 1.5 * side,
              "box_h": 1.5 * side}  # fmt: skip
    given = pl.DataFrame({"model": ["m"] * n, "image_id": ids, **larger, "score": [0.9] * n})
    given = given.with_columns(label=pl.lit(None, dtype=pl.String))
    said = cautions(isolux.score("detection", faces, given))
    assert any("times the side of the people" in note for note in said)


def turned(box):
    return (box[1], box[0], box[3], box[2])


def test_the_side_whose_boxes_leave_their_pictures_is_the_one_that_is_turned():
    sound = people()
    columns = dict(zip(("box_x", "box_y", "box_w", "box_h"), turned((X, Y, W, H)), strict=True))
    wrong = sound.instances.with_columns(**{k: pl.Series(v) for k, v in columns.items()})
    with pytest.raises(TableError, match="boxes of the dataset have x and y exchanged"):
        isolux.score("detection", replace(sound, instances=wrong), drawn())
    square = IMAGES.conform(sound.images.with_columns(height=pl.lit(WIDTH)))
    with pytest.raises(TableError, match="or those of the dataset have"):
        isolux.score("detection", replace(sound, instances=wrong, images=square), drawn())


def test_scores_beyond_0_and_1_are_told_first():
    _, said = recall(drawn(scores=RANDOM.uniform(5, 99, N)))
    assert said[0].startswith("Scores of 'm' run from")


@pytest.mark.parametrize("task", ["face_detection", "open_vocabulary"])
def test_every_task_of_boxes_asks(task):
    dataset = people()
    classes = pl.lit(["guard"], dtype=pl.List(pl.String))
    dataset = Dataset(dataset.name, dataset.info, dataset.instances.with_columns(classes=classes),
                      images=dataset.images)  # fmt: skip
    boxes = drawn(OTHERS["xyxy"]).with_columns(label=pl.lit("guard"))
    with pytest.raises(TableError, match="are xyxy, and were read as xywh"):
        isolux.score(task, dataset, boxes)
    assert isolux.score(task, dataset, boxes, box_format="xyxy").units.height
