"""What holds for each check of plausibility: complete, silent on sound data, loud on its own."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

import isolux.plausibility
from isolux.core import registry
from isolux.core.errors import SpecError, TableError
from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility import CHECKS, AuditInputs, check_plausibility
from tests.plausibility._sound import SOUND

DOCS = Path(__file__).resolve().parents[2] / "docs" / "methods" / "plausibility.md"


def _name(check: ModuleType) -> str:
    return check.__name__.rpartition(".")[2]


def _broken(check: ModuleType) -> AuditInputs:
    module = importlib.import_module(f"tests.plausibility.test_{_name(check)}")
    return module.build_broken_inputs()


each_check = pytest.mark.parametrize("check", CHECKS, ids=_name)


def test_every_file_of_the_package_is_in_the_table() -> None:
    folder = Path(isolux.plausibility.__file__).parent
    names = {p.stem for p in folder.iterdir() if not p.name.startswith(("_", "."))}
    assert {_name(check) for check in CHECKS} == names


@each_check
def test_it_says_what_it_computes_and_when_it_warns(check) -> None:
    info = check.INFO
    assert isinstance(info, PlausibilityInfo)
    assert info.title
    assert not info.title.endswith(".")
    assert info.summary.endswith(".")
    assert info.rule.startswith(("Warns", "Refuses"))
    assert info.rule.endswith(".")
    assert set(info.tasks) <= set(registry.names("tasks"))
    assert f"\n| `{_name(check)}` |" in DOCS.read_text(encoding="utf-8")


@each_check
def test_it_is_silent_on_sound_data(check) -> None:
    missing = set(check.INFO.tasks) - set(SOUND)
    assert not missing, f"add sound data of {missing} to tests/plausibility/_sound.py"
    for task in check.INFO.tasks or SOUND:
        for name, build in SOUND[task].items():
            assert check.check(build()) == [], f"an alarm on sound data: {task}, {name}"


@each_check
def test_it_raises_an_alarm_on_its_broken_example(check) -> None:
    inputs = _broken(check)
    assert not check.INFO.tasks or inputs.task in check.INFO.tasks
    if check.INFO.rule.startswith("Refuses"):
        with pytest.raises((SpecError, TableError)) as refusal:
            check.check(inputs)
        assert refusal.value.expected
        assert refusal.value.found
        return
    cautions = check.check(inputs)
    assert cautions
    for caution in cautions:
        assert isinstance(caution, Caution)
        assert caution in check_plausibility(inputs)
