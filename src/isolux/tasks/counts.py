"""Counts alone: the rate of each group from published successes and n, without data of people."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.counts import COUNTS
from isolux.core.errors import SpecError, TableError
from isolux.core.info import Direction, Metric, Reference, TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES, to_polars
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._scores import score_rows

WILSON = Reference(
    "wilson-interval",
    "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. "
    "Journal of the American Statistical Association, 22, 209–212.",
    "",
    "https://doi.org/10.1080/01621459.1927.10502953",
)

INFO = TaskInfo(
    title="Counts alone",
    summary="The rate of each group, from published counts.",
    references=(WILSON,),
    assumptions=(
        "Cases are independent, unless a column of the table says which of them belong together.",
        "Which way is better is what --better says; without it, neither is.",
    ),
    metrics=(
        Metric(
            name="rate",
            title="Rate",
            definition="Successes per case.",
            direction="none",
            reference=WILSON,
        ),
    ),
    defaults=("rate",),
    predictions="outputs",
)
# Words by which a name states its direction; delimited, so that "fare" is not read as "far".
_ERROR_WORDS = re.compile(
    r"(^|[_\W])(errors?|wrong|incorrect\w*|fail\w*|miss\w*|mistakes?|false\w*|fn\w*|fp\w*|fmr|fnmr"
    r"|far|frr|rejected)($|[_\W])"
)
_SUCCESS_WORDS = re.compile(
    r"(^|[_\W])(correct\w*|success\w*|hits?|right|true\w*|tpr|tnr|recall|accuracy|precision|found"
    r"|detected)($|[_\W])"
)
_REQUIRED_COLUMNS = ("model", "instance_id", "label", "value", "times")


def score(
    dataset: Dataset,
    predictions: object,
    *,
    better: Direction = "none",
) -> Scores:
    """Turn successes and n into rates, each row of the table standing for its cases.

    Parameters
    ----------
    dataset : Dataset
        ``counts:FILE``, two units a row.
    predictions : frame
        Its ``outputs``: ``model, instance_id, label`` (what was counted, null: one thing),
        ``value`` (1 or 0) and ``times``, whole numbers of at least 1.
    better : {"higher", "lower", "none"}
        Which way is better: a rate of errors is better lower.

    Returns
    -------
    Scores
        ``units``: the metric ``rate``, one row a unit; null with the reason "no count";
        ``evidence["counts"]``: ``model, unit_id,
        cluster_id, times``, the cases that each unit stands for.

    Raises
    ------
    SpecError
        Rows of several cases that share a cluster.
    TableError
        A value other than 1 and 0, or a cell that is counted twice.
    UnknownNameError, JoinError
        A table without one of these columns, or of other cells.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> units = ["row 1, counted", "row 1, others"]
    >>> table = Dataset(
    ...     name="one group",
    ...     info=DatasetInfo(title="One group", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": units, "image_id": units}),
    ... )
    >>> given = pl.DataFrame({"model": "m", "instance_id": units, "label": None,
    ...                       "value": [1.0, 0.0], "times": [30, 970]})
    >>> score(table, given).evidence["counts"].select("unit_id", "times").rows()
    [('row 1, counted', 30), ('row 1, others', 970)]
    """
    frame, units = to_polars(predictions), _read_cells(dataset)
    require_columns(frame, _REQUIRED_COLUMNS, "counts")
    # A cell without a count still needs a model, or it would be a model of its own.
    first_model = str(frame["model"][0]) if frame.height else "model"
    counts = frame.select(*_REQUIRED_COLUMNS).rename({"instance_id": "unit_id"})
    _refuse_invalid_counts(counts)
    rows = units.join(counts, on="unit_id", how="left", maintain_order="left").with_columns(
        pl.col("model").cast(pl.String).fill_null(first_model),
        pl.col("label").cast(pl.String),
        # No count is not a count of 0: the group's rate is unknown.
        reason=pl.when(pl.col("times").is_null()).then(pl.lit("no count")),
    )
    valid_counts = rows.filter(pl.col("reason").is_null()).select(
        "model", "unit_id", "cluster_id", pl.col("times").cast(pl.Int64)
    )
    refuse_no_match(
        "no count is of a cell of the table",
        frame["instance_id"],
        units["unit_id"],
        n_matched=valid_counts.height,
        expected="",
        source=None,
    )
    _refuse_several_cases_in_a_cluster(valid_counts)
    n_missing = rows.height - valid_counts.height
    missing_caution = Caution(
        f"{n_missing:,} of {rows.height:,} cells of the table have no counts: every number is about"
        " the others alone. Is the table whole?"
    )
    return Scores(
        # The value of a row is 1 or 0; the evidence says how many cases it stands for.
        units=score_rows(rows, "counts", "rate", pl.col("value"), label=pl.col("label")),
        info=replace(INFO, metrics=(replace(INFO.metrics[0], direction=better),)),
        evidence={COUNTS: valid_counts},
        notes=(
            *_caution_on_direction(frame, better),
            *_note_independence(valid_counts),
            *([missing_caution] if n_missing else []),
        ),
        task="counts",
        task_choices=_describe_counted(frame, rows),
    )


def _refuse_invalid_counts(counts: pl.DataFrame) -> None:
    """Refuse values other than 0 and 1, and a cell that is counted twice."""
    key = ["model", "unit_id", "label"]
    for is_wrong, problem, expected in (
        (~pl.col("value").is_in([0.0, 1.0]), "a value is neither 1 nor 0", "1: counted; 0: not"),
        (pl.struct(key).is_duplicated(), "a cell is counted twice", "each cell in one row"),
    ):
        row = counts.filter(is_wrong.fill_null(value=False)).head(1)
        if row.height:
            raise TableError(
                problem,
                expected=expected,
                found=f"{row['value'][0]} for {row['unit_id'][0]!r}",
                where="predictions",
            )


def _read_cells(dataset: Dataset) -> pl.DataFrame:
    return INSTANCES.conform(dataset.instances).select(
        "cluster_id", unit_id=pl.col("instance_id").cast(pl.String)
    )


def _refuse_several_cases_in_a_cluster(counts: pl.DataFrame) -> None:
    """Refuse a row of several cases in a shared cluster: it would count as as many clusters."""
    is_shared = pl.col("cluster_id").is_not_null() & pl.col("cluster_id").is_duplicated()
    rows = counts.filter(is_shared & (pl.col("times") > 1))
    if rows.height:
        raise SpecError(
            "several cases of a cluster are in one row",
            expected='one case a row, as isolux.load("counts", FILE, cluster=COLUMN) makes them',
            found=f"{rows['times'][0]:,} cases of {rows['cluster_id'][0]!r} in one row",
        )


def _note_independence(counts: pl.DataFrame) -> list[str]:
    if counts["cluster_id"].is_not_null().any():
        return []
    text = (
        f"Clusters are unknown: each of {int(counts['times'].sum()):,} cases counts as independent."
        " Where cases share people or pictures, intervals are too narrow and differences are found"
        " too easily; --cluster COLUMN takes rows that share it as one cluster."
    )
    return [text]


def _caution_on_direction(frame: pl.DataFrame, better: Direction) -> list[str]:
    """Caution where ``better`` contradicts a name: errors better higher, or successes lower."""
    if better == "none" or not frame.height:
        return []
    # Several counted things have labels; a single one is named by the column "counted".
    labels = frame["label"].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    counted_names = [] if labels or "counted" not in frame.columns else [str(frame["counted"][0])]
    # A contradiction would reverse which group the report calls worse, and no number would show it.
    words, direction = (_ERROR_WORDS, "lower") if better == "higher" else (_SUCCESS_WORDS, "higher")
    contradicting = [name for name in labels or counted_names if words.search(name.lower())]
    verb, possessive = ("is", "its name") if len(contradicting) == 1 else ("are", "their names")
    text = (
        f"--better {better} was set, but {', '.join(map(repr, contradicting[:3]))} {verb} better"
        f" {direction} by {possessive}: which groups are called worse depends on it."
    )
    return [Caution(text)] if contradicting else []


def _describe_counted(frame: pl.DataFrame, rows: pl.DataFrame) -> dict[str, dict[str, object]]:
    """Return what was counted, for the record, where the metric's label does not name it."""
    if "counted" not in frame.columns or rows["label"].is_not_null().any() or not frame.height:
        return {}
    name = str(frame["counted"][0])
    return {"counts": {"name": name, "metrics": ["rate"], "words": f"of {name}"}}
