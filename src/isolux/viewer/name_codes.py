"""Numbers for the models, metrics and attributes of the runs that one page shows.

Every table of the page names them by these numbers: a name stands in the file once, however many
rows it has, and two runs that measure the same metric share its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.counts import COUNTS, TIMES
from isolux.core.spec import read_recorded_spec
from isolux.core.unit_index import build_unit_index
from isolux.groups import build_membership, read_groupings
from isolux.report.summary import ReportContext
from isolux.statements.metric_lines import MetricLine

LINE = ("task", "metric", "label", "threshold")
"""The columns that together name a line of the page, whichever model it is about."""
OVERALL_INDEX = -1
"""The number in the place of an attribute of a row that is about everyone."""


@dataclass(slots=True)
class NameCodes:
    """What each number stands for.

    Parameters
    ----------
    models : list of tuple of int and str
        The run's place, and the model's name in it.
    lines : list of mapping
        The four columns that name a line, and its ``MetricLine``.
    attributes : list of tuple of str
        Each attribute's or intersection's name, and its title.
    """

    models: list[tuple[int, str]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)

    def add_run(self, run_index: int, run: Run, context: ReportContext) -> None:
        """Take in the names of one more run."""
        has_several_models = len({key[0] for key in context.lines}) > 1
        for (model, *key), line in context.lines.items():
            if (run_index, model) not in self.models:
                self.models.append((run_index, model))
            line_columns = dict(zip(LINE, key, strict=True))
            if all(
                line_columns != {name: existing_line[name] for name in LINE}
                for existing_line in self.lines
            ):
                title = line.title.removesuffix(f", {model}") if has_several_models else line.title
                self.lines.append({**line_columns, "line": line, "title": title})
        known_attributes = {name for name, _ in self.attributes}
        names = run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True)
        self.attributes += [
            (name, context.format_attribute_title(name))
            for name in names
            if name not in known_attributes
        ]

    def get_line(self, line_index: int) -> MetricLine:
        """Return the words of a line."""
        line: MetricLine = self.lines[line_index]["line"]
        return line

    def encode(
        self, run_index: int, frame: pl.DataFrame, *, model: str | None = "model"
    ) -> pl.DataFrame:
        """Replace names by their numeric codes."""
        line_rows = [{name: line[name] for name in LINE} for line in self.lines]
        types = {
            "task": pl.String,
            "metric": pl.String,
            "label": pl.String,
            "threshold": pl.Float64,
        }
        lines = pl.DataFrame(line_rows, schema=types).with_row_index("line")
        attributes = pl.DataFrame(
            {"attribute": [name for name, _ in self.attributes]}, schema={"attribute": pl.String}
        ).with_row_index("_attribute")
        encoded_rows = frame.join(
            lines, on=LINE, how="inner", nulls_equal=True, maintain_order="left"
        )
        encoded_rows = encoded_rows.join(
            attributes, on="attribute", how="left", maintain_order="left"
        )
        number = pl.col("_attribute").cast(pl.Int32).fill_null(OVERALL_INDEX)
        code_columns = {"line": pl.col("line").cast(pl.Int32), "attribute": number}
        if model is not None:
            numbers = {
                name: i for i, (model_run, name) in enumerate(self.models) if model_run == run_index
            }
            code_columns["model"] = pl.col(model).replace_strict(numbers, return_dtype=pl.Int32)
        other_columns = [c for c in frame.columns if c not in (*LINE, "attribute", "model", model)]
        return encoded_rows.select(
            *(
                code_columns[name].alias(name)
                for name in ("model", "line", "attribute")
                if name in code_columns
            ),
            *other_columns,
        )


def build_name_codes(runs: Sequence[tuple[Run, ReportContext]]) -> NameCodes:
    """Assign numbers to the models, lines and attributes of the runs, in reading order."""
    coding = NameCodes()
    for run_index, (run, context) in enumerate(runs):
        coding.add_run(run_index, run, context)
    return coding


BINS = 20
"""Bins of a distribution; of scores that are 0 or 1 alone there are two."""
_EMPTY: dict[str, Any] = {
    "model": pl.Int32,
    "line": pl.Int32,
    "attribute": pl.Int32,
    "group": pl.String,
    "counts": pl.List(pl.Int32),
    "unscored": pl.Int32,
}


def count_scores_by_bin(
    runs: Sequence[Run], coding: NameCodes, bins: Mapping[int, Any]
) -> pl.DataFrame:
    """Count people's scores in bins, for everyone and for each group."""
    counts = [
        _count_run_scores_by_bin(run_index, run, coding, bins) for run_index, run in enumerate(runs)
    ]
    return pl.concat([pl.DataFrame(schema=_EMPTY), *counts])


def choose_bins_by_line(runs: Sequence[Run], coding: NameCodes) -> dict[int, dict[str, Any]]:
    """Choose the bins of each line: its metric's range, or that of the scores where it has none."""
    scores = pl.concat(
        [encode_scores(run_index, run, coding) for run_index, run in enumerate(runs)]
    )
    ranges = (
        scores.drop_nulls("value")
        .group_by("line")
        .agg(
            low=pl.col("value").min(),
            high=pl.col("value").max(),
            two=pl.col("value").is_in([0.0, 1.0]).all(),
        )
    )
    bins = {}
    for line, low, high, is_binary in ranges.sort("line").iter_rows():
        if not np.isfinite([low, high]).all():
            continue
        inside = coding.get_line(line).unit == "fraction" and low >= 0 and high <= 1
        bounds = (0.0, 1.0) if inside or is_binary else (low, high if high > low else low + 1.0)
        bins[line] = {
            "low": bounds[0],
            "high": bounds[1],
            "n": 2 if is_binary else BINS,
            "two": is_binary,
        }
    return bins


