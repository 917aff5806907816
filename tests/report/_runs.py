"""Finished runs without an audit: tables with plausible numbers, for the report's tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.spec import AuditSpec
from isolux.core.tables import (
    ATTRIBUTES,
    COMPARISONS,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    check,
)
from tests.report._rows import (
    Rates,
    Tables,
    add_attribute,
    add_everyone,
    gap_of,
    line,
)

__all__ = ["Tables", "add_attribute", "add_everyone", "line"]

RACES = {
    "White": (2085, 0.771),
    "Latino_Hispanic": (1623, 0.752),
    "Indian": (1516, 0.744),
    "East Asian": (1550, 0.716),
    "Black": (1556, 0.639),
    "Southeast Asian": (1415, 0.733),
    "Middle Eastern": (1209, 0.829),
}
AGES = {
    "20-29": (3300, 0.745),
    "more than 70": (118, 0.847),
    "0-2": (199, 0.583),
    "3-9": (1356, 0.611),
    "10-19": (1181, 0.700),
    "30-39": (2330, 0.781),
    "40-49": (1353, 0.802),
    "50-59": (796, 0.806),
    "60-69": (321, 0.788),
}
GENDERS = {"Female": (5162, 0.561), "Male": (5792, 0.898)}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}",
    "שלום עולם و مرحبا",
    "a name that goes on " * 12,
    "a name that goes on " * 11 + "and ends otherwise",
    "</script><svg onload=alert(1)>",
    "nul\x00 bell\x07 \x1b[31m",
    "javascript:alert(1)",
    "&lt;b&gt; & 'quoted' \"twice\"",
)


def crossed(
    one: Mapping[str, tuple[int, float]], other: Mapping[str, tuple[int, float]], centre: float
) -> dict[tuple[str, ...], tuple[int, float]]:
    """Cross two attributes, rates adding on the logit scale."""
    total = sum(n for n, _ in other.values())

    def logit(p: float) -> float:
        return math.log(p / (1 - p))

    def rate(p: float, q: float) -> float:
        return 1 / (1 + math.exp(-(logit(p) + logit(q) - logit(centre))))

    return {
        (a, b): (n * m // total, rate(p, q))
        for (a, (n, p)), (b, (m, q)) in itertools.product(one.items(), other.items())
    }


def single(rates: Mapping[str, tuple[int, float]], shift: float = 0.0) -> Rates:
    return {(name,): (n, min(max(p + shift, 0.0), 1.0)) for name, (n, p) in rates.items()}


def record(**changed: Any) -> dict[str, Any]:
    spec = AuditSpec(
        data="fairface:labels.csv",
        target="gender",
        predictions="preds.csv",
        by=("race", "age", "gender", "race*gender"),
        cluster="subject",
        min_units=50,
    )
    return {
        "isolux": "0.1.0",
        "created": "2026-11-21T08:30:00+00:00",
        "spec": spec.flat(),
        "dataset": {
            "name": "fairface",
            "title": "FairFace, validation",
            "licence": "CC BY 4.0",
            "label_source": "perceived",
            "citation": "Kärkkäinen and Joo (2021). FairFace. WACV.",
            "terms": [["gender", "perceived gender presentation"], ["race", "perceived race"]],
        },
        "model": "erm",
        "task": "classification",
        "inputs": {"labels.csv": "ab" * 32, "preds.csv": "cd" * 32},
        "versions": {"isolux": "0.1.0", "polars": "2.1.0", "numpy": "2.4.0"},
        "seed": 0,
        "notes": ["12 rows of predictions met no person and were left out."],
        "references": [
            {
                "key": "fairface",
                "citation": "Kärkkäinen and Joo (2021). FairFace. WACV.",
                "place": "equation 3",
                "url": "https://openaccess.thecvf.com/",
            },
            {"key": "evil", "citation": "nobody", "place": "", "url": "javascript:alert(1)"},
        ],
        "clusters": {"column": "subject", "n_clusters": 3651, "n_units": 10954},
        "families": {"all pairs, groups and metrics of this audit": 412},
        **changed,
    }


def finding(rank: int, claim: str, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "analysis": "group_gaps", "claim": claim, "status": "ok", **more}


def run_of(tables: Tables, of: Mapping[str, Any] | None = None) -> Run:
    """Make a Run of rows, each table checked."""

    def frame(rows: Sequence[Mapping[str, Any]], table: Any) -> pl.DataFrame:
        loose = pl.DataFrame(rows, infer_schema_length=None) if rows else table.empty()
        return check(table.conform(loose), table)

    return Run(
        record=dict(record() if of is None else of),
        scores=SCORES.empty(),
        attributes=ATTRIBUTES.empty(),
        group_metrics=frame(tables.metrics, GROUP_METRICS),
        disparities=frame(tables.disparities, DISPARITIES),
        findings=frame(tables.findings, FINDINGS),
    )


CLAIMS = (
    "Accuracy for Black × Female is 42.8 points lower (95 % interval 38.7 to 46.9) than for men.",
    "Recall of Female for Black is 30.1 points lower (95 % interval 25.9 to 34.3) than for White.",
    "Accuracy for Black is 10.1 points lower (95 % interval 7.8 to 12.4) than for everyone.",
)


def full_run(**changed: Any) -> Run:
    """Race (7), age (9, ordered), gender (2) and race × gender (14, some too small)."""
    tables = Tables()
    lines = ((line("accuracy"), 0.0), (line("balanced_accuracy"), -0.01))
    lines += ((line("recall", "Female"), -0.16), (line("recall", "Male"), 0.06))
    by_both = crossed(RACES, GENDERS, 0.74)
    by_both["Black", "Female"] = (757, 0.4188)
    by_both["Middle Eastern", "Female"] = (31, 0.81)
    by_both["Indian", "Male"] = (70, 0.93)
    for of, shift in lines:
        everyone = 0.7393 + shift
        add_everyone(tables, of, 10954, everyone)
        add_attribute(tables, of, "race", single(RACES, shift), everyone=everyone)
        add_attribute(tables, of, "age", single(AGES, shift), everyone=everyone, p=0.41)
        if of["label"] is None:
            add_attribute(tables, of, "gender", single(GENDERS), everyone=everyone)
            add_attribute(tables, of, "race*gender", by_both, everyone=everyone)
    tables.findings += [
        finding(i, claim, p_adjusted=0.0005) for i, claim in enumerate(CLAIMS, start=1)
    ]
    return run_of(tables, record(**changed))


def hostile_run() -> Run:
    """Every name that an attacker or an accident may put into a table."""
    tables = Tables()
    rates = {name: (400 + 10 * i, 0.6 + 0.02 * i) for i, name in enumerate(HOSTILE)}
    short = dict(itertools.islice(rates.items(), 3))
    for of in (line("accuracy", model=HOSTILE[0]), line("recall", HOSTILE[1], HOSTILE[0])):
        add_everyone(tables, of, 4000, 0.7)
        add_attribute(tables, of, HOSTILE[0], single(rates), everyone=0.7)
        add_attribute(tables, of, "x*y", crossed(rates, short, 0.65), everyone=0.7)
    tables.findings.append(finding(1, f"Accuracy for {HOSTILE[0]} is {HOSTILE[2]}."))
    hostile = {HOSTILE[1]: HOSTILE[0]}
    changed = {
        "model": HOSTILE[0],
        "dataset": {"title": HOSTILE[1], "terms": {"x": HOSTILE[4]}, "label_source": HOSTILE[2]},
        "notes": list(HOSTILE),
        "inputs": hostile,
        "versions": hostile,
        "references": [{"key": k, "citation": k, "place": k, "url": k} for k in HOSTILE],
        "families": {HOSTILE[0]: 3},
        "spec": {"data": HOSTILE[0], "by": list(HOSTILE[:3])},
    }
    return run_of(tables, record(**changed))


def injected_run() -> Run:
    """Injected truths: a difference, nothing, and one that was not measured."""
    run = full_run()
    of = {"metric": "accuracy", "label": None, "kind": "difference"}
    truths = [
        of
        | {"attribute": "race", "group_a": "Black", "group_b": "White", "value": -0.13, "note": ""},
        of
        | {"attribute": "gender", "group_a": "Male", "group_b": "Female", "value": 0.10}
        | {"note": "turned"},
        of | {"attribute": "region", "group_a": "coast", "group_b": "hills", "value": 0.0},
    ]
    return Run(
        {**run.record, "injected": truths},
        run.scores,
        run.attributes,
        run.group_metrics,
        run.disparities,
        run.findings,
    )


def small_run() -> Run:
    """One attribute, nobody in a group of two that is large enough; no clusters, no findings."""
    tables = Tables()
    of = line("accuracy")
    add_everyone(tables, of, 60, 0.75)
    add_attribute(tables, of, "race", {("A",): (20, 0.7), ("B",): (12, 0.8)}, everyone=0.75)
    clusters = {"column": None, "n_clusters": 60, "n_units": 60}
    return run_of(tables, record(clusters=clusters, notes=[], references=[]))


def null_run() -> Run:
    """No difference found."""
    tables = Tables()
    of = line("accuracy")
    add_everyone(tables, of, 3000, 0.75)
    rates = {("A",): (1000, 0.752), ("B",): (1200, 0.744), ("C",): (800, 0.757)}
    add_attribute(tables, of, "site", rates, everyone=0.75, p=0.8)
    return run_of(tables)


def classes_run(classes: int = 52) -> Run:
    """52 occupations × 3 groups: recall for each class."""
    tables = Tables()
    ages = {"younger": (4000, 0.71), "middle": (9000, 0.66), "older": (2100, 0.58)}
    add_everyone(tables, line("accuracy"), 15100, 0.66)
    add_attribute(tables, line("accuracy"), "perceived age", single(ages), everyone=0.66)
    for i in range(classes):
        of = line("recall", f"occupation {i + 1}")
        rate = 0.35 + 0.5 * ((i * 7) % classes) / classes
        rates = {
            (name,): (40 + (i * 13 + 29 * j) % 400, min(rate + 0.1 * j * math.sin(i), 0.99))
            for j, name in enumerate(ages)
        }
        add_everyone(tables, of, 300, rate)
        add_attribute(tables, of, "perceived age", rates, everyone=rate)
    return run_of(tables)


def wide_run() -> Run:
    """15 groupings (five attributes and their pairs) × 4 metric lines: the size of a real audit."""
    tables = Tables()
    five = {
        "race": RACES,
        "age": AGES,
        "gender": GENDERS,
        "light": {"bright": (4000, 0.76), "even": (4000, 0.74), "dim": (2954, 0.70)},
        "tone": {str(i): (1100, 0.80 - 0.015 * i) for i in range(1, 11)},
    }
    for name, label, shift in (
        ("accuracy", None, 0.0),
        ("balanced_accuracy", None, -0.01),
        ("recall", "Female", -0.1),
        ("recall", "Male", 0.06),
    ):
        of, everyone = line(name, label), 0.7393 + shift
        add_everyone(tables, of, 10954, everyone)
        for attribute, rates in five.items():
            add_attribute(tables, of, attribute, single(rates, shift), everyone=everyone)
        for (a, one), (b, other) in itertools.combinations(five.items(), 2):
            both = crossed(one, other, 0.74)
            add_attribute(tables, of, f"{a}*{b}", both, everyone=everyone)
    return run_of(tables)


def comparison_run() -> Run:
    """Two models on the same people: the table of differences, and both models' own values."""
    tables = Tables()
    rows: list[dict[str, Any]] = []
    for of, shift in ((line("accuracy"), 0.0), (line("recall", "Female"), -0.1)):
        by = {"race": RACES, "age": AGES, "gender": GENDERS}
        for model, better in (("erm", 0.0), ("arl", 0.02)):
            told = {**of, "model": model}
            add_everyone(tables, told, 10954, 0.74 + shift + better)
            for attribute, rates in by.items():
                moved = single(rates, shift + better)
                add_attribute(tables, told, attribute, moved, everyone=0.74 + shift + better)
        bare = {k: v for k, v in of.items() if k != "model"}
        both = {"model_a": "erm", "model_b": "arl", **bare, "status": "ok"}
        both["kind"] = "model_difference"
        for i, (attribute, rates) in enumerate(by.items()):
            for j, (group, (n, _)) in enumerate(rates.items()):
                gap = 0.03 * math.sin(3 * i + 2 * j) - 0.003
                row = both | {"attribute": attribute, "group_a": group, "n_units_a": n}
                rows.append(row | gap_of(gap, 0.2 / math.sqrt(n)))
        rows.append(
            both
            | {"attribute": None, "group_a": "overall", "n_units_a": 10954}
            | gap_of(-0.004, 0.003)
        )
    run = run_of(tables, record(model="erm and arl", models=["erm", "arl"]))
    differences = check(COMPARISONS.conform(pl.DataFrame(rows)), COMPARISONS)
    return Run(
        run.record,
        run.scores,
        run.attributes,
        run.group_metrics,
        differences,
        run.findings,
    )


