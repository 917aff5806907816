"""What holds for each analysis: a run's tables in, findings out, nothing made of nothing."""

from __future__ import annotations

from polars.testing import assert_frame_equal

from isolux.vocabulary.containers import Run
from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES, check
from tests.contracts._plugins import Plugin, of_room

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


@of_room("analyses")
def test_an_empty_run_gives_no_findings(plugin: Plugin) -> None:
    found = plugin.module.explain(empty_run()).findings
    assert check(found, FINDINGS).is_empty()
    assert found.schema == FINDINGS.empty().schema


@of_room("analyses")
def test_the_run_is_unchanged(plugin: Plugin) -> None:
    run, untouched = empty_run(), empty_run()
    plugin.module.explain(run)
    assert run.record == untouched.record
    for table in TABLES:
        assert_frame_equal(getattr(run, table), getattr(untouched, table))
