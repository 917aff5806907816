"""Agreement beyond chance: published tables, other implementations, and what chance gives."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from isolux.stats.agreement import (
    cohen_kappa_statistic,
    count_labels_by_item,
    fleiss_kappa_statistic,
    krippendorff_alpha_statistic,
    weighted_kappa_statistic,
)

# Krippendorff (2011), section C: four observers, twelve units, 41 answers; the values that the
# paper prints for the nominal, ordinal and interval metric.
PUBLISHED = [
    "111",
    "2223",
    "3333",
    "3333",
    "2222",
    "1234",
    "4444",
    "1121",
    "2222",
    "555",
    "11",
    "3",
]
# Fleiss (1971), table 1: 30 patients, six psychiatrists, five diagnoses; kappa .430.
PSYCHIATRISTS = [
    [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0],
    [2, 0, 4, 0, 0], [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6],
    [1, 0, 0, 5, 0], [1, 1, 0, 4, 0], [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1],
    [0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0], [0, 2, 0, 4, 0], [1, 0, 2, 0, 3],
    [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0], [1, 0, 0, 4, 1],
    [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
]  # fmt: skip


def table(items: list[list[int]]) -> pl.DataFrame:
    numbers = pl.List(pl.Float64)
    schema = {"codes": pl.List(pl.Int64), "numbers": numbers, "positions": numbers}
    return pl.DataFrame(dict.fromkeys(schema, items), schema=schema)


def value(statistic, items, weights=None) -> float:
    own = np.ones(len(items)) if weights is None else np.asarray(weights, dtype=float)
    return float(statistic(table(items), own))


def by_definition(items: list[list[int]], scale: str) -> float:
    """Alpha by its definition: every pair of answers of one item, and every pair of all."""
    paired = [one for one in items if len(one) > 1]
    every = [x for one in paired for x in one]
    held = np.bincount(every, minlength=max(every) + 1)

    def apart(c: int, k: int) -> float:
        if scale == "nominal":
            return float(c != k)
        if scale == "interval":
            return float((c - k) ** 2)
        low, high = min(c, k), max(c, k)
        return float((held[low : high + 1].sum() - (held[c] + held[k]) / 2) ** 2) if c != k else 0.0

    observed = sum(
        sum(apart(*pair) for pair in itertools.permutations(one, 2)) / (len(one) - 1)
        for one in paired
    ) / len(every)
    expected = sum(apart(*pair) for pair in itertools.permutations(every, 2))
    return 1 - observed / (expected / (len(every) * (len(every) - 1)))


@pytest.mark.parametrize(
    ("scale", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_is_that_of_the_published_table(scale, printed):
    items = [[int(answer) - 1 for answer in one] for one in PUBLISHED]
    assert round(value(krippendorff_alpha_statistic(scale), items), 3) == printed


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(8))
def test_alpha_is_that_of_its_definition(scale, seed):
    rng = np.random.default_rng(seed)
    items = [rng.integers(0, 5, rng.integers(0, 6)).tolist() for _ in range(30)]
    assert value(krippendorff_alpha_statistic(scale), items) == pytest.approx(
        by_definition(items, scale), abs=1e-12
    )


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_a_weight_of_two_is_an_item_twice(scale):
    rng = np.random.default_rng(3)
    items = [rng.integers(0, 4, 3).tolist() for _ in range(12)]
    weights = rng.integers(0, 3, 12)
    twice = [one for one, w in zip(items, weights, strict=True) for _ in range(w)]
    once = value(krippendorff_alpha_statistic(scale), items, weights)
    assert once == pytest.approx(value(krippendorff_alpha_statistic(scale), twice), abs=1e-12)


def test_numbers_may_lie_anywhere():
    """The interval alpha does not change with where 0 is, nor do its digits."""
    far = [[x + 1e6 for x in one] for one in ([1.0, 2.0], [4.0, 4.5], [9.0, 7.0])]
    near = [[x - 1e6 for x in one] for one in far]
    tables = [pl.DataFrame({"codes": [[0, 1]] * 3, "numbers": one}) for one in (near, far)]
    one, other = (float(krippendorff_alpha_statistic("interval")(t, np.ones(3))) for t in tables)
    assert one == pytest.approx(other, rel=1e-9)


def test_fleiss_kappa_is_that_of_the_published_table_and_of_statsmodels():
    items = [[code for code, n in enumerate(row) for _ in range(n)] for row in PSYCHIATRISTS]
    found = value(fleiss_kappa_statistic(), items)
    assert round(found, 3) == 0.430
    assert found == pytest.approx(inter_rater.fleiss_kappa(np.array(PSYCHIATRISTS)), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_cohen_kappa_is_that_of_statsmodels(seed):
    rng = np.random.default_rng(seed)
    said = rng.integers(0, 4, (80, 2))
    said[rng.random(80) < 0.5, 1] = said[rng.random(80) < 0.5, 0][:1]
    crossed = np.zeros((4, 4))
    np.add.at(crossed, (said[:, 0], said[:, 1]), 1)
    expected = inter_rater.cohens_kappa(crossed, return_results=False)
    assert value(cohen_kappa_statistic(), said.tolist()) == pytest.approx(expected, abs=1e-12)


def rated(seed, levels=(1.0, 2.0, 3.0, 4.0, 5.0), n=90):
    """Two annotators' ratings, the second near the first, and their table of positions."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, len(levels), n)
    second = np.clip(first + rng.integers(-1, 2, n) * (rng.random(n) < 0.6), 0, len(levels) - 1)
    codes = np.column_stack([first, second])
    return codes, pl.DataFrame(
        {"codes": codes.tolist(), "positions": np.array(levels)[codes].tolist()}
    )


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
@pytest.mark.parametrize("seed", range(3))
def test_weighted_kappa_is_that_of_scikit_learn(weights, seed):
    codes, evidence = rated(seed)
    expected = cohen_kappa_score(codes[:, 0], codes[:, 1], labels=range(5), weights=weights)
    own = weighted_kappa_statistic(weights)(evidence, np.ones(len(codes)))
    assert float(own) == pytest.approx(expected, abs=1e-12)
    # A group and a replicate are weights of items.
    times = np.random.default_rng(seed).integers(0, 3, len(codes))
    twice = codes[np.repeat(np.arange(len(codes)), times)]
    expected = cohen_kappa_score(twice[:, 0], twice[:, 1], labels=range(5), weights=weights)
    own = weighted_kappa_statistic(weights)(evidence, times.astype(float))
    assert float(own) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("weights", "power"), [("linear", 1), ("quadratic", 2)])
