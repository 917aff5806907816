"""Test every pair of groups, every metric, and correct over all of them together.

The family is everything that was looked at: all pairs (or all comparisons with the reference), all
groups against everyone else, all metrics, all attributes and intersections. Where the joint null
is simulated the correction is max-T: a pair's adjusted p is the share of null worlds in which any
test of the family was as extreme. Which null is drawn depends on where the attribute varies:

- each cluster lies in one group: whole clusters are shuffled (``cluster permutation``);
- attributes that vary within clusters, or groups that share people: clusters' contributions get
  random signs (``cluster sign-flip``);
- metrics that are not means (balanced accuracy, AUC, calibration): the bootstrap's replicates,
  centred at the estimate and studentised (``centred bootstrap``).

The three kinds of replicates are drawn independently of one another (shuffles of attributes with
different domains share a stream, which makes their dependence arbitrary). Where tests of two kinds
are positively dependent this makes the joint maximum a little larger than it is, so the adjusted
p-values err on the side of caution.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from isolux.groups.estimates import Estimates
from isolux.stats.correlation import correlation_matrix
from isolux.stats.design import IntArray
from isolux.stats.multiplicity import (
    benjamini_hochberg,
    bonferroni,
    critical_value,
    holm,
    max_t,
)
from isolux.stats.nulls import REST, NullTest, centred_bootstrap, cluster_permutation, sign_flip
from isolux.stats.shuffling import parts_clusters, shuffle
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, signs
from isolux.vocabulary.spec import Comparing

__all__ = ["Family", "Tested", "adjust", "standard_error_of_difference", "test_family"]

PERMUTATION, SIGN_FLIP, CENTRED = "cluster permutation", "cluster sign-flip", "centred bootstrap"


@dataclass(frozen=True, slots=True)
class Tested:
    """The tests of one metric over one attribute's groups.

    Parameters
    ----------
    members : [g] int
        The judged groups, as rows of the estimates.
    contrasts : [h, 2] int
        Positions in ``members``; the second is ``REST`` for "everyone else".
    null : NullTest
        Observed t, raw p, and the largest |t| of each replicate.
    adjusted : [h] float
        Family-adjusted p.
    test : str
        Which null was drawn.
    referenced : bool
        Whether the second group of every pair is the reference.
    """

    members: IntArray
    contrasts: IntArray
    null: NullTest
    test: str
    adjusted: FloatArray = field(default_factory=lambda: np.zeros(0))
    referenced: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """All tests of an audit and what they have in common.

    ``tested`` is keyed by attribute and measure; ``null_max [r]`` is the largest |t| over the
    family; ``critical`` is the |t| that an adjusted p of 1 − level asks for.
    """

    tested: dict[tuple[str, int], Tested]
    null_max: FloatArray
    size: int
    critical: float
    name: str


def test_family(estimates: Estimates, spec: Comparing, references: dict[str, str]) -> Family:
    """Run every test and adjust over the family.

    Parameters
    ----------
    estimates : Estimates
    spec : Comparing
        Correction, level, replicates, seed.
    references : dict of str to str
        Attributes compared with one group only, and that group.
    """
    plans = _plan(estimates, references)
    tested: dict[tuple[str, int], Tested] = {}
    tested.update(_permuted(estimates, plans, spec))
    tested.update(_flipped(estimates, plans, spec))
    tested.update(_centred(estimates, plans))
    tested = {
        key: replace(tested[key], referenced=key[0] in references) for key in plans if key in tested
    }
    null_max = np.zeros(spec.replicates)
    for one in tested.values():
        null_max = np.maximum(null_max, one.null.largest)
    size = int(sum(np.isfinite(one.null.t).sum() for one in tested.values()))
    tested = _adjust(tested, null_max, spec)
    name = (
        f"all {'comparisons' if references else 'pairs'} and groups against the rest, "
        f"metrics and attributes of this audit (m = {size})"
    )
    return Family(tested, null_max, size, _critical(null_max, size, spec), name)


Plans = dict[tuple[str, int], tuple[IntArray, IntArray]]


def _plan(estimates: Estimates, references: dict[str, str]) -> Plans:
    """List, for each attribute and measure, the judged groups and the contrasts among them."""
    judged = estimates.judged()
    plans: Plans = {}
    for attribute in estimates.domain_of:
        rows = estimates.members(attribute)
        for j in range(len(estimates.measures)):
            members = rows[judged[rows, j]]
            if len(members) < 2:
                continue
            reference = references.get(attribute)
            at = [k for k, g in enumerate(members) if estimates.groups[g].name == reference]
            if reference is not None and not at:
                continue  # the reference itself is too small: nothing can be held against it
            if at:
                others = np.array([k for k in range(len(members)) if k != at[0]])
                pairs = np.column_stack([others, np.full(len(others), at[0])])
            else:
                pairs = np.column_stack(np.triu_indices(len(members), 1))
            rest = np.column_stack([np.arange(len(members)), np.full(len(members), REST)])
            plans[attribute, j] = members, np.concatenate([pairs, rest]).astype(np.int64)
    return plans


def _parting(estimates: Estimates, attributes: list[str]) -> dict[str, bool]:
    return {
        a: parts_clusters(estimates.design, estimates.members(a), estimates.domain_of[a])
        for a in attributes
    }


def _is_mean(estimates: Estimates, j: int) -> bool:
    return estimates.measures[j].mean is not None


def _within(contrasts: IntArray, members: IntArray, rows: IntArray) -> IntArray:
    """Re-point contrasts from judged groups to positions among all of the attribute's groups."""
    position = np.searchsorted(rows, members)
    first = position[contrasts[:, 0]]
    second = np.where(contrasts[:, 1] == REST, REST, position[contrasts[:, 1]])
    return np.column_stack([first, second])


