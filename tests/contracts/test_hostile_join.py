"""No calm wrong answer: predictions that are about other people are refused, or said to be first.

In the suite each way of going wrong meets each task once; ``ISOLUX_HOSTILE_JOIN=full`` runs seven
seeds of each, more than 500 cases.
"""

from __future__ import annotations

import os
import zlib

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core import registry
from isolux.core.errors import IsoluxError
from isolux.core.notes import Caution
from isolux.groups.membership import build_membership
from isolux.plausibility import AuditInputs, check_plausibility
from isolux.predictions import join_predictions
from tests.contracts._other_people import CASES, WAYS, fits

FULL = os.environ.get("ISOLUX_HOSTILE_JOIN") == "full"
SEEDS = range(7) if FULL else range(1)
DRAWN = [(name, way, seed) for name in CASES for way in WAYS if fits(name, way) for seed in SEEDS]


def scored(name, case):
    """Score a case as an audit does: labels joined by id, then the checks of plausibility."""
    task = CASES[name][0]
    predictions, notes = case.predictions, ()
    if task == "classification":
        predictions, notes = join_predictions(case.dataset, predictions)
    scores = isolux.score(task, case.dataset, predictions, **case.options)
    membership = build_membership(case.dataset.attributes, [], units=scores.evaluated_units())
    inputs = AuditInputs(
        task, case.dataset, predictions, scores, membership, case.options, case.options
    )
    notes = (*check_plausibility(inputs), *notes, *scores.notes)
    return scores, [note for note in notes if isinstance(note, Caution)]


def numbers(scores):
    """Everybody's scores in an order of their own, and the evidence likewise."""
    units = scores.units.sort("metric", "label", "threshold", "unit_id")
    held = {k: t.sort(t.columns[:4]) for k, t in scores.evidence.items() if k != "pairs"}
    return units, held


def drawn(name, seed):
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def test_every_task_is_met():
    assert {task for task, _ in CASES.values()} == set(registry.names("tasks"))


def test_the_whole_is_five_hundred_cases():
    of_one_seed = {(name, way) for name, way, _ in DRAWN}
    assert 7 * len(of_one_seed) >= 500


@pytest.mark.parametrize("name", CASES)
def test_sound_predictions_are_scored_without_a_warning(name):
    for seed in SEEDS:
        case = CASES[name][1](drawn(name, seed))
        scores, cautions = scored(name, case)
        assert cautions == [], f"seed {seed}"
        assert scores.units["value"].drop_nulls().len()


@pytest.mark.parametrize(("name", "way", "seed"), DRAWN)
def test_a_hostile_file_gives_no_calm_wrong_answer(name, way, seed):
    draw = drawn(name, seed)
    case = CASES[name][1](draw)
    try:
        scores, cautions = scored(name, WAYS[way](case, draw))
    except IsoluxError:
        if way == "reordered":
            raise
        return
    if way == "reordered":
        assert cautions == []
    if not cautions:
        right, _ = scored(name, case)
        for ours, theirs in zip(numbers(scores), numbers(right), strict=True):
            if isinstance(ours, pl.DataFrame):
                assert ours.equals(theirs), "another number, and not a word of warning"
