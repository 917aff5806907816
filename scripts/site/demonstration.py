"""The demonstration's report and viewer, made as the commands make them, inside a page."""

from __future__ import annotations

import shutil
from pathlib import Path

from isolux import view
from isolux_worlds.populations.demonstration import demonstrate

__all__ = ["write_demonstration"]

_PAGE = """\
# The demonstration

People whose disparities are injected, and what an audit finds of them: `isolux demo` writes this
report, `isolux view demo --bundle viewer.html` this viewer. Both are single files that open by a
double click.

## The report

<p><a href="demo/report.html">Open the report as a page of its own</a></p>

<iframe src="demo/report.html" title="The report of the demonstration" loading="lazy"></iframe>

## The viewer

<p><a href="demo/viewer.html">Open the viewer as a page of its own</a></p>

<iframe src="demo/viewer.html" title="The viewer of the demonstration" loading="lazy"></iframe>
"""


def write_demonstration(source: Path, work: Path) -> None:
    """Audit the synthetic people, and put report and viewer into the site.

    Parameters
    ----------
    source : Path
        The folder of sources; what lies in its ``extra`` is copied into the site as it stands.
    work : Path
        Where the run is written.
    """
    shutil.rmtree(work, ignore_errors=True)
    report = demonstrate(seed=0).report(work)
    folder = source / "extra" / "demo"
    folder.mkdir(parents=True)
    shutil.copy(report, folder / "report.html")
    view(work, folder / "viewer.html")
    (source / "demo.md").write_text(_PAGE, encoding="utf-8")
