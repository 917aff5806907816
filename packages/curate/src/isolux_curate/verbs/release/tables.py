"""Who is in a published dataset, beside others, and its tables as Croissant describes them.

FairFace's figure 1 stands its composition beside those of other datasets. Shares of others come
from the user's table: what their papers print, or what was counted. Our own counts hide every group
of fewer people than are told, and those from which one could be reckoned (`isolux.report`).
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux.cards import CONFORMS, Facts, croissant_json, day_of, rai_of, type_of
from isolux.groups.unknown import UNKNOWN
from isolux.io.hashing import sha256_file
from isolux.report.suppression import hidden_cells
from isolux.vocabulary.errors import TableError, place
from isolux_curate.user_tables import read_text, refuse_missing, to_text
from isolux_curate.verbs.release.papers import Release


def croissant_text(
    folder: Path,
    tables: Mapping[str, pl.DataFrame],
    others: Sequence[str],
    release: Release,
    facts: Facts,
    licence: str,
) -> str:
    """Write the JSON-LD, as ``mlcroissant`` validated it."""

    def described(mlc: Any) -> dict[str, Any]:
        files = [
            mlc.FileObject(
                id=name,
                name=name,
                content_url=name,
                encoding_formats=[type_of(name)],
                sha256=sha256_file(folder / name),
            )
            for name in (*tables, *others)
        ]
        sensitive = [f"{name} ({how})" for name, how in release.attributes.items()]
        return {
            "name": release.name,
            "description": facts.text("dataset_description"),
            "url": facts.text("dataset_url"),
            "license": [licence] if licence else None,
            "cite_as": facts.text("dataset_citation"),
            "version": facts.text("dataset_version"),
            "date_published": day_of(facts.text("dataset_published")),
            "creators": _creators(facts, mlc),
            "distribution": files,
            "record_sets": [_records(name, table, mlc) for name, table in tables.items()],
            "data_biases": [*facts.texts.get("dataset_biases", ())],
            "data_limitations": list(facts.texts.get("known_limitations", ())),
            "personal_sensitive_information": [
                *facts.texts.get("sensitive_information", ()),
                *sensitive,
            ],
            "conforms_to": CONFORMS,
            **rai_of(facts),
            "data_use_cases": [*facts.texts.get("dataset_uses", ()), release.terms],
        }

    found = croissant_json(described)
    return json.dumps(found, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _creators(facts: Facts, mlc: Any) -> list[Any]:
    people = facts.texts.get("dataset_persons", ())
    groups = facts.texts.get("dataset_organisations", ())
    return [*(mlc.Person(name=n) for n in people), *(mlc.Organization(name=n) for n in groups)]


def _records(name: str, table: pl.DataFrame, mlc: Any) -> Any:
    stem = name.partition(".")[0]
    fields = [
        mlc.Field(
            id=f"{stem}/{column}",
            name=f"{stem}/{column}",
            data_types=_type(kind, mlc),
            source=mlc.Source(file_object=name, extract=mlc.Extract(column=column)),
        )
        for column, kind in table.schema.items()
    ]
    return mlc.RecordSet(id=stem, name=stem, fields=fields)


def _type(kind: pl.DataType, mlc: Any) -> Any:
    if kind.is_integer():
        return mlc.DataType.INTEGER
    return mlc.DataType.FLOAT if kind.is_float() else mlc.DataType.TEXT


COMPOSITION = {
    "dataset": pl.String,
    "attribute": pl.String,
    "group": pl.String,
    "people": pl.Int64,
    "share": pl.Float64,
}
_WHOLE = 1e-3  # what printed shares may miss of 1, of rounding, a group
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
_ROW, _BAR, _LEFT, _WIDE = 26, 18, 170, 520


def composition_of(
    people: pl.DataFrame, by: Sequence[str], name: str, least: int
) -> tuple[pl.DataFrame, int]:
    """Count the people of each group, of one attribute and of every two; hide the small ones."""
    one = people.unique("who", keep="first", maintain_order=True)
    many = [n for n in by if one[n].str.contains(";", literal=True).any()]
    plain = [n for n in by if n not in many]
    asked: list[tuple[str, ...]] = [(a,) for a in plain]
    asked += [(a, b) for k, a in enumerate(plain) for b in plain[k + 1 :]]
    rows: list[tuple[tuple[str, ...], tuple[str, ...], int]] = [((), (), one.height)]
    for names in asked:
        known = one.with_columns(pl.col(n).fill_null(UNKNOWN) for n in names)
        counts = known.group_by(names).len().sort(names)
        rows += [(names, tuple(str(v) for v in row[:-1]), int(row[-1])) for row in counts.rows()]
    hidden = hidden_cells(_as_metrics(rows), least) if least > 1 else set()
    table = []
    for names, values, n in rows:
        ordered = tuple(sorted(names)), tuple(v for _, v in sorted(zip(names, values, strict=True)))
        if names and (*ordered, None) not in hidden and n >= least:
            table.append((name, "*".join(names), " × ".join(values), n))
    short = list(COMPOSITION)[:4]
    frame = pl.DataFrame(table, schema={c: COMPOSITION[c] for c in short}, orient="row")
    groups = len(rows) - 1
    for each in many:  # groups of several values overlap: they sum to nothing that gives one away
        counts = _of_each(one, each, name)
        groups += counts.height
        frame = pl.concat([frame, counts.filter(pl.col("people") >= least).select(short)])
    total = {
        "*".join(names): sum(n for m, v, n in rows if m == names and UNKNOWN not in v)
        for names in {r[0] for r in rows}
        if names
    }
    total |= {n: one[n].drop_nulls().len() for n in many}
    whole = pl.col("attribute").replace_strict(total, return_dtype=pl.Int64, default=None)
    unknown = pl.col("group").str.contains(UNKNOWN, literal=True)
    share = pl.when(~unknown).then(pl.col("people") / whole)
    return frame.with_columns(share=share).select(
        pl.col(c).cast(t) for c, t in COMPOSITION.items()
    ), groups - frame.height


def _of_each(people: pl.DataFrame, attribute: str, name: str) -> pl.DataFrame:
    """Count people by each of several values."""
    values = people.select("who", group=pl.col(attribute).str.split(";")).explode("group")
    counts = (
        values.drop_nulls().group_by("group").agg(people=pl.col("who").n_unique().cast(pl.Int64))
    )
    told = {"dataset": pl.lit(name), "attribute": pl.lit(attribute)}
    return counts.sort("people", "group", descending=[True, False]).with_columns(**told)


def _as_metrics(rows: Sequence[tuple[tuple[str, ...], tuple[str, ...], int]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "model": "",
                "task": "",
                "metric": "count",
                "label": None,
                "threshold": None,
                "attribute": "*".join(names) or None,
                "group": " × ".join(values) or "everyone",
                "values": list(values),
                "n_units": n,
                "n_clusters": n,
                "value": None,
            }
            for names, values, n in rows
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


def with_others(own: pl.DataFrame, beside: str | Path) -> pl.DataFrame:
    """Put shares of other datasets beside one's own."""
    where = str(beside)
    frame = read_text(beside, "dataset", "attribute", "group")
    refuse_missing(frame, ["share"] if "people" not in frame.columns else [], where)
    rows = to_text(frame, COMPOSITION).cast({"people": pl.Int64, "share": pl.Float64}, strict=False)
    keys = ["dataset", "attribute"]
    rows = rows.with_columns(
        share=pl.coalesce("share", pl.col("people") / pl.col("people").sum().over(keys))
    )
    wrong = rows.select(
        ~pl.col("share").is_between(0, 1).fill_null(value=False)
        | (pl.col("share").sum().over(keys) > 1 + _WHOLE * pl.len().over(keys))
        | pl.any_horizontal(pl.col("dataset", "attribute", "group").is_null())
    ).to_series()
    if wrong.any():
        row = int(wrong.arg_true()[0])
        raise TableError(
            "this is not a composition",
            expected="shares from 0 to 1 that sum to 1 at the most, or counts of people",
            found=str(rows.row(row)),
            where=place(where, row + 1),
        )
    return pl.concat([own, rows.select(pl.col(c).cast(t) for c, t in COMPOSITION.items())])


