"""From cells to what they say: proxies, control, standardised gaps, each with its replicates.

One metric of one sensitive attribute. Only groups with enough people and clusters take part. An
explanatory value takes part in control and standardisation where every such group has enough people
at it: where groups do not overlap nothing can be compared, and how many people that leaves out is
counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from isolux.explain._confounders_cells import Cells, Layout
from isolux.stats.confounding import Spread, controlled, proxies, shares, spread, standardised
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray

__all__ = ["Estimate", "Explanation", "Facts", "Rules", "facts_of", "gaps"]

BoolArray = npt.NDArray[np.bool_]
_FLAT = 1e-12


@dataclass(frozen=True, slots=True)
class Rules:
    """Who is judged, and what dispersion is."""

    min_units: int = 50
    min_clusters: int = 10
    min_cell: int = 50
    kind: Spread = "standard deviation"
    ddof: int = 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number (or several, ``[k]``) and its replicates ``[r]`` or ``[r, k]``."""

    value: FloatArray
    replicates: FloatArray


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one explanatory attribute (or several crossed) explains.

    Parameters
    ----------
    place : int
        Its place among the layout's strata.
    status : str
        Empty; or why it explains nothing.
    usable : [e] bool
        Values at which every judged group has enough people.
    covered : float
        Share of the judged groups' people at usable values; of the group least covered.
    proxy : Estimate ``[a]``
        ProxyAP, or the same of another metric.
    sigma : Estimate
        Dispersion of the proxies.
    within : Estimate
        Mean dispersion after control.
    reduction : Estimate
        Dispersion before control less that after it: Δ.
    level : Estimate ``[a]``
        Each group's value with everyone's mix.
    """

    place: int
    status: str
    usable: BoolArray
    covered: float
    proxy: Estimate
    sigma: Estimate
    within: Estimate
    reduction: Estimate
    level: Estimate


@dataclass(frozen=True, slots=True)
class Facts:
    """What groups got, how far they lie apart, and what each explanatory attribute explains.

    ``judged`` numbers the groups that take part; ``pairs [p, 2]`` are places in it.
    """

    judged: IntArray
    pairs: IntArray
    value: Estimate
    sigma: Estimate
    explanations: tuple[Explanation, ...]


def gaps(levels: Estimate, pairs: IntArray) -> Estimate:
    """Difference of the first and the second group of every pair: ``[p]``."""
    first, second = pairs[:, 0], pairs[:, 1]
    return Estimate(
        levels.value[first] - levels.value[second],
        levels.replicates[:, first] - levels.replicates[:, second],
    )


def facts_of(layout: Layout, cells: Cells, rules: Rules) -> Facts:
    """Work out what the cells say.

    Parameters
    ----------
    layout : Layout
    cells : Cells
    rules : Rules
    """
    units, clusters = layout.of_groups(cells.units), layout.of_groups(cells.clusters)
    value = layout.of_groups(cells.value)
    enough = (units >= rules.min_units) & (clusters >= rules.min_clusters)
    judged = np.flatnonzero(enough & np.isfinite(value))
    own = Estimate(value[judged], layout.of_groups(cells.replicates)[:, judged])
    sigma = _spread(own, rules)
    pairs = np.array(list(combinations(range(len(judged)), 2)), dtype=np.int64).reshape(-1, 2)
    explained = tuple(
        _explained(layout, cells, s, judged, sigma, rules) for s in range(len(layout.strata))
    )
    return Facts(judged, pairs, own, sigma, explained)


def _spread(levels: Estimate, rules: Rules) -> Estimate:
    return Estimate(
        spread(levels.value, rules.kind, rules.ddof),
        spread(levels.replicates, rules.kind, rules.ddof),
    )


def _explained(
    layout: Layout, cells: Cells, s: int, judged: IntArray, sigma: Estimate, rules: Rules
) -> Explanation:
    units = layout.of_both(cells.units, s)[judged]
    value = layout.of_both(cells.value, s)[judged]
    weight = layout.of_both(cells.weight, s)[:, judged]
    replicates = layout.of_both(cells.replicates, s)[:, judged]
    enough = (units >= rules.min_cell) & np.isfinite(value)
    usable = np.asarray(enough.all(axis=0) & bool(len(judged)), dtype=np.bool_)
    everyone = layout.of_values(cells.units, s).astype(np.float64)
    drawn = layout.of_values(cells.weight, s)
    proxy = Estimate(
        proxies(shares(units.astype(np.float64)), layout.of_values(cells.value, s)),
        proxies(shares(weight), layout.of_values(cells.replicates, s)),
    )
    within = Estimate(
        controlled(value, usable, rules.kind, rules.ddof),
        controlled(replicates, usable, rules.kind, rules.ddof),
    )
    return Explanation(
        s,
        _status(layout.strata[s].values, units, usable, rules),
        usable,
        _covered(units, usable),
        proxy,
        _spread(proxy, rules),
        within,
        Estimate(sigma.value - within.value, sigma.replicates - within.replicates),
        Estimate(standardised(value, everyone, usable), standardised(replicates, drawn, usable)),
    )


def _status(values: tuple[str, ...], units: IntArray, usable: BoolArray, rules: Rules) -> str:
    """Say why an attribute explains nothing, if it does not."""
    held = units > 0
    if len(units) < 2:
        return "fewer than two groups are large enough to be judged"
    if held.any(axis=0).sum() < 2:
        return f"it has one value only, {values[int(held.any(axis=0).argmax())]!r}"
    if not (held.sum(axis=0) > 1).any():
        return "it separates the groups: none of its values is seen in two of them"
    if not usable.any():
        return f"at none of its values has every group {rules.min_cell} people"
    return ""


def _covered(units: IntArray, usable: BoolArray) -> float:
    total = units.sum(axis=1)
    inside = units[:, usable].sum(axis=1)
    shown = inside[total > 0] / total[total > 0]
    return float(shown.min()) if len(shown) else 0.0
