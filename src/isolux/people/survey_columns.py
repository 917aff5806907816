"""How people were sampled: the columns of ``--weight`` and ``--strata``, checked and attached.

They are read before ``--only`` leaves people out: a stratum has as many clusters as were drawn from
it, even if only some of them are audited.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.spec import Sample, format_setting_as_typed
from isolux.core.tables import INSTANCES

_MAX_LISTED = 5
_WEIGHT_RANGE = (1e-30, 1e30)
"""Of weights above 0: squares of sums of others leave the range of a float."""


def attach_survey_sample(
    dataset: Dataset, sample: Sample, other_column: str | None = None
) -> Dataset:
    """Attach weights, strata and population sizes of a survey sample to the dataset."""
    if not has_any_survey_setting(sample) and other_column is None:
        return dataset
    if other_column is not None:
        _refuse_two_way_population_size(sample, other_column)
    people = INSTANCES.conform(dataset.instances).select(
        "instance_id", cluster=pl.col("cluster_id").fill_null("\0" + pl.col("instance_id"))
    )
    weight = pl.Series("weight", [1.0] * people.height, dtype=pl.Float64)
    if sample.weight is not None:
        weight = _read_weights(dataset, sample.weight)
    stratum = pl.Series("stratum", [None] * people.height, dtype=pl.String)
    if sample.strata is not None:
        cells = _read_attribute_by_person(dataset, sample.strata, "strata")
        stratum = cells["value"].alias("stratum")
        _refuse_unusable_cells(
            cells,
            stratum.is_null(),
            "no stratum",
            expected="a stratum for each person",
            source=f"--strata {sample.strata}",
        )
    size = pl.Series("stratum_size", [None] * people.height, dtype=pl.Float64)
    if sample.population_size is not None:
        size = _read_population_sizes(dataset, sample.population_size).alias("stratum_size")
    survey_sample = _count_stratum_clusters(people.with_columns(weight, stratum, size), sample)
    if sample.population_size is not None:
        _check_population_sizes(survey_sample, sample)
        return replace(dataset, survey_sample=survey_sample)
    survey_sample = survey_sample.drop("stratum_size")
    if other_column is not None:
        other_cluster = _read_attribute_by_person(dataset, other_column, "cluster")["value"]
        own_cluster = "\0" + dataset.instances["instance_id"].cast(pl.String)
        survey_sample = survey_sample.with_columns(
            other_cluster=other_cluster.fill_null(own_cluster)
        )
    return replace(dataset, survey_sample=survey_sample)


def _refuse_two_way_population_size(sample: Sample, other_column: str) -> None:
    """Refuse ``population_size`` with two-way clustering."""
    if sample.population_size:
        raise SpecError(
            "clusters both ways take no population_size: it says how many clusters of one way "
            "were not drawn, and no method says what that leaves of the other's variance",
            expected="population_size with clusters one way, or both ways without it; --weight, "
            "--strata and --population go with either",
            found=f"--cluster …,{other_column} population_size",
        )


def parse_cluster_columns(cluster: str | None) -> tuple[str | None, str | None]:
    """Split ``subject,photographer`` into the columns of two-way clustering."""
    names = [] if cluster is None else [name.strip() for name in cluster.split(",")]
    if len(names) > 2 or not all(names) or len(set(names)) < len(names):
        raise SpecError(
            "clusters cannot be read",
            expected="one column, or two that are not the same, as subject,photographer",
            found=repr(cluster),
            where="--cluster",
        )
    return (names[0] if names else None), (names[1] if len(names) > 1 else None)


def has_any_survey_setting(sample: Sample) -> bool:
    """Return whether any setting of a survey sample is given."""
    return any(bool(getattr(sample, name)) for name in Sample.model_fields)


def _read_population_sizes(dataset: Dataset, setting: str) -> pl.Series:
    """Read how many clusters the population has in each person's stratum."""
    try:
        return pl.Series([float(setting.replace(",", ""))] * dataset.instances.height)
    except ValueError:
        cells = _read_attribute_by_person(dataset, setting, "population-size")
    number = cells["number"].fill_null(cells["value"].cast(pl.Float64, strict=False))
    _refuse_unusable_cells(
        cells,
        number.is_null(),
        "no size of their stratum",
        source=f"population_size {setting}",
        expected="a number of clusters for each person",
    )
    return number


def _check_population_sizes(survey_sample: pl.DataFrame, sample: Sample) -> None:
    source = f"population_size {sample.population_size}"
    strata = survey_sample.group_by("stratum", maintain_order=True).agg(
        pl.col("stratum_size").unique().sort(), pl.col("stratum_clusters").first()
    )
    inconsistent = strata.filter(pl.col("stratum_size").list.len() > 1)
    if inconsistent.height:
        raise TableError(
            "a stratum has several sizes",
            expected="one number of clusters for each stratum",
            found=f"{_format_numbers(inconsistent['stratum_size'][0])} in "
            f"{inconsistent['stratum'][0] or 'everyone'!r}",
            where=source,
            hint="the column has the same number for all people of a stratum",
        )
    too_small = strata.filter(pl.col("stratum_size").list.first() < pl.col("stratum_clusters"))
    if too_small.height:
        row = too_small.row(0, named=True)
        raise TableError(
            "the population has fewer clusters than were drawn from it",
            expected=f"{row['stratum_clusters']:,} or more in {row['stratum'] or 'everyone'!r}",
            found=f"{row['stratum_size'][0]:g}",
            where=source,
            hint="it counts clusters (--cluster), not people",
        )


def _format_numbers(numbers: pl.Series) -> str:
    """Write the first of some numbers, and how many there are if that is not all."""
    first = " and ".join(f"{number:,.15g}" for number in numbers.head(2))
    return first if len(numbers) < 3 else f"{first}, {len(numbers)} different ones"


