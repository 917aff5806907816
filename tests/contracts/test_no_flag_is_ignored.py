"""No setting of an audit is accepted and unused, over all that are declared.

Set to two values, each changes what an audit gives, or is refused by its name. One that needs
another (``needs``), or is about other predictions (``kinds``), is refused without.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from isolux.api.audit import run_audit
from isolux.api.audit.unused_settings import refuse_unused_settings
from isolux.cli._flags import NEEDED_FLAGS
from isolux.cli.app import build_cli_program
from isolux.core.errors import IsoluxError, SpecError
from isolux.core.plugin_options import format_cli_flag
from isolux.core.spec import (
    SETTING_BY_FLAT_NAME,
    STAGES,
    People,
    format_setting_as_typed,
    parse_spec,
)
from isolux.people.loading import load_people
from tests.cli._run import isolux

ANSWERS = {
    "data": "table:people.csv", "id": "id", "by": ("race",), "target": "truth",
    "prediction_column": "answer", "replicates": 100,
}  # fmt: skip
SCORES = {**ANSWERS, "score_column": "score", "positive": "yes"}
FILE = {k: v for k, v in ANSWERS.items() if k != "prediction_column"} | {"predictions": "both.csv"}
COUNTS = {"data": "counts:counts.csv", "task": "counts", "by": ("race",), "replicates": 100}
PAIRS = {
    "data": "pairs:pairs.csv", "task": "face_verification", "by": ("race",), "replicates": 100,
    "threshold": 0.5,
}  # fmt: skip
TONES = {**ANSWERS, "by": ("tone",), "separator": "|"}

CASES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "id": (ANSWERS, "id", "name"),
    "separator": ({**ANSWERS, "by": ("tone",)}, "|", ";"),
    "sheet": (ANSWERS, "a", "b"),
    "header_row": (ANSWERS, 1, 2),
    "cluster": (ANSWERS, "subject", "site"),
    "only": (ANSWERS, ("age>=20",), ("age>=50",)),
    "attributes": (ANSWERS | {"by": ("height",)}, "height1.csv", "height2.csv"),
    "attributes_id": (ANSWERS | {"attributes": "height1.csv", "by": ("height",)}, "id", "no_id"),
    "attributes_sheet": (ANSWERS | {"attributes": "height1.csv"}, "a", "b"),
    "attributes_id_from": (
        ANSWERS | {"attributes": "stems.csv", "id": "name", "by": ("height",)}, "column", "stem",
    ),
    "withdrawn": (ANSWERS, "10.txt", "20.txt"),
    "allow_unmatched": (ANSWERS | {"withdrawn": "unmatched.txt"}, None, True),
    "derive": (ANSWERS, ("size",), ("crowding",)),
    "data_option": (ANSWERS, ("votes=top",), ("votes=any",)),
    "repair_ages": (ANSWERS | {"data": "table:ages.csv", "by": ("ages",)}, None, True),
    "weight": (ANSWERS, "weight", "age"),
    "strata": (ANSWERS, "stratum", "site"),
    "population": (ANSWERS, ("half.csv",), ("third.csv",)),
    "population_size": (ANSWERS, "200", "2000"),
    "model": (FILE, "onnx:a.onnx", "onnx:b.onnx"),
    "predictions": (FILE | {"model_name": "m1"}, "both.csv", "reversed.csv"),
    "format": (FILE | {"model_name": "m1"}, "csv", "unheard"),
    "prediction_sheet": (FILE, "a", "b"),
    "prediction_column": (ANSWERS, "answer", "answer2"),
    "question_column": (FILE, "name", "id"),
    "score_column": (SCORES, "score", "score2"),
    "score_scale": (SCORES, 1.5, 2.0),
    "detected_column": (ANSWERS, "detected", "detected2"),
    "scores": (ANSWERS | {"positive": "yes"}, "scores1.csv", "scores2.csv"),
    "found": ({**FILE, "predictions": None}, "10.txt", "20.txt"),
    "missed": ({**FILE, "predictions": None}, "10.txt", "20.txt"),
    "prediction_id": (FILE | {"model_name": "m1"}, "id", "no_id"),
    "id_from": (FILE | {"id": "name", "model_name": "m1"}, "column", "stem"),
    "model_column": (COUNTS, "detector", "no_column"),
    "model_name": (FILE, "m1", "m2"),
    "prediction_option": (FILE, ("kind=masks",), ("kind=boxes",)),
    "task": (ANSWERS, "detection", "number"),
    "by": (ANSWERS, ("race",), ("sex",)),
    "unknown": (ANSWERS, "keep", "drop"),
    "unknown_values": (ANSWERS, ("hidden",), ("A",)),
    "group": (ANSWERS, ("race:AB=A,B",), ("race:AC=A,C",)),
    "ungrouped_values": (ANSWERS | {"group": ("race:AB=A,B",)}, "keep", "drop"),
    "unmatched_values": (ANSWERS | {"group": ("race:AZ=A,Z",)}, "ignore", "refuse"),
    "bins": (ANSWERS | {"by": ("age",)}, ("age=edges:18,30",), ("age=edges:40,60",)),
    "votes": (TONES, "majority", "any"),
    "nested": (ANSWERS, ("race:A=B,C",), ("race:B=A,C",)),
    "interval": (ANSWERS, "score", "bca"),
    "level": (ANSWERS, 0.9, 0.99),
    "replicates": (ANSWERS, 100, 300),
    "weights": (ANSWERS, "poisson", "multinomial"),
    "seed": (ANSWERS, 1, 2),
    "min_units": (ANSWERS, 1, 70),
    "min_clusters": (ANSWERS, 1, 100),
    "reference": (ANSWERS, ("race=A",), ("race=B",)),
    "correction": (ANSWERS, "holm", "none"),
    "ddof": (ANSWERS, 0, 1),
    "log_base": (ANSWERS, 2.0, 10.0),
    "margin": (ANSWERS, 5.0, 20.0),
    "explain": (ANSWERS, ("power",), ("group_gaps",)),
    "role": (ANSWERS, ("sex=mediator",), ("sex=before",)),
    "analysis_option": (
        ANSWERS | {"explain": ("power",)}, ("power.power=0.9",), ("power.power=0.7",),
    ),
    "injected": (ANSWERS, "planted1.json", "planted2.json"),
    "keep_pairs": (PAIRS, True, False),
    "describe_as": (ANSWERS, ("race=those of {value}",), ("race=folk of {value}",)),
}  # fmt: skip
"""By setting: an audit in which it has an effect, and two values."""

_PLACE = "where and how fast the work is done, or what is read later: no number depends on it"
NO_NUMBER = dict.fromkeys(
    (
        *STAGES["engine"].model_fields.keys() - {"name"}, "engine", "model_option", "answers",
        "input_unit", "box_factor", "crops", "batch", "readers", "reader_processes", "shard_size",
        "time_limit", "max_failures", "images", "paths", "out", "overwrite", "data",
    ),
    _PLACE,
)  # fmt: skip
"""Settings of a model's run and of shards (tested there); without one they are refused."""


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("flags")
    _write_files(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        yield path


def _write_files(path: Path) -> None:
    rng, n = np.random.default_rng(0), 160
    race = rng.choice(["A", "B", "C", "unknown", "hidden"], n, p=[0.35, 0.35, 0.2, 0.05, 0.05])
    truth = rng.choice(["yes", "no"], n)
    other = np.where(truth == "yes", "no", "yes")
    answer = np.where(rng.random(n) < np.where(race == "A", 0.5, 0.95), truth, other)
    score = np.where(answer == "yes", rng.uniform(0.5, 1, n), rng.uniform(0, 0.5, n)).round(3)
    people = pl.DataFrame(
        {"id": [f"p{i}" for i in range(n)], "name": [f"p{i}.png" for i in range(n)],
         "subject": [f"s{i // 2}" for i in range(n)], "site": [f"z{i // 8}" for i in range(n)],
         "race": race, "sex": rng.choice(["f", "m"], n), "age": rng.integers(5, 80, n),
         "tone": rng.choice(["1|2|2", "1", "2;3", "3"], n), "truth": truth, "answer": answer,
         "answer2": np.where(rng.random(n) < 0.6, truth, "no"), "score": score,
         "score2": np.where(answer == "yes", 0.5 + score / 2, score / 2).round(3),
         "detected": rng.choice([1, 0], n, p=[0.9, 0.1]),
         "detected2": rng.choice([1, 0], n, p=[0.7, 0.3]),
         "weight": rng.uniform(1, 3, n).round(2), "stratum": [f"t{i // 80}" for i in range(n)]}
    )  # fmt: skip
    people.write_csv(path / "people.csv")
    ages = pl.Series("ages", rng.choice(["9-Mar", "19-Oct", "20-29"], n))
    people.with_columns(ages).write_csv(path / "ages.csv")
    answers = [
        people.select("id", model=pl.lit(model), label=column)
        for model, column in (("m1", "answer"), ("m2", "answer2"))
    ]
    pl.concat(answers).write_csv(path / "both.csv")
    pl.concat([answers[0].with_columns(label="label"), answers[1]]).with_columns(
        model=pl.when(pl.col("model") == "m1").then(pl.lit("m2")).otherwise(pl.lit("m1"))
    ).write_csv(path / "reversed.csv")
    for k in (1, 2):
        height = pl.Series("height", rng.choice(["tall", "short"], n))
        people.select("id", height).write_csv(path / f"height{k}.csv")
        people.select("id", score=pl.col("score") / k).write_csv(path / f"scores{k}.csv")
        people["id"].head(10 * k).to_frame().write_csv(path / f"{10 * k}.txt", include_header=False)
        planted = [{"attribute": "race", "group": "A", "value": k}]
        (path / f"planted{k}.json").write_text(json.dumps(planted))
    people.select(name="id", height=pl.lit("tall")).write_csv(path / "stems.csv")
    (path / "unmatched.txt").write_text("p0\nnobody\n")
    for name, shares in (("half", [0.5, 0.5]), ("third", [0.3, 0.7])):
        pl.DataFrame({"sex": ["f", "m"], "share": shares}).write_csv(path / f"{name}.csv")
    counts = [(d, r, 40 + 9 * i, 100 + i) for i, d in enumerate("xy") for r in "AB"]
    columns = ["detector", "race", "successes", "n"]
    pl.DataFrame(counts, schema=columns, orient="row").write_csv(path / "counts.csv")
    genuine = rng.random(n) < 0.5
    pl.DataFrame(
        {"first": people["id"], "second": people["name"], "genuine": genuine.astype(int),
         "score": np.where(genuine, 0.6, 0.4) + rng.uniform(-0.3, 0.3, n), "race": race}
    ).write_csv(path / "pairs.csv")  # fmt: skip


def _audit(base: dict[str, Any], name: str, value: object) -> str:
    """Return all that an audit gives but the echo of its settings; or its refusal."""
    settings = {k: v for k, v in base.items() if v is not None}
    if value is not None:
        settings[name] = value
    try:
        run = run_audit(parse_spec(settings)).run
    except IsoluxError as refusal:
        return f"refused: {refusal}"
    echoes = ("spec", "created", "versions", "isolux")
    record = {key: value for key, value in run.record.items() if key not in echoes}
    tables = (run.group_metrics, run.disparities, run.findings, run.scores, run.attributes)
    evidence = [run.evidence[key] for key in sorted(run.evidence)]
    return json.dumps(record, default=str) + "".join(t.write_json() for t in (*tables, *evidence))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SETTING_BY_FLAT_NAME)
