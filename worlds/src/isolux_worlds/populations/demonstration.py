"""The demonstration: a synthetic population, audited as a newcomer's own table would be.

The injected effects are known exactly, so the report can show them next to its estimates.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from isolux.api.audit import Audit, run_audit
from isolux.core.containers import Run
from isolux.core.spec import parse_spec
from isolux.io import run_directory
from isolux.io.record_paths import make_paths_relative
from isolux_worlds.marker import write_folder_marker
from isolux_worlds.populations.demo import demo_population, demo_settings
from isolux_worlds.populations.injected_effects import injected_effects_record
from isolux_worlds.populations.world import simulate, write_csv

__all__ = ["Demonstration", "demonstrate"]

_PEOPLE = "people.csv"


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A finished demonstration and the table of synthetic people that it audited."""

    audit: Audit
    people: str

    @property
    def run(self) -> Run:
        """The audit's run."""
        return self.audit.run

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run directory, its report and ``people.csv``; return the report's path."""
        from isolux.report.html import write_report

        table_source = f"table:{Path(out) / _PEOPLE}"
        record = dict(self.run.record)
        record["spec"] = {**record["spec"], "data": table_source, "out": str(out)}
        record["inputs"] = {str(Path(out) / _PEOPLE): h for h in record["inputs"].values()}
        run = replace(self.run, record=make_paths_relative(record))

        def fill(folder: Path) -> None:
            (folder / _PEOPLE).write_text(self.people, encoding="utf-8")
            write_folder_marker(folder, "`isolux demo`")
            write_report(run, folder / "report.html")

        return run_directory.save_run(run, out, overwrite=overwrite, extra=fill) / "report.html"


def demonstrate(*, seed: int = 0) -> Demonstration:
    """Simulate a population with injected effects, and audit it."""
    population = demo_population()
    with tempfile.TemporaryDirectory(prefix="isolux-demo-") as folder:
        path = write_csv(simulate(population, seed), Path(folder) / _PEOPLE)
        spec = parse_spec({"data": f"table:{path}", "seed": seed, **demo_settings()})
        audit = run_audit(spec)
        people = Path(path).read_text(encoding="utf-8")
    injected_effects = injected_effects_record(population, "aurora")
    run = replace(audit.run, record={**audit.run.record, "injected": injected_effects})
    return Demonstration(replace(audit, run=run), people)
