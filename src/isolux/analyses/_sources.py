"""Works that several analyses are of."""

from __future__ import annotations

from isolux.vocabulary.info import Reference

__all__ = ["FHIBE"]

FHIBE = Reference(
    "fhibe",
    "Xiang, A., Andrews, J. T. A., Bourke, R. L., Thong, W., LaChance, J. M., "
    "Georgievski, T., et al. (2025). Fair human-centric image dataset for ethical AI "
    "benchmarking. Nature.",
    "Methods: bias discovery in narrow models",
    "https://fairnessbenchmark.ai.sony",
)
