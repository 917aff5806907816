"""Numbers for the models, metrics and attributes of the runs that one page shows.

Every table of the page names them by these numbers: a name stands in the file once, however many
rows it has, and two runs that measure the same metric share its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.report.document import Line
from isolux.report.summary import Context
from isolux.vocabulary.containers import Run

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
