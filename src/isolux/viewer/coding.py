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

from isolux.groups import groupings, membership
from isolux.report.summary import Context
from isolux.statements.lines import Line
from isolux.vocabulary.containers import Run
from isolux.vocabulary.counts import COUNTS, TIMES
from isolux.vocabulary.places import number_units
from isolux.vocabulary.spec import recorded_spec

LINE = ("task", "metric", "label", "threshold")
"""The columns that together name a line of the page, whichever model it is about."""
EVERYONE = -1
"""The number in the place of an attribute of a row that is about everyone."""


@dataclass(slots=True)
class Coding:
    """What each number stands for.

    Parameters
    ----------
    models : list of tuple of int and str
        The run's place, and the model's name in it.
    lines : list of mapping
        The four columns that name a line, and its ``Line``.
    attributes : list of tuple of str
        Each attribute's or intersection's name, and its title.
    """

    models: list[tuple[int, str]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)

    def add(self, place: int, run: Run, context: Context) -> None:
        """Take in the names of one more run."""
        several = len({key[0] for key in context.lines}) > 1
        for (model, *key), line in context.lines.items():
            if (place, model) not in self.models:
                self.models.append((place, model))
            named = dict(zip(LINE, key, strict=True))
            if all(named != {name: known[name] for name in LINE} for known in self.lines):
                title = line.title.removesuffix(f", {model}") if several else line.title
                self.lines.append({**named, "line": line, "title": title})
        known_attributes = {name for name, _ in self.attributes}
        names = run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True)
        self.attributes += [
            (name, context.title(name)) for name in names if name not in known_attributes
        ]

    def line(self, place: int) -> Line:
        """Return the words of a line."""
        found: Line = self.lines[place]["line"]
        return found

    def coded(
        self, place: int, frame: pl.DataFrame, *, model: str | None = "model"
    ) -> pl.DataFrame:
        """Put numbers in the place of names."""
        named = [{name: line[name] for name in LINE} for line in self.lines]
        types = {
            "task": pl.String,
            "metric": pl.String,
            "label": pl.String,
            "threshold": pl.Float64,
        }
        lines = pl.DataFrame(named, schema=types).with_row_index("line")
        attributes = pl.DataFrame(
            {"attribute": [name for name, _ in self.attributes]}, schema={"attribute": pl.String}
        ).with_row_index("_attribute")
        found = frame.join(lines, on=LINE, how="inner", nulls_equal=True, maintain_order="left")
        found = found.join(attributes, on="attribute", how="left", maintain_order="left")
        number = pl.col("_attribute").cast(pl.Int32).fill_null(EVERYONE)
        own = {"line": pl.col("line").cast(pl.Int32), "attribute": number}
        if model is not None:
            numbers = {name: i for i, (at, name) in enumerate(self.models) if at == place}
            own["model"] = pl.col(model).replace_strict(numbers, return_dtype=pl.Int32)
        rest = [c for c in frame.columns if c not in (*LINE, "attribute", "model", model)]
        return found.select(
            *(own[name].alias(name) for name in ("model", "line", "attribute") if name in own),
            *rest,
        )


def coding_of(runs: Sequence[tuple[Run, Context]]) -> Coding:
    """Give numbers to what the runs hold, in the order of reading."""
    found = Coding()
    for place, (run, context) in enumerate(runs):
        found.add(place, run, context)
    return found


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


def distributions(runs: Sequence[Run], coding: Coding, bins: Mapping[int, Any]) -> pl.DataFrame:
    """Count people's scores in bins, for everyone and for each group."""
    found = [_of_run(place, run, coding, bins) for place, run in enumerate(runs)]
    return pl.concat([pl.DataFrame(schema=_EMPTY), *found])


def bins_of(runs: Sequence[Run], coding: Coding) -> dict[int, dict[str, Any]]:
    """Choose the bins of each line: its metric's range, or that of the scores where it has none."""
    scores = pl.concat([coded_scores(place, run, coding) for place, run in enumerate(runs)])
    seen = (
        scores.drop_nulls("value")
        .group_by("line")
        .agg(
            low=pl.col("value").min(),
            high=pl.col("value").max(),
            two=pl.col("value").is_in([0.0, 1.0]).all(),
        )
    )
    found = {}
    for line, low, high, two in seen.sort("line").iter_rows():
        if not np.isfinite([low, high]).all():
            continue
        inside = coding.line(line).unit == "fraction" and low >= 0 and high <= 1
        ends = (0.0, 1.0) if inside or two else (low, high if high > low else low + 1.0)
        found[line] = {"low": ends[0], "high": ends[1], "n": 2 if two else BINS, "two": two}
    return found


