"""Draw a test set in which every combination of some attributes has as many people.

From a dataset to the ids of some of its people. FairFace (section 5) tests commercial services on
7,476 faces: 89 of each of 7 races × 2 perceived genders × 6 ages from 20 up. A cell that has fewer
people is taken whole, and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.grouping import Grouping
from isolux.core.info import DatasetInfo
from isolux.core.tables import INSTANCES
from isolux.datasets import check_training_is_licensed
from isolux.groups.membership import build_membership
from isolux.groups.unknown_values import UNKNOWN
from isolux.people.sources import build_groupings_over, load_people_or_take_dataset

_MAX_CELLS = 100_000
_ID_COLUMNS = ("instance_id", "image_id", "subject_id")
_MAX_PER_CELL = 1_000_000_000_000  # people per cell: more than ever lived, and fits an Int64 column
_RESERVED_COLUMNS = {*_ID_COLUMNS, "available", "drawn", "short"}


@dataclass(frozen=True, slots=True)
class BalancedSample:
    """Who was drawn, and from which cells.

    Parameters
    ----------
    people : polars.DataFrame
        ``instance_id``, ``image_id``, ``subject_id`` (where subjects are known), and a column for
        each attribute; in the dataset's order.
    cells : polars.DataFrame
        One row a combination of values, those with nobody too: the attributes, ``available``,
        ``drawn``, ``short`` (how many are lacking).
    notes : tuple of str
        Who could not be drawn, and why.
    """

    people: pl.DataFrame
    cells: pl.DataFrame
    notes: tuple[str, ...] = ()


def sample(
    data: Dataset | str | Path,
    *,
    balance: Sequence[str],
    per_cell: int,
    seed: int = 0,
    purpose: Literal["evaluation", "training"] = "evaluation",
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    only: Sequence[str] = (),
    bins: Sequence[str] = (),
    votes: str = "any",
    data_option: Sequence[str] = (),
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    cluster: str | None = None,
    separator: str | None = None,
) -> BalancedSample:
    r"""Draw a balanced test set; cells with too few people are taken whole, and listed.

    If the dataset or ``cluster`` names subjects, all of a subject's photos are drawn or none.

    Parameters
    ----------
    data : Dataset or str
        A dataset, or NAME:PATH (``fairface:labels.csv``).
    balance : sequence of str
        Attributes: race,gender,age.
    per_cell : int
        Number of people for each combination of values.
    seed : int
        The same seed draws the same people.
    purpose : {"evaluation", "training"}
        What the set is for: a dataset for evaluation only refuses training.
    withdrawn : str, optional
        File with the ids of people who withdrew: they are never drawn.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    only : sequence of str
        Who may be drawn: ``"age>=20"``.
    bins : sequence of str
        How to group many values into bins: ``"age=edges:18,30,45"``, ``"income=quantile:4"`` or
        ``"city=top:50"``.
    votes : str
        Which of several values counts: any, majority, top, top-or-none, at-least:K.
    data_option : sequence of str
        A setting specific to the dataset, NAME=VALUE.
    id : str, optional
        The column that identifies a row.
    cluster : str, optional
        A column whose rows are drawn together or not at all, such as subject.
    separator : str, optional
        What separates several values in one cell.

    Returns
    -------
    BalancedSample
        ``.people`` (ids and values), ``.cells``, ``.notes``.

    Raises
    ------
    SpecError, UnknownNameError
        As ``draw_balanced_sample``; and what is wrong with the settings.
    LicenceError
        The dataset's licence does not allow training.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id,light\n1,day\n2,day\n3,night\n")
    ...     sample(f"table:{file}", balance=["light"], per_cell=1).people.height
    2
    """
    names = [name.strip() for text in balance for name in text.split(",") if name.strip()]
    if purpose == "training":
        dataset_info = data.info if isinstance(data, Dataset) else _dataset_info(str(data))
        check_training_is_licensed(dataset_info)
    dataset = load_people_or_take_dataset(
        data,
        names,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        only=only,
        data_option=data_option,
        id=id,
        cluster=cluster,
        separator=separator,
        purpose=purpose,
    )
    if cluster is not None:
        subjects = dataset.instances.with_columns(subject_id="cluster_id")
        dataset = replace(dataset, instances=subjects)
    if purpose == "training":  # a release may have terms of its own
        check_training_is_licensed(dataset.info)
    attribute_names = set(dataset.attributes["attribute"].unique())
    grouping_options = {"bins": tuple(bins), "votes": votes}
    groupings = (
        build_groupings_over({"data": dataset}, names, **grouping_options)
        if attribute_names >= set(names)
        else {}
    )
    return draw_balanced_sample(dataset, names, per_cell, seed=seed, groupings=groupings)


def _dataset_info(source: str) -> DatasetInfo:
    return registry.load_dataset_info(source.partition(":")[0])


def draw_balanced_sample(
    dataset: Dataset,
    balance: Sequence[str],
    per_cell: int,
    *,
    seed: int = 0,
    groupings: Mapping[str, Grouping] | None = None,
) -> BalancedSample:
    """Draw the same number of people from every combination of some attributes' known values.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="three people",
    ...     info=DatasetInfo(title="Three people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b", "c"], "image_id": ["1", "2", "3"]}),
    ...     attributes=pl.DataFrame({"unit_kind": "instance", "unit_id": ["a", "b", "c"],
    ...                              "attribute": "gender", "value": ["F", "M", "M"]}),
    ... )
    >>> found = draw_balanced_sample(people, ["gender"], 1)
    >>> found.cells.rows()
    [('M', 2, 1, 0), ('F', 1, 1, 0)]
    """
    names = _check_balance_settings(dataset, balance, per_cell)
    people = INSTANCES.conform(dataset.instances)
    if "is_crowd" in people.columns:
        people = people.filter(~pl.col("is_crowd").fill_null(value=False))
    people = people.select(_ID_COLUMNS).with_row_index("_row")
    cell_rows, values, notes = _assign_cells(dataset, people, names, groupings or {})
    if cell_rows["_cell"].is_null().all():
        raise SpecError(
            "nobody can be drawn",
            expected=f"people with one known value of each of {', '.join(names)}",
            found="nobody" if not people.height else f"none among {people.height:,} people",
            where=dataset.name,
        )
    sampled, draw_notes = _draw_clusters(cell_rows, prod(map(len, values)), per_cell, seed)
    cells = _build_cell_table(names, values, cell_rows, sampled, per_cell)
    id_columns = [
        c for c in _ID_COLUMNS if c != "subject_id" or people["subject_id"].is_not_null().any()
    ]
    order = sampled.sort("_row").select(*id_columns, "_cell")
    table = cells.drop("available", "drawn", "short").with_row_index("_cell")
    table = table.with_columns(pl.col("_cell").cast(pl.Int64))
    sampled_people = order.join(table, on="_cell", how="left", maintain_order="left")
    return BalancedSample(
        sampled_people.drop("_cell"), cells, (*dataset.notes, *notes, *draw_notes)
    )


def _check_balance_settings(dataset: Dataset, balance: Sequence[str], per_cell: int) -> list[str]:
    names = [name.strip() for name in balance if name.strip()]
    if not names or len(set(names)) < len(names):
        raise SpecError(
            "--balance does not name what to balance",
            expected="different attributes, such as race,gender,age",
            found=", ".join(balance) or "nothing",
        )
    if per_cell < 1:
        raise SpecError("--per-cell is too small", expected="1 or more", found=str(per_cell))
    if per_cell > _MAX_PER_CELL:
        raise SpecError(
            "--per-cell is more people than there are",
            expected=f"at most {_MAX_PER_CELL:,}",
            found=str(per_cell),
        )
    for name in names:
        dataset.values_of(name)
    return names


def _assign_cells(
    dataset: Dataset, people: pl.DataFrame, names: Sequence[str], groupings: Mapping[str, Grouping]
) -> tuple[pl.DataFrame, list[list[str]], list[str]]:
    """Assign each person a cell number (null: none), and list each attribute's values."""
    ids = people["instance_id"]
    memberships = build_membership(dataset.instance_attributes(), names, groupings, units=ids).frame
    cell, values, notes = pl.lit(0, dtype=pl.Int64), [], []
    for index, name in enumerate(names):
        rows = memberships.filter((pl.col("attribute") == name) & (pl.col("group") != UNKNOWN))
        group_names = rows["group"].unique(maintain_order=True).to_list()
        values.append(group_names)
        single_valued = rows.filter(pl.len().over("unit_id") == 1)
        codes = single_valued.select(
            instance_id="unit_id",
            **{
                f"_{index}": pl.col("group").replace_strict(
                    group_names, range(len(group_names)), return_dtype=pl.Int64
                )
            },
        )
        people = people.join(codes, on="instance_id", how="left", maintain_order="left")
        cell = cell * len(group_names) + pl.col(f"_{index}")
        n_known = rows["unit_id"].n_unique()
        for n, reason in (
            (people.height - n_known, "no known value"),
            (n_known - single_valued.height, "several values"),
        ):
            if n:
                notes.append(
                    f"{n:,} of {people.height:,} people have {reason} of {name}: not drawn."
                )
    if prod(map(len, values)) > _MAX_CELLS:
        raise SpecError(
            "--balance makes too many cells",
            expected=f"{_MAX_CELLS:,} at most",
            found=" × ".join(f"{len(v):,} of {n}" for n, v in zip(names, values, strict=True)),
            hint="put numbers into --bins, or balance fewer attributes",
        )
    return people.with_columns(_cell=cell), values, notes


