"""The picture of the packages is what the code gives."""

from __future__ import annotations

import re

from scripts import draw_packages


def test_the_committed_picture_is_what_the_code_gives():
    committed = draw_packages.PICTURE.read_text(encoding="utf-8")
    assert committed == draw_packages.svg(), "run: python scripts/draw_packages.py"


def test_every_room_stands_in_it_once_and_every_import_goes_down():
    packages = {p.name for p in (draw_packages.TOP / "src" / "isolux").iterdir() if p.is_dir()}
    order = [name for row in draw_packages.floors() for name in row]
    assert sorted(order) == sorted(packages - {"__pycache__"})
    lines = draw_packages.imports()
    assert {name for line in lines for name in line} == set(order)
    assert all(order.index(a) < order.index(b) for a, b in lines)


def test_no_dot_lies_under_a_box():
    packages = draw_packages.placed(draw_packages.floors())
    for a, b in draw_packages.imports():
        assert packages[b].x - 8 > packages[a].x + draw_packages.STUB, (a, b)


def test_the_page_shows_it():
    page = (draw_packages.TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.search(r"!\[[^]]+\]\(assets/packages\.svg\)", page)
