"""How varied a dataset's people look to a model: Vendi score, distances, a map, by group.

Part of ``description``: from people with their groups and a model's embeddings to tables and the
data of figures. FHIBE compares datasets by the Vendi score ("Dataset
diversity"), FairFace by the distances of all pairs (Figure 4) and a t-SNE map (Figure 3); neither
does so by group, where the number of people differs and so the score (``stats/diversity.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.api.describe.tables import (
    LEVEL,
    NUMBER_QUANTILES,
    DescribedPeople,
    select_known_memberships,
)
from isolux.core.errors import JoinError, SpecError
from isolux.stats.diversity import MAX_EXACT_SIZE, rarefied_vendi_score, vendi_score
from isolux.stats.pairwise import (
    MAX_PAIRS,
    METRICS,
    Distances,
    map_to_plane_by_tsne,
    sample_pairwise_distances,
)

MAX_MAPPED = 1_500
"""Maximum number of people on the map; of more, a random sample."""
_MAX_DRAWN_SUBJECTS, _MIN_DRAWN_SUBJECTS = (
    200,
    10,
)  # subjects drawn for the comparable Vendi score: at most, at least
_CURVE_SHARES = np.concatenate([[0.001, 0.003], np.linspace(0.01, 0.99, 99), [0.997, 0.999]])
_OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class DiversityTables:
    """Tables by caption, the data of their figures by title, and notes."""

    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    figure_tables: dict[str, dict[str, pl.DataFrame]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _EmbeddedPeople:
    """One dataset's embeddings ``[n, d]``, the subject of each, and the rows of each group."""

    name: str
    vectors: npt.NDArray[np.float32]
    subject: npt.NDArray[np.int64]
    groups: dict[tuple[str, str], npt.NDArray[np.int64]]

    def iterate_groups(self) -> Iterator[tuple[str, str, npt.NDArray[np.int64]]]:
        """Yield everyone, then each group of each attribute: attribute, group, rows."""
        yield _OVERALL, _OVERALL, np.arange(len(self.vectors))
        for (attribute, group), rows in self.groups.items():
            yield attribute, group, rows


