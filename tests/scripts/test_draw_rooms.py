"""The picture of the rooms is what the code gives."""

from __future__ import annotations

import re

from scripts import draw_rooms


def test_the_committed_picture_is_what_the_code_gives():
    committed = draw_rooms.PICTURE.read_text(encoding="utf-8")
    assert committed == draw_rooms.svg(), "run: python scripts/draw_rooms.py"


def test_every_room_stands_in_it_once_and_every_import_goes_down():
    rooms = {p.name for p in (draw_rooms.TOP / "src" / "isolux").iterdir() if p.is_dir()}
    order = [name for row in draw_rooms.floors() for name in row]
    assert sorted(order) == sorted(rooms - {"__pycache__"})
    lines = draw_rooms.imports()
    assert {name for line in lines for name in line} == set(order)
    assert all(order.index(a) < order.index(b) for a, b in lines)


def test_no_dot_lies_under_a_box():
    rooms = draw_rooms.placed(draw_rooms.floors())
    for a, b in draw_rooms.imports():
        assert rooms[b].x - 8 > rooms[a].x + draw_rooms.STUB, (a, b)


def test_the_page_shows_it():
    page = (draw_rooms.TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.search(r"!\[[^]]+\]\(assets/rooms\.svg\)", page)
