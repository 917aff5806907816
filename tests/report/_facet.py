"""Runs of the size and shape of FACET's (4 attributes, 59 groups of hair and tone, the paper's
tables) and of FHIBE's (31 attributes, one table of the paper for each).
"""

from __future__ import annotations

from dataclasses import replace

from isolux.core.containers import Run
from tests.report import _runs as runs

TONES = {**{str(i): (300 + 40 * (5 - abs(i - 5)), 0.82 - 0.02 * i) for i in range(1, 11)},
         "darker": (1215, 0.669), "lighter": (1139, 0.799)}  # fmt: skip
GENDERS = {
    "fem": (1100, 0.72),
    "masc": (1200, 0.74),
    "non_binary": (90, 0.75),
    "unknown": (30, 0.7),
}
AGES = {"older": (500, 0.72), "middle": (900, 0.73), "young": (1000, 0.75), "unknown": (33, 0.7)}
HAIR = ("wavy", "curly", "straight", "coily", "bald")


def facet_run() -> Run:
    tables = runs.Tables()
    both = {
        (hair, tone): (60 + 7 * i + j, 0.55 + 0.01 * ((3 * i + 5 * j) % 30))
        for i, hair in enumerate(HAIR)
        for j, tone in enumerate(TONES)
    }
    for name, threshold in (("average_recall", None), ("recall_at_iou", 0.5)):
        of = runs.line(name) | {"task": "detection", "threshold": threshold}
        runs.add_everyone(tables, of, 2511, 0.739)
        runs.add_attribute(tables, of, "skin_tone", runs.single(TONES), everyone=0.739)
        runs.add_attribute(tables, of, "gender", runs.single(GENDERS), everyone=0.739, p=0.9)
        runs.add_attribute(tables, of, "age", runs.single(AGES), everyone=0.739, p=0.9)
        runs.add_attribute(tables, of, "hair_type*skin_tone", both, everyone=0.739)
    for i in range(1, 16):
        claim = (
            f"Average recall for group {i} (perceived skin tone) is {i}.0 points lower (95 % "
            f"interval 0.1 to 20.0) than for lighter; n = 1,215 and 1,139 in 82{i} and 81 clusters "
            f"(image); adjusted p = 0.005. {20 + i} of 66 pairs of groups differ by this test."
        )
        tables.findings.append(runs.finding(i, claim, p_adjusted=0.005))
    rows = [["aurora", tone, 70.1, 80.2, 60.3] for tone in list(TONES)[:10]]
    table = {"columns": ["model", "mst", "mAR", "AR50", "AR75"], "rows": rows}
    told = [f"Table {i} says one thing and section {i} another; the table was followed. " * 2
            for i in range(7)]  # fmt: skip
    protocol = {
        "name": "facet:detection",
        "title": "FACET",
        "tables": {f"Table {i}: recall": table for i in (5, 6, 13)},
        "disagreements": told,
    }
    views = runs.detector_run().record["explained"]
    for tables_of in views.values():
        for shown in tables_of.values():
            at = shown["columns"].index("attribute")
            for row in shown["rows"]:
                row[at] = {"race": "skin_tone", "race*gender": "hair_type*skin_tone"}.get(row[at])
    run = runs.run_of(tables, runs.record(task="detection", notes=["A note of one line."] * 6))
    analyses = [{"name": name, "title": name} for name in views]
    more = {"protocol": protocol, "explained": views, "analyses": analyses}
    return replace(run, record={**run.record, **more})


def fhibe_run() -> Run:
    """31 attributes of five groups; attributes 11 and 21 differ, the others do not."""
    tables = runs.Tables()
    of = runs.line("average_recall") | {"task": "detection", "threshold": None}
    runs.add_everyone(tables, of, 2511, 0.739)
    for i in range(1, 32):
        p, step = (0.001, 0.05) if i in {11, 21} else (0.9, 0.01)
        rates = {f"value {i}.{j}": (400 + 20 * j, 0.70 + step * j) for j in range(5)}
        name = f"attribute_{i}"
        runs.add_attribute(tables, of, name, runs.single(rates), everyone=0.739, p=p)
    for i in range(1, 50):
        tables.findings.append(runs.finding(i, f"Claim {i} " + "of average recall. " * 12))
    rows = [[f"value {j}", 100, 20, 0.7, 0.7] for j in range(5)]
    table = {"columns": ["group", "n_scores", "n_subjects", "median", "mean"], "rows": rows}
    protocol = {
        "name": "fhibe:detection",
        "title": "FHIBE",
        "tables": {f"Attribute {i}: average recall": table for i in range(1, 32)},
        "disagreements": ["The text says one thing and the tool another. " * 3] * 6,
    }
    run = runs.run_of(tables, runs.record(task="detection", notes=["A note of one line."] * 12))
    return replace(run, record={**run.record, "protocol": protocol})
