"""``isolux.across``: models on several datasets, as FairFace's Tables 2, 3, 5 and 7.

Finished audits, each of one model, one question and one dataset → accuracy over the paper's groups
→ datasets averaged → the tables, as files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.api._tables_from_memory import RunSource, find_duplicate_runs, load_runs_by_name
from isolux.core import registry
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.core.survey_sample import is_weighted
from isolux.io.atomic import staged_directory, write_parquet, write_text
from isolux.io.csv_text import to_safe_csv
from isolux.report.side_by_side import format_latex_table

_MARK = "across.json"


@dataclass(frozen=True, slots=True)
class CrossDatasetTables:
    """Models on several datasets.

    Parameters
    ----------
    values : polars.DataFrame
        ``head, dataset, model, column, n, value, low, high, status, reason``: accuracy with its
        interval; ``dataset`` is ``Average`` last.
    tables : mapping of str to polars.DataFrame
        The paper's tables by caption.
    warnings : tuple of str
        Those of the audits, with their dataset.
    folder : Path, optional
        Where they were written.
    """

    values: pl.DataFrame
    tables: Mapping[str, pl.DataFrame]
    warnings: tuple[str, ...]
    folder: Path | None = None


def across(
    runs: Mapping[str, RunSource | Sequence[RunSource]],
    *,
    average: Sequence[str] = (),
    out: str | Path | None = None,
    overwrite: bool = False,
) -> CrossDatasetTables:
    """Lay models' accuracy on several datasets out as FairFace's Tables 2, 3, 5 and 7.

    Parameters
    ----------
    runs : mapping of str to runs
        Each dataset's finished audits, of classification of race, gender, age or another target.
    average : sequence of str
        The datasets that are averaged, each counting once; default: all.
    out : str or Path, optional
        Directory to write; default: nothing is kept.
    overwrite : bool
        Replace that directory.

    Returns
    -------
    CrossDatasetTables

    Raises
    ------
    SpecError
        A run of another task, of several models, or given twice; on one dataset
        audits with weights and without.
    OutputError
        The directory exists, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from isolux.api.audit import audit
    >>> faces = pl.DataFrame({
    ...     "file": [f"{k}.jpg" for k in range(200)], "age": "20-29", "gender": ["Male", "Female"]
    ...     * 100, "race": ["White"] * 100 + ["Black"] * 100})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     faces.write_csv(Path(folder) / "labels.csv")
    ...     answers = faces.select(id="file", label=pl.lit("Male"), model=pl.lit("net"))
    ...     answers.write_csv(Path(folder) / "answers.csv")
    ...     run = audit(f"fairface:{folder}/labels.csv", predictions=f"{folder}/answers.csv",
    ...                 target="gender", by="race", replicates=200).run
    >>> across({"A": run, "B": run}).values.filter(dataset="Average", column="White")["value"][0]
    0.5
    """
    runs_by_dataset = load_runs_by_name(runs)
    if not any(runs_by_dataset.values()):
        raise SpecError("there is no run to lay out", expected="DATASET=RUN", found="none")
    paper = registry.load("papers", "fairface")
    values = paper.measure_accuracy_across_datasets(runs_by_dataset, average)
    notes = tuple(
        dict.fromkeys(
            f"{name}: {text}"
            for name, dataset_runs in runs_by_dataset.items()
            for run in dataset_runs
            for text in run.record.get("warnings") or ()
        )
    )
    notes = (
        *_caution_on_duplicates(runs_by_dataset),
        *_note_weighted_datasets(runs_by_dataset),
        *notes,
        *_note_incomplete_models(values, tuple(average) or tuple(runs_by_dataset)),
    )
    tables = paper.build_accuracy_tables_by_caption(values)
    folder = None
    if out is not None:
        folder = _write_tables(
            Path(out), values, tables, notes, _build_record(runs_by_dataset, average), overwrite
        )
    return CrossDatasetTables(values, tables, notes, folder)


def _caution_on_duplicates(runs_by_dataset: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Caution on datasets with the same run: their average would look too precise."""
    for earlier_name, name in find_duplicate_runs(runs_by_dataset):
        if name != earlier_name:
            yield Caution(
                f"{earlier_name} and {name} contain the same numbers: one run is used for two"
                " datasets, "
                "and averages over them look more certain than they are."
            )


def _note_weighted_datasets(runs_by_dataset: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Note on which datasets people are weighted; refuse a mixture on one dataset."""
    by_weight = {
        name: {is_weighted(run.record) for run in dataset_runs}
        for name, dataset_runs in runs_by_dataset.items()
    }
    mixed_names = [
        name for name, is_weighted_values in by_weight.items() if len(is_weighted_values) > 1
    ]
    if mixed_names:
        raise SpecError(
            f"on {mixed_names[0]} people count by their weights in one audit and not in another",
            expected="the same weights for every model on a dataset",
            found="audits with --weight or --population, and audits without",
            where=mixed_names[0],
        )
    weighted_names = [
        name for name, is_weighted_values in by_weight.items() if True in is_weighted_values
    ]
    unweighted_names = [name for name in by_weight if name not in weighted_names]
    if weighted_names:
        suffix = (
            f"; on {', '.join(unweighted_names)} everybody counts once" if unweighted_names else ""
        )
        names = ", ".join(weighted_names)
        yield f"On {names} people count by their weights, as in the audits{suffix}."


def _note_incomplete_models(values: pl.DataFrame, datasets: Sequence[str]) -> Iterator[str]:
    """Note models that lack a run on some of the averaged datasets."""
    for (head, model), model_rows in values.group_by(["head", "model"], maintain_order=True):
        present = set(model_rows["dataset"])
        missing = [name for name in datasets if name not in present]
        if missing and len(missing) < len(datasets) and len(datasets) > 1:
            yield f"{model} is in no average of {head}: it has no run on {', '.join(missing)}."


def _build_record(runs: Mapping[str, Sequence[Run]], average: Sequence[str]) -> dict[str, Any]:
    inputs = {
        name: [run.record.get("inputs") for run in dataset_runs]
        for name, dataset_runs in runs.items()
    }
    return {"inputs": inputs, "average": list(average) or list(runs)}


def _write_tables(
    out: Path,
    values: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    notes: Sequence[str],
    record: Mapping[str, Any],
    overwrite: bool,
) -> Path:
    with staged_directory(
        out, overwrite=overwrite, marks=(_MARK,), folder_kind="table of models across datasets"
    ) as stage:
        write_parquet(stage / "values.parquet", values)
        write_text(stage / "values.csv", to_safe_csv(values))
        for caption, table in tables.items():
            name = caption.partition(":")[0].lower().replace(" ", "_")
            write_text(stage / f"{name}.csv", to_safe_csv(table))
            rounded_table = table.with_columns(pl.selectors.float().round(3))
            write_text(stage / f"{name}.tex", format_latex_table(rounded_table, caption))
        full_record = {**record, "warnings": list(notes), "captions": list(tables)}
        write_text(stage / _MARK, json.dumps(full_record, indent=1, default=str) + "\n")
    return out.expanduser().resolve()
