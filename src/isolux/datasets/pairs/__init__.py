"""Pairs that a verifier compared, alone: one row a pair, with the groups of either side.

A score or a distance, whether both are one person, and who they are by group: what a verification
test leaves behind where the pictures stay at home. With ids a picture may be in several pairs;
without them every pair is of two people of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError, format_columns
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import ATTRIBUTES, INSTANCES, check
from isolux.datasets._tables import find_first_column_ignoring_case
from isolux.datasets._wide_table import melt_table_to_attribute_rows
from isolux.datasets.pairs.clusters import (
    add_clusters_of_images,
    caution_on_contradictions,
    caution_on_repeated_rows,
    flag_first_row_of_pair,
    note_cross_group_pairs,
)
from isolux.datasets.pairs.genuine_pairs import (
    check_one_score_per_pair,
    check_pair_labels_agree,
    read_or_derive_is_genuine,
)
from isolux.io.cell_parsing import as_numbers, as_text, first_as_text
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.ids import read_ids
from isolux.io.refusals import refuse_cells, require_columns

INFO = DatasetInfo(
    title="pairs that a verifier compared",
    summary="One row a pair: a score, whether both are one person, the groups of either side.",
    references=(
        Reference(
            key="biometric-testing",
            citation="ISO/IEC 19795-1:2021. Information technology: Biometric performance testing"
            " and reporting. Part 1: Principles and framework.",
        ),
    ),
    licence="the licence of your table",
    label_source="declared by the user",
    assumptions=(
        "each row is one comparison",
        "without ids, pairs are independent of one another",
    ),
    task="face_verification",
)


def load(
    path: str | Path,
    *,
    first: str | None = None,
    second: str | None = None,
    genuine: str | None = None,
    score: str | None = None,
    model: str | None = None,
    format: str | None = None,  # noqa: A002  (as in read_table)
) -> Dataset:
    r"""Read a table of pairs: the people in them, and what a model said of them.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, JSON or Arrow. Two columns ``race_a, race_b`` (or ``race_1,
        race_2``, ``race1, race2``, ``first_race, second_race``, …) are the attribute ``race`` of
        either side; one column alone is of both. ``subject_a, subject_b`` (``person``,
        ``identity``, ``name``) say who they are.
    first, second : str, optional
        The columns with the ids of the two pictures. Not given: the first there are of
        ``instance_id`` and ``other_id``, ``id1`` and ``id2``, ``image_a`` and ``image_b``, …;
        without any, every pair is of two people of its own.
    genuine : str, optional
        The column that says whether both are one person: 1 or 0, true or false, yes or no, genuine
        or impostor, same or different, match or nonmatch. Not given: the first there is of
        ``genuine``, ``same``, ``match``, ``label``, …; else where ``subject_a`` is ``subject_b``.
    score : str, optional
        The column with the similarity or distance; empty: the comparison failed. Not given: the
        first there is of ``score``, ``similarity``, ``cosine``, ``distance``, ….
    model : str, optional
        The model's name; not given: the column ``model``, else the column of the score.
    format : str, optional
        ``csv``, ``tsv``, ``parquet``, ``json``, ``jsonlines`` or ``arrow``; by suffix where not
        given.

    Returns
    -------
    Dataset
        ``outputs`` are the pairs: ``model, instance_id, other_id, score, genuine``. Clusters are
        the people where they are told, else those whom genuine pairs connect, else the pairs; two
        people who are compared with each other alone are one cluster.

    Raises
    ------
    FileError, TableError, SpecError, UnknownNameError
        A file that cannot be read; a column that is not there; a score that is no finite number;
        a picture with two groups; words that do not say whether a pair is genuine; a pair that is
        called both genuine and impostors.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pairs.csv"
    ...     _ = file.write_text("same,dist,race_a,race_b\n1,0.2,Black,Black\n0,0.9,Black,White\n")
    ...     found = load(file)
    >>> found.bundled_predictions.select("instance_id", "other_id", "score", "genuine").row(0)
    ('pair 1, first', 'pair 1, second', 0.2, True)
    >>> found.attributes.filter(unit_id="pair 2, second")["value"].to_list()
    ['White']
    """
    source = str(path)
    frame = read_table(path, format=format)
    columns = find_pair_columns(
        frame, source=source, first=first, second=second, score=score, genuine=genuine
    )
    ids = _read_image_ids_of_pairs(frame, columns, source)
    people = (
        tuple(first_as_text(frame[name]) for name in columns.people) if columns.people else None
    )
    is_genuine = read_or_derive_is_genuine(frame, columns.genuine, people, source)
    check_pair_labels_agree(ids, is_genuine, columns.genuine, source)
    is_first_of_pair = flag_first_row_of_pair(*ids)
    units, notes = _build_image_units_with_clusters(
        ids, people, is_genuine, is_first_of_pair, source
    )
    attributes, attribute_notes = _build_pair_attribute_rows(
        frame, columns, ids, is_genuine, is_first_of_pair, source
    )
    if columns.ids is None:
        notes = [*caution_on_repeated_rows(frame, columns.score), *notes]
    model_names = frame[columns.model] if columns.model and model is None else None
    return Dataset(
        name="pairs",
        info=INFO,
        instances=check(units, INSTANCES, source=source),
        attributes=attributes,
        images=units.select("image_id").unique(maintain_order=True),
        inputs={source: sha256_file(path)},
        notes=(*notes, *attribute_notes),
        bundled_predictions=_build_pair_scores(
            frame, columns, ids, is_genuine, model_names, model or columns.score, source
        ),
    )


def _read_image_ids_of_pairs(
    frame: pl.DataFrame, columns: PairColumns, source: str
) -> tuple[pl.Series, pl.Series]:
    if columns.ids is not None:
        first_column, second_column = columns.ids
        return read_ids(frame, first_column, source), read_ids(frame, second_column, source)
    number = pl.int_range(1, frame.height + 1, eager=True).cast(pl.String)
    return tuple(
        pl.select(pl.format("pair {}, {}", number, pl.lit(side_word)))
        .to_series()
        .alias("instance_id")
        for side_word in ("first", "second")
    )  # type: ignore[return-value]


def _build_image_units_with_clusters(
    ids: tuple[pl.Series, pl.Series],
    people: tuple[pl.Series, ...] | None,
    is_genuine: pl.Series,
    is_first_of_pair: npt.NDArray[np.bool_],
    source: str,
) -> tuple[pl.DataFrame, list[str]]:
    """List the pictures once, with their person and their cluster, and say what the latter are."""
    unit_rows = pl.DataFrame({"instance_id": pl.concat([ids[0], ids[1]])})
    if people is not None:
        unit_rows = unit_rows.with_columns(subject_id=pl.concat([people[0], people[1]]))
        _check_one_value_per_image(unit_rows, "subject_id", "person", source)
    unique_units = unit_rows.unique("instance_id", keep="first", maintain_order=True)
    positions = unique_units.select("instance_id", place=pl.int_range(pl.len()))
    first, second = (
        side_ids.to_frame("instance_id")
        .join(positions, on="instance_id", how="left", maintain_order="left")["place"]
        .to_numpy()
        for side_ids in ids
    )
    units, note = add_clusters_of_images(
        unique_units, (first, second), is_genuine, is_first_of_pair
    )
    contradiction_notes = caution_on_contradictions(
        ids, (first, second), is_genuine, is_first_of_pair, unique_units.height
    )
    return units.with_columns(image_id="instance_id"), [*contradiction_notes, note]


def _check_one_value_per_image(
    unit_rows: pl.DataFrame, column: str, value_name: str, source: str
) -> None:
    values = unit_rows.drop_nulls(column).unique(["instance_id", column], maintain_order=True)
    repeated = values.filter(pl.col("instance_id").is_duplicated())
    if repeated.height:
        image_id = repeated["instance_id"][0]
        group_values = repeated.filter(instance_id=image_id)[column].to_list()
        raise TableError(
            f"{repeated['instance_id'].n_unique():,} picture(s) have another {value_name} in one"
            " pair than in another",
            expected=f"one {value_name} for each picture",
            found=f"{image_id!r}: " + ", ".join(map(repr, group_values[:3])),
            where=source,
        )


def _build_pair_attribute_rows(
    frame: pl.DataFrame,
    columns: PairColumns,
    ids: tuple[pl.Series, pl.Series],
    is_genuine: pl.Series,
    is_first_of_pair: npt.NDArray[np.bool_],
    source: str,
) -> tuple[pl.DataFrame, list[str]]:
    """Give each picture its groups; say how many pairs are of two."""
    units = pl.concat([ids[0], ids[1]])
    tables: list[pl.DataFrame] = [ATTRIBUTES.empty()]
    notes: list[str] = []
    for name, (first_column, second_column) in columns.attribute_columns.items():
        values = pl.concat([as_text(frame[first_column]), as_text(frame[second_column])]).alias(
            name
        )
        unit_rows = pl.DataFrame({"instance_id": units, name: values})
        if first_column != second_column or columns.ids is None:
            _check_one_value_per_image(unit_rows, name, name, source)
        rows = unit_rows.unique(maintain_order=True)
        rows = rows.filter(pl.col(name).is_not_null() | ~pl.col("instance_id").is_duplicated())
        tables.append(
            melt_table_to_attribute_rows(rows.select(name), rows["instance_id"], source=source)
        )
        notes += note_cross_group_pairs(
            name,
            as_text(frame[first_column]),
            as_text(frame[second_column]),
            is_genuine,
            is_first_of_pair,
        )
    return check(pl.concat(tables), ATTRIBUTES, source=source), notes


def _build_pair_scores(
    frame: pl.DataFrame,
    columns: PairColumns,
    ids: tuple[pl.Series, pl.Series],
    is_genuine: pl.Series,
    models: pl.Series | None,
    model: str,
    source: str,
) -> pl.DataFrame:
    score = as_numbers(frame[columns.score], source=source, column=columns.score).fill_nan(None)
    is_infinite = score.is_infinite().fill_null(value=False)
    refuse_cells(
        is_infinite,
        score,
        "{n} score(s) are infinite",
        "how alike the two are, or nothing where the comparison failed",
        source,
        column=columns.score,
    )
    model_names = pl.repeat(model, frame.height, eager=True)
    if models is not None:
        model_names = as_text(models).fill_null(model)
    check_one_score_per_pair(ids, score.alias(columns.score), model_names, source)
    return pl.DataFrame(
        {
            "model": model_names,
            "instance_id": ids[0],
            "other_id": ids[1],
            "score": score,
            "genuine": is_genuine,
        }
    )


# Which column of a table of pairs is which: ids, people, score, truth, and groups of either side.

_ID_COLUMN_PAIRS = (
    ("instance_id", "other_id"),
    ("id_a", "id_b"),
    ("id1", "id2"),
    ("id_1", "id_2"),
    ("image_a", "image_b"),
    ("image1", "image2"),
    ("image_1", "image_2"),
    ("img_a", "img_b"),
    ("img1", "img2"),
    ("img_1", "img_2"),
    ("file_a", "file_b"),
    ("file1", "file2"),
    ("file_1", "file_2"),
    ("path1", "path2"),
    ("path_1", "path_2"),
    ("left", "right"),
    ("probe", "gallery"),
    ("probe", "reference"),
    ("first", "second"),
)
_PERSON_COLUMNS = (
    "subject",
    "subject_id",
    "person",
    "person_id",
    "identity",
    "identity_id",
    "name",
)
_SCORE_COLUMNS = ("score", "similarity", "cosine", "cosine_similarity", "sim", "distance", "dist")
_GENUINE_COLUMNS = (
    "genuine",
    "is_genuine",
    "same",
    "is_same",
    "issame",
    "same_person",
    "match",
    "is_match",
    "mated",
    "is_mated",
    "label",
    "target",
)
_SIDE_SUFFIXES = (
    ("_a", "_b"),
    ("_1", "_2"),
    ("1", "2"),
    ("_first", "_second"),
    ("_left", "_right"),
    ("_probe", "_gallery"),
    ("_probe", "_reference"),
    ("A", "B"),
)
_SIDE_PREFIXES = (
    ("a_", "b_"),
    ("first_", "second_"),
    ("left_", "right_"),
    ("probe_", "gallery_"),
    ("probe_", "reference_"),
)
_MODEL_COLUMN = "model"


@dataclass(frozen=True, slots=True)
class PairColumns:
    """The columns of a table of pairs."""

    score: str
    genuine: str | None
    ids: tuple[str, str] | None
    people: tuple[str, str] | None
    attribute_columns: dict[str, tuple[str, str]]
    model: str | None


def find_pair_columns(
    frame: pl.DataFrame,
    *,
    source: str,
    first: str | None,
    second: str | None,
    score: str | None,
    genuine: str | None,
) -> PairColumns:
    """Find each column, by its name where none is given."""
    require_columns(frame, (first, second, score, genuine), source)
    columns = frame.columns
    if (first is None) != (second is None):
        raise SpecError(
            "one side of a pair has an id and the other has none",
            expected="--data-option first=COLUMN and --data-option second=COLUMN, or neither",
            found=f"only {'first' if first else 'second'}={first or second}",
            where=source,
        )
    ids = (
        (first, second) if first and second else _find_first_column_pair(_ID_COLUMN_PAIRS, columns)
    )
    used_columns = {score, genuine, *(ids or ())}
    unused_columns = [name for name in columns if name not in used_columns]
    score_column = score or find_first_column_ignoring_case(_SCORE_COLUMNS, unused_columns)
    if score_column is None:
        raise _build_missing_pair_column_error(
            "how alike the two of a pair are",
            _SCORE_COLUMNS,
            "--score-column COLUMN",
            columns,
            source,
        )
    genuine_column = genuine or find_first_column_ignoring_case(
        _GENUINE_COLUMNS, [name for name in unused_columns if name != score_column]
    )
    unused_columns = [name for name in unused_columns if name not in (score_column, genuine_column)]
    attribute_columns = _map_attributes_to_column_pairs(
        [name for name in unused_columns if name != _MODEL_COLUMN]
    )
    people = next(
        (
            attribute_columns.pop(name)
            for name in _PERSON_COLUMNS
            if _has_two_different_columns(attribute_columns.get(name))
        ),
        None,
    )
    if genuine_column is None and people is None:
        raise _build_missing_pair_column_error(
            "which pairs are of one person",
            (*_GENUINE_COLUMNS[:6], "subject_a and subject_b"),
            "--data-option genuine=COLUMN",
            columns,
            source,
        )
    return PairColumns(
        score_column,
        genuine_column,
        ids,
        people,
        attribute_columns,
        _MODEL_COLUMN if _MODEL_COLUMN in unused_columns else None,
    )


def _build_missing_pair_column_error(
    description: str, valid_names: Sequence[str], flag: str, columns: Sequence[str], source: str
) -> SpecError:
    return SpecError(
        f"no column says {description}",
        expected="one of " + ", ".join(valid_names),
        found=format_columns(columns),
        where=source,
        hint=f"name it with {flag}",
    )


def _find_first_column_pair(
    column_pairs: Sequence[tuple[str, str]], columns: Sequence[str]
) -> tuple[str, str] | None:
    folded = {name.strip().lower(): name for name in reversed(columns)}
    return next(
        ((folded[a], folded[b]) for a, b in column_pairs if a in folded and b in folded), None
    )


def _has_two_different_columns(column_pair: tuple[str, str] | None) -> bool:
    return column_pair is not None and column_pair[0] != column_pair[1]


def _map_attributes_to_column_pairs(columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Pair the two columns of an attribute, ``race_a, race_b``; a single column is of both."""
    column_set, pairs_by_name = set(columns), {}
    used_columns: set[str] = set()
    for name in columns:
        if name in used_columns:
            continue
        stem, partner = next(
            (
                (s, o)
                for s, o in _list_partner_column_names(name)
                if o in column_set and o not in used_columns
            ),
            (name, name),
        )
        pairs_by_name[stem if stem not in pairs_by_name else name] = (name, partner)
        used_columns |= {name, partner}
    return pairs_by_name


def _list_partner_column_names(name: str) -> list[tuple[str, str]]:
    by_suffix = [
        (name[: -len(a)], name[: -len(a)] + b) for a, b in _SIDE_SUFFIXES if name.endswith(a)
    ]
    by_prefix = [
        (name[len(a) :], b + name[len(a) :]) for a, b in _SIDE_PREFIXES if name.startswith(a)
    ]
    return [
        (stem.rstrip("_"), partner)
        for stem, partner in [*by_suffix, *by_prefix]
        if stem.rstrip("_")
    ]
