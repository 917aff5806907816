"""2,000 bootstrap replicates of the average recall of 206 groups, beside the recall itself.

Images are the clusters that are resampled. There is no peer: what 100 replicates cost is compared
with twice the cost of ``isolux.score`` and the groups' means, which is what was promised.
``measure_groups`` is taken whole, intervals and statuses included. One thread.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"

from benchmarks._timing import last_line, quick  # isort: skip

import numpy as np

import isolux
from benchmarks._facet_scale import BY, make
from benchmarks.detection_groups import SHARES, best, growth
from isolux.core.spec import Statistics
from isolux.groups import build_membership
from isolux.groups.measure import average_metrics_by_group, measure_groups

REPLICATES = 2_000
SPEC = Statistics(replicates=REPLICATES)


def main() -> None:
    largest = 1 / 8 if quick() else 1.0
    seconds: dict[str, float] = {}
    for share in (largest / 64, *(s * largest for s in SHARES)):
        world = make(share)
        people, boxes = world.dataset(), world.predictions()
        members = build_membership(people.attributes, BY).frame

        def score() -> isolux.Scores:
            return isolux.score("detection", people, boxes, metrics=["average_recall"])  # noqa: B023

        recall_s, means = best(lambda: average_metrics_by_group(score(), members))  # noqa: B023
        scores = score()
        boot_s, estimates = best(lambda: measure_groups(scores, members, SPEC), 2)  # noqa: B023
        if share == largest / 64:
            continue  # kernels and imports
        if not np.allclose(estimates.table()["value"], means["value"], atol=1e-12, equal_nan=True):
            raise SystemExit("the two ways to average disagree, so their times mean nothing")
        seconds[f"{share:.4f}"] = boot_s
        print(
            f"{boot_s:7.3f} s  {REPLICATES:,} replicates of {means.height - 1} groups,"
            f" {world.n_people:6,} people; the recall itself {recall_s:.3f} s"
        )
    print(growth(list(seconds.values())))
    # What is resampled are the sums and counts of every group in every image.
    terms = 2 * members.select("attribute", "values", "unit_id").height
    floor = terms * REPLICATES * 0.5e-9
    print(
        f"the floor we reckon: {floor:.2f} s ({terms / 1e6:.2f} M sums and counts of groups in"
        f" images, {REPLICATES:,} times, two a nanosecond); ours is {boot_s / floor:.1f} times that"
    )
    last_line(
        "recall_bootstrap", boot_s / (REPLICATES / 100), "twice the recall itself", 2 * recall_s,
        replicates=REPLICATES, ours_total_s=boot_s, recall_s=recall_s, floor_s=floor,
        people=world.n_people, groups=means.height - 1, seconds_by_share=seconds,
    )  # fmt: skip


if __name__ == "__main__":
    main()
