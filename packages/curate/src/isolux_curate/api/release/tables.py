"""The composition of a published dataset next to others, and its Croissant metadata.

FairFace's figure 1 compares its composition with those of other datasets. Shares of others come
from the user's table: from their papers, or counted. Our own counts suppress groups below the
minimum, and those from which such a group could be calculated (`isolux.report`).
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux.cards import (
    CONFORMS_TO,
    CardFacts,
    build_rai_properties,
    build_validated_croissant_json,
    guess_media_type,
    parse_date_or_none,
)
from isolux.core.errors import TableError, format_location
from isolux.groups.unknown_values import UNKNOWN
from isolux.io.hashing import sha256_file
from isolux.report.suppression import choose_suppressed_cells
from isolux_curate.api.release.documents import Release
from isolux_curate.user_tables import (
    convert_columns_to_text,
    read_table_as_text,
    refuse_missing_columns,
)


def format_croissant_json(
    release_folder: Path,
    tables: Mapping[str, pl.DataFrame],
    other_files: Sequence[str],
    release: Release,
    facts: CardFacts,
    licence: str,
) -> str:
    """Format the Croissant JSON-LD, validated by ``mlcroissant``."""

    def build_croissant_fields(mlc: Any) -> dict[str, Any]:
        files = [
            mlc.FileObject(
                id=name,
                name=name,
                content_url=name,
                encoding_formats=[guess_media_type(name)],
                sha256=sha256_file(release_folder / name),
            )
            for name in (*tables, *other_files)
        ]
        sensitive = [
            f"{name} ({label_source})" for name, label_source in release.attributes.items()
        ]
        return {
            "name": release.name,
            "description": facts.joined_text("dataset_description"),
            "url": facts.joined_text("dataset_url"),
            "license": [licence] if licence else None,
            "cite_as": facts.joined_text("dataset_citation"),
            "version": facts.joined_text("dataset_version"),
            "date_published": parse_date_or_none(facts.joined_text("dataset_published")),
            "creators": _build_croissant_creators(facts, mlc),
            "distribution": files,
            "record_sets": [
                _build_croissant_record_set(name, table, mlc) for name, table in tables.items()
            ],
            "data_biases": [*facts.texts.get("dataset_biases", ())],
            "data_limitations": list(facts.texts.get("known_limitations", ())),
            "personal_sensitive_information": [
                *facts.texts.get("sensitive_information", ()),
                *sensitive,
            ],
            "conforms_to": CONFORMS_TO,
            **build_rai_properties(facts),
            "data_use_cases": [*facts.texts.get("dataset_uses", ()), release.terms],
        }

    document = build_validated_croissant_json(build_croissant_fields)
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _build_croissant_creators(facts: CardFacts, mlc: Any) -> list[Any]:
    people = facts.texts.get("dataset_persons", ())
    groups = facts.texts.get("dataset_organisations", ())
    return [*(mlc.Person(name=n) for n in people), *(mlc.Organization(name=n) for n in groups)]


def _build_croissant_record_set(table_file: str, table: pl.DataFrame, mlc: Any) -> Any:
    stem = table_file.partition(".")[0]
    fields = [
        mlc.Field(
            id=f"{stem}/{column}",
            name=f"{stem}/{column}",
            data_types=_choose_croissant_type(dtype, mlc),
            source=mlc.Source(file_object=table_file, extract=mlc.Extract(column=column)),
        )
        for column, dtype in table.schema.items()
    ]
    return mlc.RecordSet(id=stem, name=stem, fields=fields)


def _choose_croissant_type(dtype: pl.DataType, mlc: Any) -> Any:
    if dtype.is_integer():
        return mlc.DataType.INTEGER
    return mlc.DataType.FLOAT if dtype.is_float() else mlc.DataType.TEXT


COMPOSITION_SCHEMA = {
    "dataset": pl.String,
    "attribute": pl.String,
    "group": pl.String,
    "people": pl.Int64,
    "share": pl.Float64,
}
_SHARE_TOLERANCE = 1e-3  # rounding of printed shares, for each group
_COLOURS = (
    "#4269d0",
    "#efb118",
    "#ff725c",
    "#6cc5b0",
    "#3ca951",
    "#ff8ab7",
    "#a463f2",
    "#97bbf5",
    "#9c6b4e",
    "#9498a0",
)
_ROW_HEIGHT_PX, _BAR_HEIGHT_PX, _LABEL_WIDTH_PX, _PLOT_WIDTH_PX = 26, 18, 170, 520


def count_groups_suppressing_small(
    people: pl.DataFrame, attributes: Sequence[str], dataset_name: str, min_people: int
) -> tuple[pl.DataFrame, int]:
    """Count people by groups of one and of two attributes, and suppress small groups."""
    distinct_people = people.unique("who", keep="first", maintain_order=True)
    multi_value_attributes = [
        n for n in attributes if distinct_people[n].str.contains(";", literal=True).any()
    ]
    single_value_attributes = [n for n in attributes if n not in multi_value_attributes]
    attribute_sets: list[tuple[str, ...]] = [(a,) for a in single_value_attributes]
    attribute_sets += [
        (a, b)
        for k, a in enumerate(single_value_attributes)
        for b in single_value_attributes[k + 1 :]
    ]
    rows: list[tuple[tuple[str, ...], tuple[str, ...], int]] = [((), (), distinct_people.height)]
    for names in attribute_sets:
        known_people = distinct_people.with_columns(pl.col(n).fill_null(UNKNOWN) for n in names)
        counts = known_people.group_by(names).len().sort(names)
        rows += [(names, tuple(str(v) for v in row[:-1]), int(row[-1])) for row in counts.rows()]
    hidden = (
        choose_suppressed_cells(_convert_counts_to_metric_rows(rows), min_people)
        if min_people > 1
        else set()
    )
    table = []
    for names, values, n in rows:
        ordered = tuple(sorted(names)), tuple(v for _, v in sorted(zip(names, values, strict=True)))
        if names and (*ordered, None) not in hidden and n >= min_people:
            table.append((dataset_name, "*".join(names), " × ".join(values), n))
    short = list(COMPOSITION_SCHEMA)[:4]
    frame = pl.DataFrame(table, schema={c: COMPOSITION_SCHEMA[c] for c in short}, orient="row")
    groups = len(rows) - 1
    for (
        attribute
    ) in multi_value_attributes:  # overlapping groups: no difference of totals reveals one
        counts = _count_people_by_multiple_values(distinct_people, attribute, dataset_name)
        groups += counts.height
        frame = pl.concat([frame, counts.filter(pl.col("people") >= min_people).select(short)])
    n_by_attribute = {
        "*".join(names): sum(n for m, v, n in rows if m == names and UNKNOWN not in v)
        for names in {r[0] for r in rows}
        if names
    }
    n_by_attribute |= {n: distinct_people[n].drop_nulls().len() for n in multi_value_attributes}
    attribute_total = pl.col("attribute").replace_strict(
        n_by_attribute, return_dtype=pl.Int64, default=None
    )
    unknown = pl.col("group").str.contains(UNKNOWN, literal=True)
    share = pl.when(~unknown).then(pl.col("people") / attribute_total)
    return frame.with_columns(share=share).select(
        pl.col(c).cast(t) for c, t in COMPOSITION_SCHEMA.items()
    ), groups - frame.height


def _count_people_by_multiple_values(
    people: pl.DataFrame, attribute: str, dataset_name: str
) -> pl.DataFrame:
    """Count people by each value of an attribute with several values."""
    values = people.select("who", group=pl.col(attribute).str.split(";")).explode("group")
    counts = (
        values.drop_nulls().group_by("group").agg(people=pl.col("who").n_unique().cast(pl.Int64))
    )
    key_columns = {"dataset": pl.lit(dataset_name), "attribute": pl.lit(attribute)}
    return counts.sort("people", "group", descending=[True, False]).with_columns(**key_columns)


def _convert_counts_to_metric_rows(
    group_counts: Sequence[tuple[tuple[str, ...], tuple[str, ...], int]],
) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "model": "",
                "task": "",
                "metric": "count",
                "label": None,
                "threshold": None,
                "attribute": "*".join(names) or None,
                "group": " × ".join(values) or "overall",
                "values": list(values),
                "n_units": n,
                "n_clusters": n,
                "value": None,
            }
            for names, values, n in group_counts
        ],
        schema={
            "model": pl.String,
            "task": pl.String,
            "metric": pl.String,
            "label": pl.String,
            "threshold": pl.Float64,
            "attribute": pl.String,
            "group": pl.String,
            "values": pl.List(pl.String),
            "n_units": pl.Int64,
            "n_clusters": pl.Int64,
            "value": pl.Float64,
        },
    )


def append_shares_of_other_datasets(
    composition: pl.DataFrame, other_compositions: str | Path
) -> pl.DataFrame:
    """Append the shares of other datasets to a composition."""
    source = str(other_compositions)
    frame = read_table_as_text(other_compositions, "dataset", "attribute", "group")
    refuse_missing_columns(frame, ["share"] if "people" not in frame.columns else [], source)
    rows = convert_columns_to_text(frame, COMPOSITION_SCHEMA).cast(
        {"people": pl.Int64, "share": pl.Float64}, strict=False
    )
    keys = ["dataset", "attribute"]
    rows = rows.with_columns(
        share=pl.coalesce("share", pl.col("people") / pl.col("people").sum().over(keys))
    )
    is_faulty = rows.select(
        ~pl.col("share").is_between(0, 1).fill_null(value=False)
        | (pl.col("share").sum().over(keys) > 1 + _SHARE_TOLERANCE * pl.len().over(keys))
        | pl.any_horizontal(pl.col("dataset", "attribute", "group").is_null())
    ).to_series()
    if is_faulty.any():
        row = int(is_faulty.arg_true()[0])
        raise TableError(
            "this is not a composition",
            expected="shares from 0 to 1 that sum to 1 at the most, or counts of people",
            found=str(rows.row(row)),
            where=format_location(source, row + 1),
        )
    return pl.concat(
        [composition, rows.select(pl.col(c).cast(t) for c, t in COMPOSITION_SCHEMA.items())]
    )


def draw_composition_svg(composition: pl.DataFrame, attribute: str) -> str:
    """Draw the composition of each dataset by one attribute as bars, after FairFace's figure 1.

    Examples
    --------
    >>> rows = [("ours", "tone", "light", 6, 0.6), ("ours", "tone", "dark", 4, 0.4)]
    >>> drawn = draw_composition_svg(
    ...     pl.DataFrame(rows, schema=COMPOSITION_SCHEMA, orient="row"),
    ...     "tone",
    ... )
    >>> drawn.count("<rect"), drawn.startswith("<svg")
    (4, True)
    """
    attribute_rows = composition.filter(
        pl.col("attribute") == attribute, pl.col("share").is_not_null()
    )
    groups = attribute_rows["group"].unique(maintain_order=True).to_list()
    colour = {g: _COLOURS[k % len(_COLOURS)] for k, g in enumerate(groups)}
    names = attribute_rows["dataset"].unique(maintain_order=True).to_list()
    elements: list[str] = []
    for k, name in enumerate(names):
        y_px, x_px = 30 + k * _ROW_HEIGHT_PX, float(_LABEL_WIDTH_PX)
        elements.append(
            f'<text x="{_LABEL_WIDTH_PX - 8}" y="{y_px + 13}" text-anchor="end">'
            f"{_escape_html(name)}</text>"
        )
        for group, share in (
            attribute_rows.filter(dataset=name).select("group", "share").iter_rows()
        ):
            width_px = share * _PLOT_WIDTH_PX
            elements.append(
                f'<rect x="{x_px:.1f}" y="{y_px}" width="{width_px:.1f}" height="{_BAR_HEIGHT_PX}"'
                f' fill="{colour[group]}"><title>{_escape_html(group)}: {100 * share:.1f}'
                " %</title></rect>"
            )
            x_px += width_px
    for k, group in enumerate(groups):
        x, y = _LABEL_WIDTH_PX + (k % 4) * 130, 44 + len(names) * _ROW_HEIGHT_PX + (k // 4) * 20
        elements.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour[group]}"/>')
        elements.append(f'<text x="{x + 17}" y="{y + 11}">{_escape_html(group)}</text>')
    height_px = 60 + len(names) * _ROW_HEIGHT_PX + (len(groups) + 3) // 4 * 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL_WIDTH_PX + _PLOT_WIDTH_PX + 20}"'
        f' height="{height_px}"'
        f' font-family="sans-serif" font-size="12"><text x="8" y="18" font-weight="bold">'
        f"{_escape_html(attribute)}</text>" + "".join(elements) + "</svg>\n"
    )


def _escape_html(text: str) -> str:
    return html.escape(text, quote=True)
