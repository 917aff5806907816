"""Test every pair of groups, every metric, and correct over all of them together.

The family is everything that was looked at: all pairs (or all comparisons with the reference), all
groups against everyone else, all metrics, all attributes and intersections.

Each test asks how far the interval of its difference must reach to touch 0 (``stats/deviates``).
The answer is a normal deviate z, and p = 2 Phi(-|z|): interval and p-value are one statement. How
the tests of a family hang together is simulated: clusters' contributions to every difference get
one random normal weight each, which gives normal deviates with the right correlations over groups,
attributes and metrics. Max-T compares each |z| with the largest of these in every replicate.

Metrics that are not means (balanced accuracy, AUC) have the correlations of their bootstrap
replicates. They are drawn independently of the others: where the two are positively dependent this
makes the joint maximum a little larger than it is, and adjusted p-values err towards caution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.disparity.comparisons import Comparisons, compare_groups
from isolux.disparity.observed import Key, Plans, batches, is_among, looked_at, observed, others_of
from isolux.groups.estimates import Estimates
from isolux.io.threads import in_threads
from isolux.stats.constants import DEVIATE_STEP
from isolux.stats.deviates import two_sided
from isolux.stats.drawn_design import DrawnDesign, strata_of_varying
from isolux.stats.joint_law import Blocks, correlated_normals, correlation_matrix, joint_draws
from isolux.stats.multiplicity import benjamini_hochberg, bonferroni, critical_value, holm, max_t
from isolux.stats.nulls import REST, NullTest, null_test, score_deviates
from isolux.stats.shared_chance import apart_from_everyone, more_than_chance
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Comparing

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCORE, STUDENT, BOOTSTRAP = "score interval", "t interval", "bootstrap t interval"

_ROUNDING = 1e-12
"""Of values up to 1, a standard error below this is rounding: nothing varies, and nothing is
divided by it. Of smaller ones (errors in a large unit), as much smaller a one."""
_LONG = 5_000  # contrasts of a metric from which threads are worth it: some hundred groups
_AT_ONCE = 128  # pairs whose deviates are looked at together


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
        Observed deviate, raw p, and the largest deviate of each replicate.
    adjusted : [h] float
        Family-adjusted p.
    test : str
        Which interval is asked how far it must reach.
    compared : Comparisons
        Where intervals and what could be detected come from.
    referenced : bool
        Whether the second group of every pair is the reference.
    """

    members: IntArray
    contrasts: IntArray
    null: NullTest
    test: str
    compared: Comparisons
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


def test_family(
    estimates: Estimates,
    spec: Comparing,
    references: dict[str, str],
    *,
    share: float = 1.0,  # noqa: PT028 - no test, for all its name
) -> Family:
    """Run every test and adjust over the family."""
    plans = _plan(estimates, references, spec.min_units)
    found = {**_of_means(estimates, plans, spec), **_of_replicates(estimates, plans, spec)}
    tested = {key: replace(found[key], referenced=key[0] in references) for key in plans}
    null_max = np.zeros(spec.replicates)
    for one in tested.values():
        null_max = np.maximum(null_max, one.null.largest)
    size = int(sum(np.isfinite(one.null.t).sum() for one in tested.values()))
    share = share if spec.correction != "none" else 1.0
    critical = _critical(null_max, size, spec, share)
    if spec.correction == "max-t" and np.isfinite(critical):
        tested = {key: _settled(one, spec, critical) for key, one in tested.items()}
    tested = _adjust(tested, null_max, spec, share)
    name = (
        f"all {'comparisons' if references else 'pairs'} and groups against the rest, "
        f"metrics and attributes of this audit (m = {size})"
    )
    if share < 1.0:
        name += f", {100 * share:g} % of the error rate of the report"
    return Family(tested, null_max, size, critical, name)


def at_once(contrasts: Iterable[IntArray]) -> int:
    """Say how many metrics are worth comparing at once, in threads: one, where groups are few."""
    return 4 if max(map(len, contrasts), default=0) >= _LONG else 1


