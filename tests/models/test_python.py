"""``python:MODULE:FACTORY``: any callable, its settings, and what is known of its weights."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from isolux.core.errors import IsoluxError, SpecError, UnknownNameError
from isolux.models import open_model

PLAIN = """
from pathlib import Path
def net(*, limit: float = 127.0, weights: str | None = None):
    def answer(pictures):
        return ["day" if one.mean() > limit else "night" for one in pictures]
    return answer

def needy(*, weights: str):
    return lambda pictures: []

def broken():
    raise RuntimeError("no such GPU")

def nothing():
    return None

class Vectors:
    predicts = "embeddings"
    identity = {"weights": "abc"}
    notes = ("Vectors have two numbers.",)
    def __call__(self, pictures):
        import numpy as np
        return np.array([[one.mean(), one.std()] for one in pictures])

def vectors():
    return Vectors()

def placed(weights="own.bin", limit: float = 127.0):
    return net(limit=limit + len(Path(weights).read_text()) - 1)

class Made:
    def __init__(self, limit: float):
        self.limit = limit
    def __call__(self, pictures):
        return ["day" if one.mean() > self.limit else "night" for one in pictures]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's in the working folder, imported afresh each time it is written."""
    monkeypatch.chdir(tmp_path)

    def write(text=PLAIN):
        (tmp_path / "isolux_test_nets.py").write_text(text)
        sys.modules.pop("isolux_test_nets", None)
        return "python:isolux_test_nets"

    write()
    yield write
    sys.modules.pop("isolux_test_nets", None)


GREY = [np.full((4, 4, 3), grey, np.uint8) for grey in (10, 100, 200)]


def test_a_factory_is_called_with_its_settings(module):
    assert open_model(f"{module()}:net").predictor(GREY) == ["night", "night", "day"]
    bright = open_model(f"{module()}:net", ["settings=limit=50"])
    assert bright.predictor(GREY) == ["night", "day", "day"]


def test_source_settings_and_files_are_the_key_and_names_are_not(module, tmp_path):
    spec = f"{module()}:net"
    first = open_model(spec).key
    assert open_model(f"{module()}:net", name="renamed").key == first
    assert open_model(spec, ["settings=limit=50"]).key != first
    assert open_model(spec, ["version=2"]).key != first
    module(PLAIN.replace("> limit", ">= limit"))
    assert open_model(spec).key != first
    module()
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(b"weights 1")
    one = open_model(spec, ["settings=weights=a.bin"]).key
    assert open_model(spec, ["settings=weights=b.bin"]).key == one
    (tmp_path / "a.bin").write_bytes(b"weights 2")
    assert open_model(spec, ["settings=weights=a.bin"]).key != one


@pytest.mark.parametrize(
    "source",
    [
        "import isolux_test_near\ndef net():\n    return print\n",
        "def net():\n    import isolux_test_near\n    return print\n",
        "def net():\n    def ask(p):\n        import isolux_test_near\n    return ask\n",
    ],
)
def test_neighbours_that_a_module_imports_are_the_key(module, tmp_path, source):
    """Also one that is imported when the model is first asked, and what it imports itself."""
    (tmp_path / "isolux_test_near.py").write_text("import isolux_test_pack")
    (tmp_path / "isolux_test_pack").mkdir()
    keys = []
    for limit in ("LIMIT = 1", "LIMIT = 1", "LIMIT = 2"):
        (tmp_path / "isolux_test_pack" / "__init__.py").write_text(limit)
        keys.append(open_model(f"{module(source)}:net").key)
        for name in ("isolux_test_near", "isolux_test_pack"):
            sys.modules.pop(name, None)
    assert keys[0] == keys[1] != keys[2]


def test_a_module_of_another_folder_is_the_key(module, tmp_path_factory, monkeypatch):
    """The first folder that Python looks in counts; a library's modules do not."""
    source = "def net():\n    import isolux_test_far, json\n    return print\n"
    keys = []
    for name in ("second", "first"):
        folder = tmp_path_factory.mktemp(name)
        monkeypatch.syspath_prepend(folder)
        for limit in (1, 2):
            (folder / "isolux_test_far.py").write_text(f"LIMIT = {limit}\n")
            keys.append(open_model(f"{module(source)}:net").identity["own"]["source"])
            sys.modules.pop("isolux_test_far", None)
    one, two, again, shadowed = keys
    assert one != two
    assert again == one  # the first folder's, with what the second held before
    assert shadowed == two
    assert set(one) == {"isolux_test_nets.py", "isolux_test_far"}


def test_weights_that_nothing_names_are_said(module, tmp_path):
    (note,) = open_model(f"{module()}:net").notes
    assert "not the files that it reads" in note
    (tmp_path / "a.bin").write_bytes(b"weights")
    assert open_model(f"{module()}:net", ["settings=weights=a.bin"]).notes == ()


def test_a_factory_may_take_its_settings_by_place(module, tmp_path):
    (tmp_path / "own.bin").write_text("w")
    bright = open_model(f"{module()}:placed", ["settings=limit=50"])
    assert bright.predictor(GREY) == ["night", "day", "day"]
    assert open_model(f"{module()}:Made", ["settings=limit=150"]).predictor(GREY)[1:] == [
        "night", "day"
    ]  # fmt: skip
    with pytest.raises(SpecError, match=r"(?s)needs settings.*expected: limit\n"):
        open_model(f"{module()}:Made")


def test_a_default_that_names_a_file_counts_by_its_content(module, tmp_path):
    (tmp_path / "own.bin").write_text("w")
    first = open_model(f"{module()}:placed")
    assert first.notes == ()
    (tmp_path / "own.bin").write_text("ww")
    assert open_model(f"{module()}:placed").key != first.key


def test_a_callable_says_itself_what_it_answers_and_what_identifies_it(module):
    found = open_model(f"{module()}:vectors")
    assert (found.predicts, found.name) == ("embeddings", "vectors")
    assert found.identity["own"]["own"] == {"weights": "abc"}
    assert found.notes == ("Vectors have two numbers.",)


@pytest.mark.parametrize(
    ("what", "options", "error", "match"),
    [
        ("netz", [], UnknownNameError, "did you mean 'net'"),
        ("broken", [], SpecError, "(?s)failed.*RuntimeError: no such GPU"),
        ("nothing", [], SpecError, "(?s)nothing to call.*NoneType"),
        ("needy", [], SpecError, "(?s)needs settings.*weights.*settings=weights=VALUE"),
        ("net", ["settings=limit=high"], SpecError, "(?s)'limit'.*number.*'high'"),
        ("net", ["predicts=colours"], UnknownNameError, "no kind of answers named 'colours'"),
        ("net", ["speed=1"], SpecError, "(?s)no setting 'speed'.*predicts"),
    ],
)
def test_what_is_wrong_is_named(module, what, options, error, match):
    with pytest.raises(error, match=match):
        open_model(f"{module()}:{what}", options)


def test_a_module_that_does_not_import_says_why(module):
    with pytest.raises(IsoluxError, match=r"(?s)cannot be imported.*No module named 'nowhere'"):
        open_model("python:nowhere:net")
    with pytest.raises(IsoluxError, match=r"(?s)cannot be imported.*ZeroDivisionError"):
        open_model(f"{module('1 / 0')}:net")
    with pytest.raises(IsoluxError, match=r"(?s)not named.*MODULE:FACTORY"):
        open_model("python:net")
