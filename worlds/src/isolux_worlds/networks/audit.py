"""The whole way: paint photos, let the network look at them, audit what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from isolux.verbs.audit import Audit, run_audit
from isolux.verbs.audit.predicted import Watched
from isolux.vocabulary.spec import parse_spec
from isolux_worlds.networks.photos import paint_photos
from isolux_worlds.synthesis import Progress

__all__ = ["NETWORK", "audit_masks", "planted_rates"]

NETWORK = Path(__file__).with_name("masks.onnx")
"""The network: 96 × 96 pixels in, none or mask out."""

HOUSEHOLDS = 300


def planted_rates() -> list[dict[str, Any]]:
    """Read how often the network truly sees a mask, by skin tone, as a record's ``planted``.

    Examples
    --------
    >>> [row["group"] for row in planted_rates() if "group" in row]
    ['1 to 7', '8 to 10']
    """
    told: Mapping[str, Any] = json.loads(NETWORK.with_suffix(".json").read_text(encoding="utf-8"))
    return [dict(row) for row in told["planted"]]


def audit_masks(
    out: str | Path,
    *,
    households: int = HOUSEHOLDS,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
    watched: Watched | None = None,
) -> tuple[Audit, Path]:
    """Paint photos, predict and audit."""
    folder = Path(out)
    people = paint_photos(
        folder / "photos", households, seed, overwrite=overwrite, progress=progress
    )
    spec = parse_spec(
        {
            "data": f"table:{people}",
            "id": "id",
            "cluster": "subject",
            "images": str(people.parent),
            "model": f"onnx:{NETWORK}",
            "answers": str(folder / "answers"),
            "target": "mask",
            "positive": "mask",
            "metrics": ["true_positive_rate", "false_positive_rate", "accuracy"],
            "by": ["skin_tone", "lighting"],
            "seed": seed,
            "overwrite": overwrite,
        }
    )
    done = run_audit(spec, watched=watched)
    record = {**done.run.record, "planted": planted_rates()}
    done = replace(done, run=replace(done.run, record=record))
    return done, done.report(folder / "run", overwrite=overwrite)
