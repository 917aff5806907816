"""Any number of models on the same people: one table with models as columns, and every change.

Runs of one model with several seeds count as one model: its value is their mean, and its interval
holds the variance between seeds beside that between people. Each two models are compared paired,
as ``isolux.compare`` compares two; p-values are over all pairs of models.
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

from isolux.disparity.class_rankings import class_rankings
from isolux.groups.measure import measure_groups
from isolux.groups.membership import membership
from isolux.groups.settings import groupings, references
from isolux.io.atomic import staged_directory, write_parquet, write_text
from isolux.io.csv_text import csv_text
from isolux.io.ids import IdFrom
from isolux.people.withdrawal import runs_without
from isolux.people.withdrawn_lists import WithdrawnList, read_withdrawn
from isolux.report.side_by_side import latex_table, wide, write_page
from isolux.verbs._in_memory import RunSource, given_twice, is_run_source, run_of, runs_by_name
from isolux.verbs.compare import asked_metrics
from isolux.verbs.compare.joining import one_model
from isolux.verbs.compare.notes import in_one_order, laid_out, notes_on_many
from isolux.verbs.side_by_side.changes import changes_of_pairs
from isolux.verbs.side_by_side.described import described_models, read_descriptions, stacked
from isolux.verbs.side_by_side.seeds import Models, values_of_models
from isolux.vocabulary.containers import Run
from isolux.vocabulary.counts import refuse_counts
from isolux.vocabulary.drawn import is_drawn
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution, by_severity
from isolux.vocabulary.spec import recorded_spec

_TWO = 2


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
    record : mapping
        Models, their runs, settings, warnings and notes.
    models : polars.DataFrame, optional
        Each model's training (paradigm, data, images, parameters) beside its first metric.
    """

    values: pl.DataFrame
    changes: pl.DataFrame
    ranks: pl.DataFrame
    record: Mapping[str, Any]
    models: pl.DataFrame | None = None

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write a folder with the page, and each table as Parquet, CSV and LaTeX; return the page.

        Raises
        ------
        OutputError
            When the folder exists and ``overwrite`` is not set, or cannot be written.
        """
        tables = {"values": self.values, "changes": self.changes, "ranks": self.ranks}
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
        with several seeds. The first run's settings and attributes are used for all.
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
        Fewer than two models; two of one name; runs of different tasks or of counts; weights in one
        run and none in another; an id of ``withdrawn`` that names no one.
    JoinError
        Runs without a person in common, or that do not agree on them.

    Examples
    --------
    >>> from isolux.verbs.audit import audit
    >>> who = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...                     "light": ["day", "night"] * 200})
    >>> scored = lambda name, v: who.select("unit_id", model=pl.lit(name), value=pl.Series(v * 100))
    >>> made = [audit(scored(name, v), who, by="light", replicates=200) for name, v in (
    ...     ("a", [1.0, 1.0, 1.0, 0.0]), ("b", [1.0, 1.0, 0.0, 1.0]), ("c", [1.0, 1.0, 1.0, 1.0]))]
    >>> side_by_side(made).values.filter(group="night").select("model", "value").rows()
    [('a', 0.5), ('b', 1.0), ('c', 1.0)]
    """
    told = None if models is None else read_descriptions(models)
    named = _named(runs)
    if withdrawn is not None:
        named = _without(named, read_withdrawn(withdrawn), allow_unmatched=allow_unmatched)
    every = [run for own in named.values() for run in own]
    for run in every:
        refuse_counts(run.evidence, "a comparison of models", "audits of the same people")
    _refuse_other_tasks(every)
    spec = recorded_spec(every[0].record)
    held = Models(
        {
            name: tuple(f"{name} ({i + 1})" for i in range(len(own))) if len(own) > 1 else (name,)
            for name, own in named.items()
        }
    )
    scores, notes = stacked(every, held.labels, spec, id_from, allow_disagreement)
    measured = laid_out(scores, [held.labels[k] for k in in_one_order(every)])
    members = membership(
        every[0].attributes,
        spec.groups.by,
        groupings(spec.groups, every[0].attributes),
        units=measured.judged_units(),
    )
    estimates = measure_groups(measured, members, spec.statistics)
    values = values_of_models(estimates, held, spec.statistics.level)
    against = references(spec.groups, spec.disparity.reference)
    asked = asked_metrics(spec, every[0])
    changes = changes_of_pairs(estimates, held, spec.comparing, against, asked)
    by_label = dict(zip(chain.from_iterable(held.runs.values()), every, strict=True))
    differ = notes_on_many(by_label)
    said = [*notes, *scores.notes, *differ, *_on_seeds(held), *_warnings(named)]
    warnings, plain = by_severity(said)
    first = every[0].record
    record = {
        **{k: first.get(k) for k in ("isolux", "dataset", "task", "versions")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "spec": spec.flat(),
        "models": {name: len(own) for name, own in named.items()},
        "level": spec.statistics.level,
        "warnings": warnings,
        "notes": plain,
        "units": len(scores.judged_units()),
        **({"sample": first["sample"]} if is_drawn(first) else {}),
    }
    described = None
    if told is not None:
        described = described_models(told, values, {name: len(own) for name, own in named.items()})
    return SideBySide(values, changes, class_ranks(values, list(named)), record, described)


def _named(
    runs: Mapping[str, RunSource | Sequence[RunSource]] | Sequence[RunSource],
) -> dict[str, list[Run]]:
    """Give every model its name and its runs."""
    if isinstance(runs, Mapping):
        found = runs_by_name(runs)
    else:
        found = {}
        for source in (runs,) if is_run_source(runs) else runs:
            run = run_of(source)
            name = one_model(run)
            if name in found:
                raise SpecError(
                    f"two runs are of the model {name!r}",
                    expected="NAME=RUN,RUN for runs of one model with several seeds, "
                    "NAME=RUN and OTHER=RUN for two models",
                    found=name,
                )
            found[name] = [run]
    if len(found) < _TWO or not all(found.values()):
        raise SpecError(
            "there are no two models to compare",
            expected="runs of two models or more",
            found=", ".join(found) or "none",
        )
    _refuse_one_run_twice(found)
    return found


def _refuse_one_run_twice(found: Mapping[str, Sequence[Run]]) -> None:
    """Refuse a run that stands for two seeds or two models: it would agree with itself."""
    for earlier, name in given_twice(found):
        raise SpecError(
            "one run is given twice",
            expected="a separate run for each seed and model",
            found=f"the same files and numbers as {earlier} and as {name}",
        )


def _without(
    named: Mapping[str, Sequence[Run]], listed: WithdrawnList, *, allow_unmatched: bool
) -> dict[str, list[Run]]:
    """Take those who withdrew out of every run of every model."""
    every = [run for own in named.values() for run in own]
    kept = iter(runs_without(every, listed, allow_unmatched=allow_unmatched))
    return {name: [next(kept) for _ in own] for name, own in named.items()}


def _refuse_other_tasks(runs: Sequence[Run]) -> None:
    tasks = list(dict.fromkeys(str(run.record.get("task")) for run in runs))
    if len(tasks) > 1:
        raise SpecError(
            "the runs are of different tasks",
            expected="models on one task",
            found=" and ".join(tasks),
        )


def _on_seeds(models: Models) -> list[str]:
    several = {name: len(labels) for name, labels in models.runs.items() if len(labels) > 1}
    alone = [name for name, labels in models.runs.items() if len(labels) == 1]
    if not several:
        return []
    told = ", ".join(f"{name} ({n} runs)" for name, n in several.items())
    notes = [
        f"Of several runs the value is the mean, and the interval holds how seeds differ: {told}."
    ]
    if alone:
        named = ", ".join(alone)
        notes.append(
            Caution(
                f"One run alone of {named}: how another seed would do is not in its intervals, "
                "and models of several runs look less sure beside it."
            )
        )
    return notes


def _warnings(named: Mapping[str, Sequence[Run]]) -> list[str]:
    found = [
        Caution(f"{name}: {text}")
        for name, own in named.items()
        for run in own
        for text in run.record.get("warnings") or ()
    ]
    return list(dict.fromkeys(found))


# The folder of several models side by side: a page, and each table as Parquet, CSV and LaTeX.

_MARK = "side_by_side.json"
_CAPTION = "Value and interval of each group under each model; fractions in percent."


def write_side_by_side(
    tables: Mapping[str, pl.DataFrame],
    record: Mapping[str, Any],
    out: str | Path,
    *,
    overwrite: bool,
) -> Path:
    """Write the folder, whole or not at all, and return the page's path."""
    kept = {"overwrite": overwrite, "marks": (_MARK,), "what": "comparison of models"}
    with staged_directory(out, **kept) as stage:  # type: ignore[arg-type]
        for name, table in tables.items():
            write_parquet(stage / f"{name}.parquet", table)
            nested = [c for c, kind in table.schema.items() if kind == pl.List(pl.String)]
            write_text(stage / f"{name}.csv", csv_text(table.drop(nested)))
        models = list(record["models"])
        shown = wide(tables["values"], models)
        write_text(stage / "values.tex", latex_table(shown, _CAPTION))
        if tables["ranks"].height:
            ranks = tables["ranks"].with_columns(pl.selectors.float().round(4))
            write_text(stage / "ranks.tex", latex_table(ranks, "Classes by disparity."))
        if "models" in tables:
            trained = tables["models"].with_columns(pl.selectors.float().round(4))
            write_text(stage / "models.tex", latex_table(trained, "Models and their training."))
        write_text(stage / _MARK, json.dumps(dict(record), indent=1, default=str) + "\n")
        write_page(tables, record, stage / "report.html")
    return Path(out) / "report.html"


# Classes by disparity, all models side by side (FACET, Tables 11 and 12, for any number).

_KEYS = ["metric", "threshold", "attribute", "label"]


def class_ranks(values: pl.DataFrame, models: Sequence[str]) -> pl.DataFrame:
    """Rank classes by their largest gap under each model; rank 1 is the largest."""
    found: pl.DataFrame | None = None
    for name in models:
        both = class_rankings(values, (name, name))
        own = both.select(
            *_KEYS,
            pl.col("rank_a").cast(pl.Int64).alias(f"rank: {name}"),
            pl.col("gap_a").alias(f"gap: {name}"),
        )
        found = (
            own
            if found is None
            else found.join(own, on=_KEYS, how="full", coalesce=True, nulls_equal=True)
        )
    assert found is not None  # noqa: S101 - there are two models or more
    best = pl.min_horizontal(pl.col("^rank: .*$"))
    return found.sort("metric", "threshold", "attribute", best, "label", nulls_last=True)