def detector_run() -> Run:
    """Race and race × gender with curves over overlaps and people by size, one name hostile."""
    run = full_run(task="face_detection")
    hostile = HOSTILE[0]
    groups = [(None, "overall", 0.70), *(("race", g, p) for g, (_, p) in RACES.items())]
    groups += [("race*gender", "Black × Female", 0.42), ("race*gender", hostile, 0.5)]
    curves = [
        ["erm", attribute, group, overlap, value, value - 0.02, value + 0.02, 1500, "ok"]
        for attribute, group, rate in groups
        for t in range(10)
        for overlap, value in ((round(0.5 + 0.05 * t, 2), round(rate * (1 - (t / 10) ** 2), 4)),)
    ]
    strata = {"size": ("small", "medium", "large"), "occlusion": ("none", hostile)}
    people = [
        ["erm", "Accuracy", attribute, group, by, stratum]
        + ([30, 0.02, None, None, None, "insufficient units"] if thin else sound)
        for by, words in strata.items()
        for attribute, group, rate in groups
        for i, stratum in enumerate(words)
        for thin, sound in [(i == 2, [500, 0.4, rate - 0.1 + 0.1 * i, 0.1, 0.9, "ok"])]
    ]
    of_curves = ["model", "attribute", "group", "overlap", "recall", "low", "high", "people"]
    of_people = ["model", "metric", "attribute", "group", "by", "stratum", "people", "share"]
    explained = {
        "overlap_curves": {"c": {"columns": [*of_curves, "status"], "rows": curves}},
        "size_and_occlusion": {
            "b": {"columns": [*of_people, "value", "low", "high", "status"], "rows": people}
        },
    }
    analyses = [{"name": name, "title": name} for name in explained]
    more = {"explained": explained, "analyses": analyses}
    return Run(
        {**run.record, **more},
        run.scores,
        run.attributes,
        run.group_metrics,
        run.disparities,
        run.findings,
    )
