"""A record names neither the machine's folders nor its user."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import pytest

from isolux.io.record_paths import make_paths_relative
from tests.cli._run import isolux


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/usr/anna/work/people.csv", "people.csv"),
        ("/usr/anna/work", "."),
        ("table:/usr/anna/work/in/a b.csv", "table:in/a b.csv"),
        ("/usr/anna/data/a.csv", "~/data/a.csv"),
        ("pictures=/usr/anna/pictures", "pictures=~/pictures"),
        ("read /usr/anna/work/a.csv, then /etc/b.csv", "read a.csv, then ../../../etc/b.csv"),
        ("erm: /etc/b.csv", "erm: ../../../etc/b.csv"),
        ("/usr/workers/a.csv", "../../workers/a.csv"),
        ("/m/01g317", "/m/01g317"),  # a class of Open Images
        ("https://host/usr/a", "https://host/usr/a"),
        ("and/or 1/3 n/a ~/x ../y", "and/or 1/3 n/a ~/x ../y"),
    ],
)
def test_absolute_paths_become_relative(text, short):
    assert make_paths_relative(text, working_dir="/usr/anna/work", home="/usr/anna") == short


def test_a_folder_named_after_the_user_is_not_named():
    user = getpass.getuser()
    text = f"/usr/{user}/faces/a.csv"
    assert (
        make_paths_relative(text, working_dir="/usr/elsewhere", home="/nowhere/at-all") == "a.csv"
    )


def test_every_text_of_a_record_is_looked_at():
    record = {"inputs": {Path("/usr/a.csv"): "1f"}, "notes": ("at /usr/b", ["/usr/c"]), "n": 3}
    found = make_paths_relative(record, working_dir="/usr/x", home="/usr/anna")
    assert found == {
        "inputs": {"../a.csv": "1f"},
        "notes": ("at ../b", ["../c"]),
        "n": 3,
    }


def test_a_run_and_its_report_name_no_absolute_path_unless_asked(tmp_path, monkeypatch, capsys):
    rows = "".join(f"{i},{'AB'[i % 2]},x,{'xy'[i % 3 == 0]}\n" for i in range(120))
    (tmp_path / "people.csv").write_text(f"id,race,truth,answer\n{rows}")
    (tmp_path / "gone.txt").write_text("7\n")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def audit(name: str, *more: object) -> Path:
        done = isolux(
            monkeypatch, capsys, "audit", f"table:{tmp_path}/people.csv", "--target", "truth",
            "--predictions", f"{tmp_path}/people.csv", "--prediction-column", "answer",
            "--by", "race", "--out", tmp_path / name, "--replicates", "100", "--metric",
            "accuracy", "--withdrawn", tmp_path / "gone.txt", *more,
        )  # fmt: skip
        assert done.code == 0, done.err
        return tmp_path / name

    run = audit("run")
    for name in ("audit.json", "report.html"):
        text = (run / name).read_text()
        assert str(tmp_path) not in text, name
        assert str(Path.home()) not in text, name
    said = json.loads((run / "audit.json").read_text())
    assert said["spec"]["data"] == "table:../people.csv"
    assert list(said["inputs"]) == ["../people.csv"]
    again = isolux(
        monkeypatch, capsys, "export", tmp_path / "run", "--out", tmp_path / "seen"
    )  # fmt: skip
    assert "there is no such file" not in again.err  # the record's paths can be read again
    assert (
        str(tmp_path) in (audit("whole", "--option", "paths=absolute") / "audit.json").read_text()
    )
