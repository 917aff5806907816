"""``isolux compare``: two models on the same people, paired, or any number side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli import command_output
from isolux.cli.datasets_screen import print_dataset_comparison
from isolux.cli.streams import print_clean_lines
from isolux.core.plugin_options import list_keyword_defaults, select_used_settings

if TYPE_CHECKING:
    import polars as pl

    from isolux.api.side_by_side import SideBySide

VERB = "isolux.api.compare:compare"

_PAIR_SIZE, _MAX_ROWS = 2, 30
_SIDE_BY_SIDE_FLAGS = ("id_from", "allow_disagreement", "models", "withdrawn", "allow_unmatched")


def compare(
    runs: Sequence[str],
    *,
    out: str | None = None,
    overwrite: bool = False,
    models: str | None = None,
    datasets: bool = False,
    average: Sequence[str] = (),
    **settings: Any,
) -> None:
    """Show which groups gained and which lost from one model to another, on the same people.

    For two runs, the changes are printed. More runs, or runs of one model with several seeds
    (NAME=RUN,RUN), are shown side by side: models as columns, which gaps grew and which shrank,
    classes by disparity, as a page and as Parquet, CSV and LaTeX. Runs of one model alone give the
    mean over its seeds, by group and of the gaps.

    Only people who are in all runs are compared: people who withdrew from one are left out of all.

    With --datasets, models are tabulated across datasets, as in FairFace's Tables 2, 3, 5 and 7,
    from finished audits, such as with --target race: DATASET=RUN, or DATASET=RUN,RUN.

    Parameters
    ----------
    runs : sequence of str
        Run directories in order, or NAME=RUN, or NAME=RUN,RUN for one model with several seeds.
    out : str, optional
        Directory to write; default: print only.
    overwrite : bool
        Replace that directory.
    models : str, optional
        How each model was trained: a YAML or CSV file with paradigm, data, images and parameters.
    datasets : bool
        The runs are of several datasets: DATASET=RUN,RUN.
    average : sequence of str
        With --datasets: the datasets that are averaged, each counting once; default: all.
    """
    from isolux.api.compare import compare as compare_runs
    from isolux.io.atomic import refuse_existing

    settings |= {"models": models, "average": average}
    pair_flags = list_keyword_defaults(compare_runs)
    flags = list_keyword_defaults(compare) | pair_flags
    if datasets:
        select_used_settings(flags, settings, ("average",), "--datasets")
        print_dataset_comparison(runs, out=out, overwrite=overwrite, average=average)
        return
    named_runs = [_split_named_runs(text) for text in runs]
    if (
        models is not None
        or len(named_runs) != _PAIR_SIZE
        or any(name is not None for name, _ in named_runs)
    ):
        own_flags = select_used_settings(
            flags, settings, _SIDE_BY_SIDE_FLAGS, "a comparison side by side"
        )
        _compare_side_by_side(named_runs, out, overwrite=overwrite, settings=own_flags)
        return
    own_flags = select_used_settings(flags, settings, pair_flags, "a comparison of two runs")
    from isolux.cli.comparison_screen import print_comparison
    from isolux.cli.lazy_imports import install_lazy_modules

    if out is not None:
        refuse_existing(out, overwrite=overwrite)
    install_lazy_modules("numpy.f2py")
    comparison = compare_runs(runs[0], runs[1], **own_flags)
    report = comparison.report(out, overwrite=overwrite) if out is not None else None
    print_comparison(comparison.run, report)
    if command_output.is_json_active():
        command_output.add_table_to_json("rankings", comparison.rankings, run_dir=out)
        return
    _print_relative_changes(comparison.disparities)


def _split_named_runs(text: str) -> tuple[str | None, list[str]]:
    """Split NAME=RUN,RUN; an existing path has no name, even with ``=`` in it."""
    name, equals, paths = text.partition("=")
    if not equals or not name.strip() or Path(text).expanduser().exists():
        return None, [text]
    return name.strip(), [path.strip() for path in paths.split(",") if path.strip()]


def _compare_side_by_side(
    named_runs: Sequence[tuple[str | None, list[str]]],
    out: str | None,
    *,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Compare any number of models side by side."""
    from isolux.api.side_by_side import side_by_side
    from isolux.core.errors import SpecError

    if all(name is None for name, _ in named_runs):
        comparison = side_by_side([paths[0] for _, paths in named_runs], **settings)
    else:
        runs: dict[str, list[str]] = {}
        for name, paths in named_runs:
            label = name or Path(paths[0]).name
            if label in runs:
                raise SpecError(
                    f"two models are called {label!r}",
                    expected="each name once; runs of one model with several seeds are "
                    "NAME=RUN,RUN",
                    found=label,
                )
            runs[label] = paths
        comparison = side_by_side(runs, **settings)
    _print_side_by_side(comparison)
    if out is not None:
        print_clean_lines()
        command_output.report_file("report", comparison.report(out, overwrite=overwrite))


