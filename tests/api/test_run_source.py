"""Every verb takes a finished run in the same ways: an audit, a run in memory, its directory."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.api._tables_from_memory import is_run_source, run_of
from isolux.core.errors import SpecError


def audited(start: int, model: str = "m"):
    ids = [f"p{start + k}" for k in range(120)]
    scores = pl.DataFrame({"unit_id": ids, "value": [0.0, 1.0, 1.0] * 40})
    people = pl.DataFrame({"unit_id": ids, "tone": ["a", "b"] * 60})
    return isolux.audit(scores.with_columns(model=pl.lit(model)), people, by="tone", replicates=100)


class Elsewhere:
    """A path of another library."""

    def __init__(self, folder):
        self.folder = folder

    def __fspath__(self):
        return str(self.folder / "run")


@pytest.fixture(scope="module")
def audits():
    return audited(0), audited(1000)


def test_an_audit_a_run_and_a_directory_are_one(audits, tmp_path):
    audit = audits[0]
    audit.report(tmp_path / "run")
    for source in (audit, audit.run, tmp_path / "run", str(tmp_path / "run"), Elsewhere(tmp_path)):
        assert is_run_source(source)
        assert run_of(source).group_metrics.equals(audit.run.group_metrics)
    for several in ([audit], (audit, audit), {"m": audit}):
        assert not is_run_source(several)


def test_monitor_takes_audits_as_it_takes_runs(audits):
    both = isolux.monitor(audits), isolux.monitor([audit.run for audit in audits])
    assert both[0].summary.equals(both[1].summary)


@pytest.mark.parametrize("verb", [
    lambda wrong, audit: isolux.monitor([audit, wrong]),
    lambda wrong, audit: isolux.compare(audit, wrong),
    lambda wrong, audit: isolux.explain(wrong),
    lambda wrong, audit: isolux.side_by_side({"m": audit, "n": [wrong]}),
])  # fmt: skip
def test_what_is_no_run_is_refused_with_what_it_is(verb, audits):
    with pytest.raises(SpecError, match=r"(?s)not a run.*found: DataFrame"):
        verb(pl.DataFrame({"value": [1.0]}), audits[0])
