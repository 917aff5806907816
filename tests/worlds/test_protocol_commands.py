"""Every published protocol that a world's README has a command for runs on the world's files."""

from __future__ import annotations

import shlex

import pytest

from isolux.core import registry
from isolux_worlds.layouts import LAYOUTS
from isolux_worlds.photo_world.settings import preset
from isolux_worlds.synthesis import synthesize
from tests.cli._run import isolux

_WITHOUT_COMMAND = {
    # Their datasets (FairFace, Casual Conversations, WIDER FACE) have no layout.
    "fairface:gender", "fairface:services", "fairness_indicators:label_association_faces",
    "fairness_indicators:same_attribute", "fhibe:face_detection_on_widerface",
}  # fmt: skip


def test_all_other_protocols_have_a_command():
    every = {
        f"{paper}:{name}"
        for paper in registry.names("papers")
        for name in registry.load("papers", paper).PROTOCOLS
    }
    listed = [way.protocol for layout in LAYOUTS.values() for way in layout.protocols]
    assert len(listed) == len(set(listed))
    assert set(listed) == every - _WITHOUT_COMMAND


@pytest.mark.parametrize("name", [name for name, layout in LAYOUTS.items() if layout.protocols])
def test_the_commands_run_as_they_are_printed(name, tmp_path, monkeypatch, capsys):
    world = preset("biased").model_copy(update={"households": 8})
    written = synthesize(world, tmp_path / name, layout=name)
    monkeypatch.chdir(written.path)
    readme = written.path.joinpath("README.txt").read_text().replace(" \\\n    ", " ")
    assert len(written.protocol_commands) == len(LAYOUTS[name].protocols)
    for command in written.protocol_commands:
        assert f"  {command}\n" in readme
        ran = isolux(monkeypatch, capsys, *shlex.split(command)[1:])
        assert ran.code == 0, (command, ran.err)
        assert "report: runs/" in ran.out
