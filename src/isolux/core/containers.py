"""Tables that travel together: a dataset, a task's scores, and a finished run.

They hold data and nothing else; every function that makes or uses one lives in its own room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from isolux.core.errors import UnknownNameError
from isolux.core.info import DatasetInfo, TaskInfo
from isolux.core.table_rows import TableRows
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES
from isolux.core.unit_index import UnitIndex, build_unit_index, drop_rows_without_unit

if TYPE_CHECKING:
    from isolux.geometry.previews import ShapePreview


@dataclass(frozen=True, slots=True)
class Clusters:
    """What of a dataset may be taken as sampled independently, until that is chosen.

    Parameters
    ----------
    names : mapping of str to str or None
        The field's words (``"frame"``) to a column of instances or an attribute; None: rows.
    notes : mapping of str to str
        What must be said where such a word, or its column, is chosen.
    columns : polars.DataFrame or None
        A table's own columns, row for row with the instances: its columns are the names.
    source : str
        The file, for errors.
    """

    names: Mapping[str, str | None] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    columns: pl.DataFrame | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """People, their images and their attributes, as read from disk.

    Parameters
    ----------
    name : str
        The loader's name.
    info : DatasetInfo
        Citation, licence, whose judgement the labels are.
    instances, attributes, images : polars.DataFrame
        Tables as in ``isolux.core.tables``.
    inputs : mapping of str to str
        Each file read and the SHA-256 of its bytes.
    notes : tuple of str
        What the loader decided that the report must say.
    withdrawn_ids : frozenset of str
        Ids of who withdrew and of what went with them: nothing that is written may name them.
    root : str or None
        The folder that ``images.uri`` start from, absolute; None: not known, so no picture can be
        opened. ``datasets.load`` fills it.
    has_row_number_ids : bool
        Whether instances are named by the number of their row, which means nothing in another
        file.
    clusters : Clusters or None
        What ``cluster`` of ``datasets.load`` may name; None once that is chosen.
    categories : mapping of str to str
        The numbers by which files of results name classes, and the classes.
    bundled_predictions : polars.DataFrame or None
        What a model said, where the dataset's own file holds it (a table of pairs): one of the
        tables of predictions, judged where no other is named.
    multiplicity : polars.DataFrame or None
        ``instance_id, times``: how many people, alike in all that the audit reads, each instance
        stands for (people of shards, who were counted); None: each for itself.
    survey_sample : polars.DataFrame or None
        How people were drawn: ``instance_id, weight, stratum, stratum_clusters``; None: each
        stands for as many as any other.
    skipped_columns : mapping of str to str
        Columns of its file that are no attribute, and why: told where one is asked for.
    id_columns : mapping of str to str
        What its file calls columns of ids (``"person"``), and the columns of instances that they
        became: a list of people who withdrew may go by the same names.
    row_locations : TableRows or None
        Of a table in several files: where each of its rows is.
    """

    name: str
    info: DatasetInfo
    instances: pl.DataFrame
    attributes: pl.DataFrame = field(default_factory=ATTRIBUTES.empty)
    images: pl.DataFrame = field(default_factory=IMAGES.empty)
    inputs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    withdrawn_ids: frozenset[str] = frozenset()
    root: str | None = None
    has_row_number_ids: bool = False
    clusters: Clusters | None = None
    categories: Mapping[str, str] = field(default_factory=dict)
    bundled_predictions: pl.DataFrame | None = None
    multiplicity: pl.DataFrame | None = None
    survey_sample: pl.DataFrame | None = None
    skipped_columns: Mapping[str, str] = field(default_factory=dict)
    id_columns: Mapping[str, str] = field(default_factory=dict)
    row_locations: TableRows | None = None

    @property
    def row_source(self) -> str:
        """The table, for errors about a row of ``instances``."""
        table = self.numbered_table
        if table is None:
            if self.row_locations is None:
                return next(iter(self.inputs), self.name)
            is_complete = self.instances.height == self.row_locations.ends[-1]
            return self.row_locations if is_complete else self.row_locations.without_locations()
        numbers = self.instances["instance_id"].cast(pl.String).cast(pl.Int64, strict=False)
        if numbers.null_count():
            return table.without_locations()
        return table.take_rows(numbers.to_numpy() - 1)

    @property
    def numbered_table(self) -> TableRows | None:
        """The table whose rows the instances' ids number; None: they are ids of their own."""
        if self.has_row_number_ids or self.multiplicity is not None:
            return self.row_locations or TableRows.from_file(next(iter(self.inputs), self.name))
        return None

    def _repr_html_(self) -> str:
        from isolux.core.notebook import build_dataset_html

        return build_dataset_html(self)

    def values_of(self, attribute: str) -> pl.DataFrame:
        """Return the rows of one attribute, or raise UnknownNameError naming those there are."""
        rows = self.attributes.filter(pl.col("attribute") == attribute)
        if rows.is_empty():
            valid_names = self.attributes["attribute"].unique().to_list()
            raise UnknownNameError("attribute", attribute, valid_names, where=self.name)
        return rows

    def instance_attributes(self) -> pl.DataFrame:
        """Return ``attributes`` with those of images and subjects spread to their instances.

        Weather is an image's attribute; whoever stands in the image is judged in that weather.
        """
        of_instances = pl.col("unit_kind") == "instance"
        if self.attributes.select(of_instances.all()).item():  # as a rule; a filter copies them
            return self.attributes
        tables = [self.attributes.filter(of_instances)]
        instances = INSTANCES.conform(self.instances)
        for unit_kind, column in (("image", "image_id"), ("subject", "subject_id")):
            rows = self.attributes.filter(pl.col("unit_kind") == unit_kind)
            if rows.is_empty():
                continue
            owners = instances.select("instance_id", unit_id=column).drop_nulls()
            spread = owners.join(rows, on="unit_id", how="inner", maintain_order="left")
            spread = spread.drop("unit_id").rename({"instance_id": "unit_id"})
            tables.append(
                spread.with_columns(unit_kind=pl.lit("instance")).select(self.attributes.columns)
            )
        return pl.concat(tables)

    def with_clusters(self, attribute: str | None) -> Dataset:
        """Return the dataset with ``cluster_id`` taken from an instance column or an attribute.

        None: rows are clusters. A unit whose cluster is unknown is a cluster of its own.
        """
        instances = INSTANCES.conform(self.instances)
        if attribute is None:
            cleared = instances.with_columns(cluster_id=pl.lit(None, dtype=pl.String))
            return replace(self, instances=cleared)
        if attribute in instances.columns and instances[attribute].is_not_null().any():
            clustered_instances = instances.with_columns(
                cluster_id=pl.col(attribute).cast(pl.String)
            )
            return replace(self, instances=clustered_instances)
        self.values_of(attribute)  # which names those there are
        rows = self.instance_attributes().filter(pl.col("attribute") == attribute)
        of_unit = rows.select(instance_id="unit_id", cluster_id=pl.col("value"))
        labelled_instances = instances.drop("cluster_id").join(
            of_unit.unique("instance_id", keep="first", maintain_order=True),
            on="instance_id",
            how="left",
            maintain_order="left",
        )
        return replace(self, instances=INSTANCES.conform(labelled_instances))


