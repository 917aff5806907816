"""Annotation quality by group: agreement with specialists, and within and between vendors.

Each unit's similarity is audited like a model's score, with the intervals and tests of
``isolux.audit``. A sample with a design represents the units that it was drawn from: its strata and
finite population enter the interval.

Source: Sony AI (2025) (FHIBE), Methods, "Annotation QA": three specialists on 500 images a type;
three sets of the same 70 images from each vendor; dense annotations above 90 %, attributes above
80 % within and at 70 % between vendors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import TableError
from isolux.io.frames import read_table
from isolux_curate.api.annotation_quality.measurement import (
    DENSE_THRESHOLD,
    AnnotationQuality,
    audit_quality_by_type,
    read_weights_of_sampled_units,
)
from isolux_curate.project.folder import Project
from isolux_curate.project.verdicts import record_journal_note_unless_repeated
from isolux_curate.quality.agreement import INTER as BETWEEN
from isolux_curate.quality.agreement import (
    UNIT_SCHEMA,
    compare_with_specialists,
    compare_within_and_between_vendors,
)
from isolux_curate.quality.typed_answers import (
    SPECIALISTS,
    TypedAnswers,
    parse_answers_by_type,
    read_collected_answers,
    read_facts_by_unit_id,
)
from isolux_curate.user_tables import refuse_missing_columns

__all__ = [
    "AnnotationQuality",
    "measure_and_record_annotation_quality",
    "measure_vendor_consistency",
]

INTRA_VENDOR_THRESHOLD, INTER_VENDOR_THRESHOLD = 0.8, 0.7


def measure_and_record_annotation_quality(
    project: Project,
    specialists: str | Path,
    *,
    sample: str | Path | None = None,
    attributes: float | None = None,
    by: Sequence[str] = (),
    dense: float = DENSE_THRESHOLD,
) -> AnnotationQuality:
    """Compare what was collected with the mean of specialists.

    Parameters
    ----------
    project : Project
    specialists : str or Path
        A table of answers: ``unit, annotator, type`` and ``answer``, ``x, y, w, h``, ``points`` or
        ``keypoints``.
    sample : str or Path, optional
        The folder of the sample that they looked at: units that were not drawn are ignored, and the
        interval is for everything the sample was drawn from.
    attributes : float, optional
        The agreement that attributes must exceed, 0 to 1; FHIBE gives no limit for this comparison.
    by : sequence of str
        Facts about people to compare by.
    dense : float
        The agreement that boxes, masks and keypoints must exceed, 0 to 1 (FHIBE's).

    Raises
    ------
    UnknownNameError
        A type or a fact that the project does not have.
    TableError
        Answers that cannot be read, or about nothing that was collected.
    """
    table = read_table(specialists)
    refuse_missing_columns(table, ["type"], str(specialists))
    types = table["type"].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    collected = read_collected_answers(project, types)
    specialist_rows = table.with_columns(vendor=pl.lit(SPECIALISTS))
    shared = [c for c in collected.columns if c in specialist_rows.columns]
    answer_rows = pl.concat(
        [
            collected,
            specialist_rows.select(
                pl.col(c).cast(collected.schema[c], strict=False) for c in shared
            ),
        ],
        how="diagonal",
    )
    parse_answers_by_type(
        specialist_rows, str(specialists)
    )  # errors name the rows of the user's table
    answers_by_type = parse_answers_by_type(answer_rows, str(specialists))
    units = _compare_answers_of_each_type(answers_by_type, compare_with_specialists)
    if units.is_empty():
        raise TableError(
            "specialists answered about nothing that was collected",
            expected="ids of people in photos (instance_id) in the column unit",
            where=str(specialists),
        )
    sampled_units, notes = (
        (None, []) if sample is None else read_weights_of_sampled_units(sample, units)
    )
    settings = {"dense": dense, "attributes": attributes, "sample": sample is not None}
    facts = read_facts_by_unit_id(project, by)
    facts = facts.rename({"unit_id": "unit", "subject_id": "cluster"})
    quality = audit_quality_by_type(
        units,
        answers_by_type,
        lambda answer_type, _: attributes if answer_type == "choice" else dense,
        facts,
        sampled_units,
        by,
        settings,
        notes,
    )
    for row in quality.types.iter_rows(named=True):
        journal_fields = ("metric", "units", "value", "low", "high", "threshold", "verdict")
        record_journal_note_unless_repeated(
            project, "quality", f"agreement of {row['type']}", {k: row[k] for k in journal_fields}
        )
    return quality


def measure_vendor_consistency(
    table: str | Path,
    *,
    intra: float = INTRA_VENDOR_THRESHOLD,
    inter: float = INTER_VENDOR_THRESHOLD,
    by: Sequence[str] = (),
    dense: float = DENSE_THRESHOLD,
) -> AnnotationQuality:
    r"""Compare annotators of one vendor with one another, and vendors with one another.

    Parameters
    ----------
    table : str or Path
        ``unit, annotator, vendor, type`` and ``answer``, ``x, y, w, h``, ``points`` or
        ``keypoints``; ``subject_id`` or ``image_id``, where units of one person or photo are
        alike; columns to compare by.
    intra : float
        The agreement that attributes must exceed within a vendor, 0 to 1 (FHIBE's).
    inter : float
        The agreement that attributes must exceed between vendors, 0 to 1 (FHIBE's).
    by : sequence of str
        Columns with one value per unit to compare by.
    dense : float
        The agreement that boxes, masks and keypoints must exceed, 0 to 1 (FHIBE's).

    Raises
    ------
    UnknownNameError, TableError
        A column that is missing; a unit that has no vendor.

    Examples
    --------
    >>> import tempfile
    >>> head, rows = "unit,annotator,vendor,type,answer\n", []
    >>> for unit in range(60):
    ...     rows += [f"{unit},{who},{who[0]},hair,{'red' if unit % 6 or who != 'w1' else 'grey'}"
    ...              for who in ("v1", "v2", "w1", "w2")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sets.csv"
    ...     _ = file.write_text(head + "\n".join(rows))
    ...     found = measure_vendor_consistency(file)
    >>> found.types.select("part", "vendor", pl.col("value").round(3)).rows()
    [('inter-vendor', None, 0.917), ('intra-vendor', 'v', 1.0), ('intra-vendor', 'w', 0.833)]
    """
    rows = read_table(table)
    refuse_missing_columns(rows, ("vendor", *by), str(table))
    if rows["vendor"].null_count():
        raise TableError("an answer has no vendor", expected="a vendor each", where=str(table))
    answers_by_type = parse_answers_by_type(rows, str(table))
    units = _compare_answers_of_each_type(answers_by_type, compare_within_and_between_vendors)
    if units.is_empty():
        raise TableError(
            "no unit was answered twice",
            expected="two answers or more about one unit and type",
            where=str(table),
        )

    def choose_threshold(answer_type: str, comparison: str) -> float:
        return dense if answer_type != "choice" else inter if comparison == BETWEEN else intra

    settings = {"dense": dense, "intra": intra, "inter": inter}
    return audit_quality_by_type(
        units,
        answers_by_type,
        choose_threshold,
        _read_clusters_and_unit_groups(rows, by),
        None,
        by,
        settings,
        [],
    )


def _compare_answers_of_each_type(
    answers_by_type: Mapping[str, TypedAnswers], compare_answers: Any
) -> pl.DataFrame:
    tables = [
        compare_answers(answers).with_columns(type=pl.lit(name))
        for name, answers in answers_by_type.items()
    ]
    empty = pl.DataFrame(schema={**UNIT_SCHEMA, "type": pl.String})
    units: pl.DataFrame = pl.concat([empty, *tables])
    return units


def _read_clusters_and_unit_groups(
    answer_rows: pl.DataFrame, group_columns: Sequence[str]
) -> pl.DataFrame:
    """Read each unit's cluster and group columns; null where a unit has two values."""
    key = next(c for c in ("subject_id", "image_id", "unit") if c in answer_rows.columns)
    unit_values = answer_rows.select(
        unit=pl.col("unit").cast(pl.String),
        cluster=pl.col(key).cast(pl.String),
        **{name: pl.col(name).cast(pl.String) for name in group_columns},
    )
    single_values = [
        pl.when(pl.col(n).drop_nulls().n_unique() == 1)
        .then(pl.col(n).drop_nulls().first())
        .alias(n)
        for n in group_columns
    ]
    return unit_values.group_by("unit", maintain_order=True).agg(
        pl.col("cluster").drop_nulls().first(), *single_values
    )
