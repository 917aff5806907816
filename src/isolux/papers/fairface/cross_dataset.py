"""Models on several datasets: Tables 2, 3, 5 and 7 from finished audits.

Each run is one model's answers to one question (race, gender, age) on one dataset, with the race,
gender and age of its people. Accuracy is taken over the paper's columns whatever groups the audit
had, with its intervals; sets are averaged as the paper averages its three (each counts once:
``(.733 + .866 + .846) / 3 = .815`` in Table 7). Read off the printed numbers where the text is
silent:

- of seven races, East and Southeast Asian are answers of their own in ``All`` and ``Non-White``; in
  ``Asian`` either answer is right for both;
- Table 3's races are Black, Asian and Indian alone (its footnote); its genders and ages are those
  of everyone who is not White;
- ages are groups of people in four ranges, and answers in nine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.core import registry
from isolux.core.containers import Run, Scores
from isolux.core.errors import SpecError
from isolux.core.spec import read_recorded_spec
from isolux.core.survey_sample import SAMPLE
from isolux.core.tables import ATTRIBUTES, SCORES
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from isolux.papers._layout import summarise_across_columns

HEADS = ("race", "gender", "age")
AVERAGE = "Average"

_FOUR_RACES = {
    "White": "White",
    "Black": "Black",
    "Indian": "Indian",
    "Asian": "Asian",
    "East Asian": "Asian",
    "Southeast Asian": "Asian",
}
_RACE_VALUES = {*_FOUR_RACES, "Latino_Hispanic", "Middle Eastern"}
_AGES = {
    "0-2": "0-9",
    "3-9": "0-9",
    "10-19": "10-29",
    "20-29": "10-29",
    "30-39": "30-49",
    "40-49": "30-49",
    "50-59": "50+",
    "60-69": "50+",
    "more than 70": "50+",
}
_RANGE_START_YEARS = (10, 30, 50)  # years with which the last three of the four ranges begin
_COLUMNS: dict[str, tuple[str | None, str | None]] = {
    "All": (None, None),
    "Female": ("gender", "Female"),
    "Male": ("gender", "Male"),
    "White": ("white", "White"),
    "Non-White": ("white", "Non-White"),
    "Black": ("race", "Black"),
    "Asian": ("four", "Asian"),
    "E Asian": ("race", "East Asian"),
    "SE Asian": ("race", "Southeast Asian"),
    "Latino": ("race", "Latino_Hispanic"),
    "Indian": ("race", "Indian"),
    "Mid-East": ("race", "Middle Eastern"),
    "0-9": ("ages", "0-9"),
    "10-29": ("ages", "10-29"),
    "30-49": ("ages", "30-49"),
    "50+": ("ages", "50+"),
}
_RACES = ("White", "Black", "E Asian", "SE Asian", "Latino", "Indian", "Mid-East")
_RANGES = ("0-9", "10-29", "30-49", "50+")
_SEVEN_RACE_COLUMNS = (
    "E Asian",
    "SE Asian",
    "Latino",
    "Mid-East",
)  # no class of a model of four races
_FOUR_RACES_LABEL = "four races"
_NON_WHITE_FOUR_RACES = "Non-White, four races"
_VALUES_SCHEMA = {
    "head": pl.String,
    "dataset": pl.String,
    "model": pl.String,
    "column": pl.String,
    "n": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "status": pl.String,
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class _DatasetAccuracy:
    """One run of a model on a dataset: its people, and whether each prediction is correct.

    ``head`` is the audit's target; ``asks_race``: its classes are races, whatever its name.
    """

    head: str
    model: str
    asks_race: bool
    coarse: bool
    scores: pl.DataFrame
    people: pl.DataFrame
    run: Run


def measure_accuracy_across_datasets(
    runs: Mapping[str, Sequence[Run]], averaged_datasets: Sequence[str] = ()
) -> pl.DataFrame:
    """Measure models' accuracy over the paper's columns on each dataset, and on their average."""
    if unknown := [name for name in averaged_datasets if name not in runs]:
        raise SpecError(
            f"there is no dataset {unknown[0]!r} to average",
            expected=", ".join(runs),
            found=unknown[0],
        )
    frames, seen_keys = [pl.DataFrame(schema=_VALUES_SCHEMA)], set()
    for dataset, dataset_runs in runs.items():
        for run in dataset_runs:
            accuracy = _read_accuracy_by_person(run, dataset)
            key = (dataset, accuracy.head, accuracy.model)
            if key in seen_keys:
                raise SpecError(
                    f"two runs are of {accuracy.model!r} asked for {accuracy.head} on {dataset}",
                    expected="one run of each model, question and dataset",
                    found="two",
                    hint="--model-name tells models apart in their audits",
                )
            seen_keys.add(key)
            frames.append(_measure_accuracy_of_columns(accuracy, dataset))
    values = pl.concat(frames)
    return pl.concat(
        [values, average_accuracy_over_datasets(values, tuple(averaged_datasets) or tuple(runs))]
    )


def _read_accuracy_by_person(run: Run, dataset: str) -> _DatasetAccuracy:
    spec = read_recorded_spec(run.record)
    predictions = run.evidence.get("classification")
    head = spec.task.settings.get("target")
    if predictions is None or not head:
        raise SpecError(
            "this run does not say who was answered right",
            expected="an audit of classification with --target, such as race, gender or age",
            found=f"task {run.record.get('task')}, target {head}",
            where=dataset,
        )
    models = predictions["model"].unique().to_list()
    if len(models) != 1:
        raise SpecError(
            "a run to lay beside others holds no single model",
            expected="one model in each run",
            found=", ".join(map(str, models)) or "none",
            where=dataset,
        )
    labels = (
        predictions.with_columns(truth=pl.col("truth").list.first())
        if (predictions.schema["truth"] == pl.List(pl.String))
        else predictions
    )
    correct = pl.col("correct").cast(pl.Float64)
    race_pair = [
        pl.col(c).replace_strict(_FOUR_RACES, default=None) for c in ("truth", "prediction")
    ]
    asks_race = set(labels["truth"].drop_nulls()) <= _RACE_VALUES
    has_four_races = asks_race and bool(
        (pl.concat([labels["truth"], labels["prediction"]]) == "Asian").any()
    )
    merged_correct = pl.when(race_pair[0].is_not_null() & correct.is_not_null()).then(
        (race_pair[0] == race_pair[1]).fill_null(value=False).cast(pl.Float64)
    )
    is_correct = pl.coalesce(merged_correct, correct) if has_four_races else correct
    rows = labels.select(
        "unit_id", "cluster_id", own=is_correct, merged=merged_correct if asks_race else correct
    )
    people = _list_people_by_paper_group(run.attributes)
    return _DatasetAccuracy(str(head), str(models[0]), asks_race, has_four_races, rows, people, run)


def _list_people_by_paper_group(attributes: pl.DataFrame) -> pl.DataFrame:
    """List the groups of the paper's columns: ``unit_id, attribute, value``, of one value each."""
    single_values = attributes.filter(pl.col("attribute").is_in(HEADS)).drop_nulls("value")
    single_values = single_values.unique(["unit_id", "attribute", "value"], maintain_order=True)
    single_values = single_values.filter(pl.len().over("unit_id", "attribute") == 1).select(
        "unit_kind", "unit_id", "attribute", "value"
    )
    race, age = single_values.filter(attribute="race"), single_values.filter(attribute="age")
    years = pl.col("value").cast(pl.Float64, strict=False)
    ranges = pl.sum_horizontal([years >= start for start in _RANGE_START_YEARS]).cast(pl.Int64)
    by_years = pl.when(years.is_not_null()).then(
        ranges.replace_strict(dict(enumerate(_RANGES)), default=None, return_dtype=pl.String)
    )
    group_value = pl.col("value")
    return pl.concat(
        [
            single_values.filter(pl.col("attribute") != "age"),
            race.with_columns(
                value=pl.when(group_value == "White")
                .then(group_value)
                .otherwise(pl.lit("Non-White")),
                attribute=pl.lit("white"),
            ),
            race.with_columns(
                group_value.replace_strict(_FOUR_RACES, default=None), attribute=pl.lit("four")
            ).drop_nulls("value"),
            age.with_columns(
                value=pl.coalesce(group_value.replace_strict(_AGES, default=None), by_years),
                attribute=pl.lit("ages"),
            ).drop_nulls("value"),
        ]
    )


