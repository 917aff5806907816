"""``isolux check``: what is wrong with a dataset, before anything is measured with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isolux.cli import command_output
from isolux.cli.output_files import check_output_file
from isolux.cli.streams import print_clean_lines

if TYPE_CHECKING:
    import polars as pl

    from isolux.api.check import CheckResult

VERB = "isolux.api.check:check"

_MAX_EXAMPLES, _MAX_LENGTH = 3, 200
_EXIT_PROBLEMS = 1


def check(data: str, *, strict: bool = False, out: Path | None = None, **settings: Any) -> None:
    """Look for broken files, boxes, masks, ids, duplicate photos, private metadata.

    Exit code 0: no error. 1: at least one problem of severity error; with --strict, any problem. 2:
    the settings are wrong, or there is nothing at the path.

    Parameters
    ----------
    data : str
        NAME:PATH, such as coco:instances.json.
    strict : bool
        Warnings also set the exit code.
    out : Path, optional
        A file for all problems: .csv or .json.
    """
    from isolux.api.check import check as run_check

    if out is not None:
        check_output_file(out, endings=(".csv", ".json"))
    check_result = run_check(data, **settings)
    command_output.add_table_to_json("problems", check_result.problems)
    _print_problems_and_summary(check_result, strict=strict)
    if out is not None:
        from isolux.io.atomic import write_text

        command_output.report_file(
            "problems", write_text(out, _write_problems_and_format_note(check_result.problems, out))
        )
    if check_result.failed(strict=strict):
        raise typer.Exit(_EXIT_PROBLEMS)


def _print_problems_and_summary(check_result: CheckResult, *, strict: bool) -> None:
    """Print each problem with its count and first cases, notes, and a summary."""
    import polars as pl

    groups = check_result.problems.group_by(
        "severity", "check", "problem", maintain_order=True
    ).agg(
        n=pl.len(),
        units=pl.concat_str("unit_kind", "unit_id", separator=" ").head(_MAX_EXAMPLES),
        found=pl.col("found").drop_nulls().first(),
        hint=pl.col("hint").first(),
    )
    for severity, check, problem, n, units, first_found, hint in groups.iter_rows():
        print_clean_lines(f"{severity}: {problem}: {n:,} ({check})")
        for unit in units:
            print_clean_lines(f"  {unit[:_MAX_LENGTH]}")
        if n > len(units):
            print_clean_lines(f"  … and {n - len(units):,} more; --out FILE writes all of them")
        if first_found:
            print_clean_lines(f"  found, the first: {first_found[:_MAX_LENGTH]}")
        if hint:
            print_clean_lines(f"  what to do: {hint}")
        print_clean_lines()
    for note in check_result.notes:
        command_output.report_note(note)
    errors = check_result.problems.filter(severity="error").height
    warnings = check_result.problems.height - errors
    print_clean_lines(
        f"{_format_counted_noun(errors, 'error')}, {_format_counted_noun(warnings, 'warning')}"
        f" from {len(check_result.checks)} check(s): {', '.join(check_result.checks)}"
    )
    code = _EXIT_PROBLEMS if check_result.failed(strict=strict) else 0
    counted_text = "errors and warnings (--strict)" if strict else "errors"
    print_clean_lines(f"exit code {code}, set by {counted_text}")


def _format_counted_noun(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _write_problems_and_format_note(problems: pl.DataFrame, out: Path) -> str:
    if out.suffix.lower() == ".csv":
        from isolux.io.csv_text import to_safe_csv

        return to_safe_csv(problems)
    import json

    return json.dumps(problems.to_dicts(), ensure_ascii=False, indent=1) + "\n"
