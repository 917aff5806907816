"""The pytest plugin beside the table of cases (``tests/api/test_gate_table.py``)."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from isolux.io import run_directory
from tests.policy._pytest import pytest_in
from tests.policy._runs import accuracy, policy_of
from tests.policy._table import run

HALVES = ("--isolux-policy", "policy.yaml", "--isolux-run")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def gated(tmp_path):
    def make(rule, *args: str):
        run_directory.save_run(run("alike"), tmp_path / "run")
        (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy_of(rule)), "utf-8")
        (tmp_path / "test_release.py").write_text(
            "def test_release(isolux_gate):\n    isolux_gate('run', 'policy.yaml')\n", "utf-8"
        )
        return pytest_in(tmp_path, *args)

    return make


def test_the_fixture_passes(gated):
    assert gated(accuracy(max_difference="6 points")).outcomes == [("test_release", "passed")]


def test_the_fixture_fails_with_the_commands_text(gated):
    seen = gated(accuracy(max_difference="4 points"))
    assert seen.outcomes == [("test_release", "failed")]
    assert "INSUFFICIENT: no rule is shown not to hold" in seen.said[0]
    assert "Traceback" not in seen.said[0]


def test_rules_and_tests_stand_side_by_side(gated):
    seen = gated(accuracy(max_difference="4 points"), *HALVES, "run")
    rule = "1. Accuracy: no two of the groups of light more than 4 points apart"
    assert seen.outcomes == [(rule, "failed"), ("test_release", "failed")]


def test_a_pass_says_what_no_rule_asks_about(gated, capsys):
    """The text of the command stands below the tests, also where all of them pass."""
    everyone = accuracy(at_least="70 %", attribute=None)
    gated(everyone, *HALVES, "run")
    said = capsys.readouterr().out
    verdict = "PASS: every rule is shown to hold (of 1 rule: 1 pass)."
    assert said.count(f"{verdict}\nNot asked by any rule: light.") == 2
    assert said.count("= isolux gate =") == 2


@pytest.mark.parametrize("args", [HALVES[:2], (HALVES[2], "run"), (*HALVES, "none")])
def test_half_a_question_and_no_run_are_errors_not_skips(gated, args):
    seen = gated(accuracy(max_difference="6 points"), *args)
    assert seen.code == pytest.ExitCode.USAGE_ERROR
    assert seen.outcomes == []


def test_the_plugin_is_declared_and_costs_nothing_until_it_is_used():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"isolux_gate": "isolux_gate"}
    code = "import isolux_gate, sys; assert not {'isolux', 'polars', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