def _plan(estimates: Estimates, references: dict[str, str], least: int) -> Plans:
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
            held = np.flatnonzero(others_of(estimates, members, j) >= max(least, 1))
            held = held if judged[0, j] and is_among(estimates, attribute, j) else held[:0]
            rest = np.column_stack([held, np.full(len(held), REST)])
            plans[attribute, j] = members, np.concatenate([pairs, rest]).astype(np.int64)
    return plans


def _is_mean(estimates: Estimates, j: int) -> bool:
    return estimates.measures[j].mean is not None


def _of_means(estimates: Estimates, plans: Plans, spec: Comparing) -> dict[tuple[str, int], Tested]:
    """Test means; one draw of the clusters' weights carries all metrics and attributes."""
    from scipy.sparse import csr_array, vstack

    design, wanted = estimates.design, [key for key in plans if _is_mean(estimates, key[1])]
    if not wanted:
        return {}
    used: list[csr_array] = []
    at, chance = {}, {}
    for attribute, j in wanted:
        rows = np.append(plans[attribute, j][0], estimates.domain_of[attribute])
        sums, counts = (design.rows(rows, q) for q in estimates.measures[j].mean_columns)
        at[attribute, j] = sums, counts
        if isinstance(design, DrawnDesign) and not design.is_plain:
            of_sum, of_count = estimates.measures[j].mean_columns
            chance[attribute, j] = design.varying(rows, of_sum), design.varying(rows, of_count)
        used += chance.get((attribute, j), (sums, counts))
    strata = strata_of_varying(design)
    rows = csr_array(vstack(used))
    copies = design.copies if not chance else np.ones(rows.shape[1], dtype=np.int64)
    apart = _attributes_apart(at, chance, design.copies, copies)
    drawn = joint_draws(rows, copies, spec.replicates, spec.seed, strata, apart)
    stops = np.cumsum([2 * sums.shape[0] for sums, _ in at.values()])
    own = dict(zip(at, np.split(drawn, stops), strict=False))

    def test(key: Key, compared: Comparisons, z: FloatArray) -> Tested:
        members, contrasts = plans[key]
        law = score_deviates(*at[key], design.copies, contrasts, own[key], strata, chance.get(key))
        null = null_test(z, law, contrasts[:, 1] != REST, two_sided)
        shares = getattr(compared, "means").shares  # noqa: B009 - a protocol has no fields
        return Tested(members, contrasts, null, SCORE if shares else STUDENT, compared)

    def test_all(keys: list[Key]) -> dict[Key, Tested]:
        return {key: test(key, *looked) for key, looked in looked_at(estimates, plans, keys, spec)}

    most = at_once(plans[key][1] for key in wanted)
    parts = in_threads(test_all, batches(estimates, wanted), most=most)
    return {key: one for part in parts for key, one in part.items()}


_Rows = dict[tuple[str, int], tuple["csr_array", "csr_array"]]


def _attributes_apart(
    at: _Rows, chance: _Rows, of_sums: IntArray, of_chance: IntArray
) -> Blocks | None:
    """Say what different attributes' tests have in common beyond chance; None of one attribute."""
    number = {attribute: k for k, attribute in enumerate(dict.fromkeys(name for name, _ in at))}
    if len(number) < 2:
        return None
    held: list[list[tuple[csr_array, csr_array]]] = [[] for _ in number]
    of = []
    for (attribute, j), (sums, counts) in at.items():
        totals = np.asarray(sums @ of_sums), np.asarray(counts @ of_sums)
        varying = chance.get((attribute, j), (sums, counts))
        held[number[attribute]].append(apart_from_everyone(*varying, totals))
        of += [number[attribute]] * 2 * sums.shape[0]
    return Blocks(np.array(of), more_than_chance(held, of_chance))


