"""The distance of shares to those aimed at, of prompts with unlike numbers of pictures.

It is a mean of absolute gaps: chance alone makes it larger, most for a prompt of few pictures.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import INSTANCES
from isolux.disparity.comparisons import build_comparisons
from isolux.groups.measure import measure_groups
from isolux.stats.test_inversion import two_sided_p_from_z, z_statistics_by_test_inversion
from isolux.tasks.generated_images import score
from tests._scored import members
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized

pytestmark = pytest.mark.law
Z = 1.9599639845400545
INFO = DatasetInfo(title="Drawn", summary="Pictures that a test numbered.", references=())
EVEN = (0.2,) * 5
UNEVEN = (0.6, 0.2, 0.1, 0.05, 0.05)
JUDGE = np.full((5, 5), 0.04) + 0.8 * np.eye(5)


@dataclass(frozen=True)
class Cell:
    """True shares of two prompts' pictures, how many, in series of how many, and the judge's."""

    one: tuple[float, ...]
    pictures: tuple[int, int]
    other: tuple[float, ...] | None = None
    series: int = 1
    counted: int = 0

    def row(self):
        """Return what names the cell in a table."""
        both = [self.one] if self.other is None else [self.one, self.other]
        return {"shares": "; ".join(" / ".join(f"{s:g}" for s in shares) for shares in both),
                "pictures": "/".join(map(str, self.pictures)), "alike in series of": self.series,
                "matrix, cases a value": self.counted or "none"}  # fmt: skip

    def distances(self):
        """Return what the two prompts' distances truly are."""
        return np.array([
            np.abs(np.array(shares) - 1.0 / len(shares)).sum() / 2.0
            for shares in (self.one, self.other or self.one)
        ])  # fmt: skip


NULL = [
    Cell((0.5, 0.5), (60, 600)),
    Cell((0.9, 0.1), (150, 600)),
    Cell(EVEN, (60, 600)),
    Cell(EVEN, (300, 2000)),
    Cell(EVEN, (400, 2400), series=4),
    Cell(EVEN, (100, 600), counted=150),
    Cell(UNEVEN, (60, 600)),
    Cell(UNEVEN, (600, 600), series=4, counted=150),
    Cell((0.7, 0.3), (60, 600), (0.3, 0.7)),
]
FOUND = [Cell((0.7, 0.3), (100, 600), (0.5, 0.5)), Cell(UNEVEN, (100, 600), EVEN)]


def _drawn(rng, shares, pictures, series):
    """Draw true values: in a series, each picture is of the first one's value half of the time."""
    own = rng.choice(len(shares), pictures, p=shares)
    first = np.repeat(own[::series], series)
    return np.where(rng.random(pictures) < (0.5 if series > 1 else 0.0), first, own)


def asked(rng, cell, replicates, seed, path):
    """Return p of the difference; whether both values' intervals, and its own, hold the truth."""
    laws = cell.one, cell.other or cell.one
    true = np.concatenate([
        _drawn(rng, shares, n, cell.series) for shares, n in zip(laws, cell.pictures, strict=True)
    ])  # fmt: skip
    said, matrix = true, None
    if cell.counted:
        said = np.array([rng.choice(5, p=JUDGE[t]) for t in true])
        counts = [rng.multinomial(cell.counted, row) for row in JUDGE]
        rows = [("abcde"[t], "abcde"[s], int(counts[t][s])) for t in range(5) for s in range(5)]
        pl.DataFrame(rows, schema=["true", "labelled", "count"], orient="row").write_csv(path)
        matrix = str(path)
    ids = [f"u{i}" for i in range(len(true))]
    clusters = [f"s{i // cell.series}" for i in range(len(true))]
    people = pl.DataFrame({"instance_id": ids, "image_id": ids, "cluster_id": clusters})
    dataset = Dataset("drawn", INFO, INSTANCES.conform(people))
    answers = pl.DataFrame({"model": "m", "instance_id": ids, "label": ["abcde"[s] for s in said]})
    aim = {"abcde"[k]: 1.0 / len(cell.one) for k in range(len(cell.one))}
    scores = score(dataset, answers, matrix=matrix, aim=aim, metrics=("judged_share", "distance"),
                   by_people=True)  # fmt: skip
    groups = np.repeat(["one", "other"], cell.pictures).tolist()
    spec = ComparisonSettings(replicates=replicates, seed=seed)
    found = measure_groups(scores, members(g=groups), spec)
    (j,) = (j for j, m in enumerate(found.measures) if m.metric == "distance")
    rows = {group.name: row for row, group in enumerate(found.groups)}
    one, two = (np.array([rows[name]]) for name in ("one", "other"))
    apart = build_comparisons(found, "g", j).compare_pairs(one, two)
    ends, truths = apart.interval(Z), cell.distances()
    at = np.concatenate([one, two])
    low, high = found.interval.low[at, j], found.interval.high[at, j]
    ok = found.status[at, j] == "ok"
    covered = ends.low.item() <= truths[0] - truths[1] <= ends.high.item()
    raw = found.value[one, j] - found.value[two, j]
    error = np.hypot(found.standard_error[one, j], found.standard_error[two, j])
    own = (low <= truths + 1e-12) & (truths - 1e-12 <= high)
    return (
        two_sided_p_from_z(z_statistics_by_test_inversion(apart, (Z,))).item(),
        two_sided_p_from_z(raw / error).item(),
        covered,
        *own,
        *ok,
    )


def _row(k, cell, worlds, replicates, key):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matrix.csv"
        found = np.array([
            asked(np.random.default_rng([157, key, k, world]), cell, replicates, world, path)
            for world in range(worlds)
        ])  # fmt: skip
    held, ok = (found[:, i : i + 2] > 0 for i in (3, 5))
    both = ok.all(axis=1)
    few = not both.mean() > 0.25
    return {**cell.row(), "both ok, %": float(both.mean()),
            "p <= .05, %": None if few else float((found[both, 0] <= 0.05).mean()),
            "without that, %": float((found[:, 1] <= 0.05).mean()),
            "difference covered, %": None if few else float(found[both, 2].mean()),
            "covered where ok, %": float(held[ok].mean()) if ok.any() else None,
            }  # fmt: skip


@pytest.mark.parametrize("k", range(len(NULL)) if FULL else (2, 5))
def test_prompts_of_few_pictures_are_no_further_from_the_aim(k):
    worlds, replicates = scaled(200, 30), sized(200, 100)
    row = _row(k, NULL[k], worlds, replicates, 0)
    record(f"distance-null-{k}", [row], worlds=worlds, replicates=replicates)
    if row["p <= .05, %"] is not None:
        assert row["p <= .05, %"] <= at_most(0.05, worlds, full=0.097), row
        assert row["difference covered, %"] >= at_least(0.95, worlds, full=0.903), row
        assert row["covered where ok, %"] >= at_least(0.95, worlds, full=0.905), row


@pytest.mark.parametrize("k", range(len(FOUND)) if FULL else (1,))
def test_a_prompt_that_is_off_is_found(k):
    worlds, replicates = scaled(100, 20), sized(200, 100)
    row = _row(k, FOUND[k], worlds, replicates, 1)
    record(f"distance-gap-{k}", [row], worlds=worlds, replicates=replicates)
    assert row["p <= .05, %"] >= 0.5, row
    assert row["difference covered, %"] >= at_least(0.95, worlds, full=0.88), row
