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
from isolux.report.counted import classes_of, with_people
from isolux.report.suppression import hidden_cells, published
from isolux.statements.accounting import describe_accounting
from isolux.verbs.explain import explain_run
from isolux.verbs.publish.attributes import (
    refuse_too_low,
    without_small_groups,
    without_telling_scores,
)
from isolux.verbs.publish.comparisons import shown_comparisons
from isolux.verbs.publish.drawn import (
    coarse_groups,
    coarse_pairs,
    coarse_record,
    steps_of,
    telling,
)
from isolux.verbs.publish.totals import Said, of_nearly_all, record_totals
from isolux.verbs.publish.wording import withheld
from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import is_drawn, is_weighted
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import recorded_spec
from isolux.vocabulary.tables import FINDINGS

__all__ = ["publish", "without_small_groups", "without_telling_scores"]

_FILES = {
    "address", "answers", "attributes", "detected", "found", "images", "missed", "model", "out",
    "planted",
    "predictions", "scores", "sums", "withdrawn",
}  # fmt: skip
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
        minimum, groups, gone, uneven=uneven, left_out=bool(lost), silent=silent,
        weighted=weighted,
    )  # fmt: skip
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