def _measure_accuracy_of_columns(accuracy: _DatasetAccuracy, dataset: str) -> pl.DataFrame:
    """Measure one run's columns by the statistics of its own audit."""
    task_info = registry.task_info("classification")
    task_info = replace(
        task_info, metrics=tuple(m for m in task_info.metrics if m.name == "accuracy")
    )
    units = pl.concat(
        [
            accuracy.scores.select(
                "unit_id", "cluster_id", value=column, label=pl.lit(label, dtype=pl.String)
            )
            for column, label in (("own", None), ("merged", _FOUR_RACES_LABEL))
        ]
    )
    reason = pl.when(pl.col("value").is_null()).then(pl.lit("not scored"))
    units = units.with_columns(
        model=pl.lit(accuracy.model),
        task=pl.lit("classification"),
        metric=pl.lit("accuracy"),
        unit_kind=pl.lit("instance"),
        reason=reason,
    )
    sample = {name: accuracy.run.evidence[name] for name in {SAMPLE} & accuracy.run.evidence.keys()}
    scores = Scores(
        SCORES.conform(units), task_info, sample
    )  # people weigh what they do in the audit
    people = accuracy.people.join(units.select("unit_id").unique(), on="unit_id", how="semi")
    present_attributes = people["attribute"].unique(maintain_order=True).to_list()
    members = build_membership(
        ATTRIBUTES.conform(people), present_attributes, {}, units=scores.evaluated_units()
    )
    spec = read_recorded_spec(accuracy.run.record).statistics
    table = measure_groups(scores, members, spec).to_table()
    return _select_accuracy_of_columns(table, accuracy, dataset)


