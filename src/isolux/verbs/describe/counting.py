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

from isolux.groups.intersections import parts
from isolux.groups.membership import membership
from isolux.groups.no_groups import MOST_NUMBERS
from isolux.groups.ordering import natural_order
from isolux.stats.proportions import design_effect, wilson
from isolux.verbs.describe.balance import Target
from isolux.verbs.describe.diversity import diversity_of
from isolux.verbs.describe.tables import (
    LEVEL,
    NUMBER_QUANTILES,
    DescribedPeople,
    known_rows,
    named,
    tables_of,
)
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.grouping import Grouping
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.tables import ATTRIBUTES, INSTANCES, MEMBERSHIP

_MOST_WORDS = 60  # values of an attribute that is counted by unasked: FACET has 52 occupations


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
    drawn : mapping of str to mapping of str to polars.DataFrame
        By a table's caption and a figure's title, what is drawn above it and too long to print:
        curves (``group, distance, share``) and maps (``group, x, y``).
    infos : mapping of str to DatasetInfo
        Each dataset's citation and licence, which its page shows.
    """

    names: tuple[str, ...]
    tables: Mapping[str, pl.DataFrame]
    notes: tuple[str, ...] = ()
    drawn: Mapping[str, Mapping[str, pl.DataFrame]] = field(default_factory=dict)
    infos: Mapping[str, DatasetInfo] = field(default_factory=dict)

    def report(self, out: str | Path) -> Path:
        """Write the tables and figures as an HTML page, and return its path."""
        from isolux.report.description import write_description

        return Path(write_description(Path(out), self.tables, self.infos, self.notes, self.drawn))


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
    >>> from isolux.vocabulary.info import DatasetInfo
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
    everyone = {name: _people(data, by, groupings or {}) for name, data in datasets.items()}
    notes = [
        f"{name}: {note}" if len(datasets) > 1 else note
        for name, people in everyone.items()
        for note in people.notes
    ]
    found: dict[str, dict[str, pl.DataFrame]] = {}
    for name, people in everyone.items():
        for caption, table in {**tables_of(people, target), **number_tables(people)}.items():
            found.setdefault(caption, {})[name] = table
    if len(datasets) == 1:
        tables = {caption: next(iter(of.values())) for caption, of in found.items()}
    else:
        tables, said = _compositions(everyone, chosen=bool(by))
        notes += said
        tables |= {caption: _stacked(of) for caption, of in found.items()}
    diversity = diversity_of(everyone, embeddings or {}, seed)
    notes += diversity.notes
    return Description(
        tuple(datasets),
        {**tables, **diversity.tables},
        tuple(dict.fromkeys(notes)),
        diversity.drawn,
        {name: dataset.info for name, dataset in datasets.items()},
    )


def _stacked(by_name: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    rows = [
        table.select(pl.lit(name).alias("dataset"), pl.all()) for name, table in by_name.items()
    ]
    return pl.concat(rows, how="diagonal_relaxed")


def _refuse_unknown(datasets: Mapping[str, Dataset], by: Sequence[str]) -> None:
    known = {a for d in datasets.values() for a in d.attributes["attribute"].unique().to_list()}
    for entry in by:
        parts(entry, known)


def _people(
    dataset: Dataset, by: Sequence[str], groupings: Mapping[str, Grouping]
) -> DescribedPeople:
    people = INSTANCES.conform(dataset.instances)
    notes = list(dataset.notes)
    if "is_crowd" in people.columns:
        single = people.filter(~pl.col("is_crowd").fill_null(value=False))
        if single.height < people.height:
            notes.append(f"{people.height - single.height:,} crowd(s) are not counted as people.")
        people = single
    attributes = ATTRIBUTES.conform(dataset.instance_attributes())
    attributes = attributes.filter(pl.col("unit_id").is_in(people["instance_id"].implode()))
    known = attributes["attribute"].unique(maintain_order=True).to_list()
    wanted, said = _wanted(attributes, by, known, groupings)
    if not people.height:
        notes.append("there is nobody to count.")
        return DescribedPeople(dataset, people, attributes, (), MEMBERSHIP.empty(), tuple(notes))
    singles = [(name,) for entry in wanted for name in entry if len(entry) > 1]
    handles = ["*".join(e) for e in dict.fromkeys([*wanted, *singles])]
    found = membership(attributes, handles, groupings, units=people["instance_id"])
    notes += [*said, *found.notes]
    return DescribedPeople(dataset, people, attributes, tuple(wanted), found.frame, tuple(notes))


def _wanted(
    attributes: pl.DataFrame,
    by: Sequence[str],
    known: Sequence[str],
    groupings: Mapping[str, Grouping],
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Choose what to count by, and say what was left out."""
    if not by:
        different = pl.col("value").n_unique()
        numbers = pl.col("value").drop_nulls().cast(pl.Float64, strict=False).is_not_null().all()
        most = pl.when(numbers).then(MOST_NUMBERS).otherwise(_MOST_WORDS)
        sizes = attributes.group_by("attribute", maintain_order=True).agg(n=different, most=most)
        few: list[tuple[str, ...]] = [
            (name,)
            for name, n, most in sizes.iter_rows()
            if n <= most or (name in groupings and groupings[name].bins)
        ]
        left = [
            f"{name} has {n:,} values and is not used for counts: name it in --by, with --bins if "
            "it is a number."
            for name, n, _ in sizes.iter_rows()
            if (name,) not in few and name not in continuous(attributes)
        ]
        return few, left
    chosen, notes = [], []
    without_bins = continuous(attributes) - {n for n, how in groupings.items() if how.bins}
    for entry in by:
        try:
            names = parts(entry, known)
        except UnknownNameError as error:
            notes.append(f"{entry} is not counted: there is no {error.name!r} here.")
            continue
        if len(names) == 1 and names[0] in without_bins:
            notes.append(f"{entry} is a number: its quantiles are given, and groups with --bins.")
        else:
            chosen.append(names)
    return list(dict.fromkeys(chosen)), notes


