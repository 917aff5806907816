"""The border gate audited: its searches, and its age check, each beside what was planted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isolux.verbs.audit import Audit, run_audit
from isolux.vocabulary.spec import parse_spec
from isolux_worlds.populations.border import CHALLENGE, THRESHOLD, Gate, write_border_gate

__all__ = ["audit_gate"]


def audit_gate(
    out: str | Path, *, seed: int = 0, overwrite: bool = False
) -> Iterator[tuple[Audit, Path]]:
    """Write the gate's files and audit them: ``data``, ``identification``, ``age_estimation``."""
    folder = Path(out)
    data = write_border_gate(folder / "data", Gate(seed=seed), overwrite=overwrite)
    common: dict[str, Any] = {
        "data": f"table:{data / 'people.csv'}", "cluster": "subject", "by": ["skin_tone"],
        "planted": str(data / "planted.json"), "seed": seed, "overwrite": overwrite,
    }  # fmt: skip
    of_tasks: dict[str, dict[str, Any]] = {
        "identification": {
            "predictions": str(data / "lists.csv"), "model_name": "engine", "identity": "subject",
            "enrolled": "role=gallery", "threshold": THRESHOLD,
        },
        "age_estimation": {
            "score_column": "estimate", "model_name": "estimator", "challenge_age": [CHALLENGE],
            "age_mix": ["18-30"], "sex": "sex",
        },
    }  # fmt: skip
    for task, settings in of_tasks.items():
        where = folder / task
        done = run_audit(parse_spec({**common, **settings, "task": task, "out": str(where)}))
        yield done, done.report(where, overwrite=overwrite)
