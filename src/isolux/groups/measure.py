"""Scores × membership → what each group gets, with an interval: the table ``group_metrics``.

Everything later reads ``Estimates``: values, replicates on common resampled clusters, and the
design behind them. Too few units or clusters give no number but a status and a reason.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.containers import Scores
from isolux.groups._columns import Judged, judge
from isolux.info import Metric
from isolux.spec import AuditSpec
from isolux.stats.design import Design, IntArray, build_design
from isolux.stats.intervals import (
    Interval,
    bca,
    keeps_promise,
    logit_t,
    no_spread,
    percentile,
    student_t,
)
from isolux.stats.resampling import (
    Columns,
    jackknife_acceleration,
    replicate_ranks,
    replicate_sums,
)
from isolux.stats.statistic import FloatArray
from isolux.tables import GROUP_METRICS, Status

__all__ = ["EVERYONE", "Estimates", "Group", "Measure", "measure_groups"]

EVERYONE = "everyone"
_NO_INTERVAL_BELOW = 10
"""Clusters below which no method's interval was honest in simulation, whatever is asked for."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of one attribute or intersection; attribute None: everyone."""

    attribute: str | None
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of one model (and class, and threshold), and its columns in the design.

    ``columns`` is None for statistics that need single rows; ``mean`` gives the columns of sum and
    count of a plain mean, for which the null tests are exact.
    """

    model: str
    task: str
    metric: str
    label: str | None
    threshold: float | None
    info: Metric
    columns: Columns | None
    mean: tuple[int, int] | None

    @property
    def fraction(self) -> bool:
        """Whether the value lies between 0 and 1."""
        return self.info.low == 0.0 and self.info.high == 1.0

    @property
    def sign(self) -> float:
        """Return 1 where higher is better or neither is, −1 where lower is better."""
        return -1.0 if self.info.direction == "lower" else 1.0


@dataclass(frozen=True, slots=True)
class Estimates:
    """What every group got: ``[g, m]`` arrays, g = 0 being everyone.

    ``replicates`` is ``[g, m, r]``. ``domain_of`` gives, per attribute, the row of the design that
    unites its groups; ``status`` and ``reason`` hold one word and one sentence per cell.
    """

    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    design: Design
    domain_of: dict[str, int]
    value: FloatArray
    replicates: FloatArray
    standard_error: FloatArray
    interval: Interval
    method: npt.NDArray[np.str_]
    n_units: IntArray
    n_clusters: IntArray
    status: npt.NDArray[np.object_]
    reason: npt.NDArray[np.object_]

    def judged(self) -> npt.NDArray[np.bool_]:
        """Tell which cells hold a value that may be compared, ``[g, m]``."""
        return np.isin(self.status.astype(str), [Status.OK.value, Status.BOUNDARY.value])

    def members(self, attribute: str) -> IntArray:
        """Rows of one attribute's groups."""
        return np.array(
            [i for i, g in enumerate(self.groups) if g.attribute == attribute], dtype=np.int64
        )

    def table(self) -> pl.DataFrame:
        """Return the table ``group_metrics``."""
        n_groups, n_measures = self.value.shape
        g = np.repeat(np.arange(n_groups), n_measures)
        shown = self.judged().ravel()

        def number(x: FloatArray) -> pl.Series:
            flat = np.where(shown, x.ravel(), np.nan)
            return pl.Series(flat).fill_nan(None)

        per_measure = {
            k: [getattr(m, k) for m in self.measures] * n_groups
            for k in ("model", "task", "metric", "label", "threshold")
        }
        frame = pl.DataFrame(
            {
                **per_measure,
                "attribute": pl.Series([self.groups[i].attribute for i in g], dtype=pl.String),
                "group": [self.groups[i].name for i in g],
                "values": pl.Series(
                    [list(self.groups[i].values) for i in g], dtype=pl.List(pl.String)
                ),
                "n_units": self.n_units.ravel(),
                "n_clusters": self.n_clusters.ravel(),
                "value": number(self.value),
                "low": number(self.interval.low),
                "high": number(self.interval.high),
                "standard_error": number(self.standard_error),
                "method": pl.Series(self.method.ravel().tolist(), dtype=pl.String),
                "status": pl.Series(self.status.ravel().tolist(), dtype=pl.String),
                "reason": pl.Series(self.reason.ravel().tolist(), dtype=pl.String),
            }
        )
        frame = frame.with_columns(
            method=pl.when(pl.col("low").is_not_null()).then(pl.col("method"))
        )
        return GROUP_METRICS.conform(frame)