def measure_diversity(
    people_by_name: Mapping[str, DescribedPeople],
    embeddings: Mapping[str, pl.DataFrame],
    seed: int,
) -> DiversityTables:
    """Measure the diversity of people's embeddings, overall and by group."""
    notes: list[str] = []
    sets = []
    for name, people in people_by_name.items():
        if name in embeddings and people.people.height:
            embedded_people, match_notes = _match_embeddings_to_people(
                name, people, embeddings[name]
            )
            sets.append(embedded_people)
            notes += [
                f"{name}: {text}" if len(people_by_name) > 1 else text for text in match_notes
            ]
    if not sets:
        return DiversityTables(notes=tuple(notes))
    tables: dict[str, pl.DataFrame] = {}
    figure_tables: dict[str, dict[str, pl.DataFrame]] = {}
    tables["Diversity: Vendi score"] = _build_vendi_table(sets, seed)
    for metric, (table, curves) in _build_distance_tables(sets, seed).items():
        tables[f"Distances between pairs: {metric}"] = table
        figure_tables[f"Distances between pairs: {metric}"] = curves
    caption = "Map of embeddings (t-SNE)"
    tables[caption], figure_tables[caption] = _build_tsne_maps(sets, seed)
    if len(people_by_name) == 1:
        tables = {key: table.drop("dataset") for key, table in tables.items()}
    if any(len(s.vectors) * (len(s.vectors) - 1) // 2 > MAX_PAIRS for s in sets):
        notes.append(
            f"where there are more than {MAX_PAIRS:,} pairs, the distances are of {MAX_PAIRS:,}"
            " drawn ones."
        )
    if any(len(s.vectors) > MAX_MAPPED for s in sets):
        notes.append(f"the map shows {MAX_MAPPED:,} drawn at random.")
    if any(min(s.vectors.shape) > MAX_EXACT_SIZE for s in sets):
        notes.append("the Vendi score of the largest sets is estimated; its ± is 1.96 such errors.")
    return DiversityTables(tables, figure_tables, tuple(notes))


def _match_embeddings_to_people(
    name: str, people: DescribedPeople, embeddings: pl.DataFrame
) -> tuple[_EmbeddedPeople, list[str]]:
    """Match embeddings to people by id, and note people without one."""
    models = embeddings["model"].unique().sort().to_list()
    if len(models) > 1:
        raise SpecError(
            "the embeddings are of several models",
            expected="one model's vectors: each sees other differences between people",
            found=", ".join(models[:10]),
            where=name,
        )
    unit, matched_rows = _detect_id_kind_and_filter(name, people.people, embeddings)
    frame, vectors, notes = _drop_zero_vectors(matched_rows)
    if matched_rows.height < embeddings.height:
        n_unmatched = embeddings.height - matched_rows.height
        notes.append(f"{n_unmatched:,} vectors are of nobody who is described: left out.")
    row_index = frame.select(pl.col("unit"), row=pl.int_range(pl.len(), dtype=pl.Int64))
    person_rows = people.people.select("instance_id", "subject_id", unit=unit).join(
        row_index, on="unit", how="left", maintain_order="left"
    )
    n_without_vector = person_rows["row"].null_count()
    if n_without_vector:
        notes.append(
            f"{n_without_vector:,} of {person_rows.height:,} people have no vector: not in"
            " the diversity."
        )
    first_owners = person_rows.drop_nulls("row").unique("row", keep="first").sort("row")
    subject_key = pl.coalesce(
        pl.concat_str(pl.lit("s"), "subject_id"), pl.concat_str(pl.lit("u"), "unit")
    )
    subject = first_owners.select(at=subject_key.rank("dense").cast(pl.Int64) - 1)["at"].to_numpy()
    if first_owners["subject_id"].is_null().all():
        notes.append("whose photos they are is not known: each vector counts as a subject.")
    row_by_unit = person_rows.select(unit_id="instance_id", row="row").drop_nulls()
    return _EmbeddedPeople(name, vectors, subject, _build_group_rows(people, row_by_unit)), notes


def _drop_zero_vectors(
    frame: pl.DataFrame,
) -> tuple[pl.DataFrame, npt.NDArray[np.float32], list[str]]:
    """Convert embeddings to an array without zero vectors, which have no direction."""
    width = int(frame["embedding"].list.len()[0])
    vectors = frame["embedding"].list.to_array(width).to_numpy()
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    has_direction = np.abs(vectors).max(axis=1, initial=0.0) > 0.0
    if has_direction.all():
        return frame, vectors, []
    note = f"{int((~has_direction).sum()):,} vectors of length 0 have no direction: left out."
    return frame.filter(pl.Series(has_direction)), vectors[has_direction], [note]


def _build_group_rows(
    people: DescribedPeople, row_by_unit: pl.DataFrame
) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
    groups = {}
    for names in people.by:
        memberships = select_known_memberships(people, names)
        member_rows = memberships.join(row_by_unit, on="unit_id").select("group", "row").unique()
        rows_by_group = {key: group_rows for (key,), group_rows in member_rows.group_by("group")}
        for group in memberships["group"].unique(maintain_order=True):
            rows = (
                rows_by_group[group]["row"].sort().to_numpy()
                if group in rows_by_group
                else np.empty(0, np.int64)
            )
            groups["*".join(names), group] = rows
    return groups


def _detect_id_kind_and_filter(
    name: str, people: pl.DataFrame, embeddings: pl.DataFrame
) -> tuple[str, pl.DataFrame]:
    """Detect whether ids are of people or images, and select this dataset's embeddings."""
    for unit in ("instance_id", "image_id"):
        matched_rows = embeddings.filter(pl.col("instance_id").is_in(people[unit].implode()))
        if matched_rows.height:
            return unit, matched_rows.select(unit="instance_id", embedding="embedding").sort("unit")
    raise JoinError(
        "no vector is of anybody in the dataset",
        expected="ids of people or images such as "
        + ", ".join(map(repr, people["instance_id"].head(3).to_list())),
        found=", ".join(map(repr, embeddings["instance_id"].head(3).to_list())) or "no vector",
        where=name,
    )


def _build_vendi_table(sets: list[_EmbeddedPeople], seed: int) -> pl.DataFrame:
    """Build the table of Vendi scores: of all, and of equally many subjects per group."""
    attributes = dict.fromkeys(a for s in sets for a, _, _ in s.iterate_groups())
    size = {a: _choose_draw_size(sets, a) for a in attributes}
    rows = []
    for s in sets:
        for attribute, group, rows_in_group in s.iterate_groups():
            vectors, subject = s.vectors[rows_in_group], s.subject[rows_in_group]
            group_score = vendi_score(vectors, seed=seed)
            comparable_score = rarefied_vendi_score(
                vectors, subject, size[attribute], level=LEVEL, seed=seed
            )
            rows.append(
                {
                    "dataset": s.name,
                    "attribute": attribute,
                    "group": group,
                    "vectors": len(rows_in_group),
                    "subjects": len(np.unique(subject)),
                    "Vendi score": group_score.value,
                    "±": 1.96 * group_score.standard_error
                    if group_score.method == "lanczos"
                    else None,
                    "subjects drawn": comparable_score.subjects or None,
                    "Vendi score of these": comparable_score.value,
                    "from": comparable_score.low,
                    "to": comparable_score.high,
                    "status": comparable_score.reason or "ok",
                }
            )
    numbers = ("Vendi score", "±", "Vendi score of these", "from", "to")
    table = pl.DataFrame(
        rows,
        schema_overrides=dict.fromkeys(numbers, pl.Float64) | {"subjects drawn": pl.Int64},
        infer_schema_length=None,
    )
    return table if table["±"].is_not_null().any() else table.drop("±")


def _choose_draw_size(sets: list[_EmbeddedPeople], attribute: str) -> int:
    """Choose how many subjects to draw: half of the smallest group that has 20 or more."""
    counts = [
        len(np.unique(s.subject[group_rows]))
        for s in sets
        for a, _, group_rows in s.iterate_groups()
        if a == attribute
    ]
    half_sizes = [n // 2 for n in counts if n >= 2 * _MIN_DRAWN_SUBJECTS]
    return min([_MAX_DRAWN_SUBJECTS, *half_sizes]) if half_sizes else 0


def _build_distance_tables(
    sets: list[_EmbeddedPeople], seed: int
) -> dict[str, tuple[pl.DataFrame, dict[str, pl.DataFrame]]]:
    """Build tables of distance quantiles, and the distributions for figures."""
    rows: dict[str, list[dict[str, object]]] = {metric: [] for metric in METRICS}
    curves: dict[str, dict[str, list[pl.DataFrame]]] = {metric: {} for metric in METRICS}
    for s in sets:
        has_repeated_subjects = len(np.unique(s.subject)) < len(s.subject)
        for attribute, group, group_rows in s.iterate_groups():
            subject = s.subject[group_rows] if has_repeated_subjects else None
            distances = sample_pairwise_distances(s.vectors[group_rows], subject=subject, seed=seed)
            row = {
                "dataset": s.name,
                "attribute": attribute,
                "group": group,
                "vectors": len(group_rows),
            }
            title, line = _format_figure_and_curve_names(s.name, attribute, group, len(sets))
            for metric in METRICS:
                rows[metric].append(row | _summarise_distances(distances, metric))
                if distances.pairs:
                    distance = distances.quantiles(metric, _CURVE_SHARES)
                    curve = pl.DataFrame({"distance": distance, "share": _CURVE_SHARES})
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
            {title: pl.concat(curve_tables) for title, curve_tables in curves[metric].items()},
        )
        for metric, frame in frames.items()
    }


