"""People who withdrew their consent: taken out before anything is counted or computed.

A list of them is read from a file of the user's and looked up in every kind of id that the data
know; an id that names no one stops the work, unless that is said to be right. Whoever stands on the
list is removed together with every photo that shows them, so that neither their labels nor their
pixels are used. What is written says how many they were and never who: not in notes, not in tables,
and no hash of the list, as the hash of a short list of ids tells the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from isolux.core.containers import Dataset, Run
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.io.ids import reduce_ids
from isolux.people.id_index import (
    index_ids_by_column_name,
    list_id_attributes,
    list_known_ids,
    match_ids_to_people,
)
from isolux.people.redaction import redact_ids
from isolux.people.withdrawal_lists import WithdrawnList, format_count


def remove_withdrawn_people(
    dataset: Dataset, withdrawn_list: WithdrawnList, *, allow_unmatched: bool = False
) -> Dataset:
    """Remove who withdrew, and every photo that shows them."""
    instances = INSTANCES.conform(dataset.instances)
    by_name = index_ids_by_column_name(dataset)
    withdrawn_list = withdrawn_list.select_column_of_known_ids(by_name)
    if withdrawn_list.column is None:
        all_ids = list_known_ids(dataset)
        withdrawn_list = withdrawn_list.add_erased_or_unagreed_ids(all_ids["id"])
    else:
        all_ids = by_name[withdrawn_list.column].with_columns(kind=pl.lit(withdrawn_list.column))
    ids = pl.Series(sorted(withdrawn_list.ids), dtype=pl.String)
    matches = match_ids_to_people(all_ids, ids)
    n_unmatched = len(ids) - matches["asked"].n_unique()
    if n_unmatched and not allow_unmatched:
        raise _build_unmatched_ids_error(n_unmatched, len(ids), all_ids, dataset.name)
    is_withdrawn = instances["instance_id"].is_in(matches["who"].unique().implode())
    photos = instances.filter(is_withdrawn)["image_id"].unique()
    is_removed = is_withdrawn | instances["image_id"].is_in(photos.implode()).fill_null(value=False)
    if instances.height and is_removed.all():
        raise SpecError(
            "nobody is left: everyone withdrew, or is in a photo with someone who did",
            where=dataset.name,
        )
    removed, remaining = instances.filter(is_removed), instances.filter(~is_removed)
    units = _list_units_without_people(removed, remaining, photos)
    redacted = _collect_ids_to_redact(dataset, is_removed, units, withdrawn_list)
    images = dataset.images
    if "image_id" in images.columns:
        images = images.filter(~pl.col("image_id").is_in(photos.implode()))
    note = _build_withdrawal_note(instances.filter(is_withdrawn), removed, photos, n_unmatched)
    return replace(
        dataset,
        instances=remaining,
        images=images,
        attributes=_drop_attributes_of_units(dataset.attributes, units),
        inputs={k: v for k, v in dataset.inputs.items() if redact_ids([k], redacted) == [k]},
        notes=(
            *redact_ids(dataset.notes, redacted),
            *withdrawn_list.notes,
            note,
            *_caution_on_ambiguous_ids(matches),
        ),
        withdrawn_ids=redacted,
    )


def remove_withdrawn_from_runs(
    runs: Sequence[Run], withdrawn_list: WithdrawnList, *, allow_unmatched: bool = False
) -> list[Run]:
    """Remove who withdrew from the tables of runs."""
    columns_by_run = [_map_id_name_to_column(run) for run in runs]
    withdrawn_list = withdrawn_list.select_column_of_known_ids(
        set.intersection(*(set(id_columns) for id_columns in columns_by_run))
    )  # or one keeps them
    ids_by_run = [
        _list_run_ids(run, withdrawn_list.column, id_columns)
        for run, id_columns in zip(runs, columns_by_run, strict=True)
    ]
    withdrawn_list = withdrawn_list.add_erased_or_unagreed_ids(
        pl.concat([run_ids["id"] for run_ids in ids_by_run])
    )
    ids = pl.Series(sorted(withdrawn_list.ids), dtype=pl.String)
    matches_by_run = [match_ids_to_people(run_ids, ids) for run_ids in ids_by_run]
    n_unmatched = len(ids) - pl.concat(matches_by_run)["asked"].n_unique()
    if n_unmatched and not allow_unmatched:
        raise _build_unmatched_ids_error(n_unmatched, len(ids), pl.concat(ids_by_run), "the runs")
    return [
        _drop_units(run, run_ids["who"].unique())
        for run, run_ids in zip(runs, matches_by_run, strict=True)
    ]


def _map_id_name_to_column(run: Run) -> dict[str, str]:
    """Say what a run calls its ids, and which of its columns holds them."""
    spec = dict(run.record.get("spec") or {})
    cluster_name = str(dict(run.record.get("clusters") or {}).get("column") or "cluster_id")
    cluster_name = cluster_name.split(",", maxsplit=1)[
        0
    ].strip()  # of clusters both ways the first are the units'
    column_by_name = dict.fromkeys(
        list_id_attributes(run.attributes["attribute"].drop_nulls()), "attribute"
    )
    if run.record.get("ids") != "row numbers":
        column_by_name |= {"instance_id": "unit_id", "image_id": "unit_id"}
        column_by_name |= {str(spec["id"]): "unit_id"} if spec.get("id") else {}
    return {
        **column_by_name,
        **dict.fromkeys((cluster_name, f"{cluster_name}_id", "cluster_id"), "cluster_id"),
    }


def _list_run_ids(run: Run, column: str | None, id_columns: Mapping[str, str]) -> pl.DataFrame:
    """List the ids of a run's units: ``who``, ``kind``, ``id``; of whatever kind, or of one."""
    used_columns = {*id_columns.values(), "unit_id"} if column is None else {id_columns.get(column)}
    tables = [run.scores, *run.evidence.values()]
    id_tables = [
        table.select(who="unit_id", kind=pl.lit(id_kind), id=pl.col(id_kind).cast(pl.String))
        for table in tables
        for id_kind in ("unit_id", "cluster_id")
        if id_kind in used_columns and {"unit_id", id_kind} <= set(table.columns)
    ]
    names = [name for name, id_kind in id_columns.items() if id_kind == "attribute"]
    requested_attributes = names if column is None else [name for name in names if name == column]
    attribute_rows = run.attributes.filter(pl.col("attribute").is_in(requested_attributes))
    id_tables.append(attribute_rows.select(who="unit_id", kind=pl.lit("attribute"), id="value"))
    return pl.concat(id_tables).drop_nulls().unique(maintain_order=True)


