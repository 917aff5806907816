"""Fairness Indicators: three probes of visual features as audits, and the paper's tables of a run.

Goyal et al. ask of a classifier whether it gives people harmful labels and whether it recognises
things in homes around the world, and of features alone whether neighbours share a person's
attribute. A protocol is an audit's settings; intervals and tests are the audit's own, as the paper
has none.
"""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.containers import Run
from isolux.core.info import PluginInfo
from isolux.core.spec import split_intersection
from isolux.papers._layout import format_merge_settings
from isolux.papers._protocols import check_protocol_exists, find_analysis_table_or_empty

INFO = PluginInfo(
    title="Fairness Indicators",
    summary="Harmful labels of people, things in homes of all regions and incomes, and whether "
    "neighbours in a model's space share a person's gender.",
    references=(citations.FAIRNESS_INDICATORS.with_location("sections 3 to 5, appendices A to G"),),
    assumptions=(
        "The datasets are for evaluation: no model was trained or adapted on them.",
        "A model without a head was given one by the same training for all models compared.",
        "Labels that the lists do not name are neither harmful nor right.",
        "Databases and queries come from a few countries: no group represents people elsewhere.",
    ),
)

_TONES = format_merge_settings({"lighter": ("1", "2", "3"), "darker": ("4", "5", "6")}, "skin_type")
_ANY_SIZE: dict[str, object] = {
    "min_units": 1,
    "min_clusters": 1,
    "unmatched_values": "note",  # a part of a dataset may lack a skin type
}
_LABEL_PROTOCOL: dict[str, object] = {
    "task": "label_association",
    "metric": (
        "harmful",
        "non_harmful",
        "possibly_human",
        "non_human",
        "possibly_non_human",
        "crime",
    ),
    **_ANY_SIZE,
}
_QUERY_ATTRIBUTES = ("gender", "skin_type", "age_group", "gender*skin_type")

PROTOCOLS: dict[str, dict[str, object]] = {
    "label_association_faces": _LABEL_PROTOCOL
    | {
        "by": _QUERY_ATTRIBUTES,
        "group": _TONES,
        "option": ("taxonomy=casual_conversations", "score_threshold=0.1", "top_k=5"),
    },
    "label_association_scenes": _LABEL_PROTOCOL
    | {
        "by": ("gender_presentation", "age_presentation"),
        "option": ("taxonomy=miap", "score_threshold=0.1", "top_k=5"),
    },
    "geodiversity": {
        "task": "geodiversity",
        "by": ("income_bucket", "region", "income_bucket*region"),
        "metric": ("household_hit_rate",),
        "option": ("top_k=5",),
        **_ANY_SIZE,
    },
    "same_attribute": {
        "task": "retrieval",
        "target": "gender",
        "by": _QUERY_ATTRIBUTES,
        "group": _TONES,
        "option": ("top_k=1,5,10,50",),
        **_ANY_SIZE,
    },
}
"""Settings by protocol.

``label_association_faces``: Casual Conversations' face crops (appendix B.1), Figures 3a, 8 and 9.
``label_association_scenes``: Open Images MIAP's people (appendix B.2), Figures 3b, 8 and 10; people
who are too small are left out by the crops, or by ``--data-option min_side=100``.
``geodiversity``: Dollar Street, Figure 4. ``same_attribute``: Casual Conversations as queries of
UTKFace, named by ``--database utkface:FOLDER --database-predictions FILE``; Figure 6.
"""

_PERCENT = 100.0
_DIGITS = 2
_BUCKETS = ("lowest", "low", "medium", "high", "highest")