def read_group_members(run: Run) -> pl.DataFrame:
    """Say who is in which group of the attributes that the audit asked for, as it did."""
    settings = read_recorded_spec(run.record).groups
    tables = [run.scores, *(t for t in run.evidence.values() if "unit_id" in t.columns)]
    tables = [table.drop_nulls("unit_id") for table in tables]
    unit_index = build_unit_index(
        [table.with_columns(pl.col("unit_id").cast(pl.String)) for table in tables]
    )
    scored = np.full(len(unit_index.ids), run.scores.is_empty())
    scored[unit_index.rows[0][run.scores["value"].is_not_null().to_numpy()]] = True
    units = pl.DataFrame([unit_index.ids, pl.Series("scored", scored)])
    return build_membership(
        run.attributes, settings.by, read_groupings(settings, run.attributes), units=units
    ).frame


def encode_scores(run_index: int, run: Run, coding: NameCodes) -> pl.DataFrame:
    """Encode a run's scores: ``model, line, unit_id, cluster_id, value, reason``."""
    overall_scores = run.scores.with_columns(attribute=pl.lit(None, pl.String))
    coded = coding.encode(run_index, overall_scores)
    return coded.select("model", "line", "unit_id", "cluster_id", "value", "reason")


def _count_run_scores_by_bin(
    run_index: int, run: Run, coding: NameCodes, bins: Mapping[int, Any]
) -> pl.DataFrame:
    if run.scores.is_empty() or not bins:
        return pl.DataFrame(schema=_EMPTY)
    scores = _assign_score_bins(encode_scores(run_index, run, coding), bins)
    times = run.evidence.get(COUNTS)
    if times is not None and TIMES in times.columns:
        multiplicities = times.select("unit_id", TIMES).unique("unit_id")
        scores = scores.join(multiplicities, on="unit_id", how="left", maintain_order="left")
    else:
        scores = scores.with_columns(pl.lit(1).alias(TIMES))
    numbers = {name: i for i, (name, _) in enumerate(coding.attributes)}
    overall_rows = scores.with_columns(
        attribute=pl.lit(OVERALL_INDEX, pl.Int32), group=pl.lit("overall", pl.String)
    )
    counts = [_count_rows_by_bin(overall_rows, bins)]
    members = read_group_members(run).filter(pl.col("attribute").is_in(list(numbers)))
    for (attribute,), attribute_members in members.group_by("attribute", maintain_order=True):
        number = pl.lit(numbers[str(attribute)], pl.Int32)
        group_scores = attribute_members.select("unit_id", "group").join(
            scores, on="unit_id", maintain_order="left"
        )
        counts.append(_count_rows_by_bin(group_scores.with_columns(attribute=number), bins))
    return pl.concat(counts)


def _assign_score_bins(scores: pl.DataFrame, bins: Mapping[int, Any]) -> pl.DataFrame:
    bounds = pl.DataFrame(
        [
            {"line": line, "_low": b["low"], "_high": b["high"], "_n": b["n"]}
            for line, b in bins.items()
        ],
        schema={"line": pl.Int32, "_low": pl.Float64, "_high": pl.Float64, "_n": pl.Int32},
    )
    bin_position = (
        (pl.col("value") - pl.col("_low")) / (pl.col("_high") - pl.col("_low")) * pl.col("_n")
    )
    # The smallest of a null and a number would be the number: who has no score stays without a bin.
    inside = pl.min_horizontal(bin_position.floor().clip(0).cast(pl.Int32), pl.col("_n") - 1)
    return (
        scores.join(bounds, on="line", how="inner", maintain_order="left")
        .with_columns(bin=pl.when(pl.col("value").is_not_null()).then(inside))
        .drop("_low", "_high", "_n", "cluster_id", "value", "reason")
    )


def _count_rows_by_bin(rows: pl.DataFrame, bins: Mapping[int, Any]) -> pl.DataFrame:
    key = ["model", "line", "attribute", "group"]
    tallied = rows.group_by(*key, "bin", maintain_order=True).agg(n=pl.col(TIMES).sum())
    counts_by_group = tallied.group_by(key, maintain_order=True).agg("bin", "n")
    bin_counts, unscored = [], []
    for line, bin_indices, ns in counts_by_group.select("line", "bin", "n").iter_rows():
        counts = [0] * bins[line]["n"]
        n_unscored = 0
        for bin_index, n in zip(bin_indices, ns, strict=True):
            if bin_index is None:
                n_unscored += n
            else:
                counts[bin_index] += n
        bin_counts.append(counts)
        unscored.append(n_unscored)
    return counts_by_group.select(key).with_columns(
        pl.Series("counts", bin_counts, pl.List(pl.Int32)),
        pl.Series("unscored", unscored, pl.Int32),
    )