def _select_accuracy_of_columns(
    table: pl.DataFrame, accuracy: _DatasetAccuracy, dataset: str
) -> pl.DataFrame:
    requested = {**_COLUMNS, _NON_WHITE_FOUR_RACES: _COLUMNS["Non-White"]}
    rows = []
    for column, (attribute, group) in requested.items():
        has_no_class = accuracy.coarse and column in _SEVEN_RACE_COLUMNS
        uses_four_races = column in ("Asian", _NON_WHITE_FOUR_RACES) and accuracy.asks_race
        group_rows = table.filter(
            pl.col("attribute").eq_missing(pl.lit(attribute, dtype=pl.String)),
            pl.col("label").eq_missing(
                pl.lit(_FOUR_RACES_LABEL if uses_four_races else None, dtype=pl.String)
            ),
            pl.lit(group is None) | (pl.col("values").list.first() == pl.lit(group or "")),
        )
        start = (accuracy.head, dataset, accuracy.model, column)
        if has_no_class or not group_rows.height:
            reason = "the model has no such class" if has_no_class else "no such group"
            rows.append((*start, 0, None, None, None, "not scored", reason))
            continue
        cell = group_rows.row(0, named=True)
        rows.append(
            (
                *start,
                *(cell[name] for name in ("n_units", "value", "low", "high", "status", "reason")),
            )
        )
    return pl.DataFrame(rows, schema=_VALUES_SCHEMA, orient="row")


def average_accuracy_over_datasets(values: pl.DataFrame, datasets: Sequence[str]) -> pl.DataFrame:
    """Average datasets, each counting once; intervals by MOVER, as datasets share no one.

    The ends lie as far from the mean as the root of the summed squares of the parts' (Zou & Donner
    2008), over their number.

    Examples
    --------
    >>> one = {"head": "gender", "model": "m", "column": "All", "n": 100, "status": "ok"}
    >>> rows = pl.DataFrame([one | {"dataset": "A", "value": 0.5, "low": 0.375, "high": 0.625},
    ...                      one | {"dataset": "B", "value": 0.75, "low": 0.75, "high": 0.75}])
    >>> average = average_accuracy_over_datasets(rows.with_columns(reason=None), ("A", "B"))
    >>> average.select("value", "low", "n").row(0)
    (0.625, 0.5625, 200)
    """
    if len(datasets) < 2:
        return pl.DataFrame(schema=_VALUES_SCHEMA)
    k = len(datasets)
    averaged_rows = values.filter(pl.col("dataset").is_in(list(datasets)))
    lower_half_width = ((pl.col("value") - pl.col("low")) ** 2).sum().sqrt() / k
    upper_half_width = ((pl.col("high") - pl.col("value")) ** 2).sum().sqrt() / k
    has_all_values = pl.col("value").is_not_null().all()
    has_all_bounds = (pl.col("low").is_not_null() & pl.col("high").is_not_null()).all()
    averages = (
        averaged_rows.group_by("head", "model", "column", maintain_order=True)
        .agg(
            pl.col("dataset").n_unique().alias("sets"),
            pl.col("n").sum(),
            value=pl.when(has_all_values).then(pl.col("value").mean()),
            low=pl.when(has_all_values & has_all_bounds).then(
                pl.col("value").mean() - lower_half_width
            ),
            high=pl.when(has_all_values & has_all_bounds).then(
                pl.col("value").mean() + upper_half_width
            ),
        )
        .filter(sets=k)
    )
    return averages.select(
        "head",
        pl.lit(AVERAGE).alias("dataset"),
        "model",
        "column",
        "n",
        "value",
        "low",
        "high",
        status=pl.when(pl.col("value").is_null())
        .then(pl.lit("not scored"))
        .otherwise(pl.lit("ok")),
        reason=pl.when(pl.col("value").is_null()).then(pl.lit("not of every dataset")),
    ).cast(_VALUES_SCHEMA)  # type: ignore[arg-type]