def _of_replicates(
    estimates: Estimates, plans: Plans, spec: Comparing
) -> dict[tuple[str, int], Tested]:
    """Test statistics that are not means; "the rest" is everyone."""
    results = {}
    for number, ((attribute, j), (members, contrasts)) in enumerate(plans.items()):
        if _is_mean(estimates, j):
            continue
        rows = np.append(members, 0)
        rho = correlation_matrix(estimates.replicates[rows, j])
        se = estimates.standard_error[rows, j]
        drawn = correlated_normals(rho, spec.replicates, spec.seed + number) * se[:, None]
        second = np.where(contrasts[:, 1] == REST, len(members), contrasts[:, 1])
        first_row, second_row = rows[contrasts[:, 0]], rows[second]
        scale = standard_error_of_difference(estimates, j, first_row, second_row)
        usable = np.where(scale > _rounding(estimates, j), scale, np.nan)
        law = _apart(drawn, (contrasts[:, 0], second), usable)
        compared = compare_groups(estimates, attribute, j)
        z = observed(compared, [(members, contrasts)], spec)[0]
        null = null_test(z, law, contrasts[:, 1] != REST, two_sided)
        results[attribute, j] = Tested(members, contrasts, null, BOOTSTRAP, compared)
    return results


def _apart(
    drawn: FloatArray, pairs: tuple[IntArray, IntArray], scale: FloatArray
) -> Iterator[FloatArray]:
    """Yield the differences of pairs in standard errors, some pairs at a time."""
    first, second = pairs
    for start in range(0, len(first), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        yield (drawn[first[some]] - drawn[second[some]]) / scale[some, None]


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


def untested(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> npt.NDArray[np.bool_]:
    """Tell which groups are apart though neither varies: there is no law to test by."""
    a, b = estimates.value[first, j], estimates.value[second, j]
    error = np.maximum(estimates.standard_error[first, j], estimates.standard_error[second, j])
    least = _rounding(estimates, j)
    return np.asarray((error <= least) & (np.abs(a - b) > least))


def _rounding(estimates: Estimates, j: int) -> float:
    """Return the standard error below which a measure's values do not vary."""
    size = np.abs(estimates.value[:, j])
    return _ROUNDING * min(float(np.max(size, where=np.isfinite(size), initial=0.0)), 1.0)


def _settled(tested: Tested, spec: Comparing, critical: float) -> Tested:
    """Compute deviates next to the critical value again: p and simultaneous interval agree."""
    near = np.flatnonzero(np.abs(np.abs(tested.null.t) - critical) <= DEVIATE_STEP)
    if not len(near):
        return tested
    t, p = tested.null.t.copy(), tested.null.p_value.copy()
    plan = tested.members, tested.contrasts[near]
    t[near] = observed(tested.compared, [plan], spec, critical)[0]
    p[near] = two_sided(t[near])
    return replace(tested, null=replace(tested.null, t=t, p_value=p))


def _adjust(
    tested: dict[tuple[str, int], Tested], null_max: FloatArray, spec: Comparing, share: float
) -> dict[tuple[str, int], Tested]:
    if not tested:
        return tested
    every_p = np.concatenate([one.null.p_value for one in tested.values()])
    every_t = np.concatenate([one.null.t for one in tested.values()])
    adjusted = np.minimum(adjust(every_t, every_p, null_max, spec.correction) / share, 1.0)
    parts = np.split(adjusted, np.cumsum([len(one.null.t) for one in tested.values()])[:-1])
    return {
        key: replace(one, adjusted=part)
        for (key, one), part in zip(tested.items(), parts, strict=True)
    }


def adjust(t: FloatArray, p: FloatArray, null_max: FloatArray, correction: str) -> FloatArray:
    """Adjust over a family: by its largest |t| on each replicate, or from the raw p-values."""
    if correction == "max-t":
        return np.asarray(np.maximum(max_t(t, null_max), p))
    by_name = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}
    return by_name[correction](p) if correction in by_name else p


def _critical(null_max: FloatArray, size: int, spec: Comparing, share: float) -> float:
    from scipy.special import ndtri

    alpha = (1.0 - spec.level) * share
    if spec.correction == "max-t" and size:  # never easier than one test: see `adjust`
        return max(float(critical_value(null_max, alpha)), float(ndtri(1.0 - alpha / 2.0)))
    tests = size if spec.correction in ("holm", "bonferroni") else 1
    return float(ndtri(1.0 - alpha / (2.0 * max(tests, 1))))
