"""Masks painted in Label Studio: read as its own converter reads them, and merged into one."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isolux.geometry.masks import masks_from_coco
from isolux_curate.annotation.answer_format import decode_brush_mask_or_fault, read_answer_rows
from isolux_curate.annotation.exchange import import_and_apply_server_answers, plan_and_upload_tasks
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
    write_consented_answers,
)
from isolux_curate.api.consensus_shapes import consensus_shapes
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_database_table
from tests.curate.annotation._fake import Fake
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._projects import annotated_project, box, brought

GOLDEN = [0, 0, 0, 96, 57, 27, 254, 31, 0, 183, 255, 108, 2, 223, 252, 96, 17, 255, 225, 48, 0]
"""What ``mask2rle`` of Label Studio's SDK 2.1.2 makes of ``BITS`` × 255."""
BITS = np.zeros((4, 6), dtype=np.bool_)
BITS[1:3, 2:5] = True
BITS[3, 0] = True


def packed(bits: np.ndarray, *, literal: bool) -> list[int]:
    """Pack a mask by the format's description: the four bytes of a pixel are alike.

    In runs, or (as the page does where neighbours differ) value by value.
    """
    values = np.repeat(bits.ravel() * 255, 4)
    text = f"{len(values):032b}{7:05b}" + "".join(f"{k - 1:04b}" for k in (1, 2, 4, 16))
    if literal:
        for start in range(0, len(values), 16):
            part = values[start : start + 16]
            text += f"010{len(part) - 1:04b}" + "".join(f"{v:08b}" for v in part)
    else:
        edges = np.flatnonzero(np.diff(values, prepend=-1, append=-1))
        for start, end in itertools.pairwise(edges.tolist()):
            for a in range(start, end, 1 << 16):  # no longer run fits into 16 bits
                text += f"111{min(end, a + (1 << 16)) - a - 1:016b}{values[start]:08b}"
    text += "0" * (-len(text) % 8)
    return [int(text[k : k + 8], 2) for k in range(0, len(text), 8)]


def opened(mask: dict[str, Any]) -> np.ndarray:
    """Lay a mask out as a picture."""
    size = [mask["height"], mask["width"]]
    told = {"size": size, "counts": mask["counts"]}
    masks = masks_from_coco([told], np.array(size[:1]), np.array(size[1:]))
    flat = np.zeros(size[0] * size[1], dtype=np.bool_)
    for a, b in masks.edges.reshape(-1, 2):
        flat[a:b] = True
    return flat.reshape(size[1], size[0]).T


def test_a_mask_of_label_studios_own_making_is_read() -> None:
    assert (opened(decode_brush_mask_or_fault(GOLDEN, (6, 4), (6, 4))) == BITS).all()


