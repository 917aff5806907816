"""The exact truth of every group of a world, by enumeration of its network.

Only attributes that matter are laid out: those that a model's effects and a grouping name, and
what they hang on. Each combination of their values is a cell with a probability and a chance to be
right; a group's rate is its cells' mean. Nothing is drawn: the answer is the world's, not a
sample's. People are counted as often as they are in photos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import split_intersection
from isolux_worlds._random_streams import FloatArray, IntArray, build_named_rng
from isolux_worlds.photo_world.attribute_network import (
    AttributeNode,
    build_attribute_network,
    find_first_matching_rules,
    list_with_ancestors,
)
from isolux_worlds.populations.injected_effects import (
    GROUP_RATES,
    iterate_group_rate_rows,
    select_widest_gaps,
)
from isolux_worlds.populations.population import (
    check_number_of_cells,
    check_values_exist,
    matches_conditions,
)

__all__ = [
    "build_photo_injected_effects_record",
    "compute_person_rates",
    "compute_photo_injected_rates",
    "compute_probability_correct",
    "draw_correlated_outcomes",
    "draw_is_right",
    "standardised_rates",
]

if TYPE_CHECKING:
    from isolux_worlds.photo_world.settings import ModelSettings
    from isolux_worlds.photo_world.world import PhotoWorld


BoolArray = npt.NDArray[np.bool_]


def compute_person_rates(world: PhotoWorld, model: str | ModelSettings) -> FloatArray:
    """Probability that a model is right, for each person."""
    model_settings = world.settings.model_named(model)
    effect_attributes = {name for effect in model_settings.effects for name in effect.where}
    values = {
        n.name: n.values
        for n in build_attribute_network(world.settings)
        if n.name in effect_attributes
    }
    codes = encode_person_values(world, values)
    rate = compute_probability_correct(model_settings, values, codes)
    return np.broadcast_to(rate, (world.people.height,)).astype(np.float64)


def draw_is_right(
    world: PhotoWorld, model: str | ModelSettings, *, stream_name: str = "right"
) -> BoolArray:
    """Draw whether a model is right about each person."""
    model_settings = world.settings.model_named(model)
    return draw_correlated_outcomes(
        compute_person_rates(world, model_settings),
        _find_subject_index_of_people(world),
        world.subjects.height,
        model_settings,
        world.seed,
        stream_name,
    )


def draw_correlated_outcomes(
    rate: FloatArray,
    subject_index: IntArray,
    n_subjects: int,
    model: ModelSettings,
    seed: int,
    stream_name: str = "right",
) -> BoolArray:
    """Draw binary outcomes with given probabilities, correlated within subjects.

    ``rate``: [people] float, 0 to 1; ``subject_index``: [people] int.
    """
    from scipy.special import ndtri

    person_noise = build_named_rng(seed, "model", model.name, stream_name).standard_normal(
        len(rate)
    )
    if model.correlation:
        shared = build_named_rng(seed, "difficulty").standard_normal(n_subjects)[subject_index]
        person_noise = (
            np.sqrt(model.correlation) * shared + np.sqrt(1 - model.correlation) * person_noise
        )
    return np.asarray(person_noise < ndtri(rate))


def compute_probability_correct(
    model: ModelSettings,
    values: Mapping[str, tuple[str, ...]],
    codes: Mapping[str, npt.NDArray[np.integer]],
) -> FloatArray:
    """Probability of being right, of people or cells whose values are given as codes."""
    total: FloatArray = np.asarray(np.log(model.base_rate / (1.0 - model.base_rate)))
    for effect in model.effects:
        total = total + effect.size * matches_conditions(effect.where, values, codes)
    return np.asarray(1.0 / (1.0 + np.exp(-total)), dtype=np.float64)


def encode_person_values(
    world: PhotoWorld, values: Mapping[str, tuple[str, ...]]
) -> dict[str, npt.NDArray[np.int16]]:
    """Index in ``values`` of each person's values."""
    code_by_word = {
        name: {word: k for k, word in enumerate(words)} for name, words in values.items()
    }
    rows = world.people.select(
        pl.col(name).replace_strict(words, return_dtype=pl.Int16)
        for name, words in code_by_word.items()
    )
    return {column.name: column.to_numpy() for column in rows}


def _find_subject_index_of_people(world: PhotoWorld) -> IntArray:
    """Row of each person's subject."""
    subjects = world.subjects["subject_id"]
    rows = world.people["subject_id"].replace_strict(subjects, np.arange(len(subjects)))
    return np.asarray(rows.to_numpy())


if TYPE_CHECKING:
    from isolux_worlds.photo_world.settings import ModelSettings, WorldSettings


MOST_CELLS = 10_000_000
"""Combinations of values that are laid out, at most: some 300 MB."""


def compute_photo_injected_rates(
    settings: WorldSettings, model: str | ModelSettings
) -> pl.DataFrame:
    """Give a model's true rate for everyone, every group and every intersection of ``by``."""
    model_settings = settings.model_named(model)
    nodes = build_attribute_network(settings)
    _check_model_effects_exist(model_settings, nodes)
    cells = _build_attribute_cells(nodes, model_settings, ())
    overall_rate = float((cells.share * cells.rate).sum())
    rows: list[tuple[object, ...]] = [
        (model_settings.name, None, "overall", [], 1.0, overall_rate, 0.0)
    ]
    for entry in settings.groupings:
        names = split_intersection(entry)
        share, rate = _average_cells_by_attributes(
            _build_attribute_cells(nodes, model_settings, names), names
        )
        values = [_find_node(nodes, name).values for name in names]
        rows += [
            (model_settings.name, *row)
            for row in iterate_group_rate_rows(entry, values, share, rate, overall_rate)
        ]
    return pl.DataFrame(rows, schema={"model": pl.String(), **GROUP_RATES}, orient="row")


