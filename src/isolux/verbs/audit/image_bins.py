"""Quantiles over images: ``--bins income=quantile:3:images``, as ICON² parts its images.

Elsewhere quantiles are those of the units that are judged, so that a crowded picture counts as many
times as it holds people. ICON² calls its three income groups equally large in images. The edges are
worked out once, before anyone is put into a group, and stand in the record as ``edges:A,B``, so
that every later step parts people at the same places.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from isolux.groups.binning import Bins, bin_labels, parse_bins, quantile_edges
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import AuditSpec

_END = ":images"


def with_image_bins(spec: AuditSpec, dataset: Dataset) -> tuple[AuditSpec, Dataset]:
    """Turn quantiles over images into edges, with a note for each."""
    if not any(text.endswith(_END) for text in spec.groups.bins):
        return spec, dataset
    bins, notes = [], list(dataset.notes)
    for text in spec.groups.bins:
        if not text.endswith(_END):
            bins.append(text)
            continue
        name, _, rule = text.removesuffix(_END).partition("=")
        asked = parse_bins(rule)
        edges, n = _edges(dataset, name.strip(), asked, text)
        end = ":right" if asked.closed == "right" else ""
        bins.append(f"{name}=edges:" + ",".join(map(repr, edges)) + end)
        labels = ", ".join(bin_labels(edges, asked.closed))
        notes.append(f"{name.strip()}: quantiles over {n:,} images: {labels}")
    return spec.updated(bins=tuple(bins)), replace(dataset, notes=tuple(notes))


def _edges(dataset: Dataset, name: str, asked: Bins, text: str) -> tuple[tuple[float, ...], int]:
    """Choose the edges that part the images, each with the median of its people's numbers."""
    if not asked.quantiles:
        raise SpecError(
            "only quantiles can be over images", expected=f"{name}=quantile:K{_END}",
            found=repr(text), where="--bins",
        )  # fmt: skip
    people = dataset.instances
    rows = dataset.instance_attributes().filter(attribute=name)
    if "image_id" in people.columns and rows.height:
        number = pl.coalesce("number", pl.col("value").cast(pl.Float64, strict=False))
        placed = rows.select(unit_id="unit_id", number=number).join(
            people.select(unit_id="instance_id", image_id="image_id"), on="unit_id"
        )
        numbers = placed.drop_nulls().group_by("image_id").agg(pl.col("number").median())["number"]
        edges = quantile_edges(numbers, asked.quantiles, asked.closed)
        if edges:
            return edges, len(numbers)
    raise SpecError(
        f"{name!r} cannot be parted over images",
        expected="people with an image_id and a number of that attribute, not all alike",
        found=f"{rows['value'].drop_nulls().len():,} known values of {name!r}",
        where=f"--bins {text}",
        hint=f"--bins {name}=quantile:{asked.quantiles} splits the people instead",
    )
