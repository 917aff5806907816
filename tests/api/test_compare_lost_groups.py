"""A group that one of two compared runs lacks is named before any number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api.compare.lost_groups import caution_on_lost_groups
from isolux.core.containers import Run

SIZES = {"A": 150, "B": 150, "C": 150}


def audited(model: str, sizes: dict[str, int], seed: int = 0) -> Run:
    """Audit a model that is right for four of five people; a third of each group is old."""
    rng = np.random.default_rng(seed)
    rows = [
        {"unit_id": f"{group}{i}", "race": group, "age": "old" if i % 3 == 0 else "young",
         "value": float(rng.random() < 0.8), "model": model}
        for group, n in sizes.items()
        for i in range(n)
    ]  # fmt: skip
    table = pl.DataFrame(rows)
    people = table.select("unit_id", "race", "age")
    by = ["race", "age", "race*age"]
    return isolux.audit(table.drop("race", "age"), people, by=by, replicates=100).run


def select(run: Run, units: pl.Series | list[str]) -> Run:
    """Leave only some people in a run, as if its file had no others."""
    return replace(run, scores=run.scores.filter(pl.col("unit_id").is_in(units)))


OLD, NEW = audited("old", SIZES), audited("new", SIZES, seed=1)
AB = [f"{group}{i}" for group in "AB" for i in range(150)]
NAMED = (
    "new scored nobody of C (race), of whom old scored 150: the comparison says nothing of them."
)


def test_a_lost_group_is_named_first_and_its_parts_are_not():
    for new in (select(NEW, AB), audited("new", {"A": 150, "B": 150}, seed=1)):
        assert isolux.compare(OLD, new).run.record["warnings"] == [NAMED]
        assert isolux.compare(new, OLD).run.record["warnings"] == [NAMED]


def test_people_without_a_score_are_lost_too():
    is_lost = pl.col("unit_id").str.starts_with("C")
    silent = NEW.scores.with_columns(
        value=pl.when(~is_lost).then("value"), reason=pl.when(is_lost).then(pl.lit("no prediction"))
    )
    assert isolux.compare(OLD, replace(NEW, scores=silent)).run.record["warnings"][0] == NAMED


def test_a_lost_crossing_of_groups_is_named_where_each_of_its_groups_is_there():
    units = NEW.scores["unit_id"]
    old_c = [f"C{i}" for i in range(0, 150, 3)]
    warnings = isolux.compare(OLD, select(NEW, units.filter(~units.is_in(old_c)))).run.record[
        "warnings"
    ]
    assert "nobody of C × old (race*age), of whom old scored 50" in warnings[0]


def test_a_group_that_is_lost_in_part_is_named():
    units = NEW.scores["unit_id"]
    warnings = isolux.compare(
        OLD, select(NEW, units.filter(~units.str.contains("C[1-5].")))
    ).run.record["warnings"]
    assert "absent from new are uneven (race): C " in warnings[0]


@pytest.mark.parametrize("sizes", [SIZES, {"A": 900, "B": 60, "C": 10, "D": 3, "E": 1}])
def test_people_lost_at_random_give_no_caution(sizes):
    """At 1 in 100 for each attribute: of 30 samples by three attributes at most 4."""
    old, new = audited("old", sizes), audited("new", sizes, seed=1)
    rng = np.random.default_rng(2)
    units, n_cautions = new.scores["unit_id"], 0
    for share in [0.3, 0.6, 0.9] * 10:
        chosen = select(new, units.filter(rng.random(len(units)) < share))
        matches = chosen.scores.select("unit_id", as_first="unit_id")
        n_cautions += bool(caution_on_lost_groups(old, chosen, matches, ("old", "new")))
    assert n_cautions <= 4
