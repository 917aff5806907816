"""No name in a file, and no value of an option, can steer a terminal or forge a line of output.

Every command runs with names that hold ESC, other C0 controls, C1, line breaks and marks of the
writing direction: it prints none of them, on a terminal or not, whether it succeeds or fails.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from isolux import cli
from isolux.cli.progress import ProgressLine
from isolux.cli.streams import guard_streams
from isolux.core.printable import clean_line
from isolux.policy.proposal import _quote_yaml_name as quoted
from isolux_curate import commands
from tests.cli._run import isolux
from tests.cli.test_json import every_command

# What a name may do to a terminal, between letters that must come out as they are.
KEPT = "Ünïcode e\u0301 李明 \U0001f469\u200d\U0001f680 [bold]"
BAD = f"\x1b[31m\x9b4m\x1b]0;t\x07\u202e\u2066\u200f\u061c\x7f\x85 {KEPT}\r\nFORGED"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# The program's own styles, and its bar of progress: no name has such a sequence.
OWN = re.compile(r"\r?\x1b\[(?!31m)[\d;?]*[A-Za-z]|\r(?=pictures )")
COLUMNS = ("id", "tone", "truth", "said", "person", "file")
PEOPLE = 160
NET = "def net():\n    return lambda pictures: ['x' for _ in pictures]\n"


def bad(name: str) -> str:
    return name + BAD


def write_table(path, columns, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def assert_printable(text: str) -> None:
    text = OWN.sub("", text)
    found = RAW.search(text)
    assert found is None, text[max(0, found.start() - 60) : found.end() + 20]
    assert [line for line in text.splitlines() if line.lstrip().startswith("FORGED")] == []


def write_files(folder):
    """Write files whose every name is hostile; their folder's name is given."""
    folder.mkdir()
    draw = np.random.default_rng(0)
    truth = draw.choice(["x", "y"], PEOPLE)
    rows = []
    for k in range(PEOPLE):
        said = truth[k] if draw.random() < 0.75 else "x"
        rows.append([bad(f"p{k}"), bad("ab"[k % 2]), bad(truth[k]), bad(said), bad(f"s{k}"),
                     f"{k}.png"])  # fmt: skip
    write_table(folder / "people.csv", map(bad, COLUMNS), rows)
    write_table(folder / "said.csv", [bad("id"), bad("said")], [[r[0], r[3]] for r in rows])
    for k in range(4):
        Image.fromarray(np.full((4, 4, 3), 60 * k, np.uint8)).save(folder / f"{k}.png")
    write_table(folder / "lost.csv", ["id", "file"], [[bad("p"), bad("lost.png")]])
    write_table(folder / "few.csv", ["id", "file"], [[bad(f"p{k}"), f"{k}.png"] for k in range(4)])
    items = [[bad(f"i{k}"), bad(f"r{j}"), bad("xy"[(k + j) % 4 == 0])]
             for k in range(12) for j in range(3)]  # fmt: skip
    write_table(folder / "ratings.csv", ["item", "annotator", "value"], items)
    write_table(folder / "photos.csv", ["file", "subject_id", bad("hair")],
                [[f"{k}.png", bad(f"s{k}"), bad("brown")] for k in range(4)])  # fmt: skip
    write_table(folder / "captions.csv", ["image_id", "caption"], [[bad("a"), bad("Two nurses")]])
    write_table(folder / "terms.csv", ["class", "term"], [[bad("nurse"), "nurses"]])
    write_table(folder / "seen.csv", ["country", "group"], [[bad("US"), bad("a")]] * 40)
    write_table(folder / "verdicts.csv", ["image_id", "verdict", "reason"],
                [["0", "out", bad("A drawing.")]])  # fmt: skip
    write_table(folder / "private.csv", ["id", bad("job")],
                [[bad(f"p{k}"), bad("x")] for k in range(40)])  # fmt: skip
    rule = {
        "metric": "accuracy",
        "attribute": bad("tone"),
        "groups": [bad("a"), bad("b")],
        "max_difference": "5 points",
    }
    policy = {"policy": 1, "rules": [rule]}
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    (folder / "isolux_hostile_net.py").write_text(NET)
    return folder


