"""First sentence, findings and verdicts of one audit never contradict one another."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import isolux
from isolux.analyses.group_gaps import explain
from isolux.core.containers import Run
from isolux.report.summary import summarise_run
from isolux.statements.answer import answer_from_run
from isolux.statements.choice import choose_statements
from tests.statements._runs import block, run_of

P = st.sampled_from([0.001, 0.03, 0.06, 1.0])
VALUE = st.sampled_from([0.7, 0.8, 0.82, 0.9])


def check_agreement(run: Run, findings: pl.DataFrame) -> None:
    answer, choice = answer_from_run(run), choose_statements(run)
    assert findings["claim"][0] == answer.first
    shown = findings.filter(pl.col("p_adjusted") <= 0.05)
    for metric, (_, attributes) in choice.unestablished.items():
        (claim,) = (
            text
            for text, name, p in findings.select("claim", "metric", "p_adjusted").iter_rows()
            if name == metric and p is None and text.startswith("No difference")
        )
        for row in shown.filter(
            pl.col("metric") == metric, pl.col("attribute").is_in(attributes)
        ).iter_rows(named=True):
            assert "unknown" in (row["group_a"], row["group_b"]), (claim, row["claim"])
            assert "between known groups" in claim, (claim, row["claim"])
    if answer.first.startswith("No difference"):
        assert not any(s.row["is_known"] for s in choice.stated)


@settings(max_examples=300, deadline=None)
@given(st.lists(VALUE, min_size=3, max_size=3), st.lists(P, min_size=9, max_size=9), st.booleans())
def test_sentences_agree_whatever_the_tests_say(values, p, has_unknown):
    names = ("a", "b", "unknown" if has_unknown else "c")
    pairs = [
        (*sorted(pair, key=dict(zip(names, values, strict=True)).get), q)
        for pair, q in zip([names[:2], names[::2], names[1:]], p, strict=False)
    ]
    rest = [(name, "overall", q) for name, q in zip(names, p[3:6], strict=True)]
    sex = [("f", "m", p[6]), ("f", "overall", p[7]), ("m", "overall", p[8])]
    run = run_of(
        block(dict(zip(names, values, strict=True)), *pairs, *rest),
        block({"f": values[0], "m": 0.95}, *sex, attribute="sex"),
    )
    check_agreement(run, explain(run).findings)


WORLDS = [(s, g) for s in range(6) for g in (0.0, 0.06, 0.09)]
LOWER_THAN_THE_REST_ALONE = [(23, 0.09), (63, 0.09), (55, 0.12)]
"""No pair of five groups is established, but one group against everyone else."""


@pytest.mark.parametrize(("seed", "gap"), WORLDS + LOWER_THAN_THE_REST_ALONE)
def test_reports_agree_with_their_first_sentence(seed, gap):
    """Gaps that are found about every second time, so that p lies on both sides of .05."""
    rng, n = np.random.default_rng(seed), 600
    race = rng.integers(0, 2 + seed % 4, n)
    is_unknown = rng.random(n) < 0.12 * (seed in (1, 3, 5))
    is_right = rng.random(n) < 0.85 - gap * ((race == 0) | is_unknown)
    people = pl.DataFrame(
        {
            "id": np.arange(n).astype(str),
            "y": "1",
            "answer": np.where(is_right, "1", "0"),
            "race": [None if u else f"g{g}" for u, g in zip(is_unknown, race, strict=True)],
            "sex": rng.choice(["f", "m"], n),
        }
    )
    run = isolux.audit(
        people, id="id", target="y", prediction_column="answer", metric=["accuracy"],
        by=["race", "sex"], replicates=200, min_units=30,
    ).run  # fmt: skip
    check_agreement(run, run.findings)
    sections = summarise_run(run).sections
    assert len(sections) == 2
    for section in sections:
        p = section.verdict.spread.p_adjusted
        assert (section.verdict.outcome == "differ") == (p is not None and p <= 0.05)
