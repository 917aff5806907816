"""What a dataset holds, before any model is judged: who is in it, how often, and how large.

From one or several datasets to named tables: people, images and subjects by attribute and value
(FACET, Tables 3, 9, 10), by intersection (Table 17: occupation × attribute), masks (Table 18),
people per image and sizes of boxes (Figures 9, 10), what is unknown or missing, numbers by group
(FairFace, Figure 5), balance against uniform or a target, the composition of datasets side by side
(Figure 1), and how varied people look to a model whose embeddings are at hand (Figures 3, 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from isolux.api.describe.balance import Target
from isolux.api.describe.diversity import measure_diversity
from isolux.api.describe.tables import (
    LEVEL,
    NUMBER_QUANTILES,
    DescribedPeople,
    build_tables,
    format_attribute,
    select_known_memberships,
)
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.grouping import Grouping
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES, MEMBERSHIP
from isolux.groups.display_order import sort_groups_for_display
from isolux.groups.intersections import parse_intersection
from isolux.groups.invalid_groups import MAX_NUMBERS
from isolux.groups.membership import build_membership
from isolux.stats.intervals import score_interval, two_sided_normal_quantile
from isolux.stats.proportions import estimate_design_effect

_MAX_CATEGORIES = 60  # values of an attribute that is counted by default: FACET has 52 occupations


@dataclass(frozen=True, slots=True)
class Description:
    """What datasets hold.

    Parameters
    ----------
    names : tuple of str
        The datasets, in the order given.
    tables : mapping of str to polars.DataFrame
        By caption, in the order in which to read them. Shares are per cent in columns that say
        so (``% of people``); ``dataset`` is the first column where there are several. Null: not
        known, never 0.
    notes : tuple of str
        What was left out, and why.
    figure_tables : mapping of str to mapping of str to polars.DataFrame
        By a table's caption and a figure's title, what is drawn above it and too long to print:
        curves (``group, distance, share``) and maps (``group, x, y``).
    infos : mapping of str to DatasetInfo
        Each dataset's citation and licence, which its page shows.
    """

    names: tuple[str, ...]
    tables: Mapping[str, pl.DataFrame]
    notes: tuple[str, ...] = ()
    figure_tables: Mapping[str, Mapping[str, pl.DataFrame]] = field(default_factory=dict)
    infos: Mapping[str, DatasetInfo] = field(default_factory=dict)

    def report(self, out: str | Path) -> Path:
        """Write the tables and figures as an HTML page, and return its path."""
        from isolux.report.description import write_description_page

        return Path(
            write_description_page(
                Path(out), self.tables, self.infos, self.notes, self.figure_tables
            )
        )


def describe_datasets(
    datasets: Mapping[str, Dataset],
    by: Sequence[str] = (),
    groupings: Mapping[str, Grouping] | None = None,
    *,
    target: Target | None = None,
    embeddings: Mapping[str, pl.DataFrame] | None = None,
    seed: int = 0,
) -> Description:
    """Count people, images and subjects by attribute, intersection, size and crowding.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "1"]}),
    ...     attributes=pl.DataFrame({"unit_kind": "instance", "unit_id": ["a", "a", "b"],
    ...                              "attribute": "tone", "value": ["3", "4", None]}),
    ... )
    >>> found = describe_datasets({"two": two})
    >>> found.tables["By tone"].select("tone", "people", "images").rows()
    [('3', 1, 1), ('4', 1, 1), ('unknown', 1, 1)]
    """
    if not datasets:
        raise SpecError("there is no dataset to describe", expected="at least one")
    _refuse_unknown(datasets, by)
    people_by_name = {
        name: _group_people(described_dataset, by, groupings or {})
        for name, described_dataset in datasets.items()
    }
    notes = [
        f"{name}: {note}" if len(datasets) > 1 else note
        for name, people in people_by_name.items()
        for note in people.notes
    ]
    tables_by_caption: dict[str, dict[str, pl.DataFrame]] = {}
    for name, people in people_by_name.items():
        for caption, table in {
            **build_tables(people, target),
            **build_quantile_tables(people),
        }.items():
            tables_by_caption.setdefault(caption, {})[name] = table
    if len(datasets) == 1:
        tables = {
            caption: next(iter(dataset_tables.values()))
            for caption, dataset_tables in tables_by_caption.items()
        }
    else:
        tables, composition_notes = _build_composition_tables(people_by_name, is_requested=bool(by))
        notes += composition_notes
        tables |= {
            caption: _stack_datasets(dataset_tables)
            for caption, dataset_tables in tables_by_caption.items()
        }
    diversity = measure_diversity(people_by_name, embeddings or {}, seed)
    notes += diversity.notes
    return Description(
        tuple(datasets),
        {**tables, **diversity.tables},
        tuple(dict.fromkeys(notes)),
        diversity.figure_tables,
        {name: dataset.info for name, dataset in datasets.items()},
    )


def _stack_datasets(by_name: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    rows = [
        table.select(pl.lit(name).alias("dataset"), pl.all()) for name, table in by_name.items()
    ]
    return pl.concat(rows, how="diagonal_relaxed")


def _refuse_unknown(datasets: Mapping[str, Dataset], by: Sequence[str]) -> None:
    attribute_names = {
        a for d in datasets.values() for a in d.attributes["attribute"].unique().to_list()
    }
    for entry in by:
        parse_intersection(entry, attribute_names)


def _group_people(
    dataset: Dataset, by: Sequence[str], groupings: Mapping[str, Grouping]
) -> DescribedPeople:
    people = INSTANCES.conform(dataset.instances)
    notes = list(dataset.notes)
    if "is_crowd" in people.columns:
        without_crowds = people.filter(~pl.col("is_crowd").fill_null(value=False))
        if without_crowds.height < people.height:
            notes.append(
                f"{people.height - without_crowds.height:,} crowd(s) are not counted as people."
            )
        people = without_crowds
    attributes = ATTRIBUTES.conform(dataset.instance_attributes())
    attributes = attributes.filter(pl.col("unit_id").is_in(people["instance_id"].implode()))
    attribute_names = attributes["attribute"].unique(maintain_order=True).to_list()
    groupings_to_count, choice_notes = _choose_groupings(attributes, by, attribute_names, groupings)
    if not people.height:
        notes.append("there is nobody to count.")
        return DescribedPeople(dataset, people, attributes, (), MEMBERSHIP.empty(), tuple(notes))
    components = [(name,) for entry in groupings_to_count for name in entry if len(entry) > 1]
    handles = ["*".join(e) for e in dict.fromkeys([*groupings_to_count, *components])]
    memberships = build_membership(attributes, handles, groupings, units=people["instance_id"])
    notes += [*choice_notes, *memberships.notes]
    return DescribedPeople(
        dataset, people, attributes, tuple(groupings_to_count), memberships.frame, tuple(notes)
    )


def _choose_groupings(
    attributes: pl.DataFrame,
    by: Sequence[str],
    attribute_names: Sequence[str],
    groupings: Mapping[str, Grouping],
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Choose the attributes and intersections to count by, with notes on excluded ones."""
    if not by:
        n_values = pl.col("value").n_unique()
        is_numeric = pl.col("value").drop_nulls().cast(pl.Float64, strict=False).is_not_null().all()
        max_values = pl.when(is_numeric).then(MAX_NUMBERS).otherwise(_MAX_CATEGORIES)
        sizes = attributes.group_by("attribute", maintain_order=True).agg(
            n=n_values, most=max_values
        )
        default_groupings: list[tuple[str, ...]] = [
            (name,)
            for name, n, max_values in sizes.iter_rows()
            if n <= max_values or (name in groupings and groupings[name].bins)
        ]
        excluded_notes = [
            f"{name} has {n:,} values and is not used for counts: name it in --by, with --bins if "
            "it is a number."
            for name, n, _ in sizes.iter_rows()
            if (name,) not in default_groupings
            and name not in find_continuous_attributes(attributes)
        ]
        return default_groupings, excluded_notes
    selected_groupings, notes = [], []
    unbinned_numbers = find_continuous_attributes(attributes) - {
        n for n, grouping in groupings.items() if grouping.bins
    }
    for entry in by:
        try:
            names = parse_intersection(entry, attribute_names)
        except UnknownNameError as error:
            notes.append(f"{entry} is not counted: there is no {error.name!r} here.")
            continue
        if len(names) == 1 and names[0] in unbinned_numbers:
            notes.append(f"{entry} is a number: its quantiles are given, and groups with --bins.")
        else:
            selected_groupings.append(names)
    return list(dict.fromkeys(selected_groupings)), notes


