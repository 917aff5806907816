"""Each group's people by size and by occlusion: what might explain a gap.

Detectors find small and hidden people less often. Where one group's people are more often small, a
gap between groups may be one of sizes; where the gap remains among people of one size, it is not.
This shows both with each disparity: which share of each group is small, medium and large
(COCO's ranges), or hidden, and how well each of those is found. It looks and does not adjust: an
analysis of confounders does. No claim is made and nothing is tested; thin cells carry the audit's
own minimum sizes and statuses.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.analyses._regrouping import (
    ROUNDED,
    found_of,
    groups_of,
    largest_groups,
    measure_strata,
    settings_of,
    task_info_of,
)
from isolux.geometry.matching import AREA_RANGES_PX
from isolux.groups import membership, natural_order
from isolux.groups.unknown import KNOWN_SUFFIX, UNKNOWN
from isolux.statements.words import words_of
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.info import AnalysisInfo, Metric
from isolux.vocabulary.spec import Statistics, Task
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    tests=False,
    title="By size and occlusion",
    summary="What share of each group is small or hidden, and how well those people are found.",
    references=(works.HOIEM.at("section 3.2: object characteristics"),),
    assumptions=(
        "Size is the annotated area in pixels, not how large or how far away a person is.",
        (
            "A gap that vanishes within sizes may still be the model's: it may see small people "
            "worse than it need."
        ),
    ),
)
CAPTION = "Each group's people by size and occlusion"
"""Of its table; the report shows it with each attribute."""
SIZE = "size"
"""What people are divided by where nothing is named; COCO's small, medium and large."""

_OCCLUSION = ("occlusion", "occluded", "visible")
"""What datasets call it: WIDER FACE, BDD100K, FACET."""
_MAX_VALUES = 6
_REPLICATES, _MAX_GROUPS = 200, 24
"""Fewer replicates than in the audit are enough, because nothing is tested here."""
_ORDER = ("small", "medium", "large", "none", "partial", "heavy", "false", "true")


def explain(run: Run, *, by: Sequence[str] = ()) -> Explained:
    """Lay out each group's people by size and occlusion, and the audit's first metric in each.

    Parameters
    ----------
    run : Run
        With the evidence ``found_at``: detection, face detection, segmentation or keypoints.
    by : sequence of str
        What to divide people by: ``"size"`` or attributes of the dataset with few values. Default:
        size, and ``occlusion``, ``occluded`` or ``visible`` where the dataset has it.

    Returns
    -------
    Explained
        No findings, and one table: ``model, metric`` (in words), ``attribute`` (null: everyone),
        ``group, by, stratum, people``, ``share`` (of the group's people, 0 to 1), ``value, low,
        high`` (the metric's unit; null with a ``status`` where too few are there).

    Raises
    ------
    SpecError
        A run of another task, or without average recall.
    UnknownNameError
        People have no such attribute.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    found = found_of(run)
    if found is None:
        return Explained(FINDINGS.empty())
    spec = settings_of(run, replicates=_REPLICATES)
    units, metric = _main_scores(run, spec.task)
    members = groups_of(run, spec.groups, units["unit_id"].unique(maintain_order=True))
    members = largest_groups(members, _MAX_GROUPS)
    names = _divisions(run, by)
    parts = {}
    for name in names:
        strata = _sizes(found) if name == SIZE else _values(run, name, units["unit_id"].unique())
        if strata["stratum"].n_unique() > 1:
            parts[name] = _divided(units, members, strata, name, metric, spec.statistics)
    notes = _notes(names, list(parts))
    if not parts:
        return Explained(FINDINGS.empty(), notes=notes)
    said = words_of(run).measure(units.row(0, named=True))
    table = pl.concat(parts.values()).select(
        "model", pl.lit(said).alias("metric"), pl.exclude("model")
    )
    return Explained(FINDINGS.empty(), {CAPTION: table}, notes)


def _main_scores(run: Run, asked: Task) -> tuple[pl.DataFrame, Metric]:
    """Take the scores of the audit's first metric, and its first threshold, of all classes."""
    measured = run.scores["metric"].unique(maintain_order=True).to_list()
    info = task_info_of(str(run.scores["task"][0]))
    defaults, metrics = (info.defaults, info.metrics) if info else ((), ())
    name = next(name for name in (*asked.metrics, *defaults, *measured) if name in measured)
    rows = run.scores.filter(pl.col("metric") == name)
    first = rows["threshold"].min()
    rows = rows.filter(pl.col("threshold").eq_missing(pl.lit(first, dtype=pl.Float64)))
    fallback = Metric(name=name, title=name, definition="", direction="none")
    # Class by class a person has one score, under his own class.
    rows = rows.unique(["model", "unit_id"], keep="first", maintain_order=True)
    metric = {metric.name: metric for metric in metrics}.get(name, fallback)
    return rows.with_columns(label=pl.lit(None, pl.String)), metric