@pytest.mark.parametrize("literal", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_masks_come_back_as_they_were_packed(seed: int, literal: bool) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.random((rng.integers(1, 30), rng.integers(1, 40))) < rng.random()
    size = (bits.shape[1], bits.shape[0])
    assert (
        opened(decode_brush_mask_or_fault(packed(bits, literal=literal), size, size)) == bits
    ).all()


def test_a_mask_is_stretched_to_the_photo() -> None:
    """The picture is half as large: each of its pixels is four of the photo's."""
    found = opened(decode_brush_mask_or_fault(GOLDEN, (6, 4), (12, 8)))
    assert (found == BITS.repeat(2, axis=0).repeat(2, axis=1)).all()


@pytest.mark.parametrize(
    ("rle", "said"),
    [
        (GOLDEN[:-3], "cut off"), (GOLDEN[:4], "not a mask"),
        ([], "not a mask"), ([0, 0, 0, 99, *GOLDEN[4:]], "not a mask of this picture"),
        ([*GOLDEN[:-1], 300], "not a mask"), ("abc", "not a mask of this picture"),
        ([[1]], "not a mask"), ([*GOLDEN[:4], 255, 255, 255, 255], "cut off"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_mask_are_told_to_who_painted(rle: Any, said: str) -> None:
    assert said in decode_brush_mask_or_fault(rle, (6, 4), (6, 4))["trouble"]


def _brush(bits: np.ndarray, label: str = "person") -> dict[str, Any]:
    value = {"format": "rle", "rle": packed(bits, literal=False), "brushlabels": [label]}
    return {"id": f"r{bits.sum()}", "type": "brushlabels", "from_name": "brush", "value": value,
            "original_width": bits.shape[1], "original_height": bits.shape[0]}  # fmt: skip


def _polygon(*points: tuple[float, float]) -> dict[str, Any]:
    value = {"points": [list(p) for p in points], "polygonlabels": ["person"]}
    return {"id": "p", "type": "polygonlabels", "from_name": "primary", "value": value}


@pytest.fixture
def drawn(tmp_path: Path, fake: Fake) -> Project:
    """Bring a photo of 400 × 300 with one box to the stage of masks."""
    project = annotated_project(tmp_path, 1)
    server = LabelStudioServer.from_url_with_environment_token(fake.url, timeout_s=5)
    plan_and_upload_tasks(project, "boxes", server)
    fake.annotate(1, box("nurse", 10, 20, 50, 60))
    import_and_apply_server_answers(project, "boxes", server)
    plan_and_upload_tasks(project, "masks", server)
    return project


def test_what_is_painted_and_what_is_outlined_become_one_mask(
    drawn: Project, fake: Fake, tmp_path: Path
) -> None:
    """Squares of 100 × 100 that three people drew, two of them alike: the vote is theirs."""
    first = np.zeros((300, 400), dtype=np.bool_)
    first[100:200, 100:200] = True
    fake.annotate(2, [_brush(first)], user=1)
    corners = [(25, 100 / 3), (50, 100 / 3), (50, 200 / 3), (25, 200 / 3)]
    fake.annotate(2, [_polygon(*corners)], user=2)
    half = np.zeros((150, 200), dtype=np.bool_)  # painted on a picture half as large
    half[50:100, 50:80] = True
    fake.annotate(2, [_brush(half)], user=3)
    done = import_and_apply_server_answers(
        drawn, "masks", LabelStudioServer.from_url_with_environment_token(fake.url, timeout_s=5)
    )
    assert (done.n_new, done.n_refused) == (3, 0)
    held = read_answer_rows(drawn, "masks")
    assert held["question"].to_list() == ["mask"] * 3
    assert held["mask"].null_count() == held["points"].is_not_null().sum() == 1
    assert write_consented_answers(drawn, "masks", tmp_path / "drawn.json").n_rows == 3
    merged = consensus_shapes(f"coco:{tmp_path / 'drawn.json'}", kind="masks")
    assert merged.objects.select(
        "label", "drawn_by", "box_x", "box_y", "box_w", "box_h"
    ).rows() == [("person", 3, 100.0, 100.0, 100.0, 100.0)]
    alike = merged.objects["iou"][0]
    assert alike == pytest.approx((1 + 0.6 + 0.6) / 3, abs=0.01)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (_brush(np.zeros((300, 400), dtype=np.bool_)), "a mask has no area."),
        (_brush(np.ones((3, 4), dtype=np.bool_), "shoe"), "'shoe' is not one of the classes."),
        (_brush(np.ones((3, 4), dtype=np.bool_)) | {"original_width": 5}, "paint it again"),
    ],
)
def test_masks_that_cannot_be_do_not_count(
    drawn: Project, fake: Fake, row: dict[str, Any], said: str
) -> None:
    fake.annotate(2, [row])
    server = LabelStudioServer.from_url_with_environment_token(fake.url, timeout_s=5)
    assert import_and_apply_server_answers(drawn, "masks", server).n_refused == 1
    answers = read_database_table(drawn, "annotations").filter(status="refused")["answer"]
    assert said in json.loads(answers[0])["fault"]
    assert plan_and_upload_tasks(drawn, "masks", server).n_planned == 1


def test_outlines_come_in_as_a_table(drawn: Project, tmp_path: Path) -> None:
    plan_and_write_open_tasks(drawn, "masks", tmp_path / "work")
    task = (tmp_path / "work" / "tasks.csv").read_text().splitlines()[1].split(",")[0]
    points = json.dumps([[100, 100], [200, 100], [200, 200]])
    sheet = tmp_path / "given.csv"
    sheet.write_text(f'task_id,label,points\n{task},person,"{points}"\n')
    assert brought(drawn, "masks", sheet, default_annotator="ada") == (1, 0, 0)
    assert json.loads(read_answer_rows(drawn, "masks")["points"][0])[1] == [200.0, 100.0]
    sheet.write_text(f"task_id,label,points\n{task},person,[1]\n")
    with pytest.raises(Exception, match="an outline is not a list of points"):
        import_and_apply_sheet_answers(drawn, "masks", sheet, default_annotator="bo")
