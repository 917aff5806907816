"""Worlds in which nothing differs, drawn without the package: clusters of photos, right or wrong.

A cell says how often photos are right, how alike those of a cluster are, how large clusters are,
and where the attribute varies. Everything is drawn here with numpy alone, so that no error of
``isolux_worlds`` can hide one of isolux.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIZES = ("equal", "geometric", "lognormal", "dominating")
WHERE = ("between", "within", "mixed", "one cell", "lumpy")


@dataclass(frozen=True)
class Cell:
    """One kind of null world; ``other`` sets what the second group's clusters have instead."""

    rate: float = 0.9
    icc: float = 0.3
    clusters: int = 100
    sizes: str = "equal"
    photos: int = 8
    where: str = "between"
    prevalence: float = 0.5
    first: int | None = None
    other_icc: float | None = None
    other_photos: int | None = None
    lumpy: float = 0.0
    delta: float = 0.0

    def name(self) -> str:
        """Say what is not as usual."""
        if self.first is not None:
            return f"rate {self.rate:g}, {self._sides()}"
        said = [f"rate {self.rate:g}", f"correlation {self.icc:g}", f"{self.clusters} clusters"]
        said += [self.sizes] if self.sizes != "equal" else []
        said += [f"{self.where} {self.prevalence:g}"]
        said += [f"{100 * self.lumpy:g} in 100 all right or all wrong"] if self.lumpy else []
        return ", ".join(said)

    def _sides(self) -> str:
        """Say how many clusters each group has, of how many photos, and how alike those are."""
        first = self.first or 0
        photos = self.photos if self.other_photos is None else self.other_photos
        alike = self.icc if self.other_icc is None else self.other_icc
        one, two = (
            f"{n} clusters of {photos} with correlation {icc:g}"
            for n, photos, icc in (
                (first, self.photos, self.icc),
                (self.clusters - first, photos, alike),
            )
        )
        return f"{one} beside {two}"


def draw(rng: np.random.Generator, cell: Cell, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw worlds: photos and right ones ``[w, 2, clusters]`` of both groups."""
    shape = worlds, cell.clusters
    by_chance = cell.first is None
    first = rng.random(shape) < cell.prevalence
    if not by_chance:
        first = np.broadcast_to(np.arange(cell.clusters) < cell.first, shape)
    n = _sizes(rng, cell.sizes, shape, cell.photos)
    if cell.other_photos is not None:
        n = np.where(first, n, cell.other_photos)
    icc = np.full(shape, cell.icc)
    if cell.other_icc is not None:
        icc = np.where(first, icc, cell.other_icc)
    p = _rates(rng, cell.rate, icc)
    if cell.lumpy:
        p = np.where(rng.random(shape) < cell.lumpy, rng.random(shape) < cell.rate, p)
    in_a = _members(rng, cell, n, first)
    photos = np.stack([in_a, n - in_a], axis=1)
    worse = p * (1.0 - cell.delta / cell.rate)
    return photos, rng.binomial(photos, np.stack([worse, p], axis=1))


def _members(rng: np.random.Generator, cell: Cell, n: np.ndarray, first: np.ndarray) -> np.ndarray:
    whole = np.where(first, n, 0)
    if cell.where == "between":
        return whole
    if cell.where == "within":
        return rng.binomial(n, cell.prevalence)
    if cell.where == "mixed":  # a tenth of clusters are in both groups
        varies = rng.random(n.shape) < 0.1
        return np.where(varies, rng.binomial(n, cell.prevalence), whole)
    if cell.where == "one cell":  # one photo of one cluster is labelled otherwise
        whole[:, 0] = np.where(first[:, 0], n[:, 0] - 1, 1)
        return whole
    own = rng.beta(2.0 * cell.prevalence, 2.0 * (1.0 - cell.prevalence), n.shape)
    return rng.binomial(n, own)


def _sizes(rng: np.random.Generator, kind: str, shape: tuple[int, int], mean: int) -> np.ndarray:
    if kind == "equal":
        return np.full(shape, mean)
    if kind == "geometric":
        return rng.geometric(1.0 / mean, shape)
    if kind == "lognormal":
        drawn = rng.lognormal(np.log(mean) - 0.68, 1.6, shape)
        return np.maximum(1, np.rint(drawn)).astype(int)
    n = np.full(shape, 4)
    n[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = 200
    return n


def _rates(rng: np.random.Generator, rate: float, icc: np.ndarray) -> np.ndarray:
    alike = np.where(icc > 0, icc, 0.5)
    a, b = rate * (1 - alike) / alike, (1 - rate) * (1 - alike) / alike
    return np.where(icc > 0, rng.beta(np.maximum(a, 1e-9), np.maximum(b, 1e-9)), rate)


def grid() -> list[Cell]:
    """List the cells of the whole grid."""
    shapes = [(24, "equal"), (60, "equal"), (300, "equal"), (1000, "equal"), (100, "geometric"),
              (100, "lognormal"), (400, "lognormal"), (40, "dominating")]  # fmt: skip
    places = [("between", 0.5), ("between", 0.1), ("within", 0.5), ("within", 0.04),
              ("within", 0.02), ("mixed", 0.3), ("one cell", 0.3), ("lumpy", 0.1)]  # fmt: skip
    cells = [
        Cell(rate=rate, icc=icc, clusters=clusters, sizes=sizes, where=where, prevalence=share)
        for rate in (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
        for icc in (0.0, 0.1, 0.3, 0.5)
        for clusters, sizes in shapes
        for where, share in places
    ]
    return [*cells, *unequal()]


def unequal() -> list[Cell]:
    """List cells whose groups differ in correlation, in size, or in both, but not in rate."""
    kinds = [  # clusters of the first, all, correlations, photos
        (12, 72, 0.6, 0.0, 8, 8), (12, 72, 0.0, 0.6, 8, 8), (12, 212, 0.6, 0.0, 8, 8),
        (60, 260, 0.6, 0.3, 8, 8), (200, 212, 0.0, 0.6, 8, 8), (30, 130, 0.5, 0.05, 8, 8),
        (12, 112, 0.3, 0.3, 30, 2), (12, 112, 0.1, 0.1, 30, 2), (100, 112, 0.3, 0.3, 2, 30),
    ]  # fmt: skip
    return [
        Cell(rate=rate, icc=icc, clusters=c, first=f, other_icc=other, photos=m, other_photos=k,
             prevalence=f / c)
        for rate in (0.5, 0.8, 0.95, 0.99)
        for f, c, icc, other, m, k in kinds
    ]  # fmt: skip