def _summarise_distances(distances: Distances, metric: str) -> dict[str, float | int | None]:
    percent_one_subject = (
        None if distances.same_subject_share is None else 100.0 * distances.same_subject_share
    )
    row = {"pairs": distances.pairs, "% of one subject": percent_one_subject}
    if not distances.pairs:
        return row | dict.fromkeys((*NUMBER_QUANTILES, "mean"))
    quantiles = distances.quantiles(metric, list(NUMBER_QUANTILES.values())).tolist()
    mean = float(distances.values[METRICS.index(metric)].mean())
    return row | dict(zip(NUMBER_QUANTILES, quantiles, strict=True)) | {"mean": mean}


def _format_figure_and_curve_names(
    dataset: str, attribute: str, group: str, n_datasets: int
) -> tuple[str, str]:
    """Return the title of a curve's figure, and the curve's name."""
    if attribute == _OVERALL:
        return _OVERALL, dataset if n_datasets > 1 else _OVERALL
    return (f"{dataset}: {attribute}" if n_datasets > 1 else attribute), group


def _build_tsne_maps(
    sets: list[_EmbeddedPeople], seed: int
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Map people by t-SNE, and compute how often the nearest neighbour has the same group."""
    rows, map_tables = [], {}
    for s in sets:
        n = len(s.vectors)
        rng = np.random.default_rng(seed)
        mapped_rows = (
            np.sort(rng.choice(n, MAX_MAPPED, replace=False)) if n > MAX_MAPPED else np.arange(n)
        )
        coordinates = map_to_plane_by_tsne(s.vectors[mapped_rows], seed=seed)
        if coordinates is None or len(np.unique(s.subject[mapped_rows])) < 2:
            continue
        nearest = _find_nearest_of_other_subjects(s.vectors[mapped_rows], s.subject[mapped_rows])
        for attribute in dict.fromkeys(a for a, _ in s.groups):
            label, counts = _label_rows(s, attribute, mapped_rows)
            is_single = (counts == 1) & (counts[nearest] == 1)
            is_same_group = label[is_single] == label[nearest[is_single]]
            shares = np.bincount(label[counts == 1]) / max(int((counts == 1).sum()), 1)
            has_single = bool(is_single.any())
            rows.append(
                {
                    "dataset": s.name,
                    "attribute": attribute,
                    "people drawn": int((counts == 1).sum()),
                    "% nearest to their own group": 100.0 * float(is_same_group.mean())
                    if has_single
                    else None,
                    "% if groups were mixed": 100.0 * float(shares @ shares)
                    if has_single
                    else None,
                }
            )
            names = [g for a, g in s.groups if a == attribute]
            title = f"{s.name}: {attribute}" if len(sets) > 1 else attribute
            map_tables[title] = pl.DataFrame(
                {
                    "group": [names[code] for code in label[counts == 1]],
                    "x": coordinates[counts == 1, 0],
                    "y": coordinates[counts == 1, 1],
                }
            )
    schema = {"dataset": pl.String, "attribute": pl.String, "people drawn": pl.Int64}
    schema |= dict.fromkeys(("% nearest to their own group", "% if groups were mixed"), pl.Float64)
    return pl.DataFrame(rows, schema=schema), map_tables


def _label_rows(
    s: _EmbeddedPeople, attribute: str, mapped_rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the group number and the number of groups of each mapped row."""
    label, counts = np.zeros(len(s.vectors), np.int64), np.zeros(len(s.vectors), np.int64)
    for k, rows in enumerate(rows for (a, _), rows in s.groups.items() if a == attribute):
        label[rows] = k
        counts[rows] += 1
    return label[mapped_rows], counts[mapped_rows]


def _find_nearest_of_other_subjects(
    vectors: npt.NDArray[np.float32], subject: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Find the nearest row by cosine similarity, excluding rows of the same subject."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = unit @ unit.T
    similarity[subject[:, None] == subject[None, :]] = -np.inf
    return np.asarray(np.argmax(similarity, axis=1), dtype=np.int64)
