"""Laws that hold of every metric of classification, each entered once."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.spec import Statistics
from isolux.core.tables import MEMBERSHIP
from isolux.groups.measure import measure_groups
from isolux.tasks.classification import INFO, score
from isolux.tasks.classification.metrics import (
    METRIC_ENTRIES,
    METRICS,
    ON_DETECTED,
    names_that_need,
)
from tests.tasks._people import answers, people

TRUTH = {f"p{i:03}": "yes" if i % 3 else "no" for i in range(600)}
SAID = {one: "yes" if i % 4 else "no" for i, one in enumerate(TRUTH)}
OPTIONS = {"positive": "yes", "top_k": (1,)}
NAMES = [entry.metric.name for entry in METRIC_ENTRIES]


def measured(truth, said, sure=0.75):
    """Every metric of everyone, by name; scores are confidences in the answer."""
    given = answers(said, dict.fromkeys(said, sure)).with_columns(
        score=pl.when(pl.col("label") == "yes").then(sure).otherwise(1.0 - sure),
        detected=pl.lit(value=True),
    )
    scores = score(
        people(truth), given, target="job", metrics=NAMES, undetected="both", score_of="positive",
        **OPTIONS,
    )  # fmt: skip
    units = scores.evaluated_units().select(
        "unit_id", attribute=pl.lit("all"), group=pl.lit("one"), values=pl.lit(["one"])
    )
    table = measure_groups(scores, MEMBERSHIP.conform(units), Statistics(replicates=100)).to_table()
    # Recall is told class by class.
    return {name: table.filter(metric=name)["value"].mean() for name in table["metric"].unique()}


@pytest.fixture(scope="module")
def of_everyone():
    return measured(TRUTH, SAID)


@pytest.fixture(scope="module")
def where_all_is_right():
    return measured(TRUTH, TRUTH, sure=1.0)


@pytest.fixture(scope="module")
def of_everyone_twice():
    return measured(*(
        {f"{one}{end}": label for one, label in who.items() for end in "ab"}
        for who in (TRUTH, SAID)
    ))  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_measured_within_its_range(of_everyone, name):
    metric = INFO.metric(name)
    assert metric.low <= of_everyone[name] <= metric.high


@pytest.mark.parametrize("entry", METRIC_ENTRIES, ids=NAMES)
def test_every_entry_is_best_where_every_answer_is_right(where_all_is_right, entry):
    best = {"higher": entry.metric.high, "lower": entry.metric.low, "none": 400 / 600}
    assert where_all_is_right[entry.metric.name] == pytest.approx(best[entry.metric.direction])


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_stays_where_everyone_is_there_twice(of_everyone, of_everyone_twice, name):
    assert of_everyone_twice[name] == pytest.approx(of_everyone[name])


def test_the_lists_are_those_of_the_entries():
    assert [metric.name for metric in METRICS] == NAMES == [m.name for m in INFO.metrics]
    assert len(set(NAMES)) == len(NAMES)
    assert set(names_that_need("answers", "positive")) == {
        entry.metric.name for entry in METRIC_ENTRIES if entry.needs == ("answers", "positive")
    }
    assert set(ON_DETECTED.values()) < set(names_that_need("detection"))
    for entry in METRIC_ENTRIES:
        assert (entry.unit_value is None) == (entry.metric.statistic is not None)
        opposite = entry.metric.opposite
        assert not opposite or INFO.metric(opposite).opposite == entry.metric.name