def test_weighted_kappa_of_uneven_numbers_by_its_definition(weights, power):
    levels = (-3.0, 0.5, 1.0, 40.0)
    codes, evidence = rated(7, levels)
    x, y = (np.array(levels)[codes[:, k]] for k in (0, 1))
    observed = (np.abs(x - y) ** power).mean()
    expected = (np.abs(x[:, None] - y[None, :]) ** power).mean()  # every x with every y
    own = weighted_kappa_statistic(weights)(evidence, np.ones(len(codes)))
    assert float(own) == pytest.approx(1.0 - observed / expected, rel=1e-12)


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
def test_of_two_answers_weighted_kappa_is_kappa(weights):
    codes, evidence = rated(3, (0.0, 1.0))
    own = float(weighted_kappa_statistic(weights)(evidence, np.ones(len(codes))))
    assert own == pytest.approx(value(cohen_kappa_statistic(), codes.tolist()), abs=1e-12)


@pytest.mark.parametrize(
    "statistic",
    [
        krippendorff_alpha_statistic("nominal"),
        krippendorff_alpha_statistic("ordinal"),
        krippendorff_alpha_statistic("interval"),
        fleiss_kappa_statistic(),
    ],
)
def test_answers_that_are_all_alike_say_nothing_of_chance(statistic):
    assert np.isnan(value(statistic, [[1, 1], [1, 1, 1]]))
    assert np.isnan(value(statistic, [[1], [2]]))  # no pair at all


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_agreement_is_none_at_random_and_one_when_perfect(scale):
    rng = np.random.default_rng(0)
    said = rng.integers(0, 4, (4_000, 3))
    assert value(krippendorff_alpha_statistic(scale), said.tolist()) == pytest.approx(0.0, abs=0.03)
    perfect = [[x] * 3 for x in said[:, 0].tolist()]
    assert value(krippendorff_alpha_statistic(scale), perfect) == pytest.approx(1.0, abs=1e-12)


def test_agreement_beyond_chance_rests_on_the_items_with_rarer_answers():
    """Of 30 items four hold an answer other than 0, and two agree on it in two: 2 × 4 and 3 × 2."""
    items = [[0, 0]] * 26 + [[0, 1]] * 2 + [[1, 1]] * 2
    for statistic in (
        krippendorff_alpha_statistic("nominal"),
        krippendorff_alpha_statistic("ordinal"),
        fleiss_kappa_statistic(),
        cohen_kappa_statistic(),
        weighted_kappa_statistic("linear"),
        weighted_kappa_statistic("quadratic"),
    ):
        sums = statistic.columns(table(items)).sum(axis=0)
        assert float(statistic.count_rarest_class(sums)) == 6.0
        assert (
            float(statistic.count_rarest_class(statistic.columns(table([[0, 1]] * 9)).sum(axis=0)))
            == 1.0
        )


def test_tallies_count_answers():
    assert count_labels_by_item(table([[0, 2, 2], [], [1]])).tolist() == [
        [1, 0, 2],
        [0, 0, 0],
        [0, 1, 0],
    ]
