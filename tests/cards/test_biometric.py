"""Biometric tables against cells by hand, with the errors of everyone in every row."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from tests.cards._cards import run_of_people, tables_of

FMR = {"overall": 0.02, "a": 0.01, "b": 0.02, "c": 0.04, "few": 0.5}
FNMR = {"overall": 0.30, "a": 0.3125, "b": 0.20, "c": 0.40, "few": 0.9}


def held():
    """Give both errors of three judged groups, and of one of too few clusters."""
    rows = [
        {"model": "m", "task": "face_verification", "metric": metric, "threshold": 0.4,
         "attribute": None if group == "overall" else "tone", "group": group,
         "values": [] if group == "overall" else [group], "n_units": 900, "n_clusters": 60,
         "value": value, "low": value / 2, "high": value + (1 - value) / 2, "standard_error": 0.01,
         "method": "x", "status": "insufficient clusters" if group == "few" else "ok",
         "reason": "fewer than 10 clusters" if group == "few" else None}
        for metric, rates in (("false_match_rate", FMR), ("false_non_match_rate", FNMR))
        for group, value in rates.items()
    ]  # fmt: skip
    table = GROUP_METRICS.conform(pl.DataFrame(rows, infer_schema_length=None))
    record = {"task": "face_verification", "model": "m", "spec": {"by": ["tone"]}}
    return Run(record, SCORES.empty(), ATTRIBUTES.empty(), table, DISPARITIES.empty(),
               FINDINGS.empty())  # fmt: skip


def cells(made, words):
    (found,) = [one for one in tables_of(made) if one.caption.startswith(words)]
    return [dict(zip([c.title for c in found.columns], row, strict=True)) for row in found.rows]


def test_the_summary_by_hand_and_both_errors_beside():
    """Of .01, .02, .04: geometric mean .02, so 2 and 4; Gini with n/(n − 1): .4286 as 3 of 7."""
    first, second = cells(isolux.card(held(), kind="biometric"), "How far apart")
    assert first["max over geometric mean"] == "2.00"
    assert first["max over min"] == "4.00"
    assert first["gini"] == "0.429"
    assert first["overall"].startswith("2.0 %")
    assert first["beside"] == "false non-match rate: 30.0 %"
    assert second["overall"].startswith("30.0 %")
    assert first["groups"] == "3"
    assert first["read with care"] == "without few, too few to judge"


def test_failures_and_errors_have_interval_and_n_and_what_lacks_is_said():
    made = isolux.card(held(), kind="biometric")
    rows = {row["group"]: row for row in cells(made, "Failures and errors by group")}
    assert list(rows) == ["overall", "a", "b", "c", "few"]
    assert rows["b"]["false match rate"] == "2.0 % (1.0 to 51.0; n = 900)"
    assert rows["a"]["threshold"] == "0.400"
    assert rows["a"]["false non-match rate"].startswith("31.3 %")  # as on the first page
    (page,) = made.parts[0].blocks
    assert page.rows[[row[0] for row in page.rows].index("a")][2].startswith("31.3 %")
    assert "false match rate fewer than 10 clusters" in rows["few"]["read with care"]
    assert rows["b"]["read with care"] == "–"
    text = made.markdown()
    assert "Failure to enrol rate: not measured" in text
    assert "not a statement of conformity" in text


def test_who_is_taken_for_whom_across_groups():
    """Pairs within b match in 60 of 200, across in 0 of 200: counted in the matrix."""
    rng = np.random.default_rng(0)
    rows = [
        {"subject_a": f"{one}{i}", "subject_b": f"{two}{i if same else j}", "tone_a": one,
         "tone_b": two, "same": int(same), "score": 0.9 if same else score}
        for one, two in (("a", "a"), ("a", "b"), ("b", "b")) for k in range(200)
        for i, j, same, score in [
            (k % 90, (k * 7 + 1) % 90, False, 0.8 if one == two == "b" and k < 60 else 0.1)]
        if f"{one}{i}" != f"{two}{j}"
    ]  # fmt: skip
    rows += [{"subject_a": f"{g}{i}", "subject_b": f"{g}{i}", "tone_a": g, "tone_b": g, "same": 1,
              "score": float(rng.uniform(0.6, 1))} for g in "ab" for i in range(90)]  # fmt: skip
    frame = pl.DataFrame(rows)
    made = isolux.card(_audited(frame), kind="biometric")
    found = {(row["group a"], row["group b"]): row for row in cells(made, "False match rate betw")}
    within = sum(r["tone_a"] == r["tone_b"] == "b" and not r["same"] for r in rows)
    assert found["b", "b"]["pairs"] == str(within)
    assert found["a", "b"]["false match rate"].startswith("0.0 %")
    assert not found["b", "b"]["false match rate"].startswith("0.0 %")


def _audited(frame):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        frame.write_csv(path)
        return isolux.audit(f"pairs:{path}", task="face_verification", threshold=0.5, by="tone",
                            replicates=100).run  # fmt: skip


def test_a_published_run_shows_nothing_between_groups():
    from dataclasses import replace

    run = held()
    cut = replace(run, record={**run.record, "publish_min": 10})
    assert "Not shown: tables between groups" in isolux.card(cut, kind="biometric").markdown()


def test_another_task_is_refused():
    with pytest.raises(SpecError, match=r"kind biometric cannot be filled(.|\n)*classification"):
        isolux.card(run_of_people(), kind="biometric")
    with pytest.raises(SpecError, match="kind age-estimation cannot be filled"):
        isolux.card(run_of_people(), kind="age_estimation")
