"""Conversion of in-memory inputs (frames, runs, paths) into the project's tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import polars as pl

from isolux.core import registry
from isolux.core.containers import Dataset, Run, Scores
from isolux.core.errors import (
    IsoluxError,
    RunError,
    SpecError,
    TableError,
    UnknownNameError,
    format_columns,
)
from isolux.core.info import DatasetInfo, Metric, Reference, TaskInfo
from isolux.core.inputs import IN_MEMORY
from isolux.core.progress import report_step
from isolux.core.spec import split_intersection
from isolux.core.tables import ATTRIBUTES, INSTANCES, SCORES, check, to_polars
from isolux.io import run_directory
from isolux.io.cell_parsing import drop_sign_of_zero
from isolux.io.run_changes import refuse_changed

_OWN_DATA = Reference("own-data", "The auditor's own table; nothing has been published on it.")


def to_dataset(attributes: Dataset | object) -> Dataset:
    """Take a dataset, the long table ``attributes`` or a wide frame with ``unit_id``."""
    if isinstance(attributes, Dataset):
        return attributes
    frame = to_polars(attributes)
    if {"attribute", "value"} <= set(frame.columns):
        long_table = (
            frame
            if "unit_kind" in frame.columns
            else frame.with_columns(unit_kind=pl.lit("instance"))
        )
    else:
        long_table = _melt_attributes(frame)
    checked_rows = check(long_table.with_columns(pl.col("unit_id").cast(pl.String)), ATTRIBUTES)
    units = checked_rows.select(instance_id="unit_id", image_id="unit_id").unique(
        maintain_order=True
    )
    dataset_info = DatasetInfo(
        title="Own table",
        summary="A table given in memory.",
        references=(_OWN_DATA,),
        licence="the auditor's own",
    )
    return Dataset(IN_MEMORY, dataset_info, INSTANCES.conform(units), checked_rows)


def select_attribute_columns(
    scores: object, by: str | Sequence[str], extra_columns: Sequence[str] = ()
) -> pl.DataFrame:
    """Select the attributes to group by, and further columns, from the table of scores."""
    if isinstance(scores, Scores):
        raise SpecError(
            "nothing says who is who",
            expected="isolux.audit(scores, people, by=…), with a dataset or a frame of attributes",
            found="scores alone",
        )
    frame = to_polars(scores)
    entries = (by,) if isinstance(by, str) else by
    attributes = [name for entry in entries for name in split_intersection(entry)]
    names = list(dict.fromkeys([*attributes, *extra_columns]))
    if not {"unit_id", "value"} & set(frame.columns):
        raise SpecError(
            "this table contains no scores, and nothing says where its answers are",
            expected="isolux.audit(table, by=…, target=…, prediction_column=…), which name its"
            " columns; or scores in the columns unit_id and value",
            found=format_columns(frame.columns),
        )
    for name in ("unit_id", *names):
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where="scores")
    return frame.select("unit_id", *names).unique(maintain_order=True)


def _melt_attributes(frame: pl.DataFrame) -> pl.DataFrame:
    if "unit_id" not in frame.columns:
        raise UnknownNameError("column", "unit_id", frame.columns, where="attributes")
    names = [c for c in frame.columns if c != "unit_id"]
    long_tables = []
    for name in names:
        column = frame[name]
        text = drop_sign_of_zero(pl.col(name)) if column.dtype.is_float() else pl.col(name)
        number = column.cast(pl.Float64) if column.dtype.is_numeric() else None
        long_table = frame.select(
            "unit_id",
            unit_kind=pl.lit("instance"),
            attribute=pl.lit(name),
            value=pl.col(name).list.eval(pl.element().cast(pl.String))
            if isinstance(column.dtype, pl.List)
            else text.cast(pl.String),
        ).with_columns(number=number if number is not None else pl.lit(None, dtype=pl.Float64))
        long_tables.append(
            long_table.explode("value") if isinstance(column.dtype, pl.List) else long_table
        )
    return pl.concat(long_tables) if long_tables else ATTRIBUTES.empty()


def to_scores(scores: Scores | object) -> Scores:
    """Convert a task's scores, or any frame with ``unit_id`` and ``value``."""
    if isinstance(scores, Scores):
        return replace(scores, units=check(scores.units, SCORES, source="scores"))
    frame = to_polars(scores)
    for name in ("unit_id", "value"):
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where="scores")
    default_values = {"model": "model", "task": "own", "metric": "score", "unit_kind": "instance"}
    missing = {k: pl.lit(v) for k, v in default_values.items() if k not in frame.columns}
    frame = frame.with_columns(**missing)
    text = ["unit_id", *(["cluster_id"] if "cluster_id" in frame.columns else [])]
    frame = frame.with_columns(pl.col(text).cast(pl.String), pl.col("value").cast(pl.Float64))
    units = check(SCORES.conform(frame), SCORES, source="scores")
    if units["value"].drop_nulls().is_empty() and units.height:
        raise TableError("nobody was scored", expected="a value for somebody", where="scores")
    return Scores(units, _build_task_info(units))