def members_of(run: Run) -> pl.DataFrame:
    """Say who is in which group of the attributes that the audit asked for, as it did."""
    settings = recorded_spec(run.record).groups
    tables = [run.scores, *(t for t in run.evidence.values() if "unit_id" in t.columns)]
    tables = [table.drop_nulls("unit_id") for table in tables]
    every = number_units(
        [table.with_columns(pl.col("unit_id").cast(pl.String)) for table in tables]
    )
    scored = np.full(len(every.ids), run.scores.is_empty())
    scored[every.rows[0][run.scores["value"].is_not_null().to_numpy()]] = True
    units = pl.DataFrame([every.ids, pl.Series("scored", scored)])
    return membership(
        run.attributes, settings.by, groupings(settings, run.attributes), units=units
    ).frame


def coded_scores(place: int, run: Run, coding: Coding) -> pl.DataFrame:
    """Put numbers into a run's scores: ``model, line, unit_id, cluster_id, value, reason``."""
    everyone = run.scores.with_columns(attribute=pl.lit(None, pl.String))
    coded = coding.coded(place, everyone)
    return coded.select("model", "line", "unit_id", "cluster_id", "value", "reason")


def _of_run(place: int, run: Run, coding: Coding, bins: Mapping[int, Any]) -> pl.DataFrame:
    if run.scores.is_empty() or not bins:
        return pl.DataFrame(schema=_EMPTY)
    scores = _binned(coded_scores(place, run, coding), bins)
    times = run.evidence.get(COUNTS)
    if times is not None and TIMES in times.columns:
        alike = times.select("unit_id", TIMES).unique("unit_id")
        scores = scores.join(alike, on="unit_id", how="left", maintain_order="left")
    else:
        scores = scores.with_columns(pl.lit(1).alias(TIMES))
    numbers = {name: i for i, (name, _) in enumerate(coding.attributes)}
    everyone = scores.with_columns(
        attribute=pl.lit(EVERYONE, pl.Int32), group=pl.lit("everyone", pl.String)
    )
    found = [_counted(everyone, bins)]
    members = members_of(run).filter(pl.col("attribute").is_in(list(numbers)))
    for (attribute,), part in members.group_by("attribute", maintain_order=True):
        number = pl.lit(numbers[str(attribute)], pl.Int32)
        own = part.select("unit_id", "group").join(scores, on="unit_id", maintain_order="left")
        found.append(_counted(own.with_columns(attribute=number), bins))
    return pl.concat(found)


def _binned(scores: pl.DataFrame, bins: Mapping[int, Any]) -> pl.DataFrame:
    ends = pl.DataFrame(
        [
            {"line": line, "_low": b["low"], "_high": b["high"], "_n": b["n"]}
            for line, b in bins.items()
        ],
        schema={"line": pl.Int32, "_low": pl.Float64, "_high": pl.Float64, "_n": pl.Int32},
    )
    place = (pl.col("value") - pl.col("_low")) / (pl.col("_high") - pl.col("_low")) * pl.col("_n")
    # The smallest of a null and a number would be the number: who has no score stays without a bin.
    inside = pl.min_horizontal(place.floor().clip(0).cast(pl.Int32), pl.col("_n") - 1)
    return (
        scores.join(ends, on="line", how="inner", maintain_order="left")
        .with_columns(bin=pl.when(pl.col("value").is_not_null()).then(inside))
        .drop("_low", "_high", "_n", "cluster_id", "value", "reason")
    )


def _counted(rows: pl.DataFrame, bins: Mapping[int, Any]) -> pl.DataFrame:
    key = ["model", "line", "attribute", "group"]
    tallied = rows.group_by(*key, "bin", maintain_order=True).agg(n=pl.col(TIMES).sum())
    whole = tallied.group_by(key, maintain_order=True).agg("bin", "n")
    laid, unscored = [], []
    for line, places, ns in whole.select("line", "bin", "n").iter_rows():
        counts = [0] * bins[line]["n"]
        none = 0
        for at, n in zip(places, ns, strict=True):
            if at is None:
                none += n
            else:
                counts[at] += n
        laid.append(counts)
        unscored.append(none)
    return whole.select(key).with_columns(
        pl.Series("counts", laid, pl.List(pl.Int32)), pl.Series("unscored", unscored, pl.Int32)
    )
