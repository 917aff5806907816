"""Embeddings: a NumPy array and a file with a list of ids, or a table with a column of vectors.

What a face recogniser or an image encoder gave for each picture; the tasks of verification and
retrieval compare them. Arrays are read without pickle, so a file can hold numbers and nothing else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import (
    FileError,
    InputError,
    SpecError,
    TableError,
    extract_first_line,
    format_location,
)
from isolux.core.info import FormatInfo, Reference
from isolux.core.tables import EMBEDDINGS, check
from isolux.io.frames import FORMATS, read_table, refuse_unless_file
from isolux.io.ids import choose_id_column, read_ids
from isolux.io.refusals import refuse_cells, require_columns
from isolux.predictions._detections import add_model_column
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="Embeddings",
    summary="Vectors as a NumPy array with a file of ids, or as a column of lists in"
    " Parquet, Arrow or JSON lines.",
    references=(
        Reference(
            key="npy",
            citation="Kern, R. (2007). A simple file format for NumPy arrays. NumPy enhancement"
            " proposal 1.",
            url="https://numpy.org/neps/nep-0001-npy-format.html",
        ),
    ),
    assumptions=(
        "row k of the array is of line k of the ids",
        "single precision is enough: vectors are kept in it",
    ),
    suffixes=(".npy",),
    columns=True,
)

_COLUMNS = ("embedding", "embeddings", "vector", "feature", "features")
_OPTION_FLAGS = "--prediction-option (`isolux describe`: --embedding-option)"
_MAGIC = b"\x93NUMPY"
_ID_FILE_PATTERNS = (
    "{}.ids.txt",
    "{}_ids.txt",
    "{}.ids.csv",
    "{}_ids.csv",
    "{}.ids.npy",
    "{}_ids.npy",
)


def read(
    path: str | Path,
    *,
    model: str | None = None,
    ids: str | Path | None = None,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    column: str | None = None,
) -> pl.DataFrame:
    r"""Read embeddings.

    Parameters
    ----------
    path : str or Path
        ``.npy`` with [n, d] numbers, or a table with a column of lists.
    model : str, optional
        The model's name; not given: the table's column ``model``, else the file's name.
    ids : str or Path, optional
        For ``.npy``: whom each row belongs to, as text (one id per line), ``.npy`` or a table.
        Default: looked for next to the array, as ``<name>.ids.txt``, ``<name>_ids.txt``, the same
        with ``.csv`` and ``.npy``.
    id : str, optional
        The column of ids in a table; default: the first one present among ``id``, ``instance_id``,
        ``image_id``, ``file``, ``filename``, ``path``.
    column : str, optional
        The column of vectors; default: ``embedding``, ``embeddings``, ``vector``, ``feature``
        or ``features``.

    Returns
    -------
    polars.DataFrame
        Table ``EMBEDDINGS``: model, instance_id, embedding (single precision, not normalised;
        null where the cell is empty, or an array's row NaN throughout: no template could be made).

    Raises
    ------
    FileError
        No such file, no array, an array of objects; no ids.
    TableError
        Another number of ids than of rows, an id that occurs twice, vectors of unequal length, a
        number that is not finite; with the row from 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.npy"
    ...     np.save(file, np.array([[1.0, 2.0]]))
    ...     _ = (Path(folder) / "net.ids.txt").write_text("val/1.jpg\n")
    ...     read(file).row(0)
    ('net', 'val/1.jpg', [1.0, 2.0])
    """
    path = Path(path).expanduser()
    source = str(path)
    if path.suffix.lower() == ".npy":
        frame = _read_array_file(path, ids, id, source)
    else:
        frame = _read_vector_table(path, id, column, source)
    frame = add_model_column(frame, model, path)
    return check(frame.select(EMBEDDINGS.schema.keys()), EMBEDDINGS, source=source)


def _read_array_file(
    path: Path, ids: str | Path | None, column: str | None, source: str
) -> pl.DataFrame:
    array = vectors = None
    try:
        array = _map_array(path, source)
        vectors = _to_vectors(array, source)
        return _add_ids(vectors, path, ids, column, source)
    except InputError:
        del array, vectors  # the error's traceback would keep the mapped file open
        raise


def _to_vectors(array: npt.NDArray[np.generic], source: str) -> npt.NDArray[np.float32]:
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        description = f"{array.dtype} of shape {list(array.shape)}"
        del array
        raise FileError(
            "the array does not hold a vector in each row",
            expected="numbers of shape [n, d]",
            found=description,
            where=source,
        )
    with np.errstate(over="ignore"):  # what does not fit is then infinite, and refused
        return np.ascontiguousarray(array, dtype=np.float32)


def _add_ids(
    vectors: npt.NDArray[np.float32],
    path: Path,
    ids: str | Path | None,
    column: str | None,
    source: str,
) -> pl.DataFrame:
    try:
        is_missing = np.asarray(np.isnan(vectors).all(axis=1))
        _refuse_infinite(np.asarray(np.isfinite(vectors).all(axis=1)) | is_missing, source)
        file = Path(ids).expanduser() if ids is not None else _find_id_file(path, source)
        names = _read_id_file(file, column)
        if len(names) != len(vectors):
            raise TableError(
                "there are not as many ids as vectors",
                expected=f"{len(vectors):,} ids, one for each row of {path.name}",
                found=f"{len(names):,}",
                where=str(file),
            )
    except InputError:
        del vectors
        raise
    embedding = EMBEDDINGS.empty()["embedding"]
    if len(vectors):
        embedding = pl.Series("embedding", vectors).cast(pl.List(pl.Float32))
        if is_missing.any():
            embedding = pl.select(pl.when(pl.Series(~is_missing)).then(embedding)).to_series()
    return pl.DataFrame([names.alias("instance_id"), embedding])


def _map_array(path: Path, source: str) -> npt.NDArray[np.generic]:
    """Map an array into memory; objects, which would need pickle, are refused."""
    refuse_unless_file(path)
    if path.stat().st_size == 0:
        raise FileError("the file is empty", expected="a NumPy array", where=source)
    try:
        return _open_memmap(path)
    except Exception as error:  # a damaged header raises whatever tokenize, ast and mmap do
        raise FileError(
            "this is not an array of numbers",
            expected="what numpy.save writes, without Python objects",
            found=extract_first_line(error, 120),
            where=source,
        ) from error


def _open_memmap(path: Path) -> npt.NDArray[np.generic]:
    # Not np.load: it takes other files for archives or pickles, and leaves a damaged archive open.
    with path.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it does not begin as a NumPy array does")
    return np.lib.format.open_memmap(path, mode="r")


def _find_id_file(path: Path, source: str) -> Path:
    names = [pattern.format(path.stem) for pattern in _ID_FILE_PATTERNS]
    id_file = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if id_file is None:
        raise FileError(
            "nothing says whom the vectors are of",
            expected=f"a file of ids next to it: {names[0]}, {names[2]} or {names[4]}",
            where=source,
            hint=f"name it with {_OPTION_FLAGS} ids=FILE: one id a line, in the order of the rows",
        )
    return id_file


def _read_id_file(file: Path, column: str | None) -> pl.Series:
    source = str(file)
    if file.suffix.lower() == ".npy":
        array = _map_array(file, source)
        if array.ndim != 1 or array.dtype.kind not in "Uiu":
            raise FileError(
                "the array does not hold ids",
                expected="text or whole numbers of shape [n]",
                found=f"{array.dtype} of shape {list(array.shape)}",
                where=source,
            )
        return pl.Series("instance_id", [str(name) for name in array.tolist()], dtype=pl.String)
    if file.suffix.lower() != ".txt":
        frame = read_table(file)
        return _read_table_ids(frame, column, source)
    refuse_unless_file(file)
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the ids cannot be read", found=str(error), where=source) from error
    names = pl.Series("instance_id", lines, dtype=pl.String).str.strip_chars()
    refuse_cells(names == "", names.alias(""), "an id is empty", "one id a line", source)
    return names


def _read_vector_table(path: Path, id: str | None, column: str | None, source: str) -> pl.DataFrame:  # noqa: A002
    frame = read_table(path)
    require_columns(frame, (column,), source)
    vector_column = column or next((name for name in _COLUMNS if name in frame.columns), None)
    if vector_column is None or not isinstance(frame.schema[vector_column], pl.List | pl.Array):
        raise SpecError(
            "no column holds vectors",
            expected="a column of lists of numbers, called " + ", ".join(_COLUMNS[:3]) + ", …",
            found=", ".join(f"{n!r} ({t})" for n, t in list(frame.schema.items())[:20]),
            where=source,
            hint=f"name it with {_OPTION_FLAGS} column=COLUMN; text formats such as "
            + ", ".join(FORMATS["csv"][:1])
            + " hold no lists",
        )
    cells = frame[vector_column]
    lists = cells.arr.to_list() if isinstance(cells.dtype, pl.Array) else cells
    if not lists.dtype.inner.is_numeric():  # type: ignore[attr-defined]
        raise TableError(
            "a vector is not made of numbers",
            found=str(cells.dtype),
            where=format_location(source, column=vector_column),
        )
    vectors = lists.cast(pl.List(pl.Float32))
    _refuse_unequal(vectors, source, vector_column)
    finite = vectors.list.eval(pl.element().is_finite().fill_null(value=False)).list.all()
    _refuse_infinite(finite.fill_null(value=True).to_numpy(), source)
    names = _read_table_ids(frame, id, source)
    table = pl.DataFrame([names.alias("instance_id"), vectors.alias("embedding")])
    return table.hstack([frame["model"]]) if "model" in frame.columns else table


def _read_table_ids(frame: pl.DataFrame, column: str | None, source: str) -> pl.Series:
    only_column = frame.columns[0] if len(frame.columns) == 1 else None
    return read_ids(
        frame,
        choose_id_column(frame, column or only_column, source, description="a vector"),
        source,
    )


def _refuse_unequal(vectors: pl.Series, source: str, column: str) -> None:
    lengths = vectors.list.len()  # null: no template could be made
    present_lengths = lengths.drop_nulls()
    first = present_lengths[0] if len(present_lengths) else 0
    problem = "vectors are of unequal length, or empty"
    expected = f"{first or 'one or more'} numbers"
    is_invalid = (lengths != first) | (lengths == 0)
    refuse_cells(is_invalid, lengths, problem, expected + " in each row", source, column=column)


def _refuse_infinite(finite: npt.NDArray[np.bool_], source: str) -> None:
    if not finite.all():
        row = int(np.argmin(finite))
        raise TableError(
            f"{int((~finite).sum()):,} vector(s) hold a number that is not finite",
            expected="finite numbers in single precision",
            where=format_location(source, row + 1),
            hint="where no template could be made, leave the cell empty, or every number of an"
            " array's row NaN",
        )


def mismatch(probe: FileProbe) -> str | None:
    r"""Say why these are no embeddings; None: they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net.npy"), "file", b"\x93NUMPY\x01\x00"))
    >>> mismatch(FileProbe(Path("net.csv"), "table", columns=("id", "label")))
    "it has no column 'embedding', 'embeddings', 'vector', 'feature' or 'features'"
    """
    if probe.kind == "table":
        *first, last = map(repr, _COLUMNS)
        has_column = any(name in probe.columns for name in _COLUMNS)
        return None if has_column else f"it has no column {', '.join(first)} or {last}"
    return None if probe.head.startswith(_MAGIC) else "it does not begin as a NumPy array does"