def _permuted(estimates: Estimates, plans: Plans, spec: Comparing) -> dict[tuple[str, int], Tested]:
    """Shuffle clusters, once for all attributes that have the same domain."""
    attributes = list(dict.fromkeys(a for a, j in plans if _is_mean(estimates, j)))
    parting = [a for a, parts in _parting(estimates, attributes).items() if parts]
    means = [j for j in range(len(estimates.measures)) if _is_mean(estimates, j)]
    columns = [estimates.measures[j].mean or (0, 0) for j in means]
    results: dict[tuple[str, int], Tested] = {}
    for domain in dict.fromkeys(estimates.domain_of[a] for a in parting):
        same = [a for a in parting if estimates.domain_of[a] == domain]
        moved = shuffle(
            estimates.design,
            [estimates.members(a) for a in same],
            domain,
            columns,
            replicates=spec.replicates,
            seed=spec.seed,
        )
        for attribute, shuffles in zip(same, moved, strict=True):
            rows = estimates.members(attribute)
            for m, j in enumerate(means):
                if (attribute, j) in plans:
                    members, contrasts = plans[attribute, j]
                    null = cluster_permutation(shuffles, m, _within(contrasts, members, rows))
                    results[attribute, j] = Tested(members, contrasts, null, PERMUTATION)
    return results