def measure_groups(scores: Scores, membership: pl.DataFrame, spec: AuditSpec) -> Estimates:
    """Measure every metric for everyone and for every group.

    Parameters
    ----------
    scores : Scores
        Units' scores and the evidence of metrics that are not means.
    membership : polars.DataFrame
        Table ``membership``; units that were not scored are left out of it.
    spec : AuditSpec
        Minimum sizes, interval, replicates, seed.

    Returns
    -------
    Estimates
        Its ``table()`` is ``group_metrics``.
    """
    judged = judge(scores)
    groups, group_of, unit_of, domain_of, n_rows = _memberships(membership, judged.unit_ids)
    design = build_design(judged.columns, judged.cluster_of, group_of, unit_of, n_rows)
    measures = tuple(Measure(*parts) for parts in judged.measures)
    totals = design.totals()
    clusters = _clusters_per_row(design)
    shape = (len(groups), len(measures))
    value, replicates = _evaluate(design, measures, judged, (group_of, unit_of), shape, spec)
    counts = [judged.count_column[j] for j in range(len(measures))]
    n_units = np.rint(totals[: shape[0]][:, counts]).astype(np.int64)
    n_clusters = clusters[: shape[0]][:, counts]
    se = _standard_error(replicates, n_clusters)
    interval, method = _intervals(design, measures, value, replicates, se, n_clusters, spec)
    status, reason = _statuses(measures, value, se, n_units, n_clusters, interval, spec)
    return Estimates(
        groups, measures, design, domain_of, value, replicates, se, interval, method,
        n_units, n_clusters, status, reason,
    )  # fmt: skip


def _memberships(
    membership: pl.DataFrame, unit_ids: pl.Series
) -> tuple[tuple[Group, ...], IntArray, IntArray, dict[str, int], int]:
    """Give groups their rows (0 is everyone), and attributes a row that unites their groups."""
    units = pl.DataFrame({"unit_id": unit_ids}).with_row_index("unit")
    inside = membership.join(units, on="unit_id", how="inner", maintain_order="left")
    named = membership.select("attribute", "group", "values").unique(
        ["attribute", "values"], keep="first", maintain_order=True
    )
    named = named.with_row_index("g", offset=1)
    groups = (
        Group(None, EVERYONE, ()),
        *(Group(a, n, tuple(v)) for _, a, n, v in named.iter_rows()),
    )
    inside = inside.join(
        named.drop("group"), on=["attribute", "values"], how="left", nulls_equal=True
    )
    n_units = len(unit_ids)
    group_of = [np.zeros(n_units, dtype=np.int64), inside["g"].to_numpy().astype(np.int64)]
    unit_of = [np.arange(n_units), inside["unit"].to_numpy().astype(np.int64)]
    domain_of: dict[str, int] = {}
    row = len(groups)
    for (attribute,), part in (
        inside.select("attribute", "unit").unique().group_by("attribute", maintain_order=True)
    ):
        if part.height == n_units:
            domain_of[str(attribute)] = 0
            continue
        domain_of[str(attribute)] = row
        group_of.append(np.full(part.height, row, dtype=np.int64))
        unit_of.append(part["unit"].to_numpy().astype(np.int64))
        row += 1
    in_order = dict.fromkeys(str(g.attribute) for g in groups[1:])
    domain_of = {a: domain_of.get(a, 0) for a in in_order}  # 0 too where nobody was scored
    return groups, np.concatenate(group_of), np.concatenate(unit_of), domain_of, row


def _clusters_per_row(design: Design) -> IntArray:
    held = design.matrix.copy()
    held.data = (held.data > 0).astype(np.float64)
    counts = held @ design.copies.astype(np.float64)
    whole = np.asarray(np.rint(counts), dtype=np.int64)
    return whole.reshape(design.n_groups, design.n_columns)


def _evaluate(
    design: Design,
    measures: tuple[Measure, ...],
    judged: Judged,
    entries: tuple[IntArray, IntArray],
    shape: tuple[int, int],
    spec: AuditSpec,
) -> tuple[FloatArray, FloatArray]:
    """Values ``[g, m]`` and replicates ``[g, m, r]`` of statistics of both kinds."""
    bootstrap = spec.bootstrap()
    value = np.full(shape, np.nan)
    replicates = np.full((*shape, bootstrap.replicates), np.nan)
    summed = [(j, m.columns) for j, m in enumerate(measures) if m.columns is not None]
    where = [j for j, _ in summed]
    if summed:
        as_is = design.totals()[:, :, None]
        drawn = replicate_sums(design, [c for _, c in summed], bootstrap)
        replicates[:, where] = drawn[: shape[0]]
        for j, columns in summed:
            value[:, j] = columns.value(as_is)[: shape[0], 0]
    group_of, unit_of = entries
    for j, ranked in judged.ranked.items():
        row_of_unit = np.full(len(judged.unit_ids), -1, dtype=np.int64)
        row_of_unit[ranked.unit_of_row] = np.arange(len(ranked.unit_of_row))
        rows_of_group = []
        for g in range(shape[0]):
            rows = row_of_unit[unit_of[group_of == g]]
            rows_of_group.append(rows[rows >= 0])
        value[:, j], replicates[:, j] = replicate_ranks(
            ranked.statistic,
            ranked.rows,
            judged.cluster_of[ranked.unit_of_row],
            rows_of_group,
            int(judged.cluster_of.max(initial=-1)) + 1,
            bootstrap,
        )
    return value, replicates


