"""The pytest plugin beside the table of cases (``tests/verbs/test_gate_table.py``)."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from isolux.io import run_directory
from tests.policy._runs import accuracy, policy_of
from tests.policy._table import run

pytest_plugins = ["pytester"]
HALVES = ("--isolux-policy", "policy.yaml", "--isolux-run")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def gated(pytester):
    def make(rule, *args: str):
        run_directory.save(run("alike"), pytester.path / "run")
        (pytester.path / "policy.yaml").write_text(yaml.safe_dump(policy_of(rule)), "utf-8")
        pytester.makepyfile(
            "def test_release(isolux_gate):\n    isolux_gate('run', 'policy.yaml')\n"
        )
        return pytester.runpytest_inprocess("-p", "isolux_gate", *args)

    return make


def test_the_fixture_passes_and_gives_the_decision(gated):
    gated(accuracy(within="5 points")).assert_outcomes(passed=1)


def test_the_fixture_fails_with_the_commands_text(gated):
    done = gated(accuracy(within="4 points"))
    done.assert_outcomes(failed=1)
    assert "INSUFFICIENT: no rule is shown not to hold" in done.stdout.str()


def test_rules_and_tests_stand_side_by_side(gated):
    done = gated(accuracy(within="4 points"), *HALVES, "run")
    done.assert_outcomes(failed=2)
    assert "1. Accuracy: no two of the groups of light more than 4 points apart" in (
        done.stdout.str()
    )


@pytest.mark.parametrize("args", [HALVES[:2], (HALVES[2], "run"), (*HALVES, "none")])
def test_half_a_question_and_no_run_are_errors_not_skips(gated, args):
    assert gated(accuracy(within="5 points"), *args).ret == pytest.ExitCode.USAGE_ERROR


def test_the_plugin_is_declared_and_costs_nothing_until_it_is_used():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"isolux_gate": "isolux_gate"}
    code = "import isolux_gate, sys; assert not {'isolux', 'polars', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
