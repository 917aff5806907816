"""What holds for each analysis: a run's tables in, findings out, nothing made of nothing.

Each is run on a small synthetic run whose truth is known (``_runs``), and what it found is looked
at. A new analysis adds the run and the words that must be found to ``_samples.ANALYSES``.
"""

from __future__ import annotations

import html
import json
import math
import re
from functools import cache
from typing import Any

from polars.testing import assert_frame_equal

from isolux.api.error_budget import label_exploratory
from isolux.api.explain import run_analyses
from isolux.core.containers import Run, tables_to_json
from isolux.core.plugin_options import parse_option_assignments
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES, check
from isolux.report.html import render_comparison_report, render_report
from isolux.report.summary import summarise_run
from tests.contracts._plugins import Plugin, of_package
from tests.contracts._samples import AnalysisSample, sample_of

TABLES = ("scores", "attributes", "group_metrics", "disparities", "findings")


def empty_run() -> Run:
    """A run in which nobody was audited; its record has what every record has."""
    return Run(
        record={
            "isolux": "0",
            "created": "2026-01-01T00:00:00Z",
            "spec": {"data": "table:nobody.csv", "task": "classification", "by": []},
            "dataset": {"name": "table", "terms": []},
            "model": "made up",
            "task": "classification",
            "inputs": {},
            "versions": {},
            "seed": 0,
            "notes": [],
            "references": [],
            "clusters": {"column": None, "n_clusters": 0, "n_units": 0},
            "families": {},
        },
        scores=SCORES.empty(),
        attributes=ATTRIBUTES.empty(),
        group_metrics=GROUP_METRICS.empty(),
        disparities=DISPARITIES.empty(),
        findings=FINDINGS.empty(),
    )


@of_package("analyses")
def test_an_empty_run_gives_no_findings(plugin: Plugin) -> None:
    found = plugin.module.explain(empty_run()).findings
    assert check(found, FINDINGS).is_empty()
    assert found.schema == FINDINGS.empty().schema


@of_package("analyses")
def test_the_run_is_unchanged(plugin: Plugin) -> None:
    run, untouched = empty_run(), empty_run()
    plugin.module.explain(run)
    assert run.record == untouched.record
    for table in TABLES:
        assert_frame_equal(getattr(run, table), getattr(untouched, table))


def _sample(plugin: Plugin) -> AnalysisSample:
    return sample_of(plugin, "ANALYSES", "an AnalysisSample: a run, and words that it finds there")


@cache
def _explained(name: str) -> Run:
    sample = _sample(Plugin("analyses", name))
    return run_analyses(sample.run(), [name], sample.options)


def _tables(run: Run, name: str) -> dict[str, dict[str, Any]]:
    return run.record.get("explained", {}).get(name, {})


@of_package("analyses")
def test_it_finds_what_is_there(plugin: Plugin) -> None:
    found = _explained(plugin.name)
    own = found.findings.filter(analysis=plugin.name)
    tables = _tables(found, plugin.name)
    assert own.height or tables, "neither a finding nor a table"
    said = " ".join([*own["claim"], json.dumps(tables, ensure_ascii=False)])
    assert [words for words in _sample(plugin).finds if words not in said] == []


@of_package("analyses")
def test_a_finding_is_a_sentence_with_its_effect_and_how_sure_it_is(plugin: Plugin) -> None:
    found = check(_explained(plugin.name).findings, FINDINGS).filter(analysis=plugin.name)
    for row in found.iter_rows(named=True):
        claim = row["claim"]
        assert re.match(r"[A-ZÀ-Þ0-9ε“\"]", claim), claim
        assert claim.endswith("."), claim
        assert not re.search(r"\bnan\b|None|null|\{|\}|_[a-z]+_", claim), claim
        for name in ("effect", "low", "high"):
            assert row[name] is None or math.isfinite(row[name]), claim
        if row["low"] is not None and row["high"] is not None:
            assert row["low"] <= row["high"], claim
        assert row["n"] is None or row["n"] > 0, claim
    ranks = found["rank"].to_list()
    assert ranks == sorted(ranks)


@of_package("analyses")
def test_a_table_is_as_wide_as_its_heading_and_says_numbers(plugin: Plugin) -> None:
    for caption, table in _tables(_explained(plugin.name), plugin.name).items():
        assert caption.strip()
        assert table["rows"], caption
        for row in table["rows"]:
            assert len(row) == len(table["columns"]), caption
            cells = [cell for cell in row if isinstance(cell, float)]
            assert all(map(math.isfinite, cells)), caption


@of_package("analyses")
def test_the_same_run_explained_again_says_the_same(plugin: Plugin) -> None:
    sample, first = _sample(plugin), _explained(plugin.name)
    options = [option.removeprefix(f"{plugin.name}.") for option in sample.options]
    settings = parse_option_assignments(
        plugin.module.explain, options, owner="it", flag="--analysis-option"
    )
    run = sample.run()
    untouched = {table: getattr(run, table).clone() for table in TABLES}
    again = plugin.module.explain(run, **settings)
    own = first.findings.filter(analysis=plugin.name)
    said = label_exploratory(
        again.findings, run.record, plugin.name, ()
    )  # nothing was planned: exploratory
    assert said["claim"].to_list() == own["claim"].to_list()
    assert json.loads(json.dumps(tables_to_json(again.tables))) == json.loads(
        json.dumps(_tables(first, plugin.name))
    )
    for table, before in untouched.items():
        assert_frame_equal(getattr(run, table), before)


@of_package("analyses")
def test_the_report_prints_what_it_found(plugin: Plugin) -> None:
    run = _explained(plugin.name)
    page = (
        render_comparison_report(run)
        if "model_a" in run.disparities.columns
        else render_report(summarise_run(run))
    )
    said = re.sub(r"\s+", "", html.unescape(re.sub(r"<[^>]+>", "", page)))
    for claim in run.findings.filter(analysis=plugin.name)["claim"].head(3):
        assert re.sub(r"\s+", "", claim) in said, claim
