"""Which units are drawn: by a seed, in proportion, with the design written down."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare

from isolux.core.errors import FileError, SpecError, TableError
from isolux_curate.quality.sampling import (
    DESIGN_FILE,
    allocate_sample_to_strata,
    draw_stratified_units,
    read_sampling_design,
)

UNITS = pl.DataFrame(
    {"unit_id": [f"u{k}" for k in range(200)], "stratum": ["a"] * 150 + ["b"] * 45 + ["c"] * 5}
)


def test_a_draw_depends_on_seed_type_and_ids_alone() -> None:
    drawn = draw_stratified_units(UNITS, "boxes", 40, 3)
    assert drawn.height == 40
    assert drawn.equals(
        draw_stratified_units(UNITS.sample(fraction=1.0, shuffle=True, seed=1), "boxes", 40, 3)
    )
    assert not drawn.equals(draw_stratified_units(UNITS, "boxes", 40, 4))
    assert not drawn.equals(draw_stratified_units(UNITS, "masks", 40, 3))


def test_a_larger_sample_holds_the_smaller_one() -> None:
    few, more = (set(draw_stratified_units(UNITS, "boxes", n, 3)["unit_id"]) for n in (40, 80))
    assert few < more


def test_strata_are_drawn_from_in_proportion() -> None:
    # 40 of 200: 30, 9 and 1, but two of each at least, and 40 in all.
    counts = (
        draw_stratified_units(UNITS, "boxes", 40, 0)
        .group_by("stratum")
        .len()
        .sort("stratum")["len"]
    )
    assert counts.to_list() == [29, 9, 2]


@pytest.mark.parametrize("seed", range(20))
def test_allocations_add_up(seed: int) -> None:
    chance = np.random.default_rng(seed)
    have = chance.integers(1, 400, chance.integers(1, 12)).tolist()
    size = int(chance.integers(1, sum(have) + 20))
    given = allocate_sample_to_strata(have, size)
    assert all(0 < g <= h for g, h in zip(given, have, strict=True))
    least = sum(min(2, h) for h in have)
    assert sum(given) == max(min(size, sum(have)), least)


@pytest.mark.law
def test_every_unit_is_as_likely_to_be_drawn() -> None:
    places = {unit: k for k, unit in enumerate(UNITS["unit_id"])}
    times = np.zeros(len(places))
    one = UNITS.with_columns(stratum=pl.lit(""))
    for seed in range(300):
        for unit in draw_stratified_units(one, "boxes", 50, seed)["unit_id"]:
            times[places[unit]] += 1
    # Without replacement counts vary less than chi-square allows: too even is no fault here.
    assert chisquare(times).pvalue > 1e-4


def test_a_unit_twice_is_refused() -> None:
    with pytest.raises(TableError, match="a unit is listed twice"):
        draw_stratified_units(pl.concat([UNITS, UNITS]), "boxes", 3, 0)


def test_designs_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no sample"):
        read_sampling_design(tmp_path)
    (tmp_path / DESIGN_FILE).write_text(json.dumps({"strata": [{"type": "boxes"}]}))
    with pytest.raises(SpecError, match="not the design of a sample"):
        read_sampling_design(tmp_path)
