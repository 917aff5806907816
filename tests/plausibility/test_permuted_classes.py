"""Classes in another order, names exchanged, and another vocabulary in one group."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import polars as pl
import pytest

from isolux.plausibility import AuditInputs, permuted_classes
from tests.cli._run import isolux
from tests.plausibility._inputs import classify

RNG = np.random.default_rng(7)
N = 300
RACE = RNG.choice(["A", "B"], N).tolist()
TRUTH = RNG.choice(["0", "1", "2", "10", "11"], N).tolist()
IS_RIGHT = RNG.random(N) < 0.85
# What a model says whose classes are numbered in the text order of folders: 0, 1, 10, 11, 2.
INDEX = {"0": "0", "1": "1", "10": "2", "11": "10", "2": "11"}


def answer(names: dict[str, str]) -> list[str]:
    others = RNG.choice(list(names.values()), N)
    return [names[t] if ok else o for t, ok, o in zip(TRUTH, IS_RIGHT, others, strict=True)]


def build_broken_inputs() -> AuditInputs:
    return classify(TRUTH, answer(INDEX), RACE)


def test_text_order_of_folders() -> None:
    (caution,) = permuted_classes.check(build_broken_inputs())
    assert "under other names: '10' for '11', '11' for '2', '2' for '10'." in caution
    assert "--prediction-map \"{'0': '0', '1': '1', '10': '11', '11': '2', '2': '10'}\"" in caution


def test_another_vocabulary_of_one_group_alone() -> None:
    """Truth "zero" for "0" among B: their model reads as the worse one."""
    truth = ["zero" if t == "0" and r == "B" else t for t, r in zip(TRUTH, RACE, strict=True)]
    (caution,) = permuted_classes.check(classify(truth, answer({t: t for t in INDEX}), RACE))
    assert caution.startswith(
        "Among the people of race 'B', the answers of 'm' fit the truth far better under other"
        " names: '0' for 'zero'."
    )
    assert '--label-map "0=zero" makes ' in caution


def test_no_flag_is_printed_where_the_scores_alone_are_known() -> None:
    inputs = build_broken_inputs()
    in_memory = AuditInputs(
        "classification", inputs.dataset, None, inputs.scores, inputs.membership
    )
    (caution,) = permuted_classes.check(in_memory)
    assert caution.endswith("Are classes permuted or renamed?")


@pytest.mark.parametrize(
    ("names", "by"),
    [(INDEX, "all"), ({"0": "1", "1": "0", "2": "2", "10": "10", "11": "11"}, "two")],
)
def test_the_flag_that_is_printed_mends_it(names, by, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    ids = [f"p{i}" for i in range(N)]
    table = pl.DataFrame({"id": ids, "race": RACE, "truth": TRUTH, "answer": answer(names)})
    table.write_csv("people.csv")
    call = (
        "audit", "table:people.csv", "--id", "id", "--target", "truth", "--by", "race",
        "--prediction-column", "answer", "--replicates", 100, "--overwrite", "--out", "run",
    )  # fmt: skip
    assert isolux(monkeypatch, capsys, *call).code == 0
    warnings = json.loads((tmp_path / "run/audit.json").read_text())["warnings"]
    flag = re.search(r"renamed\? (--.*) makes", warnings[0])[1]
    assert isolux(monkeypatch, capsys, *call, *shlex.split(flag)).code == 0
    metrics = pl.read_parquet("run/group_metrics.parquet")
    overall = metrics.filter(pl.col("group") == "overall", pl.col("metric") == "accuracy")
    assert overall["value"][0] > 0.8
    warnings = json.loads((tmp_path / "run/audit.json").read_text())["warnings"]
    assert not any("other names" in warning for warning in warnings)


@pytest.mark.parametrize("n_classes", [600, 3000])
def test_more_classes_than_an_assignment_takes(n_classes) -> None:
    """Ids that are one too high, ten people a class; and a sound model of as many classes."""
    rng = np.random.default_rng(2)
    truth = np.repeat(np.arange(n_classes), 10)
    right = np.where(rng.random(len(truth)) < 0.7, truth, rng.integers(0, n_classes, len(truth)))
    race = rng.choice(["A", "B"], len(truth)).tolist()
    shifted = ((right + 1) % n_classes).astype(str).tolist()
    (caution, *_) = permuted_classes.check(classify(truth.astype(str).tolist(), shifted, race))
    assert "fit the truth far better under other names" in caution
    n_named = caution.count("' for '") + int(
        re.search(r"and ([\d,]+) more", caution)[1].replace(",", "")
    )
    assert n_named > 0.9 * n_classes
    sound = classify(truth.astype(str).tolist(), right.astype(str).tolist(), race)
    assert permuted_classes.check(sound) == []


def test_pairs_that_do_not_occur_are_not_looked_at(monkeypatch) -> None:
    """Of many classes the table of all pairs, 36 million cells here, is never made."""
    from isolux.stats import label_assignment

    sizes = []
    bincount = np.bincount
    monkeypatch.setattr(
        label_assignment.np, "bincount", lambda *a: sizes.append(len(r := bincount(*a))) or r
    )
    truth = np.repeat(np.arange(6000), 4)
    codes = label_assignment.AnswerCodes(truth, (truth + 1) % 6000, 6000, np.arange(len(truth)))
    assert len(label_assignment.find_label_assignment(codes)) > 4500
    assert max(sizes) <= len(truth)
