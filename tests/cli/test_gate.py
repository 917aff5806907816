"""The command, and what CI runs: the composite action and the GitLab template, by a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from isolux.io import run_directory
from tests.cli._run import isolux
from tests.policy._runs import accuracy, policy_of
from tests.policy._table import run

CI = Path(__file__).resolve().parents[2] / "ci"
RULES = {
    "pass": accuracy(max_difference="6 points"),
    "fail": accuracy(at_least="97 %"),
    "insufficient": accuracy(max_difference="4 points"),
    "misuse": accuracy(max_difference=5),
}
CODES = {"pass": 0, "fail": 1, "misuse": 2, "insufficient": 3, "broken": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, a policy for each answer, and the command by its name."""
    folder = tmp_path_factory.mktemp("ci")
    run_directory.save_run(run("alike"), folder / "a run")
    for name, rule in RULES.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(policy_of(rule)), encoding="utf-8")
    (folder / "back.yaml").write_text(
        yaml.safe_dump(policy_of(accuracy(max_drop="2 points"))), encoding="utf-8"
    )
    program = folder / "bin" / "isolux"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isolux "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


def shell(folder: Path, script: str, program: str, **variables: str):
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [program, "-e", "-c", script], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, **variables},
    )  # fmt: skip


def action(folder: Path, **inputs: str):
    """Run the action's step as a runner does: inputs as variables, files for summary and output."""
    said = yaml.safe_load((CI / "github-action" / "action.yml").read_text(encoding="utf-8"))
    given = {name: one.get("default", "") for name, one in said["inputs"].items()} | inputs
    (step,) = said["runs"]["steps"]
    assert step["shell"] == "bash"
    assert "${{" not in step["run"]  # nothing that a caller writes stands inside the script
    variables = dict(step["env"])
    for name, value in given.items():
        variables = {k: v.replace(f"${{{{ inputs.{name} }}}}", value) for k, v in variables.items()}
    for name in ("summary", "output"):
        (folder / name).write_text("before\n", encoding="utf-8")
    places = {"GITHUB_STEP_SUMMARY": "summary", "GITHUB_OUTPUT": "output"}
    variables |= {name: str(folder / place) for name, place in places.items()}
    done = shell(folder, step["run"], "bash", **variables)
    told = (folder / "output").read_text(encoding="utf-8").splitlines()
    return done, told, (folder / "summary").read_text(encoding="utf-8")


@pytest.mark.parametrize("answer", CODES)
def test_the_action_ends_with_the_gates_answer(folder, answer):
    policy, where = ("pass", "no run") if answer == "broken" else (answer, "a run")
    done, told, summary = action(folder, run=where, policy=f"{policy}.yaml")
    assert done.returncode == CODES[answer], done.stderr
    assert told == ["before", f"answer={answer}", f"exit-code={CODES[answer]}"]
    assert summary.startswith("before\n")
    if answer in ("pass", "fail", "insufficient"):
        assert answer in summary.splitlines()[1]
        assert json.loads((folder / "isolux-gate.json").read_text("utf-8"))["answer"] == answer
        assert "<testsuite " in (folder / "isolux-gate.xml").read_text("utf-8")


def test_the_action_lets_a_job_go_on_where_that_is_asked_and_only_then(folder):
    done, told, _ = action(
        folder, run="a run", policy="insufficient.yaml", **{"allow-insufficient": "true"}
    )
    assert done.returncode == 0
    assert told[1:] == ["answer=insufficient", "exit-code=3"]
    assert "::warning::" in done.stdout
    done, *_ = action(folder, run="a run", policy="fail.yaml", **{"allow-insufficient": "true"})
    assert done.returncode == 1


def test_the_action_runs_nothing_that_an_input_holds(folder):
    hostile = "a run; touch broken-in #"
    done, told, _ = action(folder, run=hostile, policy="$(touch broken-in)")
    assert done.returncode in (2, 4)
    assert told[-1] in ("exit-code=2", "exit-code=4")
    assert not (folder / "broken-in").exists()


def test_the_action_takes_a_baseline(folder):
    done, *_ = action(folder, run="a run", policy="back.yaml", baseline="a run")
    assert done.returncode == 0, done.stdout
    assert action(folder, run="a run", policy="back.yaml")[0].returncode == 2


