"""What holds for each task: tables in, tables out, nothing changed, nobody lost.

A new task adds its sample to ``_samples.TASKS``; the rest finds it.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import signature

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import IsoluxError
from isolux.core.spec import Statistics
from isolux.core.tables import MEMBERSHIP, SCORES, check
from isolux.groups.measure import measure_groups
from isolux.tasks import score
from tests.contracts._plugins import Plugin, of_package
from tests.contracts._samples import task_sample

every_task = of_package("tasks")


def _score(plugin: Plugin, dataset: Dataset, predictions: pl.DataFrame) -> Scores:
    return plugin.module.score(dataset, predictions, **task_sample(plugin).options)


def _scored(plugin: Plugin) -> Scores:
    sample = task_sample(plugin)
    return _score(plugin, sample.dataset, sample.predictions)


def _same(left: Scores, right: Scores) -> None:
    assert_frame_equal(left.units, right.units, check_row_order=False)
    assert left.evidence.keys() == right.evidence.keys()
    for name in left.evidence:
        assert_frame_equal(left.evidence[name], right.evidence[name], check_row_order=False)


@every_task
def test_scores_are_the_table_they_should_be(plugin: Plugin) -> None:
    units = check(_scored(plugin).units, SCORES)
    assert units.height > 0
    assert set(units["task"].unique()) == {plugin.name}


@every_task
def test_a_score_is_null_only_for_a_reason_and_within_its_range_otherwise(plugin: Plugin) -> None:
    units, info = _scored(plugin).units, plugin.module.INFO
    assert units["value"].null_count() > 0, "the sample holds somebody who cannot be scored"
    assert units.filter(pl.col("value").is_null() != pl.col("reason").is_not_null()).is_empty()
    for name, scores in units.group_by("metric"):
        metric = info.metric(name[0])
        values = scores["value"].drop_nulls()
        assert metric.low is None or (values >= metric.low).all()
        assert metric.high is None or (values <= metric.high).all()


@every_task
def test_every_default_metric_is_measured(plugin: Plugin) -> None:
    scores, info = _scored(plugin), plugin.module.INFO
    for metric in map(info.metric, info.defaults):
        if metric.evidence is None:
            assert metric.name in scores.units["metric"].to_list()
        else:
            assert scores.evidence[metric.evidence].height > 0


@every_task
def test_each_metric_can_be_asked_for_alone(plugin: Plugin) -> None:
    sample, info = task_sample(plugin), plugin.module.INFO
    taken, refused = "metrics" in signature(plugin.module.score).parameters, dict[str, str]()
    for name in [metric.name for metric in info.metrics] if taken else ():
        options = {**sample.options, "metrics": (name,)}
        try:
            alone = plugin.module.score(sample.dataset, sample.predictions, **options)
        except IsoluxError as error:  # a setting or a column is missing, and named
            refused[name] = str(error)
            continue
        units = alone.evaluated_units().select(
            "unit_id", attribute=pl.lit("all"), group=pl.lit("one"), values=pl.lit(["one"])
        )
        membership = MEMBERSHIP.conform(units)
        measured = measure_groups(alone, membership, Statistics(replicates=100)).to_table()
        assert name in measured["metric"].unique().to_list(), name
    assert all("expected" in told for told in refused.values())
    assert all("--" in refused[name] for name in refused.keys() & set(info.defaults))


@every_task
def test_evidence_says_whose_it_is(plugin: Plugin) -> None:
    for name, evidence in _scored(plugin).evidence.items():
        assert {"model", "unit_id", "cluster_id"} <= set(evidence.columns), name


@every_task
def test_people_and_their_clusters_are_those_of_the_dataset(plugin: Plugin) -> None:
    sample = task_sample(plugin)
    known = sample.dataset.instances.select(unit_id="instance_id", cluster_id="cluster_id")
    scores = _scored(plugin)
    for frame in (scores.units, *scores.evidence.values()):
        found = frame.select("unit_id", "cluster_id").drop_nulls("unit_id").unique()
        assert found.join(known, on=["unit_id", "cluster_id"], how="anti").is_empty()


@every_task
def test_inputs_are_unchanged(plugin: Plugin) -> None:
    sample, untouched = task_sample(plugin), task_sample(plugin)
    _score(plugin, sample.dataset, sample.predictions)
    assert_frame_equal(sample.predictions, untouched.predictions)
    for table in ("instances", "attributes", "images"):
        assert_frame_equal(getattr(sample.dataset, table), getattr(untouched.dataset, table))


@every_task
def test_row_order_does_not_matter(plugin: Plugin) -> None:
    sample = task_sample(plugin)
    shuffled = replace(
        sample.dataset,
        instances=sample.dataset.instances.sample(fraction=1.0, shuffle=True, seed=1),
        attributes=sample.dataset.attributes.sample(fraction=1.0, shuffle=True, seed=2),
    )
    predictions = sample.predictions.sample(fraction=1.0, shuffle=True, seed=3)
    _same(_score(plugin, shuffled, predictions), _scored(plugin))


@every_task
def test_the_same_call_repeats(plugin: Plugin) -> None:
    first, second = _scored(plugin), _scored(plugin)
    _same(first, second)
    assert first.notes == second.notes


@every_task
def test_no_instances_give_an_empty_table(plugin: Plugin) -> None:
    sample = task_sample(plugin)
    nobody = replace(
        sample.dataset,
        instances=sample.dataset.instances.clear(),
        attributes=sample.dataset.attributes.clear(),
        images=sample.dataset.images.clear(),
    )
    scores = _score(plugin, nobody, sample.predictions.clear())
    assert check(scores.units, SCORES).is_empty()
    assert all(evidence.is_empty() for evidence in scores.evidence.values())


@every_task
def test_no_predictions_do_not_everyone_was_missed(plugin: Plugin) -> None:
    sample = task_sample(plugin)
    scores = _score(plugin, sample.dataset, sample.predictions.clear())
    missed = scores.units.filter(pl.col("unit_id").is_not_null())["unit_id"].unique()
    assert set(missed) == set(sample.dataset.instances["instance_id"])


@every_task
def test_rows_without_a_single_answer_are_refused(plugin: Plugin) -> None:
    """Equal noughts in all groups would read as no difference: an empty column is no answer."""
    sample = task_sample(plugin)
    table = sample.predictions
    named = [c for c in table.columns if c.endswith("_id") or c in ("model", "rank", "annotator")]
    emptied = table.with_columns(pl.lit(None, table.schema[c]).alias(c)
                                 for c in table.columns if c not in named)  # fmt: skip
    assert emptied.height
    with pytest.raises(IsoluxError, match=r"nobody has an answer from|cannot be used"):
        score(plugin.name, sample.dataset, emptied, **sample.options)