def _read_attribute_by_person(dataset: Dataset, name: str, flag: str) -> pl.DataFrame:
    """Return one value and number of each person, in the order of the instances."""
    instances = dataset.instances
    attribute_names = dataset.attributes["attribute"].unique().to_list()
    columns = [c for c in instances.columns if instances.schema[c].is_(pl.String)]
    if name in attribute_names:
        rows = dataset.instance_attributes().filter(pl.col("attribute") == name)
        person_cells = rows.select(
            "value", pl.col("number").cast(pl.Float64), instance_id=pl.col("unit_id")
        )
        repeated_ids = person_cells.filter(pl.col("instance_id").is_duplicated())["instance_id"]
        if len(repeated_ids):
            raise TableError(
                f"{name!r} has several values for one person",
                expected="one a person",
                found=f"several for {repeated_ids[0]!r}",
                where=f"{format_setting_as_typed(flag)} {name}",
            )
        return instances.select("instance_id").join(
            person_cells, on="instance_id", how="left", maintain_order="left"
        )
    if name in columns:
        text = pl.col(name)
        return instances.select(
            "instance_id", value=text, number=text.cast(pl.Float64, strict=False)
        )
    raise UnknownNameError(
        "column",
        name,
        [*attribute_names, *columns],
        where=f"{format_setting_as_typed(flag)} {name}",
    )


def _read_weights(dataset: Dataset, name: str) -> pl.Series:
    cells = _read_attribute_by_person(dataset, name, "weight")
    source = f"--weight {name}"
    # Of a column with one cell that is no number, none is kept as a number.
    number = cells["number"].fill_null(cells["value"].cast(pl.Float64, strict=False))
    bad = number.is_null() | ~((number == 0) | number.abs().is_between(*_WEIGHT_RANGE))
    _refuse_unusable_cells(
        cells,
        bad,
        "no weight that can be used",
        source=source,
        expected="a number for each person: 0, or {:g} to {:g}".format(*_WEIGHT_RANGE),
    )
    if (number < 0).any():
        row = int((number < 0).arg_true()[0])
        n = int((number < 0).sum())
        raise TableError(
            f"{n:,} weights are negative" if n > 1 else "1 weight is negative",
            expected="0 or more: for how many people a person stands",
            found=f"{number[row]:g} for {cells['instance_id'][row]!r}",
            where=source,
        )
    if cells.height and not (number > 0).any():
        raise TableError(
            "every weight is 0: the people represent nobody",
            expected="a weight above 0",
            found=f"{cells.height:,} weights of 0",
            where=source,
        )
    return number.alias("weight")


def _refuse_unusable_cells(
    cells: pl.DataFrame, bad: pl.Series, missing_phrase: str, *, expected: str, source: str
) -> None:
    """Refuse people without a usable cell."""
    row_indices = bad.arg_true()
    if len(row_indices):
        row = int(row_indices[0])
        raise TableError(
            f"{len(row_indices):,} of {cells.height:,} people have {missing_phrase}",
            expected=expected,
            found=f"{cells['value'][row] or 'an empty cell'!r} for {cells['instance_id'][row]!r}",
            where=source,
            hint="fill it, or leave these people out with --only",
        )


def _count_stratum_clusters(survey_sample: pl.DataFrame, sample: Sample) -> pl.DataFrame:
    """Add the number of sampled clusters of each stratum, and refuse strata with a single one."""
    strata = survey_sample.group_by("stratum", maintain_order=True).agg(
        stratum_clusters=pl.col("cluster").n_unique().cast(pl.Int64)
    )
    if sample.strata is not None:
        _refuse_split_clusters(survey_sample, sample.strata)
        _refuse_single_cluster_strata(strata, sample.strata)
    with_counts = survey_sample.join(
        strata, on="stratum", how="left", nulls_equal=True, maintain_order="left"
    )
    return with_counts.select(
        "instance_id", "weight", "stratum", "stratum_clusters", "stratum_size"
    )


def _refuse_split_clusters(survey_sample: pl.DataFrame, name: str) -> None:
    strata_by_cluster = survey_sample.group_by("cluster", maintain_order=True).agg(
        pl.col("stratum").unique().sort()
    )
    split_clusters = strata_by_cluster.filter(pl.col("stratum").list.len() > 1)
    if split_clusters.height:
        raise TableError(
            f"{split_clusters.height:,} "
            f"cluster{'s lie' if split_clusters.height > 1 else ' lies'} in several strata",
            expected="each cluster in one stratum: clusters are drawn within strata",
            found=f"{split_clusters['cluster'][0]!r} in "
            f"{', '.join(split_clusters['stratum'][0][:_MAX_LISTED].to_list())}",
            where=f"--strata {name}",
            hint="where clusters of different strata have the same name, give each its own",
        )


def _refuse_single_cluster_strata(strata: pl.DataFrame, name: str) -> None:
    single_cluster_strata = strata.filter(pl.col("stratum_clusters") < 2)["stratum"].to_list()
    if single_cluster_strata:
        remainder = (
            f" and {len(single_cluster_strata) - _MAX_LISTED:,} more"
            if len(single_cluster_strata) > _MAX_LISTED
            else ""
        )
        raise TableError(
            f"{len(single_cluster_strata):,} of {strata.height:,} strata have a single cluster",
            expected="two clusters or more in each: one does not show how clusters differ",
            found=", ".join(map(repr, single_cluster_strata[:_MAX_LISTED])) + remainder,
            where=f"--strata {name}",
            hint="join such a stratum with its neighbour in the column, chosen before the answers "
            "were seen",
        )