def test_two_values_differ_or_are_refused(name) -> None:
    if name in NO_NUMBER:
        return
    base, first, second = CASES[name]
    outcomes = []
    for value in (first, second):
        outcome = _audit(base, name, value)
        values = value if isinstance(value, tuple) else (value,)
        if outcome.startswith("refused"):
            texts = (v for v in values if isinstance(v, str))
            words = (name, format_setting_as_typed(name), *texts)
            assert any(word in outcome for word in words), f"{name} is not named: {outcome}"
        outcomes.append(outcome)
    is_refused = [outcome.startswith("refused") for outcome in outcomes]
    assert all(is_refused) or outcomes[0] != outcomes[1], f"{name} is accepted and does nothing"


def _declared(key: str) -> list[str]:
    return [
        name
        for name, (stage, field) in SETTING_BY_FLAT_NAME.items()
        if (STAGES[stage].model_fields[field].json_schema_extra or {}).get(key)
    ]


def _set_alone(base: dict[str, Any], name: str) -> None:
    examples = {"engine": "ray", "input_unit": "person", "id_from": "stem", "keep_pairs": False,
                "attributes_id_from": "stem", "ungrouped_values": "drop",
                "allow_unmatched": True, "gpus": 0.5, "box_factor": 2.0, "time_limit": 5.0,
                "max_failures": 0.5, "score_scale": 2.0, "correction": "holm", "ddof": 0,
                "log_base": 2.0, "margin": 5.0}  # fmt: skip
    stage, field = SETTING_BY_FLAT_NAME[name]
    is_number = "int" in str(STAGES[stage].model_fields[field].annotation)
    value = examples.get(name, 7 if is_number else "x")
    settings = {k: v for k, v in base.items() if v is not None} | {name: value}
    refuse_unused_settings(parse_spec(settings))