def build_accuracy_tables_by_caption(values: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Lay values out as the paper's tables, by caption; accuracy, 0 to 1."""
    captions = {
        "Table 2: accuracy on White people, across datasets": "White",
        "Table 3: accuracy on people who are not White, across datasets": "Non-White",
    }
    tables = {
        caption: _pivot_column_by_dataset(values, column) for caption, column in captions.items()
    }
    tables["Table 7: accuracy by dataset and group"] = _pivot_accuracy_by_group(values)
    mean_and_sd = _summarise_gender_averages(values)
    if mean_and_sd.height:
        caption = "Table 5: mean and SD of the averages, perceived gender"
        tables[caption] = mean_and_sd
    return tables


def _pivot_column_by_dataset(values: pl.DataFrame, column: str) -> pl.DataFrame:
    """Lay one column out by question and dataset."""
    single_datasets = values.filter(pl.col("dataset") != AVERAGE)
    table = (
        single_datasets.select("model").unique(maintain_order=True).rename({"model": "trained_on"})
    )
    for heading, cells in _iterate_dataset_headings_and_rows(single_datasets, column):
        column_values = cells.select(trained_on="model", **{heading: "value"})
        table = table.join(column_values, on="trained_on", how="left", maintain_order="left")
    return table


def _iterate_dataset_headings_and_rows(
    single_datasets: pl.DataFrame, column: str
) -> Iterator[tuple[str, pl.DataFrame]]:
    for head in sorted(single_datasets["head"].unique(), key=_order_head):
        for dataset in single_datasets.filter(head=head)["dataset"].unique(maintain_order=True):
            dataset_rows = single_datasets.filter(head=head, dataset=dataset)
            lacks_white = dataset_rows.filter(column="White", reason="no such group").height > 0
            # Of questions other than race both columns are one.
            requested_column = _NON_WHITE_FOUR_RACES if column == "Non-White" else column
            yield (
                f"{head}_{dataset}{'*' if lacks_white else ''}",
                dataset_rows.filter(column="All" if lacks_white else requested_column),
            )


def _order_head(head: str) -> tuple[int, str]:
    """Order the paper's questions first, others by name."""
    return (HEADS.index(head) if head in HEADS else len(HEADS)), head


def _pivot_accuracy_by_group(values: pl.DataFrame) -> pl.DataFrame:
    paper_columns = values.filter(pl.col("column") != _NON_WHITE_FOUR_RACES)
    table = paper_columns.pivot(
        on="column", index=["head", "dataset", "model"], values="value", maintain_order=True
    )
    heads = sorted(table["head"].unique(), key=_order_head)
    sorting = pl.col("head").replace_strict({name: k for k, name in enumerate(heads)})
    return table.sort(sorting, maintain_order=True).rename({"model": "trained_on"})


def _summarise_gender_averages(values: pl.DataFrame) -> pl.DataFrame:
    """Give mean and SD of the averages over races and over ages, of the gender head."""
    averages = _pivot_accuracy_by_group(values.filter(head="gender", dataset=AVERAGE))
    if not averages.height:
        return pl.DataFrame()
    summary = averages.select(model="trained_on")
    for plural, columns in (("races", _RACES), ("ages", _RANGES)):
        group_summary = summarise_across_columns(averages, list(columns))
        has_all_groups = np.asarray(group_summary["n"].to_numpy() == len(columns))
        for name, key in (("mean", "mean"), ("sd", "sd")):
            cells = [
                v if w else None
                for v, w in zip(group_summary[key].to_list(), has_all_groups, strict=True)
            ]
            summary = summary.with_columns(
                pl.Series(f"{name}_across_{plural}", cells, dtype=pl.Float64)
            )
    return summary
