"""Bootstrap replicates of five metrics in ten groups of 50,000 rows, beside fairlearn's.

Ours are ``isolux.metric_frame`` as a user calls it, scoring and intervals included, divided by the
replicates; fairlearn's are ``MetricFrame(n_boot=n)`` less ``MetricFrame()`` without a bootstrap,
divided by n. Both on the same arrays; their point estimates are compared before anything is timed.
"""

from __future__ import annotations

import warnings

import fairlearn.metrics as fm
import numpy as np
from sklearn.metrics import accuracy_score, precision_score

import isolux
from benchmarks._timing import cpu_seconds, last_line, quick

ROWS, GROUPS, REPLICATES, SUBJECTS = 50_000, 10, 5_000, 5_000
NAMES = {
    "accuracy": accuracy_score,
    "selection_rate": fm.selection_rate,
    "true_positive_rate": fm.true_positive_rate,
    "false_positive_rate": fm.false_positive_rate,
    "precision": precision_score,
}


def main() -> None:
    warnings.simplefilter("ignore")
    few = quick()
    rng = np.random.default_rng(0)
    subject = rng.integers(0, SUBJECTS, ROWS)
    group = subject % GROUPS
    skill = rng.beta(8, 2, SUBJECTS)[subject]
    true = rng.integers(0, 2, ROWS)
    pred = np.where(rng.random(ROWS) < skill, true, 1 - true)

    def ours(cluster: object, replicates: int) -> isolux.MetricFrame:
        return isolux.metric_frame(
            metrics={n: n for n in NAMES}, y_true=true, y_pred=pred,
            sensitive_features={"group": group}, cluster=cluster, replicates=replicates,
        )  # fmt: skip

    def theirs(n: int) -> fm.MetricFrame:
        boot = {"n_boot": n, "ci_quantiles": [0.025, 0.975], "random_state": 0} if n else {}
        return fm.MetricFrame(
            metrics=NAMES, y_true=true, y_pred=pred, sensitive_features=group, **boot
        )

    ours(None, 100)  # imports
    check(ours(None, 100), theirs(0))
    rows_s, _ = cpu_seconds(lambda: ours(None, REPLICATES))
    clusters_s, _ = cpu_seconds(lambda: ours(subject, REPLICATES))
    n = 5 if few else 30
    plain_s, _ = cpu_seconds(lambda: theirs(0))
    boot_s, _ = cpu_seconds(lambda: theirs(n))
    peer = (boot_s - plain_s) / n
    print(f"isolux, rows independent: {rows_s:.2f} s for {REPLICATES} replicates")
    print(f"isolux, {SUBJECTS} subjects of ten photos resampled: {clusters_s:.2f} s")
    print(f"fairlearn, rows: {boot_s:.2f} s for {n} replicates, {plain_s:.2f} s without")
    print("CPU seconds; the ratio is per replicate")
    last_line(
        "bootstrap", rows_s / REPLICATES, "fairlearn", peer,
        ratio_clustered=peer / (clusters_s / REPLICATES), rows=ROWS, groups=GROUPS,
        metrics=len(NAMES), replicates=REPLICATES, peer_replicates=n, ours_total_s=rows_s,
        ours_clustered_total_s=clusters_s,
    )  # fmt: skip


def check(mine: isolux.MetricFrame, peer: fm.MetricFrame) -> None:
    for name in NAMES:
        values = mine.by_group.filter(metric=name)["value"].to_numpy()
        if not np.allclose(values, peer.by_group[name].to_numpy(dtype=float), atol=1e-12):
            raise SystemExit(f"{name}: the two disagree, so their times mean nothing")


if __name__ == "__main__":
    main()
