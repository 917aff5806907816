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

from isolux.io.cells import as_numbers, as_text
from isolux.io.frames import read_table
from isolux.io.ids import id_column, ids_of
from isolux.io.image_tables import FHIBE_API, UNIT_VALUES, VALUE_COLUMNS, holds_values
from isolux.io.refusals import refuse_cells, require_columns
from isolux.predictions._detections import model_name
from isolux.predictions._seen import Seen
from isolux.vocabulary.errors import TableError, UnknownNameError
from isolux.vocabulary.info import FormatInfo
from isolux.vocabulary.tables import check

INFO = FormatInfo(
    title="Values computed elsewhere",
    summary="A table (CSV, Parquet, …) with one row a person or image and a column for each metric"
    " that another program measured.",
    references=(replace(FHIBE_API, place="docs/task_specifics.md, available metrics"),),
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
    where = str(file)
    frame = read_table(file)
    named = id_column(frame, id, where, what="a value")
    who = [ids_of(frame, named, where)]
    own = model is None and "model" in frame.columns
    if own:
        who.append(as_text(frame["model"]).fill_null(model_name(file)).alias("model"))
    if {"metric", "value"} <= set(frame.columns) and not columns:
        table = _long(frame, who, where)
    else:
        table = _wide(frame, who, columns, where)
    if not own:
        table = table.with_columns(model=pl.lit(model or model_name(file)))
    return check(table.select(UNIT_VALUES.schema.keys()), UNIT_VALUES, where=where)


def _long(frame: pl.DataFrame, who: list[pl.Series], where: str) -> pl.DataFrame:
    metric = as_text(frame["metric"]).alias("metric")
    value = _numbers(frame["value"], where, psnr=(metric == "psnr").fill_null(value=False))
    return pl.DataFrame([*who, metric, value.alias("value")])


def _wide(
    frame: pl.DataFrame, who: list[pl.Series], columns: Sequence[str], where: str
) -> pl.DataFrame:
    taken = {series.name for series in who}
    known = [
        name
        for name in frame.columns
        if name.strip().lower() in VALUE_COLUMNS and name not in taken
    ]
    chosen = list(dict.fromkeys(columns)) or known
    require_columns(frame, chosen, where)
    if not chosen:
        raise UnknownNameError("column", "lpips", frame.columns, where=where)
    metrics = [VALUE_COLUMNS.get(name.strip().lower(), name) for name in chosen]
    twice = next((m for m in metrics if metrics.count(m) > 1), None)
    if twice is not None:
        raise TableError(
            f"two columns hold {twice}",
            expected="one column a metric",
            found=", ".join(repr(c) for c, m in zip(chosen, metrics, strict=True) if m == twice),
            where=where,
            hint="name the one to read (columns=…)",
        )
    values = []
    for name, metric in zip(chosen, metrics, strict=True):
        psnr = pl.repeat(metric == "psnr", frame.height, dtype=pl.Boolean, eager=True)
        values.append(_numbers(frame[name], where, psnr=psnr).alias(f"value {metric}"))
    rows = pl.DataFrame([*who, *values]).with_row_index("row")
    table = rows.unpivot(
        on=[v.name for v in values],
        index=["row", *(s.name for s in who)],
        variable_name="metric",
        value_name="value",
    ).with_columns(pl.col("metric").str.strip_prefix("value "))
    order = {metric: place for place, metric in enumerate(metrics)}
    return table.sort("row", pl.col("metric").replace_strict(order), maintain_order=True)


def _numbers(cells: pl.Series, where: str, *, psnr: pl.Series) -> pl.Series:
    """Read cells as numbers; NaN is null, and only PSNR may be infinite."""
    numbers = as_numbers(cells, where=where, column=cells.name).fill_nan(None)
    endless = numbers.is_infinite().fill_null(value=False) & ~(psnr & (numbers > 0))
    expected = "finite numbers; PSNR of identical pictures may be inf"
    refuse_cells(endless, numbers, "{n} value(s) are not finite", expected, where)
    return numbers


def misfit(seen: Seen) -> str | None:
    """Say why these are no values computed elsewhere; None: they are.

    Examples
    --------
    >>> misfit(Seen(Path("net.csv"), "table", columns=("id", "psnr")))
    >>> misfit(Seen(Path("net.csv"), "table", columns=("id", "label", "psnr")))
    'it has answers, or no column of a known metric'
    """
    known = holds_values(seen.columns)
    return None if known else "it has answers, or no column of a known metric"
