"""A run that may leave the house: nothing in it about groups of a few people.

The report of a run is made for those who audit: it counts every group, of one person too. What is
published must not tell one person's truth. ``report/suppression.py`` chooses what to hide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from isolux.groups.small_groups import COLUMNS as SHRUNKEN
from isolux.report.ranges import PERSON, classes_of, with_people
from isolux.report.suppression import hidden_cells, published
from isolux.statements.accounting import describe_accounting
from isolux.verbs.explain import explain_run
from isolux.verbs.publish.drawn import coarse_groups, coarse_pairs, coarse_record, steps_of, telling
from isolux.verbs.publish.totals import Said, of_nearly_all, record_totals
from isolux.vocabulary.containers import Dataset, Run
from isolux.vocabulary.drawn import is_drawn, is_weighted
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import recorded_spec
from isolux.vocabulary.tables import FINDINGS, INSTANCES

_FILES = {
    "address",
    "answers",
    "attributes",
    "detected",
    "found",
    "images",
    "missed",
    "model",
    "out",
    "planted",
    "predictions",
    "scores",
    "sums",
    "withdrawn",
}
_SAID = ("warnings", "notes")  # in the order in which they are read
_TELLING = ("analyses", "explained", "protocol", "planted")


def publish(run: Run, minimum: int, *, beside: Sequence[Run] = ()) -> Run:
    """Leave out what tells of groups of fewer than ``minimum`` people.

    Examples
    --------
    >>> from isolux.verbs.audit import audit
    >>> who = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...                     "light": ["dusk"] * 3 + ["day", "night"] * 198 + ["day"]})
    >>> found = audit(who.select("unit_id", value=pl.lit(1.0)), who, by="light", replicates=100)
    >>> publish(found.run, 10).group_metrics.select("group", "n_units").rows()
    [('everyone', 400), ('day', 199)]
    """
    refuse_too_low(minimum)
    weighted = is_weighted(run.record)
    _refuse_with_others(run, beside)
    counted = with_people(run)
    _refuse_few(counted, minimum)
    rows = steps_of(run) if weighted else run.group_metrics
    kept, uneven = _chosen(run, rows, counted, minimum, beside)
    groups, gone = rows.filter(kept), rows.filter(~kept)
    pairs = shown_comparisons(run.disparities, rows, gone)
    if weighted:
        pairs, groups = coarse_pairs(pairs, groups), coarse_groups(groups)
    # Made of hidden groups too, and raw values stand there that are withheld elsewhere.
    groups = groups.with_columns(pl.lit(None, pl.Float64).alias(name) for name in SHRUNKEN)
    lost = [key for key in _TELLING if key != "analyses" and run.record.get(key)]
    also = [with_people(one) for one in beside if one is not run]
    line = {"accounting": {"line": describe_accounting(run)}}
    record = _record({**run.record, **line}, pl.concat([counted.filter(kept), *also]), minimum)
    silent = any(len(record[key]) < len(run.record.get(key) or ()) for key in _SAID)
    cut = replace(
        run,
        record={**record, "withheld": gone.height > 0},
        scores=run.scores.clear(),
        attributes=run.attributes.clear(),
        evidence={},
        group_metrics=groups,
        disparities=pairs,
        findings=FINDINGS.empty(),
    )
    cut = explain_run(cut, ["model_changes" if "models" in record else "group_gaps"])
    said = withheld(
        minimum, groups, gone, uneven=uneven, left_out=bool(lost), silent=silent, weighted=weighted
    )
    told = {
        **_without_files(cut.record),
        "notes": [said, *cut.record.get("notes", [])],
        "publish_min": minimum,
    }
    return replace(cut, record=told)


def _refuse_with_others(run: Run, beside: Sequence[Run]) -> None:
    """Refuse weighted runs beside others, and comparisons of two: each adds sums to solve."""
    every = [run, *[one for one in beside if one is not run]]
    drawn = any(is_drawn(one.record) for one in every)
    if drawn and (len(every) > 1 or "models" in run.record):
        raise SpecError(
            "weighted numbers of two models are about the same people twice, and are rounded so "
            "that one model's numbers reveal nobody's answer",
            expected="one audit on its own page",
            found="a comparison" if "models" in run.record else f"{len(every)} runs on one page",
            where="--publish-min",
        )


def _chosen(
    run: Run, rows: pl.DataFrame, counted: pl.DataFrame, minimum: int, beside: Sequence[Run]
) -> tuple[pl.Series, bool]:
    """Choose the rows that are shown; and tell whether a metric goes as nearly another's count."""
    resting, classes, weighted = _resting(run), _classes(run), "_step" in rows.columns
    hidden = hidden_cells(counted, minimum, classes, telling(rows, run) if weighted else ())
    for other in [one for one in beside if one is not run]:
        hidden |= hidden_cells(with_people(other), minimum, _classes(other))
    kept = published(counted, hidden, classes, resting)
    if weighted:
        kept = kept & rows["_step"].is_not_null()
    uneven = of_nearly_all(counted.filter(kept), minimum, run.scores["metric"].unique().to_list())
    places = kept.arg_true().filter(uneven)
    return kept & ~pl.arange(kept.len(), eager=True).is_in(places.implode()), places.len() > 0


