"""No calm wrong number: each kind of damage to each task's predictions, through the whole audit.

A damaged file is refused by an error that names the problem, or warned of before every number, or
gives the numbers of the sound file. ``EXCEPTIONS`` are what cannot be told; each is met here, so
that none is listed in vain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api.audit.pipeline import run_pipeline
from isolux.core.containers import Run
from isolux.core.errors import IsoluxError
from isolux.core.spec import parse_spec
from isolux.predictions import join_predictions
from tests.contracts._damage import EXCEPTIONS, KINDS
from tests.contracts._other_people import CASES, Case

_KEY = ["metric", "label", "threshold", "attribute", "group"]


def _draw(name: str) -> Case:
    return CASES[name][1](np.random.default_rng(0))


def _audit(name: str, case: Case) -> Run:
    task, predictions, notes = CASES[name][0], case.predictions, ()
    if task == "classification" and "instance_id" in predictions.columns:
        predictions, notes = join_predictions(case.dataset, predictions)
    scores = isolux.score(task, case.dataset, predictions, **case.options)
    scores = replace(scores, notes=(*notes, *scores.notes))
    spec = parse_spec({"data": "table:x", "task": task, "by": ("tone",), "replicates": 100})
    run, _ = run_pipeline(
        spec, case.dataset, scores, {}, predictions=predictions, options=case.options
    )
    return run


def _are_equal(run: Run, sound: Run) -> bool:
    """Compare all numbers that both have; a file that lacks half of them is not equal."""
    rows = run.group_metrics.join(
        sound.group_metrics, on=_KEY, how="inner", nulls_equal=True, suffix="_sound"
    )
    values, sound_values = (rows[c].to_numpy() for c in ("value", "value_sound"))
    is_enough = 2 * rows.height >= sound.group_metrics.height
    return is_enough and np.allclose(values, sound_values, atol=1e-9, equal_nan=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_damage_is_refused_or_warned_of_or_changes_nothing(name) -> None:
    case = _draw(name)
    sound = _audit(name, case)
    assert sound.record["warnings"] == []
    calm = set()
    for kind, damage in KINDS.items():
        damaged = damage(case)
        if damaged is None:
            continue
        try:
            run = _audit(name, damaged)
        except IsoluxError:
            continue
        if not run.record["warnings"] and not _are_equal(run, sound):
            calm.add(kind)
    assert calm == set(EXCEPTIONS.get(name, {}))


def test_the_whole_is_more_than_five_hundred_cases() -> None:
    cases = [damage(case) for case in map(_draw, CASES) for damage in KINDS.values()]
    assert sum(case is not None for case in cases) >= 500
    assert isinstance(cases[0].predictions, pl.DataFrame)
