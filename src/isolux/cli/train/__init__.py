"""``isolux train``: networks and heads; each file of this folder is a command of its name."""

from __future__ import annotations

STEPS = {"fairface": "fairface", "finetune": "finetune", "probe": "probe"}


def train() -> None:
    """Train FairFace's network, or a head on a model's features, by one recipe for all compared."""
