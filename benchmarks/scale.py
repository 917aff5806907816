"""A table of many people, one fresh process each: do time and memory follow the data?

10⁴ to 10⁷ people with a truth and an answer, in four groups; the command as a user gives it, run
directory and report included. Beside it what a user would take instead: fairlearn's ``MetricFrame``
with 2,000 bootstrap resamples, and pandas' ``groupby`` with one test of scipy for each pair. The
peers answer a smaller question: no correction over the family, no report, no scores to keep.
fairlearn's bootstrap is timed at few resamples and extrapolated, which its line says.

``--quick`` stops at 10⁵ people; ``--rows N`` is the largest number.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks._timing import last_line

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
PEER_ROWS, RESAMPLES, TRIED = 1_000_000, 2_000, 2
LINEAR = 0.15  # how far time may be from a straight line
AUDIT = "from isolux.cli import main; main()"


def main() -> None:
    asked = _asked()
    print("    people   CPU s   wall s   peak GiB   CPU s a million")
    spent: dict[int, float] = {}
    peak: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        _audited(people(Path(folder), 1_000), Path(folder))  # compiles and caches what it needs
        for rows in [n for n in SIZES if n <= asked.rows]:
            file = people(Path(folder), rows)
            seconds, wall, gib = _audited(file, Path(folder))
            spent[rows], peak[rows] = seconds, gib
            print(
                f"{rows:>10,} {seconds:7.2f} {wall:8.2f} {gib:10.2f} {seconds / rows * 1e6:17.2f}"
            )
        peer_rows = min(asked.rows, PEER_ROWS)
        table = pl.read_csv(people(Path(folder), peer_rows))
    slope, start, apart = straight_line(spent)
    print(f"time is {start:.2f} s and {slope * 1e6:.2f} s a million people;", end=" ")
    print(f"the sizes lie up to {100 * apart:.0f} % off that line ({100 * LINEAR:.0f} % allowed)")
    fair, each = fairlearn_seconds(table)
    print(
        f"fairlearn, {peer_rows:,} people: {fair:.0f} CPU s for {RESAMPLES:,} resamples, "
        f"extrapolated from {TRIED} at {each:.2f} s each"
    )
    plain = scipy_seconds(table)
    print(f"pandas and scipy, {peer_rows:,} people: {plain:.2f} CPU s, nothing resampled")
    last_line(
        "scale", spent[peer_rows], f"fairlearn's bootstrap, {RESAMPLES:,} resamples", fair,
        rows=peer_rows, cpu_s=spent, peak_gib=peak, off_the_line=apart, scipy_s=plain,
    )  # fmt: skip


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="within 60 s")
    parser.add_argument("--rows", type=int, default=SIZES[-1])
    asked = parser.parse_args()
    asked.rows = min(asked.rows, 100_000) if asked.quick else asked.rows
    return asked


def people(folder: Path, rows: int) -> Path:
    """Draw people of four groups, answered rightly in 86 to 90 of 100 cases."""
    rng = np.random.default_rng(0)
    true, group = rng.integers(0, 2, rows), rng.integers(0, 4, rows)
    answer = true ^ (rng.random(rows) < 0.10 + 0.02 * (group % 3))
    words = np.array(["no", "yes"])
    file = folder / f"{rows}.csv"
    pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "truth": words[true],
            "answer": words[answer],
            "group": np.array(list("abcd"))[group],
        }
    ).write_csv(file)
    return file


def _audited(file: Path, folder: Path) -> tuple[float, float, float]:
    """Audit in a process of its own: CPU seconds, seconds, and its peak memory in GiB."""
    command = [
        sys.executable, "-c", AUDIT, "audit", f"table:{file}", "--id", "id", "--target", "truth",
        "--prediction-column", "answer", "--positive", "yes", "--by", "group",
        "--out", str(folder / "run"), "--overwrite",
    ]  # fmt: skip
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise RuntimeError(
            f"the audit of {file.name} ended with {os.waitstatus_to_exitcode(status)}"
        )
    return used.ru_utime + used.ru_stime, time.monotonic() - start, used.ru_maxrss / (1 << 20)


def straight_line(spent: dict[int, float]) -> tuple[float, float, float]:
    """Fit seconds to people, each size weighing alike: slope, start, and the largest gap."""
    rows, seconds = np.array([*spent]), np.array([*spent.values()])
    slope, start = np.polyfit(rows, seconds, 1, w=1.0 / seconds)
    return float(slope), float(start), float(np.abs((start + slope * rows) / seconds - 1.0).max())


def fairlearn_seconds(table: pl.DataFrame) -> tuple[float, float]:
    """Time fairlearn's bootstrap of the same rates: for all resamples, and for one."""
    from fairlearn.metrics import MetricFrame, selection_rate, true_positive_rate
    from fairlearn.metrics import false_positive_rate as fpr
    from sklearn.metrics import accuracy_score, precision_score

    truth, answer = ((table[c] == "yes").cast(pl.Int8).to_numpy() for c in ("truth", "answer"))
    metrics: dict[str, Any] = {
        "accuracy": accuracy_score, "precision": precision_score, "tpr": true_positive_rate,
        "fpr": fpr, "selection": selection_rate,
    }  # fmt: skip

    group = table["group"].to_numpy()

    def framed(resamples: int | None) -> float:
        start = time.process_time()
        MetricFrame(
            metrics=metrics, y_true=truth, y_pred=answer, sensitive_features=group,
            n_boot=resamples, ci_quantiles=[0.025, 0.975] if resamples else None, random_state=0,
        )  # fmt: skip
        return time.process_time() - start

    plain = framed(None)
    each = (framed(TRIED) - plain) / TRIED
    return plain + RESAMPLES * each, each


def scipy_seconds(table: pl.DataFrame) -> float:
    """Time a group-by and a chi-squared test for each pair of groups and each rate."""
    import pandas as pd
    from scipy.stats import chi2_contingency

    frame = pd.DataFrame({c: table[c].to_list() for c in ("truth", "answer", "group")})
    start = time.process_time()
    right, yes = frame["truth"] == frame["answer"], frame["answer"] == "yes"
    true = frame["truth"] == "yes"
    everyone = pd.Series(data=True, index=frame.index)
    rates = [(right, everyone), (right, true), (right, ~true), (right, yes), (yes, everyone)]
    for value, population in rates:
        held = value[population].groupby(frame["group"][population]).agg(["sum", "count"])
        counts = np.column_stack([held["sum"], held["count"] - held["sum"]])
        for a, b in combinations(range(len(counts)), 2):
            chi2_contingency(counts[[a, b]])
    return time.process_time() - start


if __name__ == "__main__":
    main()