@pytest.mark.parametrize("answer", ["pass", "insufficient", "broken"])
def test_the_template_ends_with_the_gates_answer(folder, answer):
    said = yaml.safe_load((CI / "gitlab" / "isolux-gate.yml").read_text(encoding="utf-8"))
    job = said[".isolux-gate"]
    policy, where = ("pass", "no run") if answer == "broken" else (answer, "a run")
    variables = {**job["variables"], "ISOLUX_RUN": where, "ISOLUX_POLICY": f"{policy}.yaml"}
    done = shell(folder, "\n".join(job["script"]), "sh", **variables)
    assert done.returncode == CODES[answer], done.stderr
    if answer in ("pass", "fail", "insufficient"):
        for name in (job["artifacts"]["reports"]["junit"], *job["artifacts"]["paths"]):
            assert (folder / name).stat().st_size > 100


def test_the_template_takes_a_baseline(folder):
    said = yaml.safe_load((CI / "gitlab" / "isolux-gate.yml").read_text(encoding="utf-8"))
    job = said[".isolux-gate"]
    variables = {**job["variables"], "ISOLUX_RUN": "a run", "ISOLUX_POLICY": "back.yaml",
                 "ISOLUX_BASELINE": "a run"}  # fmt: skip
    assert shell(folder, "\n".join(job["script"]), "sh", **variables).returncode == 0


def test_init_prints_a_policy_and_nothing_else(monkeypatch, capsys, folder, tmp_path):
    ran = isolux(monkeypatch, capsys, "gate", "--init", folder / "a run")
    assert ran.code == 0
    (tmp_path / "policy.yaml").write_text(ran.out, encoding="utf-8")
    asked = isolux(
        monkeypatch, capsys, "gate", folder / "a run", "--policy", tmp_path / "policy.yaml"
    )
    assert asked.code == 0
    assert "PASS  1. Accuracy of everyone" in asked.out


def test_json_is_printed_alone(monkeypatch, capsys, folder):
    ran = isolux(
        monkeypatch, capsys, "gate", folder / "a run", "--policy", folder / "fail.yaml", "--json"
    )
    assert ran.code == 1
    assert json.loads(ran.out)["answer"] == "fail"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "no policy is given"),
        (("--init", "--policy", "pass.yaml"), "--init proposes a policy and takes no other flag"),
        (("--init", "--json"), "takes no other flag"),
        (("--polcy", "pass.yaml"), "did you mean --policy"),
    ],
)
def test_flags_that_do_not_fit_are_misuse(monkeypatch, capsys, folder, flags, says):
    monkeypatch.chdir(folder)
    ran = isolux(monkeypatch, capsys, "gate", "a run", *flags)
    assert ran.code == 2
    assert says in ran.plain


def test_a_summary_that_cannot_be_written_is_misuse_not_a_pass(monkeypatch, capsys, folder):
    monkeypatch.chdir(folder)
    ran = isolux(
        monkeypatch, capsys, "gate", "a run", "--policy", "pass.yaml", "--markdown", "no/such.md"
    )
    assert ran.code == 2
    assert "PASS" not in ran.out


@pytest.mark.parametrize("flag", ["--markdown", "--junit", "--json-file"])
def test_a_folder_is_no_file_to_write_to(monkeypatch, capsys, folder, flag):
    monkeypatch.chdir(folder)
    ran = isolux(monkeypatch, capsys, "gate", "a run", "--policy", "pass.yaml", flag, "bin")
    assert ran.code == 2
    assert "this is a folder, and a file is to be written" in ran.plain
    assert "PASS" not in ran.out


def test_no_answer_is_written_over_the_policy(monkeypatch, capsys, folder):
    monkeypatch.chdir(folder)
    kept = Path("pass.yaml").read_bytes()
    asked = ("gate", "a run", "--policy", "pass.yaml")
    for flags in (("--json-file", "pass.yaml"), ("--junit", "x.txt", "--markdown", "./x.txt")):
        ran = isolux(monkeypatch, capsys, *asked, *flags)
        assert ran.code == 2
        assert "needed for something else" in ran.plain
    assert Path("pass.yaml").read_bytes() == kept
    assert not Path("x.txt").exists()
