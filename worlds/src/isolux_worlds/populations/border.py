"""A border gate: gallery searches and age estimates, with injected rates.

600 people are enrolled by one image and come twice more; 600 others come twice and are not
enrolled. Of darker skin tones the engine makes no template more often, finds the right person less
often and returns a wrong one more often; the estimator takes them for older. So the true hit rate
of each group, its false positives and the share of minors who pass an age check are known exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from isolux.io.atomic import staged_directory, write_text
from isolux_worlds._random_streams import IntArray
from isolux_worlds.marker import write_folder_marker

if TYPE_CHECKING:
    from isolux.api.audit import Audit

__all__ = [
    "Gate",
    "build_gate_injected_effects",
    "simulate_gate_people_and_candidates",
    "write_and_audit_gate",
    "write_border_gate_files",
]

_MARKER_FILES = ("people.csv", "lists.csv", "injected.json")
_GROUPS = ("darker", "lighter")
_THRESHOLD = 0.5
"""Scores from which the gate returns a candidate."""
CHALLENGE = 25.0
"""Ages from which the gate asks for no proof."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Injected rates by skin tone, darker first."""

    n_enrolled: int = 600
    n_not_enrolled: int = 600
    failure_rate: tuple[float, float] = (0.05, 0.01)
    hit_rate: tuple[float, float] = (0.85, 0.95)
    false_positive_rate: tuple[float, float] = (0.05, 0.01)
    age_bias: tuple[float, float] = (3.0, 0.0)
    age_error_sd: tuple[float, float] = (4.0, 4.0)
    ages: tuple[int, int] = (14, 40)
    seed: int = field(default=0, kw_only=True)


def build_gate_injected_effects(gate: Gate) -> dict[str, Any]:
    """Give the true rate of each group, as ``injected.json`` holds it."""
    hit_rates = [(1.0 - gate.failure_rate[k]) * gate.hit_rate[k] for k in range(2)]
    minors = np.arange(gate.ages[0], 18)
    pass_rates = []
    for bias, error_sd in zip(gate.age_bias, gate.age_error_sd, strict=True):
        z = (CHALLENGE - minors - bias) / error_sd
        pass_rates.append(float(np.mean([0.5 * math.erfc(x / math.sqrt(2.0)) for x in z])))
    tasks = {
        "identification": {"metric": "hit_rate_at_rank", "threshold": 1.0},
        "age_estimation": {"metric": "challenge_false_positive_rate", "threshold": CHALLENGE},
    }
    return {
        "tasks": tasks,
        "models": {
            "engine": _format_injected_effects(hit_rates),
            "estimator": _format_injected_effects(pass_rates),
        },
    }


def _format_injected_effects(rates: list[float]) -> dict[str, Any]:
    low, high = (0, 1) if rates[0] < rates[1] else (1, 0)
    tone = {"attribute": "skin_tone"}
    groups = [
        {**tone, "group": name, "values": [name], "in_data": None, "value": rate}
        for name, rate in zip(_GROUPS, rates, strict=True)
    ]
    gap = {"value": rates[low] - rates[high], "note": "injected"}
    widest = {**tone, "group_a": _GROUPS[low], "group_b": _GROUPS[high], **gap}
    return {"groups": groups, "widest": [widest]}


