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

from isolux.io.ids import reduced
from isolux.people.blotting import unnamed
from isolux.people.known_ids import id_like, ids_by_name, known_ids, matched
from isolux.people.withdrawn_lists import WithdrawnList, many
from isolux.vocabulary.containers import Dataset, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import ATTRIBUTES, INSTANCES


def without_withdrawn(
    dataset: Dataset, listed: WithdrawnList, *, allow_unmatched: bool = False
) -> Dataset:
    """Remove who withdrew, and every photo that shows them."""
    instances = INSTANCES.conform(dataset.instances)
    by_name = ids_by_name(dataset)
    listed = listed.going_by(by_name)
    if listed.column is None:
        known = known_ids(dataset)
        listed = listed.among(known["id"])
    else:
        known = by_name[listed.column].with_columns(kind=pl.lit(listed.column))
    ids = pl.Series(sorted(listed.ids), dtype=pl.String)
    found = matched(known, ids)
    unknown = len(ids) - found["asked"].n_unique()
    if unknown and not allow_unmatched:
        raise _names_no_one(unknown, len(ids), known, dataset.name)
    withdrew = instances["instance_id"].is_in(found["who"].unique().implode())
    photos = instances.filter(withdrew)["image_id"].unique()
    goes = withdrew | instances["image_id"].is_in(photos.implode()).fill_null(value=False)
    if instances.height and goes.all():
        raise SpecError(
            "nobody is left: everyone withdrew, or is in a photo with someone who did",
            where=dataset.name,
        )
    gone, kept = instances.filter(goes), instances.filter(~goes)
    units = _units_gone(gone, kept, photos)
    hidden = _hidden(dataset, goes, units, listed)
    images = dataset.images
    if "image_id" in images.columns:
        images = images.filter(~pl.col("image_id").is_in(photos.implode()))
    note = _note(instances.filter(withdrew), gone, photos, unknown)
    return replace(
        dataset,
        instances=kept,
        images=images,
        attributes=_without(dataset.attributes, units),
        inputs={k: v for k, v in dataset.inputs.items() if unnamed([k], hidden) == [k]},
        notes=(*unnamed(dataset.notes, hidden), *listed.notes, note, *_several(found)),
        withdrawn=hidden,
    )


def runs_without(
    runs: Sequence[Run], listed: WithdrawnList, *, allow_unmatched: bool = False
) -> list[Run]:
    """Remove who withdrew from the tables of runs."""
    named = [_names_in(run) for run in runs]
    listed = listed.going_by(set.intersection(*(set(own) for own in named)))  # or one keeps them
    known = [_known_in(run, listed.column, own) for run, own in zip(runs, named, strict=True)]
    listed = listed.among(pl.concat([of_run["id"] for of_run in known]))
    ids = pl.Series(sorted(listed.ids), dtype=pl.String)
    found = [matched(of_run, ids) for of_run in known]
    unknown = len(ids) - pl.concat(found)["asked"].n_unique()
    if unknown and not allow_unmatched:
        raise _names_no_one(unknown, len(ids), pl.concat(known), "the runs")
    return [
        _only_others(run, of_run["who"].unique()) for run, of_run in zip(runs, found, strict=True)
    ]


def _names_in(run: Run) -> dict[str, str]:
    """Say what a run calls its ids, and which of its columns holds them."""
    spec = dict(run.record.get("spec") or {})
    word = str(dict(run.record.get("clusters") or {}).get("column") or "cluster_id")
    word = word.split(",", maxsplit=1)[0].strip()  # of clusters both ways the first are the units'
    found = dict.fromkeys(id_like(run.attributes["attribute"].drop_nulls()), "attribute")
    if run.record.get("ids") != "row numbers":
        found |= {"instance_id": "unit_id", "image_id": "unit_id"}
        found |= {str(spec["id"]): "unit_id"} if spec.get("id") else {}
    return {**found, **dict.fromkeys((word, f"{word}_id", "cluster_id"), "cluster_id")}


def _known_in(run: Run, column: str | None, named: Mapping[str, str]) -> pl.DataFrame:
    """List the ids of a run's units: ``who``, ``kind``, ``id``; of whatever kind, or of one."""
    every = {*named.values(), "unit_id"} if column is None else {named.get(column)}
    tables = [run.scores, *run.evidence.values()]
    kinds = [
        table.select(who="unit_id", kind=pl.lit(kind), id=pl.col(kind).cast(pl.String))
        for table in tables
        for kind in ("unit_id", "cluster_id")
        if kind in every and {"unit_id", kind} <= set(table.columns)
    ]
    names = [name for name, kind in named.items() if kind == "attribute"]
    asked = names if column is None else [name for name in names if name == column]
    held = run.attributes.filter(pl.col("attribute").is_in(asked))
    kinds.append(held.select(who="unit_id", kind=pl.lit("attribute"), id="value"))
    return pl.concat(kinds).drop_nulls().unique(maintain_order=True)