def tables(name: str, run: Run) -> dict[str, pl.DataFrame]:
    """Lay a run of one protocol out as the paper's tables and figures.

    Parameters
    ----------
    name : str
        The protocol.
    run : Run

    Returns
    -------
    dict of str to polars.DataFrame
        Caption to table; shares in percent, null: no value.

    Raises
    ------
    UnknownNameError
        No such protocol.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.core.tables import SCORES
    >>> rates = GROUP_METRICS.conform(pl.DataFrame({
    ...     "model": "m", "metric": "harmful", "threshold": 0.1, "attribute": [None, "tone"],
    ...     "group": ["overall", "darker"], "values": [None, ["darker"]], "value": [0.05, 0.08],
    ...     "n_units": [90, 40], "n_clusters": [45, 20]}))
    >>> run = Run({}, SCORES.empty(), ATTRIBUTES.empty(), rates, DISPARITIES.empty(),
    ...           FINDINGS.empty())
    >>> for caption, table in tables("label_association_scenes", run).items():
    ...     caption, table.rows()
    ('Table 4: units and clusters of each group, by tone', [('darker', 40, 20)])
    ('Figures 3, 8 and 10: rates of labels by tone, percent', [('m', 'harmful', 0.1, 5.0, 8.0)])
    """
    check_protocol_exists("fairness_indicators", PROTOCOLS, name)
    terms = dict(run.record.get("dataset", {}).get("terms", {}))
    entries = run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    words = {
        entry_name: " × ".join(
            terms.get(attribute, attribute) for attribute in split_intersection(entry_name)
        )
        for entry_name in entries
    }
    figure, measure_name, first = _HEADINGS[name]
    laid_out_tables: dict[str, pl.DataFrame] = {}
    for entry in entries:
        if name != "geodiversity":
            laid_out_tables[f"Table 4: units and clusters of each group, by {words[entry]}"] = (
                count_units_and_clusters_by_group(run, entry)
            )
        laid_out_tables[f"{figure}: {measure_name} by {words[entry]}, percent"] = (
            build_percentages_by_group(run, entry, first)
        )
    if name == "geodiversity":
        laid_out_tables["Table 5: homes by income bucket and region"] = (
            count_homes_by_income_and_region(run)
        )
    if name.startswith("label_association"):
        laid_out_tables[
            f"{figure.split(',')[0]}, last row: rates of labels at each confidence, percent"
        ] = build_overall_rates_by_confidence(run)
    return {caption: table for caption, table in laid_out_tables.items() if not table.is_empty()}


_HEADINGS = {
    "label_association_faces": ("Figures 3, 8 and 9", "rates of labels", "confidence"),
    "label_association_scenes": ("Figures 3, 8 and 10", "rates of labels", "confidence"),
    "geodiversity": ("Figure 4", "hit rate of homes", ""),
    "same_attribute": ("Figure 6", "precision at K", "K"),
}


def build_percentages_by_group(
    run: Run, attribute: str, threshold_name: str = "threshold"
) -> pl.DataFrame:
    """Lay every metric of one attribute or intersection out: a column a group, in percent.

    Parameters
    ----------
    run : Run
    attribute : str
        The attribute or intersection.
    threshold_name : str
        What the thresholds are called; empty: there are none.

    Returns
    -------
    polars.DataFrame
        ``model, metric``, the threshold, ``everyone`` and a column a group.
    """
    rows = run.group_metrics.filter(
        pl.col("attribute").is_null() | (pl.col("attribute") == attribute)
    ).with_columns(pl.col("value") * _PERCENT, group=pl.col("group").fill_null("overall"))
    index = ["model", "metric", "threshold"]
    pivoted = rows.pivot(
        on="group", index=index, values="value", aggregate_function="first", maintain_order=True
    )
    values_by_group = dict(rows.drop_nulls("values").select("group", "values").rows())
    ranked = sorted(
        values_by_group,
        key=lambda group: [
            _rank_income_buckets_first(group_value) for group_value in values_by_group[group]
        ],
    )
    rounded = pivoted.select(*index, pl.col("overall", *ranked).round(_DIGITS))
    if not threshold_name:
        return rounded.drop("threshold")
    with_threshold = (
        rounded.with_columns(pl.col("threshold").cast(pl.Int64))
        if threshold_name == "K"
        else rounded
    )
    return with_threshold.rename({"threshold": threshold_name})


def _rank_income_buckets_first(group_value: str) -> tuple[int, str]:
    """Rank a value: income buckets from the lowest, all others by their names."""
    return (_BUCKETS.index(group_value) if group_value in _BUCKETS else len(_BUCKETS), group_value)


def count_units_and_clusters_by_group(run: Run, attribute: str) -> pl.DataFrame:
    """Count who was judged in each group: ``group, units, clusters``."""
    group_rows = run.group_metrics.filter(attribute=attribute)
    return group_rows.group_by("group", maintain_order=True).agg(
        units=pl.col("n_units").max(), clusters=pl.col("n_clusters").max()
    )


