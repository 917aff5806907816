"""Objects annotated twice under two ids, and people in several rows."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.checks import repeats
from isolux.core.errors import TableError
from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.groups.intersections import format_group_name
from isolux.plausibility._audit_inputs import AuditInputs

# One repeat in a hundred can change a metric by a percentage point. Exactly the same box is no
# chance; a few people who stand close together, or share all their values, may be.
_MIN_SHARE, _MIN_INEXACT = 0.01, 3
# From this share a file was joined to itself, rather than written twice in part.
_MAX_EXACT_SHARE = 0.5

INFO = PlausibilityInfo(
    title="Annotations that repeat another",
    summary="Boxes of one class in the same place of an image (`isolux check --only repeats`), and "
    "rows of a table with the image and all values of another row.",
    rule=f"Warns from 1 % of everyone or of a group on, from {_MIN_INEXACT} where boxes are only "
    "nearly the same; refuses where half of all boxes are exact repeats.",
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where objects or people are there twice; refuse where at least half are."""
    units = inputs.membership.units
    problems = repeats.check(inputs.dataset).filter(pl.col("unit_id").is_in(units.implode()))
    if problems.is_empty():
        return []
    is_exact = problems["severity"] == "error"
    first = problems.row(0, named=True)
    n_exact, example = int(is_exact.sum()), f"{first['unit_id']!r} has {first['found']}"
    if n_exact >= _MAX_EXACT_SHARE * len(units):
        raise TableError(
            f"{n_exact:,} of {len(units):,} annotations repeat another exactly",
            expected="each object once",
            found=example,
            where=inputs.dataset.name,
            hint="was the list of annotations written or joined twice? Keep each object once",
        )
    groups = _count_by_group(inputs, problems["unit_id"], problems.filter(is_exact)["unit_id"])
    if groups.is_empty():
        return []
    widest = groups.sort(pl.col("n") / pl.col("n_units"), descending=True, maintain_order=True)
    attribute, name, n_units, n = widest.select("attribute", "group", "n_units", "n").row(0)
    group_text = "" if attribute is None else f"; of {attribute} = {name} {n:,} of {n_units:,}"
    if "box" in first["found"]:
        text = "annotations have the box of another one"
        effect = "A model finds an object once, so that each repeat counts as missed."
    else:
        text = "people have the image and all the values of another one"
        effect = "If they are one person, they count several times."
    counts = f"{problems.height:,} of {len(units):,} {text}{group_text} ({example})"
    return [Caution(f"{counts}. {effect} `isolux check --only repeats` lists them.")]


def _count_by_group(inputs: AuditInputs, ids: pl.Series, exact_ids: pl.Series) -> pl.DataFrame:
    """Count the repeats of everyone and of each group, where they are too many."""
    units = inputs.membership.units
    is_repeat, is_exact = (
        units.is_in(repeat_ids.implode()).to_numpy() for repeat_ids in (ids, exact_ids)
    )
    tables = [
        pl.DataFrame(
            {
                "attribute": [None],
                "group": ["everyone"],
                "n_units": [len(units)],
                "n": [int(is_repeat.sum())],
                "n_exact": [int(is_exact.sum())],
            }
        )
    ]
    for crossed in inputs.membership.intersections:
        n_groups = len(crossed.cells)
        counts = [
            np.bincount(crossed.cell[mask[crossed.unit]], minlength=n_groups)
            for mask in (np.ones(len(units), np.bool_), is_repeat, is_exact)
        ]
        tables.append(
            pl.DataFrame(
                {
                    "attribute": [crossed.handle] * n_groups,
                    "group": [format_group_name(cell) for cell in crossed.cells],
                    "n_units": counts[0],
                    "n": counts[1],
                    "n_exact": counts[2],
                }
            )
        )
    table = pl.concat(tables, how="vertical_relaxed")
    is_many = (pl.col("n_exact") > 0) | (pl.col("n") >= _MIN_INEXACT)
    return table.filter(is_many, pl.col("n") >= _MIN_SHARE * pl.col("n_units"))
