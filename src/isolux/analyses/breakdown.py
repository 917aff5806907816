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

from isolux.analyses._found import check_settings, found_of, groups_of, measured_again, settings_of
from isolux.geometry.matching import AREA_RANGES_PX
from isolux.groups import membership, natural_order
from isolux.groups.unknown import KNOWN_SUFFIX, UNKNOWN
from isolux.statements.words import words_of
from isolux.vocabulary import registry, works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import IsoluxError, UnknownNameError
from isolux.vocabulary.info import AnalysisInfo, Metric
from isolux.vocabulary.spec import Statistics, Task
from isolux.vocabulary.tables import FINDINGS, MEMBERSHIP

__all__ = ["CAPTION", "INFO", "SIZE", "explain"]

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
_MOST_VALUES = 6
_DIGITS = 5
_ORDER = ("small", "medium", "large", "none", "partial", "heavy", "false", "true")


def explain(
    run: Run, *, by: Sequence[str] = (), replicates: int = 200, most_groups: int = 24
) -> Explained:
    """Lay out each group's people by size and occlusion, and the audit's first metric in each.

    Parameters
    ----------
    run : Run
        With the evidence ``found_at``: detection, face detection, segmentation or keypoints.
    by : sequence of str
        What to divide people by: ``"size"`` or attributes of the dataset with few values. Default:
        size, and ``occlusion``, ``occluded`` or ``visible`` where the dataset has it.
    replicates : int
        Replicates for the intervals, 100 or more; fewer than in the audit are enough, because
        nothing is tested here.
    most_groups : int
        Per attribute; the largest are kept.

    Returns
    -------
    Explained
        No findings, and one table: ``model, metric`` (in words), ``attribute`` (null: everyone),
        ``group, by, stratum, people``, ``share`` (of the group's people, 0 to 1), ``value, low,
        high`` (the metric's unit; null with a ``status`` where too few are there).

    Raises
    ------
    SpecError
        A run of another task, or without average recall; a setting that is too small.
    UnknownNameError
        People have no such attribute.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    check_settings(replicates=(replicates, 100), most_groups=(most_groups, 1))
    found = found_of(run)
    if found is None:
        return Explained(FINDINGS.empty())
    spec = settings_of(run, replicates=replicates)
    units, metric = _main_scores(run, spec.task)
    members = groups_of(run, spec.groups, units["unit_id"].unique(maintain_order=True))
    members = _largest(members, most_groups)
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
    task = str(run.scores["task"][0])
    try:
        info = registry.task_info(task)
        wanted = [*asked.metrics, *info.defaults, *measured]
        declared = {m.name: m for m in info.metrics}
    except IsoluxError:  # a run read back where the task's package is not installed
        wanted, declared = [*asked.metrics, *measured], {}
    name = next(metric for metric in wanted if metric in measured)
    rows = run.scores.filter(pl.col("metric") == name)
    first = rows["threshold"].min()
    rows = rows.filter(pl.col("threshold").eq_missing(pl.lit(first, dtype=pl.Float64)))
    fallback = Metric(name=name, title=name, definition="", direction="none")
    # Class by class a person has one score, under his own class.
    one = rows.unique(["model", "unit_id"], keep="first", maintain_order=True)
    return one.with_columns(label=pl.lit(None, pl.String)), declared.get(name, fallback)


def _divisions(run: Run, by: Sequence[str]) -> list[str]:
    known = run.attributes["attribute"].unique().sort().to_list()
    for name in by:
        if name not in (SIZE, *known):
            raise UnknownNameError("attribute", name, [SIZE, *known], where="by")
    return list(dict.fromkeys(by)) or [SIZE, *(name for name in _OCCLUSION if name in known)]


def _largest(members: pl.DataFrame, most: int) -> pl.DataFrame:
    sizes = members.group_by("attribute", "group", maintain_order=True).len("n")
    rank = pl.col("n").rank("ordinal", descending=True).over("attribute")
    kept = sizes.filter(rank <= most)
    return members.join(kept, on=["attribute", "group"], how="semi", maintain_order="left")


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
    if run.attributes.filter(pl.col("attribute") == attribute)["value"].n_unique() > _MOST_VALUES:
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
    everyone = units.select("unit_id").unique(maintain_order=True)
    alone = everyone.select(
        attribute=pl.lit(None, pl.String), group=pl.lit("everyone"), unit_id="unit_id"
    )
    own = pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX) == name
    grouped = pl.concat([alone, members.filter(~own).select(alone.columns)])
    names = grouped.select("attribute", "group").unique(maintain_order=True).with_row_index("at")
    # Groups are numbered: their names may hold anything, and one group is an attribute here.
    cells = (
        grouped.join(names, on=["attribute", "group"], nulls_equal=True, maintain_order="left")
        .join(strata, on="unit_id", maintain_order="left")
        .select(
            attribute=pl.col("at").cast(pl.String),
            group="stratum",
            values=pl.concat_list("stratum"),
            unit_id="unit_id",
        )
    )
    task = str(units["task"][0])
    measured = measured_again(units, MEMBERSHIP.conform(cells), task, metric, spec)
    numbered = measured.drop_nulls("attribute").with_columns(at=pl.col("attribute").cast(pl.UInt32))
    words = strata["stratum"].unique().sort().to_list()
    return (
        numbered.select(
            "model", "at", pl.lit(name).alias("by"), stratum="group", people="n_units",
            value=pl.col("value").round(_DIGITS), low=pl.col("low").round(_DIGITS),
            high=pl.col("high").round(_DIGITS), status="status",
        )
        .with_columns(share=_share().round(_DIGITS), place=_place(words))
        .join(names, on="at", maintain_order="left")
        .sort("model", "at", "place", maintain_order=True)
        .select("model", "attribute", "group", "by", "stratum", "people", "share", "value", "low",
                "high", "status")
    )  # fmt: skip


def _share() -> pl.Expr:
    """Divide a cell's people by those of its group; null where no person is scored."""
    whole = pl.col("people").sum().over("model", "at")
    return pl.when(whole > 0).then(pl.col("people") / whole)


def _place(words: Sequence[str]) -> pl.Expr:
    """Put strata in the order of their sense where that is known, else in their natural one."""
    rest = natural_order([word for word in words if word not in _ORDER])
    order = [word for word in (*_ORDER, *rest) if word != UNKNOWN] + [UNKNOWN]
    return pl.col("stratum").replace_strict(order, list(range(len(order))), return_dtype=pl.Int64)


def _notes(names: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    left = [name for name in names if name not in kept]
    said = f"People were not divided by {', '.join(left)}: it has one value or more than "
    return (f"{said}{_MOST_VALUES}.",) if left else ()
