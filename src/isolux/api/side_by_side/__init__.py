"""Any number of models on the same people: one table with models as columns, and every change.

One model of several runs may stand alone: its values and gaps, without changes. Runs of one model
with several seeds count as one model: its value is their mean, and its interval includes the
variance between seeds and that of sampling people. Each two models are compared paired, as
``isolux.compare`` compares two; p-values are over all pairs of models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from isolux.api._tables_from_memory import (
    RunSource,
    find_duplicate_runs,
    is_run_source,
    load_runs_by_name,
    run_of,
)
from isolux.api.compare import requested_metrics
from isolux.api.compare.notes import note_differences_of_many, order_models, order_runs
from isolux.api.compare.person_matching import single_model_name
from isolux.api.side_by_side.changes import compare_pairs
from isolux.api.side_by_side.gaps import build_model_gaps
from isolux.api.side_by_side.model_descriptions import (
    build_model_table,
    read_model_descriptions,
    stack_runs,
)
from isolux.api.side_by_side.seeds import ModelRuns, build_model_values
from isolux.core.containers import Run
from isolux.core.counts import refuse_count_tables
from isolux.core.errors import SpecError
from isolux.core.notes import Caution, split_cautions_from_notes
from isolux.core.spec import read_recorded_spec
from isolux.core.survey_sample import is_survey_sample
from isolux.disparity.class_rankings import rank_classes_by_largest_gap
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings, read_references
from isolux.io.atomic import staged_directory, write_parquet, write_text
from isolux.io.csv_text import to_safe_csv
from isolux.io.ids import IdFrom
from isolux.people.withdrawal import remove_withdrawn_from_runs
from isolux.people.withdrawal_lists import WithdrawnList, read_withdrawn_list
from isolux.report.side_by_side import (
    format_latex_table,
    pivot_values_by_model,
    write_side_by_side_page,
)

_MIN_RUNS = 2


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Several models held against each other.

    Parameters
    ----------
    values : polars.DataFrame
        A row for each model, metric and group: value, interval, how many runs, and the standard
        deviation between them (null of one run).
    changes : polars.DataFrame
        Table of comparisons of each two models, ``model_b`` less ``model_a``: of groups
        (``model_difference``) and of gaps (``gap_change``), with ``word``: higher, lower,
        grew, shrank, or not shown; ``next``: whether the two stand side by side in the order given.
    ranks : polars.DataFrame
        Classes by disparity: a rank and a gap for each model.
    gaps : polars.DataFrame
        Of each model of several runs: the gap of each two groups (with a reference, of each group
        and it), the mean over runs with its interval, and the standard deviation between runs.
    record : mapping
        Models, their runs, settings, warnings and notes.
    models : polars.DataFrame, optional
        Each model's training (paradigm, data, images, parameters) beside its first metric.
    """

    values: pl.DataFrame
    changes: pl.DataFrame
    ranks: pl.DataFrame
    gaps: pl.DataFrame
    record: Mapping[str, Any]
    models: pl.DataFrame | None = None

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write a folder with the page, and each table as Parquet, CSV and LaTeX; return the page.

        Raises
        ------
        OutputError
            When the folder exists and ``overwrite`` is not set, or cannot be written.
        """
        tables = {
            "values": self.values,
            "changes": self.changes,
            "ranks": self.ranks,
            "gaps": self.gaps,
        }
        if self.models is not None:
            tables["models"] = self.models
        return write_side_by_side(tables, self.record, out, overwrite=overwrite)


def side_by_side(
    runs: Mapping[str, RunSource | Sequence[RunSource]] | Sequence[RunSource],
    *,
    id_from: IdFrom | None = None,
    allow_disagreement: float = 0.0,
    models: str | Path | Mapping[str, Any] | None = None,
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
) -> SideBySide:
    """Hold any number of models that were audited on the same people against each other.

    Parameters
    ----------
    runs : sequence of runs, or mapping of str to a run or a list of runs
        Finished audits, in the order to be read. A name with a list is one model that was trained
        with several seeds; it may be the only one. The first run's settings and attributes are
        used for all.
    id_from : {"column", "basename", "stem"}, optional
        The part of the ids by which runs name people; default: the whole id.
    allow_disagreement : float
        Share of people whose truth or group may differ between runs, 0 to 1; the first run's are
        used.
    models : str, Path or mapping, optional
        How each model was trained: a YAML, JSON or CSV file of its ``paradigm``, ``data``,
        ``images`` and ``parameters``, by the models' names; they stand beside their numbers.
    withdrawn : str or Path, optional
        List of people who withdrew: they are in no number, of no model. Whoever had withdrawn when
        one of the runs was made is in none anyway.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.

    Returns
    -------
    SideBySide
        On the people whom all runs judged.

    Raises
    ------
    SpecError
        Fewer than two runs; two of one name; runs of different tasks or of counts; weights in one
        run and none in another; an id of ``withdrawn`` that names no one.
    JoinError
        Runs without a person in common, or that do not agree on them.

    Examples
    --------
    >>> from isolux.api.audit import audit
    >>> who = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...                     "light": ["day", "night"] * 200})
    >>> scored = lambda name, v: who.select("unit_id", model=pl.lit(name), value=pl.Series(v * 100))
    >>> made = [audit(scored(name, v), who, by="light", replicates=200) for name, v in (
    ...     ("a", [1.0, 1.0, 1.0, 0.0]), ("b", [1.0, 1.0, 0.0, 1.0]), ("c", [1.0, 1.0, 1.0, 1.0]))]
    >>> side_by_side(made).values.filter(group="night").select("model", "value").rows()
    [('a', 0.5), ('b', 1.0), ('c', 1.0)]
    """
    descriptions = None if models is None else read_model_descriptions(models)
    runs_by_model = _load_runs_by_model(runs)
    if withdrawn is not None:
        runs_by_model = _drop_withdrawn(
            runs_by_model, read_withdrawn_list(withdrawn), allow_unmatched=allow_unmatched
        )
    all_runs = [run for model_runs in runs_by_model.values() for run in model_runs]
    for run in all_runs:
        refuse_count_tables(run.evidence, "a comparison of models", "audits of the same people")
    _refuse_other_tasks(all_runs)
    spec = read_recorded_spec(all_runs[0].record)
    seed_labels = ModelRuns(
        {
            name: tuple(f"{name} ({i + 1})" for i in range(len(model_runs)))
            if len(model_runs) > 1
            else (name,)
            for name, model_runs in runs_by_model.items()
        }
    )
    scores, notes = stack_runs(all_runs, seed_labels.labels, spec, id_from, allow_disagreement)
    ordered_scores = order_models(scores, [seed_labels.labels[k] for k in order_runs(all_runs)])
    members = build_membership(
        all_runs[0].attributes,
        spec.groups.by,
        read_groupings(spec.groups, all_runs[0].attributes),
        units=ordered_scores.evaluated_units(),
    )
    estimates = measure_groups(ordered_scores, members, spec.statistics)
    values = build_model_values(estimates, seed_labels, spec.statistics.level)
    reference_groups = read_references(spec.groups, spec.disparity.reference)
    metric_names = requested_metrics(spec, all_runs[0])
    changes = compare_pairs(estimates, seed_labels, spec.comparing, reference_groups, metric_names)
    by_label = dict(zip(chain.from_iterable(seed_labels.runs.values()), all_runs, strict=True))
    difference_notes = note_differences_of_many(by_label)
    all_notes = [
        *notes,
        *scores.notes,
        *difference_notes,
        *_note_seeds(seed_labels),
        *_collect_warnings(runs_by_model),
    ]
    warnings, plain_notes = split_cautions_from_notes(all_notes)
    first = all_runs[0].record
    record = {
        **{k: first.get(k) for k in ("isolux", "dataset", "task", "versions")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": spec.flat(),
        "models": {name: len(model_runs) for name, model_runs in runs_by_model.items()},
        "level": spec.statistics.level,
        "warnings": warnings,
        "notes": plain_notes,
        "units": len(scores.evaluated_units()),
        **({"sample": first["sample"]} if is_survey_sample(first) else {}),
    }
    described = None
    if descriptions is not None:
        described = build_model_table(
            descriptions,
            values,
            {name: len(model_runs) for name, model_runs in runs_by_model.items()},
        )
    gaps = build_model_gaps(estimates, seed_labels, spec.statistics.level, reference_groups)
    ranks = rank_classes_by_gap(values, list(runs_by_model))
    return SideBySide(values, changes, ranks, gaps, record, described)


def _load_runs_by_model(
    runs: Mapping[str, RunSource | Sequence[RunSource]] | Sequence[RunSource],
) -> dict[str, list[Run]]:
    """Load the runs of each model by name."""
    if isinstance(runs, Mapping):
        runs_by_model = load_runs_by_name(runs)
    else:
        runs_by_model = {}
        for source in (runs,) if is_run_source(runs) else runs:
            run = run_of(source)
            name = single_model_name(run)
            if name in runs_by_model:
                raise SpecError(
                    f"two runs are of the model {name!r}",
                    expected="NAME=RUN,RUN for runs of one model with several seeds, "
                    "NAME=RUN and OTHER=RUN for two models",
                    found=name,
                )
            runs_by_model[name] = [run]
    n_runs = sum(map(len, runs_by_model.values()))
    if n_runs < _MIN_RUNS or not all(runs_by_model.values()):
        raise SpecError(
            "there are no two runs to compare",
            expected="runs of two models or more, or NAME=RUN,RUN for the seeds of one",
            found=", ".join(runs_by_model) or "none",
        )
    _refuse_duplicate_runs(runs_by_model)
    return runs_by_model


def _refuse_duplicate_runs(runs_by_model: Mapping[str, Sequence[Run]]) -> None:
    """Refuse a run given twice: it would agree with itself."""
    for earlier, name in find_duplicate_runs(runs_by_model):
        raise SpecError(
            "one run is given twice",
            expected="a separate run for each seed and model",
            found=f"the same files and numbers as {earlier} and as {name}",
        )


def _drop_withdrawn(
    runs_by_model: Mapping[str, Sequence[Run]],
    withdrawn_list: WithdrawnList,
    *,
    allow_unmatched: bool,
) -> dict[str, list[Run]]:
    """Drop withdrawn people from every run of every model."""
    all_runs = [run for model_runs in runs_by_model.values() for run in model_runs]
    remaining_runs = iter(
        remove_withdrawn_from_runs(all_runs, withdrawn_list, allow_unmatched=allow_unmatched)
    )
    return {
        name: [next(remaining_runs) for _ in model_runs]
        for name, model_runs in runs_by_model.items()
    }


def _refuse_other_tasks(runs: Sequence[Run]) -> None:
    tasks = list(dict.fromkeys(str(run.record.get("task")) for run in runs))
    if len(tasks) > 1:
        raise SpecError(
            "the runs are of different tasks",
            expected="models on one task",
            found=" and ".join(tasks),
        )


def _note_seeds(models: ModelRuns) -> list[str]:
    n_runs_by_model = {name: len(labels) for name, labels in models.runs.items() if len(labels) > 1}
    single_run_models = [name for name, labels in models.runs.items() if len(labels) == 1]
    if not n_runs_by_model:
        return []
    counts_text = ", ".join(f"{name} ({n} runs)" for name, n in n_runs_by_model.items())
    notes = [
        (
            "Of several runs the value is the mean, and the interval holds how seeds differ:"
            f" {counts_text}."
        )
    ]
    if single_run_models:
        names_text = ", ".join(single_run_models)
        notes.append(
            Caution(
                f"One run alone of {names_text}: how another seed would do is not in its"
                " intervals, "
                "and models of several runs look less sure beside it."
            )
        )
    return notes


def _collect_warnings(runs_by_model: Mapping[str, Sequence[Run]]) -> list[str]:
    cautions = [
        Caution(f"{name}: {text}")
        for name, model_runs in runs_by_model.items()
        for run in model_runs
        for text in run.record.get("warnings") or ()
    ]
    return list(dict.fromkeys(cautions))


# The folder of several models side by side: a page, and each table as Parquet, CSV and LaTeX.

_RECORD_FILE = "side_by_side.json"
_CAPTION = "Value and interval of each group under each model; fractions in percent."


def write_side_by_side(
    tables: Mapping[str, pl.DataFrame],
    record: Mapping[str, Any],
    out: str | Path,
    *,
    overwrite: bool,
) -> Path:
    """Write the folder, whole or not at all, and return the page's path."""
    staging_options = {
        "overwrite": overwrite,
        "marks": (_RECORD_FILE,),
        "folder_kind": "comparison of models",
    }
    with staged_directory(out, **staging_options) as stage:  # type: ignore[arg-type]
        for name, table in tables.items():
            write_parquet(stage / f"{name}.parquet", table)
            nested_columns = [
                c for c, column_type in table.schema.items() if column_type == pl.List(pl.String)
            ]
            write_text(stage / f"{name}.csv", to_safe_csv(table.drop(nested_columns)))
        models = list(record["models"])
        wide_table = pivot_values_by_model(tables["values"], models)
        write_text(stage / "values.tex", format_latex_table(wide_table, _CAPTION))
        if tables["ranks"].height:
            ranks = tables["ranks"].with_columns(pl.selectors.float().round(4))
            write_text(stage / "ranks.tex", format_latex_table(ranks, "Classes by disparity."))
        if "models" in tables:
            training_table = tables["models"].with_columns(pl.selectors.float().round(4))
            write_text(
                stage / "models.tex",
                format_latex_table(training_table, "Models and their training."),
            )
        write_text(stage / _RECORD_FILE, json.dumps(dict(record), indent=1, default=str) + "\n")
        write_side_by_side_page(tables, record, stage / "report.html")
    return Path(out) / "report.html"


# Classes by disparity, all models side by side (FACET, Tables 11 and 12, for any number).

_CLASS_KEY = ["metric", "threshold", "attribute", "label"]


def rank_classes_by_gap(values: pl.DataFrame, models: Sequence[str]) -> pl.DataFrame:
    """Rank classes by their largest gap under each model; rank 1 is the largest."""
    ranks: pl.DataFrame | None = None
    for name in models:
        rankings = rank_classes_by_largest_gap(values, (name, name))
        model_ranks = rankings.select(
            *_CLASS_KEY,
            pl.col("rank_a").cast(pl.Int64).alias(f"rank: {name}"),
            pl.col("gap_a").alias(f"gap: {name}"),
        )
        ranks = (
            model_ranks
            if ranks is None
            else ranks.join(model_ranks, on=_CLASS_KEY, how="full", coalesce=True, nulls_equal=True)
        )
    assert ranks is not None  # noqa: S101 - there is a model
    best_rank = pl.min_horizontal(pl.col("^rank: .*$"))
    return ranks.sort("metric", "threshold", "attribute", best_rank, "label", nulls_last=True)