def _build_composition_tables(
    people_by_name: Mapping[str, DescribedPeople], *, is_requested: bool
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """Build tables of each group's share per dataset, with its sampling interval."""
    tables, in_one_dataset = {}, []
    for names in dict.fromkeys(entry for people in people_by_name.values() for entry in people.by):
        people_with_attribute = {
            name: people for name, people in people_by_name.items() if names in people.by
        }
        if len(people_with_attribute) == 1 and not is_requested:
            in_one_dataset.append("*".join(names))
            continue
        known_groups = [
            select_known_memberships(people, names)["group"]
            for people in people_with_attribute.values()
        ]
        groups = pl.concat(known_groups).unique(maintain_order=True).to_list()
        if len(names) == 1:
            groups = sort_groups_for_display(
                groups, dict(pl.concat(known_groups).value_counts().rows())
            )
        composition_tables = [
            _build_composition(people, names, groups).with_columns(dataset=pl.lit(name))
            for name, people in people_with_attribute.items()
        ]
        rank = pl.col("group").replace_strict(groups, range(len(groups)), return_dtype=pl.Int64)
        table = pl.concat(composition_tables).sort(rank, maintain_order=True)
        title = format_attribute(next(iter(people_with_attribute.values())), names)
        caption = f"Side by side: {title}, {100 * LEVEL:g} % intervals"
        tables[caption] = table.select("group", "dataset", pl.exclude("group", "dataset"))
    if not in_one_dataset:
        return tables, []
    note = f"not compared, because only one dataset has them: {', '.join(in_one_dataset)}. "
    return tables, [f"{note}--rename OLD=NEW gives two attributes one name, --group their values."]


def _build_composition(
    people: DescribedPeople, names: Sequence[str], groups: Sequence[str]
) -> pl.DataFrame:
    """Compute each group's share of the known people, with a clustered score interval."""
    memberships = select_known_memberships(people, names)
    cluster = pl.coalesce("cluster_id", "subject_id", "instance_id")
    known_people = people.people.select("instance_id", cluster=cluster).join(
        memberships.select(instance_id="unit_id").unique(), on="instance_id", how="semi"
    )
    known_people = known_people.with_columns(at=pl.col("cluster").rank("dense").cast(pl.Int64) - 1)
    sizes = np.bincount(known_people["at"].to_numpy())
    member_clusters = memberships.join(known_people, left_on="unit_id", right_on="instance_id")
    rows: list[tuple[str, int, float | None, float | None, float | None]] = []
    for group in groups:
        group_clusters = member_clusters.filter(pl.col("group") == group)["at"].to_numpy()
        if not known_people.height:
            rows.append((group, 0, None, None, None))
            continue
        group_design_effect = estimate_design_effect(
            np.bincount(group_clusters, minlength=len(sizes)), sizes
        )
        interval = score_interval(
            np.array([len(group_clusters) / known_people.height]),
            np.array([known_people.height / group_design_effect]),
            two_sided_normal_quantile(LEVEL),
        )
        low, high = 100.0 * interval.low.item(), 100.0 * interval.high.item()
        rows.append(
            (
                group,
                len(group_clusters),
                100.0 * len(group_clusters) / known_people.height,
                low,
                high,
            )
        )
    schema = {"group": pl.String, "people": pl.Int64}
    schema |= dict.fromkeys(("% of known", "from", "to"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


# Quantiles of numeric attributes in each group of the other attributes.

_MIN_QUARTILE_PEOPLE = 4  # people needed for quartiles


def find_continuous_attributes(attributes: pl.DataFrame) -> set[str]:
    """Find the continuous attributes: numeric, with fractions or many distinct values."""
    if "number" not in attributes.columns:
        return set()
    numbers = attributes.filter(pl.col("number").is_finite())
    number_counts = numbers.group_by("attribute").agg(
        n=pl.col("number").n_unique(), parts=(pl.col("number") != pl.col("number").round(0)).any()
    )
    is_continuous = (pl.col("n") > MAX_NUMBERS) | (pl.col("parts") & (pl.col("n") > 1))
    return set(number_counts.filter(is_continuous)["attribute"])


def build_quantile_tables(people: DescribedPeople) -> dict[str, pl.DataFrame]:
    """Give the quantiles of each numeric attribute, for everyone and by group."""
    numeric_names = find_continuous_attributes(people.attributes)
    if not numeric_names:
        return {}
    numbers = people.attributes.filter(pl.col("number").is_finite())
    names = numbers["attribute"].unique(maintain_order=True)
    tables = {}
    for name in names.filter(names.is_in(sorted(numeric_names))):
        person_numbers = (
            numbers.filter(pl.col("attribute") == name)
            .group_by("unit_id", maintain_order=True)
            .agg(pl.col("number").mean())
        )
        rows = [
            _build_number_row(*group, person_numbers)
            for group in _iterate_overall_and_groups(people, name)
        ]
        floats = dict.fromkeys(("% without", *NUMBER_QUANTILES, "mean"), pl.Float64)
        tables[f"Numbers: {format_attribute(people, (name,))}"] = pl.DataFrame(
            rows, schema_overrides=floats
        )
    return tables


def _iterate_overall_and_groups(
    people: DescribedPeople, excluded_attribute: str
) -> Iterator[tuple[str, str, pl.Series]]:
    """Yield everyone, then the known groups of every attribute except the measured one."""
    yield "overall", "overall", people.people["instance_id"]
    for names in people.by:
        if excluded_attribute not in names:
            memberships = select_known_memberships(people, names)
            for group in memberships["group"].unique(maintain_order=True):
                yield (
                    "*".join(names),
                    group,
                    memberships.filter(pl.col("group") == group)["unit_id"],
                )


def _build_number_row(
    attribute: str, group: str, person_ids: pl.Series, numbers: pl.DataFrame
) -> dict[str, object]:
    group_numbers = numbers.filter(pl.col("unit_id").is_in(person_ids.implode()))["number"]
    has_quartiles = len(group_numbers) >= _MIN_QUARTILE_PEOPLE
    percent_missing = (
        100.0 * (1.0 - len(group_numbers) / len(person_ids)) if len(person_ids) else None
    )
    row: dict[str, object] = {"attribute": attribute, "group": group, "people": len(group_numbers)}
    quantiles = {
        head: group_numbers.quantile(share, "linear") if has_quartiles else None
        for head, share in NUMBER_QUANTILES.items()
    }
    return (
        row
        | {"% without": percent_missing}
        | quantiles
        | {"mean": group_numbers.mean() if has_quartiles else None}
    )
