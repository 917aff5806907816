"""What holds for each plugin, whoever wrote it: it says what it is, cites, and shows an example.

A new file is found by itself. Where a test fails for your file, its message says what is missing.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import pytest

from isolux.core import registry
from isolux.core.info import Metric, PluginInfo, TaskInfo
from isolux.core.plugin_options import list_keyword_options
from tests.contracts._plugins import PACKAGES, PLUGINS, Plugin, of_package
from tests.contracts._samples import sample_of

every_plugin = pytest.mark.parametrize("plugin", PLUGINS, ids=str)
with_function = pytest.mark.parametrize(
    "plugin", [p for p in PLUGINS if PACKAGES[p.package].function], ids=str
)
METRICS = [
    (task, metric)
    for task in registry.names("tasks")
    for metric in registry.task_info(task).metrics
]
every_metric = pytest.mark.parametrize(
    "metric", [m for _, m in METRICS], ids=[f"{task}/{m.name}" for task, m in METRICS]
)


def _function(plugin: Plugin) -> object:
    return getattr(plugin.module, PACKAGES[plugin.package].function or "", None)


def test_every_room_of_the_registry_has_a_contract() -> None:
    assert set(PACKAGES) == set(registry.PLUGIN_KINDS)


@pytest.mark.parametrize(
    ("package", "table"),
    [("tasks", "TASKS"), ("datasets", "DATASETS"), ("predictions", "OUTPUTS"), ("models", "MODELS"),
     ("analyses", "ANALYSES"), ("checks", "CHECKS")],
)  # fmt: skip
def test_a_missing_sample_says_what_to_add_where(package: str, table: str) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        sample_of(Plugin(package, "gaze"), table, "a function that gives one")
    assert str(caught.value) == (
        f"{package}/gaze has no sample: add a function that gives one to {table} in"
        f" tests/contracts/_samples.py, as {table}['gaze']"
    )


def test_there_are_plugins_to_look_at() -> None:
    assert {"datasets", "predictions", "tasks", "analyses", "papers"} <= {
        p.package for p in PLUGINS
    }


@every_plugin
def test_the_file_says_what_it_is(plugin: Plugin) -> None:
    text = (plugin.module.__doc__ or "").strip()
    assert text, "a module docstring: what it is, where it sits in the flow, the paper"


@every_plugin
def test_info_is_complete_and_cites(plugin: Plugin) -> None:
    info = plugin.module.INFO
    assert isinstance(info, PACKAGES[plugin.package].info)
    assert info.title.strip()
    assert info.summary.strip().endswith("."), "summary: one sentence"
    assert info.licence.strip()
    assert info.references, "at least one reference: where the method or the format is written down"
    for reference in info.references:
        assert re.fullmatch(r"[a-z][a-z0-9_-]*", reference.key), "a short key: fairface, rfc4180"
        assert len(reference.citation.strip()) > len(reference.key)
        assert re.match(r"https?://|$", reference.url)
    assert all(sentence.strip() for sentence in info.assumptions)


def test_one_key_means_one_work() -> None:
    """The report lists each key once; two texts under one key would drop one of them."""
    texts: dict[str, set[str]] = defaultdict(set)
    for plugin in PLUGINS:
        info: PluginInfo = plugin.module.INFO
        references = list(info.references)
        if isinstance(info, TaskInfo):
            references += [m.reference for m in info.metrics if m.reference]
        for reference in references:
            texts[reference.key].add(reference.citation)
    assert {key: found for key, found in texts.items() if len(found) > 1} == {}


@with_function
def test_the_function_is_there_and_shows_an_example(plugin: Plugin) -> None:
    function = _function(plugin)
    assert inspect.isfunction(function)
    assert function.__module__ == plugin.module.__name__, "defined here, not borrowed"
    text = inspect.getdoc(function) or ""
    assert re.search(r"^Examples\n-{8}$", text, re.MULTILINE), "a numpydoc section Examples"
    assert ">>> " in text.partition("Examples\n--------")[2], "that doctest runs"


@with_function
def test_settings_are_named(plugin: Plugin) -> None:
    """What is audited comes by place; every choice that moves a number has a name."""
    package = PACKAGES[plugin.package]
    kinds = [p.kind for p in inspect.signature(_function(plugin)).parameters.values()]
    assert len(kinds) >= package.by_place
    assert inspect.Parameter.KEYWORD_ONLY not in kinds[: package.by_place]
    named = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}  # ** with Unpack
    assert set(kinds[package.by_place :]) <= named


@every_metric
def test_a_metric_says_what_it_measures(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
    assert metric.title.strip()
    assert metric.definition.strip().endswith(".")
    assert metric.unit.strip()
    assert metric.direction in {"higher", "lower", "none"}
    if metric.low is not None and metric.high is not None:
        assert metric.low < metric.high


@every_metric
def test_a_metric_is_a_mean_of_scores_or_a_statistic_of_evidence(metric: Metric) -> None:
    assert (metric.evidence is None) is (metric.statistic is None)


@of_package("tasks")
def test_two_kinds_of_error_name_each_other_and_say_what_they_are(plugin: Plugin) -> None:
    metrics = {metric.name: metric for metric in plugin.module.INFO.metrics}
    for metric in metrics.values():
        assert bool(metric.opposite) is bool(metric.meaning), metric.name
        if metric.opposite:
            other = metrics[metric.opposite]
            assert other.opposite == metric.name != other.name
            assert other.direction == metric.direction != "none"
            assert metric.meaning != other.meaning
            assert not metric.meaning.endswith(".")


@pytest.mark.parametrize(
    ("task", "metric", "opposite"),
    [("face_verification", "false_match_rate", "false_non_match_rate"),
     ("face_verification", "generalised_false_accept_rate", "generalised_false_reject_rate"),
     ("identification", "false_positive_identification_rate",
      "false_negative_identification_rate"),
     ("age_estimation", "challenge_false_positive_rate", "challenge_false_negative_rate"),
     ("classification", "false_positive_rate", "false_negative_rate")],
)  # fmt: skip
def test_tasks_with_two_kinds_of_error_declare_them(task: str, metric: str, opposite: str) -> None:
    assert registry.task_info(task).metric(metric).opposite == opposite


@of_package("tasks")
def test_a_task_measures_something_by_default(plugin: Plugin) -> None:
    info = plugin.module.INFO
    names = [metric.name for metric in info.metrics]
    assert len(set(names)) == len(names) > 0
    assert info.defaults
    assert set(info.defaults) <= set(names)


@of_package("tasks")
def test_a_task_says_what_must_hold(plugin: Plugin) -> None:
    assert plugin.module.INFO.assumptions


@of_package("analyses")
def test_an_analysis_says_what_must_hold(plugin: Plugin) -> None:
    assert plugin.module.INFO.assumptions


@of_package("datasets")
def test_a_dataset_says_whose_judgement_it_holds(plugin: Plugin) -> None:
    info = plugin.module.INFO
    assert info.label_source in {"self-reported", "perceived", "inferred", "declared by the user"}
    assert all(attribute and words for attribute, words in info.terms)


@with_function
def test_every_setting_says_what_it_means(plugin: Plugin) -> None:
    """In a sentence of its own: ``isolux list KIND NAME`` prints it, with type and default."""
    said = list_keyword_options(_function(plugin))  # type: ignore[arg-type]
    assert [name for name, option in said.items() if len(option.description.split()) < 3] == []
    assert [name for name, option in said.items() if option.text.startswith("As in ")] == []