def _drop_units(run: Run, removed_units: pl.Series) -> Run:
    def drop_removed(table: pl.DataFrame) -> pl.DataFrame:
        if "unit_id" not in table.columns:
            return table
        return table.filter(
            pl.col("unit_id").is_in(removed_units.implode()).fill_null(value=False).not_()
        )

    return replace(
        run,
        scores=drop_removed(run.scores),
        attributes=drop_removed(run.attributes),
        evidence={name: drop_removed(table) for name, table in run.evidence.items()},
    )


def _build_unmatched_ids_error(
    n_unmatched: int, n: int, all_ids: pl.DataFrame, source: str
) -> SpecError:
    """Say how many, and never which: what is printed is kept in logs."""
    kind_list = ", ".join(all_ids["kind"].unique(maintain_order=True).to_list())
    return SpecError(
        f"{n_unmatched:,} of {n:,} ids on the list of withdrawn people match nobody here",
        expected=f"ids that the data know, as {kind_list}",
        found=f"{n - n_unmatched:,} of them",
        where=source,
        hint="check that the list's ids are written as in the data; if those people are not in "
        "these data, say so with --allow-unmatched (allow_unmatched=True)",
    )


def _list_units_without_people(
    removed: pl.DataFrame, remaining: pl.DataFrame, photos: pl.Series
) -> dict[str, pl.Series]:
    """List the ids of units of each kind that have no remaining person."""
    units = {"instance": removed["instance_id"], "image": photos}
    for unit_kind in ("subject", "household"):
        column = f"{unit_kind}_id"
        if column in removed.columns:
            ids = removed[column].drop_nulls().unique()
            units[unit_kind] = ids.filter(~ids.is_in(remaining[column].drop_nulls().implode()))
    return units


