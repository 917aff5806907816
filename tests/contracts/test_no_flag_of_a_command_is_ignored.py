"""No flag of a command is accepted and unused, over all flags of the commands beside the audit.

Set in two ways, each changes what the command prints or writes, or is refused by its name.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.api.audit import run_audit
from isolux.cli.app import build_cli_program
from isolux.core.plugin_options import format_cli_flag
from isolux.core.spec import parse_spec
from isolux.io.run_directory import save_run
from tests.cli._run import isolux

Args = tuple[str, ...]
Case = tuple[Args, Args, Args]
"""Arguments without the flag, and two ways to give it (or one, and none)."""

NONE: Args = ()
TABLE: Args = ("table:people.csv", "--id", "id")
TONES: Args = ("table:people.csv", "--id", "id", "--by", "tone")
DESCRIBE: Args = (*TABLE, "--by", "race")
SAMPLE: Args = (*TABLE, "--balance", "race", "--per-cell", "5", "--out", "out/ids.csv")
CHECK: Args = (*TABLE, "--out", "out/problems.csv")
EXPORT: Args = ("first", "--out", "out/export")
CONVERT: Args = ("both.csv", "--to", "parquet", "--out", "out/m.parquet")
EXPLAIN: Args = ("first", "--analysis", "power", "--out", "out/run")
COMPARE: Args = ("first", "second", "--out", "out/change")
MONITOR: Args = ("first", "later", "--out", "out/monitor")
REPORT: Args = ("first", "--out", "out/report.html")
GALLERY: Args = (*REPORT, "--gallery", "3", "--images", "photos", "--confirm-image-rights")
CARD: Args = ("first", "--kind", "model_card")
BOXES: Args = ("coco:boxes.json",)
CROP: Args = (*BOXES, "--images", "photos", "--out", "out/crops", "--recipe", "box")
VIEW: Args = ("first", "--bundle", "out/page.html")


def _withdrawals(base: Args) -> dict[str, Case]:
    return {
        "withdrawn": (base, ("--withdrawn", "10.txt"), ("--withdrawn", "20.txt")),
        "allow_unmatched": (
            (*base, "--withdrawn", "unmatched.txt"), NONE, ("--allow-unmatched",),
        ),
    }  # fmt: skip


def _two_values(base: Args, flag: str, first: str, second: str) -> Case:
    return base, (flag, first), (flag, second)


CASES: dict[str, dict[str, Case]] = {
    "describe": {
        **_withdrawals(DESCRIBE),
        "by": _two_values(TABLE, "--by", "race", "sex"),
        "derive": _two_values(BOXES, "--derive", "size", "crowding"),
        "only": _two_values(DESCRIBE, "--only", "age>=20", "age>=50"),
        "images": (DESCRIBE, ("--images", "photos"), ("--images", "dark")),
        "bins": _two_values((*TABLE, "--by", "age"), "--bins", "age=edges:18", "age=edges:40"),
        "votes": _two_values((*TONES, "--separator", ";"), "--votes", "majority", "any"),
        "group": _two_values(DESCRIBE, "--group", "race:AB=A,B", "race:AC=A,C"),
        "rename": _two_values(TABLE, "--rename", "race=origin", "race=ethnicity"),
        "target": _two_values(DESCRIBE, "--target", "half.csv", "third.csv"),
        "embeddings": _two_values(DESCRIBE, "--embeddings", "vectors1.npy", "vectors2.npy"),
        "embedding_option": (
            (*DESCRIBE, "--embeddings", "vectors1.npy"),
            ("--embedding-option", "ids=ids.txt"), ("--embedding-option", "ids=reversed_ids.txt"),
        ),
        "captions": _two_values(DESCRIBE, "--captions", "captions1.csv", "captions2.csv"),
        "data_option": _two_values(DESCRIBE, "--data-option", "votes=top", "votes=any"),
        "id": _two_values(("table:people.csv", "--by", "race"), "--id", "id", "no_id"),
        "cluster": _two_values(
            ("table:other_people.csv", *DESCRIBE), "--cluster", "subject", "site"
        ),
        "separator": _two_values(TONES, "--separator", "|", ";"),
        "seed": _two_values((*DESCRIBE, "--embeddings", "vectors1.npy"), "--seed", "1", "2"),
    },
    "sample": {
        **_withdrawals(SAMPLE),
        "balance": _two_values(
            (*TABLE, "--per-cell", "5", *SAMPLE[-2:]), "--balance", "race", "sex"
        ),
        "per_cell": _two_values(
            (*TABLE, "--balance", "race", *SAMPLE[-2:]), "--per-cell", "5", "9"
        ),
        "seed": _two_values(SAMPLE, "--seed", "1", "2"),
        "only": _two_values(SAMPLE, "--only", "age>=20", "age>=50"),
        "bins": _two_values(
            (*TABLE, "--balance", "age", "--per-cell", "5", *SAMPLE[-2:]),
            "--bins", "age=edges:18", "age=edges:40",
        ),
        "votes": _two_values(
            (*TABLE, "--separator", ";", "--balance", "tone", "--per-cell", "5", *SAMPLE[-2:]),
            "--votes", "any", "at-least:2",
        ),
        "data_option": _two_values(SAMPLE, "--data-option", "votes=top", "votes=any"),
        "id": _two_values(("table:people.csv", *SAMPLE[3:]), "--id", "id", "no_id"),
        "cluster": _two_values(SAMPLE, "--cluster", "subject", "site"),
        "separator": _two_values(
            (*TABLE, "--balance", "tone", "--per-cell", "5", *SAMPLE[-2:]), "--separator", "|", ";"
        ),
    },
    "check": {
        **_withdrawals(CHECK),
        "only": _two_values(CHECK, "--only", "paths", "ids"),
        "skip": _two_values(CHECK, "--skip", "paths", "ids"),
        "images": _two_values(CHECK, "--images", "photos", "dark"),
        "no_images": (CHECK, NONE, ("--no-images",)),
        "check_option": _two_values(
            (*CHECK, "--images", "photos"),
            "--check-option", "duplicates.max_distance=0", "duplicates.max_distance=9",
        ),
        "data_option": _two_values(CHECK, "--data-option", "votes=top", "votes=any"),
        "id": _two_values(("table:people.csv",), "--id", "id", "no_id"),
        "separator": _two_values(CHECK, "--separator", "|", ";"),
        "strict": ((*CHECK, "--images", "photos"), NONE, ("--strict",)),
    },
    "export": {
        **_withdrawals(EXPORT),
        "to": _two_values(EXPORT, "--to", "fiftyone", "parquet"),
        "images": _two_values(EXPORT, "--images", "photos", "dark"),
        "masks": ((*BOXES, *EXPORT[1:]), ("--masks",), ("--no-masks",)),
        "publish_min": _two_values(EXPORT, "--publish-min", "3", "60"),
        "data_option": _two_values(
            ("table:people.csv", *EXPORT[1:]), "--data-option", "id=id", "id=name"
        ),
        "format": _two_values(CONVERT, "--format", "csv", "unheard"),
        "model_name": _two_values(("one.csv", *CONVERT[1:]), "--model-name", "a", "b"),
        "prediction_option": _two_values(CONVERT, "--prediction-option", "kind=a", "kind=b"),
    },
    "explain": {
        "analysis": _two_values(("first", *EXPLAIN[3:]), "--analysis", "power", "group_gaps"),
        "analysis_option": _two_values(
            EXPLAIN, "--analysis-option", "power.power=0.9", "power.power=0.7"
        ),
        "role": _two_values(
            ("first", "--analysis", "confounders", *EXPLAIN[3:]),
            "--role", "sex=mediator", "sex=before",
        ),
    },
    "compare": {
        **_withdrawals(COMPARE),
        "id_from": _two_values(COMPARE, "--id-from", "column", "stem"),
        "allow_disagreement": _two_values(
            ("first", "relabelled", *COMPARE[2:]), "--allow-disagreement", "0", "0.5"
        ),
        "relative": (COMPARE, NONE, ("--relative",)),
        "models": _two_values(COMPARE, "--models", "models1.csv", "models2.csv"),
        "datasets": (("a=first", "b=others"), NONE, ("--datasets",)),
        "average": _two_values(
            ("a=first", "b=others", "--datasets", "--out", "out/tables"), "--average", "a", "b"
        ),
    },
    "gate": {
        "policy": _two_values(("first",), "--policy", "policy1.yaml", "policy2.yaml"),
        "baseline": _two_values(
            ("second", "--policy", "policy2.yaml"), "--baseline", "first", "others"
        ),
        "init": (("first",), NONE, ("--init",)),
    },
    "monitor": {
        "metric": _two_values(MONITOR, "--metric", "accuracy", "failure_rate"),
        "timestamp": (
            MONITOR, ("--timestamp", "2026-01-01,2026-01-02"),
            ("--timestamp", "2026-02-01,2026-02-02"),
        ),
        "level": _two_values(MONITOR, "--level", "0.9", "0.99"),
        "repeated_people": _two_values(
            ("first", "second"), "--repeated-people", "first", "different"
        ),
        "max_weight": _two_values(("weighted", "weighted2"), "--max-weight", "5", "9"),
        "seed": _two_values(MONITOR, "--seed", "1", "2"),
    },
    "report": {
        "publish_min": _two_values(REPORT, "--publish-min", "3", "60"),
        "gallery": _two_values(GALLERY[:3] + GALLERY[5:], "--gallery", "1", "3"),
        "images": _two_values(GALLERY[:5] + GALLERY[7:], "--images", "photos", "dark"),
        "confirm_image_rights": (GALLERY[:-1], NONE, ("--confirm-image-rights",)),
    },
    "card": {
        "kind": _two_values(("first",), "--kind", "model_card", "bias_profile"),
        "facts": _two_values(CARD, "--facts", "facts1.yaml", "facts2.yaml"),
        "publish_min": _two_values(CARD, "--publish-min", "3", "60"),
        "init": (CARD, NONE, ("--init",)),
    },
    "crop": {
        "withdrawn": (CROP, ("--withdrawn", "1.txt"), ("--withdrawn", "2.txt")),
        "allow_unmatched": (
            (*CROP, "--withdrawn", "unmatched_boxes.txt"), NONE, ("--allow-unmatched",),
        ),
        "recipe": _two_values(CROP[:-2], "--recipe", "box", "whole"),
        "boxes": _two_values(CROP, "--boxes", "both.csv", "one.csv"),
        "box": _two_values(CROP, "--box", "face", "person"),
        "factor": _two_values(CROP, "--factor", "1.5", "2"),
        "size": _two_values(CROP, "--size", "32", "64"),
        "padding": _two_values((*CROP[:-1], "fairface"), "--padding", "0.25", "1.25"),
        "square_position": _two_values((*CROP[:-1], "miap"), "--square-position", "left", "centre"),
        "images": _two_values((*BOXES, *CROP[3:]), "--images", "photos", "dark"),
        "only": _two_values(CROP, "--only", "race=A", "race=B"),
        "data_option": _two_values(CROP, "--data-option", "votes=top", "votes=any"),
    },
    "view": {
        **_withdrawals(VIEW),
        "metric": _two_values(VIEW, "--metric", "accuracy", "selection_rate"),
        "people": (VIEW, NONE, ("--people",)),
        "images": _two_values(VIEW, "--images", "photos", "dark"),
        "confirm_image_rights": (VIEW, NONE, ("--confirm-image-rights",)),
        "show_faces": (VIEW, NONE, ("--show-faces",)),
        "port": _two_values(VIEW, "--port", "8770", "8771"),
        "publish_min": _two_values(VIEW, "--publish-min", "3", "60"),
    },
}  # fmt: skip
"""By command and flag: arguments with which it has an effect, and two ways to give it."""

EXEMPT = {
    ("sample", "purpose"): "changes nothing where the licence allows it",
    ("explain", "notes"): "prints the notes beyond the first, and this run has none",
}

OUTPUTS = {"json", "out", "overwrite", "bundle", "json_file", "junit", "markdown"}
"""Flags that say where and how the result is written: tested with each command."""


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("command_flags")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        _write_files()
        yield path


def _write_people() -> pl.DataFrame:
    rng, n = np.random.default_rng(0), 160
    race = rng.choice(["A", "B", "C"], n, p=[0.45, 0.35, 0.2])
    truth = rng.choice(["yes", "no"], n)
    other = np.where(truth == "yes", "no", "yes")
    people = pl.DataFrame(
        {"id": [f"p{i}" for i in range(n)], "name": [f"photos/p{i}.png" for i in range(n)],
         "path": [f"p{i}.png" for i in range(n)],
         "subject": [f"s{i // 2}" for i in range(n)], "site": [f"z{i // 8}" for i in range(n)],
         "race": race, "sex": rng.choice(["f", "m"], n), "age": rng.integers(5, 80, n),
         "tone": rng.choice(["1;2;2", "1", "2|3", "3", "1;2", "3;3"], n), "truth": truth,
         "answer": np.where(rng.random(n) < np.where(race == "A", 0.5, 0.95), truth, other),
         "answer2": np.where(rng.random(n) < 0.6, truth, "no"),
         "weight": rng.uniform(1, 3, n).round(2)}
    )  # fmt: skip
    people.write_csv("people.csv")
    people.with_columns(id="other" + pl.col("id"), subject="other" + pl.col("subject")).write_csv(
        "other_people.csv"
    )
    relabelled = pl.when(pl.col("id").is_in(["p1", "p2"])).then(pl.lit("D")).otherwise("race")
    people.with_columns(race=relabelled).write_csv("relabelled.csv")
    return people


def _write_files() -> None:
    people = _write_people()
    ids = people["id"]
    answers = [
        people.select("id", model=pl.lit(model), label=column)
        for model, column in (("m1", "answer"), ("m2", "answer2"))
    ]
    pl.concat(answers).write_csv("both.csv")
    answers[0].drop("model").write_csv("one.csv")
    for k in (10, 20):
        ids.head(k).to_frame().write_csv(f"{k}.txt", include_header=False)
    Path("unmatched.txt").write_text("p0\nnobody\n")
    for name, share in (("half", 0.5), ("third", 0.3)):
        target = {"attribute": ["race"] * 2, "value": ["A", "B"], "share": [share, 1 - share]}
        pl.DataFrame(target).write_csv(f"{name}.csv")
    rng = np.random.default_rng(1)
    for k in (1, 2):
        np.save(f"vectors{k}.npy", rng.normal(size=(ids.len(), 4)))
        facts = f"developer: Company {k}\n"
        Path(f"facts{k}.yaml").write_text(facts)
        pl.DataFrame({"model": ["first"], "paradigm": [f"kind {k}"]}).write_csv(f"models{k}.csv")
        place = ("Nairobi", "Oslo")[k - 1]
        people.select("id", caption=pl.lit(f"a person in {place}")).write_csv(f"captions{k}.csv")
    Path("ids.txt").write_text("\n".join(ids))
    Path("reversed_ids.txt").write_text("\n".join(ids.reverse()))
    for folder, level in (("photos", 200), ("dark", 40)):
        Path(folder).mkdir()
        for name in people["path"]:
            Image.fromarray(rng.integers(0, level, (24, 24, 3), dtype=np.uint8)).save(
                Path(folder) / name
            )
        for k in range(4):
            pixels = rng.integers(0, level, (200, 300, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(Path(folder) / f"box{k}.png")
    _write_boxes()
    _write_runs()


def _write_boxes() -> None:
    """Write four people with a wide box, a mask and the points of their eyes and mouth."""
    points = {"right eye": (88, 80), "left eye": (112, 80), "mouth right": (92, 104),
              "mouth left": (108, 104), "right eye inner": (94, 80), "right eye outer": (82, 80),
              "left eye inner": (106, 80), "left eye outer": (118, 80)}  # fmt: skip
    keypoints = [number for x, y in points.values() for number in (x, y, 2)]
    annotations = [
        {"id": k + 1, "image_id": k, "category_id": 1, "bbox": [20, 30, 200 + 10 * k, 120],
         "area": 9000, "iscrowd": 0, "segmentation": [[20, 30, 200, 30, 200, 140, 20, 140]],
         "keypoints": keypoints, "num_keypoints": 8, "attributes": {"race": "AABB"[k]}}
        for k in range(4)
    ]  # fmt: skip
    images = [{"id": k, "file_name": f"box{k}.png", "width": 300, "height": 200} for k in range(4)]
    category = {"id": 1, "name": "person", "keypoints": list(points)}
    content = {"images": images, "categories": [category], "annotations": annotations}
    Path("boxes.json").write_text(json.dumps(content))
    for k in (1, 2):
        Path(f"{k}.txt").write_text("1\n2\n"[: 2 * k])
    Path("unmatched_boxes.txt").write_text("1\nnobody\n")


def _write_runs() -> None:
    settings = {"id": "id", "by": ("race", "sex"), "target": "truth", "replicates": 100,
                "cluster": "subject"}  # fmt: skip
    runs = {
        "first": ("people.csv", "answer", {}),
        "second": ("people.csv", "answer2", {}),
        "others": ("other_people.csv", "answer2", {}),
        "later": ("other_people.csv", "answer", {}),
        "relabelled": ("relabelled.csv", "answer2", {}),
        "weighted": ("people.csv", "answer", {"weight": "weight", "cluster": "id"}),
        "weighted2": ("other_people.csv", "answer", {"weight": "weight", "cluster": "id"}),
    }
    for name, (table, column, more) in runs.items():
        spec = {**settings, **more, "data": f"table:{table}", "prediction_column": column}
        save_run(run_audit(parse_spec(spec)).run, name)
    for k, limit in ((1, 50), (2, 1)):
        Path(f"policy{k}.yaml").write_text(
            "policy: 1\nrules:\n"
            f"- {{metric: accuracy, attribute: race, max_difference: {limit} points}}\n"
            "- {metric: accuracy, attribute: race, max_drop: 1 points}\n"
        )


def _read_outcome(monkeypatch, capsys, arguments: Args) -> tuple[bool, str]:
    """Run a command; return whether it refused, and all that it printed and wrote."""
    shutil.rmtree("out", ignore_errors=True)
    Path("out").mkdir()
    ran = isolux(monkeypatch, capsys, *arguments)
    files = sorted(path for path in Path("out").rglob("*") if path.is_file())
    texts = [f"{path}\n{path.read_bytes()!r}" for path in files]
    text = "\n".join([str(ran.code), ran.out, ran.plain, *texts])
    return ran.code == 2, re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+", "", text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command in CASES for name in CASES[command]]
)
def test_two_ways_differ_or_are_refused_by_name(command, name, monkeypatch, capsys) -> None:
    base, *ways = CASES[command][name]
    outcomes = []
    for way in ways:
        is_refused, text = _read_outcome(monkeypatch, capsys, (command, *base, *way))
        if is_refused and way:
            plain = text.replace("\n", " ")
            words = (format_cli_flag(name), format_cli_flag(name)[2:], *way[1:])
            assert any(word in plain for word in words), f"not named: {text}"
        outcomes.append((is_refused, text))
    assert all(refused for refused, _ in outcomes) or outcomes[0] != outcomes[1], (
        f"{command} accepts {format_cli_flag(name)} and does nothing with it"
    )


@pytest.mark.parametrize("command", CASES)
def test_every_flag_of_a_command_has_a_case(command) -> None:
    program = build_cli_program([command], shows_all=True)
    options = [p for p in program.commands[command].params if p.param_type_name == "option"]
    exempt = OUTPUTS | {name for owner, name in EXEMPT if owner == command}
    assert {option.name for option in options} - exempt == set(CASES[command])
