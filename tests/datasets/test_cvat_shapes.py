"""Shapes of CVAT for images 1.1 other than upright boxes, and what has no box around it."""

from __future__ import annotations

import pytest

from isolux.core.notes import Caution
from isolux.datasets.cvat import load

BOXED = {
    # 20 x 30 about (14, 20), turned by a right angle: 30 x 20.
    '<box label="f" xtl="4" ytl="5" xbr="24" ybr="35" rotation="90.00"/>': (-1, 10, 30, 20),
    '<box label="f" xtl="4" ytl="5" xbr="24" ybr="35"/>': (4, 5, 20, 30),
    '<mask label="f" rle="0, 8" left="4" top="5" width="4" height="2"/>': (4, 5, 4, 2),
    '<ellipse label="f" cx="20" cy="10" rx="8" ry="3"/>': (12, 7, 16, 6),
    '<ellipse label="f" cx="20" cy="10" rx="8" ry="3" rotation="270"/>': (17, 2, 6, 16),
}


def loaded(folder, *shapes):
    image = f'<image id="0" name="a.jpg" width="64" height="48">{"".join(shapes)}</image>'
    (folder / "annotations.xml").write_text(f"<annotations>{image}</annotations>")
    return load(folder)


def test_every_shape_has_the_box_around_it(tmp_path):
    boxes = loaded(tmp_path, *BOXED).instances.select("box_x", "box_y", "box_w", "box_h").rows()
    for box, expected in zip(boxes, BOXED.values(), strict=True):
        assert box == pytest.approx(expected)


def test_what_is_not_read_is_counted(tmp_path):
    further = '<tag label="street"/><points label="f" points="1,2"/><tag label="night"/>'
    notes = loaded(tmp_path, next(iter(BOXED)), further).notes
    warning = next(note for note in notes if "not read" in note)
    assert warning == "Shapes and tags of these kinds are not read: 1 points, 2 tag."
    assert isinstance(warning, Caution)