def count_homes_by_income_and_region(run: Run) -> pl.DataFrame:
    """Count homes as Table 5 does: a row an income bucket, a column a region, and totals.

    Returns
    -------
    polars.DataFrame
        Without rows where the run does not cross ``income_bucket`` and ``region``.
    """
    entry = next(
        (
            e
            for e in run.group_metrics["attribute"].drop_nulls().unique()
            if sorted(split_intersection(e)) == ["income_bucket", "region"]
        ),
        None,
    )
    if entry is None:
        return pl.DataFrame()
    attribute_order = split_intersection(entry)
    cells = (
        run.group_metrics.filter(attribute=entry)
        .select(
            "n_clusters",
            *(pl.col("values").list.get(k).alias(name) for k, name in enumerate(attribute_order)),
        )
        .unique(["income_bucket", "region"], maintain_order=True)
    )
    counts = cells.pivot(on="region", index="income_bucket", values="n_clusters").with_columns(
        pl.exclude("income_bucket").fill_null(0)
    )
    present_buckets = [bucket for bucket in _BUCKETS if bucket in counts["income_bucket"].to_list()]
    ranked = pl.DataFrame({"income_bucket": present_buckets}).join(
        counts, on="income_bucket", how="left"
    )
    regions = [name for name in ranked.columns if name != "income_bucket"]
    total = ranked.select(pl.lit("total").alias("income_bucket"), pl.col(regions).sum())
    return pl.concat([ranked, total]).with_columns(Global=pl.sum_horizontal(regions))


def build_overall_rates_by_confidence(run: Run) -> pl.DataFrame:
    """Lay everyone's curves out: a row a confidence, columns for harmful and non-harmful labels.

    Returns
    -------
    polars.DataFrame
        ``model, confidence, harmful, non-harmful`` (percent); without rows where labels had no
        confidence.
    """
    curves = find_analysis_table_or_empty(run, "confidence_curves")
    if curves.is_empty():
        return curves
    overall = curves.filter(pl.col("attribute").is_null())
    return overall.pivot(
        on="labels", index=["model", "confidence"], values="rate", maintain_order=True
    ).with_columns((pl.exclude("model", "confidence") * _PERCENT).round(_DIGITS))


# Where Fairness Indicators' text, tables and released code disagree, and what is done here.

_AT_LEAST = (
    "The text speaks of predictions 'at a certain confidence threshold'; the released code counts "
    "those of at least the threshold, and so does this audit."
)
_UNKNOWN = (
    "Appendix B.2 leaves out people of unknown gender or age presentation. Table 4 counts them: "
    "its ages, 14,817 unknown among them, sum to 43,523, which is the number of crops. Here they "
    "are groups of their own; --only 'gender_presentation!=Unknown' leaves them out."
)
_SQUARE = (
    "Appendix B.2 cuts a wide box to the square at its left, the released code to that at its "
    "middle; isolux crop --recipe miap does the first, and with --square-position centre the "
    "second."
)
_FILTERED = (
    "The text says that 2,982 videos are used and that 29 have no face; it takes a frame 'when "
    "possible' and does not say what those 29 are shown as. Here a video without a picture has no "
    "prediction, with that reason."
)
_LOGARITHM = (
    "The base of the logarithm in round(log(income) / 3) is not said: only the natural one gives "
    "the borders of Table 5 (90 and about 1,800, printed as 1,700)."
)
_INCOMES = (
    "Appendix A gives incomes from 67 to 10,000 dollars, Table 5 from 27; the data begin at 26.99."
)
_AS_RUN = (
    "The text counts photos once and averages by household. In the released code the first step is "
    "commented out, and what it groups by as the household is the part of the path that names the "
    "photo. Here it is the text's."
)
_HOMES = (
    "The paper has 289 households (62, 177 and 50 by income); in Meta's table of factors there are "
    "287 of the same country and income (62, 176 and 49)."
)
_GENDERS = (
    "Casual Conversations has people whose gender is neither female nor male; UTKFace has none of "
    "them. The paper does not say what their precision is. Here they are not scored, with that "
    "reason: 0 would be the database's fault."
)

DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "label_association_faces": (_AT_LEAST, _FILTERED),
    "label_association_scenes": (_AT_LEAST, _UNKNOWN, _SQUARE),
    "geodiversity": (_LOGARITHM, _INCOMES, _AS_RUN, _HOMES),
    "same_attribute": (_GENDERS,),
}
"""Per protocol, in the order of the paper."""
