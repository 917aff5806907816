"""The tables that the page shows: a run's own, less what it does not need, with numbers for names.

Nothing is measured here. Values, intervals and p-values are those of ``group_metrics``,
``disparities`` and ``findings``, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.viewer.coding import Coding
from isolux.vocabulary.containers import Run
from isolux.vocabulary.tables import DISPARITIES

_GROUP = (
    "group", "values", "n_units", "n_clusters", "value", "low", "high", "standard_error",
    "method", "status", "reason", "shrunken", "shrunken_low", "shrunken_high", "shrunken_from",
)  # fmt: skip
_COMPARED = ("value", "low", "high", "p_adjusted", "detectable", "status", "reason")


def groups(runs: Sequence[Run], coding: Coding) -> pl.DataFrame:
    """Lay out every metric of every group, with its difference to everyone."""
    return pl.concat([_groups_of(place, run, coding) for place, run in enumerate(runs)])


def _groups_of(place: int, run: Run, coding: Coding) -> pl.DataFrame:
    table = run.group_metrics
    lacking = [pl.lit(None, pl.Float64).alias(c) for c in _GROUP if c not in table.columns]
    own = coding.coded(place, table.with_columns(lacking))
    own = own.select("model", "line", "attribute", *_GROUP)
    compared = _of_one_model(run).filter(pl.col("kind") == "difference_to_overall")
    against = coding.coded(place, compared).select(
        "model", "line", "attribute", group="group_a", difference="value", difference_low="low",
        difference_high="high", difference_p="p_adjusted",
    )  # fmt: skip
    key = ["model", "line", "attribute", "group"]
    # Two groups that print alike would double one another's rows: neither has a difference then.
    against = against.filter(~pl.struct(key).is_duplicated())
    return _small(own.join(against, on=key, how="left", maintain_order="left"))


def pairs(runs: Sequence[Run], coding: Coding) -> pl.DataFrame:
    """Lay out every difference of two groups: ``group_a`` less ``group_b``."""
    found = [
        coding.coded(place, _of_one_model(run).filter(pl.col("kind") == "difference")).select(
            "model", "line", "attribute", "group_a", "group_b", *_COMPARED
        )
        for place, run in enumerate(runs)
    ]
    return _small(pl.concat(found))


def tests(runs: Sequence[Run], coding: Coding) -> pl.DataFrame:
    """Lay out the tests of whole attributes, which ask whether groups differ at all."""
    found = [
        coding.coded(place, _of_one_model(run).filter(pl.col("kind") == "any_difference")).select(
            "model", "line", "attribute", "p_adjusted", "test", "status", "reason"
        )
        for place, run in enumerate(runs)
    ]
    return _small(pl.concat(found))


def changes(runs: Sequence[Run], coding: Coding) -> pl.DataFrame:
    """Lay out, of runs that compare two models, each group's tested change (second less first)."""
    found = [
        coding.coded(
            place, run.disparities.filter(pl.col("kind") == "model_difference"), model=None
        ).select("line", "attribute", *_COMPARED, "n_units_a", group="group_a", run=pl.lit(place))
        for place, run in enumerate(runs)
        if "model_a" in run.disparities.columns
    ]
    if found:
        return _small(pl.concat(found))
    types = dict.fromkeys(("line", "attribute", "run"), pl.Int32) | {"group": pl.String}
    return pl.DataFrame(schema=types)


def findings(runs: Sequence[Run]) -> pl.DataFrame:
    """Lay out the findings of every run, in the order in which to read them."""
    found = [
        run.findings.sort("rank", maintain_order=True).with_columns(run=pl.lit(place, pl.Int32))
        for place, run in enumerate(runs)
    ]
    return _small(pl.concat(found))


def _of_one_model(run: Run) -> pl.DataFrame:
    """Return the disparities of an audit; a comparison of two models has none of one model."""
    return DISPARITIES.empty() if "model_a" in run.disparities.columns else run.disparities


def _small(frame: pl.DataFrame) -> pl.DataFrame:
    # A page reads numbers of 64 bits as big integers, which are slow and cannot be mixed.
    return frame.with_columns(pl.col(pl.Int64).cast(pl.Int32))
