"""Boxes that are read another way than they were written, or that are about other pictures."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.tasks._boxes.readings import as_xywh
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError, SpecError, TableError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import IMAGES, INSTANCES

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
        as_xywh(frame, "xywhn", pl.DataFrame({"image_id": ["000.jpg"]}))
    with pytest.raises(SpecError, match="box_format is not known"):
        as_xywh(frame, "ltrb", pl.DataFrame())


def test_predictions_of_the_next_picture_are_refused():
    moved = np.repeat([f"{(i + 1) % PICTURES:03}.jpg" for i in range(PICTURES)], EACH)
    with pytest.raises(JoinError, match="belong to other pictures"):
        recall(drawn(image=moved))


def test_predictions_of_other_pictures_are_told_first():
    names = np.unique(IMAGE)
    other = dict(zip(names, np.roll(names, 17), strict=True))
    _, said = recall(drawn(image=[other[i] for i in IMAGE]))
    assert "no better than those of other pictures" in said[0]


def test_another_scale_is_told_first():
    _, said = recall(drawn(tuple(3 * c for c in (X, Y, W, H))))
    assert any("leave their pictures" in note for note in said)
    _, said = recall(drawn(tuple(c / 4 for c in (X, Y, W, H))))
    assert any("no better than those of other pictures" in note for note in said)


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
