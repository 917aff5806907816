"""Values that were computed elsewhere: a table with a row a person and a column a metric.

LPIPS needs a network whose weights are not on every machine; what another program measured is
audited as well. Names of columns tell the metric: ``lpips``, ``psnr``, ``ssim``,
``identity_cosine`` (FHIBE's code writes LPIPS, PSNR and CURRICULAR_FACE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.core.errors import TableError, UnknownNameError
from isolux.core.info import FormatInfo
from isolux.core.tables import check
from isolux.io.cell_parsing import as_numbers, as_text
from isolux.io.frames import read_table
from isolux.io.ids import choose_id_column, read_ids, read_names
from isolux.io.image_tables import FHIBE_API, UNIT_VALUES, VALUE_COLUMNS, has_value_columns
from isolux.io.refusals import refuse_cells, require_columns
from isolux.predictions._detections import model_name_from_path
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="Values computed elsewhere",
    summary="A table (CSV, Parquet, …) with one row a person or image and a column for each metric"
    " that another program measured.",
    references=(replace(FHIBE_API, location="docs/task_specifics.md, available metrics"),),
    assumptions=(
        "what a column holds was measured as its name says: nothing here can check it",
        "an empty cell means that nothing was measured",
    ),
    columns=True,
)


def read(
    path: str | Path,
    *,
    model: str | None = None,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    columns: Sequence[str] = (),
) -> pl.DataFrame:
    r"""Read values that were computed elsewhere.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, JSON lines or Arrow. Also a table ``UNIT_VALUES`` as ``isolux export``
        writes it: ``model, instance_id, metric, value``.
    model : str, optional
        The model's name; not given: the column ``model``, else the file's name.
    id : str, optional
        The column of ids; default: the first one present among ``id``, ``instance_id``,
        ``image_id``,
        ``file``, ``filename``, ``path``.
    columns : sequence of str
        The columns with values. Empty: those with a name that is known, in any letters: ``lpips``,
        ``psnr`` (or ``psnr_db``), ``ssim``, ``identity_cosine`` (or ``curricular_face``). Any
        other is a metric of its own name.

    Returns
    -------
    polars.DataFrame
        Table ``UNIT_VALUES``: model, instance_id, metric, value (null where the cell is empty or
        NaN). In the order of the rows, then of the columns.

    Raises
    ------
    FileError
        As for any table.
    UnknownNameError
        No column of ids or of values, with near names.
    TableError
        A cell that is not a number, an infinite value of another metric than PSNR, an id that
        occurs twice; with the row from 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("image_id,LPIPS,PSNR\n7,0.21,24.5\n8,,25\n")
    ...     read(file).rows()  # doctest: +NORMALIZE_WHITESPACE
    [('net', '7', 'lpips', 0.21), ('net', '7', 'psnr', 24.5),
     ('net', '8', 'lpips', None), ('net', '8', 'psnr', 25.0)]
    """
    file = Path(path).expanduser()
    source = str(file)
    frame = read_table(file)
    id_column_name = choose_id_column(frame, id, source, description="a value")
    key_columns = [read_ids(frame, id_column_name, source)]
    has_model_column = model is None and "model" in frame.columns
    if has_model_column:
        key_columns.append(
            read_names(frame, "model", source, noun="model")
            .fill_null(model_name_from_path(file))
            .alias("model")
        )
    if {"metric", "value"} <= set(frame.columns) and not columns:
        table = _read_long_table(frame, key_columns, source)
    else:
        table = _read_wide_table(frame, key_columns, columns, source)
    if not has_model_column:
        table = table.with_columns(model=pl.lit(model or model_name_from_path(file)))
    return check(table.select(UNIT_VALUES.schema.keys()), UNIT_VALUES, source=source)


def _read_long_table(
    frame: pl.DataFrame, key_columns: list[pl.Series], source: str
) -> pl.DataFrame:
    metric = as_text(frame["metric"]).alias("metric")
    values = _read_numbers(frame["value"], source, psnr=(metric == "psnr").fill_null(value=False))
    return pl.DataFrame([*key_columns, metric, values.alias("value")])


def _read_wide_table(
    frame: pl.DataFrame, key_columns: list[pl.Series], columns: Sequence[str], source: str
) -> pl.DataFrame:
    key_names = {series.name for series in key_columns}
    value_columns = [
        name
        for name in frame.columns
        if name.strip().lower() in VALUE_COLUMNS and name not in key_names
    ]
    read_columns = list(dict.fromkeys(columns)) or value_columns
    require_columns(frame, read_columns, source)
    if not read_columns:
        raise UnknownNameError("column", "lpips", frame.columns, where=source)
    metrics = [VALUE_COLUMNS.get(name.strip().lower(), name) for name in read_columns]
    repeated_metric = next((m for m in metrics if metrics.count(m) > 1), None)
    if repeated_metric is not None:
        raise TableError(
            f"two columns hold {repeated_metric}",
            expected="one column a metric",
            found=", ".join(
                repr(c) for c, m in zip(read_columns, metrics, strict=True) if m == repeated_metric
            ),
            where=source,
            hint="name the one to read (columns=…)",
        )
    values = []
    for name, metric in zip(read_columns, metrics, strict=True):
        psnr = pl.repeat(metric == "psnr", frame.height, dtype=pl.Boolean, eager=True)
        values.append(_read_numbers(frame[name], source, psnr=psnr).alias(f"value {metric}"))
    rows = pl.DataFrame([*key_columns, *values]).with_row_index("row")
    table = rows.unpivot(
        on=[v.name for v in values],
        index=["row", *(s.name for s in key_columns)],
        variable_name="metric",
        value_name="value",
    ).with_columns(pl.col("metric").str.strip_prefix("value "))
    order = {metric: position for position, metric in enumerate(metrics)}
    return table.sort("row", pl.col("metric").replace_strict(order), maintain_order=True)


def _read_numbers(cells: pl.Series, source: str, *, psnr: pl.Series) -> pl.Series:
    """Read cells as numbers; NaN is null, and only PSNR may be infinite."""
    numbers = as_numbers(cells, source=source, column=cells.name).fill_nan(None)
    is_invalid = numbers.is_infinite().fill_null(value=False) & ~(psnr & (numbers > 0))
    expected = "finite numbers; PSNR of identical pictures may be inf"
    refuse_cells(is_invalid, numbers, "{n} value(s) are not finite", expected, source)
    return numbers


def mismatch(probe: FileProbe) -> str | None:
    """Say why these are no values computed elsewhere; None: they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net.csv"), "table", columns=("id", "psnr")))
    >>> mismatch(FileProbe(Path("net.csv"), "table", columns=("id", "label", "psnr")))
    'it has answers, or no column of a known metric'
    """
    has_values = has_value_columns(probe.columns)
    return None if has_values else "it has answers, or no column of a known metric"