def _compositions(
    everyone: Mapping[str, DescribedPeople], *, chosen: bool
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """Put datasets side by side: each group's share of those known, with its sampling interval."""
    tables, alone = {}, []
    for names in dict.fromkeys(entry for people in everyone.values() for entry in people.by):
        having = {name: people for name, people in everyone.items() if names in people.by}
        if len(having) == 1 and not chosen:
            alone.append("*".join(names))
            continue
        known = [known_rows(people, names)["group"] for people in having.values()]
        groups = pl.concat(known).unique(maintain_order=True).to_list()
        if len(names) == 1:
            groups = natural_order(groups, dict(pl.concat(known).value_counts().rows()))
        parts_of = [
            _composition(people, names, groups).with_columns(dataset=pl.lit(name))
            for name, people in having.items()
        ]
        rank = pl.col("group").replace_strict(groups, range(len(groups)), return_dtype=pl.Int64)
        table = pl.concat(parts_of).sort(rank, maintain_order=True)
        shown = named(next(iter(having.values())), names)
        caption = f"Side by side: {shown}, {100 * LEVEL:g} % intervals"
        tables[caption] = table.select("group", "dataset", pl.exclude("group", "dataset"))
    if not alone:
        return tables, []
    note = f"not compared, because only one dataset has them: {', '.join(alone)}. "
    return tables, [f"{note}--rename OLD=NEW gives two attributes one name, --group their values."]


def _composition(
    people: DescribedPeople, names: Sequence[str], groups: Sequence[str]
) -> pl.DataFrame:
    """Share each group out of those known, with Wilson's interval over clusters."""
    known = known_rows(people, names)
    cluster = pl.coalesce("cluster_id", "subject_id", "instance_id")
    judged = people.people.select("instance_id", cluster=cluster).join(
        known.select(instance_id="unit_id").unique(), on="instance_id", how="semi"
    )
    judged = judged.with_columns(at=pl.col("cluster").rank("dense").cast(pl.Int64) - 1)
    sizes = np.bincount(judged["at"].to_numpy())
    where = known.join(judged, left_on="unit_id", right_on="instance_id")
    rows: list[tuple[str, int, float | None, float | None, float | None]] = []
    for group in groups:
        own = where.filter(pl.col("group") == group)["at"].to_numpy()
        if not judged.height:
            rows.append((group, 0, None, None, None))
            continue
        effect = design_effect(np.bincount(own, minlength=len(sizes)), sizes)
        ends = wilson(len(own), judged.height, LEVEL, effect)
        low, high = 100.0 * float(ends.low), 100.0 * float(ends.high)
        rows.append((group, len(own), 100.0 * len(own) / judged.height, low, high))
    schema = {"group": pl.String, "people": pl.Int64}
    schema |= dict.fromkeys(("% of known", "from", "to"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


# Numbers by group: how an attribute that is a number lies in each group of the others.

_FEW = 4  # people of whom no quarters can be told


def continuous(attributes: pl.DataFrame) -> set[str]:
    """Name the attributes that are numbers, and more than a few whole ones."""
    if "number" not in attributes.columns:
        return set()
    numbers = attributes.filter(pl.col("number").is_finite())
    kinds = numbers.group_by("attribute").agg(
        n=pl.col("number").n_unique(), parts=(pl.col("number") != pl.col("number").round(0)).any()
    )
    many = (pl.col("n") > MOST_NUMBERS) | (pl.col("parts") & (pl.col("n") > 1))
    return set(kinds.filter(many)["attribute"])


def number_tables(people: DescribedPeople) -> dict[str, pl.DataFrame]:
    """Give the quantiles of each numeric attribute, for everyone and by group."""
    wanted = continuous(people.attributes)
    if not wanted:
        return {}
    numbers = people.attributes.filter(pl.col("number").is_finite())
    names = numbers["attribute"].unique(maintain_order=True)
    tables = {}
    for name in names.filter(names.is_in(sorted(wanted))):
        own = (
            numbers.filter(pl.col("attribute") == name)
            .group_by("unit_id", maintain_order=True)
            .agg(pl.col("number").mean())
        )
        made = [_row(*side, own) for side in _sides(people, name)]
        floats = dict.fromkeys(("% without", *NUMBER_QUANTILES, "mean"), pl.Float64)
        tables[f"Numbers: {named(people, (name,))}"] = pl.DataFrame(made, schema_overrides=floats)
    return tables


def _sides(people: DescribedPeople, but: str) -> Iterator[tuple[str, str, pl.Series]]:
    """Yield everyone, then the known groups of every attribute but the one that is measured."""
    yield "everyone", "everyone", people.people["instance_id"]
    for names in people.by:
        if but not in names:
            known = known_rows(people, names)
            for group in known["group"].unique(maintain_order=True):
                yield "*".join(names), group, known.filter(pl.col("group") == group)["unit_id"]


def _row(attribute: str, group: str, who: pl.Series, numbers: pl.DataFrame) -> dict[str, object]:
    found = numbers.filter(pl.col("unit_id").is_in(who.implode()))["number"]
    able = len(found) >= _FEW
    without = 100.0 * (1.0 - len(found) / len(who)) if len(who) else None
    row: dict[str, object] = {"attribute": attribute, "group": group, "people": len(found)}
    quantiles = {
        head: found.quantile(share, "linear") if able else None
        for head, share in NUMBER_QUANTILES.items()
    }
    return row | {"% without": without} | quantiles | {"mean": found.mean() if able else None}