def simulate_gate_people_and_candidates(gate: Gate) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw the people and what the engine answers."""
    rng = np.random.default_rng(gate.seed)
    n = gate.n_enrolled + gate.n_not_enrolled
    tone, sex = rng.integers(0, 2, n), rng.integers(0, 2, n)
    age = rng.integers(gate.ages[0], gate.ages[1] + 1, n)
    subject = np.concatenate([np.arange(gate.n_enrolled), np.repeat(np.arange(n), 2)])
    role = np.repeat(["gallery", "probe"], [gate.n_enrolled, 2 * n])
    ids = [f"{r[0]}{i:05}" for i, r in enumerate(role)]
    tone_index = tone[subject]
    noise = rng.normal(0.0, np.array(gate.age_error_sd)[tone_index])
    estimate = age[subject] + np.array(gate.age_bias)[tone_index] + noise
    people = pl.DataFrame(
        {
            "id": ids,
            "subject": [f"s{k:05}" for k in subject],
            "role": role,
            "skin_tone": np.array(_GROUPS)[tone_index],
            "sex": np.array(["F", "M"])[sex[subject]],
            "age": age[subject],
            "estimate": estimate.round(3),
            "seconds": rng.gamma(4.0, 0.2 + 0.1 * (tone_index == 0)).round(4),
        }
    )
    probes = slice(gate.n_enrolled, None)
    return people, _draw_candidate_lists(
        gate, subject[probes], tone_index[probes], people["id"], rng
    )


def _draw_candidate_lists(
    gate: Gate, subject: IntArray, tone: IntArray, ids: pl.Series, rng: np.random.Generator
) -> pl.DataFrame:
    n = len(subject)
    failed = rng.random(n) < np.array(gate.failure_rate)[tone]
    mated = subject < gate.n_enrolled
    is_hit = mated & (rng.random(n) < np.array(gate.hit_rate)[tone])
    is_false_positive = ~mated & (rng.random(n) < np.array(gate.false_positive_rate)[tone])
    impostor = (subject + 1 + rng.integers(0, gate.n_enrolled - 1, n)) % gate.n_enrolled
    entry = np.where(is_hit, subject, impostor)
    high, low = rng.uniform(0.55, 0.95, n), rng.uniform(0.10, 0.45, n)
    score = np.where(is_hit | is_false_positive, high, low).round(4)
    probe_columns = {"probe": ids.slice(gate.n_enrolled), "candidate": ids.gather(entry)}
    rows = pl.DataFrame({**probe_columns, "score": score, "failed": failed})
    second = rows.with_columns(
        candidate=ids.gather((entry + 1 + np.arange(n) % 7) % gate.n_enrolled),
        score=pl.Series((low / 2).round(4)),
    )
    null_if_failed = pl.when("failed").then(None)
    candidates = pl.concat([rows, second.filter(~pl.col("failed"))]).with_columns(
        candidate=null_if_failed.otherwise("candidate"), score=null_if_failed.otherwise("score")
    )
    return candidates.sort("probe", "score", descending=[False, True])


def write_border_gate_files(folder: str | Path, gate: Gate, *, overwrite: bool = False) -> Path:
    """Write ``people.csv``, ``lists.csv`` and ``injected.json``, whole or not at all."""
    people, lists = simulate_gate_people_and_candidates(gate)
    target = Path(folder)
    with staged_directory(
        target, overwrite=overwrite, marks=_MARKER_FILES, folder_kind="world"
    ) as stage:
        write_text(stage / "people.csv", people.write_csv())
        write_text(stage / "lists.csv", lists.write_csv())
        truths = json.dumps(build_gate_injected_effects(gate), indent=1) + "\n"
        write_text(stage / "injected.json", truths)
        write_folder_marker(stage, "`isolux demo --gate`")
    return target


def write_and_audit_gate(
    out: str | Path, *, seed: int = 0, overwrite: bool = False
) -> Iterator[tuple[Audit, Path]]:
    """Write the gate's files and audit them: ``data``, ``identification``, ``age_estimation``."""
    from isolux.api.audit import run_audit
    from isolux.core.spec import parse_spec

    folder = Path(out)
    data_dir = write_border_gate_files(folder / "data", Gate(seed=seed), overwrite=overwrite)
    common: dict[str, Any] = {
        "data": f"table:{data_dir / 'people.csv'}",
        "cluster": "subject",
        "by": ["skin_tone"],
        "injected": str(data_dir / "injected.json"),
        "seed": seed,
        "overwrite": overwrite,
    }
    settings_by_task: dict[str, dict[str, Any]] = {
        "identification": {
            "predictions": str(data_dir / "lists.csv"),
            "model_name": "engine",
            "identity": "subject",
            "enrolled": "role=gallery",
            "threshold": _THRESHOLD,
        },
        "age_estimation": {
            "score_column": "estimate",
            "model_name": "estimator",
            "challenge_age": [CHALLENGE],
            "age_mix": ["18-30"],
            "sex": "sex",
        },
    }
    for task, settings in settings_by_task.items():
        task_dir = folder / task
        audit = run_audit(parse_spec({**common, **settings, "task": task, "out": str(task_dir)}))
        yield audit, audit.report(task_dir, overwrite=overwrite)