def _drop_attributes_of_units(
    attributes: pl.DataFrame, units: dict[str, pl.Series]
) -> pl.DataFrame:
    rows = ATTRIBUTES.conform(attributes)
    for unit_kind, ids in units.items():
        is_removed = (pl.col("unit_kind") == unit_kind) & pl.col("unit_id").is_in(ids.implode())
        rows = rows.filter(~is_removed)
    return rows


def _collect_ids_to_redact(
    dataset: Dataset,
    is_removed: pl.Series,
    units: dict[str, pl.Series],
    withdrawn_list: WithdrawnList,
) -> frozenset[str]:
    """Collect every id that only removed people had, and the ids of the list."""
    all_ids = list_known_ids(dataset)
    instances = INSTANCES.conform(dataset.instances)
    is_removed_id = all_ids["who"].is_in(instances.filter(is_removed)["instance_id"].implode())
    removed_ids, remaining_ids = (
        all_ids.filter(is_removed_id)["id"].unique(),
        all_ids.filter(~is_removed_id)["id"].unique(),
    )
    exclusive_ids = removed_ids.filter(~removed_ids.is_in(remaining_ids.implode()))
    names = exclusive_ids.to_list() + reduce_ids(exclusive_ids, "basename").to_list()
    return withdrawn_list.ids.union(
        names, *(ids.cast(pl.String).to_list() for ids in units.values())
    )


def _build_withdrawal_note(
    withdrew: pl.DataFrame, removed: pl.DataFrame, photos: pl.Series, n_unmatched: int
) -> str:
    """Describe how many people and photos were removed, without ids."""
    subjects = withdrew["subject_id"].drop_nulls().n_unique()
    n_bystanders = removed.height - withdrew.height
    sentence = f"{format_count(subjects or withdrew.height, 'person', 'people')} withdrew"
    if withdrew.is_empty():  # an erased id is taken out already: "0 people withdrew" would be wrong
        sentence = "Of the people who withdrew, none is in the data"
    if len(photos):
        sentence += f"; also left out: {format_count(len(photos), 'photo', 'photos')}"
    if n_bystanders:
        photo_pronoun = "it" if len(photos) == 1 else "them"
        sentence += (
            f" and {format_count(n_bystanders, 'other person', 'other people')} in {photo_pronoun}"
        )
    if n_unmatched:
        sentence += f". {format_count(n_unmatched, 'id', 'ids')} of the list"
        sentence += " names nobody here" if n_unmatched == 1 else " name nobody here"
    return f"{sentence}."


def _caution_on_ambiguous_ids(matches: pl.DataFrame) -> list[str]:
    """Say that an id named different people, as a subject and as a photo: perhaps too many went."""
    sets = matches.group_by("asked", "kind").agg(pl.col("who").sort())
    differ = sets.group_by("asked").agg(n=pl.col("who").n_unique(), kinds=pl.col("kind").sort())
    ambiguous = differ.filter(pl.col("n") > 1)
    if ambiguous.is_empty():
        return []
    id_kinds = sorted({id_kind for id_kinds in ambiguous["kinds"] for id_kind in id_kinds})
    n = ambiguous.height
    return [
        Caution(
            f"{format_count(n, 'id', 'ids')} of the list of withdrawn people "
            f"{'names' if n == 1 else 'name'} different people as {' and as '.join(id_kinds)}: "
            f"all of "
            "them went. A table with one of these columns says which."
        )
    ]