def add_null_scores_of_unscored(scores: Scores, people: Dataset) -> Scores:
    """Add a null score of each metric for people with attributes and without any score."""
    attributes = people.attributes.filter(pl.col("unit_kind") == "instance")
    absent = attributes.select("unit_id").unique(maintain_order=True)
    absent = absent.join(scores.units, on="unit_id", how="anti")
    measure = ["model", "task", "metric", "label", "threshold", "unit_kind"]
    rows = scores.units.select(measure).unique(maintain_order=True).join(absent, how="cross")
    return replace(scores, units=pl.concat([scores.units, SCORES.conform(rows)]))


def _build_task_info(units: pl.DataFrame) -> TaskInfo:
    declared_metrics: dict[str, Metric] = {}
    for task in units["task"].unique().to_list():
        if task in registry.names("tasks"):
            declared_metrics |= {m.name: m for m in registry.task_info(task).metrics}
    metrics = []
    for name in units["metric"].unique(maintain_order=True).to_list():
        scores = units.filter(pl.col("metric") == name)["value"].drop_nulls()
        is_fraction = bool(((scores >= 0) & (scores <= 1)).all())
        default_metric = Metric(
            name=name,
            title=name.replace("_", " ").capitalize(),
            definition="The mean of the scores that were given.",
            direction="higher",
            low=0.0 if is_fraction else None,
            high=1.0 if is_fraction else None,
            unit="fraction" if is_fraction else "",
        )
        metrics.append(declared_metrics.get(name, default_metric))
    return TaskInfo(
        title="Given scores",
        summary="Scores that were made elsewhere.",
        references=(_OWN_DATA,),
        metrics=tuple(metrics),
        defaults=tuple(m.name for m in metrics),
    )


class RunHolder(Protocol):
    """An object with a finished run, such as an audit or a comparison."""

    @property
    def run(self) -> Run:
        """The finished run."""
        ...


RunSource = Run | RunHolder | str | Path


def run_or_none(source: object) -> Run | None:
    """Return the run that an object holds or is; None for anything else, such as a path."""
    run: Any = source if isinstance(source, Run) else getattr(source, "run", None)
    return run if isinstance(run, Run) else None


def is_run_source(source: object) -> TypeGuard[RunSource]:
    """Return whether the input is one run, not a list of runs."""
    return isinstance(source, str | os.PathLike) or run_or_none(source) is not None


def run_of(source: object) -> Run:
    """Take a run from memory, or read its directory.

    Examples
    --------
    >>> run_of(3)
    Traceback (most recent call last):
    ...
    isolux.core.errors.SpecError: this is not a run
      expected: an audit, a run or its directory
      found: int
      what to do: isolux.audit makes one of a table in memory
    """
    run_in_memory = run_or_none(source)
    if run_in_memory is not None:
        return run_in_memory
    if isinstance(source, str | os.PathLike):
        return run_directory.load_run(Path(source))
    raise SpecError(
        "this is not a run",
        expected="an audit, a run or its directory",
        found=type(source).__name__,
        hint="isolux.audit makes one of a table in memory",
    )


def find_duplicate_runs(runs_by_name: Mapping[str, Sequence[Run]]) -> Iterator[tuple[str, str]]:
    """Find duplicate runs: the same input files and the same group metrics."""
    named_runs = [(name, run) for name, runs in runs_by_name.items() for run in runs]
    for k, (name, run) in enumerate(named_runs):
        for earlier_name, earlier in named_runs[:k]:
            files = run.record.get("inputs")
            has_same_inputs = bool(files) and files == earlier.record.get("inputs")
            if run is earlier or (
                has_same_inputs and run.group_metrics.equals(earlier.group_metrics)
            ):
                yield earlier_name, name


def write_with_report(
    run: Run, out: str | Path, write: Callable[[Run, Path], object], *, overwrite: bool
) -> Path:
    """Write a run directory with its ``report.html``, all or nothing; return the report's path."""
    run_dir = run_directory.save_run(
        run, out, overwrite=overwrite, extra=lambda folder: write(run, folder / "report.html")
    )
    return run_dir / "report.html"


def load_runs_by_name(
    sources: Mapping[str, RunSource | Sequence[RunSource]],
) -> dict[str, list[Run]]:
    """Load the run or runs of each name."""
    runs: dict[str, list[Run]] = {}
    for name, source in sources.items():
        run_sources = [source] if is_run_source(source) else list(source)  # type: ignore[arg-type]
        runs[str(name)] = [run_of(run_source) for run_source in run_sources]
    return runs


def read_unchanged_run(run: str | Path, hint: str, *, description: str = "the run") -> Run:
    """Read a run's directory, if nothing in it was changed."""
    report_step(f"reading {description}")
    with reraise_as_run_error(str(run)):
        refuse_changed(run, description=description, hint=hint)
        return run_directory.load_run(run, on_change="told")


@contextmanager
def reraise_as_run_error(source: str) -> Iterator[None]:
    """Re-raise any isolux error inside the block as a ``RunError``."""
    try:
        yield
    except RunError:
        raise
    except IsoluxError as error:
        raise RunError(
            error.problem,
            expected=error.expected,
            found=error.found,
            where=error.where or source,
            hint=error.hint,
        ) from error