@dataclass(frozen=True)
class Scores:
    """What a task measured: one row per unit and metric, and the evidence behind it.

    Parameters
    ----------
    units : polars.DataFrame
        Table ``scores``.
    evidence : mapping of str to polars.DataFrame
        What metrics that are not means need, by name; each has ``model``, ``unit_id`` and
        ``cluster_id``.
    info : TaskInfo
        The task's declaration, with the metrics that were measured.
    notes : tuple of str
        What was left out and counted, in sentences for the report.
    task : str
        The task's name; empty: that of ``units``.
    task_choices : mapping
        What the task set by the data, such as a decision threshold, for the record: JSON values.
    previews : tuple of ShapePreview
        Of a task of boxes, masks or poses: people and predictions of some images side by side, for
        each model with enough of them; in no file.
    """

    units: pl.DataFrame
    info: TaskInfo
    evidence: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    task: str = ""
    task_choices: Mapping[str, Any] = field(default_factory=dict)
    previews: tuple[ShapePreview, ...] = ()

    @cached_property
    def unit_index(self) -> UnitIndex:
        """The units of ``units`` and of each table of evidence, as numbers: told once."""
        # A false alarm is evidence, and nobody's.
        return build_unit_index(
            [self.units, *(drop_rows_without_unit(t) for t in self.evidence.values())]
        )

    def evaluated_units(self) -> pl.DataFrame:
        """Return every unit that has a score or evidence: the frame ``unit_id, scored``.

        ``scored`` is false for who has a reason in place of every score; quantiles of groups go
        by the others.
        """
        unit_index = self.unit_index
        scored = np.full(len(unit_index.ids), self.units.is_empty())
        values = self.units["value"]
        has_value = values.is_not_null().to_numpy() if values.null_count() else slice(None)
        scored[unit_index.rows[0][has_value]] = True
        return pl.DataFrame([unit_index.ids, pl.Series("scored", scored)])


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its record and its tables, in memory or read back from a directory.

    ``record`` is the content of ``audit.json``: the resolved spec, versions, input hashes, notes,
    and the printed tables of a paper's protocol and of the analyses that ran.
    """

    record: Mapping[str, Any]
    scores: pl.DataFrame
    attributes: pl.DataFrame
    group_metrics: pl.DataFrame
    disparities: pl.DataFrame
    findings: pl.DataFrame
    evidence: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        from isolux.core.notebook import build_run_html

        return build_run_html(self)


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """What an analysis found: claims, and the tables that they were drawn from.

    Parameters
    ----------
    findings : polars.DataFrame
        Table ``findings``.
    tables : mapping of str to polars.DataFrame
        By caption, as the report prints them: cells are text, numbers or null. A few dozen rows
        at most: they stand in ``audit.json``.
    notes : tuple of str
        What was left out, merged or could not be told, in sentences for the report.
    """

    findings: pl.DataFrame
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def tables_to_json(tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, Any]]:
    """Turn tables into JSON, by caption: ``columns`` and ``rows``; NaN becomes null.

    Examples
    --------
    >>> tables_to_json({"Table 1": pl.DataFrame({"model": ["m"], "gap": [float("nan")]})})
    {'Table 1': {'columns': ['model', 'gap'], 'rows': [['m', None]]}}
    """
    finite_tables = {
        caption: table.with_columns(pl.selectors.float().fill_nan(None))
        for caption, table in tables.items()
    }
    return {
        caption: {"columns": table.columns, "rows": [list(row) for row in table.rows()]}
        for caption, table in finite_tables.items()
    }
