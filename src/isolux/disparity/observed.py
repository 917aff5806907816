"""How far apart groups are seen to be: the deviates of an audit's contrasts.

Attributes with few groups are compared together: they have their clusters reduced and their
deviates asked once, and say what each says alone.

Whether everyone's value, and everyone else's, is one that groups can be held to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isolux.disparity.comparisons import Comparisons, compare_attributes, compare_groups
from isolux.groups.estimates import Estimates
from isolux.stats.deviates import deviates
from isolux.stats.intervals import normal_quantile
from isolux.stats.nulls import REST
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Comparing

_PRODUCTS = 1e7
"""Multiplications up to which attributes are compared together: some milliseconds."""

Key = tuple[str, int]
"""An attribute and a measure."""
Plan = tuple[IntArray, IntArray]
"""The judged groups ``[g]``, and the contrasts ``[h, 2]`` among them."""
Plans = dict[Key, Plan]


def observed(
    compared: Comparisons, plans: Sequence[Plan], spec: Comparing, *more: float
) -> list[FloatArray]:
    """Return each plan's deviates, with the sign of a − b: of each contrast of its groups."""
    exact = (normal_quantile(spec.level), *more)
    first = np.concatenate([members[contrasts[:, 0]] for members, contrasts in plans])
    # Where everyone else is the second, the row that is taken means nothing, and is not asked.
    second = np.concatenate([members[contrasts[:, 1]] for members, contrasts in plans])
    rest = np.concatenate([contrasts[:, 1] == REST for _, contrasts in plans])
    z = np.full(len(first), np.nan)
    z[~rest] = deviates(compared.pairs(first[~rest], second[~rest]), exact)
    if rest.any():
        z[rest] = deviates(compared.rests(first[rest]), exact)
    return np.split(z, np.cumsum([len(contrasts) for _, contrasts in plans])[:-1])


def batches(estimates: Estimates, wanted: list[Key]) -> list[list[Key]]:
    """Put attributes with few groups together, those of one measure and one domain."""
    most = int(np.sqrt(_PRODUCTS / max(estimates.design.matrix.shape[1], 1)) / 2.0)
    found: list[list[Key]] = []
    open_: dict[tuple[int, int], tuple[list[Key], int]] = {}
    for key in wanted:
        alike, groups = (key[1], estimates.domain_of[key[0]]), len(estimates.members(key[0]))
        batch, held = open_.get(alike, ([], most))
        if held + groups > most:
            batch, held = [], 0
            found.append(batch)
        batch.append(key)
        open_[alike] = batch, held + groups
    return found


def looked_at(
    estimates: Estimates, plans: Plans, keys: list[Key], spec: Comparing
) -> Iterator[tuple[Key, tuple[Comparisons, FloatArray]]]:
    """Compare the groups of each attribute of a batch: those that overlap alike, in one go."""
    if len(keys) == 1:
        every = [compare_groups(estimates, *key) for key in keys]
    else:
        every = compare_attributes(estimates, [attribute for attribute, _ in keys], keys[0][1])
    of: dict[int, list[int]] = {}
    for at, compared in enumerate(every):
        of.setdefault(id(compared), []).append(at)
    for some in of.values():
        compared = every[some[0]]
        z = observed(compared, [plans[keys[at]] for at in some], spec)
        yield from ((keys[at], (compared, part)) for at, part in zip(some, z, strict=True))


_ALIKE = 1e-9
"""Values that differ by less are the same."""


def is_among(estimates: Estimates, attribute: str, j: int) -> bool:
    """Tell whether everyone's value is a measure for groups: that it lies among theirs."""
    if estimates.measures[j].mean is not None or not estimates.measures[j].info.pooled:
        return estimates.measures[j].info.pooled
    value = estimates.value[estimates.members(attribute), j]
    above = value[np.isfinite(value)] - estimates.value[0, j]
    return bool((above <= _ALIKE).any() and (above >= -_ALIKE).any())


def others_of(estimates: Estimates, rows: IntArray, j: int) -> IntArray:
    """Count the units of everyone else for each group; 0 where a group is everyone."""
    return np.asarray(estimates.n_units[0, j] - estimates.n_units[rows, j])
