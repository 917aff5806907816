"""ICON²'s cells with 200 replicates, beside one pass over the same cells without any.

350,000 truths of 8 classes in 20,000 images, one sensitive attribute of 3 groups and 5 explanatory
attributes of 3 values, and 2 M boxes; average precision over 10 overlaps. A pass starts from what a
run keeps, the table of its detections, and ends with the value of every cell: groups, values,
groups at values, class by class. Ours is the same with 200 replicates of every cell, the
dispersions, the ranking, Δ and the gaps at an equal mix, each with its interval. It may cost at
most 20 passes; the stricter number, without reading the table on either side, is printed beside it.
The paper's own reading (the false alarms of a group's own images) is timed; ``--every-image`` times
the analysis's default.

The pass is what the analysis itself does when it is asked for no replicates: there is no peer that
knows cells. Its values are held against the first ones with replicates.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl

from benchmarks._timing import cpu_seconds, last_line, quick
from benchmarks.normalised_ap import World, judged, world
from isolux.analyses.confounders.audit_tests import MaxStatistic
from isolux.analyses.confounders.detections import (
    ModelDetectionTable,
    PrecisionSettings,
    build_detection_tables_by_class,
    estimate_average_precision_of_cells,
)
from isolux.analyses.confounders.effects import AdjustmentSettings, estimate_confounder_effects
from isolux.analyses.confounders.groups import ExplanatoryStrata, SensitiveAttribute
from isolux.analyses.confounders.metric_cases import build_case_and_add_to_family
from isolux.analyses.confounders.strata import StratumEstimates, StratumLayout, build_stratum_layout
from isolux.analyses.confounders.tables import build_tables_by_caption
from isolux.core.registry import task_info

GROUPS, EXPLANATORY, VALUES, REPLICATES = 3, 5, 3, 200


def made(share: float) -> tuple[StratumLayout, pl.DataFrame, int]:
    """Make a world: its people in groups and at values, and a run's table of its detections."""
    drawn = world(share)
    n = len(drawn.truth_label)
    rng = np.random.default_rng(4)
    sensitive = SensitiveAttribute(
        "income", ("low", "middle", "high"), np.arange(n), rng.integers(0, 3, n)
    )
    strata = [
        ExplanatoryStrata(
            (f"e{k}",), ("x", "y", "z"), rng.integers(0, VALUES, n), is_image_level=False
        )
        for k in range(EXPLANATORY)
    ]
    return build_stratum_layout(sensitive, strata), _table(drawn), int(drawn.box_image.max()) + 1


def _table(drawn: World) -> pl.DataFrame:
    """Lay out people, and what was right and wrong, as ``detections`` and its numbers have them."""
    outcomes = judged(drawn)
    people = pl.DataFrame(
        {"unit": np.arange(len(drawn.truth_label)), "cluster": drawn.truth_image,
         "image": drawn.truth_image, "class": drawn.truth_label}
    ).with_columns(kind=pl.lit("person"))  # fmt: skip
    at, who = outcomes.detection, outcomes.person
    seen = pl.DataFrame(
        {"unit": who, "cluster": drawn.box_image[at], "image": drawn.box_image[at],
         "class": drawn.box_label[at], "score": drawn.score[at], "at": outcomes.iou_bits}
    )  # fmt: skip
    nobody = pl.col("unit") < 0
    seen = seen.with_columns(
        kind=pl.when(nobody).then(pl.lit("wrong")).otherwise(pl.lit("right")),
        unit=pl.when(nobody.not_()).then("unit"),
    )
    both = pl.concat([people, seen], how="diagonal")
    named = both.with_columns(
        image_id=pl.format("img{}", "image"), label=pl.col("class").cast(pl.String)
    )
    return named.drop("image", "class")


def ours(
    layout: StratumLayout,
    boxes: tuple[ModelDetectionTable, ...],
    n_clusters: int,
    how: PrecisionSettings,
) -> list[StratumEstimates]:
    """Measure with replicates, and lay everything out as the report prints it."""
    measured = estimate_average_precision_of_cells(
        layout, boxes, n_clusters, (REPLICATES, 0, "multinomial"), how
    )
    family = MaxStatistic()
    metric = task_info("detection").metric("normalised_average_precision")
    cases = []
    for label, cells in zip([*(b.label for b in boxes), None], measured, strict=True):
        row = {"model": "m", "metric": metric.name, "label": label, "threshold": None}
        facts = estimate_confounder_effects(layout, cells, AdjustmentSettings())
        cases.append(build_case_and_add_to_family(row, metric, layout, cells, facts, family, 0.95))
    tables = build_tables_by_caption(cases, family)
    if not all(isinstance(table, pl.DataFrame) for table in tables.values()):
        raise SystemExit("no tables")
    return measured


def main() -> None:
    every = "--every-image" in sys.argv
    sys.argv = [a for a in sys.argv if a != "--every-image"]
    few = quick()
    how = (
        PrecisionSettings()
        if every
        else PrecisionSettings(false_alarm_scope="class and value", count_method="mean of peers")
    )
    layout, table, n_clusters = made(0.002)
    ours(layout, build_detection_tables_by_class(table), n_clusters, how)  # compiled code is read
    shares = [0.02, 0.05] if few else [0.125, 1.0]
    for share in shares:
        layout, table, n_clusters = made(share)
        read_s, boxes = cpu_seconds(lambda table=table: build_detection_tables_by_class(table))
        cells_s, plain = cpu_seconds(
            lambda p=(layout, boxes, n_clusters): estimate_average_precision_of_cells(*p, None, how)
        )
        drawn_s, found = cpu_seconds(lambda p=(layout, boxes, n_clusters): ours(*p, how))
        for with_, without in zip(found, plain, strict=True):
            if not np.array_equal(with_.value, without.value, equal_nan=True):
                raise SystemExit("values differ, so their times mean nothing")
        one_s, all_s = read_s + cells_s, read_s + drawn_s
        n_boxes = sum(len(b.score) for b in boxes)
        n_truths = sum(len(b.person_unit) for b in boxes)
        print(
            f"{n_boxes:>9,} boxes, {layout.n_cells * 8} cells: one pass {one_s:.2f} s "
            f"({read_s:.2f} of it reading), {REPLICATES} replicates {all_s:.2f} s: "
            f"{all_s / one_s:.1f} passes, {drawn_s / cells_s:.1f} without reading"
        )
    print("CPU seconds; the bound is 20 passes")
    last_line(
        "confounders", all_s, "one pass without replicates", one_s, passes=all_s / one_s,
        passes_without_reading=drawn_s / cells_s, boxes=n_boxes,
        truths=n_truths, cells=layout.n_cells * 8, replicates=REPLICATES,
        false_alarms=how.false_alarm_scope,
    )  # fmt: skip


if __name__ == "__main__":
    main()
