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

from isolux.io.atomic import staged_directory, write_parquet, write_text
from isolux.io.csv_text import csv_text
from isolux.report.side_by_side import latex_table
from isolux.verbs._in_memory import RunSource, given_twice, runs_by_name
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import is_weighted
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

_MARK = "across.json"


@dataclass(frozen=True, slots=True)
class Across:
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
) -> Across:
    """Lay models' accuracy on several datasets out as FairFace's Tables 2, 3, 5 and 7.

    Parameters
    ----------
    runs : mapping of str to runs
        Each dataset's finished audits, of classification of race, gender or age.
    average : sequence of str
        The datasets that are averaged, each counting once; default: all.
    out : str or Path, optional
        Directory to write; default: nothing is kept.
    overwrite : bool
        Replace that directory.

    Returns
    -------
    Across

    Raises
    ------
    SpecError
        A run of another task or question, of several models, or given twice; on one dataset
        audits with weights and without.
    OutputError
        The directory exists, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from isolux.verbs.audit import audit
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
    read = runs_by_name(runs)
    if not any(read.values()):
        raise SpecError("there is no run to lay out", expected="DATASET=RUN", found="none")
    paper = registry.load("papers", "fairface")
    values = paper.across(read, average)
    told = tuple(
        dict.fromkeys(
            f"{name}: {text}"
            for name, own in read.items()
            for run in own
            for text in run.record.get("warnings") or ()
        )
    )
    told = (
        *_twice(read),
        *_weighted(read),
        *told,
        *_not_averaged(values, tuple(average) or tuple(read)),
    )
    tables = paper.laid_out(values)
    folder = None
    if out is not None:
        folder = _write(Path(out), values, tables, told, _record(read, average), overwrite)
    return Across(values, tables, told, folder)


def _twice(read: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Say which datasets are one: an average of a run with itself looks surer than it is."""
    for other, name in given_twice(read):
        if name != other:
            yield Caution(
                f"{other} and {name} contain the same numbers: one run is used for two datasets, "
                "and averages over them look more certain than they are."
            )


def _weighted(read: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Say on which datasets people count by their weights, and on which one and all."""
    by_weight = {name: {is_weighted(run.record) for run in own} for name, own in read.items()}
    mixed = [name for name, ways in by_weight.items() if len(ways) > 1]
    if mixed:
        raise SpecError(
            f"on {mixed[0]} people count by their weights in one audit and not in another",
            expected="the same weights for every model on a dataset",
            found="audits with --weight or --population, and audits without",
            where=mixed[0],
        )
    some = [name for name, ways in by_weight.items() if True in ways]
    others = [name for name in by_weight if name not in some]
    if some:
        rest = f"; on {', '.join(others)} everybody counts once" if others else ""
        yield f"On {', '.join(some)} people count by their weights, as in the audits{rest}."


def _not_averaged(values: pl.DataFrame, datasets: Sequence[str]) -> Iterator[str]:
    """Say which models are on some of the datasets that are averaged, and not on others."""
    for (head, model), own in values.group_by(["head", "model"], maintain_order=True):
        there = set(own["dataset"])
        missing = [name for name in datasets if name not in there]
        if missing and len(missing) < len(datasets) and len(datasets) > 1:
            yield f"{model} is in no average of {head}: it has no run on {', '.join(missing)}."


def _record(runs: Mapping[str, Sequence[Run]], average: Sequence[str]) -> dict[str, Any]:
    said = {name: [run.record.get("inputs") for run in own] for name, own in runs.items()}
    return {"inputs": said, "average": list(average) or list(runs)}


def _write(
    out: Path,
    values: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    told: Sequence[str],
    record: Mapping[str, Any],
    overwrite: bool,
) -> Path:
    with staged_directory(
        out, overwrite=overwrite, marks=(_MARK,), what="table of models across datasets"
    ) as stage:
        write_parquet(stage / "values.parquet", values)
        write_text(stage / "values.csv", csv_text(values))
        for caption, table in tables.items():
            name = caption.partition(":")[0].lower().replace(" ", "_")
            write_text(stage / f"{name}.csv", csv_text(table))
            rounded = table.with_columns(pl.selectors.float().round(3))
            write_text(stage / f"{name}.tex", latex_table(rounded, caption))
        said = {**record, "warnings": list(told), "captions": list(tables)}
        write_text(stage / _MARK, json.dumps(said, indent=1, default=str) + "\n")
    return out.expanduser().resolve()
