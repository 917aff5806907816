"""How far apart groups are at most: rows, sentences and settings, through the audit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError
from isolux.statements.answer import answer_from_run
from isolux.statements.numbers import format_gap_size

N = 400


def audited(rates, *, groups=None, photos=1, **settings):
    """Audit groups of 400 rows each with exactly these shares right, spread evenly."""
    names = groups or [f"g{k}" for k in range(len(rates))]
    value = np.concatenate([np.arange(N) % 100 < round(100 * rate) for rate in rates])
    ids = [f"u{i:05}" for i in range(len(value))]
    people = pl.DataFrame({"unit_id": ids, "tone": np.repeat(names, N)})
    scores = pl.DataFrame({"unit_id": ids, "value": value.astype(float)})
    if photos > 1:
        cluster = [f"{name}{i // photos}" for name in names for i in range(N)]
        scores = scores.with_columns(cluster_id=pl.Series(cluster))
    return isolux.audit(scores, people, by="tone", replicates=200, **settings)


def within(audit):
    return audit.disparities.filter(kind="max_difference_bound").row(0, named=True)


def told(audit):
    """What the answer says of the margin, and that the findings say it too."""
    answer = answer_from_run(audit.run)
    (claim,) = (text for text in answer.further if " by more than " in text)
    assert claim in audit.findings["claim"].to_list()
    return claim


def test_the_widest_gap_has_an_upper_bound_always():
    row = within(audited([0.9, 0.91, 0.88]))
    assert row["value"] == pytest.approx(0.03)
    assert (row["group_a"], row["group_b"]) == ("g1", "g2")
    # 1.645 standard errors of 353 and 364 of 400 beyond 3 points: 3.0 + 1.645 × 2.17 ≈ 6.6.
    assert row["low"] == 0.0
    assert row["high"] == pytest.approx(0.0657, abs=0.002)
    assert row["p_value"] is row["p_adjusted"] is row["test"] is row["family"] is None


def test_a_margin_is_tested_and_said():
    shown = audited([0.9, 0.91, 0.9], margin=6)
    assert within(shown)["p_adjusted"] < 0.05
    assert "m = 1" in within(shown)["family"]
    assert told(shown).startswith("That no two groups of tone differ by more than 6 points")
    assert "is shown" in told(shown)
    assert f"at most {format_gap_size(within(shown)['high'])}" in told(shown)
    not_shown = audited([0.9, 0.91, 0.86], margin=3)
    assert within(not_shown)["p_adjusted"] > 0.5
    assert "is not shown (adjusted p = 0.8" in told(not_shown)


def test_groups_may_differ_and_still_be_within_the_margin():
    found = audited([0.98, 0.9], margin=15)
    assert "8.0 points lower" in answer_from_run(found.run).first
    assert "is shown" in told(found)


@pytest.mark.parametrize("reference", [(), "tone=g0"])
def test_where_no_difference_is_established_its_size_is_bounded(reference):
    found = audited([0.9, 0.91], reference=reference)
    row = found.disparities.filter(kind="difference").row(0, named=True)
    largest = max(abs(row["simultaneous_low"]), abs(row["simultaneous_high"]))
    assert f"up to {format_gap_size(largest)} cannot be ruled out" in found.findings["claim"][0]
    assert "ruled out" not in " ".join(audited([0.98, 0.8], reference=reference).findings["claim"])


def test_several_claims_are_corrected_by_holm():
    rates, n = [0.9, 0.91], 2 * N
    rng = np.random.default_rng(0)
    value = np.concatenate([np.arange(N) % 100 < round(100 * rate) for rate in rates])
    ids = [f"u{i:05}" for i in range(n)]
    people = pl.DataFrame({"unit_id": ids, "tone": np.repeat(["a", "b"], N),
                           "light": rng.choice(["dim", "bright"], n)})  # fmt: skip
    scores = pl.DataFrame({"unit_id": ids, "value": value.astype(float)})
    found = isolux.audit(scores, people, by=["tone", "light"], margin=5, replicates=200)
    rows = found.disparities.filter(kind="max_difference_bound").sort("p_value")
    raw = rows["p_value"].to_list()
    assert rows["p_adjusted"].to_list() == pytest.approx([2 * raw[0], max(2 * raw[0], raw[1])])
    assert "m = 2" in rows["family"][0]


def test_with_a_reference_only_its_pairs_count():
    row = within(audited([0.9, 0.96, 0.86], reference="tone=g0"))
    assert row["value"] == pytest.approx(0.06)
    assert "g0" in {row["group_a"], row["group_b"]}
    claim = told(audited([0.9, 0.91, 0.9], reference="tone=g0", margin=9))
    assert claim.startswith("That no group of tone differs from g0 by more than 9 points")


@pytest.mark.parametrize("margin", [None, 9])
def test_a_report_with_a_reference_says_nothing_of_two_other_groups(margin, tmp_path):
    # g1 and g2 are 10 points apart, though each is within 9 of g0: "no two groups" would be false.
    found = audited([0.9, 0.95, 0.85], reference="tone=g0", margin=margin)
    alike = audited([0.9, 0.91, 0.89], reference="tone=g0", margin=margin)
    assert within(found)["high"] < 0.09 < found.disparities.filter(kind="range")["value"][0]
    for name, audit in (("found", found), ("alike", alike)):
        audit.report(tmp_path / name)
        page = (tmp_path / name / "report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
        assert "no two groups" not in page.replace("groups (with --reference", "")
        if margin:
            assert "hat no group of tone differs from g0 by more than 9 points" in page
        if name == "alike":
            assert "no difference in score from g0 was established" in page.lower()
        assert "no two groups" not in (within(audit)["family"] or "")


def test_people_of_unknown_value_are_in_no_claim():
    row = within(audited([0.9, 0.91, 0.2], groups=["a", "b", "unknown"]))
    assert row["value"] == pytest.approx(0.01)


def test_where_clusters_are_few_nothing_is_claimed():
    found = audited([0.9, 0.9], photos=40, margin=50, min_clusters=10)
    assert within(found)["status"] == "few clusters"
    assert "cannot be judged: " in told(found)


@pytest.mark.parametrize("margin", [0, -3, 0.03, 101, "narrow", float("nan")])
def test_a_margin_that_is_none_is_refused(margin):
    with pytest.raises(SpecError, match="the setting 'margin' cannot be used") as caught:
        audited([0.9, 0.9], margin=margin)
    assert "0.1 or more and 100 or less" in str(caught.value.expected)
