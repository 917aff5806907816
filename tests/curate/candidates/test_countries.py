"""Quotas by country: rounds come to the stated balance, and leave out countries with enough."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux_curate.candidates.files import compute_country_quotas

GROUPS = ["Black", "East Asian", "White"]
PLANTED = {  # composition of each country, and its share among all photos
    "US": ([0.15, 0.1, 0.75], 0.5), "France": ([0.1, 0.05, 0.85], 0.3),
    "Kenya": ([0.95, 0.0, 0.05], 0.1), "Japan": ([0.0, 0.97, 0.03], 0.1),
}  # fmt: skip


def _drawn(rng: np.random.Generator, counts: dict[str, int]) -> pl.DataFrame:
    rows = [
        (country, GROUPS[k])
        for country, n in counts.items()
        for k in rng.choice(3, n, p=PLANTED[country][0])
    ]
    return pl.DataFrame(rows, schema=["country", "group"], orient="row")


def test_rounds_come_to_the_balance_from_a_first_one_that_is_far_from_it() -> None:
    """2,000 at random are 65 % White; three rounds end within 2 points of a third each."""
    rng = np.random.default_rng(1)
    seen = _drawn(rng, {c: int(2000 * share) for c, (_, share) in PLANTED.items()})
    assert (seen["group"] == "White").mean() > 0.6
    takes = []
    for _ in range(3):
        found = compute_country_quotas(seen, n_photos=2000).countries
        takes.append(dict(found.select("country", "take").iter_rows()))
        assert sum(takes[-1].values()) == 2000
        seen = pl.concat([seen, _drawn(rng, takes[-1])])
    assert takes[0]["US"] == takes[0]["France"] == 0  # as FairFace: left out once there is enough
    shares = seen["group"].value_counts(normalize=True)["proportion"]
    assert (shares - 1 / 3).abs().max() < 0.02


def test_a_stated_balance_is_what_is_expected_after_the_round() -> None:
    rng = np.random.default_rng(2)
    seen = _drawn(rng, dict.fromkeys(PLANTED, 300))
    wanted = {"Black": 0.4, "East Asian": 0.4, "White": 0.2}
    found = compute_country_quotas(seen, n_photos=3000, target_share_by_group=wanted)
    assert found.groups["wanted"].to_list() == [0.4, 0.4, 0.2]
    assert (found.groups["share"] - found.groups["wanted"]).abs().max() < 0.005


def test_more_than_every_country_may_give_is_refused() -> None:
    seen = _drawn(np.random.default_rng(3), dict.fromkeys(PLANTED, 300))
    with pytest.raises(TableError, match="the countries do not have that many photos"):
        compute_country_quotas(seen, n_photos=1000, max_photos_per_country=10)


def test_a_country_of_two_photos_says_little(monkeypatch) -> None:
    """Two photos of Chad are both of the short group; with no prior all would be taken there."""
    seen = pl.DataFrame({"country": ["US"] * 80 + ["Kenya"] * 30 + ["Chad"] * 2,
                         "group": ["a"] * 80 + ["b"] * 28 + ["a"] * 2 + ["b"] * 2})  # fmt: skip
    with_prior = compute_country_quotas(seen, n_photos=40).groups.filter(group="b")["expected"][0]
    monkeypatch.setattr("isolux_curate.candidates.files._PRIOR", 1e-9)
    without = compute_country_quotas(seen, n_photos=40).groups.filter(group="b")["expected"][0]
    assert with_prior < without


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (
            {"target_share_by_group": {"a": 0.5, "b": 0.6}},
            SpecError,
            "the shares of a balance sum to 1",
        ),
        (
            {"target_share_by_group": {"a": 0.5, "c": 0.5}},
            UnknownNameError,
            "there is no group named 'c'",
        ),
        ({"n_photos": 0}, SpecError, "there is nothing to compute from"),
    ],
)
def test_what_cannot_be_reckoned_is_refused(given, error, said) -> None:
    seen = pl.DataFrame({"country": ["US", "Kenya"], "group": ["a", "b"]})
    with pytest.raises(error, match=said):
        compute_country_quotas(seen, **({"n_photos": 10} | given))


def test_no_country_gives_more_than_the_cap() -> None:
    seen = _drawn(np.random.default_rng(4), dict.fromkeys(PLANTED, 300))
    free, capped = (
        dict(
            compute_country_quotas(seen, n_photos=1000, max_photos_per_country=most)
            .countries.select("country", "take")
            .iter_rows()
        )
        for most in (None, 350)
    )
    assert max(free.values()) > 350
    assert max(capped.values()) <= 350
    assert sum(capped.values()) == 1000
    with pytest.raises(TableError, match="at most 800"):
        compute_country_quotas(seen, n_photos=1000, max_photos_per_country=200)
    with pytest.raises(SpecError, match="nothing to compute from"):
        compute_country_quotas(seen, n_photos=1000, max_photos_per_country=0)