def build_photo_injected_effects_record(
    settings: WorldSettings, model: str | ModelSettings, metric: str = "accuracy"
) -> list[dict[str, object]]:
    """List the injected effects of one model, as a run's record keeps it for the report.

    One truth for each attribute and intersection of ``by``: the difference between the two groups
    that lie farthest apart, and 0 where nothing was injected.

    Parameters
    ----------
    settings : WorldSettings
    model : str or ModelSettings
    metric : str
        The metric whose value in a group is the share of people that the model is right about.

    Returns
    -------
    list of dict
        ``metric``, ``label`` (None), ``attribute``, ``kind`` ("difference"), ``group_a`` (the
        lower), ``group_b``, ``value`` (a − b, 0 to −1), ``note``.

    Examples
    --------
    >>> from isolux_worlds.photo_world.settings import preset
    >>> {row["value"] for row in build_photo_injected_effects_record(preset("fair"), "aurora")}
    {0.0}
    """
    truth = compute_photo_injected_rates(settings, model).drop_nulls("attribute")
    with_metric = truth.with_columns(metric=pl.lit(metric), label=pl.lit(None, dtype=pl.String))
    return select_widest_gaps(with_metric).to_dicts()


def standardised_rates(
    settings: WorldSettings, model: str | ModelSettings, attribute: str, standardised_attribute: str
) -> pl.DataFrame:
    """Directly standardised true rates: each group at the overall distribution of an attribute."""
    model_settings = settings.model_named(model)
    nodes = build_attribute_network(settings)
    _check_model_effects_exist(model_settings, nodes)
    names = [attribute, standardised_attribute]
    groups, _ = (_find_node(nodes, name).values for name in names)
    if attribute == standardised_attribute:
        problem = "an attribute cannot be held at one mix of itself"
        raise SpecError(problem, expected="two attributes", found=repr(attribute))
    share, rate = _average_cells_by_attributes(
        _build_attribute_cells(nodes, model_settings, names), names
    )
    mix = share.sum(axis=0)
    lacks_stratum = ((share == 0) & (mix > 0)).any(axis=1)
    standardised = np.where(mix > 0, mix * np.nan_to_num(rate), 0.0).sum(axis=1)
    values = [None if no else float(v) for no, v in zip(lacks_stratum, standardised, strict=True)]
    return pl.DataFrame({"group": groups, "value": pl.Series(values, dtype=pl.Float64)})


@dataclass(frozen=True, slots=True)
class _AttributeCells:
    """Combinations of values, one axis for each attribute; shares sum to 1."""

    names: tuple[str, ...]
    share: FloatArray
    rate: FloatArray


def _build_attribute_cells(
    nodes: Sequence[AttributeNode], model: ModelSettings, grouping_attributes: Iterable[str]
) -> _AttributeCells:
    used_attributes = {name for effect in model.effects for name in effect.where} | set(
        grouping_attributes
    )
    attribute_names = list_with_ancestors(nodes, used_attributes)
    lengths = tuple(len(node.values) for node in attribute_names)
    names = tuple(node.name for node in attribute_names)
    hint = "intersect fewer attributes, or let fewer hang on one another"
    check_number_of_cells(names, lengths, MOST_CELLS, hint)
    axis_codes = {
        node.name: np.arange(length).reshape(
            [-1 if j == i else 1 for j in range(len(attribute_names))]
        )
        for i, (node, length) in enumerate(zip(attribute_names, lengths, strict=True))
    }
    values = {node.name: node.values for node in attribute_names}
    share = np.ones([1] * len(attribute_names))
    for node in attribute_names:
        share = share * _compute_conditional_shares(node, values, axis_codes)
    rate = compute_probability_correct(model, values, axis_codes)
    return _AttributeCells(names, np.broadcast_to(share, lengths), np.broadcast_to(rate, lengths))


def _compute_conditional_shares(
    node: AttributeNode, values: dict[str, tuple[str, ...]], axis_codes: dict[str, IntArray]
) -> FloatArray:
    """P(value | parents), with an axis for the value and one for each parent."""
    node_codes = axis_codes[node.name]
    parent_codes = {name: axis_codes[name] for name in node.parents}
    shape = np.broadcast_shapes(*(a.shape for a in parent_codes.values()), (1,) * node_codes.ndim)
    rule_index = find_first_matching_rules(node, values, parent_codes, shape)
    rows = np.stack([*(rule.shares for rule in node.rules), node.shares])  # the last: no rule holds
    return np.asarray(rows[rule_index, node_codes])


def _average_cells_by_attributes(
    cells: _AttributeCells, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Share and rate of each combination of these attributes' values: one axis for each."""
    kept_axes = [cells.names.index(name) for name in names]
    summed_axes = tuple(i for i in range(len(cells.names)) if i not in kept_axes)
    order = np.argsort(np.argsort(kept_axes))  # axes that are left, in the order asked for
    share = cells.share.sum(axis=summed_axes).transpose(order)
    total = (cells.share * cells.rate).sum(axis=summed_axes).transpose(order)
    rate = np.divide(total, share, out=np.full(share.shape, np.nan), where=share > 0)
    return share, rate


def _find_node(nodes: Sequence[AttributeNode], name: str) -> AttributeNode:
    of_name = {node.name: node for node in nodes}
    if name not in of_name:
        raise UnknownNameError("attribute", name, of_name)
    return of_name[name]


def _check_model_effects_exist(model: ModelSettings, nodes: Sequence[AttributeNode]) -> None:
    """Refuse a model whose effects name attributes or values that the world lacks."""
    for effect in model.effects:
        for name, values in effect.where.items():
            check_values_exist(name, values, _find_node(nodes, name).values)
