"""Worlds of photos that are alike by subject and by photographer, drawn without the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from isolux.disparity.comparisons import MeanComparisons
from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.constants import MIN_EFFECTIVE_CLUSTERS
from isolux.stats.raking import Margins
from isolux.stats.sampling import Strata
from isolux.stats.survey_sums import (
    SurveyClusterSums,
    add_second_clustering,
    build_survey_cluster_sums,
)
from isolux.stats.test_inversion import z_statistics_by_test_inversion
from tests.laws._samples import MEASURE, Z

_MANY = 200_000
_SHARES = np.array([16.0, 4.0, 1.0]) / 21.0
_KINDS = np.array([0.3, 0.7])


@dataclass(frozen=True)
class Cell:
    """One kind of world: spreads of subjects and photographers in logits, and whose groups are."""

    rate: float = 0.7
    subjects: float = 0.8
    photographers: float = 0.8
    whose: str = "subject"
    sizes: tuple[int, int, int] = (100, 40, 600)
    weights: str = "none"
    """errors: drawn three times as often as other photos; strata: subjects of three, a logit apart
    in steps, of 76, 19 and 5 % of the people, drawn alike; population: two kinds of photos, 1.4
    logits apart, 30 and 70 % of the population and 75 and 25 % of the sample."""

    def row(self) -> dict[str, object]:
        """Return what names the cell in a table."""
        named = {} if self.weights == "none" else {"weights go with": self.weights}
        return {
            **named,
            "rate": self.rate,
            "subjects' spread": self.subjects,
            "photographers' spread": self.photographers,
            "attribute of the": self.whose,
        }


@dataclass(frozen=True)
class World:
    """Photos: subject, photographer, right or wrong, group, weight, stratum of subject, kind."""

    subject: np.ndarray
    photographer: np.ndarray
    right: np.ndarray
    group: np.ndarray
    weight: np.ndarray
    stratum: np.ndarray
    kind: np.ndarray


def draw(rng: np.random.Generator, cell: Cell) -> World:
    """Draw a world in which the groups do not differ in the population."""
    one, two, n = cell.sizes
    if cell.weights == "errors":
        n *= 2
    a, b = rng.normal(0.0, cell.subjects, one), rng.normal(0.0, cell.photographers, two)
    subject, photographer = rng.integers(0, one, n), rng.integers(0, two, n)
    stratum, kind = np.arange(one) % 3, (rng.random(n) < 0.25).astype(np.int64)
    lean = np.log(cell.rate / (1.0 - cell.rate)) + a[subject] + b[photographer]
    if cell.weights == "strata":
        lean += np.array([-1.0, 0.0, 1.0])[stratum[subject]]
    if cell.weights == "population":
        lean += np.array([0.7, -0.7])[kind]
    right = (rng.random(n) < 1.0 / (1.0 + np.exp(-lean))).astype(float)
    own = {"subject": (one, subject), "photographer": (two, photographer), "photo": (n, None)}
    size, at = own[cell.whose]
    drawn = rng.random(size) < 0.4
    group = (drawn if at is None else drawn[at]).astype(np.int64)
    chance = np.where(right > 0, 0.3, 0.9) if cell.weights == "errors" else np.ones(n)
    weight = 1.0 / chance
    if cell.weights == "strata":
        weight = (3.0 * _SHARES)[stratum[subject]]
    if cell.weights == "population":
        weight = (_KINDS / np.bincount(kind, minlength=2))[kind]
    kept = rng.random(n) < chance
    codes = [np.unique(x[kept], return_inverse=True)[1] for x in (subject, photographer)]
    of_subject = stratum[np.unique(subject[kept])]
    return World(*codes, right[kept], group[kept], weight[kept], of_subject, kind[kept])


def truth(cell: Cell) -> float:
    """Return the rate of a photo of anyone by anyone."""
    rng = np.random.default_rng(9)
    lean = np.log(cell.rate / (1.0 - cell.rate)) + rng.normal(0.0, cell.subjects, _MANY)
    lean += rng.normal(0.0, cell.photographers, _MANY)
    if cell.weights == "strata":
        lean += rng.choice([-1.0, 0.0, 1.0], _MANY, p=_SHARES)
    if cell.weights == "population":
        lean += rng.choice([0.7, -0.7], _MANY, p=_KINDS)
    return float((1.0 / (1.0 + np.exp(-lean))).mean())


def designs(world: World, cell: Cell) -> tuple[SurveyClusterSums, SurveyClusterSums]:
    """Lay a world out: clusters both ways, and those of subjects alone."""
    n = len(world.right)
    columns = csr_array(np.column_stack([world.right, np.ones(n)]))
    own = np.concatenate([np.zeros(n, dtype=np.int64), world.group + 1])
    entries = own, np.tile(np.arange(n), 2)
    strata = margins = None
    weight = world.weight / world.weight.mean()
    if cell.weights == "strata":
        strata = Strata(world.stratum, np.bincount(world.stratum, minlength=3))
    if cell.weights == "population":
        margins = Margins((world.kind,), (2,), np.ones(n))
    plain = build_cluster_sums(columns, world.subject, *entries, 3)
    one = build_survey_cluster_sums(columns, world.subject, entries, plain, weight, strata, margins)
    other = build_cluster_sums(columns, world.photographer, *entries, 3)
    clusters = world.subject, world.photographer
    return add_second_clustering(one, columns, clusters, entries, other, margins), one


def judge(
    cell: Cell, worlds: int, seed: int = 0, *, beside: Literal[1, 5] = 5
) -> dict[str, object]:
    """Return a cell's row: p at most .05 and coverage, clusters both ways and one way alone.

    ``beside``: every how many worlds one way alone is asked, which need not be known to a point.
    """
    rng, rate = np.random.default_rng(seed), truth(cell)
    p: dict[str, list[bool]] = {"both": [], "one": []}
    held: dict[str, list[bool]] = {"both": [], "one": []}
    for number in range(worlds):
        asked = ("both", "one") if number % beside == 0 else ("both",)
        for name, design in zip(asked, designs(draw(rng, cell), cell), strict=False):
            found = MeanComparisons.from_design(design, MEASURE, np.arange(3))
            apart = found.compare_pairs(np.array([1]), np.array([2]))
            p[name].append(bool(abs(z_statistics_by_test_inversion(apart, (Z,))[0]) >= Z))
            ends = found.means.score_interval(Z)
            kept = found.means.n_effective_clusters[1:] >= MIN_EFFECTIVE_CLUSTERS
            held[name] += ((ends.low <= rate) & (rate <= ends.high))[1:][kept].tolist()
    alone = "subjects alone" if beside == 1 else "subjects alone, a fifth of the worlds"
    return {
        **cell.row(),
        "p <= .05, %": float(np.mean(p["both"])),
        "covered where ok, %": float(np.mean(held["both"])) if held["both"] else None,
        f"{alone}: p <= .05, %": float(np.mean(p["one"])),
        f"{alone}: covered, %": float(np.mean(held["one"])),
    }
