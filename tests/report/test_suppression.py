"""No small count is published, and none can be reckoned from what is."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest

from isolux.report import suppression
from isolux.report.suppression import choose_suppressed_cells, flag_publishable_rows
from tests.report._attack import Attack, counted, random_people

RUNS = 200 if os.environ.get("ISOLUX_FAULTS") == "whole" else 12


def small(rows: pl.DataFrame, minimum: int) -> pl.DataFrame:
    return rows.filter(pl.col("n_units") < minimum)


def test_an_attack_recovers_and_narrows_no_small_count_of_published_runs():
    attacked = shown_rows = 0
    for seed in range(RUNS):
        people, names = random_people(seed)
        rows = counted(people, names, seed)
        minimum = (3, 5, 10, 20)[seed % 4]
        kept = flag_publishable_rows(rows, choose_suppressed_cells(rows, minimum))
        shown, hidden = rows.filter(kept), small(rows.filter(~kept), minimum)
        assert small(shown, minimum).is_empty()
        attack = Attack(shown, people, names)
        assert attack.recovered(hidden) == [], (seed, minimum)
        assert attack.narrowed(hidden, minimum) == [], (seed, minimum)
        attacked += hidden.height
        shown_rows += shown.height
    print(f"{RUNS} runs: {attacked:,} hidden small counts attacked, {shown_rows:,} rows shown")
    assert attacked > 20 * RUNS  # else there was nothing to recover
    assert shown_rows > 3 * RUNS  # nor is all hidden: without classes most is shown


def test_the_attack_works_where_small_groups_alone_are_hidden():
    lost = narrowed = 0
    for seed in range(8):
        people, names = random_people(seed)
        rows = counted(people, names, seed)
        hidden, attack = (
            small(rows, 10),
            Attack(rows.filter(pl.col("n_units") >= 10), people, names),
        )
        lost += len(attack.recovered(hidden))
        narrowed += len(attack.narrowed(hidden, 10))
    assert lost > 20
    assert narrowed > lost + 8


def table(**groups: int) -> pl.DataFrame:
    """Make the rows of one attribute, ``race``, and of everyone."""
    rows = [(None, [], sum(groups.values())), *(("race", [k], n) for k, n in groups.items())]
    schema = {"attribute": pl.String, "values": pl.List(pl.String), "n_units": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(
        model=pl.lit("m"), task=pl.lit("t"), metric=pl.lit("a"),
        threshold=pl.lit(None, pl.Float64), label=pl.lit(None, pl.String),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "hidden"),
    [
        ({"A": 40, "B": 60}, set()),
        ({"A": 9, "B": 40, "C": 60}, {"A", "B"}),  # 100 − 60 − 40 would give it
        ({"A": 9, "B": 2, "C": 60}, {"A", "B"}),  # 11 together: at least 10
        ({"A": 3, "B": 2, "C": 60, "D": 70}, {"A", "B", "C"}),  # 5 together would be few
        ({"A": 9, "B": 60}, {"A", "B"}),
        ({"A": 0, "B": 40, "C": 60}, {"A", "B"}),  # that there is no one is a count too
    ],
)
def test_the_smallest_others_protect_a_small_group(groups, hidden):
    found = choose_suppressed_cells(table(**groups), 10)
    assert {values[0] for _, values, _ in found} == hidden


def test_people_of_unknown_value_are_a_group_that_can_be_small():
    rows = table(A=40, B=60)
    rows = rows.with_columns(
        n_units=pl.when(pl.col("attribute").is_null()).then(105).otherwise(pl.col("n_units"))
    )
    assert {values for _, values, _ in choose_suppressed_cells(rows, 10)} == {("A",)}


def test_people_with_several_values_have_no_sum_to_protect():
    rows = table(A=40, B=60, C=4)
    rows = rows.with_columns(
        n_units=pl.when(pl.col("attribute").is_null()).then(90).otherwise(pl.col("n_units"))
    )
    assert {values for _, values, _ in choose_suppressed_cells(rows, 10)} == {("C",)}


def test_a_rare_value_of_one_class_does_not_hide_other_attributes():
    """The one person of C is of the class that is counted; no sum tells that there is no other.

    C (1) is hidden, and A with it, as 600 − 596 − 3 is 1: the whole of ``rare``. Light stays.
    """
    rows = []
    for label, counts in ((None, (600, 596, 3, 1, 320, 280)), ("yes", (280, 277, 2, 1, 150, 130))):
        for value, n in zip(("", "A", "B", "C", "day", "night"), counts, strict=True):
            name = None if not value else "light" if value in ("day", "night") else "rare"
            rows.append((label, name, [value] if value else [], n))
    schema = {"label": pl.String, "attribute": pl.String, "values": pl.List(pl.String),
              "n_units": pl.Int64}  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        model=pl.lit("m"), task=pl.lit("t"), threshold=pl.lit(None, pl.Float64),
        metric=pl.when(pl.col("label").is_null()).then(pl.lit("a")).otherwise(pl.lit("r")),
    )  # fmt: skip
    found = choose_suppressed_cells(frame, 10)
    assert {values for _, values, _ in found} == {("A",), ("B",), ("C",)}


def build_large_table(n_values: int) -> pl.DataFrame:
    """Count people by two attributes and both, in five classes: most groups of a class are few."""
    rng = np.random.default_rng(0)
    names, sizes = ("a", "b"), (n_values, 6)
    shares = [rng.dirichlet(np.ones(size)) for size in sizes]
    people = {
        n: rng.choice(len(p), 4_000, p=p).astype(str) for n, p in zip(names, shares, strict=True)
    }
    truth = rng.choice(5, 4_000).astype(str)
    tables = []
    for attributes in ((), ("a",), ("b",), ("a", "b")):
        for label in (None, *"01234"):
            mask = np.ones(4_000, dtype=bool) if label is None else truth == label
            frame = pl.DataFrame({n: values[mask] for n, values in people.items()})
            counts = frame.group_by(attributes or pl.lit(0).alias("all")).len("n_units")
            tables.append(counts.select(
                model=pl.lit("m"), task=pl.lit("t"), metric=pl.lit("a" if label is None else "r"),
                threshold=pl.lit(None, pl.Float64), label=pl.lit(label, pl.String),
                attribute=pl.lit("*".join(attributes) or None, pl.String),
                values=pl.concat_list(attributes) if attributes else pl.lit([], pl.List(pl.String)),
                n_units=pl.col("n_units").cast(pl.Int64),
            ))  # fmt: skip
    return pl.concat(tables)


def test_work_grows_with_the_table_and_not_with_its_square(monkeypatch):
    """Sums are checked again only where their terms changed: a handful of times each."""
    solved = []
    find = suppression.find_determined_cells
    monkeypatch.setattr(
        suppression, "find_determined_cells",
        lambda cells, sums: solved.append(len(sums)) or find(cells, sums),
    )  # fmt: skip
    checks = []
    check = suppression._TableState.is_sum_disclosive
    monkeypatch.setattr(
        suppression._TableState, "is_sum_disclosive",
        lambda self, *given: checks.append(1) or check(self, *given),
    )  # fmt: skip
    work = {}
    for n_values in (20, 80):
        solved.clear()
        checks.clear()
        rows = build_large_table(n_values)
        choose_suppressed_cells(rows, 10)
        work[n_values] = rows.height, sum(solved), len(checks)
    print(work)
    (rows, sums, n_checks), (more_rows, more_sums, more_checks) = work.values()
    growth = more_rows / rows
    assert growth > 3
    assert more_sums < 2 * growth * sums
    assert more_checks < 2 * growth * n_checks
    assert more_sums < 60 * more_rows
