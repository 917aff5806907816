"""FairFace: 108,501 face images labelled for race (7), perceived gender (2) and age (9).

Reads the label CSV (``file, age, gender, race, service_test``), with or without a model's answers
in further columns, and tables of its faces that call their id ``image_id``. Three annotators
judged each face; a value is what two of them agreed on (section 3.3), not what a person says of
themselves.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.datasets._date_damage import (
    note_repaired_dates,
    raise_for_date_cells,
    recover_range_from_date,
)
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._wide_table import (
    build_image_table_of_instances,
    build_instance_table,
    choose_row_ids,
    cluster_by_row_and_offer_columns,
    melt_table_to_attribute_rows,
)
from isolux.io.cell_parsing import as_text, first_true_row
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.refusals import refuse_cells, require_columns

OLDEST_AGE = "more than 70"
AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", OLDEST_AGE)
GENDERS = ("Male", "Female")
RACES = (
    "White",
    "Black",
    "Latino_Hispanic",
    "East Asian",
    "Southeast Asian",
    "Indian",
    "Middle Eastern",
)
_SERVICE_TEST = ("True", "False")
_ALTERNATIVE_OLDEST_AGE = "70+"  # as the authors' predict.py writes it

INFO = DatasetInfo(
    title="FairFace",
    summary="108,501 faces from Flickr, balanced over seven races; perceived gender and age.",
    references=(citations.FAIRFACE.with_location("section 3"),),
    licence="CC BY 4.0",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="perceived",
    terms=(
        ("gender", "perceived gender presentation"),
        ("race", "perceived race"),
        ("age", "perceived age"),
        ("service_test", "in the sample for commercial services"),
    ),
    assumptions=(
        "each face is another person: the dataset names no subjects",
        "the groups come from annotators' judgements, not from what people say about themselves",
    ),
)


def load(
    path: str | Path,
    *,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    repair_ages: bool = False,
) -> Dataset:
    r"""Load FairFace's labels.

    ``cluster`` of ``isolux.load`` may be a column of the table. Not given: faces are clusters.

    Parameters
    ----------
    path : str or Path
        The label table; columns ``age``, ``gender`` and ``race``, perhaps ``service_test``, and
        an id. Every other column (``predicted_gender``) is kept as an attribute.
    id : str, optional
        The column that identifies a face; not given: ``file``, else ``image_id``.
    repair_ages : bool
        Turn ages that a spreadsheet made dates of (``9-Mar``) back into ranges. The number of
        them stands in ``notes``.

    Returns
    -------
    Dataset
        Attributes ``age`` (nine ranges; ``70+`` is read as ``more than 70``), ``gender`` (two),
        ``race`` (seven), ``service_test``; null where a cell is empty.

    Raises
    ------
    TableError
        A label that FairFace does not have, with its row; ages that a spreadsheet damaged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "labels.csv"
    ...     _ = file.write_text("file,age,gender,race\nval/1.jpg,70+,Female,Indian\n")
    ...     load(file).values_of("age")["value"].to_list()
    ['more than 70']
    """
    source = str(path)
    frame = read_table(path)
    require_columns(frame, ("age", "gender", "race"), source)
    id_column = id or next((name for name in ("file", "image_id") if name in frame.columns), "file")
    row_ids = choose_row_ids(frame, id_column, source)
    if id_column == "file":
        check_paths_stay_inside(row_ids.ids, source, "file")
    labels, notes = _check_and_normalise_labels(
        frame.drop(id_column), repair_ages=repair_ages, source=source
    )
    instances = build_instance_table(frame, row_ids, None, source)
    dataset = Dataset(
        name="fairface",
        info=INFO,
        instances=instances,
        attributes=melt_table_to_attribute_rows(labels, row_ids.ids, source=source),
        images=build_image_table_of_instances(
            instances, are_paths=id_column == "file", root=None, source=source
        ),
        inputs={source: sha256_file(path)},
        notes=tuple(notes),
        id_columns={id_column: "instance_id"},
    )
    return cluster_by_row_and_offer_columns(dataset, frame, source)


def _check_and_normalise_labels(
    frame: pl.DataFrame, *, repair_ages: bool, source: str
) -> tuple[pl.DataFrame, list[str]]:
    """Check the declared columns, and bring every column of ages to one spelling."""
    notes: list[str] = []
    columns: list[pl.Series] = []
    for cells in frame.get_columns():
        name = cells.name
        if name == "age" or _is_column_of_fairface_ages(cells):
            columns.append(
                _normalise_age_ranges(as_text(cells), notes, repair=repair_ages, source=source)
            )
        elif name in _LABELS_BY_COLUMN:
            texts = as_text(cells)
            if name == "service_test":  # spreadsheets write TRUE, Parquet has booleans
                texts = texts.str.to_titlecase()
            _check_labels_are_declared(texts, _LABELS_BY_COLUMN[name], source)
            columns.append(texts)
        else:
            columns.append(cells)
    notes += [
        f"{column.null_count():,} face(s) have no {column.name}."
        for column in columns
        if column.name in ("age", *_LABELS_BY_COLUMN) and column.null_count()
    ]
    return pl.DataFrame(columns), notes


_LABELS_BY_COLUMN = {"gender": GENDERS, "race": RACES, "service_test": _SERVICE_TEST}


def _is_column_of_fairface_ages(cells: pl.Series) -> bool:
    """Tell whether a further column (``predicted_age``) speaks the same nine ages."""
    if cells.dtype != pl.String:
        return False
    values = set(cells.unique().drop_nulls().to_list())
    if len(values) > 100 or not values & set(AGES[3:]):
        return False
    other_texts = values - {*AGES, _ALTERNATIVE_OLDEST_AGE}
    return all(recover_range_from_date(age_text, AGES) for age_text in other_texts)


def _normalise_age_ranges(
    age_ranges: pl.Series, notes: list[str], *, repair: bool, source: str
) -> pl.Series:
    n_alternative = int((age_ranges == _ALTERNATIVE_OLDEST_AGE).sum())
    if n_alternative:
        age_ranges = age_ranges.replace(_ALTERNATIVE_OLDEST_AGE, OLDEST_AGE)
        notes.append(
            f"{n_alternative:,} cell(s) of {age_ranges.name!r} say {_ALTERNATIVE_OLDEST_AGE!r}"
            f" and are read as {OLDEST_AGE!r}; answers in another file that say"
            f" {_ALTERNATIVE_OLDEST_AGE!r} need"
            f' --label-map "{OLDEST_AGE}={_ALTERNATIVE_OLDEST_AGE}".'
        )
    unknown_ages = age_ranges.filter(~age_ranges.is_in(AGES).fill_null(value=True))
    age_by_cell = {
        age_text: age
        for age_text in unknown_ages.unique(maintain_order=True).to_list()
        if (age := recover_range_from_date(age_text, AGES)) is not None
    }
    if age_by_cell and not repair:
        raise_for_date_cells(age_ranges, age_by_cell, "ages", "one of " + ", ".join(AGES), source)
    notes += note_repaired_dates(age_ranges, age_by_cell)
    age_ranges = age_ranges.replace(age_by_cell) if age_by_cell else age_ranges
    _check_labels_are_declared(age_ranges, AGES, source)
    return age_ranges


def _check_labels_are_declared(labels: pl.Series, declared: tuple[str, ...], source: str) -> None:
    is_undeclared = ~labels.is_in(declared).fill_null(value=True)
    if is_undeclared.any():
        folded = {label.lower(): label for label in declared}
        near = difflib.get_close_matches(
            labels[first_true_row(is_undeclared)].lower(), folded, n=1, cutoff=0.5
        )
        refuse_cells(
            is_undeclared,
            labels,
            "{n} cell(s) hold a label that FairFace does not declare",
            "one of " + ", ".join(declared),
            source,
            hint=f"did you mean {folded[near[0]]!r}?" if near else None,
        )
