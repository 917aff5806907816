"""FairFace: its protocol as an audit, and its tables from a run.

Kärkkäinen & Joo ask whether the perceived gender presentation of a face is answered as accurately
in each of seven races, two perceived genders and four age groups. ``protocol`` gives the audit;
the functions lay its ``group_metrics`` out as the paper's tables do. Tables are numbered as in the
manuscript of 2019. What its numbers obey where its text is silent: ε is a logarithm of base 10,
standard deviations have one degree of freedom less than groups, and means count every group once.

The paper does not say how sure its numbers are. A run's ``disparities`` do: read ε and the standard
deviations in addition to its tests and its noise-corrected spread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import polars as pl

from isolux.core import citations
from isolux.core.containers import Run
from isolux.core.errors import UnknownNameError
from isolux.core.info import PluginInfo
from isolux.papers._layout import (
    format_merge_settings,
    map_known_groups_to_columns,
    pivot_metric_by_group,
    summarise_across_columns,
    to_group_metrics_table,
)
from isolux.papers.fairface.cross_dataset import (
    build_accuracy_tables_by_caption,
    measure_accuracy_across_datasets,
)

__all__ = ["build_accuracy_tables_by_caption", "measure_accuracy_across_datasets"]

INFO = PluginInfo(
    title="FairFace",
    summary="Accuracy by race, perceived gender and age, the maximum accuracy disparity, and "
    "commercial services with and without the faces that they did not detect.",
    references=(
        citations.FAIRFACE.with_location(
            "sections 4.3 and 4.4, equation 3, Tables 4, 5, 6 and 8",
            url="https://arxiv.org/abs/1908.04913",
        ),
    ),
    assumptions=(
        "Race, gender and age are as annotators perceived them.",
        "Faces are independent of one another: the dataset names no subjects.",
        "The services' sample was balanced over race, gender and age, with no people under 20.",
    ),
)

RACES = {
    "White": "White",
    "Black": "Black",
    "East Asian": "East Asian",
    "SE Asian": "Southeast Asian",
    "Latino": "Latino_Hispanic",
    "Indian": "Indian",
    "Middle Eastern": "Middle Eastern",
}
"""The paper's headings, in its order, and the dataset's labels for them."""

GENDERS = {"M": "Male", "F": "Female"}
"""The paper's headings and the dataset's labels: perceived gender presentation."""

AGE_9_TO_4 = {
    "0-9": ("0-2", "3-9"),
    "10-29": ("10-19", "20-29"),
    "30-49": ("30-39", "40-49"),
    "50+": ("50-59", "60-69", "more than 70"),
}
"""The age groups of Tables 5 and 7."""

MERGES = {
    "races-4": {
        "White": ("White",),
        "Black": ("Black",),
        "Asian": ("East Asian", "Southeast Asian"),
        "Indian": ("Indian",),
    },
    "ages-4": AGE_9_TO_4,
}
"""By the names that ``--label-map`` takes, as ``fairface:races-4``: Table 3's races comparable with
UTKFace's (Latino and Middle Eastern are in none), and the ages of Tables 5 and 7.
"""

_COMMON: dict[str, object] = {
    "task": "classification",
    "target": "gender",
    "id_from": "basename",
    "by": ("race", "gender", "age", "race*gender"),
    "group": format_merge_settings(AGE_9_TO_4, "age"),
    "ddof": 1,
    "log_base": 10.0,
}
PROTOCOLS: dict[str, dict[str, object]] = {
    "gender": _COMMON | {"metric": ("accuracy",)},
    "services": _COMMON
    | {"metric": ("accuracy", "accuracy_on_detected", "detection_rate"), "undetected": "both"},
}
"""Settings of ``fairface:gender`` (Tables 4 and 5) and ``fairface:services`` (Tables 6 and 8)."""

_LOG_BASE_AND_DDOF = (
    "The text gives neither the base of ε's logarithm nor the degrees of freedom of the standard "
    "deviations: the printed tables obey base 10 and one degree of freedom less than groups, and "
    "so does this audit."
)
DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "gender": (
        _LOG_BASE_AND_DDOF,
        (
            "Table 5's mean across races (94.89 % for the paper's own model) is not the mean of "
            "Table 4's groups (94.4 %): it counts each race once, Table 4 each race and gender."
        ),
    ),
    "services": (
        _LOG_BASE_AND_DDOF,
        (
            "In Table 8 the printed means of Microsoft, Face++ and IBM are not those of the "
            "printed cells (0.812, 0.993 and 0.991 instead of 0.827, 0.994 and 0.989); the cells "
            "agree with Table 6. Here means are those of the cells."
        ),
    ),
}
"""Per protocol, where the paper's text and its tables disagree or are silent."""


def tables(name: str, run: Run) -> dict[str, pl.DataFrame]:
    """Lay a protocol's run out as the paper's tables, by caption.

    Races that the run does not tell apart (a service with six) have no column of their own and are
    null; a table that needs what was not measured is not there.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.core.tables import SCORES
    >>> tables_of_a_run = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> tables("gender", Run({}, *(table.empty() for table in tables_of_a_run)))
    {}
    """
    layouts: dict[str, dict[str, Callable[[Run], pl.DataFrame]]] = {
        "gender": {
            "Table 4: accuracy by race and perceived gender": build_accuracy_by_race_and_gender,
            "Table 5: mean and standard deviation across races and ages": (
                mean_and_sd_across_races_and_ages
            ),
        },
        "services": {
            "Table 6: accuracy by race and perceived gender (*: undetected faces left out)": (
                build_service_accuracy_by_group
            ),
            "Table 8: share of faces detected": build_detection_rates_by_group,
        },
    }
    laid_out_tables = {}
    for caption, layout in layouts[name].items():
        with suppress(UnknownNameError):
            laid_out_tables[caption] = layout(run)
    return laid_out_tables


