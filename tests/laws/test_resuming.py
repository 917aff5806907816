"""A full run of the laws that was stopped leaves out what it measured of these sources."""

from __future__ import annotations

import json
from types import SimpleNamespace

from tests.laws import conftest


def test_what_was_measured_is_left_out_until_a_source_changes(tmp_path):
    done = tmp_path / ".laws"
    assert conftest.measured(done, "a") == set()
    for name in ("test_one[x]", "test_two", "test_two"):
        conftest.note(done, "a", name)
    assert conftest.measured(done, "a") == {"test_one[x]", "test_two"}
    assert conftest.measured(done, "b") == set()
    conftest.note(done, "b", "test_three")
    assert conftest.measured(done, "a") == set()
    assert conftest.measured(done, "b") == {"test_three"}
    assert [path.name for path in tmp_path.iterdir()] == [".laws"]


def test_what_a_law_took_is_kept_with_its_day(tmp_path):
    path = tmp_path / "seconds.json"
    conftest.keep(path, "tests/laws/test_a.py::test_one[x]", 12.34)
    conftest.keep(path, "tests/laws/test_a.py::test_two", 1.0)
    conftest.keep(path, "tests/laws/test_a.py::test_one[x]", 9.87)
    kept = json.loads(path.read_text())
    assert {name: one["seconds"] for name, one in kept.items()} == {
        "test_a.py::test_one[x]": 9.9, "test_a.py::test_two": 1.0
    }  # fmt: skip
    assert len({one["date"] for one in kept.values()}) == 1
    assert [found.name for found in tmp_path.iterdir()] == ["seconds.json"]


def test_sources_are_those_that_figures_rest_on(monkeypatch, tmp_path):
    monkeypatch.setattr(conftest, "ROOT", tmp_path)
    law = tmp_path / "tests" / "laws" / "test_a.py"
    law.parent.mkdir(parents=True)
    law.write_text("a = 1")
    before = conftest.sources()
    (tmp_path / "README.md").write_text("other words")
    assert conftest.sources() == before
    law.write_text("a = 2")
    assert conftest.sources() != before


def test_items_that_are_named_are_deselected(monkeypatch, tmp_path):
    class Item:
        def __init__(self, nodeid):
            self.nodeid = nodeid

    class Config:
        left_out: list = []
        option = SimpleNamespace(collectonly=False)

        class hook:  # noqa: N801 - as pytest names it
            @staticmethod
            def pytest_deselected(items):
                Config.left_out += items

    monkeypatch.setattr(conftest, "KEPT", True)
    monkeypatch.setattr(conftest, "DONE", tmp_path / ".laws")
    conftest.note(conftest.DONE, conftest.sources(), "b")
    items = [Item("a"), Item("b")]
    conftest.pytest_collection_modifyitems(Config, items)
    assert [item.nodeid for item in items] == ["a"]
    assert [item.nodeid for item in Config.left_out] == ["b"]

    def asked(*names, collectonly=False):
        Config.option.collectonly = collectonly
        items = [Item(name) for name in names]
        conftest.pytest_collection_modifyitems(Config, items)
        return [item.nodeid for item in items]

    # One file that was measured is measured again, and what else was measured stays known.
    conftest.note(conftest.DONE, conftest.sources(), "a")
    assert asked("b") == ["b"]
    assert asked("a", "b", "c") == ["c"]
    assert asked("a", "b", collectonly=True) == ["a", "b"]
    assert conftest.DONE.exists()
    # Where all is measured, a whole run begins anew, and can be stopped again.
    assert asked("a", "b") == ["a", "b"]
    assert not conftest.DONE.exists()