def _standard_error(replicates: FloatArray, clusters: IntArray) -> FloatArray:
    """Spread of the replicates, times sqrt(C / (C − 1)): resampling C clusters understates it."""
    import warnings

    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # no finite replicate: NaN, as meant
        spread = np.nanstd(replicates, axis=-1, ddof=1)
        return np.asarray(
            spread * np.sqrt(clusters / np.where(clusters > 1, clusters - 1.0, np.nan))
        )


def _intervals(
    design: Design,
    measures: tuple[Measure, ...],
    value: FloatArray,
    replicates: FloatArray,
    se: FloatArray,
    clusters: IntArray,
    spec: AuditSpec,
) -> tuple[Interval, npt.NDArray[np.str_]]:
    low, high = np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    method = np.full(value.shape, "", dtype="<U40")
    for j, measure in enumerate(measures):
        name = _method(measure, spec)
        c = clusters[:, j].astype(float)
        v, s = value[:, j], se[:, j]
        if name == "logit-t":
            ends = logit_t(v, s, c, spec.level)
            method[:, j] = np.where(no_spread(v, s), "wilson, one per cluster", name)
        elif name == "t":
            ends, method[:, j] = student_t(v, s, c, spec.level), name
        elif name == "bca":
            assert measure.columns is not None  # noqa: S101 - _method gives bca to sums only
            speed = jackknife_acceleration(design, measure.columns, np.arange(len(v)))
            ends, method[:, j] = bca(v, replicates[:, j], speed, spec.level), name
        elif name == "percentile":
            ends, method[:, j] = percentile(replicates[:, j], spec.level), name
        else:
            ends, method[:, j] = _closed(name, v, s, c, design, measure, spec.level), name
        shown = (c >= _NO_INTERVAL_BELOW) & np.isfinite(v)
        low[:, j] = np.where(shown, ends.low, np.nan)
        high[:, j] = np.where(shown, ends.high, np.nan)
    return Interval(low, high), method


def _method(measure: Measure, spec: AuditSpec) -> str:
    """Name the method that this measure can take: the one asked for, or the nearest to it."""
    if spec.interval == "bca":
        return "bca" if measure.columns is not None else "percentile"
    if spec.interval == "percentile":
        return "percentile"
    if not measure.fraction:
        return "t"
    if spec.interval in ("wilson", "clopper-pearson") and measure.mean is not None:
        return spec.interval
    return "logit-t"


def _closed(
    name: str,
    value: FloatArray,
    se: FloatArray,
    clusters: FloatArray,
    design: Design,
    measure: Measure,
    level: float,
) -> Interval:
    """Wilson or Clopper–Pearson with the design effect that the standard error implies."""
    from isolux.stats.proportions import clopper_pearson, wilson

    assert measure.mean is not None  # noqa: S101 - _method gives closed forms to means only
    n = design.totals()[: len(value), measure.mean[1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = se**2 / (value * (1.0 - value) / n)
        largest = n / clusters
    edge = (value <= 0.0) | (value >= 1.0)
    effect = np.where(edge, largest, np.maximum(np.nan_to_num(effect, nan=1.0), 1.0))
    function = wilson if name == "wilson" else clopper_pearson
    good = n > 0
    ends = function(
        np.where(good, value * n, 0.0), np.where(good, n, 1.0), level,
        design_effect=np.where(good, effect, 1.0),
    )  # fmt: skip
    return Interval(np.where(good, ends.low, np.nan), np.where(good, ends.high, np.nan))


def _statuses(
    measures: tuple[Measure, ...],
    value: FloatArray,
    se: FloatArray,
    n_units: IntArray,
    n_clusters: IntArray,
    interval: Interval,
    spec: AuditSpec,
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Give each cell one status, the gravest that applies, and the sentence behind it."""
    status = np.full(value.shape, Status.OK.value, dtype=object)
    reason = np.full(value.shape, None, dtype=object)

    def mark(where: npt.NDArray[np.bool_], word: Status, why: str) -> None:
        status[where] = word.value
        reason[where] = why

    fraction = np.array([m.fraction for m in measures])[None, :]
    rare = fraction & ~keeps_promise(value, se, n_clusters.astype(float))
    mark(rare, Status.BOUNDARY, "too near 0 or 1 for its size: the interval may be too narrow")
    few = n_clusters < 30
    mark(few, Status.BOUNDARY, "fewer than 30 clusters: the interval may be too narrow")
    bare = np.isnan(interval.low) & (n_clusters < _NO_INTERVAL_BELOW)
    mark(bare, Status.BOUNDARY, f"fewer than {_NO_INTERVAL_BELOW} clusters: no interval is honest")
    mark(np.isnan(value), Status.UNDEFINED, "the formula divides by nothing here")
    small = n_clusters < spec.min_clusters
    mark(small, Status.INSUFFICIENT_CLUSTERS, f"fewer than {spec.min_clusters} clusters")
    thin = n_units < spec.min_units
    mark(thin, Status.INSUFFICIENT_UNITS, f"fewer than {spec.min_units} units")
    mark(n_units == 0, Status.NOT_SCORED, "nobody in this group was scored on this metric")
    return status, reason