def _print_side_by_side(comparison: SideBySide) -> None:
    """Print warnings, each step's gaps, and tables with models as columns and of gaps."""
    import polars as pl

    from isolux.cli.table_output import print_unbroken_table
    from isolux.report.side_by_side import (
        describe_gap_changes,
        format_gaps_as_text,
        pivot_values_by_model,
    )

    for text in comparison.record["warnings"]:
        command_output.report_warning(text)
    for text in describe_gap_changes(comparison.changes, comparison.values):
        print_clean_lines(f"• {text}")
    command_output.add_table_to_json("values", comparison.values)
    command_output.add_table_to_json("changes", comparison.changes)
    command_output.add_table_to_json("gaps", comparison.gaps)
    if comparison.models is not None:
        from isolux.cli.table_output import print_table_in_column_blocks

        print_table_in_column_blocks("models and their training", comparison.models)
    models = list(comparison.record["models"])
    table = pivot_values_by_model(comparison.values, models)
    first = table.row(0, named=True)
    line = ("metric", "label", "threshold")
    main = [row for row in table.iter_rows(named=True) if all(row[k] == first[k] for k in line)]
    rows = [
        [row["attribute"] or "", row["group"], str(row["n"]), *(row[m] for m in models)]
        for row in main[:_MAX_ROWS]
    ]
    print_clean_lines()
    print_unbroken_table(str(first["metric"]), ["attribute", "group", "n", *models], rows)
    main_gaps = comparison.gaps.filter(pl.col(k).eq_missing(first[k]) for k in line)
    gaps = format_gaps_as_text(main_gaps.head(_MAX_ROWS), comparison.values).drop("metric")
    if gaps.height:
        print_clean_lines()
        heading = f"{first['metric']}: gaps, mean over runs"
        print_unbroken_table(heading, gaps.columns, [list(row) for row in gaps.iter_rows()])
    for text in comparison.record["notes"]:
        command_output.report_note(text)


def _print_relative_changes(disparities: pl.DataFrame) -> None:
    """Print each group's change as a share of the first model's value, if requested."""
    from isolux.cli.table_output import print_unbroken_table

    rows = disparities.filter(disparities["kind"] == "relative_change")
    for (metric, threshold), metric_rows in rows.group_by(
        ["metric", "threshold"], maintain_order=True
    ):
        cells = [
            [row["group_a"] or "overall", *_format_relative_change_row(row), str(row["n_units_a"])]
            for row in metric_rows.iter_rows(named=True)
            if row["label"] is None
        ]
        threshold_text = "" if threshold is None else f" at {threshold:g}"
        print_clean_lines()
        heading = (
            f"{metric}{threshold_text}: change as a share of the first model's value,"
            " with its interval"
        )
        print_unbroken_table(heading, ["group", "change", "interval", "n"], cells)


def _format_relative_change_row(row: dict[str, Any]) -> list[str]:
    value_text, low, high = (
        "–" if row[name] is None else f"{100 * row[name]:+.1f} %"
        for name in ("value", "low", "high")
    )
    return [value_text, "–" if "–" in (low, high) else f"{low} to {high}"]
