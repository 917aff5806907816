"""One report, one error rate: an audit and its explanations where nothing differs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api.error_budget import EXPLORATORY_LABEL
from isolux.core import registry
from isolux.core.containers import Scores
from isolux.core.tables import SCORES
from tests.laws._discovery import a_world
from tests.laws._figures import FULL, record, scaled, sized

pytestmark = pytest.mark.law

PLANNED = ["confounders", "patterns", "slices", "rank_tests"]


def test_a_whole_report_seldom_claims_what_is_not_so():
    worlds, replicates = scaled(400, 3), sized(999, 199)
    any_claim = exploratory = audits = 0
    for number in range(worlds):
        run = a_world(np.random.default_rng([111, number]), 80)
        scores = Scores(SCORES.conform(run.scores), registry.task_info("classification"))
        found = isolux.audit(
            scores, run.attributes,
            by=["tone", "hair", "light"], replicates=replicates, seed=number, explain=PLANNED,
        ).findings.filter(pl.col("p_adjusted") <= 0.05)  # fmt: skip
        label = found["claim"].str.starts_with(EXPLORATORY_LABEL)
        any_claim += bool((~label).any())
        audits += bool((found["analysis"] == "group_gaps").any())
        exploratory += bool(label.any())
    row = {"explained": ", ".join(PLANNED), "subjects": 80,
           "any claim, %": any_claim / worlds, "of the audit, %": audits / worlds,
           "labelled exploratory, %": exploratory / worlds}  # fmt: skip
    record("one-report", [row], worlds=worlds, replicates=replicates)
    assert any_claim <= (0.06 * worlds if FULL else 1), row
