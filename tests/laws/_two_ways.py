"""Worlds of photos that are alike by subject and by photographer, drawn without the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from isolux.disparity.drawn import DrawnComparisons
from isolux.groups.uncertainty import KEPT_EFFECTIVE
from isolux.stats.design import build_design
from isolux.stats.differences import deviates
from isolux.stats.drawn_design import build_drawn, with_other_way
from tests.laws._samples import MEASURE, Z

_MANY = 200_000


@dataclass(frozen=True)
class Cell:
    """One kind of world: spreads of subjects and photographers in logits, and whose groups are."""

    rate: float = 0.7
    subjects: float = 0.8
    photographers: float = 0.8
    whose: str = "subject"
    sizes: tuple[int, int, int] = (100, 40, 600)

    def row(self) -> dict[str, object]:
        """Return what names the cell in a table."""
        return {
            "rate": self.rate,
            "subjects' spread": self.subjects,
            "photographers' spread": self.photographers,
            "attribute of the": self.whose,
        }


def draw(rng: np.random.Generator, cell: Cell) -> tuple[np.ndarray, ...]:
    """Draw a world: subject, photographer, right or wrong, and group of each photo."""
    one, two, n = cell.sizes
    lean = np.log(cell.rate / (1.0 - cell.rate))
    a, b = rng.normal(0.0, cell.subjects, one), rng.normal(0.0, cell.photographers, two)
    subject, photographer = rng.integers(0, one, n), rng.integers(0, two, n)
    p = 1.0 / (1.0 + np.exp(-(lean + a[subject] + b[photographer])))
    right = (rng.random(n) < p).astype(float)
    own = {"subject": (one, subject), "photographer": (two, photographer), "photo": (n, None)}
    size, at = own[cell.whose]
    drawn = rng.random(size) < 0.4
    group = (drawn if at is None else drawn[at]).astype(np.int64)
    codes = (np.unique(x, return_inverse=True)[1] for x in (subject, photographer))
    return (*codes, right, group)


def truth(cell: Cell) -> float:
    """Return the rate of a photo of anyone by anyone."""
    rng = np.random.default_rng(9)
    lean = np.log(cell.rate / (1.0 - cell.rate)) + rng.normal(0.0, cell.subjects, _MANY)
    lean += rng.normal(0.0, cell.photographers, _MANY)
    return float((1.0 / (1.0 + np.exp(-lean))).mean())


def judge(cell: Cell, worlds: int, seed: int = 0) -> dict[str, object]:
    """Return a cell's row: p at most .05 and coverage, clusters both ways and one way alone."""
    rng, rate = np.random.default_rng(seed), truth(cell)
    p: dict[str, list[bool]] = {"both": [], "one": []}
    held: dict[str, list[bool]] = {"both": [], "one": []}
    for _ in range(worlds):
        subject, photographer, right, group = draw(rng, cell)
        n = len(right)
        columns = csr_array(np.column_stack([right, np.ones(n)]))
        entries = np.concatenate([np.zeros(n, dtype=np.int64), group + 1]), np.tile(np.arange(n), 2)
        plain = build_design(columns, subject, *entries, 3)
        one = build_drawn(columns, subject, entries, plain, np.ones(n), None)
        other = build_design(columns, photographer, *entries, 3)
        both = with_other_way(one, columns, (subject, photographer), entries, other)
        for name, design in (("both", both), ("one", one)):
            found = DrawnComparisons.of(design, MEASURE, np.arange(3))
            apart = found.pairs(np.array([1]), np.array([2]))
            p[name].append(bool(abs(deviates(apart, (Z,))[0]) >= Z))
            ends = found.means.score_interval(Z)
            kept = found.means.effective_clusters[1:] >= KEPT_EFFECTIVE
            held[name] += ((ends.low <= rate) & (rate <= ends.high))[1:][kept].tolist()
    return {
        **cell.row(),
        "p <= .05, %": float(np.mean(p["both"])),
        "covered where ok, %": float(np.mean(held["both"])) if held["both"] else None,
        "subjects alone: p <= .05, %": float(np.mean(p["one"])),
        "subjects alone: covered, %": float(np.mean(held["one"])),
    }