def build_accuracy_by_race_and_gender(
    source: Run | pl.DataFrame, *, races: Mapping[str, str] = RACES
) -> pl.DataFrame:
    """Lay accuracy by race and perceived gender out as Table 4 does.

    Parameters
    ----------
    source : Run or polars.DataFrame
        A run with the intersection of both attributes, or its ``group_metrics``.
    races : mapping of str to str
        Headings, in order, to the values they stand for; the paper's by default.

    Returns
    -------
    polars.DataFrame
        ``model``; a column ``White_M``, ``White_F``, … per group (0 to 1; null: no value);
        ``max``, ``min``, ``avg`` and ``stdv`` (ddof 1) over the groups, each counting once;
        ``epsilon``, their log10(max / min), 0 or more, lower is more alike (equation 3; null
        where a group is at 0); ``n_groups``, how many have a value. With fewer than all, the
        summaries are not the paper's.

    Raises
    ------
    UnknownNameError
        The run has no such metric, or not by both attributes together.

    Examples
    --------
    >>> from isolux.core.tables import GROUP_METRICS
    >>> table = GROUP_METRICS.conform(pl.DataFrame({
    ...     "model": "erm", "metric": "accuracy", "attribute": "race*gender",
    ...     "values": [["Black", "Male"], ["Black", "Female"]], "value": [0.75, 0.375]}))
    >>> found = build_accuracy_by_race_and_gender(table, races={"Black": "Black"})
    >>> found.select("Black_M", "Black_F", "avg").row(0), round(found["epsilon"][0], 4)
    ((0.75, 0.375, 0.5625), 0.301)
    """
    columns = _cross_races_and_genders(races, GENDERS)
    accuracy_by_group = pivot_metric_by_group(source, "accuracy", columns)
    names = {"mean": "avg", "sd": "stdv", "n": "n_groups"}
    summary = summarise_across_columns(accuracy_by_group, list(columns)).items()
    return accuracy_by_group.with_columns(
        **{names.get(name, name): values for name, values in summary}
    )


def mean_and_sd_across_races_and_ages(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Give mean and standard deviation across races and across ages, as Table 5 does.

    Every group of the attribute counts once, those of unknown value do not count. The paper has
    seven races and, by ``AGE_9_TO_4``, four ages.

    Returns
    -------
    polars.DataFrame
        ``model``, ``mean_across_races``, ``sd_across_races`` (ddof 1), ``mean_across_ages``,
        ``sd_across_ages``: 0 to 1, where the paper prints percent.
    """
    summaries = []
    for attribute, plural in (("race", "races"), ("age", "ages")):
        columns = map_known_groups_to_columns(source, attribute)
        accuracy_by_group = pivot_metric_by_group(source, "accuracy", columns)
        summary = summarise_across_columns(accuracy_by_group, list(columns))
        means = {f"mean_across_{plural}": summary["mean"], f"sd_across_{plural}": summary["sd"]}
        summaries.append(accuracy_by_group.select("model").with_columns(**means))
    return summaries[0].join(summaries[1], on="model", how="left", maintain_order="left")


def build_service_accuracy_by_group(
    source: Run | pl.DataFrame, *, races: Mapping[str, str] = RACES
) -> pl.DataFrame:
    """Lay services' accuracy out as Table 6 does, with both policies for undetected faces.

    Returns
    -------
    polars.DataFrame
        ``service``: a model's name where a face that was not detected counts as a mistake; below,
        with ``*`` before it, where such faces are left out (if that was measured). A column
        ``White_F``, ``White_M``, … per group, ``mean`` and ``std`` (ddof 1): 0 to 1, higher is
        better. ``n_groups``: how many groups have a value.
    """
    table = _build_service_table_by_group(source, "accuracy", races)
    if "accuracy_on_detected" not in to_group_metrics_table(source)["metric"]:
        return table
    starred = _build_service_table_by_group(source, "accuracy_on_detected", races)
    return pl.concat([table, starred.with_columns(service=pl.format("*{}", "service"))])


def build_detection_rates_by_group(
    source: Run | pl.DataFrame, *, races: Mapping[str, str] = RACES
) -> pl.DataFrame:
    """Lay out how many faces each service found, as Table 8 does.

    Returns
    -------
    polars.DataFrame
        Columns as of ``build_service_accuracy_by_group``. Not a detector's accuracy: what it finds
        where no face is, no people counted (the paper's footnote 1).
    """
    return _build_service_table_by_group(source, "detection_rate", races)


def _build_service_table_by_group(
    source: Run | pl.DataFrame, metric: str, races: Mapping[str, str]
) -> pl.DataFrame:
    # Table 6 names women first, Table 4 men.
    columns = _cross_races_and_genders(races, dict(reversed(GENDERS.items())))
    metric_by_group = pivot_metric_by_group(source, metric, columns)
    summary = summarise_across_columns(metric_by_group, list(columns))
    return metric_by_group.rename({"model": "service"}).with_columns(
        mean=summary["mean"], std=summary["sd"], n_groups=summary["n"]
    )


def _cross_races_and_genders(
    races: Mapping[str, str], genders: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    return {
        f"{r}_{g}": {"race": race_value, "gender": gender_value}
        for r, race_value in races.items()
        for g, gender_value in genders.items()
    }