def _divisions(run: Run, by: Sequence[str]) -> list[str]:
    known = run.attributes["attribute"].unique().sort().to_list()
    for name in by:
        if name not in (SIZE, *known):
            raise UnknownNameError("attribute", name, [SIZE, *known], where="by")
    return list(dict.fromkeys(by)) or [SIZE, *(name for name in _OCCLUSION if name in known)]


def _sizes(found: pl.DataFrame) -> pl.DataFrame:
    """Give each person COCO's word for their area: ``unit_id, stratum``; none without an area."""
    area = pl.col("area_px")
    word = (
        pl.when(area < AREA_RANGES_PX["medium"][0])
        .then(pl.lit("small"))
        .when(area < AREA_RANGES_PX["large"][0])
        .then(pl.lit("medium"))
        .when(area.is_not_null())
        .then(pl.lit("large"))
        .otherwise(pl.lit(UNKNOWN))
    )
    return found.select("unit_id", stratum=word).unique("unit_id", maintain_order=True)


def _values(run: Run, attribute: str, units: pl.Series) -> pl.DataFrame:
    """Give each person their values of an attribute; none at all if it has too many."""
    if run.attributes.filter(pl.col("attribute") == attribute)["value"].n_unique() > _MAX_VALUES:
        return pl.DataFrame(schema={"unit_id": pl.String, "stratum": pl.String})
    held = membership(run.attributes, [attribute], units=units).frame
    return held.select("unit_id", stratum="group")


def _divided(
    units: pl.DataFrame,
    members: pl.DataFrame,
    strata: pl.DataFrame,
    name: str,
    metric: Metric,
    spec: Statistics,
) -> pl.DataFrame:
    """Measure each group's people of each stratum, and everyone's."""
    own = pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX) == name
    task = str(units["task"][0])
    measured = measure_strata(units, members.filter(~own), strata, task, metric, spec)
    order = _order(strata["stratum"].unique().sort().to_list())
    place = pl.col("stratum").replace_strict(order, range(len(order)), return_dtype=pl.Int64)
    total = pl.col("n_units").sum().over("model", "at")
    # Null where no person is scored.
    share = pl.when(total > 0).then(pl.col("n_units") / total).round(5)
    columns = ("model", "attribute", "group", pl.lit(name).alias("by"), "stratum")
    return (
        measured.with_columns(share=share, people="n_units")
        .sort("model", "at", place, maintain_order=True)
        .select(*columns, "people", "share", ROUNDED, "status")
    )


def _order(words: Sequence[str]) -> list[str]:
    """Put strata in the order of their sense where that is known, else in their natural one."""
    rest = natural_order([word for word in words if word not in _ORDER])
    return [word for word in (*_ORDER, *rest) if word != UNKNOWN] + [UNKNOWN]


def _notes(names: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    left = [name for name in names if name not in kept]
    said = f"People were not divided by {', '.join(left)}: it has one value or more than "
    return (f"{said}{_MAX_VALUES}.",) if left else ()