def _flipped(estimates: Estimates, plans: Plans, spec: Comparing) -> dict[tuple[str, int], Tested]:
    """Flip signs of clusters for attributes that vary within them or whose groups overlap."""
    attributes = list(dict.fromkeys(a for a, j in plans if _is_mean(estimates, j)))
    varying = {a for a, parts in _parting(estimates, attributes).items() if not parts}
    wanted = [(a, j) for a, j in plans if a in varying and _is_mean(estimates, j)]
    design = estimates.design
    held = {}
    for attribute, j in wanted:
        rows = np.append(plans[attribute, j][0], estimates.domain_of[attribute])
        sums, counts = estimates.measures[j].mean or (0, 0)
        held[attribute, j] = design.rows(rows, sums), design.rows(rows, counts)
    flipped = {
        key: np.empty((2 * sums.shape[0], spec.replicates)) for key, (sums, _) in held.items()
    }
    at = 0
    for rng, size in blocks(spec.replicates if held else 0, spec.seed, "signs"):
        drawn = signs(rng, design.copies, size)
        for key, (sums, counts) in held.items():
            width = sums.shape[0]
            flipped[key][:width, at : at + size] = sums @ drawn
            flipped[key][width:, at : at + size] = counts @ drawn
        at += size
    results = {}
    for key, (sums, counts) in held.items():
        members, contrasts = plans[key]
        null = sign_flip(sums, counts, design.copies, contrasts, flipped[key])
        results[key] = Tested(members, contrasts, null, SIGN_FLIP)
    return results


def _centred(estimates: Estimates, plans: Plans) -> dict[tuple[str, int], Tested]:
    """Centre the replicates of statistics that are not means; "the rest" is held to everyone."""
    results = {}
    for (attribute, j), (members, contrasts) in plans.items():
        if _is_mean(estimates, j):
            continue
        rows = np.append(members, 0)  # the last is everyone
        first = rows[contrasts[:, 0]]
        second = rows[np.where(contrasts[:, 1] == REST, len(members), contrasts[:, 1])]
        value, drawn = estimates.value[:, j], estimates.replicates[:, j]
        observed = value[first] - value[second]
        se = standard_error_of_difference(estimates, j, first, second)
        pair = contrasts[:, 1] != REST
        test = centred_bootstrap(observed, drawn[first] - drawn[second], se, pair)
        results[attribute, j] = Tested(members, contrasts, test, CENTRED)
    return results


def standard_error_of_difference(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> FloatArray:
    """Return the standard error of the groups' difference, shared people accounted for."""
    rho = correlation(estimates, j, first, second)
    a, b = estimates.standard_error[first, j], estimates.standard_error[second, j]
    return np.asarray(np.sqrt(np.maximum(a * a + b * b - 2.0 * rho * a * b, 0.0)))


def correlation(estimates: Estimates, j: int, first: IntArray, second: IntArray) -> FloatArray:
    """Correlation of two groups' replicates; 0 where one does not vary."""
    rows, where = np.unique(np.concatenate([first, second]), return_inverse=True)
    table = correlation_matrix(estimates.replicates[rows, j])
    return table[where[: len(first)], where[len(first) :]]


def _adjust(
    tested: dict[tuple[str, int], Tested], null_max: FloatArray, spec: Comparing
) -> dict[tuple[str, int], Tested]:
    if not tested:
        return tested
    every_p = np.concatenate([one.null.p_value for one in tested.values()])
    every_t = np.concatenate([one.null.t for one in tested.values()])
    adjusted = adjust(every_t, every_p, null_max, spec.correction)
    parts = np.split(adjusted, np.cumsum([len(one.null.t) for one in tested.values()])[:-1])
    return {
        key: replace(one, adjusted=part)
        for (key, one), part in zip(tested.items(), parts, strict=True)
    }


def adjust(t: FloatArray, p: FloatArray, null_max: FloatArray, correction: str) -> FloatArray:
    """Adjust over a family: by its largest |t| on each replicate, or from the raw p-values."""
    if correction == "max-t":
        return max_t(t, null_max)
    by_name = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}
    return by_name[correction](p) if correction in by_name else p


def _critical(null_max: FloatArray, size: int, spec: Comparing) -> float:
    from scipy.special import ndtri

    alpha = 1.0 - spec.level
    if spec.correction == "max-t" and size:
        return float(critical_value(null_max, alpha))
    tests = size if spec.correction in ("holm", "bonferroni") else 1
    return float(ndtri(1.0 - alpha / (2.0 * max(tests, 1))))
