"""The true rate of every group of a population, by enumeration.

Attributes are independent, so a group's rate is the sum, over all combinations of the values that
effects name, of their probability within the group times the rate there. Nothing is drawn: the
answer is the population's, not a sample's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import split_intersection
from isolux_worlds._random_streams import FloatArray
from isolux_worlds.populations.population import Attribute, Effect, Model, Population

__all__ = [
    "GROUP_RATES",
    "States",
    "compute_rate_table",
    "injected_effects_record",
    "injected_rates",
    "iterate_group_rate_rows",
    "select_widest_gaps",
]

_UNKNOWN = "unknown"
"""The group of those whose value was not recorded."""

_TRUTH = ("metric", "label", "attribute", "kind", "group_a", "group_b", "value", "note")
_ZERO_TOLERANCE = 1e-12
"""Rates that differ by less differ by rounding."""

GROUP_RATES = {
    "attribute": pl.String(),
    "group": pl.String(),
    "values": pl.List(pl.String()),
    "share": pl.Float64(),
    "value": pl.Float64(),
    "difference": pl.Float64(),
}
"""What is said of a group: its share of people, 0 to 1, its rate, and the difference to all's."""


@dataclass(frozen=True, slots=True)
class States:
    """What a unit can carry of one attribute: each set of values, and its probability.

    ``probability``: [n_states].
    """

    carried: tuple[tuple[str, ...], ...]
    probability: FloatArray

    @classmethod
    def from_attribute(cls, attribute: Attribute) -> States:
        """List the states of an attribute: single values first, then neighbours."""
        values = list(attribute.shares)
        share = np.array(list(attribute.shares.values()), dtype=np.float64)
        pairs = np.append(np.full(len(values) - 1, attribute.adjacent), 0.0)
        carried: list[tuple[str, ...]] = [(v,) for v in values]
        probability = share * (1.0 - pairs)
        if attribute.adjacent:
            carried += list(pairwise(values))
            probability = np.concatenate([probability, (share * pairs)[:-1]])
        return cls(tuple(carried), probability)

    def carry(self, values: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """Which states carry any of these values: ``[n_states]``."""
        return np.array([not set(values).isdisjoint(c) for c in self.carried])


def compute_rate_table(population: Population, model: Model) -> tuple[tuple[str, ...], FloatArray]:
    """Add up a model's effects at every combination of the attributes that they name.

    Returns those attributes, and the rates: one axis each, ``[n_states of the first, …]``.
    """
    effect_attributes = {name for effect in model.effects for name in effect.where}
    axes = [a for a in (*population.attributes, population.target) if a.name in effect_attributes]
    states = [States.from_attribute(a) for a in axes]
    total = np.full([len(s.carried) for s in states], _logit_of_rate(model.base_rate, model.scale))
    for effect in model.effects:
        total = total + effect.size * _build_effect_mask(effect, axes, states)
    rate = 1.0 / (1.0 + np.exp(-total)) if model.scale == "logit" else total
    outside = np.argwhere((rate < 0) | (rate > 1))
    if len(outside):
        state_axes = zip(axes, states, outside[0], strict=True)
        people = ", ".join(f"{a.name} {'+'.join(s.carried[i])}" for a, s, i in state_axes)
        problem = f"the effects of {model.name!r} take a rate out of range"
        expected = "base_rate and effects that add up to 0 to 1 for everyone"
        description = f"{float(rate[tuple(outside[0])]):.4g} for {people}"
        hint = "make the effects smaller, or plant them with scale='logit'"
        raise SpecError(problem, expected=expected, found=description, hint=hint)
    return tuple(a.name for a in axes), rate


def injected_rates(population: Population) -> pl.DataFrame:
    """Give the true accuracy and recall of everyone, every group and every intersection.

    Groups are those of ``population.groupings()``, merged as ``population.merge`` says. A group
    of recorded values holds everyone with the value, with others or alone.

    Returns
    -------
    polars.DataFrame
        ``model``; ``metric`` (accuracy, recall); ``label`` (the class of a recall, else null);
        ``attribute`` (null: everyone); ``group`` (display); ``values`` (list); ``share``
        (probability that a photo belongs, 0 to 1; of a recall: among photos of that class);
        ``value`` (the true rate, 0 to 1, higher is better); ``difference`` (to everyone's, same
        unit).

    Examples
    --------
    >>> from isolux_worlds import demo_population
    >>> rates = injected_rates(demo_population())
    >>> rates.filter(attribute="region", metric="accuracy")["difference"].abs().max() < 1e-12
    True
    """
    rows: list[tuple[object, ...]] = []
    for model in population.models:
        table = compute_rate_table(population, model)
        for label in (None, *population.classes):
            rows += _build_rate_rows(population, model.name, table, label)
    schema = {"model": pl.String(), "metric": pl.String(), "label": pl.String(), **GROUP_RATES}
    return pl.DataFrame(rows, schema=schema, orient="row")


def injected_effects_record(population: Population, model: str) -> list[dict[str, object]]:
    """List the injected effects of one model, as a run's record keeps it for the report.

    One truth per attribute and intersection and metric: the difference between the two recorded
    groups that lie farthest apart, and 0 where nothing was injected. A recall is given only where
    it differs from the accuracy.

    Returns
    -------
    list of dict
        ``metric``, ``label``, ``attribute``, ``kind`` ("difference"), ``group_a`` (the lower),
        ``group_b``, ``value`` (a − b, 0 to −1), ``note``.
    """
    names = [m.name for m in population.models]
    if model not in names:
        raise UnknownNameError("model", model, names)
    rates = injected_rates(population).filter(
        pl.col("model") == model,
        pl.col("attribute").is_not_null(),
        ~pl.col("values").list.contains(_UNKNOWN),
    )
    gaps = select_widest_gaps(rates)
    of_all = gaps.filter(metric="accuracy").select("attribute", of_all="value")
    differs = (pl.col("value") - pl.col("of_all")).abs() > _ZERO_TOLERANCE
    gaps = gaps.join(of_all, on="attribute", how="left", maintain_order="left")
    gaps = gaps.filter((pl.col("metric") == "accuracy") | differs)
    return gaps.select(*_TRUTH).to_dicts()


def iterate_group_rate_rows(
    entry: str, values: Sequence[Sequence[str]], share: FloatArray, rate: FloatArray, overall: float
) -> Iterator[tuple[object, ...]]:
    """Give ``GROUP_RATES`` of each combination of values that anyone has: ``[values, …]``."""
    groups = zip(product(*values), share.ravel().tolist(), rate.ravel().tolist(), strict=True)
    for group, group_values, group_rate in groups:
        if group_values > 0:
            yield (
                entry,
                " × ".join(group),
                list(group),
                group_values,
                group_rate,
                group_rate - overall,
            )


def select_widest_gaps(rates: pl.DataFrame) -> pl.DataFrame:
    """Give the largest difference between two groups of each attribute, as a run's record keeps it.

    ``rates`` has ``metric, label, attribute, group, value``; what was not injected is exactly 0.
    """
    rate = pl.col("value")
    rounded = rate.round(12)
    bounds = rates.group_by("metric", "label", "attribute", maintain_order=True).agg(
        group_a=pl.col("group").get(rounded.arg_min()),
        group_b=pl.col("group").get(rounded.arg_max()),
        first=pl.col("group").get(0),
        second=pl.col("group").get(1, null_on_oob=True),
        value=(rate.min() - rate.max()).round(12),
    )
    is_zero = rate.abs() < _ZERO_TOLERANCE
    gaps = bounds.with_columns(
        kind=pl.lit("difference"),
        group_a=pl.when(is_zero).then("first").otherwise("group_a"),
        group_b=pl.when(is_zero).then("second").otherwise("group_b"),
        value=pl.when(is_zero).then(0.0).otherwise("value"),
        note=pl.when(is_zero).then(pl.lit("nothing was injected here")).otherwise(pl.lit("")),
    )
    return gaps.drop_nulls("group_b").select(*_TRUTH)


def _build_rate_rows(
    population: Population, model: str, table: tuple[tuple[str, ...], FloatArray], label: str | None
) -> list[tuple[object, ...]]:
    of_class = {} if label is None else {population.target.name: (label,)}
    metric = (model, "accuracy" if label is None else "recall", label)
    overall_rates = _compute_expected_rate(population, table, of_class)
    rows: list[tuple[object, ...]] = [(*metric, None, "overall", [], 1.0, overall_rates, 0.0)]
    for entry in population.groupings():
        names = split_intersection(entry)
        for group in product(*(_list_groups_of_attribute(population, name) for name in names)):
            carried = {n: g.values for n, g in zip(names, group, strict=True) if g.values}
            group_rates = _compute_expected_rate(population, table, {**carried, **of_class})
            values = [g.name for g in group]
            share = float(np.prod([g.share for g in group]))
            name = " × ".join(values)
            rows.append(
                (*metric, entry, name, values, share, group_rates, group_rates - overall_rates)
            )
    return rows


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of one attribute: the values it unites (empty: not recorded) and its share."""

    name: str
    values: tuple[str, ...]
    share: float


def _list_groups_of_attribute(population: Population, name: str) -> list[_Group]:
    attribute = population.attribute(name)
    unions = dict(population.merge.get(name, {}))
    merged = {v for values in unions.values() for v in values}
    unions |= {v: (v,) for v in attribute.shares if v not in merged}
    states = States.from_attribute(attribute)
    known_share = 1 - attribute.unknown
    groups = [
        _Group(group, values, float(states.probability @ states.carry(values)) * known_share)
        for group, values in unions.items()
    ]
    return [*groups, _Group(_UNKNOWN, (), attribute.unknown)] if attribute.unknown else groups


def _compute_expected_rate(
    population: Population,
    table: tuple[tuple[str, ...], FloatArray],
    conditions: Mapping[str, tuple[str, ...]],
) -> float:
    """Mean rate of those who carry the given values, averaged over all other attributes."""
    axes, rate = table
    for name in axes:
        states = States.from_attribute(population.attribute(name))
        weight = states.probability
        if name in conditions:
            weight = weight * states.carry(conditions[name])
        rate = np.tensordot(weight / weight.sum(), rate, (0, 0))
    return float(rate)


def _build_effect_mask(effect: Effect, axes: list[Attribute], states: list[States]) -> FloatArray:
    """1 at the combinations that an effect concerns, 0 elsewhere; one axis per attribute."""
    hit = np.ones([1] * len(axes))
    for i, (axis, of_axis) in enumerate(zip(axes, states, strict=True)):
        if axis.name in effect.where:
            shape = [-1 if j == i else 1 for j in range(len(axes))]
            hit = hit * of_axis.carry(effect.values(axis.name)).reshape(shape)
    return hit


def _logit_of_rate(rate: float, scale: str) -> float:
    return float(np.log(rate / (1.0 - rate))) if scale == "logit" else rate
