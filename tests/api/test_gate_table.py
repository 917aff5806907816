"""The table of cases by hand, asked by the function, the command and the pytest plugin."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

import isolux
from isolux.core.errors import IsoluxError
from isolux.io import run_directory
from tests.cli._run import isolux as command
from tests.policy._pytest import pytest_in
from tests.policy._runs import policy_of
from tests.policy._table import CASES, Case, run

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gate")


def on_disk(folder: Path, name: str) -> Path:
    path = folder / name.replace(" ", "-")
    return path if path.exists() else run_directory.save_run(run(name), path)


def asked(case: Case) -> dict[str, object]:
    return policy_of(*case.rules, **case.more)


def before(case: Case):
    return None if case.baseline is None else run(case.baseline)


@cache
def answer_of(case_name: str):
    """Ask the function; command and pytest must say the same."""
    (case,) = (case for case in CASES if case.name == case_name)
    return isolux.gate(run(case.run), asked(case), baseline=before(case))


def test_there_are_cases_of_each_answer_and_code() -> None:
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)
    kinds = {key for case in CASES for rule in case.rules for key in rule}
    from isolux.policy.rules import RULE_KINDS

    assert set(RULE_KINDS) <= kinds
    for kind in set(RULE_KINDS) - {"required_analyses"}:  # an analysis ran, or it did not
        own = [case for case in CASES if kind in case.rules[-1] and not case.broken]
        assert {case.answers[-1] for case in own} == {"pass", "fail", "insufficient"}, kind


@every_case
def test_the_function_answers(case: Case) -> None:
    if case.broken:
        with pytest.raises(IsoluxError) as caught:
            isolux.gate(run(case.run), asked(case), baseline=before(case))
        assert case.says in str(caught.value)
        return
    found = answer_of(case.name)
    assert tuple(rule.answer for rule in found.rules) == case.answers, found.text()
    assert found.exit_code == case.code
    assert case.says in found.text()


@every_case
def test_the_command_answers_the_same(case: Case, folder, tmp_path, monkeypatch, capsys) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(asked(case)), encoding="utf-8")
    args = ["gate", on_disk(folder, case.run), "--policy", policy]
    args += [] if case.baseline is None else ["--baseline", on_disk(folder, case.baseline)]
    ran = command(monkeypatch, capsys, *args, "--json-file", tmp_path / "gate.json")
    assert ran.code == case.code, ran
    if case.broken:
        assert " ".join(case.says.split()) in ran.plain
        return
    told = json.loads((tmp_path / "gate.json").read_text(encoding="utf-8"))
    same = answer_of(case.name)
    assert told["rules"] == same.record["rules"]
    assert told["exit_code"] == case.code
    assert ran.out == same.text() + "\n"


@every_case
def test_pytest_answers_the_same(case: Case, folder, tmp_path) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(asked(case)), encoding="utf-8")
    args = ["--isolux-policy", "policy.yaml", "--isolux-run", str(on_disk(folder, case.run))]
    if case.baseline is not None:
        args += ["--isolux-baseline", str(on_disk(folder, case.baseline))]
    seen = pytest_in(tmp_path, *args)
    if case.broken:
        assert seen.code == pytest.ExitCode.USAGE_ERROR
        assert not seen.outcomes
        return
    told = answer_of(case.name)
    words = {"pass": "passed", "fail": "failed", "insufficient": "failed"}
    assert seen.outcomes == [(f"{r.number}. {r.title}", words[r.answer]) for r in told.rules]
    assert seen.said == [
        "" if rule.answer == "pass" else f"{rule.answer}: {rule.text}" for rule in told.rules
    ]
    assert seen.code == (0 if case.code == 0 else 1)
