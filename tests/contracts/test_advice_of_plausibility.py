"""Each flag that a check advises is set: the warning goes, and the score is better."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isolux.plausibility import AuditInputs, geometry_transforms
from tests.cli._run import isolux as run_cli
from tests.plausibility._shapes import detect, draw_scene

N = 300
RNG = np.random.default_rng(4)
RACE = RNG.choice(["A", "B"], N)
TRUTH = RNG.choice(["cat", "dog", "fox"], N)
ANSWER = np.where(RNG.random(N) < 0.85, TRUTH, RNG.choice(["cat", "dog", "fox"], N))
AGE = RNG.integers(20, 80, N)
GUESS = (AGE + RNG.normal(0, 4, N)).round(1)
CLASSIFY = ("--target", "truth", "--prediction-column", "answer", "--metric", "accuracy")
TURNED = {"cat": "dog", "dog": "fox", "fox": "cat"}
CASES = {
    "permuted classes": (
        {"truth": TRUTH, "answer": [TURNED[a] for a in ANSWER]}, CLASSIFY, "--prediction-map", 1,
    ),
    "renamed in a group": (
        {"truth": np.where((TRUTH == "cat") & (RACE == "B"), "feline", TRUTH), "answer": ANSWER},
        CLASSIFY, "--label-map", 1,
    ),
    "a true class that is a code": (
        {"truth": np.where(np.arange(N) % 4 == 0, "-1", TRUTH), "answer": ANSWER},
        CLASSIFY, "--option unknown_values", 1,
    ),
    "a true number that is a code": (
        {"age": np.where(np.arange(N) % 10 == 0, 999, AGE), "guess": GUESS},
        ("--task", "regression", "--target", "age", "--prediction-column", "guess",
         "--metric", "mean_absolute_error"),
        "--option unknown_values", -1,
    ),
}  # fmt: skip
"""By damage: the columns, the flags of the audit, the flag advised, the way the score moves."""


def _audit(monkeypatch, capsys, *flags: str) -> tuple[list[str], float]:
    call = ("audit", "table:people.csv", "--id", "id", "--by", "race", "--replicates", 100,
            "--overwrite", "--out", "run")  # fmt: skip
    ran = run_cli(monkeypatch, capsys, *call, *flags)
    assert ran.code == 0, ran.err
    metrics = pl.read_parquet("run/group_metrics.parquet").filter(group="overall")
    warnings = json.loads(Path("run/audit.json").read_text())["warnings"]
    return warnings, metrics["value"][0]


@pytest.mark.parametrize("name", CASES)
def test_the_flag_that_is_advised_mends_it(name, tmp_path, monkeypatch, capsys) -> None:
    columns, flags, advised, direction = CASES[name]
    monkeypatch.chdir(tmp_path)
    people = {"id": [f"p{i}" for i in range(N)], "race": RACE, **columns}
    pl.DataFrame(people).write_csv("people.csv")
    warnings, before = _audit(monkeypatch, capsys, *flags)
    (warning,) = (w for w in warnings if advised in w)
    flag = re.search(rf"({advised}.*?)(?: makes | leaves it out)", warning)[1]
    warnings, after = _audit(monkeypatch, capsys, *flags, *shlex.split(flag))
    assert direction * (after - before) > 0.05
    assert not any(advised in w for w in warnings)


def _mean_score(inputs: AuditInputs) -> float:
    return inputs.scores.units["value"].mean()


def test_the_person_label_that_is_advised_finds_people() -> None:
    scene = draw_scene()
    labels = ["person" if about is None else "human" for about in scene.person]
    inputs = detect(scene.people, scene.predicted, scene.races, labels=labels,
                    classes=["person"] * len(scene.people), person_label="person")  # fmt: skip
    (caution,) = geometry_transforms.check(inputs)
    label = re.search(r"--person-label (\w+) takes", caution)[1]
    options = {"person_label": label}
    mended = replace(
        inputs, scores=inputs.rescore(**options), options=options, task_options=options
    )
    assert _mean_score(mended) > _mean_score(inputs) + 0.3
    assert geometry_transforms.check(mended) == []


def test_the_person_class_that_is_advised_leaves_other_objects_out() -> None:
    scene = draw_scene()
    classes = ["person" if k % 2 else "car" for k in range(len(scene.people))]
    is_person = [about is not None and classes[about] == "person" for about in scene.person]
    predicted = [box for box, ok in zip(scene.predicted, is_person, strict=True) if ok]
    inputs = detect(scene.people, predicted, scene.races, classes=classes,
                    labels=["person"] * len(predicted), person_label="person")  # fmt: skip
    (caution,) = geometry_transforms.check(inputs)
    name = re.search(r"--person-class (\w+) judges", caution)[1]
    options = {"person_label": "person", "person_class": name}
    mended = replace(
        inputs, scores=inputs.rescore(**options), options=options, task_options=options
    )
    assert _mean_score(mended) > _mean_score(inputs) + 0.2
    assert geometry_transforms.check(mended) == []