AUDIT = (
    "audit table:{f}/people.csv --id {id} --target {truth} --prediction-column {said} --by {tone}"
    " --cluster {person} --model-name {model} --replicates 100"
)
# Commands in an order in which each finds what it needs, and their exit codes.
STEPS = [
    (AUDIT + " --out {f}/{run}", 0),
    (AUDIT + " --out {f}/{later} --seed 3", 0),
    (AUDIT + " --out {f}/{run}", 2),  # it is there
    (AUDIT + " --by {other} --out {f}/x", 2),
    (AUDIT + " --metric {other} --out {f}/x", 2),
    (AUDIT + " --task {other} --out {f}/x", 2),
    (AUDIT + " --level {other} --out {f}/x", 2),
    ("explain {f}/{run} --analysis power --out {f}/{explained}", 0),
    ("explain {f}/{run} --analysis {other} --out {f}/x", 2),
    ("compare {f}/{run} {f}/{later}", 0),
    ("compare --datasets {model}={f}/{run} {other}={f}/{later}", 0),
    ("gate {f}/{run} --policy {f}/policy.yaml", 3),
    ("gate --init {f}/{run}", 0),
    ("card {f}/{run} --kind bias_profile", 0),
    ("monitor {f}/{run} {f}/{later} --repeated-people first", 0),
    (
        ("export {f}/said.csv --to parquet --prediction-option id={id}"
        " --prediction-option column={said} --out {f}/{said}.parquet"),
        0,
    ),
    ("report {f}/{run} --out {f}/{run}.html", 0),
    ("view {f}/{run} --bundle {f}/{run}2.html", 0),
    ("export {f}/{run} --out {f}/{export}", 0),
    ("describe table:{f}/people.csv --id {id} --by {tone}", 0),
    ("describe table:{f}/people.csv --id {id} --by {other}", 2),
    ("sample table:{f}/people.csv --id {id} --balance {tone} --per-cell 200 --out {f}/{ids}", 0),
    ("check table:{f}/lost.csv --images {f}", 1),
    ("predict table:{f}/few.csv --model python:isolux_hostile_net:net --out {f}/{out}", 0),
    ("predict --status {f}/{out}", 0),
    ("crop table:{f}/few.csv --images {f} --out {f}/{crops}", 2),
    ("train probe table:{f}/few.csv --out {f}/{probe}", 2),
    ("withdraw {f}/{run} --who {id} --allow-unmatched --dry-run", 2),
    ("list tasks", 0),
    ("list tasks {other}", 2),
    ("curate consensus ratings:{f}/ratings.csv --out {f}/{labels}", 0),
    ("curate grant {f}/{ledger} --scope evaluation --who {id} --note {other}", 0),
    ("curate consent {f}/{ledger}", 0),
    ("curate revoke {f}/{ledger} --who {id} --note {other}", 0),
    ("curate candidates {f}/captions.csv --terms {f}/terms.csv --out {f}/{round}.csv", 0),
    ("curate quotas {f}/seen.csv --take 20 --out {f}/{quota}.csv", 0),
    ("curate anonymise {f}/private.csv --id id --out {f}/{anonymous} --key {f}/key", 0),
    ("curate init {f}/{faces}", 0),
    ("curate add {f}/{faces} {f}/photos.csv --photos {f}", 0),
    ("curate intake {f}/{faces}", 0),
    ("curate decide {f}/{faces} {f}/verdicts.csv --step {other} --rule {other}", 0),
    ("curate status {f}/{faces}", 0),
    ("curate status {f}/{faces} --by {hair}", 0),
    ("curate show journal {f}/{faces}", 0),
    ("curate tasks {f}/{faces} --stage count --out {f}/{work}", 0),
    ("curate sample {f}/{faces} --type subject --size 2 --out {f}/{sheet}", 2),
    ("curate suspects {f}/{faces} --out {f}/{suspects}.csv", 2),
    ("curate unset {f}/{faces} {hair} --sheet photos", 0),
    ("curate show raters {f}/{faces}", 0),
    ("curate show {other} {f}/{faces}", 2),
]  # fmt: skip
ONLY_ERRORS = {
    "curate answers", "curate concepts", "curate consistency", "curate golden",
    "curate publish", "curate pull", "curate push", "curate quality", "curate recheck",
    "curate review", "curate shapes", "demo", "synthesize", "train fairface", "train finetune",
}  # fmt: skip
"""Commands that need an annotation server, WordNet, a network's weights, many answers, or
a minute to compile: what these say of hostile arguments is looked at."""


def called(monkeypatch, capsys, folder, line):
    names = {name: bad(name) for name in re.findall(r"\{(\w+)\}", line)} | {"f": folder}
    args = [part.format(**names) for part in line.split()]
    return isolux(monkeypatch, capsys, *args, width=100_000)


def test_every_command_is_called():
    words = {" ".join(line.split()[: 1 + (line.split()[0] in ("curate", "train"))])
             for line, _ in STEPS}  # fmt: skip
    assert words | ONLY_ERRORS == set(every_command())


