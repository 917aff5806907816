"""Does an audit's first sentence name the group for which the model is worst, however small it is?

Four groups of 6,000 people; one has a share of 1 to 40 %, the others divide the rest equally. The
model is right for 95 in 100, and for fewer of the group or groups in which a gap was planted.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.report.summary import summarise
from isolux.verbs.audit import Audit
from tests.laws._figures import at_least, record, scaled

pytestmark = pytest.mark.law

PEOPLE, RIGHT = 6_000, 0.95
GROUPS = ("minority", "second", "third", "fourth")
WORLDS = scaled(200, 8)
PLANTED = {
    "the minority": {"minority": 0.25},
    "a majority": {"second": 0.06},
    "both": {"minority": 0.25, "second": 0.06},
    "none": {},
}


def audited(share: float, planted: dict[str, float], seed: int) -> Audit:
    rng = np.random.default_rng([340, seed])
    shares = np.array([share, *[(1 - share) / 3] * 3])
    sizes = np.round(PEOPLE * shares).astype(int)
    rates = np.array([RIGHT - planted.get(name, 0.0) for name in GROUPS])
    group = np.repeat(GROUPS, sizes)
    right = rng.random(len(group)) < np.repeat(rates, sizes)
    truth = np.where(rng.random(len(group)) < 0.5, "a", "b")
    frame = pl.DataFrame({
        "race": group, "truth": truth,
        "answer": np.where(right, truth, np.where(truth == "a", "b", "a")),
    })  # fmt: skip
    return isolux.audit(
        frame, target="truth", prediction_column="answer", by=["race"], metric=["accuracy"],
        replicates=199, seed=seed,
    )  # fmt: skip


def worst_established(audit: Audit) -> str | None:
    """Find by plain loops the worst-off group of those that are worse than another one."""
    pairs = audit.disparities.filter(pl.col("kind") == "difference", pl.col("p_adjusted") <= 0.05)
    worse = {
        row["group_a"] if row["value"] < 0 else row["group_b"]
        for row in pairs.iter_rows(named=True)
    }
    value = dict(audit.group_metrics.select("group", "value").iter_rows())
    return min(worse, key=lambda name: value[name], default=None)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("name", list(PLANTED))
def test_the_first_sentence_names_the_group_that_is_served_worst(name, share):
    planted = PLANTED[name]
    truly_worst = max(planted, key=lambda group: planted[group], default=None)
    right = established = 0
    for seed in range(WORLDS):
        audit = audited(share, planted, seed)
        worst, answer = worst_established(audit), summarise(audit.run).answer
        claim = audit.findings["claim"][0]
        for said in (claim, answer):
            assert "widest" not in said or worst is None
        if worst is None:  # at most a group differs from everyone else
            assert "works worse for" not in answer
            continue
        assert claim.startswith(f"Accuracy for {worst} (race) is ")
        assert answer.startswith(f"By race, the model works worse for {worst} than for ")
        established += 1
        right += worst == truly_worst
    row = {"planted in": name, "share of the minority, %": share,
           "something established, %": established / WORLDS,
           "the first sentence names it, %": right / max(established, 1)}  # fmt: skip
    number = list(PLANTED).index(name)
    record(f"leads-{number}-{round(100 * share):02d}", [row], worlds=WORLDS, replicates=199)
    if planted:
        assert established >= at_least(0.97, WORLDS, full=0.95) * WORLDS, row
        assert right >= at_least(0.97, established, full=0.95) * established, row
    else:
        assert established <= max(3, 0.07 * WORLDS), row
