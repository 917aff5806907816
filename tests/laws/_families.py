"""Worlds in which nothing differs, and the family of tests that looks at ten attributes."""

from __future__ import annotations

import numpy as np

from isolux.core.spec import ComparisonSettings
from isolux.disparity.family import AttributeTests
from isolux.disparity.family import run_family_tests as run_family
from isolux.stats.multiplicity import adjust_p_holm
from isolux_worlds._random_streams import beta_quantile_from_mean_and_icc
from isolux_worlds.populations.rates import simulate_crossed
from tests.laws._worlds import RECALL, Estimates, a_mean, crossed_entries, estimates_of

ATTRIBUTES, GROUPS, SUBJECTS, PHOTOS = 10, 3, 90, 10  # 30 subjects a group
_NAMES = {f"a{k}": GROUPS for k in range(ATTRIBUTES)}


def false_claims(kind: str, *, rate: float, icc: float, worlds: int, replicates: int, seed: int):
    """Count worlds in which max-T and Holm each claim at least one difference."""
    rng = np.random.default_rng([seed, int(100 * rate), int(100 * icc)])
    by_max_t = by_holm = tests = 0
    raw: list[float] = []
    name = ""
    for number in range(worlds):
        estimates = _WORLDS[kind](rng, rate, icc)
        spec = ComparisonSettings(replicates=replicates, seed=1000 * seed + number)
        family = run_family(estimates, spec, {})
        adjusted = np.concatenate([x.adjusted for x in family.tested.values()])
        p = np.concatenate([x.null.p_value for x in family.tested.values()])
        true = np.concatenate([_is_null(kind, key, x) for key, x in family.tested.items()])
        by_max_t += bool(np.nanmin(adjusted[true]) <= 0.05)
        by_holm += bool(np.nanmin(adjust_p_holm(p)[true]) <= 0.05)
        raw.append(float(np.nanmean(p[true] <= 0.05)))
        tests = sum(family.sizes.values())
        name = ", ".join(sorted({x.test for x in family.tested.values()}))
    return {
        "worlds": kind, "rate": rate, "icc": icc, "test": name, "tests": tests,
        "max-t": round(by_max_t / worlds, 4), "holm": round(by_holm / worlds, 4),
        "one test": round(float(np.mean(raw)), 4),
    }  # fmt: skip


def _is_null(kind: str, key: tuple[str, int], tested: AttributeTests) -> np.ndarray:
    """Tell which tests are of a true null: of ``a0`` only the pair that leaves g0 out."""
    if kind != _APART or key[0] != "a0":
        return np.ones(len(tested.contrasts), dtype=bool)
    return (tested.contrasts[:, 0] == 1) & (tested.contrasts[:, 1] == 2)


def _crossed(rng, rate, icc, *, within: bool, subjects: int = SUBJECTS) -> Estimates:
    made = simulate_crossed(
        rng, attributes=ATTRIBUTES, groups=GROUPS, subjects=subjects, photos=PHOTOS, rate=rate,
        icc=icc, within_cluster=within, worlds=1,
    )  # fmt: skip
    entries = crossed_entries(made.photos[0], [made.successes[0]])
    return estimates_of(entries, _NAMES, (a_mean(1),))


def _one_apart(rng, rate, icc) -> Estimates:
    """Only the first group of the first attribute differs, by 30 points."""
    dealt = rng.permuted(np.tile(np.arange(SUBJECTS) % GROUPS, (ATTRIBUTES, 1)), axis=1)
    luck = rng.random(SUBJECTS)
    own = np.where(
        dealt[0] == 0,
        beta_quantile_from_mean_and_icc(np.array(rate - 0.3), icc, luck),
        beta_quantile_from_mean_and_icc(np.array(rate), icc, luck),
    )
    right = rng.binomial(PHOTOS, own)
    member = (dealt[:, None] == np.arange(GROUPS)[None, :, None]).astype(np.int64)
    return estimates_of(crossed_entries(member * PHOTOS, [member * right]), _NAMES, (a_mean(1),))


def _overlapping(rng, rate, icc) -> Estimates:
    """Everyone has one value of each attribute, a third of the people a second one."""
    right = rng.binomial(
        PHOTOS, beta_quantile_from_mean_and_icc(np.array(rate), icc, rng.random(SUBJECTS))
    )
    first = rng.permuted(np.tile(np.arange(SUBJECTS) % GROUPS, (ATTRIBUTES, 1)), axis=1)
    second = (first + rng.integers(1, GROUPS, first.shape)) % GROUPS
    two = rng.random(first.shape) < 1 / 3
    member = np.zeros((ATTRIBUTES, GROUPS, SUBJECTS), dtype=np.int64)
    a, s = np.indices(first.shape)
    member[a, first, s] = 1
    member[a[two], second[two], s[two]] = 1
    columns, rows, cluster = crossed_entries(member * PHOTOS, [member * right])
    columns[:SUBJECTS] = np.stack(
        [np.full(SUBJECTS, PHOTOS), right, np.full(SUBJECTS, PHOTOS)], axis=1
    )
    return estimates_of((columns, rows, cluster), _NAMES, (a_mean(1),))


def _prevalence(rng, rate, icc) -> Estimates:
    """Accuracy, and the recall of a class that is 20, 50 and 80 % of the groups of ``a0``."""
    dealt = rng.permuted(np.tile(np.arange(SUBJECTS) % GROUPS, (ATTRIBUTES, 1)), axis=1)
    positives = rng.binomial(PHOTOS, np.array([0.2, 0.5, 0.8])[dealt[0]])
    own = beta_quantile_from_mean_and_icc(np.array(rate), icc, rng.random(SUBJECTS))
    found = rng.binomial(positives, own)
    right = found + rng.binomial(PHOTOS - positives, own)
    member = (dealt[:, None] == np.arange(GROUPS)[None, :, None]).astype(np.int64)
    photos = member * PHOTOS
    entries = crossed_entries(
        photos, [member * right, member * found], [photos, member * positives]
    )
    return estimates_of(entries, _NAMES, (a_mean(1), a_mean(3, RECALL)))


def _rows_as_clusters(rng, rate, icc) -> Estimates:
    """What a test that permutes photos does: every photo its own cluster."""
    own = beta_quantile_from_mean_and_icc(np.array(rate), icc, rng.random(SUBJECTS))
    right = (rng.random((SUBJECTS, PHOTOS)) < own[:, None]).astype(np.int64).ravel()
    dealt = rng.permuted(np.tile(np.arange(SUBJECTS) % GROUPS, (ATTRIBUTES, 1)), axis=1)
    member = (dealt[:, None] == np.arange(GROUPS)[None, :, None]).astype(np.int64)
    member = np.repeat(member, PHOTOS, axis=2)
    return estimates_of(crossed_entries(member, [member * right]), _NAMES, (a_mean(1),))


_APART = "one group truly differs"
_WORLDS = {
    _APART: _one_apart,
    "constant within subjects": lambda *a: _crossed(*a, within=False),
    "varying within subjects": lambda *a: _crossed(*a, within=True),
    "100 subjects a group, constant": lambda *a: _crossed(*a, within=False, subjects=300),
    "100 subjects a group, varying": lambda *a: _crossed(*a, within=True, subjects=300),
    "overlapping groups": _overlapping,
    "unequal prevalence, two metrics": _prevalence,
    "photos permuted (naive)": _rows_as_clusters,
}