@pytest.mark.parametrize("command", sorted(every_command()))
def test_hostile_arguments_are_printed_as_text(monkeypatch, capsys, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for more in (
        [f"table:{tmp_path / bad('none')}"],
        [bad("a"), bad("b")],
        ["--seed", bad("c")],
        [f"--{BAD}"],
    ):
        ran = isolux(monkeypatch, capsys, *command.split(), *more, width=100_000)
        assert_printable(ran.out)
        assert_printable(ran.err)


@pytest.mark.parametrize("color", ["1", ""], ids=["terminal", "pipe"])
def test_hostile_names_are_printed_as_text(monkeypatch, capsys, tmp_path, color):
    folder = write_files(tmp_path / bad("data"))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("FORCE_COLOR", color)
    for line, code in STEPS:
        ran = called(monkeypatch, capsys, folder, line)
        assert_printable(ran.out)
        assert_printable(ran.err)
        assert ran.code == code, (line, ran.err)
        assert bool(color) or "\x1b" not in ran.out + ran.err


def test_a_document_holds_the_names_themselves(monkeypatch, capsys, tmp_path):
    """In JSON what steers a terminal is escaped, which stands for the same characters."""
    folder = write_files(tmp_path / bad("data"))
    ran = called(monkeypatch, capsys, folder, AUDIT + " --out {f}/{run} --json")
    assert_printable(ran.out)
    tables = {table["name"]: table["rows"] for table in json.loads(ran.out)["tables"]}
    assert {row["group"] for row in tables["group_metrics"]} == {"overall", bad("a"), bad("b")}
    refused = called(monkeypatch, capsys, folder, AUDIT + " --by {other} --out {f}/x --json")
    assert_printable(refused.out)
    assert bad("tone") in json.loads(refused.out)["error"]["expected"]


def test_names_of_every_script_are_printed_as_they_are():
    assert clean_line(KEPT) == KEPT
    assert clean_line(BAD).endswith(f" {KEPT} FORGED")


@pytest.mark.parametrize(("traceback", "code"), [("", 70), ("1", 1)])
def test_what_an_exception_says_is_printed_as_text(monkeypatch, capsys, traceback, code):
    def fail() -> None:
        raise RuntimeError(bad("lost").replace("\r\n", ""))

    monkeypatch.setattr("isolux.cli._parse_and_run_command", fail)
    monkeypatch.setenv("ISOLUX_TRACEBACK", traceback)
    ran = isolux(monkeypatch, capsys, "list", "tasks")
    assert_printable(ran.err)
    assert ran.code == code
    assert ("Traceback" in ran.err) == bool(traceback)
    assert "RuntimeError: lost\N{REPLACEMENT CHARACTER}[31m" in ran.err


def test_a_step_at_hand_is_printed_as_text():
    stream, seconds = io.StringIO(), iter(range(0, 1000, 100))
    teller = ProgressLine(stream, is_terminal=True, clock=lambda: next(seconds))
    teller.set_step(bad("reading"))
    teller.update()
    assert_printable(stream.getvalue().removeprefix("\r"))


def test_what_a_library_prints_cannot_steer_a_terminal(capsys):
    with guard_streams():
        print("a\x1b[31mb\x9bc\u202ed\ne")
        sys.stderr.write("\rhalf of it\x1b[A")
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("a�[31mb�c�d\ne\n", "\rhalf of it�[A")


def test_commands_print_by_say_alone():
    rooms = [Path(room.__file__).parent for room in (cli, commands)]
    files = sorted(file for room in rooms for file in room.rglob("*.py"))
    past = re.compile(r"typer\.echo|\bConsole\(")  # `print` itself is refused by ruff
    assert [path.name for path in files if past.search(path.read_text("utf-8"))] == ["streams.py"]


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", ":smile:", "[link=http://x]y", "\\[b]"])
def test_names_that_look_like_markup_are_printed_as_they_are(monkeypatch, capsys, tmp_path, name):
    rows = [[k, name if k % 2 else "b", "xy"[k % 3 == 0], "xy"[k % 5 == 0]] for k in range(PEOPLE)]
    path = write_table(tmp_path / "people.csv", ["id", "tone", "truth", "said"], rows)
    ran = isolux(
        monkeypatch, capsys, "audit", f"table:{path}", "--id", "id", "--target", "truth",
        "--prediction-column", "said", "--by", "tone", "--replicates", 100, "--out",
        tmp_path / name.replace("/", ""), width=100_000,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert f"\n  {name} " in ran.out, "the table of groups"
    assert f"{name.replace('/', '')}/report.html" in ran.out


@pytest.mark.parametrize("name", [BAD, KEPT, "\u2028a\u2029", "\U0001f469\u200d\U0001f680"])
def test_a_proposed_policy_names_a_group_by_its_name(name):
    text = quoted(name)
    assert_printable(text)
    assert yaml.safe_load(text) == name