def _draw_clusters(
    cell_rows: pl.DataFrame, n_cells: int, per_cell: int, seed: int
) -> tuple[pl.DataFrame, list[str]]:
    """Draw whole clusters in random order while their cells have places left."""
    from isolux.stats.whole_cluster_draws import select_whole_clusters_within_quotas

    person_key = pl.concat_str(pl.lit("i"), "instance_id")
    subject_key = pl.concat_str(pl.lit("s"), "subject_id")  # never the same as a person's own name
    cell_rows = cell_rows.with_columns(_cluster=pl.coalesce(subject_key, person_key))
    is_excluded = pl.col("_cell").is_null().any().over("_cluster")
    eligible_rows = cell_rows.filter(~is_excluded).sort("_cluster", "instance_id")
    notes = []
    n_partial = cell_rows.filter(is_excluded & pl.col("_cell").is_not_null())["_cluster"].n_unique()
    if n_partial:
        notes.append(f"{n_partial:,} subject(s) have somebody in no cell as well: not drawn.")
    sizes = eligible_rows.group_by("_cluster", maintain_order=True).len()["len"].to_numpy()
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(sizes)).astype(np.int64)
    remaining_places = np.full(n_cells, per_cell, dtype=np.int64)
    is_taken = select_whole_clusters_within_quotas(
        order, starts, eligible_rows["_cell"].to_numpy(), remaining_places
    )
    return eligible_rows.filter(pl.Series(np.repeat(is_taken, sizes), dtype=pl.Boolean)), notes


def _build_cell_table(
    names: Sequence[str],
    values: Sequence[Sequence[str]],
    cell_rows: pl.DataFrame,
    sampled: pl.DataFrame,
    per_cell: int,
) -> pl.DataFrame:
    n = prod(map(len, values))
    counts = [
        np.bincount(frame["_cell"].drop_nulls().to_numpy(), minlength=n)
        for frame in (cell_rows, sampled)
    ]
    grid = np.indices([len(v) for v in values]).reshape(len(values), -1)
    columns = {
        f"{name} (value)" if name in _RESERVED_COLUMNS else name: pl.Series(
            group_names, dtype=pl.String
        ).gather(grid[index])
        for index, (name, group_names) in enumerate(zip(names, values, strict=True))
    }
    return pl.DataFrame(columns).with_columns(
        available=pl.Series(counts[0], dtype=pl.Int64),
        drawn=pl.Series(counts[1], dtype=pl.Int64),
        short=pl.Series(per_cell - counts[1], dtype=pl.Int64),
    )
