"""``isolux explain``: analyses of a finished run, into its findings and report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli.streams import print_clean_lines

VERB = "isolux.api.explain:explain"


def explain(
    run: str,
    *,
    out: str | None = None,
    overwrite: bool = False,
    notes: bool = False,
    **settings: Any,
) -> None:
    """Look for reasons why groups differ: confounders, error models, patterns, slices, power.

    The run keeps its tables; findings and report are rewritten.

    Parameters
    ----------
    run : str
        A run directory written by `isolux audit --out`.
    out : str, optional
        A new run directory; default: the run itself is replaced.
    overwrite : bool
        Replace --out if it exists.
    notes : bool
        Print every note, and every warning whole.
    """
    from isolux.api.explain import explain as run_explain
    from isolux.cli.audit_screen import print_audit
    from isolux.io import run_directory
    from isolux.io.atomic import refuse_existing
    from isolux.report.html import write_report

    if out is not None:
        refuse_existing(out, overwrite=overwrite)
    explanation = run_explain(run, **settings)

    def fill_folder(folder: Path) -> None:
        run_directory.carry_over_other_files(run, folder)
        write_report(explanation.run, folder / "report.html")

    run_dir = run_directory.save_run(
        explanation.run,
        out or run,
        overwrite=overwrite or out is None,
        keeps_other_files=out is None,
        extra=fill_folder,
    )
    first = tuple(settings.get("analysis") or ())
    print_audit(
        explanation.run, Path(run_dir) / "report.html", requested_analyses=first, notes=notes
    )
    for name, reason in explanation.refused.items():
        print_clean_lines(f"{name} did not run: {reason}")
