"""Draw a population: a table of people as a newcomer would have it, and the injected effects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.atomic import write_text
from isolux.io.csv_text import to_safe_csv
from isolux_worlds._random_streams import (
    FloatArray,
    IntArray,
    beta_quantile_from_mean_and_icc,
    build_named_rng,
)
from isolux_worlds.populations.injected_effects import States, compute_rate_table, injected_rates
from isolux_worlds.populations.population import Attribute, Model, Population, to_range

__all__ = ["World", "simulate", "write_csv"]

# Confidence is Beta(6, 2) when right and Beta(4, 3) when wrong, stretched over 1/classes to 1.
# Surer when right, calibrated by nothing: no effect is injected into it.
_BETA_WHEN_RIGHT, _BETA_WHEN_WRONG = (6.0, 2.0), (4.0, 3.0)


@dataclass(frozen=True, slots=True)
class World:
    """People drawn from a population, and the population's true rates.

    Parameters
    ----------
    population : Population
    seed : int
    people : polars.DataFrame
        One row per photo: ``photo`` (identifier), ``subject``, a text column per attribute
        (several values joined by ``population.separator``; null: not recorded), the target, and
        of each model ``prediction_NAME`` (a class) and ``score_NAME`` (confidence in it, 0 to
        1).
    injected_effects : polars.DataFrame
        See ``injected_rates``; ``injected_record`` makes a run's record of it.
    """

    population: Population
    seed: int
    people: pl.DataFrame
    injected_effects: pl.DataFrame


def simulate(population: Population, seed: int = 0) -> World:
    """Draw a world; the same seed gives the same world, byte for byte.

    Photos of a subject are right together: see ``_draw.py``. Each attribute and model
    has its own random stream, so adding one leaves the others' draws as they were.

    Examples
    --------
    >>> from isolux_worlds import demo_population
    >>> world = simulate(demo_population(), seed=1)
    >>> world.people.columns[:4]
    ['photo', 'subject', 'perceived_skin_tone', 'perceived_age_group']
    """
    photo_range = to_range(population.photos)
    counts = build_named_rng(seed, "photos").integers(
        *photo_range, population.subjects, endpoint=True
    )
    subject = np.repeat(np.arange(population.subjects), counts)
    photo_index = np.arange(len(subject)) - np.repeat(np.cumsum(counts) - counts, counts)
    state_by_attribute = {
        a.name: _draw_attribute_states(a, seed, subject, population.subjects)
        for a in (*population.attributes, population.target)
    }
    columns = _build_id_columns(subject, photo_index)
    for attribute in population.attributes:
        column = _format_attribute_states(
            attribute, state_by_attribute[attribute.name], population.separator
        )
        is_recorded = _draw_is_attribute_recorded(attribute, seed, subject, population.subjects)
        columns.append(column.set(pl.Series(~is_recorded), None))
    truth = state_by_attribute[population.target.name]
    columns.append(_format_attribute_states(population.target, truth, population.separator))
    difficulty = build_named_rng(seed, "difficulty").random(population.subjects)[subject]
    for model in population.models:
        rate = beta_quantile_from_mean_and_icc(
            _compute_row_rates(population, model, state_by_attribute), population.icc, difficulty
        )
        columns += _draw_predicted_labels(population, model, seed, truth, rate)
    return World(population, seed, pl.DataFrame(columns), injected_rates(population))


def write_csv(world: World, path: str | Path) -> Path:
    """Write the people as CSV, whole or not at all.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    return write_text(path, to_safe_csv(world.people))


def _build_id_columns(subject: IntArray, photo_index: IntArray) -> list[pl.Series]:
    subject_text = pl.Series(subject).cast(pl.String).str.zfill(5)
    photo = pl.format("s{}_{}", subject_text, pl.Series(photo_index + 1))
    return pl.select(photo=photo, subject=pl.format("s{}", subject_text)).get_columns()


def _draw_attribute_states(
    attribute: Attribute, seed: int, subject: IntArray, subjects: int
) -> IntArray:
    rng = build_named_rng(seed, "attribute", attribute.name)
    probability = States.from_attribute(attribute).probability
    is_of_photo = attribute.varies == "photo"
    size = len(subject) if is_of_photo else subjects
    states: IntArray = rng.choice(len(probability), size, p=probability)
    return states if is_of_photo else states[subject]


def _draw_is_attribute_recorded(
    attribute: Attribute, seed: int, subject: IntArray, subjects: int
) -> npt.NDArray[np.bool_]:
    rng = build_named_rng(seed, "unknown", attribute.name)
    size = len(subject) if attribute.varies == "photo" else subjects
    is_recorded = rng.random(size) >= attribute.unknown
    return is_recorded if attribute.varies == "photo" else is_recorded[subject]


def _format_attribute_states(attribute: Attribute, state: IntArray, separator: str) -> pl.Series:
    cells = pl.Series(
        [separator.join(c) for c in States.from_attribute(attribute).carried], dtype=pl.String
    )
    return cells.gather(state).alias(attribute.name)


def _compute_row_rates(
    population: Population, model: Model, state_by_attribute: dict[str, IntArray]
) -> FloatArray:
    axes, rate = compute_rate_table(population, model)
    n = len(state_by_attribute[population.target.name])
    return np.broadcast_to(rate[tuple(state_by_attribute[name] for name in axes)], (n,)).astype(
        np.float64
    )


def _draw_predicted_labels(
    population: Population, model: Model, seed: int, truth: IntArray, rate: FloatArray
) -> list[pl.Series]:
    rng = build_named_rng(seed, "model", model.name)
    is_right = rng.random(len(rate)) < rate
    confusion = _compute_confusion_probabilities(population, model)
    # Inverse of each row's distribution function: how many steps lie below the uniform number.
    steps = np.cumsum(confusion, axis=1)[:, :-1]  # [classes, classes - 1]
    wrong_classes = (rng.random(len(rate))[:, None] >= steps[truth]).sum(axis=1)
    predicted = np.where(is_right, truth, wrong_classes)
    floor = 1.0 / len(population.classes)
    right_scores, wrong_scores = (
        rng.beta(*_BETA_WHEN_RIGHT, len(rate)),
        rng.beta(*_BETA_WHEN_WRONG, len(rate)),
    )
    confidence = floor + (1.0 - floor) * np.where(is_right, right_scores, wrong_scores)
    labels = pl.Series(list(population.classes), dtype=pl.String)
    return [
        labels.gather(predicted).alias(f"prediction_{model.name}"),
        pl.Series(f"score_{model.name}", confidence).round(4),
    ]


def _compute_confusion_probabilities(population: Population, model: Model) -> FloatArray:
    """Probability of each wrong answer: ``[true class, answer]``, rows sum to 1, diagonal 0."""
    classes = population.classes
    weight = 1.0 - np.eye(len(classes))
    for truth, weight_by_class in model.confusions.items():
        weight[classes.index(truth)] = [weight_by_class.get(c, 0.0) for c in classes]
    normed: FloatArray = weight / weight.sum(axis=1, keepdims=True)
    return normed