def figure_svg(table: pl.DataFrame, attribute: str) -> str:
    """Draw the composition of each dataset by one attribute as bars, after FairFace's figure 1.

    Examples
    --------
    >>> rows = [("ours", "tone", "light", 6, 0.6), ("ours", "tone", "dark", 4, 0.4)]
    >>> drawn = figure_svg(pl.DataFrame(rows, schema=COMPOSITION, orient="row"), "tone")
    >>> drawn.count("<rect"), drawn.startswith("<svg")
    (4, True)
    """
    here = table.filter(pl.col("attribute") == attribute, pl.col("share").is_not_null())
    groups = here["group"].unique(maintain_order=True).to_list()
    colour = {g: _COLOURS[k % len(_COLOURS)] for k, g in enumerate(groups)}
    names = here["dataset"].unique(maintain_order=True).to_list()
    parts: list[str] = []
    for k, name in enumerate(names):
        top, left = 30 + k * _ROW, float(_LEFT)
        parts.append(f'<text x="{_LEFT - 8}" y="{top + 13}" text-anchor="end">{_safe(name)}</text>')
        for group, share in here.filter(dataset=name).select("group", "share").iter_rows():
            wide = share * _WIDE
            parts.append(
                f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{_BAR}"'
                f' fill="{colour[group]}"><title>{_safe(group)}: {100 * share:.1f} %</title></rect>'
            )
            left += wide
    for k, group in enumerate(groups):
        x, y = _LEFT + (k % 4) * 130, 44 + len(names) * _ROW + (k // 4) * 20
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour[group]}"/>')
        parts.append(f'<text x="{x + 17}" y="{y + 11}">{_safe(group)}</text>')
    high = 60 + len(names) * _ROW + (len(groups) + 3) // 4 * 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDE + 20}" height="{high}"'
        f' font-family="sans-serif" font-size="12"><text x="8" y="18" font-weight="bold">'
        f"{_safe(attribute)}</text>" + "".join(parts) + "</svg>\n"
    )


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
