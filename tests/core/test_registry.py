"""A plugin's name is its file's name; another package's comes by entry point."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import isolux
from isolux.core import registry
from isolux.core.errors import IsoluxError, UnknownNameError
from isolux.core.info import DatasetInfo, MeasureInfo, TaskInfo


def test_names_are_the_files_without_a_leading_underscore():
    folder = Path(isolux.__file__).parent / "datasets"
    files = {f.stem for f in folder.glob("*.py") if not f.stem.startswith("_")}
    assert set(registry.names("datasets")) >= files
    assert "_wide" not in registry.names("datasets")


def test_listing_imports_no_plugin():
    code = (
        "import sys; from isolux.core import registry; "
        "[registry.names(r) for r in registry.PLUGIN_KINDS]; "
        "assert not [m for m in sys.modules if m.startswith('isolux.tasks.')], sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(UnknownNameError, match="no task named 'clasification'") as caught:
        registry.load("tasks", "clasification")
    assert "did you mean 'classification'" in str(caught.value)


def test_an_unknown_room():
    with pytest.raises(UnknownNameError, match="no kind of plugin named 'kitchens'"):
        registry.names("kitchens")


@pytest.fixture
def foreign(monkeypatch):
    """Pretend that another package declares one entry point."""

    def declare(module, package="tasks"):
        monkeypatch.setitem(sys.modules, "their_package_gaze", module)
        point = EntryPoint("gaze", "their_package_gaze", f"isolux.{package}")
        monkeypatch.setattr(
            registry,
            "list_entry_points",
            lambda group: [point] if group == f"isolux.{package}" else [],
        )

    return declare


def test_another_packages_plugin_is_found(foreign):
    module = ModuleType("their_package_gaze")
    module.INFO = TaskInfo(title="Gaze", summary="Gaze.", references=(), metrics=())
    module.score = lambda dataset, predictions: None
    foreign(module)
    assert "gaze" in registry.names("tasks")
    assert registry.load("tasks", "gaze") is module
    assert registry.task_info("gaze").title == "Gaze"


def test_a_plugin_without_info_is_refused(foreign):
    foreign(ModuleType("their_package_gaze"))
    with pytest.raises(IsoluxError, match="a module with INFO"):
        registry.load("tasks", "gaze")


def test_a_task_that_declares_no_metrics_is_refused(foreign):
    module = ModuleType("their_package_gaze")
    module.INFO = SimpleNamespace(title="no task")
    module.score = lambda dataset, predictions: None
    foreign(module)
    with pytest.raises(IsoluxError, match=r"(?s)without INFO: TaskInfo.*their_package_gaze"):
        registry.task_info("gaze")


def test_a_plugin_without_its_function_is_refused(foreign):
    module = ModuleType("their_package_gaze")
    module.INFO = MeasureInfo(title="Gaze", summary="Gaze.", references=())
    foreign(module, package="measures")
    with pytest.raises(IsoluxError, match=r"(?s)disparity measure 'gaze'.*without measure\("):
        registry.load("measures", "gaze")


def test_a_plugin_that_cannot_be_imported_is_named(monkeypatch):
    point = EntryPoint("gaze", "their_package_gone.gaze", "isolux.tasks")
    monkeypatch.setattr(registry, "list_entry_points", lambda group: [point])
    with pytest.raises(IsoluxError, match=r"(?s)cannot be imported.*No module named.*gone.gaze"):
        registry.load("tasks", "gaze")


def test_two_packages_cannot_share_a_name(monkeypatch):
    points = [EntryPoint("gaze", f"package_{k}.gaze", "isolux.tasks") for k in "ab"]
    monkeypatch.setattr(registry, "list_entry_points", lambda group: points)
    with pytest.raises(IsoluxError, match=r"(?s)two packages name.*package_a.*package_b"):
        registry.load("tasks", "gaze")


def test_a_dataset_says_whose_judgement_its_labels_are():
    info = registry.load_dataset_info("fairface")
    assert isinstance(info, DatasetInfo)
    assert info.label_source == "perceived"
    assert dict(info.terms)["gender"] == "perceived gender presentation"
