"""``isolux compare``: two models on the same people, paired, or any number side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli import document
from isolux.cli.datasets_screen import show_datasets
from isolux.cli.streams import say
from isolux.vocabulary.plugin_options import named_options, own_settings

if TYPE_CHECKING:
    import polars as pl

    from isolux.verbs.side_by_side import SideBySide

VERB = "isolux.verbs.compare:compare"

_PAIR, _ROWS = 2, 30
_OF_MANY = ("id_from", "allow_disagreement", "models", "withdrawn", "allow_unmatched")


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
    classes by disparity, as a page and as Parquet, CSV and LaTeX.

    Only people who are in all runs are compared: people who withdrew from one are left out of all.

    With --datasets, models are tabulated across datasets, as in FairFace's Tables 2, 3, 5 and 7,
    from finished audits with --target race, gender or age: DATASET=RUN, or DATASET=RUN,RUN.

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
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.compare import compare as compare_runs

    settings |= {"models": models, "average": average}
    of_pair = named_options(compare_runs)
    flags = named_options(compare) | of_pair
    if datasets:
        own_settings(flags, settings, ("average",), "--datasets")
        show_datasets(runs, out=out, overwrite=overwrite, average=average)
        return
    named = [_named(text) for text in runs]
    if models is not None or len(named) != _PAIR or any(name is not None for name, _ in named):
        kept = own_settings(flags, settings, _OF_MANY, "a comparison side by side")
        _many(named, out, overwrite=overwrite, settings=kept)
        return
    kept = own_settings(flags, settings, of_pair, "a comparison of two runs")
    from isolux.cli.comparison_screen import show_comparison
    from isolux.cli.lazily import load_late

    if out is not None:
        refuse_existing(out, overwrite=overwrite)
    load_late("numpy.f2py")
    found = compare_runs(runs[0], runs[1], **kept)
    report = found.report(out, overwrite=overwrite) if out is not None else None
    show_comparison(found.run, report)
    if document.giving():
        document.give("rankings", found.rankings, of=out)
        return
    _show_relative(found.disparities)


def _named(text: str) -> tuple[str | None, list[str]]:
    """Part NAME=RUN,RUN; a path that is there is no name, whatever it holds."""
    name, equals, paths = text.partition("=")
    if not equals or not name.strip() or Path(text).expanduser().exists():
        return None, [text]
    return name.strip(), [path.strip() for path in paths.split(",") if path.strip()]


def _many(
    named: Sequence[tuple[str | None, list[str]]],
    out: str | None,
    *,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Lay any number of models out side by side."""
    from isolux.verbs.side_by_side import side_by_side
    from isolux.vocabulary.errors import SpecError

    if all(name is None for name, _ in named):
        found = side_by_side([paths[0] for _, paths in named], **settings)
    else:
        runs: dict[str, list[str]] = {}
        for name, paths in named:
            label = name or Path(paths[0]).name
            if label in runs:
                raise SpecError(
                    f"two models are called {label!r}",
                    expected="each name once; runs of one model with several seeds are "
                    "NAME=RUN,RUN",
                    found=label,
                )
            runs[label] = paths
        found = side_by_side(runs, **settings)
    _show_side_by_side(found)
    if out is not None:
        say()
        document.wrote("report", found.report(out, overwrite=overwrite))


def _show_side_by_side(found: SideBySide) -> None:
    """Print warnings, each step's gaps, and a table with models as columns."""
    from isolux.cli.screen import show_table
    from isolux.report.side_by_side import steps, wide

    for text in found.record["warnings"]:
        document.warn(text)
    for text in steps(found.changes, found.values):
        say(f"• {text}")
    document.give("values", found.values)
    document.give("changes", found.changes)
    if found.models is not None:
        from isolux.cli.screen import show_wide

        show_wide("models and their training", found.models)
    models = list(found.record["models"])
    table = wide(found.values, models)
    first = table.row(0, named=True)
    line = ("metric", "label", "threshold")
    main = [row for row in table.iter_rows(named=True) if all(row[k] == first[k] for k in line)]
    rows = [
        [row["attribute"] or "", row["group"], str(row["n"]), *(row[m] for m in models)]
        for row in main[:_ROWS]
    ]
    say()
    show_table(str(first["metric"]), ["attribute", "group", "n", *models], rows)
    for text in found.record["notes"]:
        document.note(text)


def _show_relative(disparities: pl.DataFrame) -> None:
    """Print each group's change as a share of the first model's value, where that was asked for."""
    from isolux.cli.screen import show_table

    rows = disparities.filter(disparities["kind"] == "relative_change")
    for (metric, threshold), part in rows.group_by(["metric", "threshold"], maintain_order=True):
        cells = [
            [row["group_a"] or "everyone", *_shares(row), str(row["n_units_a"])]
            for row in part.iter_rows(named=True)
            if row["label"] is None
        ]
        at = "" if threshold is None else f" at {threshold:g}"
        say()
        heading = f"{metric}{at}: change as a share of the first model's value, with its interval"
        show_table(heading, ["group", "change", "interval", "n"], cells)


def _shares(row: dict[str, Any]) -> list[str]:
    value, low, high = (
        "–" if row[name] is None else f"{100 * row[name]:+.1f} %"
        for name in ("value", "low", "high")
    )
    return [value, "–" if "–" in (low, high) else f"{low} to {high}"]
