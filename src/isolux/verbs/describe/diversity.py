"""How varied a dataset's people look to a model: Vendi score, distances, a map, by group.

Part of ``description``: people with their groups and the vectors that a model gave them go in,
tables and what is drawn of them come out. FHIBE compares datasets by the Vendi score ("Dataset
diversity"), FairFace by the distances of all pairs (Figure 4) and a t-SNE map (Figure 3); neither
does so by group, where the number of people differs and so the score (``stats/diversity.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.diversity import EXACT, vendi_of_subjects, vendi_score
from isolux.stats.pairwise import METRICS, PAIRS, Distances, map_vectors, pairwise_distances
from isolux.verbs.describe.tables import LEVEL, NUMBER_QUANTILES, DescribedPeople, known_rows
from isolux.vocabulary.errors import JoinError, SpecError

MAPPED = 1_500
"""People up to which all are on the map; of more, so many are drawn."""
_LARGEST, _SMALLEST = 200, 10  # subjects in a draw of the comparable Vendi score
_SHARES = np.concatenate([[0.001, 0.003], np.linspace(0.01, 0.99, 99), [0.997, 0.999]])
_EVERYONE = "everyone"


@dataclass(frozen=True, slots=True)
class Diversity:
    """Tables by caption, what is drawn above each (by the figure's title), and notes."""

    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    drawn: dict[str, dict[str, pl.DataFrame]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Set:
    """One dataset's vectors ``[n, d]``, whose photo each is, and the rows of each group."""

    name: str
    vectors: npt.NDArray[np.float32]
    subject: npt.NDArray[np.int64]
    groups: dict[tuple[str, str], npt.NDArray[np.int64]]

    def sides(self) -> Iterator[tuple[str, str, npt.NDArray[np.int64]]]:
        """Yield everyone, then each group of each attribute: attribute, group, rows."""
        yield _EVERYONE, _EVERYONE, np.arange(len(self.vectors))
        for (attribute, group), rows in self.groups.items():
            yield attribute, group, rows


def diversity_of(
    everyone: Mapping[str, DescribedPeople],
    embeddings: Mapping[str, pl.DataFrame],
    seed: int,
) -> Diversity:
    """Measure how varied people's vectors are, whole and by group."""
    notes: list[str] = []
    sets = []
    for name, people in everyone.items():
        if name in embeddings and people.people.height:
            found, said = _set_of(name, people, embeddings[name])
            sets.append(found)
            notes += [f"{name}: {text}" if len(everyone) > 1 else text for text in said]
    if not sets:
        return Diversity(notes=tuple(notes))
    tables: dict[str, pl.DataFrame] = {}
    drawn: dict[str, dict[str, pl.DataFrame]] = {}
    tables["Diversity: Vendi score"] = _vendi(sets, seed)
    for metric, (table, curves) in _distances(sets, seed).items():
        tables[f"Distances between pairs: {metric}"] = table
        drawn[f"Distances between pairs: {metric}"] = curves
    caption = "Map of embeddings (t-SNE)"
    tables[caption], drawn[caption] = _maps(sets, seed)
    if len(everyone) == 1:
        tables = {key: table.drop("dataset") for key, table in tables.items()}
    if any(len(s.vectors) * (len(s.vectors) - 1) // 2 > PAIRS for s in sets):
        notes.append(
            f"where there are more than {PAIRS:,} pairs, the distances are of {PAIRS:,} drawn ones."
        )
    if any(len(s.vectors) > MAPPED for s in sets):
        notes.append(f"the map shows {MAPPED:,} drawn at random.")
    if any(min(s.vectors.shape) > EXACT for s in sets):
        notes.append("the Vendi score of the largest sets is estimated; its ± is 1.96 such errors.")
    return Diversity(tables, drawn, tuple(notes))


def _set_of(name: str, people: DescribedPeople, embeddings: pl.DataFrame) -> tuple[_Set, list[str]]:
    """Bring vectors to people, and say who has none."""
    models = embeddings["model"].unique().sort().to_list()
    if len(models) > 1:
        raise SpecError(
            "the embeddings are of several models",
            expected="one model's vectors: each sees other differences between people",
            found=", ".join(models[:10]),
            where=name,
        )
    unit, met = _units(name, people.people, embeddings)
    frame, vectors, notes = _directed(met)
    if met.height < embeddings.height:
        strangers = embeddings.height - met.height
        notes.append(f"{strangers:,} vectors are of nobody who is described: left out.")
    place = frame.select(pl.col("unit"), row=pl.int_range(pl.len(), dtype=pl.Int64))
    who = people.people.select("instance_id", "subject_id", unit=unit).join(
        place, on="unit", how="left", maintain_order="left"
    )
    without = who["row"].null_count()
    if without:
        notes.append(f"{without:,} of {who.height:,} people have no vector: not in the diversity.")
    first = who.drop_nulls("row").unique("row", keep="first").sort("row")
    owner = pl.coalesce(
        pl.concat_str(pl.lit("s"), "subject_id"), pl.concat_str(pl.lit("u"), "unit")
    )
    subject = first.select(at=owner.rank("dense").cast(pl.Int64) - 1)["at"].to_numpy()
    if first["subject_id"].is_null().all():
        notes.append("whose photos they are is not known: each vector counts as a subject.")
    row_of = who.select(unit_id="instance_id", row="row").drop_nulls()
    return _Set(name, vectors, subject, _rows_of_groups(people, row_of)), notes


def _directed(frame: pl.DataFrame) -> tuple[pl.DataFrame, npt.NDArray[np.float32], list[str]]:
    """Take the vectors out of their table, and leave out those without a direction."""
    width = int(frame["embedding"].list.len()[0])
    vectors = frame["embedding"].list.to_array(width).to_numpy()
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    some = np.abs(vectors).max(axis=1, initial=0.0) > 0.0
    if some.all():
        return frame, vectors, []
    note = f"{int((~some).sum()):,} vectors of length 0 have no direction: left out."
    return frame.filter(pl.Series(some)), vectors[some], [note]


def _rows_of_groups(
    people: DescribedPeople, row_of: pl.DataFrame
) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
    groups = {}
    for names in people.by:
        known = known_rows(people, names)
        placed = known.join(row_of, on="unit_id").select("group", "row").unique()
        parts = {key: part for (key,), part in placed.group_by("group")}
        for group in known["group"].unique(maintain_order=True):
            rows = (
                parts[group]["row"].sort().to_numpy() if group in parts else np.empty(0, np.int64)
            )
            groups["*".join(names), group] = rows
    return groups


def _units(name: str, people: pl.DataFrame, embeddings: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """Choose whether ids are people's or images', and keep the vectors of this dataset."""
    for unit in ("instance_id", "image_id"):
        met = embeddings.filter(pl.col("instance_id").is_in(people[unit].implode()))
        if met.height:
            return unit, met.select(unit="instance_id", embedding="embedding").sort("unit")
    raise JoinError(
        "no vector is of anybody in the dataset",
        expected="ids of people or images such as "
        + ", ".join(map(repr, people["instance_id"].head(3).to_list())),
        found=", ".join(map(repr, embeddings["instance_id"].head(3).to_list())) or "no vector",
        where=name,
    )


def _vendi(sets: list[_Set], seed: int) -> pl.DataFrame:
    """Give each group's Vendi score, and that of as many subjects of each, which compares."""
    attributes = dict.fromkeys(a for s in sets for a, _, _ in s.sides())
    size = {a: _draw_size(sets, a) for a in attributes}
    rows = []
    for s in sets:
        for attribute, group, at in s.sides():
            vectors, subject = s.vectors[at], s.subject[at]
            whole = vendi_score(vectors, seed=seed)
            even = vendi_of_subjects(vectors, subject, size[attribute], level=LEVEL, seed=seed)
            rows.append(
                {
                    "dataset": s.name,
                    "attribute": attribute,
                    "group": group,
                    "vectors": len(at),
                    "subjects": len(np.unique(subject)),
                    "Vendi score": whole.value,
                    "±": 1.96 * whole.standard_error if whole.method == "lanczos" else None,
                    "subjects drawn": even.subjects or None,
                    "Vendi score of these": even.value,
                    "from": even.low,
                    "to": even.high,
                    "status": even.reason or "ok",
                }
            )
    numbers = ("Vendi score", "±", "Vendi score of these", "from", "to")
    table = pl.DataFrame(
        rows,
        schema_overrides=dict.fromkeys(numbers, pl.Float64) | {"subjects drawn": pl.Int64},
        infer_schema_length=None,
    )
    return table if table["±"].is_not_null().any() else table.drop("±")


def _draw_size(sets: list[_Set], attribute: str) -> int:
    """Choose how many subjects to draw: half of the smallest group that has 20 or more."""
    counts = [
        len(np.unique(s.subject[at])) for s in sets for a, _, at in s.sides() if a == attribute
    ]
    able = [n // 2 for n in counts if n >= 2 * _SMALLEST]
    return min([_LARGEST, *able]) if able else 0


def _distances(
    sets: list[_Set], seed: int
) -> dict[str, tuple[pl.DataFrame, dict[str, pl.DataFrame]]]:
    """Give quantiles of the distances of pairs, and their whole distribution to draw."""
    rows: dict[str, list[dict[str, object]]] = {metric: [] for metric in METRICS}
    curves: dict[str, dict[str, list[pl.DataFrame]]] = {metric: {} for metric in METRICS}
    for s in sets:
        known = len(np.unique(s.subject)) < len(s.subject)
        for attribute, group, at in s.sides():
            subject = s.subject[at] if known else None
            found = pairwise_distances(s.vectors[at], subject=subject, seed=seed)
            row = {"dataset": s.name, "attribute": attribute, "group": group, "vectors": len(at)}
            title, line = _line_of(s.name, attribute, group, len(sets))
            for metric in METRICS:
                rows[metric].append(row | _numbers_of(found, metric))
                if found.pairs:
                    distance = found.quantiles(metric, _SHARES)
                    curve = pl.DataFrame({"distance": distance, "share": _SHARES})
                    curves[metric].setdefault(title, []).append(
                        curve.select(pl.lit(line).alias("group"), pl.all())
                    )
    floats = dict.fromkeys(("% of one subject", *NUMBER_QUANTILES, "mean"), pl.Float64)
    frames = {
        metric: pl.DataFrame(rows[metric], schema_overrides=floats, infer_schema_length=None)
        for metric in METRICS
    }
    return {
        metric: (
            frame if frame["% of one subject"].count() else frame.drop("% of one subject"),
            {title: pl.concat(parts) for title, parts in curves[metric].items()},
        )
        for metric, frame in frames.items()
    }


def _numbers_of(found: Distances, metric: str) -> dict[str, float | int | None]:
    within = None if found.within is None else 100.0 * found.within
    row = {"pairs": found.pairs, "% of one subject": within}
    if not found.pairs:
        return row | dict.fromkeys((*NUMBER_QUANTILES, "mean"))
    quantiles = found.quantiles(metric, list(NUMBER_QUANTILES.values())).tolist()
    mean = float(found.values[METRICS.index(metric)].mean())
    return row | dict(zip(NUMBER_QUANTILES, quantiles, strict=True)) | {"mean": mean}


def _line_of(dataset: str, attribute: str, group: str, several: int) -> tuple[str, str]:
    """Name the figure that a curve stands in, and the curve."""
    if attribute == _EVERYONE:
        return _EVERYONE, dataset if several > 1 else _EVERYONE
    return (f"{dataset}: {attribute}" if several > 1 else attribute), group


def _maps(sets: list[_Set], seed: int) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Lay people out by t-SNE, and count whose nearest neighbour is of their own group."""
    rows, drawn = [], {}
    for s in sets:
        n = len(s.vectors)
        rng = np.random.default_rng(seed)
        shown = np.sort(rng.choice(n, MAPPED, replace=False)) if n > MAPPED else np.arange(n)
        places = map_vectors(s.vectors[shown], seed=seed)
        if places is None or len(np.unique(s.subject[shown])) < 2:
            continue
        nearest = _nearest(s.vectors[shown], s.subject[shown])
        for attribute in dict.fromkeys(a for a, _ in s.groups):
            label, counts = _labels(s, attribute, shown)
            single = (counts == 1) & (counts[nearest] == 1)
            same = label[single] == label[nearest[single]]
            shares = np.bincount(label[counts == 1]) / max(int((counts == 1).sum()), 1)
            judged = bool(single.any())
            rows.append(
                {
                    "dataset": s.name,
                    "attribute": attribute,
                    "people drawn": int((counts == 1).sum()),
                    "% nearest to their own group": 100.0 * float(same.mean()) if judged else None,
                    "% if groups were mixed": 100.0 * float(shares @ shares) if judged else None,
                }
            )
            names = [g for a, g in s.groups if a == attribute]
            title = f"{s.name}: {attribute}" if len(sets) > 1 else attribute
            drawn[title] = pl.DataFrame(
                {
                    "group": [names[at] for at in label[counts == 1]],
                    "x": places[counts == 1, 0],
                    "y": places[counts == 1, 1],
                }
            )
    schema = {"dataset": pl.String, "attribute": pl.String, "people drawn": pl.Int64}
    schema |= dict.fromkeys(("% nearest to their own group", "% if groups were mixed"), pl.Float64)
    return pl.DataFrame(rows, schema=schema), drawn


def _labels(
    s: _Set, attribute: str, shown: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Give each shown row its group's number, and count its groups: those in one are drawn."""
    label, counts = np.zeros(len(s.vectors), np.int64), np.zeros(len(s.vectors), np.int64)
    for k, rows in enumerate(rows for (a, _), rows in s.groups.items() if a == attribute):
        label[rows] = k
        counts[rows] += 1
    return label[shown], counts[shown]


def _nearest(
    vectors: npt.NDArray[np.float32], subject: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Find the row most alike by cosine that is no other photo of the same subject."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = unit @ unit.T
    alike[subject[:, None] == subject[None, :]] = -np.inf
    return np.asarray(np.argmax(alike, axis=1), dtype=np.int64)
