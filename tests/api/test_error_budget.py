"""One report, one error rate: shares, labels, and what the record keeps."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.api.error_budget import (
    add_error_budget_entry,
    compute_audit_error_share,
    label_exploratory,
)
from isolux.core.tables import FINDINGS
from tests.laws._discovery import a_world

RECORD = {"spec": {"level": 0.95, "correction": "max-t"}}


def findings(*rows):
    """Lay out findings: claim, effect, adjusted p."""
    empty = dict.fromkeys(FINDINGS.schema)
    told = [
        empty | {"rank": k, "analysis": "patterns", "claim": claim, "effect": effect,
                 "p_adjusted": p, "status": "ok"}
        for k, (claim, effect, p) in enumerate(rows, start=1)
    ]  # fmt: skip
    return pl.DataFrame(told, schema=FINDINGS.schema)


def test_the_shares_of_what_was_planned_add_up_to_the_whole():
    planned = ["patterns", "power", "slices", "confounders"]  # power tests nothing
    record = dict(RECORD)
    for name in planned:
        record = add_error_budget_entry(record, name, planned)
    shares = [row["share"] for row in record["ledger"]]
    assert shares == [0.8, *[pytest.approx(0.2 / 3, abs=1e-6)] * 3]
    assert compute_audit_error_share(planned) + 3 * 0.2 / 3 == pytest.approx(1.0)
    assert compute_audit_error_share(["power"]) == 1.0


def test_claims_hold_at_their_share_or_are_exploratory():
    table = findings(
        ("Sure.", 0.1, 0.004), ("Not sure.", 0.1, 0.03), ("Nothing was found.", None, None),
        ("An interval alone.", 0.1, None), ("Not shown.", 0.1, 0.4),
    )  # fmt: skip
    found = label_exploratory(table, RECORD, "patterns", ["patterns", "slices"])  # a tenth each
    assert found["claim"].to_list() == [
        "Sure. Over the whole report p = 0.040.",
        "Exploratory: Not sure. Over the whole report p = 0.300.",
        "Nothing was found.",
        "Exploratory: An interval alone.",
        "Not shown.",
    ]
    assert found["p_adjusted"].to_list() == pytest.approx([0.04, 0.3, None, None, 1.0])


def test_what_was_not_planned_is_exploratory_in_every_sentence():
    table = findings(("Sure.", 0.1, 0.0001), ("Nothing was found.", None, None))
    found = label_exploratory(table, RECORD, "patterns", [])
    assert found["claim"].str.starts_with("Exploratory: ").all()
    assert found["p_adjusted"].to_list() == table["p_adjusted"].to_list()
    assert label_exploratory(table, RECORD, "power", []).equals(
        table
    )  # it claims nothing by chance


def test_the_record_counts_every_look():
    planned = add_error_budget_entry(RECORD, "patterns", ["patterns"])
    again = add_error_budget_entry(add_error_budget_entry(planned, "slices", []), "slices", [])
    assert [(row["name"], row["planned"], row["looks"]) for row in again["ledger"]] == [
        ("group_gaps", True, 1), ("patterns", True, 1), ("slices", False, 2),
    ]  # fmt: skip
    (note,) = again["notes"]
    assert "the audit and patterns together hold a family-wise error rate of 5 %" in note
    assert note.endswith("slices ran afterwards and are exploratory.")
    assert "ledger" not in RECORD


@pytest.mark.parametrize("replicates", [98, 99, 198])
def test_one_explanation_needs_ninety_nine_replicates(replicates):
    # A fifth of 5 % is .01, which p = 1 / (99 + 1) reaches.
    record = {"spec": RECORD["spec"] | {"replicates": replicates}}
    (note,) = add_error_budget_entry(record, "patterns", ["patterns"])["notes"]
    assert ("--replicates 99 or more" in note) == (replicates < 99)


def test_a_planned_analysis_that_is_run_again_is_exploratory():
    planned = add_error_budget_entry(RECORD, "patterns", ["patterns"])
    again = add_error_budget_entry(planned, "patterns", [])
    assert again["ledger"][1] == {"name": "patterns", "planned": False, "share": 0.0, "looks": 2}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """People of whom those in dim light that are small fare worse, as scores and attributes."""
    import numpy as np

    run = a_world(np.random.default_rng(5), 120, injected=0.5)
    return run.scores.select("unit_id", "value", "cluster_id"), run.attributes


@pytest.fixture(scope="module")
def alone(people):
    return isolux.audit(*people, by=["light"], replicates=300)


@pytest.fixture(scope="module")
def planned(people):
    return isolux.audit(*people, by=["light"], replicates=300, explain=["patterns"])


def test_the_audit_pays_for_what_is_planned_with_it(alone, planned):
    before, after = (one.disparities["p_adjusted"].drop_nulls() for one in (alone, planned))
    assert after.to_list() == pytest.approx([min(p / 0.8, 1.0) for p in before])
    least = [one.disparities.filter(kind="difference")["detectable"][0] for one in (alone, planned)]
    assert least[1] > least[0]
    assert "80 % of the error rate" in planned.disparities["family"].drop_nulls()[0]


def test_planned_claims_are_over_the_whole_report(planned):
    told = planned.findings.filter(analysis="patterns")
    held = told.filter(pl.col("p_adjusted") <= 0.05)
    assert held.height
    assert not held["claim"].str.starts_with("Exploratory").any()
    assert held["claim"].str.contains("Over the whole report p ").all()


def test_an_explanation_afterwards_joins_the_runs_ledger(alone, tmp_path):
    alone.report(tmp_path / "run")
    later = isolux.explain(tmp_path / "run", analysis=["patterns"])
    own = later.findings.filter(analysis="patterns")
    assert own["claim"].str.starts_with("Exploratory: ").all()
    assert not later.findings.filter(analysis="group_gaps")["claim"].str.contains("Explor").any()
    later.report(tmp_path / "more")
    again = isolux.explain(tmp_path / "more", analysis=["patterns"])
    assert again.run.record["ledger"][1]["looks"] == 2
    assert any(note.startswith("Error rate: ") for note in again.run.record["notes"])