def _record(record: Mapping[str, Any], shown: pl.DataFrame, minimum: int) -> dict[str, Any]:
    """Keep what a page may say of the run: totals, warnings and notes that tell of nobody."""
    said = Said(shown, minimum, recorded_spec(record).statistics.level)
    told = {key: value for key, value in record.items() if key not in _TELLING}
    if is_weighted(record):
        told = coarse_record(told)
    clusters = record_totals(dict(record.get("clusters") or {}), shown, minimum)
    kept = {key: said.keep(told.get(key) or ()) for key in _SAID}
    lines = said.keep(filter(None, [told.pop("accounting", {}).get("line")]))
    accounting = {"line": lines[0]} if lines else {}
    return {**told, "clusters": clusters, **kept, "accounting": accounting}


def _without_files(record: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out files' paths and hashes: a hash tells whoever has a copy that it is the same."""
    spec = dict(record.get("spec") or {})
    for name in _FILES & spec.keys():
        spec[name] = None
    if spec.get("data"):
        spec["data"] = str(spec["data"]).partition(":")[0]
    return {**record, "spec": spec, "inputs": {}}


def _refuse_few(counted: pl.DataFrame, minimum: int) -> None:
    everyone = counted.filter(pl.col("attribute").is_null() & pl.col("label").is_null())
    n = everyone["n_people"].min() if everyone.height else None
    if isinstance(n, int) and n < minimum:
        raise SpecError(
            "there are too few people to publish anything about them",
            expected=f"{minimum} or more, as --publish-min asks",
            found=str(n),
        )


def _classes(run: Run) -> pl.DataFrame | None:
    """Count the classes of each group, where any number of the run rests on them."""
    needed = _resting(run) or run.group_metrics["label"].is_not_null().any()
    return classes_of(run) if needed else None


def _resting(run: Run) -> list[str]:
    """Name the metrics that are no means of people's scores: they rest on counts of their parts."""
    names = run.group_metrics["metric"].unique().to_list()
    means = set(run.scores["metric"].unique().to_list())
    return sorted(name for name in names if name not in means)


# An export that may leave the house: no attributes of people whom few resemble.


def without_small_groups(dataset: Dataset, minimum: int) -> Dataset:
    """Withhold the attributes of people who are alike with fewer than ``minimum`` in all of them.

    Parameters
    ----------
    dataset : Dataset
    minimum : int
        2 or more.

    Returns
    -------
    Dataset
        Everyone stays. Values that fewer than ``minimum`` people have are withheld; then all
        attributes of people whose combination of the others fewer have (k-anonymity).
    """
    refuse_too_low(minimum)
    rows = dataset.instance_attributes()
    persons = _persons(dataset)
    few = _with_people(rows, persons, ["attribute", "value"])
    few = few.filter(pl.col("n") < minimum).select("attribute", "value")
    rows = rows.join(few, on=["attribute", "value"], how="anti", nulls_equal=True)
    alike = (
        rows.sort("attribute", "value")
        .group_by("unit_id", maintain_order=True)
        .agg(kind=pl.concat_str("attribute", pl.lit("\0"), pl.col("value").fill_null("")))
    )
    many = _with_people(alike, persons, ["kind"]).filter(pl.col("n") >= minimum)
    several = alike.join(many, on="kind", how="semi")["unit_id"]
    rows = rows.filter(pl.col("unit_id").is_in(several.implode()))
    people = INSTANCES.conform(dataset.instances)
    # The class of a person whom few resemble is withheld with the attributes.
    alone = ~pl.col("instance_id").is_in(several.implode())
    people = people.with_columns(classes=pl.when(~alone).then("classes"))
    n = people.height - several.n_unique()
    note = f"Attributes of {n:,} people are withheld: fewer than {minimum} people share them."
    return replace(dataset, instances=people, attributes=rows, notes=(*dataset.notes, note))


def without_telling_scores(
    scores: pl.DataFrame, whole: Dataset, cut: Dataset, target: str | None
) -> pl.DataFrame:
    """Withhold scores that name a class, of people whose truth is withheld."""
    held, left = (
        rows.filter(pl.col("attribute") == target) if target is not None else rows
        for rows in (whole.instance_attributes(), cut.instance_attributes())
    )
    known = held["unit_id"].unique()
    lost = known.filter(~known.is_in(left["unit_id"].unique().implode()))
    telling = pl.col("label").is_not_null() & pl.col("unit_id").is_in(lost.implode())
    return scores.filter(~telling)


def refuse_too_low(minimum: int) -> None:
    """Refuse a minimum that hides nothing."""
    if minimum < 2:
        raise SpecError(
            "--publish-min is too small", expected="2 or more people", found=str(minimum)
        )


def _persons(dataset: Dataset) -> pl.DataFrame:
    """Say who each unit is, in every way that the data do: ``unit_id`` and other columns."""
    people = INSTANCES.conform(dataset.instances)
    units = people.select(
        pl.col("instance_id").alias("unit_id"),
        unit=pl.col("instance_id"),
        subject=pl.col("subject_id").cast(pl.String),
        cluster=pl.col("cluster_id").cast(pl.String).fill_null(pl.col("instance_id")),
    )
    if units["subject"].null_count() == units.height:
        units = units.drop("subject")
    rows = dataset.instance_attributes().drop_nulls("value")
    names = rows["attribute"].unique(maintain_order=True).to_list()
    for at, name in enumerate(n for n in names if PERSON.fullmatch(n)):
        own = rows.filter(pl.col("attribute") == name).unique("unit_id")
        own = own.select("unit_id", pl.col("value").alias(f"person_{at}"))
        units = units.join(own, on="unit_id", how="left")
    return units


def _with_people(rows: pl.DataFrame, persons: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Count the people of each group of rows, ``n``: of several ways to tell them, the fewest."""
    told = rows.join(persons, on="unit_id", how="left")
    ways = [pl.col(name).drop_nulls().n_unique() for name in persons.columns if name != "unit_id"]
    return told.group_by(by).agg(ways).select(*by, n=pl.min_horizontal(pl.exclude(by)))


# Comparisons that may be published: none that rests on a number which is not shown.

_OF_TWO = (
    "difference",
    "ratio",
    "log_ratio",
    "difference_to_overall",
    "model_difference",
    "relative_change",
    "gap_change",
)
"""Kinds that rest on the two groups that they name; every other is of the whole attribute."""
_KEY = ("metric", "threshold", "attribute", "label")


def shown_comparisons(table: pl.DataFrame, every: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """Keep comparisons of two groups that are shown, and whole attributes that are shown whole."""
    key = [k for k in _KEY if k in table.columns]
    few = gone.select(*key, "group").unique()
    rows = table.with_row_index("_row")
    touched = rows.join(few.select(key).unique(), on=key, how="semi", nulls_equal=True)
    valued = gone.filter(pl.col("value").is_not_null()).select(key).unique()
    whole = rows.filter(~pl.col("kind").is_in(_OF_TWO))
    of_several = ~pl.col("metric").is_in(every["metric"].unique().implode())
    lost = [
        touched.filter(pl.col("group_a").is_null() | pl.col("group_b").is_null()),
        whole.join(valued, on=key, how="semi", nulls_equal=True),
        whole.filter(of_several, pl.col("attribute").is_in(gone["attribute"].unique().implode())),
    ]
    overall = few.filter(pl.col("attribute").is_null()).drop("attribute")
    own = [k for k in key if k != "attribute"]
    for side in ("group_a", "group_b"):
        named = few.rename({"group": side})
        lost.append(rows.join(named, on=[*key, side], how="semi", nulls_equal=True))
        everyone = overall.rename({"group": side})
        lost.append(rows.join(everyone, on=[*own, side], how="semi", nulls_equal=True))
    hidden = pl.concat([part.select("_row") for part in lost])["_row"].unique()
    return rows.filter(~pl.col("_row").is_in(hidden.implode())).drop("_row")


# What a published page says of what it does not show.


def withheld(
    minimum: int,
    shown: pl.DataFrame,
    gone: pl.DataFrame,
    *,
    left_out: bool,
    uneven: bool = False,
    silent: bool = False,
    weighted: bool = False,
) -> str:
    """Say how many groups are not shown, and of how many others some numbers are not.

    Examples
    --------
    >>> rows = pl.DataFrame({"attribute": ["race"] * 2, "group": ["A", "B"]})
    >>> withheld(10, rows.head(1), rows.tail(1), left_out=False)[:67]
    'Made to be published with a minimum of 10 people: 1 group is not sh'
    """
    groups = [
        table.filter(pl.col("attribute").is_not_null()).select("attribute", "group").unique()
        for table in (shown, gone)
    ]
    whole = groups[1].join(groups[0], on=["attribute", "group"], how="anti").height
    partly = groups[1].height - whole
    everyone = gone["attribute"].is_null().any()
    told = f"Made to be published with a minimum of {minimum} people: "
    if whole:
        told += (
            f"{_groups(whole)} not shown, because fewer people are in the group, or because a "
            "smaller group or class could be worked out from it."
        )
    else:
        told += "every group is shown."
    if partly or everyone:
        others = [_groups(partly)[:-3].removesuffix(" ")] if partly else []
        whose = " and ".join([*others, *(["everyone"] if everyone else [])])
        told += (
            f" Some numbers of {whose} are not shown, because they rest on the size of a class "
            "that must not be told"
        )
        told += ", or count a few people more or fewer than another number." if uneven else "."
    if weighted:
        told += (
            " Weighted numbers are rounded so that nobody's answer can be worked out from them: "
            "values to steps of a tenth of a point to ten points, by how much the heaviest person "
            "of the group weighs, intervals outwards, p-values upwards to hundredths."
        )
    if silent:
        told += (
            " Notes or warnings from which the number of a few people would follow are left out."
        )
    return told + (" Tables of analyses and protocols are left out." if left_out else "")


def _groups(n: int) -> str:
    return "1 group is" if n == 1 else f"{n:,} groups are"