def _only_others(run: Run, gone: pl.Series) -> Run:
    def kept(table: pl.DataFrame) -> pl.DataFrame:
        if "unit_id" not in table.columns:
            return table
        return table.filter(pl.col("unit_id").is_in(gone.implode()).fill_null(value=False).not_())

    return replace(
        run,
        scores=kept(run.scores),
        attributes=kept(run.attributes),
        evidence={name: kept(table) for name, table in run.evidence.items()},
    )


def _names_no_one(unknown: int, n: int, known: pl.DataFrame, where: str) -> SpecError:
    """Say how many, and never which: what is printed is kept in logs."""
    kinds = ", ".join(known["kind"].unique(maintain_order=True).to_list())
    return SpecError(
        f"{unknown:,} of {n:,} ids on the list of withdrawn people match nobody here",
        expected=f"ids that the data know, as {kinds}",
        found=f"{n - unknown:,} of them",
        where=where,
        hint="check that the list's ids are written as in the data; if those people are not in "
        "these data, say so with --allow-unmatched (allow_unmatched=True)",
    )


def _units_gone(gone: pl.DataFrame, kept: pl.DataFrame, photos: pl.Series) -> dict[str, pl.Series]:
    """Ids of each kind of unit that nothing is left of."""
    units = {"instance": gone["instance_id"], "image": photos}
    for kind in ("subject", "household"):
        column = f"{kind}_id"
        if column in gone.columns:
            ids = gone[column].drop_nulls().unique()
            units[kind] = ids.filter(~ids.is_in(kept[column].drop_nulls().implode()))
    return units


def _without(attributes: pl.DataFrame, units: dict[str, pl.Series]) -> pl.DataFrame:
    rows = ATTRIBUTES.conform(attributes)
    for kind, ids in units.items():
        of_them = (pl.col("unit_kind") == kind) & pl.col("unit_id").is_in(ids.implode())
        rows = rows.filter(~of_them)
    return rows


def _hidden(
    dataset: Dataset, goes: pl.Series, units: dict[str, pl.Series], listed: WithdrawnList
) -> frozenset[str]:
    """Collect every id that only people who went had, and what the list itself says."""
    known = known_ids(dataset)
    instances = INSTANCES.conform(dataset.instances)
    gone = known["who"].is_in(instances.filter(goes)["instance_id"].implode())
    theirs, others = known.filter(gone)["id"].unique(), known.filter(~gone)["id"].unique()
    own = theirs.filter(~theirs.is_in(others.implode()))
    names = own.to_list() + reduced(own, "basename").to_list()
    return listed.ids.union(names, *(ids.cast(pl.String).to_list() for ids in units.values()))


def _note(withdrew: pl.DataFrame, gone: pl.DataFrame, photos: pl.Series, unknown: int) -> str:
    """Say how many went, in people where the dataset tells them apart."""
    subjects = withdrew["subject_id"].drop_nulls().n_unique()
    others = gone.height - withdrew.height
    said = f"{many(subjects or withdrew.height, 'person', 'people')} withdrew"
    if len(photos):
        said += f"; also left out: {many(len(photos), 'photo', 'photos')}"
    if others:
        where = "it" if len(photos) == 1 else "them"
        said += f" and {many(others, 'other person', 'other people')} in {where}"
    if unknown:
        said += f". {many(unknown, 'id', 'ids')} of the list"
        said += " names nobody here" if unknown == 1 else " name nobody here"
    return f"{said}."


def _several(found: pl.DataFrame) -> list[str]:
    """Say that an id named different people, as a subject and as a photo: perhaps too many went."""
    sets = found.group_by("asked", "kind").agg(pl.col("who").sort())
    differ = sets.group_by("asked").agg(n=pl.col("who").n_unique(), kinds=pl.col("kind").sort())
    several = differ.filter(pl.col("n") > 1)
    if several.is_empty():
        return []
    kinds = sorted({kind for kinds in several["kinds"] for kind in kinds})
    n = several.height
    return [
        Caution(
            f"{many(n, 'id', 'ids')} of the list of withdrawn people "
            f"{'names' if n == 1 else 'name'} different people as {' and as '.join(kinds)}: all of "
            "them went. A table with one of these columns says which."
        )
    ]