@pytest.mark.parametrize("name", _declared("needs"))
def test_a_setting_without_what_it_needs_is_refused_by_name(name) -> None:
    base = COUNTS if name == "images" else ANSWERS | {"prediction_column": None, "found": "10.txt"}
    if name in ("prediction_id", "id_from"):
        base = ANSWERS
    if SETTING_BY_FLAT_NAME[name][0] == "disparity":
        base = ANSWERS | {"by": None}
    with pytest.raises(SpecError) as refusal:
        _set_alone(base, name)
    assert format_setting_as_typed(name) in str(refusal.value)


def test_a_base_of_log_ratios_is_refused_where_every_metric_may_be_negative() -> None:
    number = {"data": "table:people.csv", "by": "race", "task": "number", "score_column": "age"}
    for settings in (number, {**number, "metric": "spearman", "along": "score"}):
        with pytest.raises(SpecError, match=r"log_base would do nothing(.|\n)*cannot be negative"):
            _set_alone(settings, "log_base")
    ages = {"data": "table:people.csv", "by": "race", "task": "age_estimation", "target": "age"}
    _set_alone(ages | {"prediction_column": "age"}, "log_base")  # its mean absolute error has them


@pytest.mark.parametrize("name", _declared("prediction_kinds"))
def test_a_setting_about_other_predictions_is_refused_by_name(name) -> None:
    base = {**PAIRS, "task": "detection", "data": "coco:gt.json", "predictions": "dt.json"}
    with pytest.raises(SpecError) as refusal:
        _set_alone({k: v for k, v in base.items() if k != "threshold"}, name)
    assert format_setting_as_typed(name) in str(refusal.value)
    assert "what pictures hold" in str(refusal.value)


