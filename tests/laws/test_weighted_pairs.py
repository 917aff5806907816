"""Do intervals of face verification hold where people stand for unequally many?

People of two tones who do not differ. Either the sample holds three times as many of those who look
alike (and are recognised less well) as the population, or weights are noise. The truth of a rate is
written out over the population's kinds of people. Beside: the same audit without weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import isolux
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES
from tests.laws._figures import FULL, at_least, at_most, record, scaled
from tests.laws._measured import measured

pytestmark = pytest.mark.law
WORLDS = scaled(300, 20)
ALIKE, OFTEN, GENUINE = 0.6, 0.3, 3.0
INFO = DatasetInfo(title="x", summary="x", references=())


@dataclass(frozen=True)
class Cell:
    """So many people, this false match rate, and how much of a similarity is a person's own."""

    people: int
    rate: float
    drawn: str
    own: float = 0.3

    def kinds(self) -> dict[float, float]:
        """Give the population's shares of people by how alike they look."""
        return {ALIKE: OFTEN, 0.0: 1 - OFTEN} if self.drawn == "look-alikes" else {0.0: 1.0}

    def truth(self) -> tuple[float, float]:
        """Return the threshold of the false match rate, and the false non-match rate there."""
        both = list(product(self.kinds().items(), repeat=2))

        def over(threshold: float) -> float:
            passed = sum(p * q * norm.sf(threshold - a - b) for (a, p), (b, q) in both)
            return float(passed - self.rate)

        at = float(brentq(over, -5.0, 9.0))
        missed = sum(p * norm.cdf(at - GENUINE + a) for a, p in self.kinds().items())
        return at, float(missed)


CELLS = [
    Cell(80, 0.1, "look-alikes"),
    Cell(200, 0.1, "look-alikes"),
    Cell(80, 0.1, "noise"),
    Cell(200, 0.01, "noise"),
    Cell(80, 0.01, "look-alikes"),
    Cell(80, 0.1, "look-alikes", own=0.6),
]


def _world(cell: Cell, rng: np.random.Generator) -> tuple[Dataset, pl.DataFrame]:
    n = cell.people
    alike, weight = np.zeros(n), rng.lognormal(0.0, 0.6, n)
    if cell.drawn == "look-alikes":
        # Three times as often drawn: .3 x 3 / (.3 x 3 + .7) of the sample, each for a third.
        often = rng.random(n) < 3 * OFTEN / (3 * OFTEN + 1 - OFTEN)
        alike, weight = np.where(often, ALIKE, 0.0), np.where(often, 1.0, 3.0)
    own = alike + rng.normal(size=n) * (cell.own / 2) ** 0.5
    i, j = np.triu_indices(n, 1)
    i, j = i[i % 2 == j % 2], j[i % 2 == j % 2]  # of one tone: others are not asked here
    impostors = own[i] + own[j] + rng.normal(size=len(i)) * (1 - cell.own) ** 0.5
    genuine = GENUINE - alike + rng.normal(size=n)
    first, second = ([f"{photo}{k:03}" for k in range(n)] for photo in "ab")
    ids = first + second
    people = pl.DataFrame(
        {"instance_id": ids, "image_id": ids, "subject_id": first * 2, "cluster_id": first * 2}
    )
    told = {"tone": ["a", "b"] * n, "w": [repr(float(w)) for w in weight] * 2}
    attributes = pl.concat(
        ATTRIBUTES.conform(pl.DataFrame(
            {"unit_kind": "instance", "unit_id": ids, "attribute": name, "value": values}
        )) for name, values in told.items()
    )  # fmt: skip
    dataset = Dataset("x", INFO, INSTANCES.conform(people), attributes)
    pairs = pl.DataFrame(
        {"model": "m", "instance_id": [first[k] for k in i] + first,
         "other_id": [first[k] for k in j] + second, "score": np.r_[impostors, genuine]}
    )  # fmt: skip
    return dataset, pairs


def _held(run, truth: dict[str, float]) -> list[tuple[str, bool]]:
    rows = run.group_metrics.filter(pl.col("group") != "overall", pl.col("low").is_not_null())
    return [(r["metric"], r["low"] <= truth[r["metric"]] <= r["high"])
            for r in rows.to_dicts() if r["metric"] in truth]  # fmt: skip


@pytest.mark.parametrize("k", range(len(CELLS)) if FULL else [0, 3])
def test_rates_of_pairs_hold_where_people_stand_for_unequally_many(k):
    cell = CELLS[k]
    at, missed = cell.truth()
    truth = {"false_match_rate": cell.rate, "false_non_match_rate": missed}
    held: dict[str, list[bool]] = {name: [] for name in [*truth, "p", "without weights"]}
    for world in range(WORLDS):
        rng = np.random.default_rng([world, 12, k])
        dataset, pairs = _world(cell, rng)
        scores = isolux.score("face_verification", dataset, pairs, threshold=at, metrics=[*truth])
        settings = {"by": ("tone",), "replicates": 400, "min_units": 20, "min_clusters": 10}
        run = measured(scores, dataset, weight="w", **settings)
        for name, inside in _held(run, truth):
            held[name].append(inside)
        p = run.disparities.filter(
            pl.col("kind") == "omnibus_test", pl.col("metric").is_in([*truth])
        )
        held["p"] += (p["p_value"].drop_nulls() <= 0.05).to_list()
        if world < WORLDS / 5:
            plain = measured(scores, dataset, **settings)
            held["without weights"] += [inside for _, inside in _held(plain, truth)]
    rates = {name: float(np.mean(one)) for name, one in held.items()}
    row = {
        "people": cell.people, "false match rate": cell.rate, "weights go with": cell.drawn,
        "a person's own share": cell.own, "false match rate held, %": rates["false_match_rate"],
        "false non-match rate held, %": rates["false_non_match_rate"],
        "without weights held, %": rates["without weights"], "p <= .05, %": rates["p"],
    }  # fmt: skip
    record(f"weighted-pairs-{k}", [row], worlds=WORLDS, replicates=400)
    # Two groups of a world share nothing; two metrics of a group share its people.
    for name in truth:
        assert rates[name] >= at_least(0.94, WORLDS, full=0.905), row
    assert rates["p"] <= at_most(0.05, WORLDS, full=0.088), row
    if cell.drawn == "look-alikes" and FULL:
        assert rates["without weights"] < 0.9, row