# Commands beside the audit: flags are those that each command itself lists.

MINIMAL = {
    "crop": ("table:people.csv", "--recipe", "clip", "--out", "out"),
    "compare": ("first", "second"),
    "export": ("table:people.csv", "--out", "out"),
    "describe": ("table:people.csv",),
    "sample": ("table:people.csv", "--balance", "race", "--per-cell", "5", "--out", "out"),
    "check": ("table:people.csv",),
    "view": ("first",),
}


@pytest.mark.parametrize("command", MINIMAL)
@pytest.mark.parametrize(("flag", "needed"), NEEDED_FLAGS.items())
def test_a_flag_of_a_command_is_refused_without_what_it_needs(
    command, flag, needed, monkeypatch, capsys
) -> None:
    program = build_cli_program([command], shows_all=True)
    parameters = {p.name: p for p in program.commands[command].params}
    if flag not in parameters:
        return
    values = [] if parameters[flag].is_flag else ["a=b"]
    ran = isolux(monkeypatch, capsys, command, *MINIMAL[command], format_cli_flag(flag), *values)
    assert ran.code == 2
    assert f"{format_cli_flag(flag)} would do nothing" in ran.plain
    assert format_cli_flag(needed) in ran.plain


def test_people_are_not_loaded_with_a_setting_that_does_nothing() -> None:
    with pytest.raises(SpecError, match="allow-unmatched would do nothing"):
        load_people(People(data="table:people.csv", allow_unmatched=True))


def test_pictures_that_are_named_and_not_opened_are_refused(monkeypatch, capsys) -> None:
    ran = isolux(monkeypatch, capsys, "check", "table:people.csv", "--images", ".", "--no-images")
    assert ran.code == 2
    assert "--images or --no-images" in ran.plain
